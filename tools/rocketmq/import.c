/*
 * tools/rocketmq/import.c -- see tools/rocketmq/import.h.
 *
 * All files are read and converted before the store is opened; the batch is
 * then committed as a whole. So a refused file changes nothing.
 */
#include "tools/rocketmq/import.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "engine/stele.h"
#include "tools/input.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/rocketmq/config_dir.h"
#include "tools/rocketmq/layout.h"
#include "tools/rocketmq/to_batch.h"
#include "tools/store.h"

struct import {
    const char *config_path;
    struct stele_batch *batch;
    size_t file_count; /* Found and converted. */
    uint64_t entry_counts[ROCKETMQ_FILE_COUNT];
};

static enum stele_status import_text(struct import *import, size_t index,
                                     struct bytes text,
                                     struct stele_error *error)
{
    const char *name = rocketmq_files[index].name;
    const enum stele_status status =
        rocketmq_to_batch(&rocketmq_files[index], text, import->batch,
                          &import->entry_counts[index], error);

    if (status != STELE_OK) {
        error_wrap(error, status, "%s/%s", import->config_path, name);
        return config_dir_mention_backup(import->config_path, name, status,
                                         error);
    }
    import->file_count += 1;
    return STELE_OK;
}

static enum stele_status import_file(struct import *import, size_t index,
                                     struct stele_error *error)
{
    const struct rocketmq_file *file = &rocketmq_files[index];
    struct input input = {0};
    enum stele_status status =
        config_dir_read(import->config_path, file->name, &input, error);

    if (status == STELE_NOT_FOUND) {
        report_note("%s/%s: no such file; %s stay as they are",
                    import->config_path, file->name, file->noun);
        return STELE_OK;
    }
    if (status != STELE_OK) {
        return status;
    }
    progress_step("converting", file->name);
    status = import_text(import, index, (struct bytes){input.data, input.bytes},
                         error);
    input_free(&input);
    return status;
}

static enum stele_status import_files(struct import *import,
                                      struct stele_error *error)
{
    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        const enum stele_status status = import_file(import, i, error);

        if (status != STELE_OK) {
            return status;
        }
    }
    if (import->file_count == 0) {
        return error_set(error, STELE_CORRUPT,
                         "%s: none of the files to import is there",
                         import->config_path);
    }
    return STELE_OK;
}

static void print_result(const struct import *import, uint64_t lsn,
                         const struct output_mode *mode)
{
    const uint64_t ops = stele_batch_ops(import->batch);

    printf(mode->json ? "{\"lsn\":%" PRIu64 ",\"ops\":%" PRIu64
                      : "lsn %" PRIu64 ", %" PRIu64 " operations",
           lsn, ops);
    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        const char *noun = rocketmq_files[i].noun;
        const uint64_t count = import->entry_counts[i];

        if (mode->json) {
            printf(",\"%s\":%" PRIu64, noun, count);
        } else {
            printf("%s %" PRIu64 " %s", i == 0 ? ":" : ",", count, noun);
        }
    }
    fputs(mode->json ? "}\n" : "\n", stdout);
}

static int commit(struct stele *store, const struct import *import,
                  const struct output_mode *mode)
{
    struct stele_commit_result result = {0};
    struct stele_error error = {0};
    enum stele_status status;

    progress_step("committing", "all of it as one batch");
    status = stele_commit(store, import->batch, STELE_DURABLE, &result, &error);
    progress_end();
    if (status == STELE_TOO_BIG) {
        report_problem("nothing imported: an import is one batch, and this one "
                       "of %" PRIu64 " operations and %" PRIu64
                       " bytes is over a limit of the store: %s (a store made "
                       "with a larger --segment-bytes takes more bytes)",
                       stele_batch_ops(import->batch),
                       stele_batch_bytes(import->batch), error.message);
        return exit_code_of(status);
    }
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    print_result(import, result.lsn, mode);
    return EXIT_DONE;
}

int rocketmq_import(const char *store_path, const char *config_path,
                    const struct output_mode *mode)
{
    struct import import = {.config_path = config_path};
    struct stele *store = NULL;
    struct stele_error error = {0};
    enum stele_status status = stele_batch_create(&import.batch, &error);
    int code;

    if (status == STELE_OK) {
        status = import_files(&import, &error);
    }
    if (status != STELE_OK) {
        code = report_error(status, &error);
    } else {
        code = store_open_writing(store_path, &store);
    }
    if (code == EXIT_DONE) {
        code = commit(store, &import, mode);
    }
    stele_batch_destroy(import.batch);
    return store_close(store, code);
}
