/* engine/base_open.c -- see engine/base_open.h. */
#include "engine/base_open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/bases.h"
#include "engine/enter.h"
#include "engine/index_file.h"
#include "engine/quarantine.h"
#include "engine/rebuild.h"
#include "engine/snapshots.h"

enum {
    READERS_SPARE = 64, /* Leaders, verifiers, and other processes. */
};

static struct index_options base_index_options(const struct stele *store)
{
    return (struct index_options){
        .map_bytes = store->options.index_map_bytes,
        .readers_max = store->options.views_max + READERS_SPARE,
        .read_only = store->read_only,
    };
}

static enum stele_status data_info(struct stele *store, const char *dir_name,
                                   struct io_file_info *info_out,
                                   struct stele_error *error)
{
    struct io_dir *dir;
    enum stele_status status =
        io_dir_open_in(store->dir, dir_name, &dir, error);

    if (status == STELE_OK) {
        status = io_info(dir, INDEX_DATA_NAME, info_out, error);
        io_dir_close(dir);
    }
    return status;
}

/*
 * Whether nobody but the store's owner can have a hand in the file: LMDB maps it
 * and follows what it finds, so whoever can write it can crash us at any time.
 *
 * The owner of the store is who owns ANCHOR, not who owns the directory: a
 * directory is often made by root for a service. Files of our own are accepted
 * as well: root may open a store of another user, and would otherwise refuse the
 * index that it has just rebuilt there. (Its user then sets that one aside; the
 * index is expendable.)
 */
static enum stele_status check_hands(struct stele *store,
                                     const struct io_file_info *info,
                                     bool *ours_out, struct stele_error *why,
                                     struct stele_error *error)
{
    struct io_file_info anchor;
    const uint32_t own_uid = io_effective_uid();
    const enum stele_status status =
        io_file_info(store->anchor_file.file, &anchor, error);

    if (status != STELE_OK) {
        return status;
    }
    *ours_out = false;
    if (info->owner_uid != anchor.owner_uid && info->owner_uid != own_uid) {
        error_set(why, STELE_FOREIGN,
                  "index/data.mdb belongs to user %" PRIu32 ", not to %" PRIu32
                  " like ANCHOR, nor to %" PRIu32 " like this process",
                  info->owner_uid, anchor.owner_uid, own_uid);
    } else if (info->link_count != 1) {
        error_set(why, STELE_FOREIGN,
                  "index/data.mdb has %" PRIu64 " names, expected one",
                  info->link_count);
    } else {
        *ours_out = true;
    }
    return STELE_OK;
}

/* Is it the file that ANCHOR names? */
static enum stele_status check_identity(struct stele *store, bool *ours_out,
                                        struct stele_error *why,
                                        struct stele_error *error)
{
    struct io_file_info info;
    enum stele_status status;

    *ours_out = false;
    if (store->anchor.index_generation == 0) {
        error_set(why, STELE_NOT_FOUND, "no index was built yet");
        return STELE_OK;
    }
    if (store->anchor.index_suspect) {
        error_set(why, STELE_CORRUPT, "ANCHOR says that the index is damaged");
        return STELE_OK;
    }
    status = data_info(store, STORE_INDEX_NAME, &info, error);
    if (status == STELE_NOT_FOUND) {
        error_set(why, STELE_NOT_FOUND, "index/data.mdb is missing");
        return STELE_OK;
    }
    if (status == STELE_FOREIGN) {
        error_set(why, STELE_FOREIGN, "index is not a directory");
        return STELE_OK;
    }
    if (status != STELE_OK) {
        return status; /* EACCES, EMFILE, EIO are not absence. */
    }
    if (info.type != IO_TYPE_REGULAR) {
        error_set(why, STELE_FOREIGN, "index/data.mdb is not a regular file");
        return STELE_OK;
    }
    if (info.inode != store->anchor.index_inode ||
        info.birth_time_ns != store->anchor.index_birth_ns) {
        error_set(why, STELE_FOREIGN,
                  "index/data.mdb is not the file that ANCHOR names (a copy?)");
        return STELE_OK;
    }
    return check_hands(store, &info, ours_out, why, error);
}

/* Open it with a reader slot; or without one, if only reading is asked for, no
 * writer is alive, and lock.mdb is missing or may not be written. */
static enum stele_status open_index_in(struct stele *store, struct io_dir *dir,
                                       struct stele_error *error)
{
    struct index_options options = base_index_options(store);
    struct io_file_info ignored;
    enum stele_status status;
    bool alive = true;

    store->index_no_lock = false;
    if (!store->read_only) {
        return index_open(dir, &options, &store->index, error);
    }
    status = enter_writer_alive(store, &alive, error);
    if (status != STELE_OK) {
        return status;
    }
    options.no_lock = !alive && io_info(dir, INDEX_LOCK_NAME, &ignored,
                                        error) == STELE_NOT_FOUND;
    status = index_open(dir, &options, &store->index, error);
    if (status == STELE_IO && !alive && !options.no_lock &&
        (error->sys_errno == EACCES || error->sys_errno == EROFS ||
         error->sys_errno == EPERM)) {
        options.no_lock = true;
        status = index_open(dir, &options, &store->index, error);
    }
    store->index_no_lock = status == STELE_OK && options.no_lock;
    return status;
}

static enum stele_status open_index(struct stele *store,
                                    struct stele_error *error)
{
    struct io_dir *dir = NULL;
    enum stele_status status =
        io_dir_open_in(store->dir, STORE_INDEX_NAME, &dir, error);

    if (status == STELE_OK) {
        status = open_index_in(store, dir, error);
    }
    io_dir_close(dir);
    return status;
}

enum stele_status base_open(struct stele *store, bool *usable_out,
                            struct stele_error *why, struct stele_error *error)
{
    struct stele_error reason = {0};
    enum stele_status status =
        check_identity(store, usable_out, &reason, error);
    const struct index_identity *identity;

    if (why != NULL) {
        *why = reason;
    }
    if (status != STELE_OK || !*usable_out) {
        return status;
    }
    status = open_index(store, &reason);
    if (status == STELE_OK) {
        identity = index_identity(store->index);
        if (wal_uuid_equal(&identity->uuid, &store->uuid) &&
            identity->generation == store->anchor.index_generation) {
            return STELE_OK;
        }
        index_close(store->index);
        store->index = NULL;
        status = error_set(&reason, STELE_FOREIGN,
                           "the index belongs to another store or is of "
                           "another generation");
    }
    *usable_out = false;
    if (why != NULL) {
        *why = reason;
    }
    if (status == STELE_CORRUPT || status == STELE_FOREIGN ||
        status == STELE_NOT_FOUND) {
        return STELE_OK; /* Expendable. */
    }
    if (error != NULL) {
        *error = reason;
    }
    return status;
}

enum stele_status base_find(struct stele *store, struct stele_error *error)
{
    bool usable;

    return store->options.ignore_index ? STELE_OK
                                       : base_open(store, &usable, NULL, error);
}

/* ---- Setting aside ------------------------------------------------------------ */

static enum stele_status set_index_aside(struct stele *store,
                                         struct stele_error *error)
{
    const enum stele_status status =
        quarantine_move(store, store->dir, STORE_INDEX_NAME, error);

    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

/* ---- Rebuilding ------------------------------------------------------------------ */

static void name_index(struct wal_anchor *anchor, const void *context)
{
    const struct io_file_info *info = context;

    anchor->index_generation++;
    anchor->index_inode = info->inode;
    anchor->index_birth_ns = info->birth_time_ns;
    anchor->index_format = INDEX_FORMAT_VERSION;
    anchor->index_suspect = false;
}

/* In index.tmp/, from this base. */
static enum stele_status build_from(struct stele *store,
                                    const struct base_item *base,
                                    bool *base_damaged_out,
                                    struct stele_error *error)
{
    struct rebuild_plan plan = {
        .options = base_index_options(store),
        .identity = {.uuid = store->uuid,
                     .generation = store->anchor.index_generation + 1},
        .base = base,
        .snapshot_dir = store->snapshot_dir,
        .wal_dir = store->wal_dir,
        .segment_oldest = store->anchor.segment_oldest,
        .unit_last = store->recovery.end.unit,
        .lsn_last = UINT64_MAX,
        .tail = REBUILD_LEAVE_TAIL,
        .memtable_bytes = store->options.memtable_bytes,
        .hash_seed = store->hash_seed,
        .pages_max = store->tuning.checkpoint_pages_max,
        .progress = store->options.progress,
        .progress_context = store->options.progress_context,
    };
    /* What an earlier try has left. */
    enum stele_status status =
        io_remove_dir(store->dir, STORE_INDEX_TMP_NAME, error);

    *base_damaged_out = false;
    if (status == STELE_OK) {
        status = io_dir_create_in(store->dir, STORE_INDEX_TMP_NAME, error);
    }
    if (status == STELE_OK) {
        status =
            io_dir_open_in(store->dir, STORE_INDEX_TMP_NAME, &plan.dir, error);
    }
    if (status == STELE_OK) {
        status = rebuild_index(&plan, base_damaged_out, error);
    }
    io_dir_close(plan.dir);
    return status;
}

/* One that turned out not to be sound is set aside; one that cannot be read may be
 * sound, and is only passed over. */
static enum stele_status pass_over(struct stele *store, struct base_item *base,
                                   const struct stele_error *why,
                                   struct stele_error *error)
{
    bases_rule_out(base, why);
    store->snapshot_error = *why;
    return base->unreadable ? STELE_OK
                            : snapshots_set_aside(store, base->lsn, error);
}

static enum stele_status no_base_left(const struct stele *store,
                                      const struct bases *bases,
                                      struct stele_error *error)
{
    const struct stele_error *why = bases_why_none(bases);

    if (why == NULL) {
        why = &store->snapshot_error; /* Of those set aside before. */
    }
    return error_set(error, bases_status(why), "row E: no base is left%s%.180s",
                     why->message[0] == '\0' ? "" : ": ", why->message);
}

/* From the newest base that is sound to its last byte; else from the next older one
 * and the longer log. */
static enum stele_status build(struct stele *store, struct stele_error *error)
{
    struct base_item *base = NULL;
    struct bases bases;
    enum stele_status status = bases_read(store->snapshot_dir, store->wal_dir,
                                          &store->anchor, &bases, error);

    if (status != STELE_OK) {
        return status;
    }
    while (status == STELE_OK &&
           (base = bases_newest(&bases, store->recovery.end.lsn)) != NULL) {
        struct stele_error failure = {0};
        bool damaged;

        status = build_from(store, base, &damaged, &failure);
        if (status == STELE_OK) {
            break;
        }
        if (damaged) {
            status = pass_over(store, base, &failure, error);
        } else if (error != NULL) {
            *error = failure;
        }
    }
    if (status == STELE_OK && base == NULL) {
        status = no_base_left(store, &bases, error);
    }
    bases_free(&bases);
    return status;
}

enum stele_status base_rebuild(struct stele *store, struct stele_error *error)
{
    struct io_file_info info;
    struct stele_error why = {0};
    bool usable = false;
    enum stele_status status = build(store, error);

    if (status == STELE_OK) {
        status = data_info(store, STORE_INDEX_TMP_NAME, &info, error);
    }
    if (status == STELE_OK) {
        /* Not before there is another: it may be the only base that is left. */
        status = set_index_aside(store, error);
    }
    if (status == STELE_OK) {
        /* Before it gets its name: an index that nobody names would be set aside
         * by the next open, and one more by every crash. A named one that did
         * not get its name is only missing, and the temporary is removed. */
        status = store_write_anchor(store, name_index, &info, error);
    }
    if (status == STELE_OK) {
        status = io_rename(store->dir, STORE_INDEX_TMP_NAME, store->dir,
                           STORE_INDEX_NAME, error);
    }
    if (status == STELE_OK) {
        /* A power cut that took the name would cost the index. */
        status = io_dir_sync(store->dir, error);
    }
    if (status == STELE_OK) {
        status = base_open(store, &usable, &why, error);
    }
    if (status == STELE_OK && !usable) {
        status = error_set(error, STELE_IO,
                           "the index that was just built is refused: %s",
                           why.message);
    }
    return status == STELE_OK ? STELE_OK
                              : error_wrap(error, status, "rebuild the index");
}
