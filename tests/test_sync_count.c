/*
 * tests/test_sync_count.c -- one batch, one record, one sync: counted from
 * outside, by the preloaded tests/preload/sync_counter.c.
 *
 * ctest runs it with the counter loaded. By hand:
 *
 *     LD_PRELOAD=lib/libstele_sync_counter.so STELE_SYNC_COUNT=counts \
 *         bin/test_sync_count
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/stele.h"
#include "tests/lib/temp_dir.h"

enum {
    KEY_BYTES = 40,
    VALUE_BYTES = 8,
    OPS_MOST = 1000000,
    PREFIX_RECORD_BYTES_MAX = 199, /* "under 200" */
    LINE_BYTES = 8192,
};

static const uint64_t batch_sizes[] = {1, 50, 10000, OPS_MOST};
enum { BATCH_SIZES = sizeof batch_sizes / sizeof batch_sizes[0] };

static const uint64_t MIB = 1024 * 1024;

/* ---- Vocabulary: what was counted ------------------------------------------- */

struct counts {
    uint64_t log;
    uint64_t log_prepare;
    uint64_t anchor;
    uint64_t index;
    uint64_t directory;
    uint64_t other;
};

static uint64_t syncs_in(const char *line, const char *class)
{
    char label[64];
    const char *found;
    uint64_t syncs;

    snprintf(label, sizeof label, "\"%s\":{\"syncs\":", class);
    found = strstr(line, label);
    assert_non_null(found);
    assert_int_equal(sscanf(found + strlen(label), "%" SCNu64, &syncs), 1);
    return syncs;
}

/* All syncs of this process so far. */
static struct counts counted(void)
{
    char line[LINE_BYTES] = "";
    struct counts counts;
    FILE *file;

    /* The counter answers this call, and no file system does. */
    assert_int_equal(access("/stele-mark/here", F_OK), 0);
    file = fopen(getenv("STELE_SYNC_COUNT"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
    }
    fclose(file);
    counts = (struct counts){
        .log = syncs_in(line, "log"),
        .log_prepare = syncs_in(line, "log_prepare"),
        .anchor = syncs_in(line, "anchor"),
        .index = syncs_in(line, "index"),
        .directory = syncs_in(line, "directory"),
        .other = syncs_in(line, "other"),
    };
    return counts;
}

static void print_since(const char *what, const struct counts *before)
{
    const struct counts now = counted();

    printf("  %-34s log %" PRIu64 "; prepared segment %" PRIu64
           ", anchor %" PRIu64 ", index %" PRIu64 ", directory %" PRIu64
           ", other %" PRIu64 "\n",
           what, now.log - before->log, now.log_prepare - before->log_prepare,
           now.anchor - before->anchor, now.index - before->index,
           now.directory - before->directory, now.other - before->other);
}

/* ---- Vocabulary: a store ------------------------------------------------------ */

static struct stele *open_store(const char *path, uint64_t segment_bytes)
{
    struct stele_options options;
    struct stele_error error = {0};
    struct stele *store;

    stele_options_init(&options);
    options.mode = STELE_OPEN_CREATE;
    options.segment_bytes = segment_bytes;
    options.relaxed_sync_ms = 3600 * 1000; /* Not while we count. */
    if (stele_open(path, &options, &store, &error) != STELE_OK) {
        fail_msg("%s", error.message);
    }
    return store;
}

static void close_store(struct stele *store)
{
    struct stele_error error = {0};

    if (stele_close(store, &error) != STELE_OK) {
        fail_msg("%s", error.message);
    }
}

static struct stele_batch *make_batch(void)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, NULL), STELE_OK);
    return batch;
}

static void make_key(char key[KEY_BYTES + 1], uint64_t number)
{
    snprintf(key, KEY_BYTES + 1, "key/%036" PRIu64, number);
}

static void add_puts(struct stele_batch *batch, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char key[KEY_BYTES + 1];

        make_key(key, i);
        assert_int_equal(stele_batch_put(batch, "t", key, KEY_BYTES, "12345678",
                                         VALUE_BYTES, NULL),
                         STELE_OK);
    }
}

static void add_deletes(struct stele_batch *batch, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char key[KEY_BYTES + 1];

        make_key(key, i);
        assert_int_equal(stele_batch_delete(batch, "t", key, KEY_BYTES, NULL),
                         STELE_OK);
    }
}

static uint64_t commit(struct stele *store, struct stele_batch *batch,
                       enum stele_durability durability)
{
    struct stele_commit_result result = {0};
    struct stele_error error = {0};

    if (stele_commit(store, batch, durability, &result, &error) != STELE_OK) {
        fail_msg("%s", error.message);
    }
    return result.lsn;
}

static uint64_t key_count(struct stele *store)
{
    struct stele_view *view;
    uint64_t count;

    assert_int_equal(stele_view_open(store, &view, NULL), STELE_OK);
    assert_int_equal(stele_table_count(view, "t", &count, NULL), STELE_OK);
    stele_view_close(view);
    return count;
}

static uint64_t rotations(struct stele *store)
{
    struct stele_stats stats = {.size = sizeof stats};

    assert_int_equal(stele_stats(store, &stats, NULL), STELE_OK);
    return stats.rotations;
}

/* ---- Vocabulary: `stele log` --------------------------------------------------- */

struct expected_record {
    uint64_t lsn;
    uint64_t ops;
    uint64_t bytes_max;
};

struct expected_log {
    struct expected_record records[2 * BATCH_SIZES + 2];
    size_t count;
};

static uint64_t number_in(const char *line, const char *name)
{
    char label[32];
    const char *found;
    uint64_t number;

    snprintf(label, sizeof label, "\"%s\":", name);
    found = strstr(line, label);
    assert_non_null(found);
    assert_int_equal(sscanf(found + strlen(label), "%" SCNu64, &number), 1);
    return number;
}

/* `stele log --json` of the program beside this one shows exactly these. */
static void assert_log_shows(const char *path, const struct expected_log *log)
{
    char program[4096] = "";
    char command[8192];
    char line[LINE_BYTES];
    size_t count = 0;
    FILE *pipe;

    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    *strrchr(program, '/') = '\0';
    snprintf(command, sizeof command, "'%s/stele' log '%s' --json", program,
             path);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe) != NULL) {
        const struct expected_record *expected = &log->records[count];

        assert_true(count < log->count);
        assert_int_equal(number_in(line, "lsn"), expected->lsn);
        assert_int_equal(number_in(line, "ops"), expected->ops);
        assert_true(number_in(line, "bytes") <= expected->bytes_max);
        printf("  %s", line);
        count++;
    }
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(count, log->count);
}

/* ---- Tests --------------------------------------------------------------------- */

/* Commit it, count, and expect its record in the log. */
static void commit_counted(struct stele *store, struct stele_batch *batch,
                           const char *what, uint64_t ops, uint64_t bytes_max,
                           struct expected_log *log)
{
    const struct counts before = counted();
    const uint64_t lsn = commit(store, batch, STELE_DURABLE);
    const struct counts after = counted();
    char text[64];

    snprintf(text, sizeof text, "%s, %" PRIu64 " ops:", what, ops);
    print_since(text, &before);
    assert_int_equal(after.log - before.log, 1);
    log->records[log->count++] = (struct expected_record){lsn, ops, bytes_max};
    stele_batch_destroy(batch);
}

static void a_durable_batch_of_any_size_is_one_record_and_one_sync(void **state)
{
    struct expected_log log = {.count = 0};
    char *path = temp_dir_make();
    struct counts before = counted();
    struct stele *store = open_store(path, 128 * MIB);
    struct stele_batch *batch;

    (void)state;
    print_since("open of a new store:", &before);
    for (size_t i = 0; i < BATCH_SIZES; i++) {
        batch = make_batch();
        add_puts(batch, batch_sizes[i]);
        commit_counted(store, batch, "puts", batch_sizes[i], UINT64_MAX, &log);
        assert_int_equal(key_count(store), batch_sizes[i]);
    }
    for (size_t i = 0; i < BATCH_SIZES; i++) {
        batch = make_batch();
        add_deletes(batch, batch_sizes[i]);
        commit_counted(store, batch, "deletes", batch_sizes[i], UINT64_MAX,
                       &log);
        assert_int_equal(key_count(store), OPS_MOST - batch_sizes[i]);
    }

    batch = make_batch();
    add_puts(batch, OPS_MOST);
    commit_counted(store, batch, "puts again", OPS_MOST, UINT64_MAX, &log);
    assert_int_equal(key_count(store), OPS_MOST);
    batch = make_batch();
    assert_int_equal(stele_batch_delete_prefix(batch, "t", "key/", 4, NULL),
                     STELE_OK);
    commit_counted(store, batch, "prefix of 1,000,000 keys", 1,
                   PREFIX_RECORD_BYTES_MAX, &log);
    assert_int_equal(key_count(store), 0);

    before = counted();
    close_store(store);
    print_since("close, with its checkpoint:", &before);
    assert_log_shows(path, &log);
    temp_dir_remove(path);
}

/* The predecessor of a segment is synced before the first write to the new one
 * if something in it is not durable yet; after durable commits nothing is. */
static void a_rotation_adds_no_sync_to_durable_commits(void **state)
{
    char *path = temp_dir_make();
    struct stele *store = open_store(path, MIB);
    struct stele_batch *batch = make_batch();
    struct counts before;
    uint64_t commits = 0;

    (void)state;
    add_puts(batch, 5000);
    before = counted();
    while (rotations(store) < 10) {
        commit(store, batch, STELE_DURABLE);
        commits++;
        assert_int_equal(counted().log - before.log, commits);
    }
    print_since("10 rotations, durable commits:", &before);
    stele_batch_destroy(batch);
    close_store(store);
    temp_dir_remove(path);
}

static void a_rotation_syncs_pending_relaxed_commits_once(void **state)
{
    char *path = temp_dir_make();
    struct stele *store = open_store(path, MIB);
    struct stele_batch *batch = make_batch();
    struct counts before;

    (void)state;
    add_puts(batch, 5000);
    before = counted();
    for (;;) {
        commit(store, batch, STELE_RELAXED);
        if (rotations(store) > 0) {
            break;
        }
        assert_int_equal(counted().log - before.log, 0);
    }
    assert_int_equal(counted().log - before.log, 1);
    print_since("a rotation, relaxed commits:", &before);
    before = counted();
    assert_int_equal(stele_sync(store, NULL), STELE_OK);
    assert_int_equal(counted().log - before.log, 1);
    stele_batch_destroy(batch);
    close_store(store);
    temp_dir_remove(path);
}

static void relaxed_commits_before_a_durable_one_share_its_sync(void **state)
{
    char *path = temp_dir_make();
    struct stele *store = open_store(path, 2 * MIB);
    struct stele_batch *batch = make_batch();
    struct counts before;

    (void)state;
    add_puts(batch, 1);
    before = counted();
    for (int i = 0; i < 100; i++) {
        commit(store, batch, STELE_RELAXED);
    }
    assert_int_equal(counted().log - before.log, 0);
    commit(store, batch, STELE_DURABLE);
    assert_int_equal(counted().log - before.log, 1);
    print_since("100 relaxed commits, 1 durable:", &before);
    stele_batch_destroy(batch);
    close_store(store);
    temp_dir_remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_durable_batch_of_any_size_is_one_record_and_one_sync),
        cmocka_unit_test(a_rotation_adds_no_sync_to_durable_commits),
        cmocka_unit_test(a_rotation_syncs_pending_relaxed_commits_once),
        cmocka_unit_test(relaxed_commits_before_a_durable_one_share_its_sync),
    };
    const char *counts = getenv("STELE_SYNC_COUNT");

    if (counts == NULL || access("/stele-mark/start", F_OK) != 0) {
        fprintf(stderr, "test_sync_count: the sync counter is not preloaded; "
                        "see the head of the source\n");
        return 1;
    }
    (void)unlink(counts);
    (void)unsetenv("LD_PRELOAD"); /* Not for the `stele log` we start. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
