/*
 * engine/commit.h -- the commit queue, and the log role.
 *
 * Whoever wants something of the log queues a request; the first one becomes the
 * leader, takes requests in FIFO order (up to 1 MiB of records, or one larger
 * batch alone), and makes of them one unit: one write, one sync. When its own
 * request is done it hands the role to the next waiter, before it wakes the
 * others, so that the disk does not idle. There is no timer.
 *
 * The role covers everything that changes the log or the active memtable: so
 * syncing for relaxed commits, freezing the memtable and closing are requests
 * in the same queue. One role, one syncer.
 */
#ifndef ENGINE_COMMIT_H
#define ENGINE_COMMIT_H

#include <stdbool.h>

#include "base/status.h"
#include "engine/store.h"

enum stele_status commit_queue_init(struct stele *store,
                                    struct stele_error *error) STELE_MUST_CHECK;
void commit_queue_deinit(struct stele *store);
/* In a child of the process that made it: whether nobody led, so that what the
 * role guards is whole. Frees the leader's memory then. */
bool commit_queue_forsake(struct stele *store);

/* Make everything written so far durable. */
enum stele_status commit_sync(struct stele *store,
                              struct stele_error *error) STELE_MUST_CHECK;

/* Turn the active memtable into the frozen one, if there is anything to freeze
 * and no frozen one yet; *frozen_out says whether this call did. */
enum stele_status commit_freeze(struct stele *store, bool *frozen_out,
                                struct stele_error *error) STELE_MUST_CHECK;

/* Lead, on behalf of asynchronous requests: for the log keeper. */
void commit_lead_for_others(struct stele *store);

#endif
