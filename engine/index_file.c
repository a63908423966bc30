/* engine/index_file.c -- see engine/index_file.h. */
#include "engine/index_file.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"

/*
 * Each of a file's first two pages is (64-bit LMDB 0.9; little-endian like the
 * hosts we run on):
 *
 *     10 u16 page flags     40 u32 page bytes     136 u64 last page number
 *     16 u32 magic          92 u16 main flags     144 u64 transaction id
 *     20 u32 version        80, 128 u64 roots (free list, main)
 *
 * They carry no checksum, so what LMDB would follow blindly is bounded here.
 */
enum {
    META_BYTES = 152,
    META_PAGE_FLAG = 0x08,
    META_VERSION = 1,
    META_PAGE_BYTES_MIN = 512,
    META_PAGE_BYTES_MAX = 65536,
    META_PAGE_BYTES_USUAL = 4096,
};
#define META_MAGIC   UINT32_C(0xBEEFC0DE)
#define META_NO_ROOT UINT64_MAX

struct meta {
    bool is_meta; /* If not, nothing else is set. */
    uint32_t version;
    uint32_t page_bytes;
    uint16_t main_flags;
    uint64_t free_root;
    uint64_t main_root;
    uint64_t last_page;
    uint64_t txn_id;
};

static struct meta meta_decode(const uint8_t page[META_BYTES])
{
    if ((get_u16le(page + 10) & META_PAGE_FLAG) == 0 ||
        get_u32le(page + 16) != META_MAGIC) {
        return (struct meta){.is_meta = false};
    }
    return (struct meta){
        .is_meta = true,
        .version = get_u32le(page + 20),
        .page_bytes = get_u32le(page + 40),
        .free_root = get_u64le(page + 80),
        .main_flags = get_u16le(page + 92),
        .main_root = get_u64le(page + 128),
        .last_page = get_u64le(page + 136),
        .txn_id = get_u64le(page + 144),
    };
}

static bool meta_root_is_inside(const struct meta *meta, uint64_t root)
{
    return root == META_NO_ROOT || root <= meta->last_page;
}

static bool meta_is_sane(const struct meta *meta)
{
    return meta->is_meta && meta->page_bytes >= META_PAGE_BYTES_MIN &&
           meta->page_bytes <= META_PAGE_BYTES_MAX &&
           (meta->page_bytes & (meta->page_bytes - 1)) == 0 &&
           meta->main_flags == 0 &&
           meta_root_is_inside(meta, meta->free_root) &&
           meta_root_is_inside(meta, meta->main_root);
}

/* Read the meta page at `offset`; one cut short is no meta page. */
static enum stele_status meta_read(struct io_file *file, uint64_t offset,
                                   struct meta *meta_out,
                                   struct stele_error *error)
{
    uint8_t page[META_BYTES] = {0};
    size_t read_bytes;
    const enum stele_status status =
        io_file_read(file, page, sizeof page, offset, &read_bytes, error);

    if (status != STELE_OK) {
        return status;
    }
    *meta_out = read_bytes == sizeof page ? meta_decode(page)
                                          : (struct meta){.is_meta = false};
    return STELE_OK;
}

static enum stele_status judge_metas(const struct meta metas[2],
                                     uint64_t file_bytes, const char *name,
                                     struct stele_error *error)
{
    const struct meta *newest = &metas[metas[1].txn_id > metas[0].txn_id];

    if (!metas[0].is_meta && !metas[1].is_meta) {
        return error_set(error, STELE_FOREIGN, "%s: not an LMDB file", name);
    }
    for (size_t index = 0; index < 2; index++) {
        if (metas[index].is_meta && metas[index].version != META_VERSION) {
            return error_set(error, STELE_FOREIGN,
                             "%s: LMDB format version %" PRIu32 ", not %d",
                             name, metas[index].version, META_VERSION);
        }
    }
    for (size_t index = 0; index < 2; index++) {
        /* LMDB, too, wants both, though the newer alone would do. */
        if (!meta_is_sane(&metas[index]) ||
            metas[index].page_bytes != metas[0].page_bytes) {
            return error_set(error, STELE_CORRUPT,
                             "%s: meta page %zu is damaged", name, index);
        }
    }
    if (newest->last_page >= file_bytes / newest->page_bytes) {
        return error_set(error, STELE_CORRUPT,
                         "%s: the file has %" PRIu64
                         " bytes, but its meta page claims that page %" PRIu64
                         " of %" PRIu32 " bytes is there",
                         name, file_bytes, newest->last_page,
                         newest->page_bytes);
    }
    return STELE_OK;
}

static enum stele_status check_metas(struct io_file *file,
                                     struct stele_error *error)
{
    struct io_file_info info;
    struct meta metas[2];
    enum stele_status status;

    status = meta_read(file, 0, &metas[0], error);
    if (status == STELE_OK) {
        status = meta_read(file,
                           meta_is_sane(&metas[0]) ? metas[0].page_bytes
                                                   : META_PAGE_BYTES_USUAL,
                           &metas[1], error);
    }
    if (status == STELE_OK) {
        /* After the meta pages: a writer at work has grown the file before it
         * says so in one. */
        status = io_file_info(file, &info, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    if (info.size_bytes < META_PAGE_BYTES_MIN + META_BYTES ||
        (metas[0].is_meta && info.size_bytes / 2 < metas[0].page_bytes)) {
        return error_set(error, STELE_CORRUPT,
                         "%s: the file has %" PRIu64
                         " bytes, fewer than two pages",
                         io_file_name(file), info.size_bytes);
    }
    return judge_metas(metas, info.size_bytes, io_file_name(file), error);
}

enum stele_status index_file_check(struct io_dir *dir,
                                   struct stele_error *error)
{
    struct io_file *file = NULL;
    struct io_file_info info;
    enum stele_status status = io_info(dir, INDEX_DATA_NAME, &info, error);

    if (status != STELE_OK) {
        return error_wrap(error, status, "%s", io_dir_path(dir));
    }
    if (info.type != IO_TYPE_REGULAR) {
        return error_set(error, STELE_FOREIGN,
                         "%s: " INDEX_DATA_NAME " is not a regular file",
                         io_dir_path(dir));
    }
    status = io_file_open(dir, INDEX_DATA_NAME, IO_OPEN_READ, &file, error);
    if (status == STELE_OK) {
        status = check_metas(file, error);
    }
    io_file_close(file);
    return status;
}

/* ---- Growing --------------------------------------------------------------- */

enum {
    GROW_SLACK_BYTES = 8 << 20, /* Free behind the last page, at least ... */
    GROW_STEP_BYTES = 16 << 20, /* ... and after growing. */
};

enum stele_status index_file_open(struct io_dir *dir, struct io_file **file_out,
                                  struct stele_error *error)
{
    return io_file_open(dir, INDEX_DATA_NAME, IO_OPEN_READ_WRITE, file_out,
                        error);
}

enum stele_status index_file_grow(struct io_file *file, uint64_t used_bytes,
                                  uint64_t bytes_max, struct stele_error *error)
{
    uint64_t wanted = used_bytes + GROW_STEP_BYTES;
    struct io_file_info info;
    enum stele_status status = io_file_info(file, &info, error);

    if (status != STELE_OK) {
        return status;
    }
    if (wanted > bytes_max) {
        wanted = bytes_max;
    }
    if (info.size_bytes >= used_bytes + GROW_SLACK_BYTES ||
        info.size_bytes >= wanted) {
        return STELE_OK;
    }
    return io_file_grow(file, wanted, error);
}
