/*
 * tests/test_engine_rot.c -- one flipped bit in the files of the real index.
 *
 * LMDB's pages carry no checksums, and LMDB may die on damage in its own page
 * structure: the one stated exception. So all looks are taken in other processes. A
 * look opens the store, reads everything and verifies. What comes of it may be a
 * refusal, an index built anew, damage reported, the right content, or the death of
 * the process inside LMDB; never wrong content that nobody reports.
 *
 * Every 19th byte, the heads of all pages, and the keys in branch pages, which no
 * check of ours covers; STELE_TEST_ROT_ALL set: all bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tests/lib/files.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/store_dir.h"

enum {
    PAGE = 4096,
    MAPPED_PAGES = 64,
    MAPPED_BYTES = MAPPED_PAGES * PAGE,
    LMDB_HEAD_BYTES = 16,
    LMDB_BRANCH = 0x01, /* Page flags. */
    SEGMENT_BYTES = 128 << 10,
    PAGE_HEAD_BYTES = 24,  /* LMDB's page header is 16; pointers follow. */
    META_HEAD_BYTES = 160, /* Of the first two pages. */
    STRIDE = 19,
    WRITER_ONE_IN = 16, /* Opening for writing has to be undone. */
    LOOKS_A_CHILD = 100,
    KEYS = 120,
    BIG_KEYS = 3,
    BIG_VALUE_BYTES = 6000,
    ENTRIES_MAX = 1000,
    CPU_SECONDS_MAX = 2, /* Of one look; LMDB may go in circles. */
};

/* What a look's process ends with. */
enum look {
    LOOK_SAME = 40, /* The right content, and nothing is found. */
    LOOK_REBUILT,   /* The same, from the log. */
    LOOK_REFUSED,   /* It does not open. */
    LOOK_REPORTED,  /* A read fails as damaged, */
    LOOK_VERIFIED,  /* or stele_verify() alone finds it. */
    LOOK_WRONG,     /* Nothing says so. */
    LOOK_DIED,      /* Inside LMDB, */
    LOOK_STUCK,     /* or it went in circles there. */
    LOOKS_END,
};

static const char *const look_names[LOOKS_END - LOOK_SAME] = {
    "same",      "rebuilt", "refused", "reported by a read",
    "by verify", "WRONG",   "died",    "stuck"};

#if SANITIZED
/* LMDB's deaths are signals here, too; what the sanitizer finds is no death. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0";
}
#endif

/* What parent and child share of a run of looks: which one is under way, and what
 * came of it. */
struct run {
    uint64_t offset;
    enum stele_open_mode mode;
    uint64_t counts[2][LOOKS_END - LOOK_SAME]; /* Reader, writer. */
};

static struct run *run;

/* ---- The store ------------------------------------------------------------------- */

static struct store_dir dir;
static char data_path[FILES_PATH_BYTES];
static char lock_path[FILES_PATH_BYTES];
static char anchor_path[FILES_PATH_BYTES];
static char stderr_path[FILES_PATH_BYTES];
static uint8_t *anchor_bytes;
static size_t anchor_size;

static size_t value_of(unsigned table, unsigned key,
                       char value[BIG_VALUE_BYTES])
{
    const size_t bytes = table == 1 ? BIG_VALUE_BYTES : 20 + key * 7 % 300;

    for (size_t index = 0; index < bytes; index++) {
        value[index] = (char)('a' + (index * 31 + key * 7 + table) % 26);
    }
    return bytes;
}

static const char *table_name(unsigned table)
{
    return table == 0 ? "many" : "big";
}

static unsigned key_count(unsigned table)
{
    return table == 0 ? KEYS : BIG_KEYS;
}

static void fill_table(unsigned table)
{
    struct stele_batch *batch;

    assert_int_equal(stele_batch_create(&batch, &dir.error), STELE_OK);
    for (unsigned key = 0; key < key_count(table); key++) {
        char value[BIG_VALUE_BYTES];
        char name[16];
        const size_t bytes = value_of(table, key, value);

        snprintf(name, sizeof name, "key %03u", key);
        assert_int_equal(stele_batch_put(batch, table_name(table), name,
                                         strlen(name), value, bytes,
                                         &dir.error),
                         STELE_OK);
    }
    assert_int_equal(
        stele_commit(dir.store, batch, STELE_DURABLE, NULL, &dir.error),
        STELE_OK);
    stele_batch_destroy(batch);
}

static int setup(void **state)
{
    (void)state;
    store_dir_make(&dir);
    dir.tuning.segment_bytes =
        SEGMENT_BYTES; /* A look reads them to the end. */
    dir.options.memtable_bytes = SEGMENT_BYTES;
    store_dir_path(&dir, "index/data.mdb", data_path);
    store_dir_path(&dir, "index/lock.mdb", lock_path);
    store_dir_path(&dir, "ANCHOR", anchor_path);
    store_dir_path(&dir, "stderr", stderr_path);
    store_dir_open(&dir);
    fill_table(0);
    fill_table(1);
    store_dir_close(&dir); /* Everything is in the index now. */
    anchor_bytes = files_read(anchor_path, &anchor_size);
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(run != MAP_FAILED);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(anchor_bytes);
    (void)munmap(run, sizeof *run);
    store_dir_remove(&dir);
    return 0;
}

/* Where the newer meta page says that the pages end. */
static uint64_t used_bytes(void)
{
    uint64_t last = 0;

    for (uint64_t meta = 0; meta < 2; meta++) {
        uint64_t page;

        files_read_at(data_path, meta * PAGE + 136, &page, sizeof page);
        last = page > last ? page : last;
    }
    return (last + 1) * PAGE;
}

/* For each page where the keys of a branch page begin in it; else PAGE. */
static uint16_t branch_keys[MAPPED_PAGES];

static void find_branches(void)
{
    const uint64_t pages = used_bytes() / PAGE;

    assert_true(pages <= MAPPED_PAGES);
    for (uint64_t page = 0; page < MAPPED_PAGES; page++) {
        uint8_t head[LMDB_HEAD_BYTES] = {0};

        if (page >= 2 && page < pages) {
            files_read_at(data_path, page * PAGE, head, sizeof head);
        }
        branch_keys[page] =
            get_u16le(head + 10) == LMDB_BRANCH ? get_u16le(head + 14) : PAGE;
    }
}

/* ---- A look, in a process of its own ------------------------------------------------ */

/* Worse findings count. */
static void worsen(enum look *look, enum look to)
{
    if (to > *look) {
        *look = to;
    }
}

static void look_up_keys(struct stele_view *view, unsigned table,
                         enum look *reads, bool *right)
{
    struct stele_error error;

    for (unsigned key = 0; key < key_count(table); key++) {
        char expected[BIG_VALUE_BYTES];
        const size_t bytes = value_of(table, key, expected);
        struct stele_value value;
        char name[16];
        enum stele_status status;

        snprintf(name, sizeof name, "key %03u", key);
        status = stele_view_get(view, table_name(table), name, strlen(name),
                                &value, &error);
        if (status == STELE_NOT_FOUND ||
            (status == STELE_OK &&
             (value.bytes != bytes ||
              memcmp(value.data, expected, bytes) != 0))) {
            *right = false;
        } else if (status != STELE_OK) {
            worsen(reads, LOOK_REPORTED);
        }
    }
}

static void walk_table(struct stele_view *view, unsigned table,
                       enum look *reads, bool *right)
{
    struct stele_cursor *cursor;
    struct stele_error error;
    struct stele_entry entry;
    unsigned count = 0;
    enum stele_status status =
        stele_cursor_open(view, table_name(table), NULL, 0, &cursor, &error);

    if (status != STELE_OK) {
        worsen(reads, LOOK_REPORTED);
        return;
    }
    for (status = stele_cursor_first(cursor, &entry, &error);
         status == STELE_OK && count < ENTRIES_MAX;
         status = stele_cursor_next(cursor, &entry, &error)) {
        char expected[BIG_VALUE_BYTES];
        char name[16];
        const size_t bytes = value_of(table, count, expected);

        snprintf(name, sizeof name, "key %03u", count++);
        if (entry.key_bytes != strlen(name) ||
            memcmp(entry.key, name, entry.key_bytes) != 0 ||
            entry.value.bytes != bytes ||
            memcmp(entry.value.data, expected, bytes) != 0) {
            *right = false;
        }
    }
    if (status != STELE_OK && status != STELE_NOT_FOUND) {
        worsen(reads, LOOK_REPORTED);
    } else if (count != key_count(table)) {
        *right = false;
    }
    stele_cursor_close(cursor);
}

static enum look read_everything(void)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error;
    struct stele_view *view;
    enum look reads = LOOK_SAME;
    bool right = true;

    if (stele_view_open(dir.store, &view, &error) != STELE_OK) {
        return LOOK_REPORTED;
    }
    for (unsigned table = 0; table < 2; table++) {
        uint64_t count;

        look_up_keys(view, table, &reads, &right);
        walk_table(view, table, &reads, &right);
        if (stele_table_count(view, table_name(table), &count, &error) !=
            STELE_OK) {
            worsen(&reads, LOOK_REPORTED);
        } else if (count != key_count(table)) {
            right = false;
        }
    }
    stele_view_close(view);
    if (reads == LOOK_REPORTED) {
        return LOOK_REPORTED;
    }
    if (stele_verify(dir.store, NULL, NULL, &report, &error) != STELE_OK) {
        return LOOK_VERIFIED;
    }
    return right ? LOOK_SAME : LOOK_WRONG;
}

static enum look look_once(enum stele_open_mode mode)
{
    enum look look;
    bool rebuilt;

    if (store_dir_try_open(&dir, mode) != STELE_OK) {
        return dir.error.status == STELE_CORRUPT ||
                       dir.error.status == STELE_FOREIGN
                   ? LOOK_REFUSED
                   : LOOK_REPORTED;
    }
    rebuilt = mode == STELE_OPEN_READ_ONLY ? dir.store->index == NULL
                                           : dir.store->index_rebuilt;
    look = read_everything();
    store_dir_kill(&dir);
    return look == LOOK_SAME && rebuilt ? LOOK_REBUILT : look;
}

/* A process may die in LMDB, not in an assertion of ours. */
static void check_last_words(int signal_number)
{
    size_t bytes;
    char *words = (char *)files_read(stderr_path, &bytes);

    words = realloc(words, bytes + 1);
    assert_non_null(words);
    words[bytes] = '\0';
    if (signal_number == SIGABRT && strstr(words, "mdb.c") == NULL &&
        bytes > 0) {
        fail_msg("%s", words);
    }
    free(words);
}

static void begin_child(void)
{
    const int fd = open(stderr_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    (void)dup2(fd, STDERR_FILENO);
    for (int number = 1; number < 32; number++) {
        (void)signal(number, SIG_DFL); /* Not cmocka's. */
    }
}

/* Undo what an open for writing did: the very file must be back in its place. */
static void restore(void)
{
    char quarantine[FILES_PATH_BYTES];
    char aside[FILES_PATH_BYTES];
    char path[FILES_PATH_BYTES];
    static const char *const made[] = {"index.tmp/data.mdb",
                                       "index.tmp/lock.mdb", "index.tmp"};

    for (size_t index = 0; index < 3; index++) {
        store_dir_path(&dir, made[index], path);
        if (files_exists(path)) {
            files_remove(path);
        }
    }
    store_dir_path(&dir, "quarantine", quarantine);
    store_dir_path(&dir, "quarantine/index.0001", aside);
    if (files_exists(aside)) {
        store_dir_path(&dir, "index", path);
        if (files_exists(path)) {
            files_remove(data_path);
            files_remove(lock_path);
            files_remove(path);
        }
        files_rename(aside, path);
        files_remove(quarantine);
    }
    files_write_at(anchor_path, 0, anchor_bytes, anchor_size);
}

/* ---- Flipping ------------------------------------------------------------------------ */

static bool all_wanted(void)
{
    return getenv("STELE_TEST_ROT_ALL") != NULL;
}

/* Among the keys of a branch page, which lie at its end. */
static bool is_branch_key(uint64_t offset)
{
    return offset < MAPPED_BYTES && offset % PAGE >= branch_keys[offset / PAGE];
}

static bool is_wanted(uint64_t offset)
{
    const uint64_t head =
        offset < (uint64_t)2 * PAGE ? META_HEAD_BYTES : PAGE_HEAD_BYTES;

    return all_wanted() || offset % PAGE < head || offset % STRIDE == 0 ||
           is_branch_key(offset);
}

static void flip(const char *path, uint64_t offset)
{
    files_flip_bit(path, offset, offset % 8);
}

/* Count what came of the look under way, and undo everything. */
static void end_look(const char *path, enum look look)
{
    run->counts[run->mode == STELE_OPEN_EXISTING][look - LOOK_SAME]++;
    if (run->mode == STELE_OPEN_EXISTING) {
        restore();
    }
    flip(path, run->offset);
}

/* The child: look at one offset after the other, up to `end`. */
static void look_on(const char *path, uint64_t end)
{
    const struct itimerval limit = {.it_value = {.tv_sec = CPU_SECONDS_MAX}};

    begin_child();
    for (unsigned looks = 0; run->offset < end && looks < LOOKS_A_CHILD;
         run->offset++) {
        if (!is_wanted(run->offset)) {
            continue;
        }
        looks++;
        for (unsigned writer = 0; writer < 2; writer++) {
            enum look look;

            if (writer == 1 && run->offset % WRITER_ONE_IN != 0) {
                continue;
            }
            run->mode =
                writer == 1 ? STELE_OPEN_EXISTING : STELE_OPEN_READ_ONLY;
            flip(path, run->offset);
            (void)setitimer(ITIMER_PROF, &limit, NULL);
            look = look_once(run->mode);
            end_look(path, look);
            if (look == LOOK_WRONG) {
                fprintf(stderr, "offset %llu, bit %llu: wrong content",
                        (unsigned long long)run->offset,
                        (unsigned long long)run->offset % 8);
                _exit(EXIT_FAILURE);
            }
        }
    }
    _exit(EXIT_SUCCESS);
}

static void run_child(const char *path, uint64_t end)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        look_on(path, end);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        check_last_words(WTERMSIG(status));
        end_look(path, WTERMSIG(status) == SIGPROF ? LOOK_STUCK : LOOK_DIED);
        run->offset++;
    } else if (WEXITSTATUS(status) != EXIT_SUCCESS) {
        check_last_words(SIGABRT);
        fail_msg("%s: offset %llu: exit status %d", path,
                 (unsigned long long)run->offset, WEXITSTATUS(status));
    }
}

static void flip_file(const char *path, uint64_t bytes)
{
    memset(run, 0, sizeof *run);
    while (run->offset < bytes) {
        run_child(path, bytes);
    }
    for (size_t mode = 0; mode < 2; mode++) {
        print_message("             for a %s:",
                      mode == 0 ? "reader" : "writer");
        for (size_t look = 0; look < LOOKS_END - LOOK_SAME; look++) {
            print_message(" %llu %s,",
                          (unsigned long long)run->counts[mode][look],
                          look_names[look]);
        }
        print_message("\n");
    }
    /* It is as it was. */
    assert_int_equal(look_once(STELE_OPEN_READ_ONLY), LOOK_SAME);
    assert_int_equal(look_once(STELE_OPEN_EXISTING), LOOK_SAME);
}

static uint64_t count_of(enum look look)
{
    return run->counts[0][look - LOOK_SAME] + run->counts[1][look - LOOK_SAME];
}

static void a_flipped_bit_in_the_index_never_gives_wrong_content_silently(
    void **state)
{
    (void)state;
    assert_true(used_bytes() >= (uint64_t)10 * PAGE);
    find_branches();
    flip_file(data_path, used_bytes());
    /* The workload is what it should be. */
    assert_true(count_of(LOOK_SAME) > 500);
    assert_true(count_of(LOOK_REPORTED) > 500);
    assert_true(count_of(LOOK_VERIFIED) > 0);
    assert_true(count_of(LOOK_REBUILT) > 50);
}

/* LMDB's table of readers: nothing in it outlives the last process. */
static void a_flipped_bit_in_the_table_of_readers_does_not_matter(void **state)
{
    (void)state;
    memset(branch_keys, 0xff, sizeof branch_keys);
    flip_file(lock_path, all_wanted() ? files_size(lock_path) : 256);
    assert_int_equal(count_of(LOOK_REPORTED) + count_of(LOOK_VERIFIED), 0);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(
            a_flipped_bit_in_the_index_never_gives_wrong_content_silently),
        STORE_TEST(a_flipped_bit_in_the_table_of_readers_does_not_matter),
    };

    return cmocka_run_group_tests_name("engine: rot in the index", tests, NULL,
                                       NULL);
}
