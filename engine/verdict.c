/* engine/verdict.c -- see engine/verdict.h. */
#include "engine/verdict.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "engine/bases.h"

enum { SOURCE_INDEX, SOURCE_SNAPSHOTS /* One number each, from here on. */ };

enum stele_status verdict_index_positions(struct stele *store,
                                          struct wal_position *applied_out,
                                          struct wal_position *applying_out,
                                          struct stele_error *error)
{
    struct index_reader *reader;
    enum stele_status status;

    if (store->index == NULL) {
        *applied_out = wal_anchor_origin(&store->anchor);
        *applying_out = *applied_out;
        return STELE_OK;
    }
    status = index_reader_acquire(store->index, &reader, error);
    if (status == STELE_OK) {
        *applied_out = *index_reader_applied(reader);
        *applying_out = *index_reader_applying(reader);
        index_reader_release(reader);
    }
    return status;
}

/* What the snapshots say of the log, the newest first. */
static void claim_for_snapshots(const struct bases *bases,
                                struct verdict *verdict)
{
    size_t count = VERDICT_SNAPSHOTS;

    for (size_t index = bases->count; index > 0 && count < VERDICT_CLAIMS;
         index--) {
        const struct base_item *item = &bases->items[index - 1];

        if (item->kind != BASE_SNAPSHOT || !item->claims) {
            continue;
        }
        snprintf(verdict->names[count], VERDICT_NAME_BYTES,
                 "snapshot %016" PRIx64, item->lsn);
        verdict->claims[count] = (struct wal_claim){
            .name = verdict->names[count],
            .source = SOURCE_SNAPSHOTS + (unsigned)index,
            .position = item->position,
        };
        count++;
    }
    verdict->input.claim_count = count;
}

static enum stele_status run_from(struct stele *store, struct verdict *verdict,
                                  const struct wal_position *base,
                                  struct stele_error *error)
{
    verdict->input.base = *base;
    return wal_recovery_run(&verdict->input, &store->recovery, error);
}

/* Without an index, from the newest base: the log has to be whole from there. With
 * one that is not of this log, from the oldest, so that as much of the log as there
 * is can be compared with what the index says. */
static enum stele_status run_without_index(struct stele *store,
                                           struct verdict *verdict,
                                           const struct bases *bases,
                                           struct stele_error *error)
{
    const struct base_item *base = store->index == NULL
                                       ? bases_newest(bases, UINT64_MAX)
                                       : bases_oldest(bases);
    enum stele_status status;

    verdict->index_is_foreign = store->index != NULL;
    if (base == NULL) {
        const struct stele_error *why = bases_why_none(bases);

        return error_set(error,
                         why != NULL && why->status == STELE_IO ? STELE_IO
                                                                : STELE_CORRUPT,
                         "recover: row E: no base is left: no index%s%.150s",
                         why == NULL ? ", no snapshot" : "; ",
                         why == NULL ? "" : why->message);
    }
    status = run_from(store, verdict, &base->position, error);
    if (status == STELE_OK && !store->recovery.base_found) {
        status =
            error_set(error, STELE_CORRUPT, "recover: row E: no base is left");
    }
    return status;
}

static enum stele_status run(struct stele *store, struct verdict *verdict,
                             const struct bases *bases,
                             struct stele_error *error)
{
    struct wal_claim *claims = verdict->claims;
    enum stele_status status;

    claim_for_snapshots(bases, verdict);
    status = verdict_index_positions(store, &claims[VERDICT_APPLIED].position,
                                     &claims[VERDICT_APPLYING].position, error);
    if (status == STELE_CORRUPT) {
        /* Nothing it says can be believed, so it is no evidence either. */
        claims[VERDICT_APPLIED].position = wal_anchor_origin(&store->anchor);
        claims[VERDICT_APPLYING].position = claims[VERDICT_APPLIED].position;
        return run_without_index(store, verdict, bases, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (store->index == NULL) {
        return run_without_index(store, verdict, bases, error);
    }
    status = run_from(store, verdict, &claims[VERDICT_APPLIED].position, error);
    if (status != STELE_OK) {
        return status;
    }
    if (!store->recovery.base_found || claims[VERDICT_APPLIED].differs ||
        claims[VERDICT_APPLYING].differs) {
        /* Not a base of this log. Whether it is evidence shows when the whole
         * log is compared with it. */
        return run_without_index(store, verdict, bases, error);
    }
    return STELE_OK;
}

enum stele_status verdict_reach(struct stele *store, struct verdict *verdict,
                                struct stele_error *error)
{
    struct bases bases;
    enum stele_status status;

    *verdict = (struct verdict){
        .claims = {[VERDICT_APPLIED] = {.name = "index applied",
                                        .source = SOURCE_INDEX},
                   [VERDICT_APPLYING] = {.name = "index applying",
                                         .source = SOURCE_INDEX}},
        .input = {.wal_dir = store->wal_dir,
                  .anchor = &store->anchor,
                  .claims = verdict->claims,
                  .min_expected_lsn = store->options.min_expected_lsn},
    };
    status = bases_read(store->snapshot_dir, store->wal_dir, &store->anchor,
                        &bases, error);
    if (status == STELE_OK) {
        status = run(store, verdict, &bases, error);
        bases_free(&bases);
    }
    return status;
}
