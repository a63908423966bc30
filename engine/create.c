/* engine/create.c -- see engine/create.h. */
#include "engine/create.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/numbered.h"
#include "base/path.h"
#include "engine/store.h"
#include "wal/anchor.h"
#include "wal/segment.h"

enum stele_status create_directory(struct io *io, const char *path,
                                   struct stele_error *error)
{
    struct io_dir *parent_dir;
    enum stele_status status = io_dir_create(io, path, error);
    char *parent;

    if (status != STELE_OK && status != STELE_EXISTS) {
        return status;
    }
    parent = path_parent(path);
    if (parent == NULL) {
        return error_no_memory(error, "path");
    }
    status = io_dir_open(io, parent, &parent_dir, error);
    if (status == STELE_OK) {
        /* A store in a directory that a power cut takes away is no store. Also
         * if the directory was there: who made it may have died before this. */
        status = io_dir_sync(parent_dir, error);
        io_dir_close(parent_dir);
    }
    free(parent);
    return status;
}

/* ---- What a directory is --------------------------------------------------------- */

struct contents {
    bool anchor;
    bool wal;
    bool other; /* Of an unfinished creation. */
    bool foreign;
    char what[IO_NAME_BYTES_MAX + 1];
};

static enum stele_status note_entry(void *context, const char *name,
                                    struct stele_error *error)
{
    struct contents *contents = context;

    (void)error;
    if (strcmp(name, WAL_ANCHOR_NAME) == 0) {
        contents->anchor = true;
    } else if (strcmp(name, STORE_WAL_NAME) == 0) {
        contents->wal = true;
    } else if (strcmp(name, STORE_SNAPSHOT_NAME) == 0 ||
               strcmp(name, WAL_ANCHOR_NAME ".tmp") == 0) {
        contents->other = true;
    } else if (strcmp(name, STORE_LOCK_NAME) != 0) {
        contents->foreign = true;
        snprintf(contents->what, sizeof contents->what, "%s", name);
    }
    return STELE_OK;
}

struct wal_contents {
    struct io_dir *dir;
    struct contents *store;
};

/* A segment's name, or that of one being made. */
static bool is_segment_name(const char *name)
{
    uint64_t ignored;

    return numbered_parse(name, WAL_SEGMENT_SUFFIX, &ignored) ||
           numbered_parse(name, NUMBERED_TEMPORARY, &ignored);
}

static enum stele_status note_wal_entry(void *context, const char *name,
                                        struct stele_error *error)
{
    struct wal_contents *wal = context;

    (void)error;
    if (!is_segment_name(name)) {
        wal->store->foreign = true;
        snprintf(wal->store->what, sizeof wal->store->what, "wal/%s", name);
    }
    return STELE_OK;
}

/* Is there a segment with anything behind its header? */
static enum stele_status has_units(struct io_dir *wal_dir, bool *units_out,
                                   char what_out[IO_NAME_BYTES_MAX + 1],
                                   struct stele_error *error)
{
    struct numbered_list list;
    enum stele_status status =
        numbered_list_read(wal_dir, WAL_SEGMENT_SUFFIX, &list, error);

    *units_out = false;
    if (status != STELE_OK) {
        return status;
    }
    for (size_t index = 0;
         index < list.count && status == STELE_OK && !*units_out; index++) {
        struct wal_segment segment = {.seq = list.numbers[index]};
        struct io_file_info info;
        char name[NUMBERED_NAME_BYTES];
        bool unused;

        numbered_name(segment.seq, WAL_SEGMENT_SUFFIX, name);
        snprintf(what_out, IO_NAME_BYTES_MAX + 1, "wal/%s", name);
        status =
            io_file_open(wal_dir, name, IO_OPEN_READ, &segment.file, error);
        if (status == STELE_OK) {
            status = io_file_info(segment.file, &info, error);
        }
        if (status == STELE_OK && info.size_bytes > WAL_SEGMENT_HEADER_BYTES) {
            /* The header may be anybody's: only what follows matters. */
            segment.bytes = info.size_bytes;
            status = wal_segment_is_unused(&segment, &unused, error);
            *units_out = status == STELE_OK && !unused;
        }
        wal_segment_close(&segment);
    }
    numbered_list_free(&list);
    return status;
}

enum stele_status create_classify(struct io_dir *dir,
                                  enum directory_kind *kind_out,
                                  char what_out[IO_NAME_BYTES_MAX + 1],
                                  struct stele_error *error)
{
    struct contents contents = {0};
    struct wal_contents wal = {.store = &contents};
    bool units = false;
    enum stele_status status = io_dir_list(dir, note_entry, &contents, error);

    if (status != STELE_OK) {
        return status;
    }
    what_out[0] = '\0';
    if (contents.anchor) {
        *kind_out = DIRECTORY_STORE;
        return STELE_OK;
    }
    if (contents.wal) {
        status = io_dir_open_in(dir, STORE_WAL_NAME, &wal.dir, error);
        if (status == STELE_OK) {
            status = io_dir_list(wal.dir, note_wal_entry, &wal, error);
            if (status == STELE_OK) {
                status = has_units(wal.dir, &units, what_out, error);
            }
            io_dir_close(wal.dir);
        }
        if (status != STELE_OK) {
            return status;
        }
    }
    if (units) {
        *kind_out = DIRECTORY_DAMAGED;
    } else if (contents.foreign) {
        *kind_out = DIRECTORY_FOREIGN;
        memcpy(what_out, contents.what, sizeof contents.what);
    } else {
        *kind_out = contents.wal || contents.other ? DIRECTORY_UNFINISHED
                                                   : DIRECTORY_EMPTY;
    }
    return STELE_OK;
}

/* ---- Making one -------------------------------------------------------------------- */

static enum stele_status make_directory(struct io_dir *dir, const char *name,
                                        struct stele_error *error)
{
    const enum stele_status status = io_dir_create_in(dir, name, error);

    return status == STELE_EXISTS ? STELE_OK : status;
}

/* Unit-less segments and temporaries of a creation that did not end: ours,
 * never used, of a uuid that nobody has. */
static enum stele_status remove_unfinished(void *context, const char *name,
                                           struct stele_error *error)
{
    struct io_dir *wal_dir = context;

    return is_segment_name(name) ? io_unlink(wal_dir, name, error) : STELE_OK;
}

static enum stele_status make_first_segment(struct io_dir *dir,
                                            const struct wal_uuid *uuid,
                                            uint64_t segment_bytes,
                                            struct stele_error *error)
{
    struct io_dir *wal_dir;
    struct wal_segment segment;
    enum io_fs_kind fs_kind;
    bool names_unknown;
    enum stele_status status = io_dir_fs_kind(dir, &fs_kind, error);

    if (status == STELE_OK) {
        status = io_dir_open_in(dir, STORE_WAL_NAME, &wal_dir, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    status = io_dir_list(wal_dir, remove_unfinished, wal_dir, error);
    if (status == STELE_OK) {
        status =
            wal_segment_prepare(wal_dir, WAL_SEGMENT_FIRST, uuid, segment_bytes,
                                fs_kind, &segment, &names_unknown, error);
    }
    if (status == STELE_OK) {
        wal_segment_close(&segment);
    }
    io_dir_close(wal_dir);
    return status;
}

enum stele_status create_layout(struct io_dir *dir,
                                const struct wal_anchor *anchor,
                                struct stele_error *error)
{
    enum stele_status status = make_directory(dir, STORE_WAL_NAME, error);

    if (status == STELE_OK) {
        status = make_directory(dir, STORE_SNAPSHOT_NAME, error);
    }
    if (status == STELE_OK) {
        status = make_first_segment(dir, &anchor->uuid, anchor->segment_bytes,
                                    error);
    }
    /* wal/ and snapshot/ must not be missing under a durable ANCHOR. */
    return status == STELE_OK ? io_dir_sync(dir, error) : status;
}

enum stele_status create_anchor(struct io *io, uint64_t segment_bytes,
                                struct wal_anchor *anchor_out,
                                struct stele_error *error)
{
    struct wal_anchor anchor = {
        .format_min = WAL_ANCHOR_VERSION,
        .segment_last = WAL_SEGMENT_FIRST,
        .segment_oldest = WAL_SEGMENT_FIRST,
        .segment_bytes = segment_bytes,
        .clean = true,
    };
    const enum stele_status status =
        io_random(io, anchor.uuid.bytes, sizeof anchor.uuid.bytes, error);

    anchor.durable = wal_anchor_origin(&anchor);
    if (status == STELE_OK) {
        *anchor_out = anchor;
    }
    return status;
}

enum stele_status create_store(struct io_dir *dir, uint64_t segment_bytes,
                               struct stele_error *error)
{
    struct wal_anchor anchor;
    enum stele_status status =
        create_anchor(io_dir_io(dir), segment_bytes, &anchor, error);

    if (status == STELE_OK) {
        status = create_layout(dir, &anchor, error);
    }
    if (status == STELE_OK) {
        status = wal_anchor_create(dir, &anchor, error);
    }
    return status == STELE_OK ? STELE_OK
                              : error_wrap(error, status, "create the store");
}
