/*
 * tools/store.h -- opening, committing and closing, with what is said about it.
 *
 * What returns an exit code has printed its failure.
 */
#ifndef TOOLS_STORE_H
#define TOOLS_STORE_H

#include <stdint.h>

#include "engine/stele.h"
#include "tools/exit_code.h"
#include "tools/output.h"

/* The store in directory `path`, which must exist. */
int store_open_with(const char *path, const struct stele_options *options,
                    struct stele **store_out);

/* What to know about the file system of a store that was opened for writing, on
 * stderr; nothing, mostly. Returns the exit code. */
int store_note_file_system(struct stele *store);

/* For writing, with that note. */
int store_open_writing(const char *path, struct stele **store_out);

/* The same for reading only: works while another process writes. */
int store_open_reading(const char *path, struct stele **store_out);

/* Also a view, of the state at `lsn`. */
#define STORE_LSN_NEWEST UINT64_MAX
int store_open_view(const char *path, uint64_t lsn, struct stele **store_out,
                    struct stele_view **view_out);

/* Call `visit` for every table of the view in order of names, until it returns
 * something else than OK. */
typedef enum stele_status store_visit_table(void *context,
                                            struct stele_view *view,
                                            const char *table,
                                            struct stele_error *error);
enum stele_status store_for_each_table(
    struct stele_view *view, store_visit_table *visit, void *context,
    struct stele_error *error) STELE_MUST_CHECK;

/*
 * Close, and return `code`. What was committed is durable before this, so a
 * close that fails is told but does not change the outcome. Accepts NULL.
 */
int store_close(struct stele *store, int code);
int store_close_view(struct stele *store, struct stele_view *view, int code);

/* Commit durably and print "lsn <n>, <m> operations" (with --json: an object
 * with lsn and ops), flushed, so that whoever reads it knows. */
int store_commit(struct stele *store, struct stele_batch *batch,
                 const struct output_mode *mode);

/* Open for writing, commit this one batch, close. */
int store_commit_one(const char *path, struct stele_batch *batch,
                     const struct output_mode *mode);

#endif
