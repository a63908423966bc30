/*
 * tests/test_failures_limits.c -- what became of other systems when the disk was
 * full, or a reader died.
 *
 * Each test stands for a line of public reports, which its comment names. A disk
 * that is full refuses whatever needs blocks (tests/lib/io_fault.h); what is
 * prepared can be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/letters.h"
#include "tests/lib/run.h"
#include "tests/lib/store_dir.h"

enum {
    PAGE = 4096,
    MORE_THAN_IS_LEFT = 54 << 10, /* In a segment with a unit in it. */
    SMALL_MAP_BYTES = 1 << 20,
    VALUE_BYTES = 4000,
    PUTS_MAX = 2000,
};

#define NO_SPACE "No space left on device (errno 28)"

/* ---- A small vocabulary ------------------------------------------------------- */

static struct store_dir dir;

static int setup(void **state)
{
    (void)state;
    letters_make(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

static void fill_disk(enum io_fault_call call, const char *suffix,
                      int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .suffix = suffix,
                                   .times = IO_FAULT_FOREVER,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

static void disk_is_full(void)
{
    fill_disk(IO_FAULT_FULL, NULL, ENOSPC);
}

static void disk_has_room(void)
{
    io_fault_arm(NULL);
}

static enum stele_status try_delete(const char *key)
{
    return stele_delete(dir.store, "t", key, strlen(key), NULL, &dir.error);
}

/* ---- The log has no room -------------------------------------------------------- */

/* Whom the full disk meets, and what the commit says of it. */
static const struct {
    enum io_fault_call call;
    const char *suffix;
    uint64_t bytes; /* Of the value to be put. */
    const char *message;
} refusals[] = {
    {IO_FAULT_WRITE, ".wal", 10,
     "append unit 3: " SEGMENT_1 ": offset 12288: write 4096 bytes"},
    {IO_FAULT_FULL, NULL, MORE_THAN_IS_LEFT,
     "prepare segment: wal/0000000000000002.tmp: open"},
    {IO_FAULT_CREATE, ".tmp", MORE_THAN_IS_LEFT,
     "prepare segment: wal/0000000000000002.tmp: open"},
    {IO_FAULT_ALLOCATE, ".tmp", MORE_THAN_IS_LEFT,
     "prepare segment: wal/0000000000000002.tmp: allocate 65536 bytes"},
    {IO_FAULT_WRITE, ".tmp", MORE_THAN_IS_LEFT,
     "prepare segment: wal/0000000000000002.tmp: offset 0: write 65536 bytes"},
    {IO_FAULT_RENAME, ".wal", MORE_THAN_IS_LEFT,
     "prepare segment: 0000000000000002.tmp: rename to 0000000000000002.wal"},
};

/* rocketmq: a full disk left a file of 0 bytes, and the next persist renamed it
 * over the good backup. */
static void on_a_full_disk_a_commit_is_refused_and_the_store_goes_on(
    void **state)
{
    static const int errnos[] = {ENOSPC, EDQUOT};

    (void)state;
    for (size_t index = 0; index < 2 * sizeof refusals / sizeof *refusals;
         index++) {
        const size_t refusal = index / 2;
        const int number = errnos[index % 2];
        uint64_t digest;

        letters_make_anew(&dir);
        letters_begin(&dir);
        digest = files_tree_digest(dir.path, "lock.mdb");
        fill_disk(refusals[refusal].call, refusals[refusal].suffix, number);
        for (int again = 0; again < 3; again++) {
            assert_int_equal(
                store_dir_try_put_bytes(&dir, "c", refusals[refusal].bytes),
                STELE_NO_SPACE);
            store_dir_assert_error(&dir, "%s: %s (errno %d)",
                                   refusals[refusal].message, strerror(number),
                                   number);
            letters_assert(&dir, 2);
            assert_true(files_tree_digest(dir.path, "lock.mdb") == digest);
        }
        assert_false(store_dir_stats(&dir).poisoned);
        assert_int_equal(store_dir_stats(&dir).lsn_visible, 2);
        disk_has_room(); /* And that is all it takes. */
        assert_int_equal(
            store_dir_try_put_bytes(&dir, "big", refusals[refusal].bytes),
            STELE_OK);
        letters_put(&dir, 'c');
        assert_int_equal(store_dir_stats(&dir).lsn_visible, 4);
        store_dir_kill(&dir);
        store_dir_open(&dir);
        letters_assert(&dir, 3);
        assert_int_equal(store_dir_try_get(&dir, "big"), STELE_OK);
        store_dir_assert_verifies(&dir);
    }
}

/* The new segment is there, but ANCHOR cannot be told: nothing is written into
 * it (only where every write allocates). */
static void a_segment_that_cannot_be_named_is_not_used(void **state)
{
    (void)state;
    letters_begin(&dir);
    fill_disk(IO_FAULT_WRITE, "ANCHOR", ENOSPC);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(
            store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
            STELE_NO_SPACE);
        store_dir_assert_error(
            &dir, "anchor: %s/ANCHOR: offset %d: write 4096 bytes: " NO_SPACE,
            store_dir_name(&dir), strstr(dir.error.message, "t 0") ? 0 : PAGE);
    }
    assert_false(store_dir_stats(&dir).poisoned);
    disk_has_room();
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                     STELE_OK);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    letters_assert(&dir, 2);
    assert_int_equal(store_dir_try_get(&dir, "big"), STELE_OK);
}

/* The same with its threads at work. */
static void a_store_with_keepers_goes_on_by_itself(void **state)
{
    (void)state;
    dir.tuning.manual = false;
    store_dir_open(&dir);
    letters_put(&dir, 'a');
    letters_put(&dir, 'b');
    disk_is_full();
    for (int again = 0; again < 20; again++) {
        /* The segment may have been prepared before. */
        const enum stele_status status =
            store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT);

        if (status != STELE_OK) {
            assert_int_equal(status, STELE_NO_SPACE);
        }
        letters_assert(&dir, 2);
    }
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                     STELE_NO_SPACE);
    disk_has_room();
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                     STELE_OK);
    letters_put(&dir, 'c');
    store_dir_close(&dir);
    store_dir_open(&dir);
    letters_assert(&dir, 3);
    store_dir_assert_verifies(&dir);
}

/* ---- Opening and looking --------------------------------------------------------------- */

/* For writing and for reading: all of it can be seen and verified. */
static void assert_opens_on_a_full_disk(unsigned letters, char row)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_READ_ONLY,
                                                 STELE_OPEN_EXISTING};

    disk_is_full();
    for (size_t mode = 0; mode < 2; mode++) {
        if (store_dir_try_open(&dir, modes[mode]) != STELE_OK) {
            fail_msg("%s", dir.error.message);
        }
        assert_int_equal(store_dir_stats(&dir).recovery_row, row);
        letters_assert(&dir, letters);
        store_dir_assert_verifies(&dir);
        store_dir_kill(&dir);
    }
    disk_has_room();
}

/* etcd#3591, #2819, #4744: the repair itself needed space. */
static void opening_and_looking_need_no_space(void **state)
{
    (void)state;
    letters_leave_in_flight(&dir, "bc");
    assert_opens_on_a_full_disk(3, 'A');
    letters_restore(&dir);
    files_fill_at(at(SEGMENT_1), LETTERS_UNIT_3, 0, PAGE / 2);
    assert_opens_on_a_full_disk(2, 'C');
    files_flip_bit(at("ANCHOR"), 100, 0); /* A slot that is healed in place. */
    assert_opens_on_a_full_disk(2, 'C');
    files_write(at(SEGMENT_2), "", 0); /* What the full disk left. */
    files_write(at("wal/0000000000000002.tmp"), "", 0);
    assert_opens_on_a_full_disk(2, 'C');
    store_dir_open(&dir);
    store_dir_close(&dir);
    assert_opens_on_a_full_disk(2, 'C');
    fill_disk(IO_FAULT_WRITE, "LOCK", ENOSPC); /* Its text is only text. */
    store_dir_open(&dir);
    assert_int_equal(io_fault_count(), 1);
}

/* Behind a torn tail the next commit needs a segment: it says so, and waits for
 * nothing else. */
static void a_torn_tail_on_a_full_disk_can_be_read(void **state)
{
    (void)state;
    letters_leave_in_flight(&dir, "b");
    files_fill_at(at(SEGMENT_1), LETTERS_UNIT_2, 0, PAGE / 2);
    disk_is_full();
    store_dir_open(&dir);
    letters_assert(&dir, 1);
    assert_int_equal(store_dir_try_put(&dir, "b", "v"), STELE_NO_SPACE);
    store_dir_assert_error(
        &dir, "prepare segment: wal/0000000000000002.tmp: open: " NO_SPACE);
    letters_assert(&dir, 1);
    disk_has_room();
    letters_put(&dir, 'b');
    store_dir_kill(&dir);
    store_dir_open(&dir);
    letters_assert(&dir, 2);
}

/* Building an index takes space, and says so; looking at the store does not. */
static void a_store_without_its_index_can_be_read_on_a_full_disk(void **state)
{
    (void)state;
    letters_begin(&dir);
    store_dir_kill(&dir);
    files_remove(at("index/data.mdb"));
    files_remove(at("index/lock.mdb"));
    assert_int_equal(rmdir(at("index")), 0);
    disk_is_full();
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                     STELE_NO_SPACE);
    store_dir_assert_error(
        &dir,
        "open %s: rebuild the index: index.tmp: make directory: " NO_SPACE,
        dir.path);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    letters_assert(&dir, 2);
    store_dir_assert_verifies(&dir);
    store_dir_close(&dir);
    disk_has_room();
    store_dir_open(&dir);
    letters_assert(&dir, 2);
}

/* lmdbjava#236, users of rocketmq: even deletes failed when it was full. */
static void deletes_work_while_the_log_has_room_for_them(void **state)
{
    struct stele_batch *batch;

    (void)state;
    letters_begin(&dir);
    letters_put(&dir, 'c');
    disk_is_full();
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                     STELE_NO_SPACE);
    assert_int_equal(try_delete("c"), STELE_OK);
    letters_assert(&dir, 2);
    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    assert_int_equal(stele_batch_clear_table(batch, "t", &dir.error), STELE_OK);
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    stele_batch_destroy(batch);
    letters_assert(&dir, 0);
    while (try_delete("a") == STELE_OK) { /* Down to the last page. */
    }
    store_dir_assert_error(
        &dir, "prepare segment: wal/0000000000000002.tmp: open: " NO_SPACE);
    assert_int_equal(store_dir_stats(&dir).units_written,
                     LETTERS_SEGMENT_BYTES / PAGE - 1);
    store_dir_kill(&dir);
    store_dir_open(&dir); /* On the same disk. */
    letters_assert(&dir, 0);
    disk_has_room();
    letters_put(&dir, 'a');
    letters_assert(&dir, 1);
}

/* emqx#16207: it did not start after the disk had been full. */
static void after_a_full_disk_the_store_starts(void **state)
{
    static const char *const leftovers[] = {"wal/0000000000000002.tmp",
                                            SEGMENT_2};

    (void)state;
    letters_begin(&dir);
    disk_is_full();
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                     STELE_NO_SPACE);
    for (size_t index = 0; index < 2; index++) {
        store_dir_kill(&dir);
        /* Killed before it could clean up. */
        files_write(at(leftovers[index]), "", 0);
        for (int again = 0; again < 3; again++) {
            store_dir_open(&dir);
            letters_assert(&dir, 2);
            assert_int_equal(
                store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                STELE_NO_SPACE);
            store_dir_kill(&dir);
        }
        store_dir_open(&dir);
    }
    disk_has_room();
    assert_int_equal(store_dir_try_put_bytes(&dir, "big", MORE_THAN_IS_LEFT),
                     STELE_OK);
    letters_put(&dir, 'c');
    store_dir_close(&dir);
    store_dir_open(&dir);
    letters_assert(&dir, 3);
    assert_int_equal(files_count(at("wal"), ""), 2);
    store_dir_assert_verifies(&dir);
}

/* The checkpoint at close finds no room: the next open replays, no more. */
static void a_close_on_a_full_disk_loses_nothing(void **state)
{
    struct stele *store;

    (void)state;
    dir.options.skip_close_checkpoint = false;
    letters_begin(&dir);
    fill_disk(IO_FAULT_GROW, NULL, ENOSPC);
    store = dir.store;
    dir.store = NULL;
    assert_int_equal(stele_close(store, &dir.error), STELE_NO_SPACE);
    store_dir_assert_error(
        &dir,
        "close: checkpoint: index/data.mdb: grow to 16785408 bytes: " NO_SPACE);
    store_dir_open(&dir);
    letters_assert(&dir, 2);
    store_dir_assert_verifies(&dir);
}

/* ---- Nothing is cut off ------------------------------------------------------------------ */

/* ZK PR560, braft#461: the snapshot failed on a full disk, but the log was
 * truncated. The log is kept whole from its beginning. */
static void nothing_ever_removes_a_segment(void **state)
{
    (void)state;
    dir.options.skip_close_checkpoint = false;
    for (int round = 0; round < 4; round++) {
        const bool full = round % 2 == 1;

        store_dir_open(&dir);
        fill_disk(IO_FAULT_UNLINK, ".wal", EIO); /* To be noticed. */
        for (int put = 0; put < 4 && !full; put++) {
            assert_int_equal(store_dir_try_put_bytes(&dir, "k", 50 << 10),
                             STELE_OK);
        }
        assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
        assert_int_equal(io_fault_count(), 0);
        if (full) {
            disk_is_full();
            while (store_dir_try_put_bytes(&dir, "k", 4 << 10) == STELE_OK) {
            }
            assert_int_equal(dir.error.status, STELE_NO_SPACE);
            store_dir_kill(&dir);
            store_dir_open(&dir);
        }
        store_dir_close(&dir);
        disk_has_room();
        for (int seq = 1; seq <= 4; seq++) {
            char name[64];

            snprintf(name, sizeof name, "wal/%016x.wal", (unsigned)seq);
            assert_int_equal(files_size(at(name)), LETTERS_SEGMENT_BYTES);
        }
    }
}

/* ---- The index is full --------------------------------------------------------------------------------- */

/* Put until the memtable is full and no checkpoint can empty it. */
static int put_until_full(void)
{
    int count = 0;

    for (;; count++) {
        char key[16];
        enum stele_status status;

        assert_true(count < PUTS_MAX);
        snprintf(key, sizeof key, "k%06d", count);
        status = store_dir_try_put_bytes(&dir, key, VALUE_BYTES);
        if (status != STELE_OK) {
            assert_int_equal(status, STELE_NO_SPACE);
            return count;
        }
    }
}

static void assert_counted_there(int count)
{
    for (int index = 0; index < count; index++) {
        char key[16];

        snprintf(key, sizeof key, "k%06d", index);
        assert_int_equal(store_dir_try_get(&dir, key), STELE_OK);
    }
}

static void a_full_index_stops_commits_and_a_larger_map_goes_on(void **state)
{
    struct stele *store;
    int count;

    (void)state;
    dir.options.skip_close_checkpoint = false;
    dir.options.memtable_bytes = 64 << 10;
    dir.options.index_map_bytes = SMALL_MAP_BYTES;
    store_dir_open(&dir);
    count = put_until_full();
    assert_true(count > 100);
    assert_counted_there(count);
    assert_int_equal(store_dir_try_put(&dir, "one more", "x"), STELE_NO_SPACE);
    store_dir_assert_error(&dir,
                           "checkpoint: index/data.mdb: put: MDB_MAP_FULL: "
                           "Environment mapsize limit reached");
    assert_int_equal(
        stele_delete(dir.store, "t", "k000000", 7, NULL, &dir.error),
        STELE_NO_SPACE);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_NO_SPACE);
    assert_true(store_dir_stats(&dir).checkpoint_failures > 0);
    assert_int_equal(store_dir_stats(&dir).last_checkpoint_error.status,
                     STELE_NO_SPACE);
    assert_false(store_dir_stats(&dir).poisoned);
    assert_counted_there(count);
    store = dir.store;
    dir.store = NULL;
    assert_int_equal(stele_close(store, &dir.error), STELE_NO_SPACE);

    dir.options.index_map_bytes = 64 << 20;
    store_dir_open(&dir);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    assert_counted_there(count);
    assert_int_equal(
        stele_delete(dir.store, "t", "k000000", 7, NULL, &dir.error), STELE_OK);
    store_dir_put(&dir, "one more", "x");
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    store_dir_assert_verifies(&dir);
}

/* The log has what the index has no room for. */
static void a_store_whose_index_is_full_can_still_be_read(void **state)
{
    int count;

    (void)state;
    dir.options.memtable_bytes = 64 << 10;
    dir.options.index_map_bytes = SMALL_MAP_BYTES;
    store_dir_open(&dir);
    count = put_until_full();
    store_dir_kill(&dir);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_counted_there(count);
    store_dir_close(&dir);
    store_dir_open(&dir); /* For writing as well: nothing needs space. */
    assert_counted_there(count);
}

/* ---- Readers that die -------------------------------------------------------------------------------- */

enum { CHILD_VIEWS = 200, OWN_VIEWS = 8 };

/* Take that many slots, or all there are, and say so. */
static int hold_views(const char *store_path, uint64_t wanted)
{
    static struct stele_view *views[CHILD_VIEWS];
    struct message message = {0};
    struct stele_options options;
    struct stele_error error;
    struct stele *store;

    stele_options_init(&options);
    options.mode = STELE_OPEN_READ_ONLY;
    options.views_max = CHILD_VIEWS;
    options.index_map_bytes = 64 << 20;
    run_expect_ok(stele_open(store_path, &options, &store, &error), &error,
                  "open");
    while (message.n < wanted &&
           stele_view_open(store, &views[message.n], &error) == STELE_OK) {
        message.n++;
    }
    parent_send(&message);
    (void)parent_receive(&message); /* Killed meanwhile. */
    return 1;
}

/* Another process with views open; how many it got. */
static struct child start_reader(const char *views, uint64_t *taken_out)
{
    const char *const arguments[] = {"hold", dir.path, views, NULL};
    struct child child = child_start(arguments);
    struct message taken;

    assert_true(child_receive(&child, &taken));
    if (taken_out != NULL) {
        *taken_out = taken.n;
    }
    return child;
}

/* How many of so many views can be opened at once. */
static unsigned count_views(void)
{
    struct stele_view *views[OWN_VIEWS] = {NULL};
    unsigned count = 0;

    while (count < OWN_VIEWS &&
           stele_view_open(dir.store, &views[count], &dir.error) == STELE_OK) {
        count++;
    }
    for (unsigned index = 0; index < count; index++) {
        stele_view_close(views[index]);
    }
    return count;
}

/* frappe/mail#559, lmdb-go#111: the reader slots of dead processes were never
 * given back. Ours are checked at open, and by the base keeper every minute
 * (engine/keepers.c), whose part is played here. */
static void the_slots_of_dead_readers_are_given_back(void **state)
{
    struct child bystander;

    (void)state;
    dir.options.views_max = OWN_VIEWS;
    letters_begin(&dir);
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    /* As long as anybody has the index open, LMDB keeps its table of readers. */
    bystander = start_reader("one", NULL);
    for (int life = 0; life < 4; life++) {
        struct child child;
        uint64_t taken;

        store_dir_kill(&dir);
        store_dir_open(&dir);
        child = start_reader("all", &taken);
        assert_in_range(taken, OWN_VIEWS, CHILD_VIEWS - 1);
        child_kill(&child);
        child_forget(&child);
        assert_in_range(count_views(), 0, OWN_VIEWS - 1);
        assert_int_equal(dir.error.status, STELE_BUSY);
        if (life % 2 == 0) {
            assert_int_equal(index_reader_check(dir.store->index, &dir.error),
                             STELE_OK);
        } else {
            store_dir_kill(&dir);
            store_dir_open(&dir);
        }
        assert_int_equal(count_views(), OWN_VIEWS);
    }
    child_kill(&bystander);
    child_forget(&bystander);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(on_a_full_disk_a_commit_is_refused_and_the_store_goes_on),
        STORE_TEST(a_segment_that_cannot_be_named_is_not_used),
        STORE_TEST(a_store_with_keepers_goes_on_by_itself),
        STORE_TEST(opening_and_looking_need_no_space),
        STORE_TEST(a_torn_tail_on_a_full_disk_can_be_read),
        STORE_TEST(a_store_without_its_index_can_be_read_on_a_full_disk),
        STORE_TEST(deletes_work_while_the_log_has_room_for_them),
        STORE_TEST(after_a_full_disk_the_store_starts),
        STORE_TEST(a_close_on_a_full_disk_loses_nothing),
        STORE_TEST(nothing_ever_removes_a_segment),
        STORE_TEST(a_full_index_stops_commits_and_a_larger_map_goes_on),
        STORE_TEST(a_store_whose_index_is_full_can_still_be_read),
        STORE_TEST(the_slots_of_dead_readers_are_given_back),
    };

    if (argc == 4 && strcmp(argv[1], "hold") == 0) {
        return hold_views(argv[2],
                          strcmp(argv[3], "all") == 0 ? CHILD_VIEWS : 1);
    }
    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("failures: limits", tests, NULL, NULL);
}
