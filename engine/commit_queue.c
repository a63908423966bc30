/*
 * engine/commit_queue.c -- the queue of requests, and who leads. See
 * engine/commit.h.
 */
#include "engine/commit_queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/park.h"
#include "engine/commit.h"
#include "engine/keepers.h"
#include "wal/unit.h"

enum stele_status commit_queue_init(struct stele *store,
                                    struct stele_error *error)
{
    store->group = calloc(1, sizeof *store->group);
    if (store->group == NULL) {
        return error_no_memory(error, "commit queue");
    }
    range_builder_init(&store->group->ranges);
    mutex_init(&store->queue.mutex);
    store->queue.tail = &store->queue.head;
    return STELE_OK;
}

void commit_queue_deinit(struct stele *store)
{
    if (store->group == NULL) {
        return;
    }
    assert(store->queue.head == NULL);
    range_builder_deinit(&store->group->ranges);
    free(store->group);
    store->group = NULL;
    mutex_deinit(&store->queue.mutex);
}

bool commit_queue_forsake(struct stele *store)
{
    if (!mutex_try_lock(&store->queue.mutex) || store->queue.led) {
        return false;
    }
    range_builder_deinit(&store->group->ranges);
    free(store->group);
    return true;
}

/* Take the next group off the queue, or NULL. Under the queue's mutex. */
static struct commit_request *take_group(struct stele *store)
{
    struct commit_queue *queue = &store->queue;
    const uint64_t bytes_max =
        store->segment_bytes - COMMIT_SEGMENT_RESERVED_BYTES <
                COMMIT_GROUP_BYTES_MAX
            ? store->segment_bytes - COMMIT_SEGMENT_RESERVED_BYTES
            : COMMIT_GROUP_BYTES_MAX;
    struct commit_request *group = queue->head;
    struct commit_request **link = &queue->head;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (*link != NULL) {
        struct commit_request *request = *link;

        if (request->kind == COMMIT_FREEZE && count > 0) {
            break;
        }
        if (request->kind == COMMIT_BATCH) {
            if (bytes > 0 && request->batch->bytes > bytes_max - bytes) {
                break;
            }
            bytes += request->batch->bytes;
        }
        link = &request->next;
        count++;
        if (request->kind == COMMIT_FREEZE || count == WAL_UNIT_RECORDS_MAX ||
            bytes >= bytes_max) {
            break;
        }
    }
    queue->head = *link;
    *link = NULL;
    queue->gate = (queue->gate + 1) % COMMIT_GATES;
    queue->has_heir = false;
    if (queue->head == NULL) {
        queue->tail = &queue->head;
    }
    return group;
}

/* For which a waiter is woken: everybody when its group is done, and one of each group
 * to lead the next. */
enum { WAKE_HEIR = 1, WAKE_GROUP = 2 };

static void wait_for_turn(struct commit_queue *queue,
                          struct commit_request *request)
{
    park_while(&request->phase, COMMIT_WAITING, &queue->gates[request->gate],
               request->is_heir ? WAKE_HEIR | WAKE_GROUP : WAKE_GROUP);
}

/* One that was left over from a group that was full is not its gate's heir: then all
 * there are woken, and look. The request may be gone once its phase is stored. */
static void call_heir(struct commit_queue *queue, struct commit_request *heir)
{
    _Atomic uint32_t *gate = &queue->gates[heir->gate];
    const uint32_t reasons = heir->is_heir ? WAKE_HEIR : WAKE_GROUP;

    atomic_store_explicit(&heir->phase, COMMIT_LEADING, memory_order_release);
    park_open(gate, reasons);
}

static void finish_async(struct commit_request *request)
{
    atomic_store(&request->batch->committing, false);
    request->done(request->done_context, request->status, &request->error);
    free(request);
}

/* Everybody but `own` learns what became of its request. One call wakes all that wait
 * at a gate: one for each of a large group cost a tenth of all processor time. */
static void finish(struct commit_queue *queue, struct commit_request *group,
                   const struct commit_request *own)
{
    bool opened[COMMIT_GATES] = {false};
    struct commit_request *async = NULL;
    struct commit_request **async_end = &async;
    struct commit_request *next;

    for (; group != NULL; group = next) {
        next = group->next; /* It is gone once its phase is stored. */
        if (group == own) {
            continue;
        }
        if (group->done != NULL) {
            *async_end = group;
            async_end = &group->next;
            continue;
        }
        opened[group->gate] = true;
        atomic_store_explicit(&group->phase, COMMIT_DONE, memory_order_release);
    }
    for (size_t gate = 0; gate < COMMIT_GATES; gate++) {
        if (opened[gate]) {
            park_open(&queue->gates[gate], WAKE_HEIR | WAKE_GROUP);
        }
    }
    *async_end = NULL;
    for (; async != NULL; async = next) {
        next = async->next;
        finish_async(async);
    }
}

/* Who goes on, once the leader's own request is done? Under the queue's mutex.
 * Returns a waiter to wake as leader; NULL: nobody, or the log keeper. */
static struct commit_request *next_leader(struct stele *store)
{
    struct commit_queue *queue = &store->queue;

    for (struct commit_request *request = queue->head; request != NULL;
         request = request->next) {
        if (request->done == NULL) {
            return request;
        }
    }
    if (queue->head != NULL && store->keepers_started) {
        queue->keeper_wanted = true;
    } else {
        queue->led = false; /* In manual mode the next call finds the rest. */
    }
    return NULL;
}

static void wake_keeper(struct stele *store)
{
    mutex_lock(&store->keeper_mutex);
    keepers_kick_log(store);
    mutex_unlock(&store->keeper_mutex);
}

/* Lead until `own` is done, then hand the role on. `own` NULL: until only
 * waiters that can lead themselves, or nobody, are left. */
static void lead(struct stele *store, struct commit_request *own)
{
    struct commit_queue *queue = &store->queue;

    for (;;) {
        struct commit_request *heir = NULL;
        struct commit_request *group;
        bool stop = false;
        bool keeper = false;

        mutex_lock(&queue->mutex);
        group = take_group(store);
        if (group == NULL) {
            queue->led = false;
            mutex_unlock(&queue->mutex);
            return;
        }
        mutex_unlock(&queue->mutex);
        commit_process(store, group);

        mutex_lock(&queue->mutex);
        if (own == NULL ? queue->head == NULL || queue->head->done == NULL
                        : own->decided) {
            heir = next_leader(store);
            keeper = queue->keeper_wanted;
            stop = true;
        }
        mutex_unlock(&queue->mutex);
        if (heir != NULL) {
            /* First the next write, then those whose write is done. */
            call_heir(queue, heir);
        } else if (keeper) {
            wake_keeper(store);
        }
        finish(queue, group, own);
        if (stop) {
            return;
        }
    }
}

/* Queue the request; true if the caller is the leader now. */
static bool enqueue(struct stele *store, struct commit_request *request)
{
    struct commit_queue *queue = &store->queue;
    bool leader = false;

    mutex_lock(&queue->mutex);
    *queue->tail = request;
    queue->tail = &request->next;
    request->gate = queue->gate;
    if (request->done == NULL) {
        request->is_heir = !queue->has_heir;
        queue->has_heir = true;
    }
    if (request->done != NULL) {
        if (!queue->led && store->keepers_started) {
            queue->led = true;
            queue->keeper_wanted = true;
        }
    } else if (!queue->led || queue->keeper_wanted) {
        /* Instead of the log keeper if it has not come yet: it may be the very
         * one that asks. */
        queue->led = true;
        queue->keeper_wanted = false;
        leader = true;
    }
    mutex_unlock(&queue->mutex);
    return leader;
}

enum stele_status commit_submit(struct stele *store,
                                struct commit_request *request,
                                struct stele_error *error)
{
    if (!enqueue(store, request)) {
        wait_for_turn(&store->queue, request);
        if (atomic_load(&request->phase) == COMMIT_LEADING) {
            lead(store, request);
        }
    } else {
        lead(store, request);
    }
    if (request->status != STELE_OK && error != NULL) {
        *error = request->error;
    }
    return request->status;
}

void commit_submit_async(struct stele *store, struct commit_request *request)
{
    bool wake;

    (void)enqueue(store, request);
    mutex_lock(&store->queue.mutex);
    wake = store->queue.keeper_wanted;
    mutex_unlock(&store->queue.mutex);
    if (wake) {
        wake_keeper(store);
    }
}

void commit_lead_for_others(struct stele *store)
{
    bool wanted;

    mutex_lock(&store->queue.mutex);
    wanted = store->queue.keeper_wanted;
    store->queue.keeper_wanted = false;
    mutex_unlock(&store->queue.mutex);
    if (wanted) {
        lead(store, NULL);
    }
}

enum stele_status commit_sync(struct stele *store, struct stele_error *error)
{
    struct commit_request request = {.kind = COMMIT_SYNC};

    return commit_submit(store, &request, error);
}

enum stele_status commit_freeze(struct stele *store, bool *frozen_out,
                                struct stele_error *error)
{
    struct commit_request request = {.kind = COMMIT_FREEZE};
    const enum stele_status status = commit_submit(store, &request, error);

    if (status == STELE_OK) {
        *frozen_out = request.froze;
    }
    return status;
}
