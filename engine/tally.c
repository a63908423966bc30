/* engine/tally.c -- see engine/tally.h. */
#include "engine/tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

void tally_init(struct tally *tally, const char *where,
                stele_verify_finding *finding, void *context)
{
    *tally =
        (struct tally){.where = where, .finding = finding, .context = context};
}

/* Tell of it, and keep the first. */
static void found(struct tally *tally, const struct stele_error *problem,
                  struct stele_error *first)
{
    if (tally->finding != NULL) {
        tally->finding(tally->context, problem);
    }
    if (first->status == STELE_OK) {
        *first = *problem;
    }
}

static void damaged_entry(struct tally *tally, struct bytes key,
                          const char *damage, struct stele_error *first)
{
    struct stele_error problem;

    base_entry_damaged(tally->where, key, damage, &problem);
    found(tally, &problem, first);
}

/* No more keys of the table will come. */
static void end_table(struct tally *tally, struct stele_error *first)
{
    const struct bytes row_key = {tally->row_key, tally->row_key_bytes};
    char damage[128];

    if (!tally->row_is_sound || (tally->claimed.count == tally->counted.count &&
                                 tally->claimed.sum == tally->counted.sum)) {
        return;
    }
    snprintf(damage, sizeof damage,
             "it says %" PRIu64 " keys, sum %016" PRIx64 "; there are %" PRIu64
             ", sum %016" PRIx64,
             tally->claimed.count, tally->claimed.sum, tally->counted.count,
             tally->counted.sum);
    damaged_entry(tally, row_key, damage, first);
}

static void begin_table(struct tally *tally, struct bytes key,
                        size_t row_key_bytes)
{
    memcpy(tally->row_key, key.data, row_key_bytes);
    tally->row_key_bytes = row_key_bytes;
    tally->row_is_sound = false;
    tally->claimed = (struct table_row){0};
    tally->counted = (struct table_row){0};
}

static bool is_of_table(const struct tally *tally, struct bytes key,
                        size_t row_key_bytes)
{
    return tally->row_key_bytes == row_key_bytes &&
           memcmp(tally->row_key, key.data, row_key_bytes) == 0;
}

/* A key without a row before it is told of once a table. */
static void add_key(struct tally *tally, struct bytes key, size_t row_key_bytes,
                    const struct base_value *value, struct stele_error *first)
{
    if (!is_of_table(tally, key, row_key_bytes)) {
        end_table(tally, first);
        begin_table(tally, key, row_key_bytes);
        damaged_entry(tally, key, "its table has no row", first);
    }
    tally->totals.keys++;
    tally->totals.sum += value->check;
    tally->counted.count++;
    tally->counted.sum += value->check;
}

static void add_row(struct tally *tally, struct bytes key,
                    const struct base_value *value, bool sound,
                    struct stele_error *first)
{
    end_table(tally, first);
    begin_table(tally, key, key.size);
    tally->totals.tables++;
    tally->row_is_sound = sound;
    if (sound && !table_row_decode(value->value, &tally->claimed)) {
        damaged_entry(tally, key, "not as long as a row", first);
        tally->row_is_sound = false;
    }
}

enum stele_status tally_add(struct tally *tally, struct bytes key,
                            struct bytes stored, struct stele_error *error)
{
    const size_t name_bytes = base_key_table_bytes(key);
    struct stele_error first = {.status = STELE_OK};
    struct stele_error problem;
    struct base_value value = {0};
    bool sound = base_value_read(tally->where, key, stored, &value, &problem) ==
                 STELE_OK;

    if (!sound) {
        /* Of a key whose value rotted the stored check still counts. */
        (void)base_value_decode(stored, &value);
    }
    if (name_bytes == 0) {
        sound = true; /* There is no more to say of it. */
        damaged_entry(tally, key, "misplaced", &first);
    } else if (key.size == name_bytes + 1) {
        add_row(tally, key, &value, sound, &first);
    } else {
        add_key(tally, key, name_bytes + 1, &value, &first);
    }
    if (!sound) {
        found(tally, &problem, &first);
    }
    if (first.status != STELE_OK && error != NULL) {
        *error = first;
    }
    return first.status;
}

enum stele_status tally_end(struct tally *tally, struct stele_error *error)
{
    struct stele_error first = {.status = STELE_OK};

    end_table(tally, &first);
    tally->row_is_sound = false;
    if (first.status != STELE_OK && error != NULL) {
        *error = first;
    }
    return first.status;
}

enum stele_status tally_check_totals(const struct tally *tally,
                                     const struct snapshot_totals *claimed,
                                     struct stele_error *error)
{
    const struct snapshot_totals *counted = &tally->totals;

    if (claimed->tables == counted->tables && claimed->keys == counted->keys &&
        claimed->sum == counted->sum) {
        return STELE_OK;
    }
    return error_set(error, STELE_CORRUPT,
                     "%s: its footer says %" PRIu64 " tables, %" PRIu64
                     " keys, sum %016" PRIx64 "; there are %" PRIu64
                     ", %" PRIu64 ", sum %016" PRIx64,
                     tally->where, claimed->tables, claimed->keys, claimed->sum,
                     counted->tables, counted->keys, counted->sum);
}
