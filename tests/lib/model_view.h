/*
 * tests/lib/model_view.h -- a view of the store against the model's state at
 * the view's LSN.
 *
 * Each check says what differs, in words; an empty text: nothing does.
 */
#ifndef TESTS_LIB_MODEL_VIEW_H
#define TESTS_LIB_MODEL_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/stele.h"
#include "tests/lib/model.h"
#include "tests/lib/random.h"

enum { MODEL_DIFFERENCE_BYTES = 900 };

struct model_difference {
    char text[MODEL_DIFFERENCE_BYTES];
};

/* Everything: tables, counts, both directions, prefixes, gets. */
bool model_view_matches(const struct model *model, struct stele_view *view,
                        struct random_source *random,
                        struct model_difference *difference);

/* A few gets of random keys. */
bool model_view_gets_match(const struct model *model, struct stele_view *view,
                           struct random_source *random, unsigned count,
                           struct model_difference *difference);

/* A cursor, and where it must be: it may be kept as long as its view and go on
 * from there. */
enum model_place {
    MODEL_UNPOSITIONED,
    MODEL_ON_ENTRY,
    MODEL_AT_START,
    MODEL_AT_END,
};

struct model_walker {
    struct stele_cursor *cursor; /* NULL: none. */
    struct stele_view *view;
    unsigned table;
    struct model_bytes prefix; /* Of size 0: none. */
    enum model_place place;
    size_t index; /* ON_ENTRY: among the keys of the state. */
};

enum stele_status model_walker_open(struct model_walker *walker,
                                    struct stele_view *view,
                                    struct random_source *random,
                                    struct stele_error *error) STELE_MUST_CHECK;
void model_walker_close(struct model_walker *walker);

/* So many random moves. */
bool model_walker_walk(const struct model *model, struct model_walker *walker,
                       struct random_source *random, unsigned moves,
                       struct model_difference *difference);

#endif
