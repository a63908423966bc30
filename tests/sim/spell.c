/* tests/sim/spell.c -- see tests/sim/spell.h. */
#include "tests/sim/spell.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/history.h"

/* What a batch of a step is to be; sim_history_add() makes it of a seed. */
static bool is_one_put(const struct sim_batch *batch, uint32_t bytes)
{
    return batch->op_count == 1 && batch->ops[0].change == SIM_PUT &&
           batch->ops[0].value_bytes == bytes;
}

static bool is_small_puts(const struct sim_batch *batch)
{
    for (uint32_t index = 0; index < batch->op_count; index++) {
        if (batch->ops[index].change != SIM_PUT ||
            batch->ops[index].value_bytes != 16) {
            return false;
        }
    }
    return batch->op_count >= 4;
}

static bool fits(const struct sim_batch *batch, char letter)
{
    switch (letter) {
    case 'D':
    case 'r':
        return is_one_put(batch, 16);
    case 'R':
        return is_one_put(batch, 3000);
    case 'L':
        return is_one_put(batch, 5000);
    case 'M':
        return is_small_puts(batch);
    default:
        return true;
    }
}

/* The seed of a step: of the nth batch that fits. */
static uint64_t seed_for(char letter, size_t nth)
{
    struct sim_history history;
    uint64_t seed = 0;
    size_t found = 0;

    sim_history_init(&history);
    while (found <= nth) {
        const uint32_t number = sim_history_add(&history, 0, ++seed);

        found += fits(&history.batches[number], letter);
        sim_history_truncate(&history, 1);
    }
    sim_history_deinit(&history);
    return seed;
}

static enum sim_step_kind kind_of(char letter)
{
    switch (letter) {
    case 'D':
    case 'M':
    case 'L':
        return SIM_STEP_DURABLE;
    case 'R':
    case 'r':
        return SIM_STEP_RELAXED;
    case 'G':
        return SIM_STEP_GROUP;
    case 'S':
        return SIM_STEP_SYNC;
    case 'F':
        return SIM_STEP_FREEZE;
    case 'C':
        return SIM_STEP_CHECKPOINT;
    case 'T':
        return SIM_STEP_TEND;
    case 'V':
        return SIM_STEP_READER;
    case 'E':
        return SIM_STEP_FAULT;
    case 'K':
        return SIM_STEP_KILL;
    case 'O':
        return SIM_STEP_REOPEN;
    case 'P':
        return SIM_STEP_SNAPSHOT;
    case 'p':
        return SIM_STEP_SNAPSHOT_STEP;
    case 'X':
        return SIM_STEP_LOSE_INDEX;
    case 'B':
        return SIM_STEP_BACKUP;
    case 'U':
        return SIM_STEP_RESTORE;
    default:
        abort();
    }
}

size_t sim_spell(const char *letters, uint64_t chosen,
                 struct sim_step steps[SIM_STEPS_MAX])
{
    const size_t count = strlen(letters);

    assert(count <= SIM_STEPS_MAX);
    for (size_t index = 0; index < count; index++) {
        const char letter = letters[index];

        steps[index].kind = kind_of(letter);
        steps[index].seed =
            letter == 'G' || letter == 'E' ? chosen : seed_for(letter, index);
    }
    return count;
}
