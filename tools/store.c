/* tools/store.c -- see tools/store.h. */
#include "tools/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/progress.h"
#include "tools/report.h"

int store_open_with(const char *path, const struct stele_options *options,
                    struct stele **store_out)
{
    struct stele_error error = {0};
    const enum stele_status status =
        stele_open(path, options, store_out, &error);

    progress_end();
    if (status == STELE_NOT_FOUND) {
        report_problem("%s: no store is there ('stele init %s' makes one)",
                       path, path);
        return EXIT_FOREIGN;
    }
    return status == STELE_OK ? EXIT_DONE : report_error(status, &error);
}

static int store_open(const char *path, enum stele_open_mode mode,
                      struct stele **store_out)
{
    struct stele_options options;

    stele_options_init(&options);
    options.mode = mode;
    options.progress = progress_of_store; /* A lost index is built anew. */
    return store_open_with(path, &options, store_out);
}

int store_note_file_system(struct stele *store)
{
    struct stele_stats stats = {.size = sizeof stats};
    struct stele_error error = {0};
    const enum stele_status status = stele_stats(store, &stats, &error);

    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    if (stats.fs_warning != NULL) {
        report_note("%s", stats.fs_warning);
    }
    return EXIT_DONE;
}

int store_open_writing(const char *path, struct stele **store_out)
{
    struct stele *store = NULL;
    int code = store_open(path, STELE_OPEN_EXISTING, &store);

    if (code == EXIT_DONE) {
        code = store_note_file_system(store);
    }
    if (code != EXIT_DONE) {
        return store_close(store, code);
    }
    *store_out = store;
    return EXIT_DONE;
}

int store_open_reading(const char *path, struct stele **store_out)
{
    return store_open(path, STELE_OPEN_READ_ONLY, store_out);
}

int store_open_view(const char *path, uint64_t lsn, struct stele **store_out,
                    struct stele_view **view_out)
{
    struct stele *store = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code = store_open_reading(path, &store);

    if (code != EXIT_DONE) {
        return code;
    }
    status = lsn == STORE_LSN_NEWEST
                 ? stele_view_open(store, view_out, &error)
                 : stele_view_open_at(store, lsn, view_out, &error);
    if (status != STELE_OK) {
        return store_close(store, report_error(status, &error));
    }
    *store_out = store;
    return EXIT_DONE;
}

enum stele_status store_for_each_table(struct stele_view *view,
                                       store_visit_table *visit, void *context,
                                       struct stele_error *error)
{
    char name[STELE_TABLE_NAME_BYTES_MAX + 1];
    char after[STELE_TABLE_NAME_BYTES_MAX + 1];
    enum stele_status status = stele_table_next(view, NULL, name, error);

    while (status == STELE_OK) {
        status = visit(context, view, name, error);
        if (status != STELE_OK) {
            return status;
        }
        memcpy(after, name, sizeof after);
        status = stele_table_next(view, after, name, error);
    }
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

int store_close(struct stele *store, int code)
{
    struct stele_error error = {0};

    if (store != NULL && stele_close(store, &error) != STELE_OK) {
        report_note("closing the store: %s", error.message);
    }
    return code;
}

int store_close_view(struct stele *store, struct stele_view *view, int code)
{
    stele_view_close(view);
    return store_close(store, code);
}

int store_commit(struct stele *store, struct stele_batch *batch,
                 const struct output_mode *mode)
{
    struct stele_commit_result result = {0};
    struct stele_error error = {0};
    const uint64_t ops = stele_batch_ops(batch);
    const enum stele_status status =
        stele_commit(store, batch, STELE_DURABLE, &result, &error);

    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    if (mode->json) {
        printf("{\"lsn\":%" PRIu64 ",\"ops\":%" PRIu64 "}\n", result.lsn, ops);
    } else {
        printf("lsn %" PRIu64 ", %" PRIu64 " operation%s\n", result.lsn, ops,
               ops == 1 ? "" : "s");
    }
    fflush(stdout); /* Checked by main(), with everything else printed. */
    return EXIT_DONE;
}

int store_commit_one(const char *path, struct stele_batch *batch,
                     const struct output_mode *mode)
{
    struct stele *store = NULL;
    int code = store_open_writing(path, &store);

    if (code == EXIT_DONE) {
        code = store_commit(store, batch, mode);
    }
    return store_close(store, code);
}
