/*
 * tests/test_readers.c -- what other processes see of a store.
 *
 * One writer process commits one batch after the other and tells us of each
 * acknowledgement; whoever opens the store read-only after that, in whatever
 * process, must see that batch or a later one, and exactly the state after it.
 *
 * STELE_TEST_READERS: how many reader processes are started.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "tests/lib/child.h"
#include "tests/lib/history.h"
#include "tests/lib/profile.h"
#include "tests/lib/run.h"
#include "tests/lib/temp_dir.h"
#include "wal/anchor.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STELE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STELE_SANITIZED
#endif
#endif

enum {
#ifdef STELE_SANITIZED
    READERS_DEFAULT = 25, /* The writer goes on meanwhile, at full speed. */
#else
    READERS_DEFAULT = 100,
#endif
    OPENS_PER_READER_START = 10,
    READER_STARTS_PER_KILL = 5,
    LIFE_US_MAX = 20000,
    CHECKPOINT_EVERY = 97, /* Batches. */
    RELAXED_EVERY = 5,
};

enum message_kind {
    SAID_ACK,   /* Batch n has this LSN; more: enum stele_durability. */
    SAID_STATS, /* n: checkpoints; lsn: rotations. */
    ASKED_LOOK, /* Look now; answered by: */
    SAID_SEEN,  /* Batch n, with this LSN. */
};

/* ---- The writer process ---------------------------------------------------- */

static uint64_t commit_next(struct stele *store, struct stele_batch *batch,
                            uint64_t n, enum stele_durability durability)
{
    struct stele_commit_result result = {0};
    struct stele_error error;

    history_fill(batch, 0, n);
    run_expect_ok(stele_commit(store, batch, durability, &result, &error),
                  &error, "commit");
    return result.lsn;
}

/* What the view shows: a state after one batch, whose LSN is the view's. */
static struct history_seen look_at(struct stele_view *view)
{
    const struct history_seen seen = history_check(view, 0);

    if (seen.lsn != stele_view_lsn(view)) {
        run_fail("the view's LSN is %" PRIu64 ", but the last batch, %" PRIu64
                 ", has %" PRIu64,
                 stele_view_lsn(view), seen.n, seen.lsn);
    }
    return seen;
}

static struct history_seen look(struct stele *store)
{
    struct history_seen seen;
    struct stele_view *view;
    struct stele_error error;

    run_expect_ok(stele_view_open(store, &view, &error), &error, "open view");
    seen = look_at(view);
    stele_view_close(view);
    return seen;
}

/* Commit until we are told to end, or killed. */
static int writer_main(const char *path, const char *profile_name)
{
    const struct profile profile = profile_named(profile_name);
    struct stele *store = profile_open_ok(&profile, path, STELE_OPEN_CREATE);
    struct stele_batch *batch;
    struct stele_stats stats;
    struct stele_error error;
    uint64_t n = look(store).n;

    run_expect_ok(stele_batch_create(&batch, &error), &error, "create batch");
    while (!parent_has_spoken()) {
        const enum stele_durability durability =
            ++n % RELAXED_EVERY == 0 ? STELE_RELAXED : STELE_DURABLE;
        const uint64_t lsn = commit_next(store, batch, n, durability);

        parent_send(&(struct message){
            .kind = SAID_ACK, .n = n, .lsn = lsn, .more = durability});
        if (n % CHECKPOINT_EVERY == 0) {
            run_expect_ok(stele_checkpoint(store, &error), &error,
                          "checkpoint");
        }
    }
    stats = profile_stats(store);
    parent_send(&(struct message){
        .kind = SAID_STATS, .n = stats.checkpoints, .lsn = stats.rotations});
    stele_batch_destroy(batch);
    run_expect_ok(stele_close(store, &error), &error, "close");
    return EXIT_SUCCESS;
}

/* ---- Reader processes --------------------------------------------------------- */

static struct history_seen look_afresh(const struct profile *profile,
                                       const char *path)
{
    struct stele_error error;
    struct stele *store = profile_open_ok(profile, path, STELE_OPEN_READ_ONLY);
    const struct history_seen seen = look(store);

    run_expect_ok(stele_close(store, &error), &error, "close");
    return seen;
}

static void tell(const struct history_seen *seen)
{
    parent_send(
        &(struct message){.kind = SAID_SEEN, .n = seen->n, .lsn = seen->lsn});
}

/* A process that was started to look once. */
static int look_once_main(const char *path, const char *profile_name)
{
    const struct profile profile = profile_named(profile_name);
    const struct history_seen seen = look_afresh(&profile, path);

    tell(&seen);
    return EXIT_SUCCESS;
}

/* One that opens the store anew each time it is asked. */
static int look_afresh_main(const char *path, const char *profile_name)
{
    const struct profile profile = profile_named(profile_name);
    struct message asked;

    while (parent_receive(&asked)) {
        const struct history_seen seen = look_afresh(&profile, path);

        tell(&seen);
    }
    return EXIT_SUCCESS;
}

/* One that opens it once, and a view each time it is asked. It holds each view
 * until it has the next, and what the old one shows must not have changed. */
static int look_again_main(const char *path, const char *profile_name)
{
    const struct profile profile = profile_named(profile_name);
    struct stele_view *held = NULL;
    struct history_seen held_seen = {0};
    struct stele_error error;
    struct stele *store = NULL;
    struct message asked;

    while (parent_receive(&asked)) {
        struct stele_view *view;
        struct history_seen seen;

        if (store == NULL) {
            store = profile_open_ok(&profile, path, STELE_OPEN_READ_ONLY);
        }
        run_expect_ok(stele_view_open(store, &view, &error), &error,
                      "open another view");
        seen = look_at(view);
        if (held != NULL) {
            const struct history_seen again = look_at(held);

            if (again.n != held_seen.n || again.lsn != held_seen.lsn) {
                run_fail("a view that showed batch %" PRIu64
                         " shows batch %" PRIu64,
                         held_seen.n, again.n);
            }
        }
        if (seen.n < held_seen.n || seen.lsn < held_seen.lsn) {
            run_fail("a view shows batch %" PRIu64 " with LSN %" PRIu64
                     ", an earlier one showed %" PRIu64 " with LSN %" PRIu64,
                     seen.n, seen.lsn, held_seen.n, held_seen.lsn);
        }
        stele_view_close(held);
        held = view;
        held_seen = seen;
        tell(&seen);
    }
    stele_view_close(held);
    run_expect_ok(stele_close(store, &error), &error, "close");
    return EXIT_SUCCESS;
}

/* ---- What the tests say ---------------------------------------------------------- */

struct observed {
    struct profile profile;
    char *path;
    struct child writer;
    struct history_seen acked;   /* The last batch, ... */
    struct history_seen durable; /* ... and the last durable one. */
    struct history_seen exposed; /* The newest that a reader has seen. */
    uint64_t looks;
};

static struct observed observed_init(const char *profile_name)
{
    return (struct observed){.profile = profile_named(profile_name),
                             .path = temp_dir_make()};
}

static struct child start(const struct observed *observed, const char *mode)
{
    return child_start((const char *const[]){mode, observed->path,
                                             observed->profile.name, NULL});
}

static void note(struct observed *observed, const struct message *message)
{
    if (message->kind != SAID_ACK) {
        return;
    }
    observed->acked =
        (struct history_seen){.n = message->n, .lsn = message->lsn};
    if (message->more == STELE_DURABLE) {
        observed->durable = observed->acked;
    }
}

/* Take in what the writer has said so far. */
static void catch_up_with_writer(struct observed *observed)
{
    struct message message;

    while (child_receive_within(&observed->writer, 0, &message)) {
        note(observed, &message);
    }
}

static void await_durable_ack(struct observed *observed)
{
    const uint64_t before = observed->durable.n;
    struct message message;

    while (observed->durable.n == before) {
        if (!child_receive(&observed->writer, &message)) {
            run_fail("the writer ended by itself");
        }
        note(observed, &message);
    }
}

static void kill_writer(struct observed *observed)
{
    struct message message;

    child_kill(&observed->writer);
    while (child_receive(&observed->writer, &message)) {
        note(observed, &message);
    }
    child_forget(&observed->writer);
}

/* Have it close the store. Returns its statistics. */
static struct message end_writer(struct observed *observed)
{
    struct message stats = {.kind = SAID_ACK};
    struct message message;

    child_dismiss(&observed->writer);
    while (child_receive(&observed->writer, &message)) {
        note(observed, &message);
        stats = message;
    }
    child_join(&observed->writer);
    child_forget(&observed->writer);
    if (stats.kind != SAID_STATS) {
        run_fail("the writer ended without its statistics");
    }
    return stats;
}

/* The reader saw this; what it had to see was acknowledged before it looked. */
static void expect_seen(struct observed *observed, const char *reader,
                        const struct message *seen,
                        const struct history_seen *at_least)
{
    observed->looks++;
    if (seen->n < at_least->n || seen->lsn < at_least->lsn) {
        run_fail("%s, options %s: batch %" PRIu64 " with LSN %" PRIu64
                 " is missing: it was acknowledged, and the reader shows batch "
                 "%" PRIu64 " with LSN %" PRIu64,
                 reader, observed->profile.name, at_least->n, at_least->lsn,
                 seen->n, seen->lsn);
    }
    if (seen->n == at_least->n && seen->lsn != at_least->lsn) {
        run_fail("%s, options %s: batch %" PRIu64 " has LSN %" PRIu64
                 ", acknowledged with %" PRIu64,
                 reader, observed->profile.name, seen->n, seen->lsn,
                 at_least->lsn);
    }
    if (seen->n > observed->exposed.n) {
        observed->exposed =
            (struct history_seen){.n = seen->n, .lsn = seen->lsn};
    }
}

static void ask(struct observed *observed, struct child *reader,
                const char *name, const struct history_seen *at_least)
{
    const struct history_seen promised = *at_least;
    struct message message = {.kind = ASKED_LOOK};

    child_send(reader, &message);
    if (!child_receive(reader, &message)) {
        run_fail("%s ended by itself", name);
    }
    expect_seen(observed, name, &message, &promised);
}

static void start_a_reader(struct observed *observed,
                           const struct history_seen *at_least)
{
    const struct history_seen promised = *at_least;
    struct child reader = start(observed, "look once");
    struct message message;

    if (!child_receive(&reader, &message)) {
        run_fail("a reader that was started to look once said nothing");
    }
    child_join(&reader);
    child_forget(&reader);
    expect_seen(observed, "a reader process started afterwards", &message,
                &promised);
}

static void dismiss_reader(struct child *reader)
{
    child_dismiss(reader);
    child_join(reader);
    child_forget(reader);
}

/* ---- While the writer goes on ------------------------------------------------------ */

static void read_while_writing(const char *profile_name, uint64_t rotations_min)
{
    const uint64_t starts = run_setting("STELE_TEST_READERS", READERS_DEFAULT);
    struct observed observed = observed_init(profile_name);
    struct message stats;
    struct child afresh;
    struct child again;

    observed.writer = start(&observed, "writer");
    await_durable_ack(&observed); /* Now there is a store. */
    afresh = start(&observed, "look afresh");
    again = start(&observed, "look again");
    for (uint64_t count = 0; count < starts * OPENS_PER_READER_START; count++) {
        if (count % OPENS_PER_READER_START == 0) {
            await_durable_ack(&observed);
            start_a_reader(&observed, &observed.durable);
        }
        await_durable_ack(&observed);
        catch_up_with_writer(&observed);
        ask(&observed, &afresh, "a handle opened afterwards",
            &observed.durable);
        catch_up_with_writer(&observed);
        ask(&observed, &again, "a view opened afterwards", &observed.durable);
    }
    stats = end_writer(&observed);
    /* Closed: relaxed commits are durable too. */
    ask(&observed, &afresh, "a handle opened after the close", &observed.acked);
    ask(&observed, &again, "a view opened after the close", &observed.acked);
    start_a_reader(&observed, &observed.acked);
    dismiss_reader(&afresh);
    dismiss_reader(&again);
    printf("%s: %" PRIu64 " looks while batches 1 to %" PRIu64
           " were committed, with %" PRIu64 " checkpoints, %" PRIu64
           " rotations\n",
           profile_name, observed.looks, observed.acked.n, stats.n, stats.lsn);
    assert_int_equal(observed.exposed.n, observed.acked.n);
    assert_true(stats.n > 0);
    assert_true(stats.lsn >= rotations_min);
    temp_dir_remove(observed.path);
}

static void what_was_acknowledged_is_seen_by_other_processes(void **state)
{
    (void)state;
    read_while_writing("default", 0);
}

static void also_while_the_writer_rotates_and_checkpoints(void **state)
{
    (void)state;
    read_while_writing("tiny", 1);
}

/* ---- After its death ------------------------------------------------------------------ */

static void read_after_kill(const char *profile_name, uint64_t starts)
{
    struct random_source random = run_random(1);
    struct observed observed = observed_init(profile_name);

    for (uint64_t kill = 0; kill < starts / READER_STARTS_PER_KILL; kill++) {
        struct child afresh;
        struct child again;

        observed.writer = start(&observed, "writer");
        for (uint64_t acks = random_below(&random, 40) + 1; acks > 0; acks--) {
            await_durable_ack(&observed);
        }
        kill_writer(&observed);
        /* The page cache has it all, relaxed or not. */
        afresh = start(&observed, "look afresh");
        again = start(&observed, "look again");
        for (int count = 0; count < READER_STARTS_PER_KILL; count++) {
            start_a_reader(&observed, &observed.acked);
            ask(&observed, &afresh, "a handle opened after kill -9",
                &observed.acked);
            ask(&observed, &again, "a view opened after kill -9",
                &observed.acked);
        }
        /* All the same state: nobody has written. */
        if (observed.exposed.n > observed.acked.n + 1) {
            run_fail("batch %" PRIu64 " is seen, but the writer cannot have "
                     "got beyond %" PRIu64,
                     observed.exposed.n, observed.acked.n + 1);
        }
        dismiss_reader(&afresh);
        dismiss_reader(&again);
        observed.acked = observed.exposed;
        observed.durable = observed.exposed;
    }
    printf("%s: %" PRIu64 " looks without a writer\n", profile_name,
           observed.looks);
    temp_dir_remove(observed.path);
}

static void after_kill_9_readers_see_everything_without_a_writer(void **state)
{
    const uint64_t starts = run_setting("STELE_TEST_READERS", READERS_DEFAULT);

    (void)state;
    /* Each look reads a whole segment from the disk: 64 MiB, or 1. */
    read_after_kill("default", starts / 2);
    read_after_kill("tiny", starts);
}

/* Readers that look while writers die and come back see an error never, and
 * what was acknowledged always. */
static void readers_do_not_notice_that_writers_come_and_go(void **state)
{
    const uint64_t starts = run_setting("STELE_TEST_READERS", READERS_DEFAULT);
    struct random_source random = run_random(2);
    struct observed observed = observed_init("tiny");
    struct child afresh;
    struct child again;

    (void)state;
    observed.writer = start(&observed, "writer");
    await_durable_ack(&observed);
    afresh = start(&observed, "look afresh");
    again = start(&observed, "look again");
    for (uint64_t left = starts / READER_STARTS_PER_KILL; left > 0; left--) {
        const uint64_t end_us = clock_us() + random_below(&random, LIFE_US_MAX);
        struct history_seen before;

        do {
            catch_up_with_writer(&observed);
            ask(&observed, &afresh, "a handle opened while writers come and go",
                &observed.durable);
            ask(&observed, &again, "a view opened while writers come and go",
                &observed.durable);
        } while (clock_us() < end_us);
        kill_writer(&observed);
        before = observed.acked;
        observed.writer = start(&observed, "writer");
        /* While it opens: nobody has said anything new. */
        for (int looks = 0; looks < 10; looks++) {
            ask(&observed, &again, "a view opened while a writer opens",
                &observed.durable);
            ask(&observed, &afresh, "a handle opened while a writer opens",
                &observed.durable);
        }
        await_durable_ack(&observed);
        if (observed.acked.n <= before.n) {
            run_fail("a writer began at batch %" PRIu64 ", but %" PRIu64
                     " was acknowledged",
                     observed.acked.n, before.n);
        }
    }
    kill_writer(&observed);
    dismiss_reader(&afresh);
    dismiss_reader(&again);
    temp_dir_remove(observed.path);
}

/* ---- Relaxed commits -------------------------------------------------------------------- */

/* Other processes never see what a power cut could still take away. */
static void a_relaxed_commit_is_seen_once_it_is_durable(void **state)
{
    struct observed observed = observed_init("default");
    struct stele_batch *batch;
    struct stele_error error;
    struct stele *store;
    struct child again;

    (void)state;
    observed.profile.options.relaxed_sync_ms = UINT32_MAX;
    store =
        profile_open_ok(&observed.profile, observed.path, STELE_OPEN_CREATE);
    again = start(&observed, "look again");
    run_expect_ok(stele_batch_create(&batch, &error), &error, "create batch");

    observed.durable.n = 1;
    observed.durable.lsn = commit_next(store, batch, 1, STELE_DURABLE);
    (void)commit_next(store, batch, 2, STELE_RELAXED);
    start_a_reader(&observed, &observed.durable);
    ask(&observed, &again, "a view beside a relaxed commit", &observed.durable);
    assert_int_equal(observed.exposed.n, 1);
    assert_int_equal(look(store).n, 2);

    run_expect_ok(stele_sync(store, &error), &error, "sync");
    observed.durable = look(store);
    start_a_reader(&observed, &observed.durable);
    ask(&observed, &again, "a view after the sync", &observed.durable);
    assert_int_equal(observed.exposed.n, 2);

    (void)commit_next(store, batch, 3, STELE_RELAXED);
    run_expect_ok(stele_checkpoint(store, &error), &error, "checkpoint");
    observed.durable = look(store);
    start_a_reader(&observed, &observed.durable);
    ask(&observed, &again, "a view after the checkpoint", &observed.durable);
    assert_int_equal(observed.exposed.n, 3);

    dismiss_reader(&again);
    stele_batch_destroy(batch);
    run_expect_ok(stele_close(store, &error), &error, "close");
    temp_dir_remove(observed.path);
}

/* ---- The hint comes before the acknowledgement ------------------------------------------- */

enum { HINTED_THREADS = 4, HINTED_COMMITS = 50, HINT_US = 200 };

/* A disk that takes its time for the hint: whoever is acknowledged too early
 * will not find it there. */
static ssize_t writev_slowly(struct io *self, int fd, const struct iovec *iov,
                             int iov_count, uint64_t offset)
{
    (void)self;
    if (iov_count == 1 && iov[0].iov_len == WAL_HINT_BYTES) {
        usleep(HINT_US);
    }
    return io_posix()->calls->writev(io_posix(), fd, iov, iov_count, offset);
}

static void expect_hinted(struct wal_anchor_file *anchor, uint64_t lsn)
{
    struct wal_position hint = {0};
    struct stele_error error;
    uint64_t incarnation;
    bool valid = false;

    while (!valid) { /* Torn by the next one: again. */
        run_expect_ok(
            wal_hint_read(anchor, &valid, &incarnation, &hint, &error), &error,
            "read the hint");
    }
    if (hint.lsn < lsn) {
        run_fail("LSN %" PRIu64 " was acknowledged, but the hint for other "
                 "processes names %" PRIu64,
                 lsn, hint.lsn);
    }
}

struct hinted {
    struct stele *store;
    struct wal_anchor_file *anchor;
    uint32_t number;
};

static void *commit_and_look_for_the_hint(void *context)
{
    struct hinted *hinted = context;
    struct stele_error error;
    uint64_t lsn;

    for (int count = 0; count < HINTED_COMMITS; count++) {
        run_expect_ok(stele_put(hinted->store, "hinted", &hinted->number,
                                sizeof hinted->number, &count, sizeof count,
                                &lsn, &error),
                      &error, "put");
        expect_hinted(hinted->anchor, lsn);
    }
    return NULL;
}

/* Also for those whose batch another thread has committed along with its own. */
static void the_hint_is_there_before_anyone_is_told(void **state)
{
    struct io_calls calls = *io_posix()->calls;
    struct io slow = {.calls = &calls};
    struct profile profile = profile_named("default");
    struct hinted hinted[HINTED_THREADS];
    pthread_t threads[HINTED_THREADS];
    struct wal_anchor_file anchor_file;
    struct wal_anchor anchor;
    struct io_dir *dir;
    struct stele_error error;
    struct stele *store;
    char *path = temp_dir_make();

    (void)state;
    calls.writev = writev_slowly;
    profile.tuning.io = &slow;
    store = profile_open_ok(&profile, path, STELE_OPEN_CREATE);
    run_expect_ok(io_dir_open(io_posix(), path, &dir, &error), &error, path);
    run_expect_ok(
        wal_anchor_open(dir, IO_OPEN_READ, &anchor_file, &anchor, &error),
        &error, "open ANCHOR");
    for (uint32_t number = 0; number < HINTED_THREADS; number++) {
        hinted[number] = (struct hinted){
            .store = store, .anchor = &anchor_file, .number = number};
        if (pthread_create(&threads[number], NULL, commit_and_look_for_the_hint,
                           &hinted[number]) != 0) {
            run_fail("create a thread");
        }
    }
    for (uint32_t number = 0; number < HINTED_THREADS; number++) {
        pthread_join(threads[number], NULL);
    }
    wal_anchor_close(&anchor_file);
    io_dir_close(dir);
    run_expect_ok(stele_close(store, &error), &error, "close");
    temp_dir_remove(path);
}

/* ---- Reading writes nothing ------------------------------------------------------------- */

enum { TREE_ENTRIES_MAX = 64, TREE_PATH_BYTES = 512 };

struct tree_entry {
    char name[TREE_PATH_BYTES];
    bool directory;
    off_t bytes;
    struct timespec changed;
    uint64_t hash;
};

struct tree {
    struct tree_entry entries[TREE_ENTRIES_MAX];
    size_t count;
};

/* FNV-1a over words; the length is compared apart. */
static uint64_t hash_file(const char *path)
{
    static uint64_t words[8192];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    ssize_t bytes;

    memset(words, 0, sizeof words);
    while (fd >= 0 && (bytes = read(fd, words, sizeof words)) > 0) {
        for (size_t index = 0; index < ((size_t)bytes + 7) / 8; index++) {
            hash = (hash ^ words[index]) * UINT64_C(0x100000001b3);
        }
    }
    if (fd < 0) {
        run_fail("%s: %s", path, strerror(errno));
    }
    close(fd);
    return hash;
}

static void add_entry(struct tree *tree, const char *root, const char *name)
{
    struct tree_entry *entry = &tree->entries[tree->count];
    char path[2 * TREE_PATH_BYTES];
    struct stat info;

    snprintf(path, sizeof path, "%s/%s", root, name);
    if (tree->count == TREE_ENTRIES_MAX || lstat(path, &info) != 0) {
        run_fail("%s: %s", path, strerror(errno));
    }
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->directory = S_ISDIR(info.st_mode);
    entry->bytes = info.st_size;
    entry->changed = info.st_mtim;
    entry->hash = entry->directory ? 0 : hash_file(path);
    tree->count++;
}

static void add_directory(struct tree *tree, const char *root, const char *name)
{
    char path[2 * TREE_PATH_BYTES];
    struct dirent **found;
    int count;

    snprintf(path, sizeof path, "%s/%s", root, name);
    count = scandir(path, &found, NULL, alphasort);
    if (count < 0) {
        run_fail("%s: %s", path, strerror(errno));
    }
    for (int index = 0; index < count; index++) {
        const char *last = found[index]->d_name;
        char below[TREE_PATH_BYTES];

        snprintf(below, sizeof below, "%s%s%.255s", name,
                 name[0] == '\0' ? "" : "/", last);
        /* LMDB's readers leave their slot in lock.mdb. */
        if (strcmp(last, ".") != 0 && strcmp(last, "..") != 0 &&
            strcmp(below, "index/lock.mdb") != 0) {
            add_entry(tree, root, below);
            if (tree->entries[tree->count - 1].directory) {
                add_directory(tree, root, below);
            }
        }
        free(found[index]);
    }
    free(found);
}

static void tree_read(struct tree *tree, const char *root)
{
    tree->count = 0;
    add_directory(tree, root, "");
}

static void expect_same_tree(const struct tree *before,
                             const struct tree *after, const char *when)
{
    for (size_t index = 0; index < before->count || index < after->count;
         index++) {
        const struct tree_entry *left = &before->entries[index];
        const struct tree_entry *right = &after->entries[index];

        if (index >= before->count || index >= after->count ||
            strcmp(left->name, right->name) != 0) {
            run_fail("%s: entry %zu was %s, is %s", when, index,
                     index < before->count ? left->name : "nothing",
                     index < after->count ? right->name : "nothing");
        }
        if (left->bytes != right->bytes || left->hash != right->hash ||
            left->changed.tv_sec != right->changed.tv_sec ||
            left->changed.tv_nsec != right->changed.tv_nsec) {
            run_fail("%s: %s was %lld bytes, hash %" PRIx64
                     ", of %lld.%09ld, is %lld bytes, hash %" PRIx64
                     ", of %lld.%09ld",
                     when, left->name, (long long)left->bytes, left->hash,
                     (long long)left->changed.tv_sec, left->changed.tv_nsec,
                     (long long)right->bytes, right->hash,
                     (long long)right->changed.tv_sec, right->changed.tv_nsec);
        }
    }
}

/* Open, read and verify, here and in another process, and compare. */
static void read_and_compare_tree(struct observed *observed, const char *when)
{
    static struct tree before;
    static struct tree after;
    struct stele_error error;
    struct stele *store;

    tree_read(&before, observed->path);
    start_a_reader(observed, &observed->acked);
    store = profile_open_ok(&observed->profile, observed->path,
                            STELE_OPEN_READ_ONLY);
    (void)look(store);
    profile_verify_ok(store);
    (void)profile_stats(store);
    run_expect_ok(stele_close(store, &error), &error, "close");
    tree_read(&after, observed->path);
    expect_same_tree(&before, &after, when);
}

static void remove_index(const struct observed *observed)
{
    static const char *const names[] = {"index/data.mdb", "index/lock.mdb",
                                        "index"};
    char path[2 * TREE_PATH_BYTES];

    for (size_t index = 0; index < sizeof names / sizeof names[0]; index++) {
        snprintf(path, sizeof path, "%s/%s", observed->path, names[index]);
        if (remove(path) != 0) {
            run_fail("%s: %s", path, strerror(errno));
        }
    }
}

static void reading_writes_nothing(void **state)
{
    struct observed observed = observed_init("tiny");

    (void)state;
    observed.writer = start(&observed, "writer");
    for (int acks = 0; acks < 300; acks++) {
        await_durable_ack(&observed);
    }
    (void)end_writer(&observed);
    read_and_compare_tree(&observed, "after a clean close");

    observed.writer = start(&observed, "writer");
    for (int acks = 0; acks < 100; acks++) {
        await_durable_ack(&observed);
    }
    kill_writer(&observed);
    read_and_compare_tree(&observed, "after kill -9");
    remove_index(&observed);
    read_and_compare_tree(&observed, "after kill -9, without the index");
    temp_dir_remove(observed.path);
}

/* ---- One writer --------------------------------------------------------------------------- */

static void expect_locked(const struct observed *observed,
                          enum stele_open_mode mode, const char *naming)
{
    struct stele_error error = {0};
    struct stele *store = NULL;
    const enum stele_status status =
        profile_open(&observed->profile, observed->path, mode, &store, &error);

    if (status != STELE_LOCKED || error.status != STELE_LOCKED ||
        strstr(error.message, naming) == NULL || store != NULL) {
        run_fail("a second handle: status %d, message \"%s\", expected %d and "
                 "\"%s\" in it",
                 (int)status, error.message, (int)STELE_LOCKED, naming);
    }
}

static void a_second_writer_is_told_who_holds_the_store(void **state)
{
    struct observed observed = observed_init("default");
    char holder[64];

    (void)state;
    observed.writer = start(&observed, "writer");
    await_durable_ack(&observed);
    snprintf(holder, sizeof holder, "pid %ld ", (long)observed.writer.pid);
    expect_locked(&observed, STELE_OPEN_EXISTING, holder);
    expect_locked(&observed, STELE_OPEN_CREATE, holder);
    await_durable_ack(&observed); /* It goes on, undisturbed. */
    kill_writer(&observed);
    /* The lock died with it. */
    observed.writer = start(&observed, "writer");
    await_durable_ack(&observed);
    (void)end_writer(&observed);
    temp_dir_remove(observed.path);
}

static void a_process_has_one_handle_of_a_store(void **state)
{
    static const enum stele_open_mode modes[] = {STELE_OPEN_CREATE,
                                                 STELE_OPEN_READ_ONLY};
    struct observed observed = observed_init("default");
    struct stele_error error;

    (void)state;
    for (size_t index = 0; index < sizeof modes / sizeof modes[0]; index++) {
        struct stele *store =
            profile_open_ok(&observed.profile, observed.path, modes[index]);

        expect_locked(&observed, STELE_OPEN_EXISTING, "this process");
        expect_locked(&observed, STELE_OPEN_READ_ONLY, "this process");
        run_expect_ok(stele_close(store, &error), &error, "close");
    }
    temp_dir_remove(observed.path);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*main)(const char *path, const char *profile_name);
    } modes[] = {
        {"writer", writer_main},
        {"look once", look_once_main},
        {"look afresh", look_afresh_main},
        {"look again", look_again_main},
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_writer_is_told_who_holds_the_store),
        cmocka_unit_test(a_process_has_one_handle_of_a_store),
        cmocka_unit_test(a_relaxed_commit_is_seen_once_it_is_durable),
        cmocka_unit_test(the_hint_is_there_before_anyone_is_told),
        cmocka_unit_test(reading_writes_nothing),
        cmocka_unit_test(after_kill_9_readers_see_everything_without_a_writer),
        cmocka_unit_test(readers_do_not_notice_that_writers_come_and_go),
        cmocka_unit_test(what_was_acknowledged_is_seen_by_other_processes),
        cmocka_unit_test(also_while_the_writer_rotates_and_checkpoints),
    };

    run_seed();
    for (size_t index = 0; argc == 4 && index < sizeof modes / sizeof modes[0];
         index++) {
        if (strcmp(argv[1], modes[index].name) == 0) {
            return modes[index].main(argv[2], argv[3]);
        }
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
