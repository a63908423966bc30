/*
 * engine/state.h -- the one published object that a view is made from.
 *
 * A state names everything of one LSN that is in memory: the active and the
 * frozen memtable, and the range fragments of each. It never changes; the commit
 * leader and the base keeper replace it. A reader pins the current one without a
 * lock:
 *
 *     claim a hazard slot; store the pointer there; if it is still the current
 *     one, count a reference; clear the slot.
 *
 * A replaced state is freed when no reference is left and no slot names it. (M.
 * Michael, Hazard Pointers, 2004; a slot is held for the few instructions that
 * counting takes, so their number does not limit the readers.) No reader waits
 * for a committer and no committer for a reader: a mutex here took a reader's
 * p99 from 9 us to 2 ms during a large batch.
 *
 * Threads: acquire and release from any; the rest under the publisher's mutex,
 * taken inside.
 */
#ifndef ENGINE_STATE_H
#define ENGINE_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/memtable.h"
#include "engine/ranges.h"

/* The memtables of a state, newest first, and their fragments. */
enum { STATE_ACTIVE = 0, STATE_FROZEN = 1, STATE_LAYERS = 2 };

struct state_layer {
    struct memtable *memtable; /* NULL: no such layer. */
    struct range_set *ranges;
};

struct state {
    _Atomic uint64_t references;
    uint64_t lsn; /* Visible. */
    struct state_layer layers[STATE_LAYERS];
    struct state *retired_next;
};

enum { STATE_HAZARD_SLOTS = 64, STATE_CACHE_LINE_BYTES = 64 };

struct state_hazard {
    _Alignas(STATE_CACHE_LINE_BYTES) _Atomic(struct state *) state;
};

struct state_publisher {
    struct state_hazard hazards[STATE_HAZARD_SLOTS];
    _Alignas(STATE_CACHE_LINE_BYTES) _Atomic(struct state *) current;
    struct mutex mutex;
    struct state *retired;
    _Atomic uint64_t retired_bytes; /* Range sets that only old views use. */
};

/* Starts with the state {lsn, active memtable}; takes references of its own. */
enum stele_status state_publisher_init(
    struct state_publisher *publisher, uint64_t lsn, struct memtable *active,
    struct range_set *ranges, struct stele_error *error) STELE_MUST_CHECK;
/* No state may be held any more. Accepts a zeroed one. */
void state_publisher_deinit(struct state_publisher *publisher);

/* In a child of the process that made it: free every state, whoever held it,
 * unless a thread was in the midst of changing them. Nobody was inserting. */
void state_publisher_forsake(struct state_publisher *publisher);

/* The current state, with a reference. */
struct state *state_acquire(struct state_publisher *publisher);
void state_release(struct state *state);

/* Memory for one publish, so that publishing cannot fail. */
struct state *state_allocate(void);
void state_discard(struct state *unused); /* Accepts NULL. */

/* Replace the current state by `next` (from state_allocate), which takes over
 * everything of the current one except: */
/* ... the LSN and the active layer's fragments. */
void state_publish_commit(struct state_publisher *publisher, struct state *next,
                          uint64_t lsn, struct range_set *active_ranges);
/* ... the layers: the active one becomes the frozen one. */
void state_publish_freeze(struct state_publisher *publisher, struct state *next,
                          struct memtable *active);
/* ... the frozen layer: it is in the index. */
void state_publish_drained(struct state_publisher *publisher,
                           struct state *next);

/* ... nothing: a whole new tail on a newer base. */
void state_publish_rebase(struct state_publisher *publisher, struct state *next,
                          uint64_t lsn, struct memtable *active,
                          struct range_set *active_ranges);

/* Free replaced states that nobody holds any more. */
void state_sweep(struct state_publisher *publisher);

/* ---- One that is not published: a view's own ------------------------------------ */

/* Takes references of its own. NULL: out of memory. */
struct state *state_create(uint64_t lsn, struct memtable *memtable,
                           struct range_set *ranges);
void state_destroy(struct state *state);
/* In a child of the process that made it: unless a thread was in the midst of
 * using it. */
void state_forsake(struct state *state);

#endif
