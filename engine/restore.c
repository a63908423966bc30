/*
 * engine/restore.c -- stele_restore(): a new store that begins with a state of an
 * archive.
 *
 * The happy path, all of it in a sibling, PATH.restore-tmp: find the base and the last
 * unit (engine/restore_point.h); build an index from them, as a rebuild does; copy it
 * into a snapshot of the new store, read that back; empty the index; ANCHOR; then the
 * sibling gets its name.
 *
 * The new store has a uuid of its own and no log: two stores that went on from one
 * state must not be taken for each other, and a unit that was cut in two has no
 * place in a log. Its index is built by the first open, from the snapshot.
 *
 * A failure removes the sibling. What a killed process leaves of it is known by the
 * mark, index.tmp/RESTORE.lock, which is durable before there is anything else and
 * goes after the rename, and by holding nothing that only a store has that was once
 * open; the next restore removes it, unless somebody has the mark locked. (A mark that
 * is left in a store goes with the rest of index.tmp/ when it is first opened.)
 */
#include "engine/restore.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "base/path.h"
#include "engine/bases.h"
#include "engine/create.h"
#include "engine/options.h"
#include "engine/rebuild.h"
#include "engine/restore_point.h"
#include "engine/snapshot_copy.h"
#include "snapshot/reader.h"
#include "snapshot/writer.h"
#include "wal/anchor.h"

#define SIBLING_SUFFIX ".restore-tmp"
#define MARK_NAME      "RESTORE.lock"

enum { COPY_BYTES = 1 << 20 };

struct restore {
    const struct store_tuning *tuning;
    struct stele_restore_options options;
    struct stele_options defaults;
    struct restore_source source;
    struct restore_point point;
    struct io_dir *parent; /* In which the store gets its ... */
    char *name;            /* ... name. */
    char *sibling;         /* The name until then. */
    struct io_dir *dir;    /* The sibling. */
    struct io_dir *index_dir;
    struct io_file *mark;      /* Locked. */
    struct wal_anchor anchor;  /* Of the new store. */
    struct snapshot_info info; /* Of its snapshot. */
};

/* ---- The sibling ----------------------------------------------------------------- */

struct leftover {
    bool begun; /* index.tmp/ is there ... */
    bool other; /* ... and more. */
    bool foreign;
};

static enum stele_status note_entry(void *context, const char *name,
                                    struct stele_error *error)
{
    struct leftover *leftover = context;

    (void)error;
    if (strcmp(name, STORE_INDEX_TMP_NAME) == 0) {
        leftover->begun = true;
        return STELE_OK;
    }
    leftover->other = true;
    leftover->foreign =
        leftover->foreign || (strcmp(name, STORE_WAL_NAME) != 0 &&
                              strcmp(name, STORE_SNAPSHOT_NAME) != 0 &&
                              strcmp(name, WAL_ANCHOR_NAME) != 0 &&
                              strcmp(name, WAL_ANCHOR_NAME ".tmp") != 0);
    return STELE_OK;
}

static enum stele_status unlink_all_but_mark(void *context, const char *name,
                                             struct stele_error *error)
{
    return strcmp(name, MARK_NAME) == 0 ? STELE_OK
                                        : io_unlink(context, name, error);
}

static enum stele_status remove_file(struct io_dir *dir, const char *name,
                                     struct stele_error *error)
{
    const enum stele_status status = io_unlink(dir, name, error);

    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

/* All that may be in it; the mark, by which it is known, when the rest is gone for
 * good. */
static enum stele_status remove_contents(struct io_dir *dir,
                                         struct stele_error *error)
{
    struct io_dir *index_dir;
    enum stele_status status = remove_file(dir, WAL_ANCHOR_NAME, error);

    if (status == STELE_OK) {
        status = remove_file(dir, WAL_ANCHOR_NAME ".tmp", error);
    }
    if (status == STELE_OK) {
        status = io_remove_dir(dir, STORE_SNAPSHOT_NAME, error);
    }
    if (status == STELE_OK) {
        status = io_remove_dir(dir, STORE_WAL_NAME, error);
    }
    if (status == STELE_OK) {
        status = io_dir_sync(dir, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    status = io_dir_open_in(dir, STORE_INDEX_TMP_NAME, &index_dir, error);
    if (status == STELE_NOT_FOUND) {
        return STELE_OK;
    }
    if (status == STELE_OK) {
        status = io_dir_list(index_dir, unlink_all_but_mark, index_dir, error);
        if (status == STELE_OK) {
            status = io_dir_sync(index_dir, error);
        }
        io_dir_close(index_dir);
    }
    return status == STELE_OK ? io_remove_dir(dir, STORE_INDEX_TMP_NAME, error)
                              : status;
}

/* It was killed before it could mark it: then there is nothing in it. Or it is about
 * to, and may come to its end while we look: so nothing but empty directories go. */
static enum stele_status remove_unmarked(struct io_dir *dir,
                                         struct stele_error *error)
{
    const enum stele_status status = io_rmdir(dir, STORE_INDEX_TMP_NAME, error);

    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

/* Lock the mark of the sibling that is there. EXISTS: it has none. */
static enum stele_status lock_leftover(struct restore *restore,
                                       struct io_dir *dir,
                                       struct stele_error *error)
{
    struct io_dir *index_dir;
    enum stele_status status =
        io_dir_open_in(dir, STORE_INDEX_TMP_NAME, &index_dir, error);

    if (status == STELE_OK) {
        status = io_file_open(index_dir, MARK_NAME, IO_OPEN_READ_WRITE,
                              &restore->mark, error);
        io_dir_close(index_dir);
    }
    if (status == STELE_NOT_FOUND) {
        return error_set(error, STELE_EXISTS,
                         "%s is in the way, and not what a restore leaves",
                         io_dir_path(dir));
    }
    if (status == STELE_OK) {
        status = io_file_lock(restore->mark, 0, error);
    }
    return status == STELE_LOCKED
               ? error_set(error, STELE_LOCKED, "another restore is making %s",
                           io_dir_path(dir))
               : status;
}

/* Whether the name still leads there: whoever held the mark may have finished. */
static enum stele_status check_sibling(struct restore *restore,
                                       struct io_dir *dir,
                                       struct stele_error *error)
{
    struct io_file_info named;
    struct io_file_info opened;
    enum stele_status status = io_dir_info(dir, &opened, error);

    if (status == STELE_OK) {
        status = io_info(restore->parent, restore->sibling, &named, error);
    }
    if (status == STELE_NOT_FOUND ||
        (status == STELE_OK && named.inode != opened.inode)) {
        return error_set(error, STELE_LOCKED, "another restore has made %s",
                         restore->name);
    }
    return status;
}

static enum stele_status check_leftover(struct restore *restore,
                                        struct io_dir *dir,
                                        struct stele_error *error)
{
    struct leftover leftover = {0};
    enum stele_status status = io_dir_list(dir, note_entry, &leftover, error);

    if (status == STELE_OK && leftover.foreign) {
        status = error_set(error, STELE_EXISTS,
                           "%s is in the way, and not what a restore leaves",
                           io_dir_path(dir));
    }
    if (status == STELE_OK && (leftover.begun || leftover.other)) {
        status = lock_leftover(restore, dir, error);
        if (status == STELE_EXISTS && !leftover.other) {
            status = STELE_OK; /* It was killed before it could mark it. */
        }
    }
    return status == STELE_OK ? check_sibling(restore, dir, error) : status;
}

static enum stele_status other_restore(const struct restore *restore,
                                       struct stele_error *error)
{
    return error_set(error, STELE_LOCKED, "another restore is making %s",
                     restore->name);
}

/* What a restore that was killed has left. */
static enum stele_status remove_leftover(struct restore *restore,
                                         struct stele_error *error)
{
    struct io_dir *dir;
    enum stele_status status =
        io_dir_open_in(restore->parent, restore->sibling, &dir, error);

    if (status == STELE_NOT_FOUND) {
        return STELE_OK;
    }
    if (status != STELE_OK) {
        return status;
    }
    status = check_leftover(restore, dir, error);
    if (status == STELE_OK) {
        status = restore->mark == NULL ? remove_unmarked(dir, error)
                                       : remove_contents(dir, error);
    }
    if (status == STELE_OK) {
        status = io_rmdir(restore->parent, restore->sibling, error);
    }
    io_dir_close(dir);
    io_file_close(restore->mark); /* Held until the name is gone. */
    restore->mark = NULL;
    return status == STELE_NOT_FOUND ? other_restore(restore, error) : status;
}

static enum stele_status mark_sibling(struct restore *restore,
                                      struct stele_error *error)
{
    enum stele_status status =
        io_dir_create_in(restore->dir, STORE_INDEX_TMP_NAME, error);

    if (status == STELE_OK) {
        status = io_dir_open_in(restore->dir, STORE_INDEX_TMP_NAME,
                                &restore->index_dir, error);
    }
    if (status == STELE_OK) {
        status = io_file_open(restore->index_dir, MARK_NAME, IO_OPEN_CREATE_NEW,
                              &restore->mark, error);
    }
    if (status == STELE_OK) {
        status = io_file_lock(restore->mark, 0, error);
    }
    /* By this the sibling is known: it must not be missing where there is
     * anything else. */
    if (status == STELE_OK) {
        status = io_dir_sync(restore->index_dir, error);
    }
    return status == STELE_OK ? io_dir_sync(restore->dir, error) : status;
}

static enum stele_status make_sibling(struct restore *restore,
                                      struct stele_error *error)
{
    enum stele_status status =
        io_dir_create_in(restore->parent, restore->sibling, error);

    if (status == STELE_OK) {
        status = io_dir_open_in(restore->parent, restore->sibling,
                                &restore->dir, error);
    }
    if (status == STELE_OK) {
        status = mark_sibling(restore, error);
    }
    /* Between its mark and the lock on it, it was a leftover to others. */
    if (status == STELE_OK) {
        status = check_sibling(restore, restore->dir, error);
    }
    /* We have looked: there was nothing. */
    return status == STELE_EXISTS || status == STELE_NOT_FOUND
               ? other_restore(restore, error)
               : status;
}

/* After a failure; what cannot be removed, the next restore may. */
static void remove_sibling(struct restore *restore)
{
    struct stele_error ignored;

    if (restore->dir != NULL &&
        remove_contents(restore->dir, &ignored) == STELE_OK &&
        io_rmdir(restore->parent, restore->sibling, &ignored) != STELE_OK) {
        return;
    }
}

/* ---- Where to ---------------------------------------------------------------------- */

static enum stele_status refuse_entry(void *context, const char *name,
                                      struct stele_error *error)
{
    return error_set(error, STELE_EXISTS, "%s is not empty: it has %.100s",
                     io_dir_path(context), name);
}

/* There must be nothing, or an empty directory. */
static enum stele_status check_target(struct restore *restore,
                                      struct stele_error *error)
{
    struct io_file_info info;
    struct io_dir *dir;
    enum stele_status status =
        io_info(restore->parent, restore->name, &info, error);

    if (status == STELE_NOT_FOUND) {
        return STELE_OK;
    }
    if (status == STELE_OK && info.type != IO_TYPE_DIRECTORY) {
        status = error_set(error, STELE_EXISTS, "%s is there, and no directory",
                           restore->name);
    }
    if (status == STELE_OK) {
        status = io_dir_open_in(restore->parent, restore->name, &dir, error);
    }
    if (status == STELE_OK) {
        status = io_dir_list(dir, refuse_entry, dir, error);
        io_dir_close(dir);
    }
    return status;
}

static enum stele_status open_parent(struct restore *restore, const char *path,
                                     struct stele_error *error)
{
    char *parent = path_parent(path);
    enum stele_status status = STELE_OK;
    size_t sibling_bytes;

    restore->name = path_name(path);
    if (parent == NULL || restore->name == NULL) {
        free(parent);
        return error_no_memory(error, "path");
    }
    if (restore->name[0] == '\0' || strcmp(restore->name, ".") == 0 ||
        strcmp(restore->name, "..") == 0) {
        status = error_set(error, STELE_INVALID,
                           "%s: the new directory needs a name", path);
    }
    sibling_bytes = strlen(restore->name) + sizeof SIBLING_SUFFIX;
    restore->sibling = malloc(sibling_bytes);
    if (status == STELE_OK && restore->sibling == NULL) {
        status = error_no_memory(error, "path");
    }
    if (status == STELE_OK) {
        snprintf(restore->sibling, sibling_bytes, "%s" SIBLING_SUFFIX,
                 restore->name);
        status =
            io_dir_open(restore->tuning->io, parent, &restore->parent, error);
        if (status == STELE_NOT_FOUND) {
            status =
                error_set(error, STELE_IO, "%s: no such directory", parent);
        }
    }
    free(parent);
    return status;
}

/* ---- The state ----------------------------------------------------------------------- */

static enum stele_status build_index(struct restore *restore,
                                     bool *base_damaged_out,
                                     struct stele_error *error)
{
    const struct rebuild_plan plan = {
        .dir = restore->index_dir,
        .options = {.map_bytes = restore->defaults.index_map_bytes,
                    .readers_max = 1},
        .identity = {.uuid = restore->source.archive.uuid, .generation = 1},
        .base = restore->point.base,
        .snapshot_dir = restore->source.snapshot_dir,
        .wal_dir = restore->source.wal_dir,
        .segment_oldest = restore->source.anchor.segment_oldest,
        .unit_last = restore->point.unit_last,
        .lsn_last = restore->point.lsn,
        .tail = REBUILD_ALL,
        .memtable_bytes = restore->defaults.memtable_bytes,
        .hash_seed = restore->tuning->hash_seed,
        .pages_max = restore->tuning->checkpoint_pages_max,
        .progress = restore->options.progress,
        .progress_context = restore->options.context,
    };
    /* What is left of one that was begun on a damaged base. */
    enum stele_status status = io_dir_list(
        restore->index_dir, unlink_all_but_mark, restore->index_dir, error);

    *base_damaged_out = false;
    return status == STELE_OK ? rebuild_index(&plan, base_damaged_out, error)
                              : status;
}

/* From the newest base that is sound to its last byte; of one that is not, the next
 * older one and the longer log are used. If that does not do, what was damaged is the
 * reason. */
static enum stele_status build_state(struct restore *restore,
                                     struct stele_error *error)
{
    const struct restore_target target = {
        .lsn = restore->options.until_lsn,
        .time_ns = restore->options.until_time_ns,
    };
    struct stele_error damage = {0};

    for (;;) {
        struct stele_error failure = {0};
        bool damaged = false;
        enum stele_status status = restore_point_find(
            &restore->source, &target, &restore->point, &failure);

        if (status == STELE_NOT_FOUND && damage.status != STELE_OK) {
            failure = damage;
            failure.status = bases_status(&damage);
            status = failure.status;
        }
        if (status == STELE_OK) {
            status = build_index(restore, &damaged, &failure);
        }
        if (status == STELE_OK || !damaged) {
            if (status != STELE_OK && error != NULL) {
                *error = failure;
            }
            return status;
        }
        damage = failure;
        bases_rule_out(restore->point.base, &failure);
    }
}

/* ---- The store ------------------------------------------------------------------------- */

static enum stele_status prepare_anchor(struct restore *restore,
                                        struct stele_error *error)
{
    struct wal_anchor *anchor = &restore->anchor;
    const uint64_t lsn = restore->point.lsn;
    const enum stele_status status =
        create_anchor(restore->tuning->io,
                      restore->source.archive.segment_bytes, anchor, error);

    if (status == STELE_OK) {
        anchor->parent_uuid = restore->source.archive.uuid;
        anchor->parent_lsn = lsn;
        /* The other store may have gone on: its LSNs are not given here again. */
        anchor->lsn_floor = lsn + STORE_LSN_SKIP;
        anchor->snapshots[0] = lsn;
        anchor->durable = wal_anchor_origin(anchor);
    }
    return status;
}

static enum stele_status read_back(struct io_dir *dir,
                                   const struct snapshot_info *info,
                                   struct stele_error *error)
{
    struct snapshot_reader *reader;
    enum stele_status status = snapshot_reader_open(
        dir, info->lsn, SNAPSHOT_TEMPORARY, info->uuid, &reader, error);

    bool done;

    if (status == STELE_OK) {
        status = snapshot_reader_verify(reader, UINT64_MAX, &done, error);
        snapshot_reader_close(reader);
    }
    return status;
}

static enum stele_status copy_entries(struct restore *restore,
                                      struct index_reader *reader,
                                      struct snapshot_writer *writer,
                                      struct stele_error *error)
{
    const struct wal_position origin = wal_anchor_origin(&restore->anchor);
    const struct stele_restore_options *options = &restore->options;
    struct snapshot_copy copy;
    bool done = false;
    enum stele_status status = snapshot_copy_open(&copy, reader, writer, error);

    while (status == STELE_OK && !done) {
        status = snapshot_copy_advance(&copy, COPY_BYTES, &done, error);
        if (options->progress != NULL) {
            options->progress(options->context, "writing the snapshot",
                              snapshot_writer_bytes(writer), 0);
        }
    }
    if (status == STELE_OK) {
        status = snapshot_copy_finish(&copy, &origin, &restore->info, error);
    }
    snapshot_copy_close(&copy);
    return status;
}

static enum stele_status write_snapshot_in(struct restore *restore,
                                           struct io_dir *dir,
                                           struct index_reader *reader,
                                           struct stele_error *error)
{
    struct snapshot_writer *writer;
    bool ignored;
    enum stele_status status = snapshot_writer_create(
        dir, restore->anchor.uuid.bytes, restore->point.lsn, &writer, error);

    if (status != STELE_OK) {
        return status;
    }
    status = copy_entries(restore, reader, writer, error);
    if (status == STELE_OK) {
        /* It is all that this store has. */
        status = read_back(dir, &restore->info, error);
    }
    if (status == STELE_OK) {
        status = snapshot_writer_publish(writer, &ignored, error);
    }
    snapshot_writer_destroy(writer);
    return status;
}

/* The one base of the new store. */
static enum stele_status write_snapshot(struct restore *restore,
                                        struct stele_error *error)
{
    const struct index_options options = {
        .map_bytes = restore->defaults.index_map_bytes, .readers_max = 1};
    struct index_reader *reader = NULL;
    struct index *index = NULL;
    struct io_dir *dir = NULL;
    enum stele_status status =
        index_open(restore->index_dir, &options, &index, error);

    if (status == STELE_OK) {
        status = index_reader_acquire(index, &reader, error);
    }
    if (status == STELE_OK) {
        status = io_dir_open_in(restore->dir, STORE_SNAPSHOT_NAME, &dir, error);
    }
    if (status == STELE_OK) {
        status = write_snapshot_in(restore, dir, reader, error);
    }
    io_dir_close(dir);
    index_reader_release(reader);
    index_close(index);
    return status;
}

static enum stele_status make_store(struct restore *restore,
                                    struct stele_error *error)
{
    enum stele_status status = prepare_anchor(restore, error);

    if (status == STELE_OK) {
        status = create_layout(restore->dir, &restore->anchor, error);
    }
    /* The empty state at LSN 0 is what a log begins with by itself. */
    if (status == STELE_OK && restore->point.lsn > 0) {
        status = write_snapshot(restore, error);
    }
    if (status == STELE_OK) {
        status = io_dir_list(restore->index_dir, unlink_all_but_mark,
                             restore->index_dir, error);
    }
    return status == STELE_OK
               ? wal_anchor_create(restore->dir, &restore->anchor, error)
               : status;
}

static enum stele_status give_name(struct restore *restore,
                                   struct stele_error *error)
{
    enum stele_status status = io_rename(restore->parent, restore->sibling,
                                         restore->parent, restore->name, error);
    struct stele_error ignored;

    if (status != STELE_OK) {
        return status;
    }
    /* A store that a power cut takes away was not restored. */
    status = io_dir_sync(restore->parent, error);
    if (status == STELE_OK && io_remove_dir(restore->dir, STORE_INDEX_TMP_NAME,
                                            &ignored) != STELE_OK) {
        /* Then the first open removes it. */
    }
    io_dir_close(restore->dir); /* It is no sibling any more. */
    restore->dir = NULL;
    return status;
}

/* ---- All of it ------------------------------------------------------------------------ */

static enum stele_status run(struct restore *restore, const char *archive,
                             const char *path, struct stele_error *error)
{
    enum stele_status status = restore_source_open(restore->tuning->io, archive,
                                                   &restore->source, error);

    if (status == STELE_OK) {
        status = open_parent(restore, path, error);
    }
    if (status == STELE_OK) {
        status = check_target(restore, error);
    }
    if (status == STELE_OK) {
        status = remove_leftover(restore, error);
    }
    if (status == STELE_OK) {
        status = make_sibling(restore, error);
    }
    if (status == STELE_OK) {
        status = build_state(restore, error);
    }
    if (status == STELE_OK) {
        status = make_store(restore, error);
    }
    return status == STELE_OK ? give_name(restore, error) : status;
}

static enum stele_status take_options(const struct stele_restore_options *given,
                                      struct stele_restore_options *options,
                                      struct stele_error *error)
{
    *options = (struct stele_restore_options){.size = sizeof *options};
    if (given != NULL) {
        if (given->size == 0 || given->size > sizeof *options) {
            return error_set(error, STELE_INVALID,
                             "options of %zu bytes: set size to sizeof",
                             given->size);
        }
        memcpy(options, given, given->size);
    }
    if (options->until_lsn != 0 && options->until_time_ns != 0) {
        return error_set(error, STELE_INVALID,
                         "either until_lsn or until_time_ns, not both");
    }
    if (options->until_lsn == 0) {
        options->until_lsn = UINT64_MAX;
    }
    if (options->until_time_ns == 0) {
        options->until_time_ns = UINT64_MAX;
    }
    return STELE_OK;
}

static void fill_report(const struct restore *restore,
                        struct stele_restore_report *report)
{
    struct stele_restore_report filled = {
        .size = report->size,
        .lsn = restore->point.lsn,
        .time_ns = restore->point.wall_ns,
        .keys = restore->info.totals.keys,
        .tables = restore->info.totals.tables,
    };

    memcpy(filled.uuid, restore->anchor.uuid.bytes, sizeof filled.uuid);
    memcpy(report, &filled, report->size);
}

enum stele_status restore_store(const char *archive, const char *path,
                                const struct stele_restore_options *options,
                                const struct store_tuning *tuning,
                                struct stele_restore_report *report,
                                struct stele_error *error)
{
    struct restore restore = {.tuning = tuning};
    enum stele_status status = take_options(options, &restore.options, error);

    if (status == STELE_OK && report != NULL &&
        (report->size == 0 || report->size > sizeof *report)) {
        status = error_set(error, STELE_INVALID,
                           "a report of %zu bytes: set size to sizeof",
                           report->size);
    }
    if (status == STELE_OK) {
        stele_options_init(&restore.defaults);
        status = run(&restore, archive, path, error);
    }
    if (status != STELE_OK) {
        remove_sibling(&restore);
    } else if (report != NULL) {
        fill_report(&restore, report);
    }
    io_file_close(restore.mark); /* Held to the end. */
    io_dir_close(restore.index_dir);
    io_dir_close(restore.dir);
    io_dir_close(restore.parent);
    free(restore.name);
    free(restore.sibling);
    restore_source_close(&restore.source);
    return status;
}

enum stele_status stele_restore(const char *archive, const char *path,
                                const struct stele_restore_options *options,
                                struct stele_restore_report *report,
                                struct stele_error *error)
{
    struct store_tuning tuning;

    if (archive == NULL || archive[0] == '\0' || path == NULL ||
        path[0] == '\0') {
        return error_set(error, STELE_INVALID, "a path is empty");
    }
    store_tuning_init(&tuning);
    return restore_store(archive, path, options, &tuning, report, error);
}
