/*
 * tools/rocketmq/export.c -- see tools/rocketmq/export.h.
 *
 * The texts are made in memory, from one view, before the first byte is
 * written: a table that cannot be exported leaves the directory as it was.
 */
#include "tools/rocketmq/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/stele.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/rocketmq/layout.h"
#include "tools/store.h"

struct export
{
    const struct rocketmq_export_request *request;
    char *texts[ROCKETMQ_FILE_COUNT]; /* Owned; NULL: left out. */
    size_t text_bytes[ROCKETMQ_FILE_COUNT];
    uint64_t entry_counts[ROCKETMQ_FILE_COUNT];
};

/* Make text `index`. Leaves it NULL, and returns NOT_FOUND, if the table was
 * never written. */
static enum stele_status make_text(struct export *export, size_t index,
                                   struct stele_view *view,
                                   struct stele_error *error)
{
    const struct rocketmq_file *file = &rocketmq_files[index];
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    enum stele_status status;
    bool has_failed;

    if (out == NULL) {
        return error_no_memory(error, file->name);
    }
    progress_step("converting", file->name);
    status = rocketmq_from_view(file, view, &export->request->style, out,
                                &export->entry_counts[index], error);
    has_failed = ferror(out) != 0;
    has_failed = fclose(out) != 0 || has_failed;
    if (status == STELE_OK && has_failed) {
        status = error_no_memory(error, file->name);
    }
    if (status != STELE_OK) {
        free(text);
        return status;
    }
    export->texts[index] = text;
    export->text_bytes[index] = text_bytes;
    return STELE_OK;
}

static enum stele_status make_texts(struct export *export,
                                    struct stele_view *view,
                                    struct stele_error *error)
{
    size_t text_count = 0;

    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        const enum stele_status status = make_text(export, i, view, error);

        if (status == STELE_NOT_FOUND) {
            report_note("%s: left out, table %s was never written",
                        rocketmq_files[i].name, rocketmq_files[i].table);
        } else if (status != STELE_OK) {
            return status;
        } else {
            text_count += 1;
        }
    }
    if (text_count == 0) {
        return error_set(error, STELE_NOT_FOUND, "nothing to export");
    }
    return STELE_OK;
}

static enum stele_status write_files(const struct export *export,
                                     struct stele_error *error)
{
    struct bytes texts[ROCKETMQ_FILE_COUNT];

    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        texts[i] = (struct bytes){export->texts[i], export->text_bytes[i]};
    }
    progress_step("writing", export->request->out_path);
    return config_dir_write(export->request->out_path, texts,
                            export->request->existing, error);
}

static void print_results(const struct export *export)
{
    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        if (export->texts[i] == NULL) {
            continue;
        }
        printf(export->request->mode.json
                   ? "{\"file\":\"%s\",\"entries\":%" PRIu64 "}\n"
                   : "%s: %" PRIu64 " entries\n",
               rocketmq_files[i].name, export->entry_counts[i]);
    }
}

int rocketmq_export(const struct rocketmq_export_request *request)
{
    struct export export = {.request = request};
    struct stele *store = NULL;
    struct stele_view *view = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code =
        store_open_view(request->store_path, STORE_LSN_NEWEST, &store, &view);

    if (code != EXIT_DONE) {
        return code;
    }
    status = make_texts(&export, view, &error);
    if (status == STELE_OK) {
        status = write_files(&export, &error);
    }
    progress_end();
    if (status == STELE_OK) {
        print_results(&export);
    } else {
        code = report_error(status, &error);
    }
    for (size_t i = 0; i < ROCKETMQ_FILE_COUNT; i++) {
        free(export.texts[i]);
    }
    return store_close_view(store, view, code);
}
