/*
 * tests/test_failures_access.c -- what may be taken for a store, by whom, and
 * what opening one may do: absence, names, locks, leaks, and no exit.
 *
 * Each test stands for a line of public reports, which its comment names. (The
 * log: tests/test_failures_opening.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/child.h"
#include "tests/lib/files.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/letters.h"
#include "tests/lib/random.h"
#include "tests/lib/reseal.h"
#include "tests/lib/run.h"
#include "tests/lib/store_dir.h"

enum {
    PAGE = 4096,
    CALLS_MAX = 400,         /* More than any one open makes. */
    FUZZED_OPENS = 2000,     /* Of the files that the engine reads itself. */
    FUZZED_OPENS_EACH = 100, /* Of one store. */
    FUZZED_INDEXES = 120,
};

/* ---- A small vocabulary ------------------------------------------------------- */

static struct store_dir dir;
static struct random_source random_numbers;

static int setup(void **state)
{
    (void)state;
    letters_make(&dir);
    random_numbers = (struct random_source){.state = 1};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_dir_remove(&dir);
    return 0;
}

static void start_anew(void)
{
    teardown(NULL);
    setup(NULL);
}

static const char *at(const char *name)
{
    return store_dir_at(&dir, name);
}

/* "a" in the index, "b" acknowledged in the log, "c" in flight. Killed. */
static void leave_a_store(void)
{
    store_dir_open(&dir);
    letters_put(&dir, 'a');
    assert_int_equal(stele_checkpoint(dir.store, &dir.error), STELE_OK);
    letters_put(&dir, 'b');
    letters_put_relaxed(&dir, 'c');
    store_dir_kill(&dir);
}

static void assert_all_there(void)
{
    letters_assert(&dir, 3);
    assert_false(store_dir_stats(&dir).index_rebuilt);
    store_dir_assert_verifies(&dir);
}

static size_t open_descriptors(void)
{
    return files_count("/proc/self/fd", "");
}

static void break_call(enum io_fault_call call, const char *suffix,
                       uint64_t after_calls, int sys_errno)
{
    const struct io_fault fault = {.call = call,
                                   .suffix = suffix,
                                   .after_calls = after_calls,
                                   .times = 1,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
}

/* ---- Empty or missing ------------------------------------------------------------ */

/* ZK PR1069, PR117, rocketmq load(): the state was gone, the logs were there, and
 * the store came up empty. */
static void logs_without_their_anchor_are_no_new_store(void **state)
{
    (void)state;
    leave_a_store();
    files_remove(at("ANCHOR"));
    for (int again = 0; again < 2; again++) {
        store_dir_assert_refused(&dir, STELE_CORRUPT,
                                 "row E: ANCHOR is missing, but " SEGMENT_1
                                 " is in use");
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_CREATE_NEW),
                         STELE_CORRUPT);
        /* Nor without its index, or beside a copy. */
        files_write(at("ANCHOR.tmp"), "copy", 4);
    }
}

static void an_anchor_without_its_log_is_no_new_store(void **state)
{
    char aside[FILES_PATH_BYTES];

    (void)state;
    leave_a_store();
    store_dir_path(&dir, "aside", aside);
    files_rename(at("wal"), aside);
    store_dir_assert_refused(&dir, STELE_CORRUPT, "row E: wal/ is missing");
    assert_int_equal(mkdir(at("wal"), 0700), 0);
    store_dir_assert_refused(
        &dir, STELE_CORRUPT,
        "recover: row E: wal: no segment from 0000000000000001 on");
    assert_int_equal(rmdir(at("wal")), 0);
    files_rename(aside, at("wal"));
    store_dir_open(&dir);
    assert_all_there();
}

static void without_its_index_a_store_is_not_empty(void **state)
{
    (void)state;
    leave_a_store();
    files_remove(at("index/data.mdb"));
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    letters_assert(&dir, 3);
    store_dir_kill(&dir);
    store_dir_open(&dir);
    letters_assert(&dir, 3);
    assert_true(store_dir_stats(&dir).index_rebuilt);
}

static void an_empty_or_missing_store_is_new_only_when_asked(void **state)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_EXISTING,
                                                 STELE_OPEN_READ_ONLY};

    (void)state;
    for (int missing = 0; missing < 2; missing++) {
        for (size_t mode = 0; mode < 2; mode++) {
            assert_int_equal(store_dir_try_open(&dir, modes[mode]),
                             STELE_NOT_FOUND);
            if (missing == 0) {
                store_dir_assert_error(
                    &dir, "open %s: there is no store in the directory",
                    dir.path);
                assert_int_equal(files_count(dir.path, ""), 0);
            } else {
                store_dir_assert_error(&dir,
                                       "open %s: %s: open directory: No such "
                                       "file or directory (errno 2)",
                                       dir.path, dir.path);
                assert_false(files_exists(dir.path));
            }
        }
        assert_int_equal(rmdir(dir.path), missing == 0 ? 0 : -1);
    }
    store_dir_open(&dir);
    letters_assert(&dir, 0);
}

/* ---- Names -------------------------------------------------------------------------- */

/* nats PR6684, #8101, redpanda#24815: temporaries and look-alike names were taken
 * for data, and leftovers piled up. */
static void only_exact_names_are_taken_for_data(void **state)
{
    static const char *const foreign[] = {
        "wal/0000000000000002.wal.bak",
        "wal/0000000000000002.wal~",
        "wal/.0000000000000002.wal",
        "wal/2.wal",
        "wal/000000000000000A.wal",
        "wal/0000000000000002.WAL",
        "wal/00000000000000002.wal",
        "wal/0000000000000002",
        "wal/0000000000000000.wal", /* Below the oldest. */
        "wal/0000000000000002.tmpx",
        "ANCHOR~",
        "ANCHOR.bak",
        "anchor",
        "index.bak",
        "snapshot/0000000000000001.snap~",
        "snapshot/1.snap",
        "snapshot/0000000000000001.SNAP"};
    static const char *const own[] = {"wal/0000000000000007.tmp",
                                      "wal/0000000000000001.tmp",
                                      "snapshot/0000000000000001.tmp"};
    size_t bytes;
    uint8_t *segment;

    (void)state;
    leave_a_store();
    segment = files_read(at(SEGMENT_1), &bytes);
    for (size_t index = 0; index < sizeof foreign / sizeof *foreign; index++) {
        files_write(at(foreign[index]), segment, bytes);
    }
    for (size_t index = 0; index < sizeof own / sizeof *own; index++) {
        files_write(at(own[index]), segment, bytes);
    }
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY), STELE_OK);
    assert_all_there();
    store_dir_close(&dir);
    assert_int_equal(files_count(at("wal"), ".tmp"), 2);
    for (int again = 0; again < 2; again++) {
        store_dir_open(&dir);
        assert_all_there();
        for (char segments = '1'; segments < '4'; segments++) { /* Rotate. */
            assert_int_equal(store_dir_try_put_bytes(
                                 &dir, (char[]){segments, '\0'}, 50 << 10),
                             STELE_OK);
        }
        store_dir_close(&dir);
        assert_int_equal(files_count(at("wal"), ".tmp"), 0);
        assert_int_equal(files_count(at("snapshot"), ".tmp"), 0);
    }
    for (size_t index = 0; index < sizeof foreign / sizeof *foreign; index++) {
        size_t found_bytes;
        uint8_t *found = files_read(at(foreign[index]), &found_bytes);

        assert_int_equal(found_bytes, bytes); /* Nobody else's is touched. */
        assert_memory_equal(found, segment, bytes);
        free(found);
    }
    free(segment);
}

/* The index is built anew, and something fails each time, wherever it may be. */
static void leftovers_of_a_rebuild_do_not_pile_up(void **state)
{
    bool failed = true;

    (void)state;
    leave_a_store();
    files_remove(at("index/data.mdb"));
    files_remove(at("index/lock.mdb"));
    assert_int_equal(rmdir(at("index")), 0);
    break_call(IO_FAULT_RENAME, "index", 0, EIO);
    assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING), STELE_IO);
    store_dir_assert_error(&dir,
                           "open %s: rebuild the index: index.tmp: rename to "
                           "index: Input/output error (errno 5)",
                           dir.path);
    assert_true(files_exists(at("index.tmp/data.mdb")));
    for (uint64_t calls = 0; failed; calls++) {
        assert_true(calls < CALLS_MAX);
        break_call(IO_FAULT_ANY, NULL, calls, EIO);
        (void)store_dir_try_open(&dir, STELE_OPEN_EXISTING);
        failed = io_fault_count() > 0;
        io_fault_arm(NULL);
        if (failed) {
            store_dir_kill(&dir);
        }
        assert_false(files_exists(at("quarantine")));
    }
    letters_assert(&dir, 3);
    assert_false(files_exists(at("index.tmp")));
}

/* ---- Only ENOENT is absence ------------------------------------------------------------ */

static const struct {
    enum io_fault_call call;
    const char *suffix;
    const char *message; /* "%s": the directory. */
    bool read_only_too;
} accesses[] = {
    {IO_FAULT_LIST, NULL, "list directory", true},
    {IO_FAULT_OPEN, "LOCK", "LOCK: open", true},
    {IO_FAULT_OPEN, "ANCHOR", "ANCHOR: open", true},
    {IO_FAULT_OPEN_DIR, "wal", "wal: open directory", true},
    {IO_FAULT_OPEN, ".wal", SEGMENT_1 ": open", true},
    {IO_FAULT_LIST, "wal", "wal: list directory", true},
    {IO_FAULT_OPEN_DIR, "index", "index: open directory", true},
    {IO_FAULT_INFO, "data.mdb", "data.mdb: stat", true},
    {IO_FAULT_OPEN, "data.mdb", "index/data.mdb: open", true},
    {IO_FAULT_OPEN_DIR, "snapshot", "snapshot: open directory", false},
};

static void assert_is_not_absence(size_t access, enum stele_open_mode mode,
                                  int sys_errno)
{
    char ending[128];
    const char *message = dir.error.message;

    const struct io_fault fault = {.call = accesses[access].call,
                                   .suffix = accesses[access].suffix,
                                   .times = IO_FAULT_FOREVER,
                                   .sys_errno = sys_errno};

    io_fault_arm(&fault);
    if (store_dir_try_open(&dir, mode) != STELE_IO) {
        fail_msg("%s, mode %d: %s", accesses[access].message, (int)mode,
                 dir.error.message);
    }
    assert_true(io_fault_count() > 0);
    io_fault_arm(NULL);
    assert_int_equal(dir.error.sys_errno, sys_errno);
    snprintf(ending, sizeof ending, "%s: %s (errno %d)",
             accesses[access].message, strerror(sys_errno), sys_errno);
    assert_true(strlen(message) > strlen(ending));
    assert_string_equal(message + strlen(message) - strlen(ending), ending);
}

/* verdi#40, FTL PR1970, etcd#14851: EACCES, EMFILE, ENFILE read as "does not
 * exist". */
static void nothing_but_enoent_is_absence(void **state)
{
    static const enum stele_open_mode modes[] = {
        STELE_OPEN_CREATE, STELE_OPEN_EXISTING, STELE_OPEN_READ_ONLY};
    static const int errnos[] = {EACCES, EMFILE, ENFILE, EPERM, EIO, ELOOP};
    uint64_t digest;

    (void)state;
    leave_a_store();
    digest = files_tree_digest(at("wal"), NULL);
    for (size_t access = 0; access < sizeof accesses / sizeof *accesses;
         access++) {
        for (size_t index = 0; index < sizeof errnos / sizeof *errnos;
             index++) {
            for (size_t mode = 0; mode < 3; mode++) {
                if (modes[mode] == STELE_OPEN_READ_ONLY &&
                    !accesses[access].read_only_too) {
                    continue;
                }
                assert_is_not_absence(access, modes[mode], errnos[index]);
            }
        }
    }
    assert_true(files_tree_digest(at("wal"), NULL) == digest);
    assert_false(files_exists(at("quarantine")));
    store_dir_open(&dir);
    assert_all_there();
}

/* ---- Failed syncs ------------------------------------------------------------------------ */

/* cockroach, WT-4045, redis#8111, rostam#94: fsync was tried again after it had
 * failed, or its failure ignored. */
static void a_failed_sync_is_never_repeated_and_reopening_decides(void **state)
{
    static const int errnos[] = {EIO, ENOSPC, EDQUOT, EROFS};

    (void)state;
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        const int number = errnos[index];
        const char *text = strerror(number);
        struct stele *store;
        uint64_t syncs;

        store_dir_open(&dir);
        letters_put(&dir, 'a');
        syncs = io_fault_calls(IO_FAULT_SYNC);
        break_call(IO_FAULT_SYNC, ".wal", 0, number);
        assert_int_equal(store_dir_try_put(&dir, "b", letters_value('b')),
                         STELE_UNKNOWN);
        store_dir_assert_error(&dir,
                               "outcome unknown: sync unit 2: " SEGMENT_1
                               ": sync: %s (errno %d)",
                               text, number);
        letters_assert(&dir, 1); /* Not shown here. */
        for (int again = 0; again < 3; again++) {
            assert_int_equal(store_dir_try_put(&dir, "c", "v"), STELE_POISONED);
            store_dir_assert_error(&dir,
                                   "writing has stopped, reopen the store: "
                                   "sync unit 2: " SEGMENT_1
                                   ": sync: %s (errno %d)",
                                   text, number);
            assert_int_equal(stele_sync(dir.store, &dir.error), STELE_POISONED);
            assert_int_equal(stele_checkpoint(dir.store, &dir.error),
                             STELE_POISONED);
        }
        store = dir.store;
        dir.store = NULL;
        assert_int_equal(stele_close(store, &dir.error), STELE_POISONED);
        assert_int_equal(io_fault_calls(IO_FAULT_SYNC), syncs + 1);
        store_dir_open(&dir);
        letters_assert(&dir, 2); /* Written again, and synced. */
        start_anew();
    }
}

/* ---- Never an exit -------------------------------------------------------------------------- */

static uint64_t fuzzed_value(void)
{
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      3,
                                      4095,
                                      4096,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    const uint64_t index = random_below(&random_numbers, 16);

    return index < sizeof values / sizeof *values ? values[index]
                                                  : random_u64(&random_numbers);
}

/* A few bytes, anywhere in the file, or its length. */
static void fuzz_raw(const char *name)
{
    const char *file = at(name);
    const uint64_t bytes = files_size(file);

    if (random_one_in(&random_numbers, 8)) {
        files_truncate(file, random_below(&random_numbers, 2 * bytes));
        return;
    }
    for (uint64_t count = 1 + random_below(&random_numbers, 6); count > 0;
         count--) {
        files_fill_at(file, random_below(&random_numbers, bytes),
                      (int)random_below(&random_numbers, 256), 1);
    }
}

/* A lie that is believed. */
static void fuzz_sealed(void)
{
    struct reseal_unit unit;

    switch (random_below(&random_numbers, 3)) {
    case 0:
        reseal_anchor_u64(at("ANCHOR"),
                          24 + 8 * random_below(&random_numbers, 31),
                          fuzzed_value());
        break;
    case 1:
        reseal_segment_u64(at(SEGMENT_1),
                           16 + 8 * random_below(&random_numbers, 5),
                           fuzzed_value());
        break;
    default:
        reseal_unit_begin(&unit, at(SEGMENT_1), LETTERS_UNIT_3, LETTERS_UNIT_2);
        for (uint64_t count = 1 + random_below(&random_numbers, 3); count > 0;
             count--) {
            unit.bytes[16 + random_below(&random_numbers, 200)] =
                (uint8_t)fuzzed_value();
        }
        reseal_unit_end(&unit);
        break;
    }
}

/* It may fail, but then it says why. */
static void assert_told(enum stele_status status)
{
    if (status != STELE_OK) {
        assert_int_equal(dir.error.status, status);
        assert_true(dir.error.message[0] != '\0');
    }
}

/* Use it as far as it goes. */
static void use_whatever_it_is(void)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_view *view;
    struct stele_value value;

    if (stele_view_open(dir.store, &view, &dir.error) == STELE_OK) {
        assert_told(stele_view_get(view, "t", "a", 1, &value, &dir.error));
        assert_told(stele_view_get(view, "t", "c", 1, &value, &dir.error));
        stele_view_close(view);
    }
    assert_told(stele_verify(dir.store, NULL, NULL, &report, &dir.error));
    assert_told(store_dir_try_put(&dir, "more", "x"));
    if (random_one_in(&random_numbers, 8)) {
        assert_told(stele_checkpoint(dir.store, &dir.error));
    }
}

static const char *const fuzzed_names[] = {"ANCHOR", SEGMENT_1, SEGMENT_2,
                                           "LOCK"};

enum { FUZZED_FILES = sizeof fuzzed_names / sizeof *fuzzed_names };

/* What the files hold before somebody fuzzes them. */
static struct {
    uint8_t *data;
    size_t bytes;
} honest[FUZZED_FILES];

static void forget_honest_files(void)
{
    for (size_t index = 0; index < FUZZED_FILES; index++) {
        free(honest[index].data);
        honest[index].data = NULL;
    }
}

static void keep_honest_files(void)
{
    forget_honest_files();
    for (size_t index = 0; index < FUZZED_FILES; index++) {
        honest[index].data =
            files_read(at(fuzzed_names[index]), &honest[index].bytes);
    }
}

static void restore_honest_files(void)
{
    for (unsigned seq = 3; seq < 8; seq++) { /* What a fuzzed one has made. */
        char name[64];

        snprintf(name, sizeof name, "wal/%016x.wal", seq);
        if (files_exists(at(name))) {
            files_remove(at(name));
        }
    }
    for (size_t index = 0; index < FUZZED_FILES; index++) {
        /* In place: a file that was cut to nothing first is flushed. */
        files_truncate(at(fuzzed_names[index]), honest[index].bytes);
        files_write_at(at(fuzzed_names[index]), 0, honest[index].data,
                       honest[index].bytes);
    }
}

static void fuzz_once(uint64_t number)
{
    enum stele_status status;

    restore_honest_files();

    if (random_one_in(&random_numbers, 2)) {
        fuzz_sealed();
    } else {
        fuzz_raw(fuzzed_names[random_below(&random_numbers, FUZZED_FILES)]);
    }
    status = store_dir_try_open(&dir, number % 4 != 0 ? STELE_OPEN_READ_ONLY
                                                      : STELE_OPEN_CREATE);
    if (status == STELE_OK) {
        use_whatever_it_is();
    } else {
        assert_int_equal(dir.error.status, status);
        assert_true(strlen(dir.error.message) >
                    strlen("open : ") + strlen(dir.path));
    }
    store_dir_kill(&dir);
}

/* etcd#8330, nats#3535: the library exited or panicked in its host. */
static void no_damage_to_log_anchor_or_lock_makes_the_library_exit(void **state)
{
    (void)state;
    for (uint64_t number = 0; number < FUZZED_OPENS; number++) {
        if (number % FUZZED_OPENS_EACH == 0) {
            start_anew();
            random_numbers.state = number + 1;
            store_dir_open(&dir);
            letters_put(&dir, 'a');
            letters_put(&dir, 'b');
            letters_put(&dir, 'c');
            assert_int_equal(store_dir_try_put_bytes(&dir, "big", 50 << 10),
                             STELE_OK);
            store_dir_kill(&dir);
            keep_honest_files();
        }
        fuzz_once(number);
    }
    forget_honest_files();
}

/* LMDB trusts its pages, and one that is damaged may bring the process down. Its
 * meta pages, which engine/index_file.c examines, may not; nor does anything
 * abort; nor is a store refused for its index: the log has all of it. */
static int use_damaged_index(const char *store_path, enum stele_open_mode mode)
{
    signal(SIGSEGV, SIG_DFL); /* A sanitizer would make an exit of it. */
    signal(SIGBUS, SIG_DFL);
    io_fault_pretend_syncs();
    dir.path = strdup(store_path);
    stele_options_init(&dir.options);
    store_tuning_init(&dir.tuning);
    dir.tuning.manual = true;
    dir.tuning.io = io_fault_io();
    dir.tuning.segment_bytes = LETTERS_SEGMENT_BYTES;
    dir.options.index_map_bytes = 64 << 20;
    if (store_dir_try_open(&dir, mode) != STELE_OK) {
        fprintf(stderr, "%s\n", dir.error.message);
        return 1; /* The log has all of it: no reason to refuse. */
    }
    use_whatever_it_is();
    store_dir_kill(&dir);
    free(dir.path);
    return 0;
}

/* Where something stands: in the used part of a meta page; in the header, the
 * pointers or the nodes of another. */
static void damage_index(bool meta)
{
    const char *file = at("index/data.mdb");

    for (int count = 0; count < 3; count++) {
        uint64_t offset = random_below(&random_numbers, 2) * PAGE +
                          random_below(&random_numbers, 152);

        if (!meta) {
            offset = (2 + random_below(&random_numbers, 10)) * PAGE +
                     (random_one_in(&random_numbers, 2)
                          ? random_below(&random_numbers, 64)
                          : PAGE - 512 + random_below(&random_numbers, 400));
        }
        files_fill_at(file, offset, (int)random_below(&random_numbers, 256),
                      1 + random_below(&random_numbers, meta ? 8 : 100));
    }
}

/* How the process ended that used it. */
static int use_in_child(const char *mode)
{
    const char *const arguments[] = {"damaged index", dir.path, mode, NULL};
    struct child child = child_start(arguments);
    int status;

    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    child_forget(&child);
    return status;
}

static void no_damage_to_the_index_aborts(void **state)
{
    unsigned killed = 0;

    (void)state;
    for (int number = 0; number < FUZZED_INDEXES; number++) {
        const bool meta = number % 2 == 0;
        const bool writer = number % 10 < 2;
        int status;

        if (number % 10 < 3) { /* A writer builds a new one. */
            start_anew();
            leave_a_store();
            random_numbers.state = (uint64_t)number;
        }
        damage_index(meta);
        status = use_in_child(writer ? "write" : "read");
        if (WIFSIGNALED(status)) {
            killed++;
            assert_false(meta);
            assert_int_not_equal(WTERMSIG(status), SIGABRT);
        } else {
            assert_int_equal(WEXITSTATUS(status), 0);
        }
    }
    print_message("%u of %d indexes killed the process\n", killed,
                  FUZZED_INDEXES);
}

/* ---- Reading writes nothing --------------------------------------------------------------------- */

static const enum io_fault_call writing_calls[] = {
    IO_FAULT_WRITE,    IO_FAULT_SYNC_DIR, IO_FAULT_ALLOCATE, IO_FAULT_RENAME,
    IO_FAULT_MAKE_DIR, IO_FAULT_UNLINK,   IO_FAULT_GROW,     IO_FAULT_LOCK};

enum { WRITING_CALLS = sizeof writing_calls / sizeof *writing_calls };

/* Whatever becomes of it. */
static void assert_reading_writes_nothing(enum stele_status expected)
{
    const uint64_t digest = store_dir_digest(&dir);
    uint64_t calls[WRITING_CALLS];

    for (size_t index = 0; index < WRITING_CALLS; index++) {
        calls[index] = io_fault_calls(writing_calls[index]);
    }
    if (store_dir_try_open(&dir, STELE_OPEN_READ_ONLY) != expected) {
        fail_msg("%s", dir.error.message);
    }
    if (dir.store != NULL) {
        use_whatever_it_is();
        store_dir_close(&dir);
    }
    for (size_t index = 0; index < WRITING_CALLS; index++) {
        assert_int_equal(io_fault_calls(writing_calls[index]), calls[index]);
    }
    assert_true(store_dir_digest(&dir) == digest);
}

/* bbolt#98, heketi PR701: a read-only open wrote. */
static void a_read_only_open_writes_nothing_whatever_it_finds(void **state)
{
    (void)state;
    assert_reading_writes_nothing(STELE_NOT_FOUND); /* An empty directory. */
    leave_a_store();
    assert_reading_writes_nothing(STELE_OK); /* A tail, never synced. */
    files_flip_bit(at(SEGMENT_1), LETTERS_UNIT_3 + 1000, 0);
    assert_reading_writes_nothing(STELE_OK); /* A torn one. */
    files_write(at("wal/0000000000000002.tmp"), "half", 4);
    files_write(at(SEGMENT_2), "", 0);
    assert_reading_writes_nothing(STELE_OK); /* Leftovers. */
    files_flip_bit(at("ANCHOR"), 100, 0);
    assert_reading_writes_nothing(STELE_OK); /* A slot that wants healing. */
    store_dir_open(&dir);
    store_dir_close(&dir);
    assert_reading_writes_nothing(STELE_OK); /* A clean end. */
    files_truncate(at("index/data.mdb"), PAGE);
    assert_reading_writes_nothing(STELE_OK); /* No index. */
    files_flip_bit(at(SEGMENT_1), LETTERS_UNIT_1 + 1000, 0);
    assert_reading_writes_nothing(STELE_CORRUPT);
    files_remove(at("ANCHOR"));
    assert_reading_writes_nothing(STELE_CORRUPT);
}

/* ---- One writer ------------------------------------------------------------------------------------ */

static int hold_store(const char *store_path)
{
    const struct message ready = {0};
    struct message ignored;
    struct stele_error error;
    struct stele *store;

    run_expect_ok(stele_open(store_path, NULL, &store, &error), &error, "open");
    parent_send(&ready);
    (void)parent_receive(&ignored);
    run_expect_ok(stele_close(store, &error), &error, "close");
    return 0;
}

/* bolt PR111, bbolt#782, rocksdb's shared wal_dir: two processes on one store. */
static void a_second_writer_is_refused_naming_the_holder(void **state)
{
    const char *const arguments[] = {"hold", dir.path, NULL};
    struct message ready;
    struct child child;
    char host[256];

    (void)state;
    store_dir_open(&dir);
    letters_put(&dir, 'a');
    store_dir_close(&dir);
    child = child_start(arguments);
    assert_true(child_receive(&child, &ready));
    assert_int_equal(gethostname(host, sizeof host), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_EXISTING),
                         STELE_LOCKED);
        store_dir_assert_error(
            &dir, "open %s: the store is open for writing by pid %ld on %s",
            dir.path, (long)child.pid, host);
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_CREATE),
                         STELE_LOCKED);
        /* Readers may look; and their close gives up nobody's lock. */
        assert_int_equal(store_dir_try_open(&dir, STELE_OPEN_READ_ONLY),
                         STELE_OK);
        letters_assert(&dir, 1);
        store_dir_close(&dir);
    }
    child_kill(&child);
    child_forget(&child);
    store_dir_open(&dir); /* The lock died with its holder. */
    assert_int_equal(
        stele_open(dir.path, NULL, &(struct stele *){NULL}, &dir.error),
        STELE_LOCKED);
    store_dir_assert_error(
        &dir, "open %s: this process has the store open already", dir.path);
}

/* ---- Failed opens leak nothing ------------------------------------------------------------------------ */

/* Fail the n-th call of an open, for n = 1, 2, ... until it works. */
static void fail_every_call(enum stele_open_mode mode, int sys_errno)
{
    const size_t descriptors = open_descriptors();
    bool failed = true;

    for (uint64_t calls = 0; failed; calls++) {
        enum stele_status status;

        assert_true(calls < CALLS_MAX);
        break_call(IO_FAULT_ANY, NULL, calls, sys_errno);
        status = store_dir_try_open(&dir, mode);
        failed = io_fault_count() > 0;
        io_fault_arm(NULL);
        if (status == STELE_OK) { /* What failed was not needed. */
            store_dir_kill(&dir);
        } else {
            assert_true(failed);
            assert_true(dir.error.message[0] != '\0');
        }
        assert_int_equal(open_descriptors(), descriptors);
        if (mode != STELE_OPEN_READ_ONLY) {
            /* Neither LOCK nor the place in this process is taken. */
            status = store_dir_try_open(&dir, STELE_OPEN_READ_ONLY);
            assert_int_not_equal(status, STELE_LOCKED);
            store_dir_kill(&dir);
        }
    }
}

/* bbolt PR725: a failed open leaked descriptors or locks. */
static void an_open_that_fails_anywhere_leaves_no_descriptor_and_no_lock(
    void **state)
{
    static const int errnos[] = {EIO, EMFILE, ENOSPC};

    (void)state;
    for (size_t index = 0; index < sizeof errnos / sizeof *errnos; index++) {
        start_anew();
        fail_every_call(STELE_OPEN_CREATE, errnos[index]);
        assert_false(files_exists(at("quarantine")));
        start_anew();
        leave_a_store();
        fail_every_call(STELE_OPEN_READ_ONLY, errnos[index]);
        fail_every_call(STELE_OPEN_EXISTING, errnos[index]);
        store_dir_open(&dir);
        assert_all_there();
    }
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(logs_without_their_anchor_are_no_new_store),
        STORE_TEST(an_anchor_without_its_log_is_no_new_store),
        STORE_TEST(without_its_index_a_store_is_not_empty),
        STORE_TEST(an_empty_or_missing_store_is_new_only_when_asked),
        STORE_TEST(only_exact_names_are_taken_for_data),
        STORE_TEST(leftovers_of_a_rebuild_do_not_pile_up),
        STORE_TEST(nothing_but_enoent_is_absence),
        STORE_TEST(a_failed_sync_is_never_repeated_and_reopening_decides),
        STORE_TEST(no_damage_to_log_anchor_or_lock_makes_the_library_exit),
        STORE_TEST(no_damage_to_the_index_aborts),
        STORE_TEST(a_read_only_open_writes_nothing_whatever_it_finds),
        STORE_TEST(a_second_writer_is_refused_naming_the_holder),
        STORE_TEST(
            an_open_that_fails_anywhere_leaves_no_descriptor_and_no_lock),
    };

    if (argc == 3 && strcmp(argv[1], "hold") == 0) {
        return hold_store(argv[2]);
    }
    if (argc == 4 && strcmp(argv[1], "damaged index") == 0) {
        return use_damaged_index(argv[2], strcmp(argv[3], "write") == 0
                                              ? STELE_OPEN_EXISTING
                                              : STELE_OPEN_READ_ONLY);
    }
    io_fault_pretend_syncs();
    return cmocka_run_group_tests_name("failures: access", tests, NULL, NULL);
}
