/* engine/commit_queue.h -- for engine/commit.c: handing a request in. */
#ifndef ENGINE_COMMIT_QUEUE_H
#define ENGINE_COMMIT_QUEUE_H

#include "base/status.h"
#include "engine/commit_group.h"
#include "engine/store.h"

/* Queue the request, lead if nobody does, return when it is decided. */
enum stele_status commit_submit(struct stele *store,
                                struct commit_request *request,
                                struct stele_error *error) STELE_MUST_CHECK;

/* Queue an asynchronous request, which is on the heap and taken over. */
void commit_submit_async(struct stele *store, struct commit_request *request);

#endif
