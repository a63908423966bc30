/*
 * engine/commit_group.h -- requests, and what a leader does with a group of them.
 *
 * For the files engine/commit*.c only. Everything here is called by the holder of
 * the log role.
 */
#ifndef ENGINE_COMMIT_GROUP_H
#define ENGINE_COMMIT_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/batch.h"
#include "engine/store.h"

enum {
    COMMIT_GROUP_BYTES_MAX = 1 << 20,     /* Or one larger batch alone. */
    COMMIT_SEGMENT_RESERVED_BYTES = 8192, /* Its header, and a unit's. */
};

enum commit_kind { COMMIT_BATCH, COMMIT_SYNC, COMMIT_FREEZE };

enum commit_phase { COMMIT_WAITING, COMMIT_LEADING, COMMIT_DONE };

/* On its caller's stack, or, if asynchronous, on the heap. */
struct commit_request {
    enum commit_kind kind;
    struct commit_request *next; /* In the queue, then in the group. */
    _Atomic uint32_t phase;
    uint32_t gate;        /* Of the queue: where its thread waits, ... */
    bool is_heir;         /* ... the first that did. */
    uint64_t deadline_ns; /* For waiting on room in the memtable. */

    struct stele_batch *batch;
    enum stele_durability durability;
    struct stele_commit_result *result; /* May be NULL. */
    stele_commit_done *done;            /* Not NULL: asynchronous. */
    void *done_context;

    bool decided;        /* `status` is final. */
    bool refused_behind; /* By an expectation, behind batches of its group. */
    bool froze;
    enum stele_status status;
    struct stele_error error;
    uint64_t lsn;
};

/* ---- Deciding: a request's status becomes final ---------------------------- */

void commit_decide(struct commit_request *request, enum stele_status status,
                   const struct stele_error *error);
/* The batches that are not decided yet; a SYNC beside them may still work. */
void commit_decide_batches(struct commit_request *group,
                           enum stele_status status,
                           const struct stele_error *error);
bool commit_has_undecided_batch(const struct commit_request *group);

/* ---- The steps --------------------------------------------------------------- */

/* Sync the log, and set the timer of relaxed commits back. Poisons. */
enum stele_status commit_sync_log(struct stele *store,
                                  struct stele_error *error) STELE_MUST_CHECK;

/* Other processes show the durable position from now on; before the
 * acknowledgement, so that they show everything acknowledged. */
void commit_write_hint(struct stele *store);

/* In the base keeper: have a memtable ready for the next freeze, so that the leader need
 * not make one while others wait for it. */
void commit_keep_spare(struct stele *store);

/* Turn the active memtable into the frozen one, if there is none and there is
 * anything that the index does not have. */
enum stele_status commit_freeze_active(struct stele *store, bool *frozen_out,
                                       struct stele_error *error)
    STELE_MUST_CHECK;

/* Replace an active memtable that is full of nothing but withdrawn groups:
 * everything visible in it is in the index, and none is frozen. */
enum stele_status commit_renew_active(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/* Room in the memtable and in the log for the batches of the group, before any
 * LSN is assigned. Batches for which there is none are decided. */
void commit_make_room(struct stele *store, struct commit_request *group);

/* Decide every request of the group. */
void commit_process(struct stele *store, struct commit_request *group);

#endif
