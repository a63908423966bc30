/*
 * tools/demo/broker.c -- what a broker does that keeps its topics in a file.
 *
 * To persist, after each change:
 *     1. write the whole table to topics.json.tmp, and sync it;
 *     2. rename topics.json to topics.json.bak, and sync the directory: from
 *        here to the next step there is no topics.json;
 *     3. rename topics.json.tmp to topics.json, and sync the directory.
 *
 * Making the text of the table costs a broker more than here, where entries are
 * text already and only copied. consumerOffset.json, which it would have to
 * rewrite as well, is left out. Both are in its favour.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/demo/demo.h"

/* A topic: lines first_line to end_line - 1 of the file; name borrowed. */
struct topic {
    const char *name;
    size_t name_bytes;
    size_t first_line;
    size_t end_line;
    bool deleted;
};

struct broker {
    int dir_fd;
    struct text_file file;
    struct topic *topics; /* As they stand in the file. */
    size_t topic_count;
    struct topic **by_name;
    char *text; /* To persist; as large as the file. */
};

/* An entry of the table stands two tabs in: "NAME":{ to }, or }. */
static void find_topics(struct broker *broker)
{
    const struct text_file *file = &broker->file;
    struct topic topic = {0};

    broker->topics =
        must_have(calloc(file->line_count + 1, sizeof broker->topics[0]));
    for (size_t i = 0; i < file->line_count; i++) {
        const char *line = file->lines[i];
        const char *end = strstr(line, "\":{");

        if (strncmp(line, "\t\t\"", 3) == 0 && end != NULL) {
            topic.name = line + 3;
            topic.name_bytes = (size_t)(end - topic.name);
            topic.first_line = i;
        } else if (topic.name != NULL && strncmp(line, "\t\t}", 3) == 0) {
            topic.end_line = i + 1;
            broker->topics[broker->topic_count++] = topic;
            topic.name = NULL;
        }
    }
    if (broker->topic_count == 0) {
        die("topics.json: no topics, as the demo writes them");
    }
}

static int compare_names(const void *left, const void *right)
{
    const struct topic *a = *(struct topic *const *)left;
    const struct topic *b = *(struct topic *const *)right;
    const size_t least =
        a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    const int order = memcmp(a->name, b->name, least);

    return order != 0 ? order
                      : (a->name_bytes > b->name_bytes) -
                            (a->name_bytes < b->name_bytes);
}

static void delete_topic(struct broker *broker, const char *name)
{
    struct topic wanted = {.name = name, .name_bytes = strlen(name)};
    const struct topic *key = &wanted;
    struct topic **found = bsearch(&key, broker->by_name, broker->topic_count,
                                   sizeof broker->by_name[0], compare_names);

    if (found == NULL) {
        die("%s: no such topic", name);
    }
    (*found)->deleted = true;
}

static void load(struct broker *broker, const char *config_dir)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/topics.json", config_dir);
    broker->file = text_file_read(path);
    find_topics(broker);
    broker->by_name =
        must_have(calloc(broker->topic_count, sizeof broker->by_name[0]));
    for (size_t i = 0; i < broker->topic_count; i++) {
        broker->by_name[i] = &broker->topics[i];
    }
    qsort(broker->by_name, broker->topic_count, sizeof broker->by_name[0],
          compare_names);
    broker->text = must_have(malloc(broker->file.bytes + 2));
    memset(broker->text, 0, broker->file.bytes + 2); /* See warm_up(). */
    broker->dir_fd = open(config_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (broker->dir_fd < 0) {
        die("%s: cannot be opened", config_dir);
    }
}

static size_t add_lines(struct broker *broker, size_t bytes, size_t first,
                        size_t end)
{
    for (size_t i = first; i < end; i++) {
        const size_t line_bytes = strlen(broker->file.lines[i]);

        memcpy(broker->text + bytes, broker->file.lines[i], line_bytes);
        broker->text[bytes + line_bytes] = '\n';
        bytes += line_bytes + 1;
    }
    return bytes;
}

/* The whole file, without the deleted topics. Returns its length. */
static size_t make_text(struct broker *broker)
{
    const struct topic *last = &broker->topics[broker->topic_count - 1];
    size_t bytes = add_lines(broker, 0, 0, broker->topics[0].first_line);

    for (size_t i = 0; i < broker->topic_count; i++) {
        if (!broker->topics[i].deleted) {
            bytes = add_lines(broker, bytes, broker->topics[i].first_line,
                              broker->topics[i].end_line);
        }
    }
    return add_lines(broker, bytes, last->end_line, broker->file.line_count);
}

static void write_temporary(const struct broker *broker, size_t bytes)
{
    const int fd = openat(broker->dir_fd, "topics.json.tmp",
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t written = 0;

    if (fd < 0) {
        die("topics.json.tmp: cannot be made");
    }
    while (written < bytes) {
        const ssize_t result =
            write(fd, broker->text + written, bytes - written);

        if (result <= 0) {
            die("topics.json.tmp: cannot be written");
        }
        written += (size_t)result;
    }
    if (fsync(fd) != 0 || close(fd) != 0) {
        die("topics.json.tmp: cannot be synced");
    }
}

static void rename_durably(const struct broker *broker, const char *from,
                           const char *to)
{
    if (renameat(broker->dir_fd, from, broker->dir_fd, to) != 0 ||
        fsync(broker->dir_fd) != 0) {
        die("%s: cannot be renamed to %s", from, to);
    }
}

static void persist(struct broker *broker)
{
    write_temporary(broker, make_text(broker));
    rename_durably(broker, "topics.json", "topics.json.bak");
    rename_durably(broker, "topics.json.tmp", "topics.json");
}

void demo_broker(const char *config_dir, const char *delete_file, size_t count,
                 size_t per_persist)
{
    struct text_file names = text_file_read(delete_file);
    struct broker broker = {0};
    uint64_t begin_ns;

    if (count > names.line_count || per_persist == 0) {
        die("%s: not %zu topics", delete_file, count);
    }
    load(&broker, config_dir);
    begin_ns = mark_begin();
    for (size_t i = 0; i < count; i++) {
        delete_topic(&broker, names.lines[i]);
        if ((i + 1) % per_persist == 0 || i + 1 == count) {
            persist(&broker);
        }
    }
    printf("%llu\n", (unsigned long long)mark_end(begin_ns));
    close(broker.dir_fd);
    free(broker.text);
    free(broker.by_name);
    free(broker.topics);
    text_file_free(&broker.file);
    text_file_free(&names);
}
