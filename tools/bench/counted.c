/* tools/bench/counted.c -- see tools/bench/counted.h. */
#include "tools/bench/counted.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/must/must.h"

enum { ARGUMENTS_MAX = 16, LINE_BYTES = 8192 };

static const char program[] = "/proc/self/exe";

/* ---- Counts ----------------------------------------------------------------- */

const char *const counted_class_names[COUNTED_CLASSES] = {
    "log", "prepared", "anchor", "index", "directory", "other",
};

struct counts counts_between(const struct counts *begin,
                             const struct counts *end)
{
    struct counts between = *end;

    for (size_t file = 0; file < COUNTED_CLASSES; file++) {
        between.syncs[file] -= begin->syncs[file];
        between.bytes[file] -= begin->bytes[file];
    }
    return between;
}

static uint64_t sum(const uint64_t numbers[COUNTED_CLASSES])
{
    uint64_t total = 0;

    for (size_t file = 0; file < COUNTED_CLASSES; file++) {
        total += numbers[file];
    }
    return total;
}

uint64_t counts_syncs(const struct counts *counts)
{
    return sum(counts->syncs);
}

uint64_t counts_bytes(const struct counts *counts)
{
    return sum(counts->bytes);
}

/* ---- The counter ------------------------------------------------------------ */

static void find_counter(char path[2 * PATH_MAX])
{
    char self[PATH_MAX] = "";

    if (readlink(program, self, sizeof self - 1) <= 0) {
        die("%s: %s", program, strerror(errno));
    }
    *strrchr(self, '/') = '\0';
    snprintf(path, 2 * PATH_MAX, "%s/../lib/libstele_sync_counter.so", self);
}

bool counted_is_possible(void)
{
    char path[2 * PATH_MAX];

    find_counter(path);
    /* LD_PRELOAD takes those for the end of a name. */
    return strpbrk(path, " :") == NULL && access(path, R_OK) == 0;
}

void counted_mark(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/stele-mark/%s", name);
    if (access(path, F_OK) != 0) {
        die("the counter is not loaded");
    }
}

/* ---- Its lines -------------------------------------------------------------- */

static uint64_t number_in(const json_t *object, const char *name)
{
    const json_t *number = json_object_get(object, name);

    if (!json_is_integer(number)) {
        die("the counter says nothing of %s", name);
    }
    return (uint64_t)json_integer_value(number);
}

static enum counted_class class_named(const char *name)
{
    static const char *const names[COUNTED_CLASSES] = {
        "log", "log_prepare", "anchor", "index", "directory", "other",
    };

    for (size_t file = 0; file < COUNTED_CLASSES; file++) {
        if (strcmp(names[file], name) == 0) {
            return (enum counted_class)file;
        }
    }
    die("the counter tells of an unknown class, %s", name);
}

/* Every member that is an object is a class of files. */
static struct counts counts_in(json_t *line)
{
    struct counts counts = {{0}, {0}};
    const char *name;
    json_t *value;

    json_object_foreach(line, name, value)
    {
        if (json_is_object(value) && strcmp(name, "stream") != 0) {
            const enum counted_class file = class_named(name);

            counts.syncs[file] = number_in(value, "syncs");
            counts.bytes[file] = number_in(value, "bytes");
        }
    }
    return counts;
}

static void add_mark(struct counted *counted, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    const char *name = json_string_value(json_object_get(line, "mark"));
    struct counted_mark *mark;

    if (name == NULL) {
        die("not a line of the counter: %s", text);
    }
    counted->marks = must_have(realloc(
        counted->marks, (counted->count + 1) * sizeof counted->marks[0]));
    mark = &counted->marks[counted->count++];
    snprintf(mark->name, sizeof mark->name, "%s", name);
    mark->counts = counts_in(line);
    json_decref(line);
}

static void read_marks(const char *path, struct counted *counted)
{
    FILE *file = fopen(path, "r");
    char line[LINE_BYTES];

    if (file == NULL) {
        die("%s: %s", path, strerror(errno));
    }
    while (fgets(line, sizeof line, file) != NULL) {
        add_mark(counted, line);
    }
    fclose(file);
}

const struct counts *counted_at(const struct counted *counted, const char *name)
{
    for (size_t i = 0; i < counted->count; i++) {
        if (strcmp(counted->marks[i].name, name) == 0) {
            return &counted->marks[i].counts;
        }
    }
    die("the job made no mark %s", name);
}

void counted_free(struct counted *counted)
{
    free(counted->marks);
    *counted = (struct counted){0};
}

/* ---- The job ---------------------------------------------------------------- */

/* The environment has the counter and nothing else: none of its threads reads
 * it while we would change our own. */
static pid_t start(const char *const *arguments, const char *report)
{
    char counter[2 * PATH_MAX];
    char preload[2 * PATH_MAX + 16];
    char count_to[PATH_MAX + 32];
    char *const environment[] = {preload, count_to, NULL};
    char *argv[ARGUMENTS_MAX + 2] = {(char *)(uintptr_t) "stele-bench"};
    pid_t child;
    int result;

    find_counter(counter);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", counter);
    snprintf(count_to, sizeof count_to, "STELE_SYNC_COUNT=%s", report);
    for (size_t i = 0; arguments[i] != NULL; i++) {
        if (i == ARGUMENTS_MAX) {
            die("more than %d arguments", ARGUMENTS_MAX);
        }
        argv[i + 1] = (char *)(uintptr_t)arguments[i];
    }
    result = posix_spawn(&child, program, NULL, NULL, argv, environment);
    if (result != 0) {
        die("%s: %s", program, strerror(result));
    }
    return child;
}

void counted_run(const char *const *arguments, const char *directory,
                 struct counted *counted_out)
{
    char report[PATH_MAX];
    pid_t child;
    int status = 0;

    snprintf(report, sizeof report, "%s/counts.jsonl", directory);
    child = start(arguments, report);
    while (waitpid(child, &status, 0) != child) {
        if (errno != EINTR) {
            die("waitpid: %s", strerror(errno));
        }
    }
    if (status != 0) {
        die("a counted job failed");
    }
    *counted_out = (struct counted){0};
    read_marks(report, counted_out);
    if (unlink(report) != 0) {
        die("%s: %s", report, strerror(errno));
    }
}
