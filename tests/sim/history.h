/*
 * tests/sim/history.h -- what was asked of a simulated store, and what it must
 * then hold.
 *
 * Batches are numbered in the order in which they are issued; each knows the one
 * that it was applied after, so that every state there can be is the end of a
 * chain. The batch's tag carries its number into the log.
 */
#ifndef TESTS_SIM_HISTORY_H
#define TESTS_SIM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/stele.h"
#include "tests/lib/random.h"

enum {
    SIM_TABLES = 2,
    SIM_KEYS = 8, /* A table. */
    SIM_CELLS = SIM_TABLES * SIM_KEYS,
    SIM_OPS_MAX = 6,
};

enum sim_change {
    SIM_PUT,
    SIM_DELETE,
    SIM_DELETE_RANGE, /* key .. key_end - 1 */
    SIM_CLEAR,
    SIM_EXPECT_ABSENT,
    SIM_EXPECT_PRESENT,
};

struct sim_batch_op {
    enum sim_change change;
    uint8_t table;
    uint8_t key;
    uint8_t key_end;
    uint32_t value_bytes;
    const uint8_t *value;
};

/* Which operation put the value of a key; batch 0: it is absent. */
struct sim_cell {
    uint32_t batch;
    uint32_t op;
};

struct sim_contents {
    struct sim_cell cells[SIM_CELLS];
};

struct sim_batch {
    uint32_t previous; /* The batch it is applied after; 0: the empty state. */
    uint32_t op_count;
    struct sim_batch_op ops[SIM_OPS_MAX];
    uint64_t lsn; /* 0: not known (yet). */
    bool refused; /* By its own expectations. */
    struct sim_contents after;
    const uint8_t *body; /* As encoded; NULL: not yet. */
    size_t body_bytes;
};

struct sim_history {
    struct sim_batch *batches; /* [0]: the empty state. */
    uint32_t count;
    uint32_t capacity;
    struct sim_arena *arena;
};

void sim_history_init(struct sim_history *history);
void sim_history_deinit(struct sim_history *history);

/* Bytes that live as long as the history. */
void *sim_history_allocate(struct sim_history *history, size_t bytes);

/* A new batch after `previous`, made from a seed. Returns its number. */
uint32_t sim_history_add(struct sim_history *history, uint32_t previous,
                         uint64_t seed);
/* Recompute `after` (and `refused`) when the operations were changed, or the
 * batch before it. */
void sim_history_settle(struct sim_history *history, uint32_t number);
/* Forget the batches from `count` on. */
void sim_history_truncate(struct sim_history *history, uint32_t count);

/* The batch, below `limit`, with this LSN; UINT32_MAX: none is known. LSN 0 is
 * the empty state. */
uint32_t sim_history_find(const struct sim_history *history, uint64_t lsn,
                          uint32_t limit);
/* Whether `ancestor` is `number` or was applied before it. */
bool sim_history_descends(const struct sim_history *history, uint32_t number,
                          uint32_t ancestor);

/* Fill an empty batch, tagged with the number. */
enum stele_status sim_history_fill(struct sim_history *history, uint32_t number,
                                   struct stele_batch *batch,
                                   struct stele_error *error) STELE_MUST_CHECK;
/* The number in a tag; UINT32_MAX: not one of ours. */
uint32_t sim_history_number(const uint8_t tag[STELE_TAG_BYTES]);

/* "put a/k3 17 bytes, clear b". */
void sim_history_describe(const struct sim_history *history, uint32_t number,
                          char *target, size_t bytes);

/* Names of tables and keys. Static. */
const char *sim_table_name(unsigned table);
const char *sim_key_name(unsigned key);

/* Compare a view with the state after batch `number`. False: `text` says how
 * they differ. */
bool sim_history_matches(const struct sim_history *history, uint32_t number,
                         struct stele_view *view, char *text, size_t bytes);

#endif
