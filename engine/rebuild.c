/* engine/rebuild.c -- see engine/rebuild.h. */
#include "engine/rebuild.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/replay.h"
#include "engine/tally.h"
#include "snapshot/reader.h"

enum { PAGE_BYTES = 4096, ENTRY_OVERHEAD_BYTES = 16, PROGRESS_BYTES = 1 << 20 };

struct rebuild {
    const struct rebuild_plan *plan;
    struct index *index;
    struct wal_position applied;
    struct wal_position read; /* In `replay`, the records after `applied`. */
    struct replay replay;
};

static void tell(const struct rebuild_plan *plan, const char *step,
                 uint64_t done, uint64_t total)
{
    if (plan->progress != NULL) {
        plan->progress(plan->progress_context, step, done, total);
    }
}

/* ---- The base ------------------------------------------------------------------- */

/* Loading a snapshot. */
struct load {
    struct rebuild *rebuild;
    struct snapshot_reader *reader;
    struct tally tally;
    struct index_writer *writer; /* NULL: none begun. */
    uint64_t bytes;              /* In this transaction. */
    uint64_t told_bytes;
};

static enum stele_status load_commit(struct load *load,
                                     struct stele_error *error)
{
    const struct wal_position *position = &load->rebuild->plan->base->position;
    struct index_writer *writer = load->writer;

    load->writer = NULL;
    load->bytes = 0;
    return writer == NULL
               ? STELE_OK
               : index_writer_commit(writer, position, position, error);
}

static enum stele_status load_entry(struct load *load,
                                    const struct snapshot_entry *entry,
                                    struct stele_error *error)
{
    const struct rebuild_plan *plan = load->rebuild->plan;
    enum stele_status status = STELE_OK;

    if (load->writer == NULL) {
        status = index_writer_begin(load->rebuild->index, &load->writer, error);
    }
    if (status == STELE_OK) {
        status =
            index_writer_append(load->writer, entry->key, entry->stored, error);
    }
    load->bytes += entry->key.size + entry->stored.size + ENTRY_OVERHEAD_BYTES;
    if (status == STELE_OK && load->bytes >= plan->pages_max * PAGE_BYTES) {
        status = load_commit(load, error);
    }
    return status;
}

/* The next entry of the snapshot, verified; NOT_FOUND: that was all. */
static enum stele_status next_entry(struct load *load,
                                    struct snapshot_entry *entry,
                                    struct stele_error *error)
{
    enum stele_status status = snapshot_reader_next(load->reader, entry, error);

    if (status == STELE_OK) {
        return tally_add(&load->tally, entry->key, entry->stored, error);
    }
    if (status != STELE_NOT_FOUND) {
        return status;
    }
    status = tally_end(&load->tally, error);
    if (status == STELE_OK) {
        status = tally_check_totals(
            &load->tally, &snapshot_reader_info(load->reader)->totals, error);
    }
    return status == STELE_OK ? STELE_NOT_FOUND : status;
}

static void tell_load(struct load *load)
{
    const uint64_t done = snapshot_reader_bytes(load->reader);

    if (done - load->told_bytes >= PROGRESS_BYTES) {
        load->told_bytes = done;
        tell(load->rebuild->plan, "snapshot into the index", done,
             snapshot_reader_info(load->reader)->file_bytes);
    }
}

static enum stele_status load_all(struct load *load, bool *base_damaged_out,
                                  struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    while (status == STELE_OK) {
        struct snapshot_entry entry;
        struct stele_error failure = {0};

        status = next_entry(load, &entry, &failure);
        if (status == STELE_NOT_FOUND) {
            return load_commit(load, error);
        }
        if (status != STELE_OK) {
            *base_damaged_out = bases_is_damage(&failure);
            if (error != NULL) {
                *error = failure;
            }
            return status;
        }
        status = load_entry(load, &entry, error);
        tell_load(load);
    }
    return status;
}

static enum stele_status load_snapshot(struct rebuild *rebuild,
                                       bool *base_damaged_out,
                                       struct stele_error *error)
{
    const struct rebuild_plan *plan = rebuild->plan;
    struct load load = {.rebuild = rebuild};
    struct stele_error failure = {0};
    char where[40];
    enum stele_status status = snapshot_reader_open(
        plan->snapshot_dir, plan->base->lsn, SNAPSHOT_PUBLISHED,
        plan->base->info.uuid, &load.reader, &failure);

    if (status != STELE_OK) {
        *base_damaged_out = bases_is_damage(&failure);
        if (error != NULL) {
            *error = failure;
        }
        return status;
    }
    snprintf(where, sizeof where, "snapshot/%016" PRIx64 ".snap",
             plan->base->lsn);
    tally_init(&load.tally, where, NULL, NULL);
    status = load_all(&load, base_damaged_out, error);
    index_writer_abort(load.writer);
    snapshot_reader_close(load.reader);
    return status;
}

/* ---- The log ---------------------------------------------------------------------- */

static enum stele_status fresh_memtable(struct rebuild *rebuild,
                                        struct stele_error *error)
{
    memtable_unref(rebuild->replay.memtable);
    rebuild->replay.memtable = NULL;
    replay_deinit(&rebuild->replay);
    return memtable_create(rebuild->plan->memtable_bytes,
                           rebuild->plan->hash_seed, &rebuild->replay.memtable,
                           error);
}

static enum stele_status flush(struct rebuild *rebuild,
                               struct stele_error *error)
{
    const struct state_layer layer = {.memtable = rebuild->replay.memtable,
                                      .ranges = rebuild->replay.ranges};
    struct checkpoint *checkpoint;
    enum stele_status status = checkpoint_create(
        rebuild->index, &layer, &rebuild->applied, &rebuild->read,
        rebuild->plan->pages_max, &checkpoint, error);
    bool done = false;

    if (status != STELE_OK) {
        return status;
    }
    while (status == STELE_OK && !done) {
        status = checkpoint_step(checkpoint, UINT64_MAX, &done, error);
    }
    checkpoint_destroy(checkpoint);
    if (status == STELE_OK) {
        rebuild->applied = rebuild->read;
        status = fresh_memtable(rebuild, error);
    }
    return status;
}

static enum stele_status replay_log(struct rebuild *rebuild,
                                    struct wal_reader *reader,
                                    struct stele_error *error)
{
    const struct rebuild_plan *plan = rebuild->plan;
    enum stele_status status = STELE_OK;

    rebuild->replay.lsn_max = plan->lsn_last;
    while (status == STELE_OK && rebuild->read.unit < plan->unit_last) {
        struct wal_reader_unit unit;

        status = wal_reader_next_whole(reader, &unit,
                                       "was when recovery read it", error);
        if (status == STELE_OK) {
            status = replay_unit(&rebuild->replay, &unit, error);
            rebuild->read = unit.position;
        }
        if (status == STELE_OK &&
            memtable_bytes(rebuild->replay.memtable) >= plan->memtable_bytes) {
            tell(plan, "log into the index", rebuild->read.unit,
                 plan->unit_last);
            status = flush(rebuild, error);
        }
    }
    if (status == STELE_OK && plan->tail == REBUILD_ALL &&
        rebuild->read.unit > rebuild->applied.unit) {
        status = flush(rebuild, error);
    }
    return status;
}

static enum stele_status fill(struct rebuild *rebuild, bool *base_damaged_out,
                              struct stele_error *error)
{
    const struct rebuild_plan *plan = rebuild->plan;
    struct wal_reader reader;
    enum stele_status status = STELE_OK;

    if (plan->base->kind == BASE_SNAPSHOT) {
        status = load_snapshot(rebuild, base_damaged_out, error);
    }
    if (status == STELE_OK) {
        status = fresh_memtable(rebuild, error);
    }
    if (status == STELE_OK) {
        status = wal_reader_open(&reader, plan->wal_dir, &rebuild->read,
                                 plan->segment_oldest, IO_OPEN_READ, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    status = replay_log(rebuild, &reader, error);
    wal_reader_close(&reader);
    return status;
}

enum stele_status rebuild_index(const struct rebuild_plan *plan,
                                bool *base_damaged_out,
                                struct stele_error *error)
{
    struct rebuild rebuild = {
        .plan = plan,
        .applied = plan->base->position,
        .read = plan->base->position,
    };
    enum stele_status status =
        index_create(plan->dir, &plan->options, &plan->identity,
                     &plan->base->position, error);

    *base_damaged_out = false;
    if (status == STELE_OK) {
        status = index_open(plan->dir, &plan->options, &rebuild.index, error);
    }
    if (status == STELE_OK) {
        status = fill(&rebuild, base_damaged_out, error);
    }
    index_close(rebuild.index);
    memtable_unref(rebuild.replay.memtable);
    replay_deinit(&rebuild.replay);
    return status;
}
