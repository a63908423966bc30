/*
 * tools/bench/peers/peer_json_file.c -- what a broker does without a store: the whole
 * table in memory, and after each change all of it written to a file as JSON, synced,
 * renamed over the one before, and the directory synced.
 *
 * A line of the file is an item, and kept in memory as that line. So keys are taken
 * to need no escapes, and values to be JSON in one line, up to their first NUL.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mutex.h"
#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

enum {
    PATH_BYTES = 4096,
    BUFFER_BYTES = 1024 * 1024,
    KEY_OFFSET = 2, /* Behind a tab and a quote. */
};

/* \t"key":value */
struct line {
    size_t key_bytes;
    size_t bytes;
    char text[];
};

struct json_file {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES + 8];
    int directory;
    struct mutex mutex;
    void *lines; /* A tree: tsearch(3). */
    uint64_t count;
    char buffer[BUFFER_BYTES]; /* Of the file that is written. */
};

static void fail(const struct json_file *self)
{
    die("%s: %s", self->path, strerror(errno));
}

/* ---- In memory ---------------------------------------------------------------------- */

static struct line *line_create(const struct peer_item *item)
{
    const size_t value_bytes = strnlen(item->value, item->value_bytes);
    const size_t bytes = KEY_OFFSET + item->key_bytes + 2 + value_bytes;
    struct line *line = must_have(malloc(sizeof *line + bytes));
    char *text = line->text;

    line->key_bytes = item->key_bytes;
    line->bytes = bytes;
    text = mempcpy(text, "\t\"", KEY_OFFSET);
    text = mempcpy(text, item->key, item->key_bytes);
    text = mempcpy(text, "\":", 2);
    memcpy(text, item->value, value_bytes);
    return line;
}

static int compare(const void *left, const void *right)
{
    const struct line *a = left;
    const struct line *b = right;
    const size_t bytes =
        a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    const int order = memcmp(a->text + KEY_OFFSET, b->text + KEY_OFFSET, bytes);

    return order != 0
               ? order
               : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

static void insert(struct json_file *self, struct line *line)
{
    struct line **place = must_have(tsearch(line, &self->lines, compare));

    if (*place == line) {
        self->count++;
    } else {
        free(*place);
        *place = line;
    }
}

static void remove_item(struct json_file *self, const struct peer_item *item)
{
    struct line *key = line_create(&(struct peer_item){
        .key = item->key, .key_bytes = item->key_bytes, .value = ""});
    struct line **place = tfind(key, &self->lines, compare);

    if (place != NULL) {
        struct line *found = *place;

        tdelete(key, &self->lines, compare);
        free(found);
        self->count--;
    }
    free(key);
}

/* ---- The file ------------------------------------------------------------------------- */

struct writing {
    FILE *file;
    bool first;
};

static void write_line(const void *node, VISIT visit, void *context)
{
    const struct line *line = *(struct line *const *)node;
    struct writing *writing = context;

    if (visit != postorder && visit != leaf) { /* In order. */
        return;
    }
    if (!writing->first) {
        fwrite(",\n", 1, 2, writing->file);
    }
    writing->first = false;
    fwrite(line->text, 1, line->bytes, writing->file);
}

static void persist(struct json_file *self)
{
    FILE *file = fopen(self->temporary, "w");
    struct writing writing = {.file = file, .first = true};

    if (file == NULL) {
        fail(self);
    }
    setvbuf(file, self->buffer, _IOFBF, sizeof self->buffer);
    fputs("{\n", file);
    twalk_r(self->lines, write_line, &writing);
    fputs("\n}\n", file);
    if (fflush(file) != 0 || ferror(file) || fsync(fileno(file)) != 0 ||
        fclose(file) != 0 || rename(self->temporary, self->path) != 0 ||
        fsync(self->directory) != 0) {
        fail(self);
    }
}

static void load_line(struct json_file *self, const char *text, size_t bytes)
{
    const char *key = text + KEY_OFFSET;
    const char *key_end;
    struct peer_item item;

    if (text[0] != '\t' || (key_end = strstr(key, "\":")) == NULL) {
        return; /* A brace. */
    }
    bytes -= text[bytes - 1] == '\n' ? 1 : 0;
    bytes -= text[bytes - 1] == ',' ? 1 : 0;
    item =
        (struct peer_item){.key = key,
                           .key_bytes = (size_t)(key_end - key),
                           .value = key_end + 2,
                           .value_bytes = (size_t)(text + bytes - key_end - 2)};
    insert(self, line_create(&item));
}

static void load(struct json_file *self)
{
    FILE *file = fopen(self->path, "r");
    char *text = NULL;
    size_t capacity = 0;
    ssize_t bytes;

    if (file == NULL && errno == ENOENT) {
        return;
    }
    if (file == NULL) {
        fail(self);
    }
    while ((bytes = getline(&text, &capacity, file)) > 0) {
        load_line(self, text, (size_t)bytes);
    }
    free(text);
    fclose(file);
}

/* ---- The peer -------------------------------------------------------------------------- */

static void *json_file_open(const char *directory)
{
    struct json_file *self = must_have(calloc(1, sizeof *self));

    snprintf(self->path, sizeof self->path, "%s/items.json", directory);
    snprintf(self->temporary, sizeof self->temporary, "%s.tmp", self->path);
    self->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->directory < 0) {
        fail(self);
    }
    mutex_init(&self->mutex);
    load(self);
    return self;
}

static void json_file_close(void *db)
{
    struct json_file *self = db;

    tdestroy(self->lines, free);
    mutex_deinit(&self->mutex);
    close(self->directory);
    free(self);
}

static void json_file_put(void *db, void *thread, const struct peer_item *items,
                          size_t count)
{
    struct json_file *self = db;

    (void)thread;
    mutex_lock(&self->mutex);
    for (size_t i = 0; i < count; i++) {
        insert(self, line_create(&items[i]));
    }
    persist(self);
    mutex_unlock(&self->mutex);
}

static void json_file_delete(void *db, void *thread,
                             const struct peer_item *items, size_t count)
{
    struct json_file *self = db;

    (void)thread;
    mutex_lock(&self->mutex);
    for (size_t i = 0; i < count; i++) {
        remove_item(self, &items[i]);
    }
    persist(self);
    mutex_unlock(&self->mutex);
}

static uint64_t json_file_count(void *db, void *thread)
{
    struct json_file *self = db;
    uint64_t count;

    (void)thread;
    mutex_lock(&self->mutex);
    count = self->count;
    mutex_unlock(&self->mutex);
    return count;
}

const struct peer peer_json_file = {
    .name = "json_file",
    .rewrites_all = true,
    .open = json_file_open,
    .close = json_file_close,
    .put = json_file_put,
    .delete = json_file_delete,
    .count = json_file_count,
};
