/*
 * tools/bench/workload_peers.c -- Stele beside other durable stores: single puts and
 * deletes, batches of deletes, many threads, and the delete of a range.
 *
 * All do the same through one interface (tools/bench/peers/peer.h), and make each
 * write durable. In a round each has a turn: it is opened, everything is measured,
 * it is closed; so no two are open at once, and what one leaves to be written is
 * written before the next one begins. A batch is encoded, or a transaction filled, within the time that
 * counts. What was deleted is put back outside of it, and counted once for each
 * size.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/crowd.h"
#include "tools/bench/peers/peers.h"
#include "tools/bench/peers/turn.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

enum { DIRECTORY_BYTES = 4096, LOOP_DELETES = 50, WARMING_PUTS = 10 };

static const uint64_t batch_ops[] = {50, 1000, 10000, 100000};
enum { BATCH_SIZES = 4, QUICK_BATCH_SIZES = 2 };

static const size_t thread_counts[] = {1, 4, 16, 64};
enum {
    THREAD_COUNTS = 4,
    QUICK_THREAD_COUNTS = 3,
    MANY_THREADS = 16,
    MOST_THREADS = 64,
    FEW_THREADS_SHARE = 6
};

struct peers_workload {
    char directory[DIRECTORY_BYTES];
    struct bench_size size;
    bool there[PEERS_MAX]; /* In the order of `peers`. */
    struct turn_items items;
    uint64_t *numbers;
    uint64_t seed;
    unsigned rounds; /* That are over. */
};

/* ---- The directories ---------------------------------------------------------------- */

static bool open_turn(const struct peers_workload *self, struct turn *turn,
                      const struct peer *peer, const char *suffix)
{
    char path[DIRECTORY_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s%s", self->directory, peer->name, suffix);
    return turn_open(turn, peer, path);
}

/* That a range ends before its end: three keys behind all others. */
static void check_range(const struct turn *turn, uint64_t items)
{
    static const struct peer_item range[] = {
        {"range/1", 7, "", 0}, {"range/2", 7, "", 0}, {"range/3", 7, "", 0}};

    turn->peer->put(turn->db, turn->thread, range, 3);
    turn_must_hold(turn, items + 3);
    turn->peer->delete_range(turn->db, turn->thread, "range/0", "range/3");
    turn_must_hold(turn, items + 1);
    turn->peer->delete_range(turn->db, turn->thread, "range/", "range0");
    turn_must_hold(turn, items);
}

static void load(struct turn *turn, struct turn_items *items, uint64_t count)
{
    turn_load(turn, items, count);
    if (turn->peer->settle != NULL) {
        turn->peer->settle(turn->db);
    }
}

static void *peers_start(const char *directory, const struct bench_size *size)
{
    struct peers_workload *self = must_have(calloc(1, sizeof *self));

    snprintf(self->directory, sizeof self->directory, "%s", directory);
    self->size = *size;
    self->items = turn_items_create(size->items);
    self->numbers = must_have(malloc(size->items * sizeof self->numbers[0]));
    self->seed = 3;
    for (size_t i = 0; peers[i] != NULL; i++) {
        struct turn turn;

        self->there[i] = open_turn(self, &turn, peers[i], "");
        if (self->there[i]) {
            load(&turn, &self->items, size->items);
            if (peers[i]->delete_range != NULL) {
                check_range(&turn, size->items);
            }
            turn_close(&turn);
        }
    }
    return self;
}

/* ---- What is measured ------------------------------------------------------------------ */

static void choose(struct peers_workload *self, uint64_t count)
{
    random_numbers(self->numbers, count, self->size.items, &self->seed);
    turn_items_name(&self->items, self->numbers, 0, count);
}

static void put_number(const struct turn *turn, void *thread, uint64_t number)
{
    char key[ITEM_KEY_BYTES + 1];
    const struct peer_item item = {
        .key = key,
        .key_bytes = ITEM_KEY_BYTES,
        .value = item_value,
        .value_bytes = ITEM_VALUE_BYTES,
    };

    item_key(key, number);
    turn->peer->put(turn->db, thread, &item, 1);
}

/* The first writes behind opening may have to make a file, or to read one. */
static void warm(const struct turn *turn)
{
    for (uint64_t i = 0; i < WARMING_PUTS; i++) {
        put_number(turn, turn->thread, i);
    }
}

/* Repeats, the first of them in any case, until time is up. */
static bool goes_on(const struct peers_workload *self, uint64_t repeat,
                    uint64_t repeats, uint64_t start_ns)
{
    return repeat == 0 ||
           (repeat < repeats &&
            clock_ns() - start_ns < self->size.peer_cap_ms * 1000000);
}

static void add(struct stats *stats, const char *what, const struct turn *turn,
                uint64_t x, double value)
{
    stats_add_point(stats, what, turn->peer->name, x, value);
}

static void measure_put(struct peers_workload *self, const struct turn *turn,
                        struct stats *stats)
{
    const uint64_t repeats = self->size.repeats_small;
    const uint64_t begin_ns = clock_ns();
    char name[SERIES_NAME_BYTES];
    struct samples samples = {0};

    choose(self, repeats);
    for (uint64_t i = 0; goes_on(self, i, repeats, begin_ns); i++) {
        const uint64_t start_ns = clock_ns();

        turn->peer->put(turn->db, turn->thread, &self->items.items[i], 1);
        samples_add(&samples, (double)(clock_ns() - start_ns) / 1e3);
    }
    snprintf(name, sizeof name, "peer_put@%s", turn->peer->name);
    stats_add(stats, name, samples_median(&samples));
    samples_free(&samples);
}

/* Of LOOP_DELETES; as many of them as there was time for are `done_out`. */
static double loop_delete_us(const struct peers_workload *self,
                             const struct turn *turn, uint64_t *done_out)
{
    const uint64_t start_ns = clock_ns();
    uint64_t done = 0;

    while (goes_on(self, done, LOOP_DELETES, start_ns)) {
        turn->peer->delete (turn->db, turn->thread, &self->items.items[done],
                            1);
        done++;
    }
    *done_out = done;
    return (double)(clock_ns() - start_ns) / 1e3 * LOOP_DELETES / (double)done;
}

static void measure_loop_delete(struct peers_workload *self,
                                const struct turn *turn, struct stats *stats)
{
    const uint64_t begin_ns = clock_ns();
    struct samples samples = {0};

    for (uint64_t i = 0; goes_on(self, i, self->size.repeats_large, begin_ns);
         i++) {
        uint64_t done;

        choose(self, LOOP_DELETES);
        samples_add(&samples, loop_delete_us(self, turn, &done));
        if (i == 0) {
            turn_must_hold(turn, self->size.items - done);
        }
        turn_put(turn, &self->items, done);
    }
    add(stats, "peer_loop_delete", turn, LOOP_DELETES,
        samples_median(&samples));
    samples_free(&samples);
}

static void measure_delete(struct peers_workload *self, const struct turn *turn,
                           struct stats *stats, uint64_t ops)
{
    const uint64_t begin_ns = clock_ns();
    struct samples samples = {0};

    for (uint64_t i = 0; goes_on(self, i, self->size.repeats_large, begin_ns);
         i++) {
        uint64_t start_ns;

        choose(self, ops);
        start_ns = clock_ns();
        turn->peer->delete (turn->db, turn->thread, self->items.items, ops);
        samples_add(&samples, (double)(clock_ns() - start_ns) / 1e3);
        if (i == 0) {
            turn_must_hold(turn, self->size.items - ops);
        }
        turn_put(turn, &self->items, ops);
    }
    add(stats, "peer_delete", turn, ops, samples_median(&samples));
    samples_free(&samples);
}

/* ---- Threads ------------------------------------------------------------------------------ */

static void *begin_thread(void *context)
{
    const struct turn *turn = context;

    return turn->peer->thread_begin == NULL
               ? NULL
               : turn->peer->thread_begin(turn->db);
}

static void end_thread(void *context, void *thread)
{
    const struct turn *turn = context;

    if (turn->peer->thread_end != NULL) {
        turn->peer->thread_end(turn->db, thread);
    }
}

static void put_one(void *context, void *thread, uint64_t number)
{
    put_number(context, thread, number);
}

static uint64_t memtables_filled(const struct turn *turn)
{
    return turn->peer->memtables_filled == NULL
               ? 0
               : turn->peer->memtables_filled(turn->db);
}

static void measure_threads(const struct peers_workload *self,
                            struct turn *turn, struct stats *stats,
                            size_t threads)
{
    const struct crowd crowd = {
        .context = turn,
        .begin = begin_thread,
        .end = end_thread,
        .step = put_one,
        .items = self->size.items,
    };
    const uint64_t filled_before = memtables_filled(turn);
    const uint64_t share = threads < MANY_THREADS ? FEW_THREADS_SHARE : 1;
    const double puts =
        crowd_run(&crowd, threads, self->size.peer_threads_ms / share);

    add(stats, "peer_threads", turn, threads, puts);
    if (threads == MOST_THREADS && turn->peer->memtables_filled != NULL) {
        add(stats, "peer_threads_memtables", turn, threads,
            (double)(memtables_filled(turn) - filled_before));
    }
}

/* ---- A range ---------------------------------------------------------------------------------- */

/* In a store of its own, which is closed and opened again behind the loading: that
 * is settled then, as far as the store does that. */
static void measure_prefix_delete(struct peers_workload *self,
                                  const struct peer *peer, struct stats *stats)
{
    char name[SERIES_NAME_BYTES];
    struct turn turn;
    uint64_t start_ns;

    (void)open_turn(self, &turn, peer, "-range");
    load(&turn, &self->items, self->size.prefix_keys);
    turn_close(&turn);

    (void)open_turn(self, &turn, peer, "-range");
    warm(&turn);
    start_ns = clock_ns();
    peer->delete_range(turn.db, turn.thread, "item/", "item0");
    snprintf(name, sizeof name, "peer_prefix_delete@%s", peer->name);
    stats_add(stats, name, (double)(clock_ns() - start_ns) / 1e3);
    turn_must_hold(&turn, 0);
    turn_close(&turn);
}

/* ---- The workload ----------------------------------------------------------------------------- */

static void measure_all(struct peers_workload *self, const struct peer *peer,
                        struct stats *stats)
{
    const size_t sizes = self->size.quick ? QUICK_BATCH_SIZES : BATCH_SIZES;
    const size_t counts = peer->rewrites_all ? 1
                          : self->size.quick ? QUICK_THREAD_COUNTS
                                             : THREAD_COUNTS;
    struct turn turn;

    (void)open_turn(self, &turn, peer, "");
    warm(&turn);
    measure_put(self, &turn, stats);
    measure_loop_delete(self, &turn, stats);
    for (size_t i = 0; i < sizes; i++) {
        measure_delete(self, &turn, stats, batch_ops[i]);
    }
    for (size_t i = 0; i < counts; i++) {
        measure_threads(self, &turn, stats, thread_counts[i]);
    }
    turn_must_hold(&turn, self->size.items);
    turn_close(&turn);
}

static void take_turn(struct peers_workload *self, const struct peer *peer,
                      struct stats *stats)
{
    sync(); /* What another one has left to be written. */
    measure_all(self, peer, stats);
    if (peer->delete_range != NULL) {
        sync();
        measure_prefix_delete(self, peer, stats);
    }
}

/* Each round begins with another one, so that nobody always follows the same. */
static void peers_round(void *workload, struct stats *stats)
{
    struct peers_workload *self = workload;
    size_t count = 0;

    while (peers[count] != NULL) {
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t turn = (self->rounds + i) % count;

        if (self->there[turn]) {
            take_turn(self, peers[turn], stats);
        }
    }
    self->rounds++;
}

static void peers_finish(void *workload)
{
    struct peers_workload *self = workload;

    turn_items_destroy(&self->items);
    free(self->numbers);
    free(self);
}

static const char *const embedded[] = {
    "lmdb", "sqlite", "rocksdb", "leveldb", "berkeley", "wiredtiger", NULL};
static const char *const redis[] = {"redis", NULL};
static const char *const rocksdb[] = {"rocksdb", NULL};
static const char *const grouping[] = {"rocksdb",  "leveldb", "wiredtiger",
                                       "berkeley", "redis",   NULL};

static const struct bench_ratio ratios[] = {
    {"durable put, p50, over the best embedded store", "peer_put@stele", "us",
     BENCH_AT_MOST, 0, .rivals = embedded},
    {"50 single deletes, over the same", "peer_loop_delete@stele#50", "us",
     BENCH_AT_MOST, 0, .rivals = embedded},
    {"batch delete, 50 items, over the best embedded store",
     "peer_delete@stele#50", "us", BENCH_AT_MOST, 0.65, .rivals = embedded},
    {"batch delete, 1,000 items, over the same", "peer_delete@stele#1000", "us",
     BENCH_AT_MOST, 0.25, .rivals = embedded},
    {"batch delete, 10,000 items, over the same", "peer_delete@stele#10000",
     "us", BENCH_AT_MOST, 0.2, .rivals = embedded},
    {"batch delete, 10,000 items, over Redis", "peer_delete@stele#10000", "us",
     BENCH_AT_MOST, 1.0, .rivals = redis},
    {"batch delete, 100,000 items, over the best embedded store",
     "peer_delete@stele#100000", "us", BENCH_AT_MOST, 0, .rivals = embedded},
    {"prefix delete, 1,000,000 keys, over RocksDB", "peer_prefix_delete@stele",
     "us", BENCH_AT_MOST, 1.0, .rivals = rocksdb},
    {"16 threads of durable puts, over the best that groups them",
     "peer_threads@stele#16", "/s", BENCH_AT_LEAST, 1.0, .rivals = grouping},
    {"64 threads, over the same", "peer_threads@stele#64", "/s", BENCH_AT_LEAST,
     1.5, .rivals = grouping},
    {"memtables that they filled meanwhile, over 2",
     "peer_threads_memtables@stele#64", "", BENCH_AT_LEAST, 1.0, .constant = 2},
};

static const struct bench_plot plots[] = {
    {"batch_delete", "Deleting many items as one durable batch",
     "items in the batch", "us", "peer_delete"},
    {"threads", "Durable puts by many threads", "threads", "durable puts/s",
     "peer_threads"},
};

const struct bench_workload workload_peers = {
    .name = "peers",
    .ratios = ratios,
    .ratio_count = sizeof ratios / sizeof ratios[0],
    .plots = plots,
    .plot_count = sizeof plots / sizeof plots[0],
    .start = peers_start,
    .round = peers_round,
    .finish = peers_finish,
};
