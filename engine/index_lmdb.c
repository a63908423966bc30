/*
 * engine/index_lmdb.c -- engine/index.h on LMDB 0.9; the only file that knows
 * LMDB.
 *
 * Open: our own look at the file (engine/index_file.h), then the environment with as much address space as the system gives,
 * then the identity. Read: a pool of read transactions, reset when released and
 * renewed when acquired. Write: one transaction at a time with one cursor, so
 * that operations in key order do not start at the root each time.
 *
 * A failure while reading leaves everything as it was. A failure inside a write
 * transaction ends that transaction: later calls on the writer repeat the
 * status, and the commit throws everything away. A failed commit leaves on disk
 * what the previous one left; index_writer_commit() says which failures allow
 * another try.
 *
 * Runs in any thread; `mutex` guards the pool and the two flags.
 */
#include "engine/index.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "engine/index_file.h"

#define DATA_FILE INDEX_DATA_NAME

enum {
    FILE_MODE = 0600,
    MAP_BYTES_UNIT = 64 * 1024, /* A multiple of every page size. */
    MAP_BYTES_FALLBACK_MIN = 64 * 1024 * 1024,
};

struct index {
    char *name; /* "index/data.mdb", for messages. */
    MDB_env *env;
    MDB_dbi dbi;
    struct io_file *data; /* Of a writer: to grow the file. */
    struct index_identity identity;
    uint32_t readers_max;
    bool read_only;
    pthread_mutex_t mutex;     /* Guards the four below. */
    struct index_reader *idle; /* Last in, first out: the warmest first. */
    uint32_t readers_in_use;
    bool writing;
    bool write_failed; /* A commit failed for another reason than space. */
    struct index *next_forsaken;
};

struct index_reader {
    struct index *index;
    MDB_txn *txn;
    struct index_reader *next_idle;
    size_t txn_id; /* Of the transaction the positions were read in; 0: none. */
    struct wal_position applied;
    struct wal_position applying;
};

/* Steps are taken ahead of the caller, so that the memory of the next entries is on
 * its way while the caller works on this one: a scan waits for little else. LMDB's
 * entries stay where they are until the transaction ends. */
enum { CURSOR_AHEAD_MAX = 8, CACHE_LINE_BYTES = 64, PREFETCH_BYTES_MAX = 512 };

struct index_cursor {
    struct index_reader *reader;
    MDB_cursor *cursor; /* Behind the last entry ahead. */
    bool positioned;
    struct bytes
        current; /* The key on which the caller stands, if none is taken. */
    /* In the order of `ahead_step`, MDB_NEXT or MDB_PREV; taken up to ahead_taken. */
    struct base_entry ahead[CURSOR_AHEAD_MAX];
    unsigned ahead_count;
    unsigned ahead_taken;
    unsigned ahead_wanted; /* The next time; more, the longer a scan goes on. */
    MDB_cursor_op ahead_step;
    /* What the step behind the last one came to, if that was no entry. */
    bool ahead_ended;
    int end_result;
    MDB_val end_key;
};

struct index_writer {
    struct index *index;
    MDB_txn *txn;
    MDB_cursor *cursor; /* NULL until needed, and after a deletion. */
    pthread_t thread;
    enum stele_status failed; /* OK, or what ended this transaction. */
    uint64_t pages;           /* Changed, by estimate. */
    uintptr_t page;           /* The last one of them, ... */
    uintptr_t page_found;     /* ... and where the last get found its key. */
};

/* Every other key begins with the first byte of a table name, never 0x00. */
static const struct bytes key_applied = {"\0applied", 8};
static const struct bytes key_applying = {"\0applying", 9};
static const struct bytes key_identity = {"\0identity", 9};
static const struct bytes key_lowest_unreserved = {"\x01", 1};

/* ---- Between LMDB's world and ours --------------------------------------- */

static MDB_val to_val(struct bytes bytes)
{
    /* MDB_val is not const, but LMDB does not write through it. */
    return (MDB_val){.mv_size = bytes.size,
                     .mv_data = (void *)(uintptr_t)bytes.data};
}

static struct bytes to_bytes(MDB_val val)
{
    return (struct bytes){.data = val.mv_data, .size = val.mv_size};
}

static enum stele_status status_of(int mdb_result)
{
    switch (mdb_result) {
    case MDB_NOTFOUND:
        return STELE_NOT_FOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
        return STELE_NO_SPACE;
    case MDB_READERS_FULL:
    case MDB_MAP_RESIZED: /* And other readers keep the map from following. */
        return STELE_BUSY;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_CURSOR_FULL: /* A tree deeper than any, a page fuller, ... */
    case MDB_PAGE_FULL:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_TXN: /* An earlier read of the transaction met damage. */
        return STELE_CORRUPT;
    case MDB_VERSION_MISMATCH:
    case MDB_INVALID:
        return STELE_FOREIGN;
    case ENOMEM:
        return STELE_NO_MEMORY;
    default:
        return STELE_IO;
    }
}

static enum stele_status fail_as(enum stele_status status, const char *name,
                                 int mdb_result, const char *what,
                                 struct stele_error *error)
{
    if (mdb_result > 0) { /* Of a system call; LMDB's own are negative. */
        return error_set_errno(error, status, mdb_result, "%s: %s", name, what);
    }
    return error_set(error, status, "%s: %s: %s", name, what,
                     mdb_strerror(mdb_result));
}

static enum stele_status fail(const char *name, int mdb_result,
                              const char *what, struct stele_error *error)
{
    return fail_as(status_of(mdb_result), name, mdb_result, what, error);
}

static bool key_is_reserved(struct bytes key)
{
    return key.size > 0 && *(const uint8_t *)key.data == 0;
}

/* The reserved keys are ours alone, and LMDB knows no empty key. */
static enum stele_status check_key(const struct index *index, struct bytes key,
                                   struct stele_error *error)
{
    if (key.size == 0 || key.size > BASE_KEY_BYTES_MAX ||
        key_is_reserved(key)) {
        return error_set(error, STELE_INVALID,
                         "%s: a key of %zu bytes is empty, too long or "
                         "reserved",
                         index->name, key.size);
    }
    return STELE_OK;
}

/* Where a scan from `key` may begin: behind the reserved keys. */
static struct bytes above_reserved(struct bytes key)
{
    return key.size == 0 || key_is_reserved(key) ? key_lowest_unreserved : key;
}

/* LMDB hands out any length its page claims; callers have room for 511. */
static enum stele_status check_stored_key(const struct index *index,
                                          const char *what, struct bytes key,
                                          struct stele_error *error)
{
    if (key.size == 0 || key.size > BASE_KEY_BYTES_MAX) {
        return error_set(error, STELE_CORRUPT,
                         "%s: %s: a stored key of %zu bytes", index->name, what,
                         key.size);
    }
    return STELE_OK;
}

/* ---- The environment ----------------------------------------------------- */

static int env_try_open(const char *path, const struct index_options *options,
                        uint64_t map_bytes, MDB_env **env_out)
{
    const unsigned flags = MDB_NOTLS |
                           (options->read_only ? (unsigned)MDB_RDONLY : 0) |
                           (options->no_lock ? (unsigned)MDB_NOLOCK : 0);
    MDB_env *env = NULL;
    int result = mdb_env_create(&env);
    int fd;

    if (result != 0) {
        return result;
    }
    result = mdb_env_set_mapsize(env, map_bytes);
    if (result == 0) {
        result = mdb_env_set_maxreaders(env, options->readers_max);
    }
    if (result == 0) {
        result = mdb_env_open(env, path, flags, FILE_MODE);
    }
    if (result == 0) {
        result = mdb_env_get_fd(env, &fd);
    }
    /* LMDB 0.9.24 opens lock.mdb and its second descriptor of data.mdb with
     * O_CLOEXEC, but not this one. */
    if (result == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        result = errno;
    }
    if (result != 0) {
        mdb_env_close(env);
        return result;
    }
    *env_out = env;
    return 0;
}

/* With as much of the wanted address space as the system grants. */
static enum stele_status env_open(const struct io_dir *dir,
                                  const struct index_options *options,
                                  const char *name, MDB_env **env_out,
                                  struct stele_error *error)
{
    /* The directory that was looked at, wherever its name leads by now. */
    char *path = io_dir_system_path(dir);
    uint64_t map_bytes = options->map_bytes;
    int result;

    if (path == NULL) {
        return error_no_memory(error, "index");
    }

    assert(options->readers_max > 0);
    assert(options->read_only || !options->no_lock);
    for (;;) {
        map_bytes -= map_bytes % MAP_BYTES_UNIT;
        if (map_bytes == 0) {
            map_bytes = MAP_BYTES_UNIT;
        }
        result = env_try_open(path, options, map_bytes, env_out);
        if (result != ENOMEM || map_bytes / 2 < MAP_BYTES_FALLBACK_MIN) {
            break;
        }
        map_bytes /= 2;
    }
    free(path);
    return result == 0 ? STELE_OK : fail(name, result, "open", error);
}

/* "index/data.mdb", for messages; NULL: out of memory. */
static char *make_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash == NULL ? path : slash + 1;
    const size_t name_bytes = strlen(last) + sizeof "/" DATA_FILE;
    char *name = malloc(name_bytes);

    if (name != NULL) {
        snprintf(name, name_bytes, "%s/" DATA_FILE, last);
    }
    return name;
}

/* ---- Reserved keys ------------------------------------------------------- */

enum {
    IDENTITY_MAGIC_BYTES = 8,
    IDENTITY_BYTES = 48,
    IDENTITY_CHECKSUM_BYTES = 8,
};
static const char identity_magic[] = "STELEIDX";

static void identity_encode(const struct index_identity *identity,
                            uint8_t target[IDENTITY_BYTES])
{
    struct byte_writer out = byte_writer_init(target, IDENTITY_BYTES);

    byte_writer_copy(&out, identity_magic, IDENTITY_MAGIC_BYTES);
    byte_writer_u32(&out, INDEX_FORMAT_VERSION);
    byte_writer_u32(&out, 0);
    byte_writer_copy(&out, identity->uuid.bytes, WAL_UUID_BYTES);
    byte_writer_u64(&out, identity->generation);
    byte_writer_u64(&out, checksum64(target, out.offset, 0));
}

/* The checksum is last in every version, so that a newer one can be told from
 * a damaged one. */
static bool identity_checksum_holds(struct bytes stored)
{
    const size_t covered = stored.size - IDENTITY_CHECKSUM_BYTES;

    return stored.size >= IDENTITY_CHECKSUM_BYTES &&
           get_u64le((const uint8_t *)stored.data + covered) ==
               checksum64(stored.data, covered, 0);
}

static enum stele_status identity_decode(struct bytes stored, const char *name,
                                         struct index_identity *identity_out,
                                         struct stele_error *error)
{
    struct byte_reader in = byte_reader_init(stored.data, stored.size);
    struct index_identity identity;
    const uint8_t *magic;
    uint32_t version;

    if (!identity_checksum_holds(stored)) {
        return error_set(error, STELE_CORRUPT,
                         "%s: identity: checksum mismatch", name);
    }
    magic = byte_reader_take(&in, IDENTITY_MAGIC_BYTES);
    version = byte_reader_u32(&in);
    (void)byte_reader_u32(&in);
    byte_reader_copy(&in, identity.uuid.bytes, WAL_UUID_BYTES);
    identity.generation = byte_reader_u64(&in);
    if (magic == NULL ||
        memcmp(magic, identity_magic, IDENTITY_MAGIC_BYTES) != 0) {
        return error_set(error, STELE_FOREIGN, "%s: not an index of Stele",
                         name);
    }
    if (version > INDEX_FORMAT_VERSION) {
        return error_set(error, STELE_FOREIGN,
                         "%s: index format version %" PRIu32
                         " is newer than %d",
                         name, version, INDEX_FORMAT_VERSION);
    }
    if (version != INDEX_FORMAT_VERSION || stored.size != IDENTITY_BYTES) {
        return error_set(error, STELE_CORRUPT,
                         "%s: identity: version %" PRIu32 " of %zu bytes", name,
                         version, stored.size);
    }
    *identity_out = identity;
    return STELE_OK;
}

/* The stored bytes of a reserved key, which every index has. */
static enum stele_status reserved_get(MDB_txn *txn, MDB_dbi dbi,
                                      struct bytes key, const char *name,
                                      struct bytes *stored_out,
                                      struct stele_error *error)
{
    const char *key_name = (const char *)key.data + 1;
    MDB_val key_val = to_val(key);
    MDB_val stored;
    const int result = mdb_get(txn, dbi, &key_val, &stored);

    if (result == MDB_NOTFOUND) {
        return error_set(error, STELE_CORRUPT, "%s: %s is missing", name,
                         key_name);
    }
    if (result != 0) {
        return fail(name, result, key_name, error);
    }
    *stored_out = to_bytes(stored);
    return STELE_OK;
}

static enum stele_status position_get(MDB_txn *txn, MDB_dbi dbi,
                                      struct bytes key, const char *name,
                                      struct wal_position *position_out,
                                      struct stele_error *error)
{
    struct bytes stored = {0};
    const enum stele_status status =
        reserved_get(txn, dbi, key, name, &stored, error);

    if (status != STELE_OK) {
        return status;
    }
    if (stored.size != WAL_POSITION_BYTES ||
        !wal_position_decode(stored.data, position_out)) {
        return error_set(error, STELE_CORRUPT, "%s: %s: checksum mismatch",
                         name, (const char *)key.data + 1);
    }
    return STELE_OK;
}

static int position_put(MDB_txn *txn, MDB_dbi dbi, struct bytes key,
                        const struct wal_position *position)
{
    uint8_t stored[WAL_POSITION_BYTES];
    MDB_val key_val = to_val(key);
    MDB_val stored_val = {.mv_size = sizeof stored, .mv_data = stored};

    wal_position_encode(position, stored);
    return mdb_put(txn, dbi, &key_val, &stored_val, 0);
}

/* ---- Create, open, close ------------------------------------------------- */

static int create_contents(MDB_env *env, const struct index_identity *identity,
                           const struct wal_position *base)
{
    uint8_t stored[IDENTITY_BYTES];
    MDB_val key_val = to_val(key_identity);
    MDB_val stored_val = {.mv_size = sizeof stored, .mv_data = stored};
    MDB_txn *txn;
    MDB_dbi dbi;
    int result = mdb_txn_begin(env, NULL, 0, &txn);

    if (result != 0) {
        return result;
    }
    identity_encode(identity, stored);
    result = mdb_dbi_open(txn, NULL, 0, &dbi);
    if (result == 0) {
        result = position_put(txn, dbi, key_applied, base);
    }
    if (result == 0) {
        result = position_put(txn, dbi, key_applying, base);
    }
    if (result == 0) {
        result = mdb_put(txn, dbi, &key_val, &stored_val, 0);
    }
    if (result != 0) {
        mdb_txn_abort(txn);
        return result;
    }
    return mdb_txn_commit(txn);
}

static enum stele_status create_in(struct io_dir *dir, const char *name,
                                   const struct index_options *options,
                                   const struct index_identity *identity,
                                   const struct wal_position *base,
                                   struct stele_error *error)
{
    struct io_file_info info;
    enum stele_status status;
    MDB_env *env;
    int result;

    status = io_info(dir, DATA_FILE, &info, error);
    if (status == STELE_OK) {
        return error_set(error, STELE_EXISTS, "%s: is there already", name);
    }
    if (status != STELE_NOT_FOUND) {
        return error_wrap(error, status, "%s", io_dir_path(dir));
    }
    status = env_open(dir, options, name, &env, error);
    if (status != STELE_OK) {
        return status;
    }
    result = create_contents(env, identity, base);
    mdb_env_close(env);
    if (result != 0) {
        return fail(name, result, "create", error);
    }
    /* LMDB synced the file; a power cut could still lose its name. */
    return io_dir_sync(dir, error);
}

enum stele_status index_create(struct io_dir *dir,
                               const struct index_options *options,
                               const struct index_identity *identity,
                               const struct wal_position *base,
                               struct stele_error *error)
{
    char *name = make_name(io_dir_path(dir));
    enum stele_status status;

    assert(!options->read_only);
    if (name == NULL) {
        return error_no_memory(error, "index");
    }
    status = create_in(dir, name, options, identity, base, error);
    free(name);
    return status;
}

/* The handle of the database is opened once, here, and the identity read. */
static enum stele_status read_identity(struct index *index,
                                       struct stele_error *error)
{
    enum stele_status status;
    struct bytes stored = {0};
    MDB_txn *txn;
    int result = mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn);

    if (result != 0) {
        return fail(index->name, result, "begin reading", error);
    }
    result = mdb_dbi_open(txn, NULL, 0, &index->dbi);
    if (result != 0) {
        status = fail(index->name, result, "open database", error);
        goto out;
    }
    status = reserved_get(txn, index->dbi, key_identity, index->name, &stored,
                          error);
    if (status != STELE_OK) {
        goto out;
    }
    status = identity_decode(stored, index->name, &index->identity, error);
out:
    /* Not committed: nothing was written, and the handle of the unnamed
     * database outlives the transaction either way. */
    mdb_txn_abort(txn);
    return status;
}

enum stele_status index_open(struct io_dir *dir,
                             const struct index_options *options,
                             struct index **index_out,
                             struct stele_error *error)
{
    enum stele_status status = index_file_check(dir, error);
    struct index *index;

    if (status != STELE_OK) {
        return status;
    }
    index = calloc(1, sizeof *index);
    if (index == NULL) {
        return error_no_memory(error, "index");
    }
    pthread_mutex_init(&index->mutex, NULL);
    index->readers_max = options->readers_max;
    index->read_only = options->read_only;
    index->name = make_name(io_dir_path(dir));
    if (index->name == NULL) {
        status = error_no_memory(error, "index");
        goto out;
    }
    status = env_open(dir, options, index->name, &index->env, error);
    if (status != STELE_OK) {
        goto out;
    }
    status = index_reader_check(index, error);
    if (status != STELE_OK) {
        goto out;
    }
    status = read_identity(index, error);
    if (status == STELE_OK && !options->read_only) {
        status = index_file_open(dir, &index->data, error);
    }
    if (status != STELE_OK) {
        goto out;
    }
    *index_out = index;
    index = NULL;
out:
    index_close(index);
    return status;
}

static void reader_destroy(struct index_reader *reader)
{
    mdb_txn_abort(reader->txn); /* Gives the slot back; accepts NULL. */
    free(reader);
}

void index_close(struct index *index)
{
    if (index == NULL) {
        return;
    }
    assert(index->readers_in_use == 0 && !index->writing);
    while (index->idle != NULL) {
        struct index_reader *reader = index->idle;

        index->idle = reader->next_idle;
        reader_destroy(reader);
    }
    mdb_env_close(index->env); /* Accepts NULL. */
    io_file_close(index->data);
    pthread_mutex_destroy(&index->mutex);
    free(index->name);
    free(index);
}

/*
 * What a child inherited and may not close, kept where it can be seen to be no
 * leak. LMDB knows no way to let go of an environment without clearing the
 * parent's reader slots. Its descriptor of lock.mdb stays open for a second
 * reason: closing it would drop the POSIX locks of an environment that the
 * child has opened itself, and with them the protection of its readers.
 */
static _Atomic(struct index *) forsaken_indexes;
static _Atomic(struct index_reader *) forsaken_readers;

void index_forsake(struct index *index)
{
    if (index == NULL) {
        return;
    }
    io_file_close(index->data);
    index->data = NULL;
    index->next_forsaken = atomic_load(&forsaken_indexes);
    while (!atomic_compare_exchange_weak(&forsaken_indexes,
                                         &index->next_forsaken, index)) {
    }
}

void index_reader_forsake(struct index_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    reader->next_idle = atomic_load(&forsaken_readers);
    while (!atomic_compare_exchange_weak(&forsaken_readers, &reader->next_idle,
                                         reader)) {
    }
}

bool index_is_idle(struct index *index)
{
    bool idle;

    pthread_mutex_lock(&index->mutex);
    idle = index->readers_in_use == 0 && !index->writing;
    pthread_mutex_unlock(&index->mutex);
    return idle;
}

const struct index_identity *index_identity(const struct index *index)
{
    return &index->identity;
}

enum stele_status index_reader_check(struct index *index,
                                     struct stele_error *error)
{
    const int result = mdb_reader_check(index->env, NULL);

    return result == 0
               ? STELE_OK
               : fail(index->name, result, "clear stale readers", error);
}

/* ---- Reading ------------------------------------------------------------- */

/* An idle reader, or NULL if a new one is to be made; counted either way. */
static enum stele_status pool_take(struct index *index,
                                   struct index_reader **idle_out,
                                   struct stele_error *error)
{
    enum stele_status status = STELE_OK;

    pthread_mutex_lock(&index->mutex);
    if (index->readers_in_use < index->readers_max) {
        index->readers_in_use++;
        *idle_out = index->idle;
        if (index->idle != NULL) {
            index->idle = index->idle->next_idle;
        }
    } else {
        status = STELE_BUSY;
    }
    pthread_mutex_unlock(&index->mutex);
    return status == STELE_OK
               ? status
               : error_set(error, status,
                           "%s: all %" PRIu32 " readers are in use",
                           index->name, index->readers_max);
}

/* `reader` NULL: only the count. */
static void pool_give_back(struct index *index, struct index_reader *reader)
{
    pthread_mutex_lock(&index->mutex);
    assert(index->readers_in_use > 0);
    index->readers_in_use--;
    if (reader != NULL) {
        reader->next_idle = index->idle;
        index->idle = reader;
    }
    pthread_mutex_unlock(&index->mutex);
}

/* Another process has grown the file beyond our map: follow, if no transaction of
 * ours is in the map. The caller counts among the readers in use. */
static int follow_map(struct index *index)
{
    int result = MDB_MAP_RESIZED;

    pthread_mutex_lock(&index->mutex);
    if (index->readers_in_use == 1 && !index->writing) {
        result = mdb_env_set_mapsize(index->env, 0);
    }
    pthread_mutex_unlock(&index->mutex);
    return result;
}

static int begin_reading(struct index *index, MDB_txn **txn)
{
    int result = mdb_txn_begin(index->env, NULL, MDB_RDONLY, txn);

    if (result == MDB_MAP_RESIZED) {
        result = follow_map(index);
        if (result == 0) {
            result = mdb_txn_begin(index->env, NULL, MDB_RDONLY, txn);
        }
    }
    return result;
}

static enum stele_status reader_create(struct index *index,
                                       struct index_reader **reader_out,
                                       struct stele_error *error)
{
    struct index_reader *reader = calloc(1, sizeof *reader);
    int result;

    if (reader == NULL) {
        return error_no_memory(error, "index reader");
    }
    reader->index = index;
    result = begin_reading(index, &reader->txn);
    if (result != 0) {
        free(reader);
        return fail(index->name, result, "begin reading", error);
    }
    *reader_out = reader;
    return STELE_OK;
}

static enum stele_status reader_load_positions(struct index_reader *reader,
                                               struct stele_error *error)
{
    const struct index *index = reader->index;
    const size_t txn_id = mdb_txn_id(reader->txn);
    enum stele_status status;

    if (reader->txn_id == txn_id) {
        return STELE_OK; /* Renewed, and nothing was committed meanwhile. */
    }
    reader->txn_id = 0;
    status = position_get(reader->txn, index->dbi, key_applied, index->name,
                          &reader->applied, error);
    if (status == STELE_OK) {
        status = position_get(reader->txn, index->dbi, key_applying,
                              index->name, &reader->applying, error);
    }
    if (status == STELE_OK) {
        reader->txn_id = txn_id;
    }
    return status;
}

enum stele_status index_reader_acquire(struct index *index,
                                       struct index_reader **reader_out,
                                       struct stele_error *error)
{
    struct index_reader *reader = NULL;
    enum stele_status status = pool_take(index, &reader, error);

    if (status != STELE_OK) {
        return status;
    }
    if (reader == NULL) {
        status = reader_create(index, &reader, error);
    } else {
        int result = mdb_txn_renew(reader->txn);

        if (result == MDB_MAP_RESIZED) {
            result = follow_map(index);
            if (result == 0) {
                result = mdb_txn_renew(reader->txn);
            }
        }
        if (result != 0) {
            status = fail(index->name, result, "renew reading", error);
            reader_destroy(reader);
        }
    }
    if (status != STELE_OK) {
        pool_give_back(index, NULL);
        return status;
    }
    status = reader_load_positions(reader, error);
    if (status != STELE_OK) {
        index_reader_release(reader);
        return status;
    }
    *reader_out = reader;
    return STELE_OK;
}

void index_reader_release(struct index_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    mdb_txn_reset(reader->txn);
    pool_give_back(reader->index, reader);
}

const struct wal_position *index_reader_applied(const struct index_reader *r)
{
    return &r->applied;
}

const struct wal_position *index_reader_applying(const struct index_reader *r)
{
    return &r->applying;
}

enum stele_status index_reader_get(struct index_reader *reader,
                                   struct bytes key,
                                   struct base_value *value_out,
                                   struct stele_error *error)
{
    const struct index *index = reader->index;
    MDB_val key_val = to_val(key);
    MDB_val stored;
    enum stele_status status = check_key(index, key, error);
    int result;

    if (status != STELE_OK) {
        return status;
    }
    result = mdb_get(reader->txn, index->dbi, &key_val, &stored);
    if (result == MDB_NOTFOUND) {
        return error_set(error, STELE_NOT_FOUND, "no such key in the index");
    }
    if (result != 0) {
        return fail(index->name, result, "get", error);
    }
    return base_value_read("index", key, to_bytes(stored), value_out, error);
}

enum stele_status index_reader_entry_count(struct index_reader *reader,
                                           uint64_t *count_out,
                                           struct stele_error *error)
{
    const struct index *index = reader->index;
    MDB_stat stat;
    const int result = mdb_stat(reader->txn, index->dbi, &stat);

    if (result != 0) {
        return fail(index->name, result, "count", error);
    }
    *count_out = stat.ms_entries;
    return STELE_OK;
}

/* ---- A reader's cursor --------------------------------------------------- */

/* LMDB's cursor stands where the caller does: nothing is ahead. */
static void forget_ahead(struct index_cursor *cursor)
{
    cursor->ahead_count = 0;
    cursor->ahead_taken = 0;
    cursor->ahead_wanted = 1;
    cursor->ahead_ended = false;
}

enum stele_status index_cursor_open(struct index_reader *reader,
                                    struct index_cursor **cursor_out,
                                    struct stele_error *error)
{
    const struct index *index = reader->index;
    struct index_cursor *cursor = calloc(1, sizeof *cursor);
    int result;

    if (cursor == NULL) {
        return error_no_memory(error, "index cursor");
    }
    cursor->reader = reader;
    cursor->ahead_step = MDB_NEXT;
    forget_ahead(cursor);
    result = mdb_cursor_open(reader->txn, index->dbi, &cursor->cursor);
    if (result != 0) {
        free(cursor);
        return fail(index->name, result, "open cursor", error);
    }
    *cursor_out = cursor;
    return STELE_OK;
}

void index_cursor_close(struct index_cursor *cursor)
{
    if (cursor == NULL) {
        return;
    }
    mdb_cursor_close(cursor->cursor);
    free(cursor);
}

/* The cursor has come to no entry: why. */
static enum stele_status no_entry(struct index_cursor *cursor, int result,
                                  MDB_val key, const char *what,
                                  struct stele_error *error)
{
    const struct index *index = cursor->reader->index;

    cursor->positioned = false;
    if (result == MDB_NOTFOUND ||
        (result == 0 && key_is_reserved(to_bytes(key)))) {
        return error_set(error, STELE_NOT_FOUND, "no more keys in the index");
    }
    return result != 0 ? fail(index->name, result, what, error)
                       : check_stored_key(index, what, to_bytes(key), error);
}

static bool is_entry(int result, MDB_val key)
{
    return result == 0 && !key_is_reserved(to_bytes(key)) && key.mv_size > 0 &&
           key.mv_size <= BASE_KEY_BYTES_MAX;
}

/* What became of a seek. */
static enum stele_status cursor_arrive(struct index_cursor *cursor, int result,
                                       MDB_val key, MDB_val stored,
                                       struct base_entry *entry_out,
                                       struct stele_error *error)
{
    forget_ahead(cursor);
    if (!is_entry(result, key)) {
        return no_entry(cursor, result, key, "seek", error);
    }
    cursor->positioned = true;
    cursor->current = to_bytes(key);
    entry_out->key = cursor->current;
    entry_out->stored = to_bytes(stored);
    return STELE_OK;
}

/* An entry's bytes, the key first, are mostly in one piece. A long value is on
 * pages of its own. */
static void prefetch_entry(const struct base_entry *entry)
{
    const char *stored = entry->stored.data;
    const size_t bytes = entry->stored.size < PREFETCH_BYTES_MAX
                             ? entry->stored.size
                             : PREFETCH_BYTES_MAX;

    __builtin_prefetch(entry->key.data);
    for (size_t offset = 0; offset < bytes; offset += CACHE_LINE_BYTES) {
        __builtin_prefetch(stored + offset);
    }
}

/* All that were ahead are taken. */
static void step_ahead(struct index_cursor *cursor)
{
    const unsigned wanted = cursor->ahead_wanted;

    if (cursor->ahead_taken > 0) {
        cursor->current = cursor->ahead[cursor->ahead_taken - 1].key;
    }
    cursor->ahead_count = 0;
    cursor->ahead_taken = 0;
    while (!cursor->ahead_ended && cursor->ahead_count < wanted) {
        struct base_entry *entry = &cursor->ahead[cursor->ahead_count];
        MDB_val key = {0};
        MDB_val stored = {0};
        const int result =
            mdb_cursor_get(cursor->cursor, &key, &stored, cursor->ahead_step);

        if (!is_entry(result, key)) {
            cursor->ahead_ended = true;
            cursor->end_result = result;
            cursor->end_key = key;
            break;
        }
        entry->key = to_bytes(key);
        entry->stored = to_bytes(stored);
        prefetch_entry(entry);
        cursor->ahead_count++;
    }
    cursor->ahead_wanted =
        2 * wanted < CURSOR_AHEAD_MAX ? 2 * wanted : CURSOR_AHEAD_MAX;
}

/* To go on in this direction. What is ahead lies in the other one: LMDB's cursor
 * comes back to where the caller stands. */
static int turn(struct index_cursor *cursor, MDB_cursor_op step)
{
    const bool strayed =
        cursor->ahead_taken < cursor->ahead_count || cursor->ahead_ended;
    MDB_val key = to_val(cursor->ahead_taken > 0
                             ? cursor->ahead[cursor->ahead_taken - 1].key
                             : cursor->current);
    MDB_val stored;

    cursor->current = to_bytes(key);
    cursor->ahead_step = step;
    forget_ahead(cursor);
    return strayed ? mdb_cursor_get(cursor->cursor, &key, &stored, MDB_SET_KEY)
                   : 0;
}

/* Nothing is ahead in this direction. */
static enum stele_status cursor_step(struct index_cursor *cursor,
                                     MDB_cursor_op step, const char *what,
                                     struct base_entry *entry_out,
                                     struct stele_error *error)
{
    if (!cursor->positioned) {
        return error_set(error, STELE_INVALID,
                         "%s: %s: the cursor stands nowhere; seek first",
                         cursor->reader->index->name, what);
    }
    if (cursor->ahead_step != step) {
        const int result = turn(cursor, step);

        if (result != 0) {
            cursor->positioned = false;
            /* A key that was there a moment ago. */
            return fail(cursor->reader->index->name,
                        result == MDB_NOTFOUND ? MDB_CORRUPTED : result, what,
                        error);
        }
    }
    step_ahead(cursor);
    if (cursor->ahead_count == 0) {
        return no_entry(cursor, cursor->end_result, cursor->end_key, what,
                        error);
    }
    *entry_out = cursor->ahead[cursor->ahead_taken++];
    return STELE_OK;
}

static bool is_ahead(const struct index_cursor *cursor, MDB_cursor_op step)
{
    return cursor->positioned && cursor->ahead_step == step &&
           cursor->ahead_taken < cursor->ahead_count;
}

enum stele_status index_cursor_seek(struct index_cursor *cursor,
                                    struct bytes key,
                                    struct base_entry *entry_out,
                                    struct stele_error *error)
{
    MDB_val found = to_val(above_reserved(key));
    MDB_val stored = {0};
    const int result =
        mdb_cursor_get(cursor->cursor, &found, &stored, MDB_SET_RANGE);

    return cursor_arrive(cursor, result, found, stored, entry_out, error);
}

enum stele_status index_cursor_seek_before(struct index_cursor *cursor,
                                           struct bytes key,
                                           struct base_entry *entry_out,
                                           struct stele_error *error)
{
    MDB_val found = to_val(above_reserved(key));
    MDB_val stored = {0};
    int result = mdb_cursor_get(cursor->cursor, &found, &stored, MDB_SET_RANGE);

    if (result == 0) {
        result = mdb_cursor_get(cursor->cursor, &found, &stored, MDB_PREV);
    } else if (result == MDB_NOTFOUND) {
        result = mdb_cursor_get(cursor->cursor, &found, &stored, MDB_LAST);
    }
    return cursor_arrive(cursor, result, found, stored, entry_out, error);
}

enum stele_status index_cursor_next(struct index_cursor *cursor,
                                    struct base_entry *entry_out,
                                    struct stele_error *error)
{
    if (is_ahead(cursor, MDB_NEXT)) {
        *entry_out = cursor->ahead[cursor->ahead_taken++];
        return STELE_OK;
    }
    return cursor_step(cursor, MDB_NEXT, "next", entry_out, error);
}

enum stele_status index_cursor_prev(struct index_cursor *cursor,
                                    struct base_entry *entry_out,
                                    struct stele_error *error)
{
    if (is_ahead(cursor, MDB_PREV)) {
        *entry_out = cursor->ahead[cursor->ahead_taken++];
        return STELE_OK;
    }
    return cursor_step(cursor, MDB_PREV, "prev", entry_out, error);
}

/* ---- Writing ------------------------------------------------------------- */

static enum stele_status writing_claim(struct index *index,
                                       struct stele_error *error)
{
    bool write_failed;

    if (index->read_only) {
        return error_set(error, STELE_READ_ONLY, "%s: opened for reading",
                         index->name);
    }
    pthread_mutex_lock(&index->mutex);
    assert(!index->writing);
    write_failed = index->write_failed;
    index->writing = !write_failed;
    pthread_mutex_unlock(&index->mutex);
    if (write_failed) {
        return error_set(error, STELE_IO,
                         "%s: an earlier commit failed; not written again",
                         index->name);
    }
    return STELE_OK;
}

static void writing_yield(struct index *index, bool write_failed)
{
    pthread_mutex_lock(&index->mutex);
    assert(index->writing);
    index->writing = false;
    index->write_failed = write_failed;
    pthread_mutex_unlock(&index->mutex);
}

/* Keep the file longer than a commit's meta page will claim: LMDB counts pages at
 * the end that it took and gave back without writing them. */
static enum stele_status grow_file(struct index *index,
                                   struct stele_error *error)
{
    MDB_envinfo info;
    MDB_stat stat;
    int result = mdb_env_info(index->env, &info);

    if (result == 0) {
        result = mdb_env_stat(index->env, &stat);
    }
    if (result != 0) {
        return fail(index->name, result, "look at", error);
    }
    return index_file_grow(index->data,
                           (uint64_t)info.me_last_pgno * stat.ms_psize,
                           info.me_mapsize, error);
}

enum stele_status index_writer_begin(struct index *index,
                                     struct index_writer **writer_out,
                                     struct stele_error *error)
{
    enum stele_status status = writing_claim(index, error);
    struct index_writer *writer;
    int result;

    if (status != STELE_OK) {
        return status;
    }
    writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        writing_yield(index, false);
        return error_no_memory(error, "index writer");
    }
    writer->index = index;
    writer->thread = pthread_self();
    writer->failed = STELE_OK;
    status = grow_file(index, error);
    if (status != STELE_OK) {
        free(writer);
        writing_yield(index, false);
        return status;
    }
    result = mdb_txn_begin(index->env, NULL, 0, &writer->txn);
    if (result != 0) {
        free(writer);
        writing_yield(index, false);
        return fail(index->name, result, "begin writing", error);
    }
    *writer_out = writer;
    return STELE_OK;
}

/* LMDB gives up a transaction in which something failed; so do we. */
static enum stele_status writer_fail(struct index_writer *writer, int result,
                                     const char *what,
                                     struct stele_error *error)
{
    writer->failed = fail(writer->index->name, result, what, error);
    return writer->failed;
}

static enum stele_status writer_ready(const struct index_writer *writer,
                                      struct stele_error *error)
{
    assert(pthread_equal(writer->thread, pthread_self()));
    if (writer->failed != STELE_OK) {
        return error_set(error, writer->failed,
                         "%s: an earlier operation of this transaction failed",
                         writer->index->name);
    }
    return STELE_OK;
}

static void writer_drop_cursor(struct index_writer *writer)
{
    if (writer->cursor != NULL) {
        mdb_cursor_close(writer->cursor);
        writer->cursor = NULL;
    }
}

enum { PAGE_SHIFT = 12 };

static uintptr_t page_of(const void *stored)
{
    return (uintptr_t)stored >> PAGE_SHIFT;
}

/* Keys come in order: one that lies where the last one did has dirtied no page more. */
static void note_page(struct index_writer *writer, uintptr_t page)
{
    if (page != writer->page) {
        writer->page = page;
        writer->pages++;
    }
}

uint64_t index_writer_pages(const struct index_writer *writer)
{
    return writer->pages;
}

static enum stele_status writer_need_cursor(struct index_writer *writer,
                                            struct stele_error *error)
{
    int result;

    if (writer->cursor != NULL) {
        return STELE_OK;
    }
    result = mdb_cursor_open(writer->txn, writer->index->dbi, &writer->cursor);
    return result == 0 ? STELE_OK
                       : writer_fail(writer, result, "open cursor", error);
}

/* Common to get and put: everything before LMDB is asked. */
static enum stele_status writer_prepare(struct index_writer *writer,
                                        struct bytes key,
                                        struct stele_error *error)
{
    enum stele_status status = writer_ready(writer, error);

    if (status == STELE_OK) {
        status = check_key(writer->index, key, error);
    }
    if (status == STELE_OK) {
        status = writer_need_cursor(writer, error);
    }
    return status;
}

enum stele_status index_writer_get(struct index_writer *writer,
                                   struct bytes key,
                                   struct base_value *value_out,
                                   struct stele_error *error)
{
    MDB_val key_val = to_val(key);
    MDB_val stored;
    enum stele_status status = writer_prepare(writer, key, error);
    int result;

    if (status != STELE_OK) {
        return status;
    }
    result = mdb_cursor_get(writer->cursor, &key_val, &stored, MDB_SET);
    if (result == MDB_NOTFOUND) {
        return error_set(error, STELE_NOT_FOUND, "no such key in the index");
    }
    if (result != 0) {
        return writer_fail(writer, result, "get", error);
    }
    writer->page_found = page_of(stored.mv_data);
    return base_value_read("index", key, to_bytes(stored), value_out, error);
}

enum stele_status index_writer_put(struct index_writer *writer,
                                   struct bytes key,
                                   const struct base_value *value,
                                   struct stele_error *error)
{
    MDB_val key_val = to_val(key);
    MDB_val stored = {.mv_size = BASE_VALUE_HEADER_BYTES + value->value.size};
    enum stele_status status = writer_prepare(writer, key, error);
    uint8_t *target;
    int result;

    if (status != STELE_OK) {
        return status;
    }
    /* MDB_RESERVE: header and value go into the page without being joined
     * first. */
    result = mdb_cursor_put(writer->cursor, &key_val, &stored, MDB_RESERVE);
    if (result != 0) {
        return writer_fail(writer, result, "put", error);
    }
    note_page(writer, page_of(stored.mv_data));
    writer->pages += stored.mv_size >> PAGE_SHIFT;
    target = stored.mv_data;
    base_value_encode_header(value->lsn, value->check, target);
    if (value->value.size > 0) {
        memcpy(target + BASE_VALUE_HEADER_BYTES, value->value.data,
               value->value.size);
    }
    return STELE_OK;
}

enum stele_status index_writer_append(struct index_writer *writer,
                                      struct bytes key, struct bytes stored,
                                      struct stele_error *error)
{
    MDB_val key_val = to_val(key);
    MDB_val stored_val = to_val(stored);
    enum stele_status status = writer_prepare(writer, key, error);
    int result;

    if (status != STELE_OK) {
        return status;
    }
    result = mdb_cursor_put(writer->cursor, &key_val, &stored_val, MDB_APPEND);
    return result == 0 ? STELE_OK
                       : writer_fail(writer, result, "append", error);
}

enum stele_status index_writer_delete(struct index_writer *writer,
                                      struct bytes key,
                                      struct stele_error *error)
{
    MDB_val key_val = to_val(key);
    enum stele_status status = writer_ready(writer, error);
    int result;

    if (status == STELE_OK) {
        status = check_key(writer->index, key, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    /* After a deletion our cursor is good for MDB_NEXT only; rather than know
     * what LMDB makes of it, search with a fresh one next time. */
    note_page(writer, writer->page_found);
    writer_drop_cursor(writer);
    result = mdb_del(writer->txn, writer->index->dbi, &key_val, NULL);
    if (result != 0 && result != MDB_NOTFOUND) {
        return writer_fail(writer, result, "delete", error);
    }
    return STELE_OK;
}

/* One entry of a sweep, under the writer's cursor. */
static enum stele_status sweep_entry(struct index_writer *writer,
                                     struct bytes key, struct bytes stored,
                                     index_visit *visit, void *context,
                                     struct stele_error *error)
{
    bool delete_it = false;
    struct base_value value;
    enum stele_status status =
        base_value_read("index", key, stored, &value, error);
    int result;

    if (status != STELE_OK) {
        return status;
    }
    visit(context, key, &value, &delete_it);
    if (delete_it) {
        result = mdb_cursor_del(writer->cursor, 0);
        if (result != 0) {
            return writer_fail(writer, result, "sweep", error);
        }
    }
    return STELE_OK;
}

enum stele_status index_writer_sweep(struct index_writer *writer,
                                     struct bytes first, struct bytes end,
                                     uint64_t visits_max, index_visit *visit,
                                     void *context, bool *more_out,
                                     uint8_t next_key[511],
                                     size_t *next_key_bytes_out,
                                     struct stele_error *error)
{
    MDB_val key = to_val(above_reserved(first));
    MDB_val stored;
    MDB_cursor_op step = MDB_SET_RANGE;
    bool more = false;
    uint64_t visits = 0;
    enum stele_status status = writer_ready(writer, error);

    if (status == STELE_OK) {
        status = writer_need_cursor(writer, error);
    }
    while (status == STELE_OK) {
        const int result = mdb_cursor_get(writer->cursor, &key, &stored, step);

        /* After an entry that was deleted, too, MDB_NEXT is the one behind. */
        step = MDB_NEXT;
        if (result == MDB_NOTFOUND ||
            (result == 0 && bytes_compare(to_bytes(key), end) >= 0)) {
            break;
        }
        if (result != 0) {
            status = writer_fail(writer, result, "sweep", error);
            break;
        }
        status = check_stored_key(writer->index, "sweep", to_bytes(key), error);
        if (status != STELE_OK) {
            break;
        }
        if (visits == visits_max) {
            more = true;
            break;
        }
        visits++;
        status = sweep_entry(writer, to_bytes(key), to_bytes(stored), visit,
                             context, error);
    }
    if (status == STELE_OK) {
        *more_out = more;
        *next_key_bytes_out = more ? key.mv_size : 0;
        if (more) {
            memcpy(next_key, key.mv_data, key.mv_size);
        }
    }
    /* It may have deleted; see index_writer_delete(). */
    writer_drop_cursor(writer);
    return status;
}

/* Free `writer`, whose transaction has ended. */
static void writer_finish(struct index_writer *writer, bool write_failed)
{
    writing_yield(writer->index, write_failed);
    free(writer);
}

static void writer_abort_txn(struct index_writer *writer)
{
    assert(pthread_equal(writer->thread, pthread_self()));
    writer_drop_cursor(writer);
    mdb_txn_abort(writer->txn);
    writer->txn = NULL;
}

/*
 * Whether the index is as before a commit that failed, and may be written
 * again. Where a disk fills up in the midst of a write, the kernel reports a
 * short write, which LMDB turns into EIO although no system call failed:
 * `sys_errno`, cleared before the commit, is then still 0.
 *
 * Out of space while writing the meta page is another matter: what the page
 * holds now is unknown, and LMDB will not begin another transaction.
 */
static bool commit_may_be_repeated(struct index *index, int result,
                                   int sys_errno)
{
    const bool short_write = result == EIO && sys_errno == 0;
    MDB_txn *txn;

    if (status_of(result) != STELE_NO_SPACE && !short_write) {
        return false;
    }
    if (mdb_txn_begin(index->env, NULL, 0, &txn) != 0) {
        return false;
    }
    mdb_txn_abort(txn);
    return true;
}

/* Put the positions; the commit itself comes after. */
static enum stele_status writer_put_positions(
    struct index_writer *writer, const struct wal_position *applied,
    const struct wal_position *applying, struct stele_error *error)
{
    const MDB_dbi dbi = writer->index->dbi;
    enum stele_status status = writer_ready(writer, error);
    int result;

    if (status != STELE_OK) {
        return status;
    }
    writer_drop_cursor(writer);
    result = position_put(writer->txn, dbi, key_applied, applied);
    if (result == 0) {
        result = position_put(writer->txn, dbi, key_applying, applying);
    }
    return result == 0 ? STELE_OK
                       : writer_fail(writer, result, "put position", error);
}

enum stele_status index_writer_commit(struct index_writer *writer,
                                      const struct wal_position *applied,
                                      const struct wal_position *applying,
                                      struct stele_error *error)
{
    struct index *index = writer->index;
    enum stele_status status;
    int result;

    status = writer_put_positions(writer, applied, applying, error);
    if (status != STELE_OK) {
        writer_abort_txn(writer);
        writer_finish(writer, status != STELE_NO_SPACE);
        return status == STELE_NO_SPACE ? status
                                        : error_wrap(error, STELE_IO, "commit");
    }
    errno = 0;
    /* Durable when it returns: LMDB syncs the pages, then writes the meta page
     * that refers to them through a descriptor opened with O_DSYNC. It frees
     * the transaction whatever happens. */
    result = mdb_txn_commit(writer->txn);
    if (result == 0) {
        writer_finish(writer, false);
        return STELE_OK;
    }
    if (commit_may_be_repeated(index, result, errno)) {
        writer_finish(writer, false);
        return result == EIO
                   ? error_set(error, STELE_NO_SPACE,
                               "%s: commit: short write, the disk is full",
                               index->name)
                   : fail_as(STELE_NO_SPACE, index->name, result, "commit",
                             error);
    }
    writer_finish(writer, true);
    return fail_as(STELE_IO, index->name, result, "commit", error);
}

void index_writer_abort(struct index_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    writer_abort_txn(writer);
    writer_finish(writer, false);
}
