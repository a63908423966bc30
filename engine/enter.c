/* engine/enter.c -- see engine/enter.h. */
#include "engine/enter.h"

#include <string.h>

#include "base/error.h"
#include "engine/create.h"
#include "engine/registry.h"

enum { LOCK_TEXT_BYTES = 200 };

enum stele_status enter_directory(struct stele *store, const char *path,
                                  struct stele_error *error)
{
    const bool create = store->options.mode == STELE_OPEN_CREATE ||
                        store->options.mode == STELE_OPEN_CREATE_NEW;
    struct io_file_info info;
    enum stele_status status = STELE_OK;

    if (create) {
        status = create_directory(store->io, path, error);
    }
    if (status == STELE_OK) {
        status = io_dir_open(store->io, path, &store->dir, error);
    }
    if (status == STELE_OK) {
        status = io_dir_info(store->dir, &info, error);
    }
    if (status == STELE_OK) {
        status =
            registry_claim(info.device, info.inode, &store->registry, error);
    }
    if (status == STELE_OK) {
        status = io_dir_fs_kind(store->dir, &store->fs_kind, error);
    }
    if (status == STELE_OK && store->fs_kind == IO_FS_NETWORK &&
        !store->options.allow_unsafe_fs) {
        status = error_set(error, STELE_UNSUPPORTED,
                           "the directory is on a network file system, where "
                           "locks and syncs cannot be trusted "
                           "(allow_unsafe_fs)");
    }
    return status;
}

/* Whether to go on, given what the directory is. */
static enum stele_status check_kind(const struct stele *store,
                                    enum directory_kind kind, const char *what,
                                    struct stele_error *error)
{
    const enum stele_open_mode mode = store->options.mode;

    switch (kind) {
    case DIRECTORY_STORE:
        return mode == STELE_OPEN_CREATE_NEW
                   ? error_set(error, STELE_EXISTS,
                               "the directory holds a store already")
                   : STELE_OK;
    case DIRECTORY_EMPTY:
    case DIRECTORY_UNFINISHED:
        return mode == STELE_OPEN_CREATE || mode == STELE_OPEN_CREATE_NEW
                   ? STELE_OK
                   : error_set(error, STELE_NOT_FOUND,
                               "there is no store in the directory");
    case DIRECTORY_DAMAGED:
        return error_set(error, STELE_CORRUPT,
                         "row E: ANCHOR is missing, but %s is in use", what);
    case DIRECTORY_FOREIGN:
        break;
    }
    return error_set(error, STELE_FOREIGN,
                     "the directory is not a store: it has no ANCHOR, but %s",
                     what);
}

/* Who holds LOCK, in the holder's own words. */
static enum stele_status locked_by(struct stele *store,
                                   struct stele_error *error)
{
    char text[LOCK_TEXT_BYTES + 1] = "";
    struct stele_error ignored;
    size_t bytes = 0;

    if (io_file_read(store->lock_file, text, LOCK_TEXT_BYTES, 0, &bytes,
                     &ignored) != STELE_OK) {
        bytes = 0;
    }
    for (size_t index = 0; index < bytes; index++) {
        if (text[index] < ' ' || text[index] > '~') {
            bytes = index; /* Only text is shown. */
        }
    }
    text[bytes] = '\0';
    return error_set(error, STELE_LOCKED, "the store is open for writing by %s",
                     bytes == 0 ? "another process" : text);
}

static enum stele_status lock_directory(struct stele *store,
                                        struct stele_error *error)
{
    char text[LOCK_TEXT_BYTES] = {0};
    enum stele_status status =
        registry_open_lock(store->registry, store->dir, STORE_LOCK_NAME,
                           IO_OPEN_CREATE, &store->lock_file, error);

    if (status != STELE_OK) {
        return status;
    }
    status = io_file_lock(store->lock_file, STORE_LOCK_BYTE_WRITER, error);
    if (status == STELE_LOCKED) {
        return locked_by(store, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    io_describe_process(store->io, text, sizeof text - 1);
    status = io_file_write(store->lock_file, text, sizeof text, 0, error);
    /* It is only text: a full disk must not keep a store from opening. */
    return status == STELE_NO_SPACE ? STELE_OK : status;
}

enum stele_status enter_store(struct stele *store, struct stele_error *error)
{
    char what[IO_NAME_BYTES_MAX + 1];
    enum directory_kind kind;
    enum stele_status status = create_classify(store->dir, &kind, what, error);

    if (status == STELE_OK) {
        status = check_kind(store, kind, what, error);
    }
    if (status != STELE_OK || store->read_only) {
        return status;
    }
    status = lock_directory(store, error);
    if (status == STELE_OK && kind != DIRECTORY_STORE) {
        /* Again, now that nobody else can be creating it. */
        status = create_classify(store->dir, &kind, what, error);
        if (status == STELE_OK) {
            status = check_kind(store, kind, what, error);
        }
        if (status == STELE_OK && kind != DIRECTORY_STORE) {
            status =
                create_store(store->dir, store->options.segment_bytes, error);
        }
    }
    return status;
}

enum stele_status enter_declare(struct stele *store, struct stele_error *error)
{
    return io_file_lock(store->lock_file, STORE_LOCK_BYTE_DECLARED, error);
}

static enum stele_status is_locked(struct stele *store, uint64_t byte,
                                   bool *locked_out, struct stele_error *error)
{
    enum stele_status status;

    *locked_out = false;
    if (store->lock_file == NULL) {
        status =
            registry_open_lock(store->registry, store->dir, STORE_LOCK_NAME,
                               IO_OPEN_READ, &store->lock_file, error);
        if (status != STELE_OK) {
            return status == STELE_NOT_FOUND ? STELE_OK : status;
        }
    }
    return io_file_lock_held(store->lock_file, byte, locked_out, error);
}

enum stele_status enter_writer_alive(struct stele *store, bool *alive_out,
                                     struct stele_error *error)
{
    return is_locked(store, STORE_LOCK_BYTE_WRITER, alive_out, error);
}

enum stele_status enter_writer_declared(struct stele *store, bool *declared_out,
                                        struct stele_error *error)
{
    return is_locked(store, STORE_LOCK_BYTE_DECLARED, declared_out, error);
}
