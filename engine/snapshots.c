/* engine/snapshots.c -- see engine/snapshots.h. */
#include "engine/snapshots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "engine/checkpoint.h"
#include "engine/damage.h"
#include "engine/keepers.h"
#include "engine/quarantine.h"
#include "engine/retained.h"
#include "engine/retention.h"
#include "engine/snapshot_copy.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"

enum { NS_PER_MS = 1000000 };

enum phase {
    PHASE_COPY,
    PHASE_READ_BACK,
    PHASE_PUBLISH,
    PHASE_OTHER,
    PHASE_RETAIN
};

struct snapshot_run {
    struct mutex mutex; /* While its files change: for a fork's child. */
    enum phase phase;
    struct wal_position position; /* Of the state. */
    struct index_reader *index;
    struct snapshot_copy copy;
    struct snapshot_writer *writer;
    struct snapshot_reader *reader; /* What is read again. */
    struct snapshot_info info;
    uint64_t other_lsn;              /* The one that is read again; 0: none. */
    struct stele_error other_damage; /* Of the last one set aside for it. */
};

/* ---- When ------------------------------------------------------------------------ */

/* Log between two positions, the unused ends of segments included. */
static uint64_t log_bytes_between(const struct stele *store,
                                  const struct wal_position *from,
                                  const struct wal_position *to)
{
    if (to->unit <= from->unit) {
        return 0;
    }
    return (to->segment - wal_segment_behind(from)) * store->segment_bytes +
           to->end_offset - from->end_offset;
}

/* Whether the log behind `from` is more than one snapshot is worth: so snapshots
 * cost no more than the log does. Under keeper_mutex. */
static bool has_grown(const struct stele *store,
                      const struct wal_position *from)
{
    const uint64_t least = store->tuning.snapshot_log_bytes;
    const uint64_t last = store->snapshot_last_bytes;

    return log_bytes_between(store, from, &store->applied) >
           (last > least ? last : least);
}

bool snapshots_are_awaited(const struct stele *store)
{
    return store->snapshot_hurry > 0 &&
           store->snapshot_asks > store->snapshot_asks_failed &&
           store->snapshot_last.lsn < store->snapshot_wanted;
}

bool snapshots_due(struct stele *store)
{
    const uint64_t now_ns = io_clock_monotonic_ns(store->io);
    bool due;

    mutex_lock(&store->keeper_mutex);
    due = !store->index_dead && (snapshots_are_awaited(store) ||
                                 (now_ns >= store->snapshot_retry_ns &&
                                  !atomic_load(&store->index_damaged) &&
                                  has_grown(store, &store->snapshot_last)));
    mutex_unlock(&store->keeper_mutex);
    return due;
}

bool snapshots_are_late(struct stele *store)
{
    bool late;

    mutex_lock(&store->keeper_mutex);
    late = snapshots_are_awaited(store) ||
           (store->snapshot_run != NULL &&
            has_grown(store, &store->snapshot_run->position));
    mutex_unlock(&store->keeper_mutex);
    return late;
}

/* ---- Beginning ------------------------------------------------------------------------ */

static void run_free(struct stele *store, struct snapshot_run *run)
{
    if (run == NULL) {
        return;
    }
    snapshot_copy_close(&run->copy);
    index_reader_release(run->index);
    snapshot_reader_close(run->reader);
    if (atomic_load(&store->poisoned)) {
        /* Another may write here by now: no name is touched. */
        snapshot_writer_forsake(run->writer);
    } else {
        snapshot_writer_destroy(run->writer);
    }
    mutex_deinit(&run->mutex);
    free(run);
}

/* Is there a state of one LSN, that no snapshot has? */
static bool is_worth_taking(struct stele *store,
                            const struct index_reader *index)
{
    const struct wal_position *applied = index_reader_applied(index);
    bool taken;

    mutex_lock(&store->keeper_mutex);
    taken = applied->lsn <= store->snapshot_last.lsn;
    mutex_unlock(&store->keeper_mutex);
    return !taken && index_reader_applying(index)->unit <= applied->unit;
}

static enum stele_status begin(struct stele *store, struct snapshot_run *run,
                               struct stele_error *error)
{
    enum stele_status status;

    run->position = *index_reader_applied(run->index);
    status = snapshot_writer_create(store->snapshot_dir, store->uuid.bytes,
                                    run->position.lsn, &run->writer, error);
    return status == STELE_OK
               ? snapshot_copy_open(&run->copy, run->index, run->writer, error)
               : status;
}

static void tell_failure(struct stele *store, const struct stele_error *error)
{
    const uint64_t now_ns = io_clock_monotonic_ns(store->io);

    atomic_fetch_add(&store->stat_snapshot_failures, 1);
    atomic_store(&store->stat_snapshot_bytes_done, 0);
    mutex_lock(&store->keeper_mutex);
    store->snapshot_error = *error;
    store->snapshot_asks_failed = store->snapshot_asks_begun;
    store->snapshot_retry_ns =
        now_ns + store->tuning.snapshot_retry_ms * NS_PER_MS;
    condition_broadcast(&store->base_progress);
    mutex_unlock(&store->keeper_mutex);
}

/* It has failed: nothing is left of it. */
static enum stele_status give_up(struct stele *store,
                                 const struct stele_error *failure,
                                 struct stele_error *error)
{
    const enum stele_status status = failure->status;

    tell_failure(store, failure);
    return error_set(error, status, "snapshot: %.240s", failure->message);
}

enum stele_status snapshots_begin(struct stele *store,
                                  struct stele_error *error)
{
    struct stele_error failure = {0};
    struct snapshot_run *run;
    enum stele_status status;

    mutex_lock(&store->keeper_mutex);
    store->snapshot_asks_begun = store->snapshot_asks;
    mutex_unlock(&store->keeper_mutex);
    run = calloc(1, sizeof *run);
    if (run == NULL) {
        (void)error_no_memory(&failure, "snapshot");
        return give_up(store, &failure, error); /* Who waits is told. */
    }
    mutex_init(&run->mutex);
    status = index_reader_acquire(store->index, &run->index, &failure);
    if (status == STELE_OK && !is_worth_taking(store, run->index)) {
        run_free(store, run);
        return STELE_OK;
    }
    if (status == STELE_OK) {
        status = begin(store, run, &failure);
    }
    if (status != STELE_OK) {
        run_free(store, run);
        return give_up(store, &failure, error);
    }
    mutex_lock(&store->keeper_mutex);
    store->snapshot_run = run;
    mutex_unlock(&store->keeper_mutex);
    return STELE_OK;
}

/* ---- The steps --------------------------------------------------------------------------- */

static enum stele_status copy(struct stele *store, struct snapshot_run *run,
                              uint64_t bytes_max, struct stele_error *error)
{
    enum stele_status status;
    bool done = false;

    status = damage_note(
        store, snapshot_copy_advance(&run->copy, bytes_max, &done, error));
    if (status != STELE_OK || !done) {
        return status;
    }
    status = damage_note(store, snapshot_copy_finish(&run->copy, &run->position,
                                                     &run->info, error));
    if (status == STELE_OK) {
        snapshot_copy_close(&run->copy);
        index_reader_release(run->index);
        run->index = NULL;
        status = snapshot_reader_open(store->snapshot_dir, run->position.lsn,
                                      SNAPSHOT_TEMPORARY, store->uuid.bytes,
                                      &run->reader, error);
        run->phase = PHASE_READ_BACK;
    }
    return status;
}

/* Read on in run->reader. *done_out: to its end, and all of it verifies. */
static enum stele_status read_on(struct snapshot_run *run, uint64_t bytes_max,
                                 bool *done_out, struct stele_error *error)
{
    const enum stele_status status =
        snapshot_reader_verify(run->reader, bytes_max, done_out, error);

    if (status == STELE_OK && *done_out) {
        snapshot_reader_close(run->reader);
        run->reader = NULL;
    }
    return status;
}

/* What is on the disk is what was written. */
static enum stele_status read_back(struct snapshot_run *run, uint64_t bytes_max,
                                   struct stele_error *error)
{
    bool done;
    const enum stele_status status = read_on(run, bytes_max, &done, error);

    if (status == STELE_OK && done) {
        run->phase = PHASE_PUBLISH;
    }
    return status;
}

/* The newest one below `lsn` that seems to be a base: *lsn_out, 0: none. */
static enum stele_status find_other(struct stele *store, uint64_t lsn,
                                    uint64_t *lsn_out,
                                    struct stele_error *error)
{
    struct retained retained;
    const enum stele_status status = retained_read(store, &retained, error);

    *lsn_out = 0;
    if (status == STELE_OK) {
        const struct base_item *other = bases_newest(&retained.bases, lsn - 1);

        if (other != NULL && other->kind == BASE_SNAPSHOT) {
            *lsn_out = other->lsn;
        }
        retained_free(&retained);
    }
    return status;
}

static enum stele_status begin_other(struct stele *store,
                                     struct snapshot_run *run,
                                     struct stele_error *error)
{
    const uint64_t below =
        run->other_lsn == 0 ? run->position.lsn : run->other_lsn;
    enum stele_status status = find_other(store, below, &run->other_lsn, error);

    if (status != STELE_OK) {
        return status;
    }
    run->phase = run->other_lsn == 0 ? PHASE_RETAIN : PHASE_OTHER;
    return STELE_OK;
}

static enum stele_status publish(struct stele *store, struct snapshot_run *run,
                                 struct stele_error *error)
{
    bool names_unknown;
    enum stele_status status = store_check_writable(store, error);

    if (status == STELE_OK) {
        status = snapshot_writer_publish(run->writer, &names_unknown, error);
        if (status != STELE_OK && names_unknown) {
            store_poison(store, error);
        }
    }
    return status == STELE_OK ? begin_other(store, run, error) : status;
}

/* The log is about to go back to the other one only: what of it is on the disk? */
static enum stele_status check_other(struct stele *store,
                                     struct snapshot_run *run,
                                     uint64_t bytes_max,
                                     struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    bool done = false;

    if (run->reader == NULL) {
        status = snapshot_reader_open(store->snapshot_dir, run->other_lsn,
                                      SNAPSHOT_PUBLISHED, store->uuid.bytes,
                                      &run->reader, error);
        if (status == STELE_OK) {
            status = snapshot_reader_drop_cache(run->reader, error);
        }
    }
    if (status == STELE_OK) {
        status = read_on(run, bytes_max, &done, error);
    }
    if (status == STELE_OK) {
        run->phase = done ? PHASE_RETAIN : PHASE_OTHER;
        return STELE_OK;
    }
    snapshot_reader_close(run->reader);
    run->reader = NULL;
    if (!bases_is_damage(error)) {
        return status;
    }
    run->other_damage = *error;
    /* One that cannot be read may be sound: it stays, but does not count. */
    status = status == STELE_IO
                 ? STELE_OK
                 : snapshots_set_aside(store, run->other_lsn, error);
    return status == STELE_OK ? begin_other(store, run, error) : status;
}

static enum stele_status retain(struct stele *store, struct snapshot_run *run,
                                struct stele_error *error)
{
    const uint64_t counted[WAL_ANCHOR_SNAPSHOTS] = {run->position.lsn,
                                                    run->other_lsn};
    const enum stele_status status = retention_apply(store, counted, error);

    if (status != STELE_OK) {
        return status;
    }
    atomic_fetch_add(&store->stat_snapshots, 1);
    atomic_store(&store->stat_snapshot_bytes_done, 0);
    mutex_lock(&store->keeper_mutex);
    store->snapshot_last = run->position;
    store->snapshot_last_bytes = run->info.file_bytes;
    store->snapshot_retry_ns = 0;
    /* Told, though the new one is good. */
    store->snapshot_error = run->other_damage;
    store->snapshot_run = NULL;
    condition_broadcast(&store->base_progress);
    mutex_unlock(&store->keeper_mutex);
    return STELE_OK;
}

static enum stele_status step(struct stele *store, struct snapshot_run *run,
                              uint64_t bytes_max, struct stele_error *error)
{
    switch (run->phase) {
    case PHASE_COPY:
        return copy(store, run, bytes_max, error);
    case PHASE_READ_BACK:
        return read_back(run, bytes_max, error);
    case PHASE_PUBLISH:
        return publish(store, run, error);
    case PHASE_OTHER:
        return check_other(store, run, bytes_max, error);
    case PHASE_RETAIN:
        return retain(store, run, error);
    }
    return STELE_OK;
}

enum stele_status snapshots_advance(struct stele *store, uint64_t bytes_max,
                                    struct stele_error *error)
{
    struct snapshot_run *run = store->snapshot_run;
    struct stele_error failure = {0};
    enum stele_status status;
    bool over;

    status = store_check_writable(store, &failure);
    if (status == STELE_OK) {
        mutex_lock(&run->mutex);
        status = step(store, run, bytes_max, &failure);
        mutex_unlock(&run->mutex);
    }
    over = status != STELE_OK || store->snapshot_run == NULL;
    if (!over) {
        atomic_store(&store->stat_snapshot_bytes_done,
                     snapshot_writer_bytes(run->writer));
        return STELE_OK;
    }
    mutex_lock(&store->keeper_mutex);
    store->snapshot_run = NULL;
    mutex_unlock(&store->keeper_mutex);
    run_free(store, run);
    return status == STELE_OK ? STELE_OK : give_up(store, &failure, error);
}

void snapshots_abort(struct stele *store)
{
    struct snapshot_run *run = store->snapshot_run;

    mutex_lock(&store->keeper_mutex);
    store->snapshot_run = NULL;
    mutex_unlock(&store->keeper_mutex);
    atomic_store(&store->stat_snapshot_bytes_done, 0);
    run_free(store, run);
}

void snapshots_forsake(struct stele *store)
{
    struct snapshot_run *run = store->snapshot_run;

    if (run == NULL || !mutex_try_lock(&run->mutex)) {
        return;
    }
    index_reader_forsake(run->index);
    snapshot_reader_close(run->reader);
    snapshot_writer_forsake(run->writer);
    free(run);
}

/* ---- At open ------------------------------------------------------------------------------- */

static enum stele_status move_aside(struct stele *store, uint64_t lsn,
                                    struct stele_error *error)
{
    char name[NUMBERED_NAME_BYTES];
    enum stele_status status;

    numbered_name(lsn, SNAPSHOT_SUFFIX, name);
    status = quarantine_move(store, store->snapshot_dir, name, error);
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

static enum stele_status remove_file(struct stele *store, uint64_t lsn,
                                     struct stele_error *error)
{
    char name[NUMBERED_NAME_BYTES];

    numbered_name(lsn, SNAPSHOT_SUFFIX, name);
    return io_unlink(store->snapshot_dir, name, error);
}

static void forget_snapshot(struct wal_anchor *anchor, const void *context)
{
    const uint64_t *lsn = context;

    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        if (anchor->snapshots[index] == *lsn) {
            anchor->snapshots[index] = 0;
        }
    }
    if (anchor->snapshots[0] == 0) {
        anchor->snapshots[0] = anchor->snapshots[1];
        anchor->snapshots[1] = 0;
    }
}

enum stele_status snapshots_set_aside(struct stele *store, uint64_t lsn,
                                      struct stele_error *error)
{
    enum stele_status status = move_aside(store, lsn, error);

    mutex_lock(&store->keeper_mutex);
    if (store->snapshot_last.lsn == lsn) {
        /* There may be another of this LSN. */
        store->snapshot_last = (struct wal_position){.uuid = store->uuid};
    }
    mutex_unlock(&store->keeper_mutex);
    return status == STELE_OK
               ? store_write_anchor(store, forget_snapshot, &lsn, error)
               : status;
}

/* What ANCHOR names and is not there, or is of no use, is told of. */
static void tell_missing(struct stele *store, const struct bases *bases)
{
    for (size_t index = 0; index < WAL_ANCHOR_SNAPSHOTS; index++) {
        const uint64_t lsn = store->anchor.snapshots[index];
        const struct base_item *found = NULL;

        for (size_t place = 0; lsn != 0 && place < bases->count; place++) {
            if (bases->items[place].kind == BASE_SNAPSHOT &&
                bases->items[place].lsn == lsn) {
                found = &bases->items[place];
            }
        }
        if (lsn != 0 && found == NULL) {
            error_set(&store->snapshot_error, STELE_CORRUPT,
                      "snapshot/%016" PRIx64 ".snap: missing, ANCHOR names it",
                      lsn);
        } else if (found != NULL && !found->stands) {
            store->snapshot_error = found->why;
        }
    }
}

static enum stele_status settle(struct stele *store, const struct bases *bases,
                                uint64_t counted[WAL_ANCHOR_SNAPSHOTS],
                                struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    size_t count = 0;

    tell_missing(store, bases);
    for (size_t index = bases->count; status == STELE_OK && index > 0;
         index--) {
        const struct base_item *item = &bases->items[index - 1];

        if (item->kind != BASE_SNAPSHOT) {
            continue;
        }
        if (item->stands && item->counts && count < WAL_ANCHOR_SNAPSHOTS) {
            if (count == 0) {
                store->snapshot_last = item->position;
                store->snapshot_last_bytes = item->info.file_bytes;
            }
            counted[count++] = item->lsn;
        } else if (item->trimmed) {
            status = remove_file(store, item->lsn, error);
        } else if (!item->stands && !item->undecided && !item->unreadable &&
                   bases_is_damage(&item->why)) {
            status = move_aside(store, item->lsn, error);
        }
    }
    return status;
}

enum stele_status snapshots_settle(struct stele *store,
                                   uint64_t counted_out[WAL_ANCHOR_SNAPSHOTS],
                                   struct stele_error *error)
{
    struct bases bases;
    enum stele_status status =
        numbered_remove_temporaries(store->snapshot_dir, error);

    memset(counted_out, 0, WAL_ANCHOR_SNAPSHOTS * sizeof *counted_out);
    store->snapshot_last = (struct wal_position){.uuid = store->uuid};
    if (status == STELE_OK) {
        status = bases_read(store->snapshot_dir, store->wal_dir, &store->anchor,
                            &bases, error);
    }
    if (status == STELE_OK) {
        status = settle(store, &bases, counted_out, error);
        bases_free(&bases);
    }
    return status;
}

/* ---- The API ------------------------------------------------------------------------------- */

enum { WAIT_SLICE_NS = 100000000 }; /* Poison makes no noise: look again. */

/* Here and now, without pauses. */
static enum stele_status take_now(struct stele *store,
                                  struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    if (store->snapshot_run == NULL) {
        status = snapshots_begin(store, error);
    }
    while (status == STELE_OK && store->snapshot_run != NULL) {
        status =
            snapshots_advance(store, store->tuning.snapshot_step_bytes, error);
    }
    return status;
}

static uint64_t newest_lsn(struct stele *store)
{
    uint64_t lsn;

    mutex_lock(&store->keeper_mutex);
    lsn = store->snapshot_last.lsn;
    mutex_unlock(&store->keeper_mutex);
    return lsn;
}

/* Wait until the base keeper has taken one at or above `lsn`, or has failed in one
 * that it began after we asked: what failed before says nothing about ours. */
static enum stele_status wait_taken(struct stele *store, uint64_t lsn,
                                    struct stele_error *error)
{
    enum stele_status status = STELE_OK;
    uint64_t ask;

    mutex_lock(&store->keeper_mutex);
    ask = ++store->snapshot_asks;
    store->snapshot_hurry++;
    if (store->snapshot_wanted < lsn) {
        store->snapshot_wanted = lsn;
    }
    condition_broadcast(&store->base_work);
    while (store->snapshot_last.lsn < lsn && status == STELE_OK) {
        const struct stele_error *failure = NULL;

        status = store_check_writable(store, error);
        if (store->snapshot_asks_failed >= ask) {
            failure = &store->snapshot_error;
        } else if (store->checkpoint_error.status != STELE_OK) {
            failure = &store->checkpoint_error; /* It cannot even begin. */
        }
        if (status == STELE_OK && failure != NULL) {
            status = failure->status;
            if (error != NULL) {
                *error = *failure;
            }
        }
        if (status == STELE_OK) {
            condition_wait_for(&store->base_progress, &store->keeper_mutex,
                               WAIT_SLICE_NS);
        }
    }
    store->snapshot_hurry--;
    mutex_unlock(&store->keeper_mutex);
    return status;
}

enum stele_status stele_snapshot(struct stele *store, uint64_t *lsn_out,
                                 struct stele_error *error)
{
    enum stele_status status = store_check_process(store, error);
    uint64_t lsn = 0;

    if (status != STELE_OK) {
        return status;
    }
    if (store->read_only) {
        return error_set(error, STELE_READ_ONLY,
                         "snapshot: the store is open for reading only");
    }
    status = stele_checkpoint(store, error);
    if (status == STELE_OK) {
        mutex_lock(&store->keeper_mutex);
        lsn = store->applied.lsn;
        mutex_unlock(&store->keeper_mutex);
        while (status == STELE_OK && newest_lsn(store) < lsn) {
            status = store->tuning.manual ? take_now(store, error)
                                          : wait_taken(store, lsn, error);
        }
    }
    if (status == STELE_OK && lsn_out != NULL) {
        *lsn_out = newest_lsn(store);
    }
    return status;
}

/* What there is, for whoever asks. */
enum stele_status stele_snapshot_next(struct stele *store, uint64_t after,
                                      struct stele_snapshot_info *info_out,
                                      struct stele_error *error)
{
    struct retained retained;
    enum stele_status status = store_check_process(store, error);

    if (status == STELE_OK) {
        status = retained_read(store, &retained, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    status = STELE_NOT_FOUND;
    for (size_t index = 0; status != STELE_OK && index < retained.bases.count;
         index++) {
        const struct base_item *item = &retained.bases.items[index];

        if (item->kind == BASE_SNAPSHOT && item->lsn > after) {
            *info_out = (struct stele_snapshot_info){
                .lsn = item->lsn,
                .bytes = item->info.file_bytes,
                .keys = item->info.totals.keys,
                .tables = item->info.totals.tables,
                .counts = item->counts,
                .usable = item->stands,
                .why = item->why,
            };
            status = STELE_OK;
        }
    }
    retained_free(&retained);
    return status == STELE_OK
               ? STELE_OK
               : error_set(error, STELE_NOT_FOUND,
                           "no snapshot above LSN %" PRIu64, after);
}
