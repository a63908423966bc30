/* engine/options.c -- see engine/options.h. */
#include "engine/options.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/limits.h"
#include "engine/store.h"
#include "wal/segment.h"

static_assert(sizeof(size_t) == 8, "Stele needs a 64-bit machine");
static_assert(STELE_TABLE_AND_KEY_BYTES_MAX + 1 == LIMIT_FULL_KEY_BYTES_MAX,
              "the API's limit is the format's, less the zero between");

enum {
    /* The format allows less, for simulations (engine/store.h). */
    SEGMENT_BYTES_MIN = 1 << 20,
    MEMTABLE_BYTES_MIN = 64 << 10,
    VIEWS_MAX = 100000,
};

void stele_options_init_sized(struct stele_options *options, size_t size)
{
    const struct stele_options defaults = {
        .size = size,
        .mode = STELE_OPEN_EXISTING,
        .segment_bytes = (uint64_t)64 << 20,
        .memtable_bytes = (uint64_t)24 << 20,
        .value_bytes_max = (uint64_t)1 << 20,
        .batch_ops_max = 1000000,
        .views_max = 1024,
        .index_map_bytes = (uint64_t)64 << 30,
        .commit_wait_ms = 10000,
        .relaxed_sync_ms = 100,
        .idle_checkpoint_ms = 5000,
    };

    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

void store_tuning_init(struct store_tuning *tuning)
{
    *tuning = (struct store_tuning){
        .io = io_posix(),
        .checkpoint_pages_max = 2048,
        .checkpoint_pages_per_step = 128,
        .checkpoint_pause_ms = 5,
        .range_fragments_max = 16384,
        .idle_anchor_ms = 100,
        .snapshot_log_bytes = STORE_LOG_BYTES_PER_SNAPSHOT,
        .snapshot_step_bytes = 256 << 10,
        .snapshot_retry_ms = 30000,
    };
}

enum stele_status options_check_range(const char *name, uint64_t value,
                                      uint64_t min, uint64_t max,
                                      struct stele_error *error)
{
    if (value < min || value > max) {
        return error_set(error, STELE_INVALID,
                         "option %s is %" PRIu64 ", allowed are %" PRIu64
                         " to %" PRIu64,
                         name, value, min, max);
    }
    return STELE_OK;
}

static enum stele_status check_index_flags(const struct stele_options *options,
                                           struct stele_error *error)
{
    const bool read_only = options->mode == STELE_OPEN_READ_ONLY;

    if (options->rebuild_index && read_only) {
        return error_set(error, STELE_INVALID,
                         "option rebuild_index: the store is opened for "
                         "reading only");
    }
    if (options->ignore_index && !read_only && !options->rebuild_index) {
        return error_set(error, STELE_INVALID,
                         "option ignore_index: the store is opened for "
                         "writing, without rebuild_index");
    }
    return STELE_OK;
}

enum stele_status options_take(const struct stele_options *given,
                               struct stele_options *options,
                               struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    stele_options_init(options);
    if (given != NULL) {
        if (given->size == 0 || given->size > sizeof *options) {
            return error_set(error, STELE_INVALID,
                             "options of %zu bytes: use stele_options_init()",
                             given->size);
        }
        memcpy(options, given, given->size);
        options->size = sizeof *options;
    }
    if ((unsigned)options->mode > STELE_OPEN_READ_ONLY) {
        status = error_set(error, STELE_INVALID, "option mode is unknown");
    }
    if (status == STELE_OK) {
        status = check_index_flags(options, error);
    }
    if (status == STELE_OK) {
        status = options_check_range("segment_bytes", options->segment_bytes,
                                     SEGMENT_BYTES_MIN, WAL_SEGMENT_BYTES_MAX,
                                     error);
    }
    if (status == STELE_OK &&
        options->segment_bytes % WAL_SEGMENT_HEADER_BYTES != 0) {
        status = error_set(error, STELE_INVALID,
                           "option segment_bytes is not a multiple of %d",
                           WAL_SEGMENT_HEADER_BYTES);
    }
    if (status == STELE_OK) {
        status =
            options_check_range("memtable_bytes", options->memtable_bytes,
                                MEMTABLE_BYTES_MIN, (uint64_t)1 << 40, error);
    }
    if (status == STELE_OK) {
        status =
            options_check_range("value_bytes_max", options->value_bytes_max, 1,
                                LIMIT_VALUE_BYTES_MAX, error);
    }
    if (status == STELE_OK) {
        status = options_check_range("batch_ops_max", options->batch_ops_max, 1,
                                     LIMIT_BATCH_OPS_MAX, error);
    }
    if (status == STELE_OK) {
        status = options_check_range("views_max", options->views_max, 1,
                                     VIEWS_MAX, error);
    }
    if (status == STELE_OK) {
        status =
            options_check_range("index_map_bytes", options->index_map_bytes,
                                (uint64_t)1 << 20, (uint64_t)1 << 46, error);
    }
    return status;
}
