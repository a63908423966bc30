/* tests/sim/snapshot.c -- see tests/sim/snapshot.h. */
#include "tests/sim/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base_value.h"
#include "snapshot/reader.h"

static bool is_named(struct bytes bytes, const char *name)
{
    return bytes.size == strlen(name) &&
           memcmp(bytes.data, name, bytes.size) == 0;
}

static uint32_t key_count(const struct sim_contents *contents, unsigned table)
{
    uint32_t count = 0;

    for (unsigned key = 0; key < SIM_KEYS; key++) {
        count += contents->cells[table * SIM_KEYS + key].batch != 0;
    }
    return count;
}

static bool row_matches(const struct sim_contents *contents, unsigned table,
                        const struct base_value *value)
{
    struct table_row row;

    return table_row_decode(value->value, &row) &&
           row.count == key_count(contents, table);
}

static bool value_matches(const struct sim_history *history,
                          const struct sim_cell *cell,
                          const struct base_value *value)
{
    const struct sim_batch *batch = &history->batches[cell->batch];
    const struct sim_batch_op *op = &batch->ops[cell->op];

    return cell->batch != 0 && (batch->lsn == 0 || batch->lsn == value->lsn) &&
           op->value_bytes == value->value.size &&
           (op->value_bytes == 0 ||
            memcmp(op->value, value->value.data, op->value_bytes) == 0);
}

static bool key_matches(const struct sim_history *history,
                        const struct sim_contents *contents, unsigned table,
                        struct bytes name, const struct base_value *value)
{
    for (unsigned key = 0; key < SIM_KEYS; key++) {
        if (is_named(name, sim_key_name(key))) {
            return value_matches(
                history, &contents->cells[table * SIM_KEYS + key], value);
        }
    }
    return false;
}

/* One key more is counted, if it is one. */
static bool entry_matches(const struct sim_history *history,
                          const struct sim_contents *contents,
                          const struct snapshot_entry *entry,
                          uint32_t *count_out)
{
    const uint8_t *bytes = entry->key.data;
    const size_t table_bytes = base_key_table_bytes(entry->key);
    const struct bytes name = {bytes + table_bytes + 1,
                               entry->key.size - table_bytes - 1};
    struct base_value value;

    if (!base_value_decode(entry->stored, &value) ||
        !base_value_verify(entry->key, &value)) {
        return false;
    }
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        if (!is_named((struct bytes){bytes, table_bytes},
                      sim_table_name(table))) {
            continue;
        }
        if (name.size == 0) {
            return row_matches(contents, table, &value);
        }
        (*count_out)++;
        return key_matches(history, contents, table, name, &value);
    }
    return false;
}

static bool all_match(const struct sim_history *history, uint32_t number,
                      struct snapshot_reader *reader, char *text, size_t bytes)
{
    const struct sim_contents *contents = &history->batches[number].after;
    struct snapshot_entry entry;
    struct stele_error error;
    enum stele_status status;
    uint32_t wanted = 0;
    uint32_t count = 0;

    while ((status = snapshot_reader_next(reader, &entry, &error)) ==
           STELE_OK) {
        if (!entry_matches(history, contents, &entry, &count)) {
            snprintf(text, bytes, "%.*s is not as it was", (int)entry.key.size,
                     (const char *)entry.key.data);
            return false;
        }
    }
    if (status != STELE_NOT_FOUND) {
        snprintf(text, bytes, "%s", error.message);
        return false;
    }
    for (unsigned table = 0; table < SIM_TABLES; table++) {
        wanted += key_count(contents, table);
    }
    if (count != wanted) {
        snprintf(text, bytes, "%" PRIu32 " keys, not %" PRIu32, count, wanted);
        return false;
    }
    return true;
}

bool sim_snapshot_matches(const struct sim_history *history, uint32_t number,
                          const struct stele *store, uint64_t lsn, char *text,
                          size_t bytes)
{
    const int used =
        snprintf(text, bytes, "snapshot of LSN %" PRIu64 ": ", lsn);
    struct snapshot_reader *reader;
    struct stele_error error;
    bool good;

    if (snapshot_reader_open(store->snapshot_dir, lsn, SNAPSHOT_PUBLISHED,
                             store->uuid.bytes, &reader, &error) != STELE_OK) {
        snprintf(text + used, bytes - (size_t)used, "%s", error.message);
        return false;
    }
    good =
        all_match(history, number, reader, text + used, bytes - (size_t)used);
    snapshot_reader_close(reader);
    return good;
}
