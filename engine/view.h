/* engine/view.h -- a view, for the files of engine/ only. */
#ifndef ENGINE_VIEW_H
#define ENGINE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base.h"
#include "engine/state.h"
#include "engine/stele.h"
#include "engine/store.h"

struct stele_view {
    struct stele *store; /* In a child: perhaps closed already. */
    uint64_t process;    /* The store's. */
    struct state *state; /* Pinned; NULL once expired. */
    struct base base;    /* Behind `state`. */
    bool past;           /* `state` is its own: engine/past.h. */
    uint64_t lsn;
    uint64_t opened_ns;
    struct stele_cursor *cursors; /* Open ones, singly linked. */
    struct stele_view *next;      /* In store->views. */
    struct stele_view *prev;
};

/* OK, or FORKED: first in every call, before anything else is looked at. */
enum stele_status view_check_process(
    const struct stele_view *view, struct stele_error *error) STELE_MUST_CHECK;

/* What reading in the view came to: damage of the index is noted
 * (engine/damage.h). Returns `status`. */
enum stele_status view_note(struct stele_view *view,
                            enum stele_status status) STELE_MUST_CHECK;

/* OK, or EXPIRED, after which the view holds nothing any more. */
enum stele_status view_check(struct stele_view *view,
                             struct stele_error *error) STELE_MUST_CHECK;

#endif
