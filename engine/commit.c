/*
 * engine/commit.c -- the committing half of engine/stele.h: what is checked and
 * computed in the caller's thread, before a request is queued.
 */
#include "engine/commit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/batch.h"
#include "engine/commit_queue.h"

/* Everything about a batch that can be refused without looking at the state. */
static enum stele_status check_batch(const struct stele *store,
                                     const struct stele_batch *batch,
                                     enum stele_durability durability,
                                     struct stele_error *error)
{
    const uint64_t record_bytes_max =
        store->segment_bytes - COMMIT_SEGMENT_RESERVED_BYTES;
    const enum stele_status status = store_check_process(store, error);

    if (status != STELE_OK) {
        return status;
    }
    if (store->read_only) {
        return error_set(error, STELE_READ_ONLY,
                         "commit: the store is open for reading only");
    }
    if (durability != STELE_DURABLE && durability != STELE_RELAXED) {
        return error_set(error, STELE_INVALID, "commit: unknown durability %d",
                         (int)durability);
    }
    if (batch->op_count == 0) {
        return error_set(error, STELE_INVALID, "commit: the batch is empty");
    }
    if (batch->op_count > store->options.batch_ops_max) {
        return error_set(error, STELE_TOO_BIG,
                         "commit: the batch has %" PRIu32
                         " operations, at most %" PRIu64 " are allowed",
                         batch->op_count, store->options.batch_ops_max);
    }
    if (batch->value_bytes_max > store->options.value_bytes_max) {
        return error_set(
            error, STELE_TOO_BIG,
            "commit: a value has %zu bytes, at most %" PRIu64 " are allowed",
            batch->value_bytes_max, store->options.value_bytes_max);
    }
    if (batch->bytes > record_bytes_max) {
        return error_set(error, STELE_TOO_BIG,
                         "commit: the record has %zu bytes, at most %" PRIu64
                         " fit into a segment",
                         batch->bytes, record_bytes_max);
    }
    return STELE_OK;
}

/* One commit of a batch at a time: its buffer is the record, and two LSNs in it
 * would ruin the log. */
static bool claim(struct stele_batch *batch, struct stele_error *error)
{
    if (atomic_exchange(&batch->committing, true)) {
        error_set(error, STELE_INVALID,
                  "commit: another commit of this batch is under way");
        return false;
    }
    return true;
}

static struct commit_request batch_request(struct stele *store,
                                           struct stele_batch *batch,
                                           enum stele_durability durability,
                                           struct stele_commit_result *result)
{
    /* In the caller's thread, beside the other committers', not in the
     * leader's. */
    batch_seal(batch);
    return (struct commit_request){
        .kind = COMMIT_BATCH,
        .batch = batch,
        .durability = durability,
        .result = result,
        .deadline_ns = io_clock_monotonic_ns(store->io) +
                       (uint64_t)store->options.commit_wait_ms * 1000000u,
    };
}

enum stele_status stele_commit(struct stele *store, struct stele_batch *batch,
                               enum stele_durability durability,
                               struct stele_commit_result *result,
                               struct stele_error *error)
{
    enum stele_status status = check_batch(store, batch, durability, error);
    struct commit_request request;

    if (status != STELE_OK) {
        return status;
    }
    if (!claim(batch, error)) {
        return STELE_INVALID;
    }
    request = batch_request(store, batch, durability, result);
    status = commit_submit(store, &request, error);
    atomic_store(&batch->committing, false);
    return status;
}

enum stele_status stele_commit_async(struct stele *store,
                                     struct stele_batch *batch,
                                     enum stele_durability durability,
                                     struct stele_commit_result *result,
                                     stele_commit_done *done, void *context,
                                     struct stele_error *error)
{
    enum stele_status status = check_batch(store, batch, durability, error);
    struct commit_request *request;

    if (status != STELE_OK) {
        return status;
    }
    if (done == NULL) {
        return error_set(error, STELE_INVALID,
                         "commit: asynchronous, but without a callback");
    }
    request = malloc(sizeof *request);
    if (request == NULL) {
        return error_no_memory(error, "commit request");
    }
    if (!claim(batch, error)) {
        free(request);
        return STELE_INVALID;
    }
    *request = batch_request(store, batch, durability, result);
    request->done = done;
    request->done_context = context;
    commit_submit_async(store, request);
    return STELE_OK;
}

/* A batch of one operation, already added. */
static enum stele_status commit_single(struct stele *store,
                                       struct stele_batch *batch,
                                       enum stele_status added,
                                       uint64_t *lsn_out,
                                       struct stele_error *error)
{
    struct stele_commit_result result = {0};
    enum stele_status status = added;

    if (status == STELE_OK) {
        status = stele_commit(store, batch, STELE_DURABLE, &result, error);
    }
    if (status == STELE_OK && lsn_out != NULL) {
        *lsn_out = result.lsn;
    }
    stele_batch_destroy(batch);
    return status;
}

enum stele_status stele_put(struct stele *store, const char *table,
                            const void *key, size_t key_bytes,
                            const void *value, size_t value_bytes,
                            uint64_t *lsn_out, struct stele_error *error)
{
    struct stele_batch *batch;
    enum stele_status status = store_check_process(store, error);

    if (status == STELE_OK) {
        status = stele_batch_create(&batch, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    return commit_single(store, batch,
                         stele_batch_put(batch, table, key, key_bytes, value,
                                         value_bytes, error),
                         lsn_out, error);
}

enum stele_status stele_delete(struct stele *store, const char *table,
                               const void *key, size_t key_bytes,
                               uint64_t *lsn_out, struct stele_error *error)
{
    struct stele_batch *batch;
    enum stele_status status = store_check_process(store, error);

    if (status == STELE_OK) {
        status = stele_batch_create(&batch, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    return commit_single(
        store, batch, stele_batch_delete(batch, table, key, key_bytes, error),
        lsn_out, error);
}

enum stele_status stele_sync(struct stele *store, struct stele_error *error)
{
    const enum stele_status status = store_check_process(store, error);

    if (status != STELE_OK) {
        return status;
    }
    if (store->read_only) {
        return error_set(error, STELE_READ_ONLY,
                         "sync: the store is open for reading only");
    }
    return commit_sync(store, error);
}
