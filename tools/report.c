/* tools/report.c -- see tools/report.h. */
#include "tools/report.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/progress.h"
#include "tools/utf8.h"

enum { REPORT_LINE_BYTES = 2048 };

static const char *report_verb;

void report_set_verb(const char *verb)
{
    report_verb = verb;
}

static void write_printable(const char *message)
{
    const uint8_t *bytes = (const uint8_t *)message;
    size_t left = strlen(message);

    while (left > 0) {
        const size_t taken = utf8_printable_bytes(bytes, left);

        if (taken == 0) {
            fprintf(stderr, "\\x%02x", bytes[0]);
            bytes += 1;
            left -= 1;
        } else {
            fwrite(bytes, 1, taken, stderr);
            bytes += taken;
            left -= taken;
        }
    }
}

static void write_line(const char *kind, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void write_line(const char *kind, const char *format, va_list args)
{
    char message[REPORT_LINE_BYTES];

    progress_end();
    vsnprintf(message, sizeof message, format, args);
    fputs("stele: ", stderr);
    if (report_verb != NULL) {
        fprintf(stderr, "%s: ", report_verb);
    }
    fputs(kind, stderr);
    write_printable(message);
    fputc('\n', stderr);
}

void report_problem(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line("", format, args);
    va_end(args);
}

void report_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line("note: ", format, args);
    va_end(args);
}

int report_usage(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line("", format, args);
    va_end(args);
    if (report_verb == NULL) {
        fputs("Try 'stele --help'.\n", stderr);
    } else {
        fprintf(stderr, "Try 'stele %s --help'.\n", report_verb);
    }
    return EXIT_USAGE;
}

int report_error(enum stele_status status, const struct stele_error *error)
{
    if (error->message[0] == '\0') {
        report_problem("%s", stele_status_text(status));
    } else {
        report_problem("%s", error->message);
    }
    return exit_code_of(status);
}
