/* tools/demo/main.c -- which part, and what all parts share. */
#include "tools/demo/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000 };

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t mark_begin(void)
{
    (void)access("/stele-mark/begin", F_OK);
    return clock_ns();
}

uint64_t mark_end(uint64_t begin_ns)
{
    const uint64_t took_ns = clock_ns() - begin_ns;

    (void)access("/stele-mark/end", F_OK);
    return took_ns;
}

static void split_lines(struct text_file *file)
{
    char *rest = file->data;
    size_t capacity = 0;

    while (*rest != '\0') {
        char *end = strchr(rest, '\n');

        if (file->line_count == capacity) {
            capacity = capacity == 0 ? 1024 : 2 * capacity;
            file->lines = must_have(
                realloc(file->lines, capacity * sizeof file->lines[0]));
        }
        file->lines[file->line_count++] = rest;
        if (end == NULL) {
            break;
        }
        *end = '\0';
        rest = end + 1;
    }
}

struct text_file text_file_read(const char *path)
{
    struct text_file file = {0};
    FILE *stream = fopen(path, "r");
    long bytes;

    if (stream == NULL || fseek(stream, 0, SEEK_END) != 0 ||
        (bytes = ftell(stream)) < 0) {
        die("%s: cannot be read", path);
    }
    rewind(stream);
    file.bytes = (size_t)bytes;
    file.data = must_have(malloc(file.bytes + 1));
    if (fread(file.data, 1, file.bytes, stream) != file.bytes) {
        die("%s: cannot be read", path);
    }
    file.data[file.bytes] = '\0';
    fclose(stream);
    split_lines(&file);
    return file;
}

void text_file_free(struct text_file *file)
{
    free(file->data);
    free(file->lines);
    *file = (struct text_file){0};
}

struct stele *demo_store_open(const char *path)
{
    struct stele_error error = {0};
    struct stele *store;

    must(stele_open(path, NULL, &store, &error), &error);
    return store;
}

void demo_store_close(struct stele *store)
{
    struct stele_error error = {0};

    must(stele_close(store, &error), &error);
}

static size_t number(const char *text)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);

    if (text[0] == '\0' || *end != '\0') {
        die("%s: not a number", text);
    }
    return value;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";

    if (strcmp(part, "broker") == 0 && argc == 6) {
        demo_broker(argv[2], argv[3], number(argv[4]), number(argv[5]));
    } else if (strcmp(part, "delete") == 0 && argc == 7) {
        demo_delete(argv[2], argv[3], number(argv[4]), number(argv[5]),
                    number(argv[6]));
    } else if (strcmp(part, "storm") == 0 && argc == 6) {
        demo_storm(argv[2], argv[3], (unsigned)number(argv[4]),
                   (unsigned)number(argv[5]));
    } else if (strcmp(part, "check") == 0 && argc == 4) {
        demo_check(argv[2], argv[3]);
    } else {
        fprintf(stderr,
                "Usage: stele-demo broker CONFIGDIR FILE COUNT PER_PERSIST\n"
                "       stele-demo delete STORE FILE FIRST COUNT PER_BATCH\n"
                "       stele-demo storm STORE ACKS RUN THREADS\n"
                "       stele-demo check STORE ACKS\n"
                "\n"
                "Parts of tools/demo.sh.\n");
        return 2;
    }
    return 0;
}
