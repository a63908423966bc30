/*
 * tests/test_kill.c -- kill -9 at a random moment, over and over, on one store.
 *
 * A writer process commits from four threads without pause and tells us of each
 * acknowledgement. We kill it, look at what is left, and start the next one on
 * the same store. What a killed process wrote is in the page cache, so nothing
 * that it acknowledged may be missing, relaxed or durable.
 *
 * STELE_TEST_KILLS: how many kills for each set of options.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/child.h"
#include "tests/lib/history.h"
#include "tests/lib/profile.h"
#include "tests/lib/run.h"
#include "tests/lib/temp_dir.h"

enum {
    OWNERS = 4, /* One committing thread each. */
    KILLS_DEFAULT = 25,
    LIFE_US_MAX = 50000,
    OPENING_US_MAX = 10000,
    CHECKPOINT_EVERY = 97, /* Batches of owner 0. */
};

enum message_kind {
    SAID_OPENING,
    SAID_OPENED, /* n: index applied; lsn: applying; more: replayed records. */
    SAID_ACK,    /* Batch n of the owner has this LSN. */
    SAID_SEEN,   /* The same, found in the store. */
};

/* ---- The writer process ------------------------------------------------------ */

struct committer {
    struct stele *store;
    uint32_t owner;
    uint64_t n; /* Of the last batch. */
};

/* Until killed. */
static void *commit_without_pause(void *context)
{
    struct committer *committer = context;
    struct stele_batch *batch;
    struct stele_error error;

    run_expect_ok(stele_batch_create(&batch, &error), &error, "create batch");
    for (;;) {
        const uint64_t n = committer->n + 1;
        struct stele_commit_result result = {0};
        const enum stele_durability durability =
            (n + committer->owner) % 4 == 0 ? STELE_RELAXED : STELE_DURABLE;

        history_fill(batch, committer->owner, n);
        run_expect_ok(
            stele_commit(committer->store, batch, durability, &result, &error),
            &error, "commit");
        parent_send(&(struct message){.kind = SAID_ACK,
                                      .owner = committer->owner,
                                      .n = n,
                                      .lsn = result.lsn});
        committer->n = n;
        if (committer->owner == 0 && n % CHECKPOINT_EVERY == 0) {
            run_expect_ok(stele_checkpoint(committer->store, &error), &error,
                          "checkpoint");
        }
    }
    return NULL;
}

static int writer_main(const char *path, const char *profile_name)
{
    const struct profile profile = profile_named(profile_name);
    struct committer committers[OWNERS];
    pthread_t threads[OWNERS];
    struct stele_view *view;
    struct stele_stats stats;
    struct stele_error error;
    struct stele *store;

    parent_send(&(struct message){.kind = SAID_OPENING});
    store = profile_open_ok(&profile, path, STELE_OPEN_CREATE);
    stats = profile_stats(store);
    run_expect_ok(stele_view_open(store, &view, &error), &error, "open view");
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        committers[owner] = (struct committer){
            .store = store, .owner = owner, .n = history_check(view, owner).n};
    }
    stele_view_close(view);
    parent_send(&(struct message){.kind = SAID_OPENED,
                                  .n = stats.lsn_applied,
                                  .lsn = stats.lsn_applying,
                                  .more = stats.recovery_replayed_records});
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        if (pthread_create(&threads[owner], NULL, commit_without_pause,
                           &committers[owner]) != 0) {
            run_fail("create a thread");
        }
    }
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        pthread_join(threads[owner], NULL);
    }
    return EXIT_FAILURE; /* They do not end. */
}

/* ---- The reader process ------------------------------------------------------- */

static void look(struct stele *store, struct history_seen seen[OWNERS],
                 uint64_t *lsn_out)
{
    struct stele_view *view;
    struct stele_error error;

    run_expect_ok(stele_view_open(store, &view, &error), &error, "open view");
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        seen[owner] = history_check(view, owner);
    }
    *lsn_out = stele_view_lsn(view);
    stele_view_close(view);
}

static int reader_main(const char *path, const char *profile_name)
{
    const struct profile profile = profile_named(profile_name);
    struct history_seen seen[OWNERS];
    struct stele_error error;
    struct stele *store = profile_open_ok(&profile, path, STELE_OPEN_READ_ONLY);
    uint64_t lsn;

    look(store, seen, &lsn);
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        parent_send(&(struct message){.kind = SAID_SEEN,
                                      .owner = owner,
                                      .n = seen[owner].n,
                                      .lsn = seen[owner].lsn,
                                      .more = lsn});
    }
    run_expect_ok(stele_close(store, &error), &error, "close");
    return EXIT_SUCCESS;
}

/* ---- One life ------------------------------------------------------------------- */

struct life_stats {
    uint64_t acks;
    uint64_t killed_opening;
    uint64_t opens;
    uint64_t opens_applying; /* With applying > applied. */
    uint64_t opens_replaying;
    uint64_t opens_torn; /* Row C. */
};

struct kill_test {
    struct profile profile;
    char *path;
    struct random_source random;
    bool exists; /* The store was seen to be there. */
    /* The last batch known of each owner: acknowledged, or seen. */
    struct history_seen known[OWNERS];
    uint64_t lsn_max;      /* Of all of them. */
    uint64_t lsn_previous; /* lsn_max when the current life began. */
    struct life_stats stats;
};

static void note_open(struct kill_test *test, uint64_t applied,
                      uint64_t applying, uint64_t replayed)
{
    test->stats.opens++;
    test->stats.opens_applying += applying > applied ? 1 : 0;
    test->stats.opens_replaying += replayed > 0 ? 1 : 0;
    test->exists = true;
}

static void note_ack(struct kill_test *test, const struct message *ack)
{
    struct history_seen *known = &test->known[ack->owner];

    test->stats.acks++;
    if (ack->n != known->n + 1) {
        run_fail("owner %" PRIu32 ": batch %" PRIu64
                 " was acknowledged after batch %" PRIu64,
                 ack->owner, ack->n, known->n);
    }
    if (ack->lsn <= known->lsn || ack->lsn <= test->lsn_previous) {
        run_fail("owner %" PRIu32 ": batch %" PRIu64 " was given LSN %" PRIu64
                 ", not above its predecessor's %" PRIu64
                 " and all of earlier processes, up to %" PRIu64,
                 ack->owner, ack->n, ack->lsn, known->lsn, test->lsn_previous);
    }
    *known = (struct history_seen){.n = ack->n, .lsn = ack->lsn};
    if (ack->lsn > test->lsn_max) {
        test->lsn_max = ack->lsn;
    }
}

static void note_message(struct kill_test *test, const struct message *message)
{
    if (message->kind == SAID_ACK) {
        note_ack(test, message);
    } else if (message->kind == SAID_OPENED) {
        note_open(test, message->n, message->lsn, message->more);
    }
}

/* Listen for so long: the writer must not wait for us. */
static void listen_for(struct kill_test *test, const struct child *writer,
                       uint64_t listen_us)
{
    const uint64_t end_us = clock_us() + listen_us;

    for (uint64_t now_us = clock_us(); now_us < end_us; now_us = clock_us()) {
        struct message message;

        if (child_receive_within(writer, end_us - now_us, &message)) {
            note_message(test, &message);
        }
    }
}

/* Let a writer live until a random moment, and collect what it said. */
static void live_and_die(struct kill_test *test)
{
    const bool while_opening = random_below(&test->random, 4) == 0;
    const uint64_t acks_before = test->stats.acks;
    struct message message;
    struct child writer = child_start(
        (const char *const[]){"writer", test->path, test->profile.name, NULL});

    test->lsn_previous = test->lsn_max;
    if (!child_receive(&writer, &message)) {
        run_fail("the writer did not begin");
    }
    while (!while_opening && test->stats.acks == acks_before) {
        if (!child_receive(&writer, &message)) {
            run_fail("the writer ended before its first acknowledgement");
        }
        note_message(test, &message);
    }
    listen_for(test, &writer,
               random_below(&test->random,
                            while_opening ? OPENING_US_MAX : LIFE_US_MAX));
    child_kill(&writer);
    while (child_receive(&writer, &message)) {
        note_message(test, &message);
    }
    child_forget(&writer);
    test->stats.killed_opening += test->stats.acks == acks_before ? 1 : 0;
}

/* ---- What is left ------------------------------------------------------------------- */

/* Each owner has its last acknowledged batch, or the one that was under way. */
static void expect_nothing_lost(struct kill_test *test, const char *how,
                                const struct history_seen seen[OWNERS],
                                uint64_t lsn)
{
    if (lsn < test->lsn_max) {
        run_fail("%s: LSN %" PRIu64 " is visible, %" PRIu64 " was acknowledged",
                 how, lsn, test->lsn_max);
    }
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        struct history_seen *known = &test->known[owner];

        if (seen[owner].n != known->n && seen[owner].n != known->n + 1) {
            run_fail("%s: owner %" PRIu32 " is at batch %" PRIu64
                     ", acknowledged was %" PRIu64 " with LSN %" PRIu64,
                     how, owner, seen[owner].n, known->n, known->lsn);
        }
        if (seen[owner].n == known->n && seen[owner].lsn != known->lsn) {
            run_fail("%s: owner %" PRIu32 ": batch %" PRIu64 " has LSN %" PRIu64
                     ", acknowledged with %" PRIu64,
                     how, owner, known->n, seen[owner].lsn, known->lsn);
        }
        if (seen[owner].lsn <= known->lsn && seen[owner].n > known->n) {
            run_fail("%s: owner %" PRIu32 ": batch %" PRIu64 " has LSN %" PRIu64
                     ", its predecessor %" PRIu64,
                     how, owner, seen[owner].n, seen[owner].lsn, known->lsn);
        }
    }
    /* What has been seen stays. */
    memcpy(test->known, seen, sizeof test->known);
    if (lsn > test->lsn_max) {
        test->lsn_max = lsn;
    }
}

static void check_in_a_fresh_process(struct kill_test *test)
{
    struct history_seen seen[OWNERS] = {{0}};
    struct message message;
    uint64_t lsn = 0;
    uint32_t count = 0;
    struct child reader = child_start(
        (const char *const[]){"reader", test->path, test->profile.name, NULL});

    while (child_receive(&reader, &message)) {
        seen[message.owner] =
            (struct history_seen){.n = message.n, .lsn = message.lsn};
        lsn = message.more;
        count++;
    }
    child_join(&reader);
    child_forget(&reader);
    if (count != OWNERS) {
        run_fail("the reader told of %" PRIu32 " owners", count);
    }
    expect_nothing_lost(test, "read-only, in a fresh process", seen, lsn);
}

static void check_here(struct kill_test *test, struct stele *store,
                       const char *how)
{
    struct history_seen seen[OWNERS];
    uint64_t lsn;

    look(store, seen, &lsn);
    expect_nothing_lost(test, how, seen, lsn);
    profile_verify_ok(store);
}

static void check_for_reading(struct kill_test *test)
{
    struct stele_error error;
    struct stele *store =
        profile_open_ok(&test->profile, test->path, STELE_OPEN_READ_ONLY);

    check_here(test, store, "read-only");
    run_expect_ok(stele_close(store, &error), &error, "close");
}

enum ending { END_CLOSED, END_ABANDONED };

static void check_for_writing(struct kill_test *test, enum ending ending)
{
    struct stele_stats stats;
    struct stele_error error;
    struct stele *store =
        profile_open_ok(&test->profile, test->path, STELE_OPEN_CREATE);

    stats = profile_stats(store);
    note_open(test, stats.lsn_applied, stats.lsn_applying,
              stats.recovery_replayed_records);
    test->stats.opens_torn += stats.recovery_row == 'C' ? 1 : 0;
    check_here(test, store, "opened for writing");
    if (ending == END_ABANDONED) {
        store_abandon(store);
    } else {
        run_expect_ok(stele_close(store, &error), &error, "close");
    }
}

/* Look in one of several ways: what looking leaves behind differs, and with it
 * what the next writer finds. */
static void check_what_is_left(struct kill_test *test)
{
    /* Killed while it made the store: there may be nothing to read yet. */
    const uint64_t way = test->exists ? random_below(&test->random, 5) : 4;

    switch (way) {
    case 0:
        check_in_a_fresh_process(test);
        break;
    case 1:
        check_in_a_fresh_process(test);
        check_for_writing(test, END_CLOSED);
        break;
    case 2:
        check_for_reading(test);
        break;
    case 3:
        check_for_writing(test, END_CLOSED);
        break;
    default:
        check_for_writing(test, END_ABANDONED);
        break;
    }
}

/* ---- The tests ---------------------------------------------------------------------- */

static void kill_again_and_again(const char *profile_name)
{
    const uint64_t kills = run_setting("STELE_TEST_KILLS", KILLS_DEFAULT);
    struct kill_test test = {
        .profile = profile_named(profile_name),
        .path = temp_dir_make(),
        .random = run_random(strlen(profile_name)),
    };

    for (uint64_t kill = 0; kill < kills; kill++) {
        live_and_die(&test);
        check_what_is_left(&test);
    }
    check_for_writing(&test, END_CLOSED);
    check_for_reading(&test);
    printf("%s: %" PRIu64 " kills, %" PRIu64 " of them before the first ack; "
           "%" PRIu64 " acks; %" PRIu64 " opens for writing, %" PRIu64
           " replayed records, %" PRIu64 " found applying > applied, %" PRIu64
           " found a torn tail\n",
           profile_name, kills, test.stats.killed_opening, test.stats.acks,
           test.stats.opens, test.stats.opens_replaying,
           test.stats.opens_applying, test.stats.opens_torn);
    assert_true(test.stats.acks > kills);
    temp_dir_remove(test.path);
}

static void no_acknowledged_batch_is_lost_or_torn(void **state)
{
    (void)state;
    kill_again_and_again("default");
}

static void nor_while_it_rotates_and_checkpoints_all_the_time(void **state)
{
    (void)state;
    kill_again_and_again("tiny");
}

/* Creation is unfinished until ANCHOR has its name; then it is a store. */
static void a_store_killed_while_being_made_can_be_made_again(void **state)
{
    const uint64_t kills = run_setting("STELE_TEST_KILLS", KILLS_DEFAULT);
    struct kill_test test = {
        .profile = profile_named("tiny"),
        .random = run_random(0),
    };

    (void)state;
    for (uint64_t kill = 0; kill < kills; kill++) {
        struct message message;
        struct child writer;

        test.path = temp_dir_make();
        memset(test.known, 0, sizeof test.known);
        test.lsn_max = 0;
        test.lsn_previous = 0;
        writer = child_start((const char *const[]){"writer", test.path,
                                                   test.profile.name, NULL});
        if (!child_receive(&writer, &message)) {
            run_fail("the writer did not begin");
        }
        listen_for(&test, &writer, random_below(&test.random, OPENING_US_MAX));
        child_kill(&writer);
        while (child_receive(&writer, &message)) {
            note_message(&test, &message);
        }
        child_forget(&writer);
        check_for_writing(&test, END_CLOSED);
        temp_dir_remove(test.path);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_killed_while_being_made_can_be_made_again),
        cmocka_unit_test(no_acknowledged_batch_is_lost_or_torn),
        cmocka_unit_test(nor_while_it_rotates_and_checkpoints_all_the_time),
    };

    run_seed();
    if (argc == 4 && strcmp(argv[1], "writer") == 0) {
        return writer_main(argv[2], argv[3]);
    }
    if (argc == 4 && strcmp(argv[1], "reader") == 0) {
        return reader_main(argv[2], argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
