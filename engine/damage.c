/* engine/damage.c -- see engine/damage.h. */
#include "engine/damage.h"

static void mark_index_suspect(struct wal_anchor *anchor, const void *context)
{
    (void)context;
    anchor->index_suspect = true;
}

static bool is_in_anchor(struct stele *store)
{
    bool suspect;

    mutex_lock(&store->anchor_mutex);
    suspect = store->anchor.index_suspect;
    mutex_unlock(&store->anchor_mutex);
    return suspect;
}

/* Damage was met, or a commit of the index failed, or a checkpoint met it. */
static bool is_met(struct stele *store)
{
    bool dead;

    mutex_lock(&store->keeper_mutex);
    dead = store->index_dead;
    mutex_unlock(&store->keeper_mutex);
    return dead || atomic_load(&store->index_damaged);
}

void damage_tend(struct stele *store)
{
    struct stele_error ignored;

    if (is_met(store) && !is_in_anchor(store) &&
        store_write_anchor(store, mark_index_suspect, NULL, &ignored) !=
            STELE_OK) {
        /* The disk is full, or the handle is poisoned. The index is no worse for
         * it: whoever meets the damage again will note it again. */
        return;
    }
}

bool damage_is_known(struct stele *store)
{
    return is_met(store) || is_in_anchor(store);
}
