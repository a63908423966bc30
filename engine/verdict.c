/* engine/verdict.c -- see engine/verdict.h. */
#include "engine/verdict.h"

#include "base/error.h"

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

static enum stele_status from_origin(struct stele *store,
                                     struct verdict *verdict,
                                     struct stele_error *error)
{
    enum stele_status status;

    verdict->index_is_foreign = store->index != NULL;
    verdict->input.base = wal_anchor_origin(&store->anchor);
    status = wal_recovery_run(&verdict->input, &store->recovery, error);
    if (status == STELE_OK && !store->recovery.base_found) {
        status =
            error_set(error, STELE_CORRUPT, "recover: row E: no base is left");
    }
    return status;
}

enum stele_status verdict_reach(struct stele *store, struct verdict *verdict,
                                struct stele_error *error)
{
    struct wal_claim *claims = verdict->claims;
    enum stele_status status;

    *verdict = (struct verdict){
        .claims = {[VERDICT_APPLIED] = {.name = "index applied"},
                   [VERDICT_APPLYING] = {.name = "index applying"}},
        .input = {.wal_dir = store->wal_dir,
                  .anchor = &store->anchor,
                  .claims = claims,
                  .claim_count = VERDICT_CLAIMS,
                  .min_expected_lsn = store->options.min_expected_lsn},
    };
    status = verdict_index_positions(store, &claims[VERDICT_APPLIED].position,
                                     &claims[VERDICT_APPLYING].position, error);
    if (status == STELE_CORRUPT) {
        /* Nothing it says can be believed, so it is no evidence either. */
        verdict->input.claim_count = 0;
        return from_origin(store, verdict, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    verdict->input.base = claims[VERDICT_APPLIED].position;
    status = wal_recovery_run(&verdict->input, &store->recovery, error);
    if (status != STELE_OK) {
        return status;
    }
    if (!store->recovery.base_found || claims[VERDICT_APPLIED].differs ||
        claims[VERDICT_APPLYING].differs) {
        /* Not a base of this log. Whether it is evidence shows when the whole
         * log is compared with it. */
        return from_origin(store, verdict, error);
    }
    return STELE_OK;
}
