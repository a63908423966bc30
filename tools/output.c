/* tools/output.c -- see tools/output.h. */
#include "tools/output.h"

#include <assert.h>
#include <inttypes.h>

#include "tools/utf8.h"

enum escape_dialect { ESCAPE_TEXT, ESCAPE_JSON };

void output_hex(FILE *out, struct bytes data)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = data.data;

    for (size_t i = 0; i < data.size; i++) {
        putc(digits[bytes[i] >> 4], out);
        putc(digits[bytes[i] & 0x0f], out);
    }
}

/* The letter of a two-character escape; 0 if there is none. */
static char short_escape(uint8_t byte, enum escape_dialect dialect)
{
    switch (byte) {
    case '\\':
        return '\\';
    case '"':
        return dialect == ESCAPE_JSON ? '"' : '\0';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return '\0';
    }
}

/* Write one character and return how many bytes it had. */
static size_t write_character(FILE *out, enum escape_dialect dialect,
                              const uint8_t *data, size_t bytes)
{
    const char letter = short_escape(data[0], dialect);
    const size_t printable = utf8_printable_bytes(data, bytes);
    const size_t sequence = utf8_sequence_bytes(data, bytes);

    if (letter != '\0') {
        putc('\\', out);
        putc(letter, out);
        return 1;
    }
    if (printable != 0) {
        fwrite(data, 1, printable, out);
        return printable;
    }
    if (sequence != 0) {
        /* A control character: the last byte of the sequence is its number. */
        fprintf(out, "\\u00%02x", data[sequence - 1]);
        return sequence;
    }
    assert(dialect == ESCAPE_TEXT);
    fprintf(out, "\\x%02x", data[0]);
    return 1;
}

/* How many bytes stand for themselves: the usual case, written in one go. */
static size_t plain_bytes(const uint8_t *data, size_t bytes)
{
    size_t count = 0;

    while (count < bytes && data[count] >= 0x20 && data[count] < 0x7f &&
           data[count] != '\\' && data[count] != '"') {
        count += 1;
    }
    return count;
}

static void write_escaped(FILE *out, enum escape_dialect dialect,
                          struct bytes text)
{
    const uint8_t *data = text.data;
    size_t offset = 0;

    while (offset < text.size) {
        const size_t left = text.size - offset;
        const size_t plain = plain_bytes(data + offset, left);

        if (plain > 0) {
            fwrite(data + offset, 1, plain, out);
            offset += plain;
        } else {
            offset += write_character(out, dialect, data + offset, left);
        }
    }
}

void output_bytes(FILE *out, const struct output_mode *mode, struct bytes data)
{
    if (mode->hex) {
        output_hex(out, data);
    } else {
        write_escaped(out, ESCAPE_TEXT, data);
    }
}

void output_json_string(FILE *out, struct bytes text)
{
    putc('"', out);
    write_escaped(out, ESCAPE_JSON, text);
    putc('"', out);
}

void output_json_bytes(FILE *out, const struct output_mode *mode,
                       const char *name, struct bytes data)
{
    if (!mode->hex && utf8_is_valid(data)) {
        fprintf(out, "\"%s\":", name);
        output_json_string(out, data);
    } else {
        fprintf(out, "\"%s_hex\":\"", name);
        output_hex(out, data);
        putc('"', out);
    }
}

void output_numbers(FILE *out, const struct output_mode *mode,
                    const struct output_number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (mode->json) {
            fprintf(out, "%s\"%s\":%" PRIu64, i == 0 ? "" : ",",
                    numbers[i].name, numbers[i].value);
        } else {
            fprintf(out, "%-28s%" PRIu64 "\n", numbers[i].name,
                    numbers[i].value);
        }
    }
}
