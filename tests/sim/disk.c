/* tests/sim/disk.c -- see tests/sim/disk.h. */
#include "tests/sim/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/sim/map.h"

enum { FDS_MAX = 256, CALL_NS = 1000 };

/* What a file would be if its pending writes reached the disk. */
struct backing {
    struct sim_node *synced; /* After the last good sync. */
    struct sim_node *under;  /* NULL: as the cache shows it. Else a sync has
                                lost writes that the cache still shows. */
};

struct lock {
    uint32_t inode;
    uint64_t byte;
    const struct sim_process *process;
    int fd;
};

struct sim_disk {
    struct sim_image *start;
    struct sim_image *cache;
    struct backing *backings; /* By inode. */
    uint32_t backing_count;
    uint32_t inode_next;
    struct sim_op *ops;
    size_t op_count;
    size_t op_capacity;
    struct lock *locks;
    size_t lock_count;
    uint64_t process_next;
    uint64_t now_ns;
    int64_t wall_jump_ns; /* What the wall clock is off by. */
    struct random_source random;
    enum io_fs_kind fs_kind;
    sim_fault *fault;
    void *fault_context;
    sim_before_sync *before_sync;
    void *before_sync_context;
};

struct descriptor {
    uint32_t inode; /* 0: not open. */
    char name[SIM_NAME_BYTES];
};

struct sim_process {
    struct io io; /* First. */
    struct sim_disk *disk;
    uint64_t number;
    /* Of its own, among all machines: the registry tells processes apart by the
     * devices of their directories. */
    uint64_t device;
    struct descriptor fds[FDS_MAX];
    uint32_t open_count;
};

const char *sim_call_name(enum sim_call call)
{
    static const char *const names[SIM_CALLS] = {
        "open directory",
        "mkdir",
        "open",
        "close",
        "fsync directory",
        "readdir",
        "rename",
        "unlink",
        "rmdir",
        "fstat",
        "pread",
        "pwrite",
        "fdatasync",
        "fallocate",
        "ftruncate",
        "fadvise",
        "lock",
        "getrandom",
        "index commit",
    };

    return names[call];
}

/* ---- The recording ------------------------------------------------------------ */

static struct sim_op *record(struct sim_disk *disk, enum sim_op_kind kind)
{
    struct sim_op *op;

    if (disk->op_count == disk->op_capacity) {
        disk->op_capacity = disk->op_capacity * 2 + 64;
        disk->ops =
            sim_reallocate(disk->ops, disk->op_capacity * sizeof *disk->ops);
    }
    op = &disk->ops[disk->op_count++];
    *op = (struct sim_op){.kind = kind};
    return op;
}

void sim_disk_mark(struct sim_disk *disk, uint32_t mark, uint64_t value)
{
    struct sim_op *op = record(disk, SIM_OP_MARK);

    op->mark = mark;
    op->value = value;
}

const struct sim_op *sim_disk_ops(const struct sim_disk *disk,
                                  size_t *count_out)
{
    *count_out = disk->op_count;
    return disk->ops;
}

/* ---- What a sync leaves behind --------------------------------------------------- */

static struct backing *backing_of(struct sim_disk *disk, uint32_t inode)
{
    if (inode >= disk->backing_count) {
        const uint32_t count = inode + 16;

        disk->backings =
            sim_reallocate(disk->backings, count * sizeof *disk->backings);
        memset(disk->backings + disk->backing_count, 0,
               (count - disk->backing_count) * sizeof *disk->backings);
        disk->backing_count = count;
    }
    return &disk->backings[inode];
}

static struct sim_node *cached(const struct sim_disk *disk, uint32_t inode)
{
    return disk->cache->nodes[inode];
}

static void write_under(struct sim_disk *disk, uint32_t inode, const void *data,
                        size_t bytes, uint64_t offset)
{
    struct backing *backing = backing_of(disk, inode);

    if (backing->under != NULL) {
        sim_node_write(backing->under, data, bytes, offset);
    }
}

static void sync_backing(struct sim_disk *disk, uint32_t inode)
{
    struct backing *backing = backing_of(disk, inode);

    sim_node_unref(backing->synced);
    if (backing->under != NULL) {
        backing->synced = sim_node_clone(backing->under);
    } else {
        backing->synced = sim_node_ref(cached(disk, inode));
    }
}

static void lose_pending(struct sim_disk *disk, uint32_t inode)
{
    struct backing *backing = backing_of(disk, inode);
    struct sim_node *under;

    if (backing->synced != NULL) {
        under = sim_node_clone(backing->synced);
    } else {
        struct sim_image *none = sim_image_create();

        sim_image_add(none, SIM_ROOT_INODE + 1, IO_TYPE_REGULAR);
        under = sim_node_ref(none->nodes[SIM_ROOT_INODE + 1]);
        sim_image_free(none);
    }
    sim_node_resize(under, cached(disk, inode)->size_bytes);
    sim_node_unref(backing->under);
    backing->under = under;
}

static void reread(struct sim_disk *disk, uint32_t inode)
{
    struct backing *backing = backing_of(disk, inode);

    struct sim_op *op;

    if (backing->under == NULL) {
        return;
    }
    op = record(disk, SIM_OP_REREAD);
    op->inode = inode;
    op->node = sim_node_clone(backing->under);
    sim_image_set_node(disk->cache, inode, backing->under);
    sim_node_unref(backing->under);
    backing->under = NULL;
}

/* ---- Calls ------------------------------------------------------------------------- */

static struct sim_process *process_of(struct io *io)
{
    return (struct sim_process *)io;
}

/* Returns what the fault says. */
static int enter(struct sim_process *process, enum sim_call call,
                 const char *name, size_t bytes)
{
    struct sim_disk *disk = process->disk;

    disk->now_ns += CALL_NS;
    return disk->fault == NULL
               ? 0
               : disk->fault(disk->fault_context, call, name, bytes);
}

static const char *name_of(const struct sim_process *process, int fd)
{
    assert(fd >= 0 && fd < FDS_MAX && process->fds[fd].inode != 0);
    return process->fds[fd].name;
}

static uint32_t inode_of(const struct sim_process *process, int fd)
{
    assert(fd >= 0 && fd < FDS_MAX && process->fds[fd].inode != 0);
    return process->fds[fd].inode;
}

static int take_fd(struct sim_process *process, uint32_t inode,
                   const char *name)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (process->fds[fd].inode == 0) {
            process->fds[fd].inode = inode;
            snprintf(process->fds[fd].name, SIM_NAME_BYTES, "%s", name);
            process->open_count++;
            return fd;
        }
    }
    return -EMFILE;
}

static uint32_t new_inode(struct sim_disk *disk, enum io_file_type type)
{
    const uint32_t inode = disk->inode_next++;
    struct sim_op *op = record(disk, SIM_OP_CREATE);

    op->inode = inode;
    op->type = type;
    sim_image_add(disk->cache, inode, type);
    return inode;
}

static void link_name(struct sim_disk *disk, uint32_t dir, const char *name,
                      uint32_t inode)
{
    struct sim_op *op = record(disk, SIM_OP_LINK);

    op->dir = dir;
    op->inode = inode;
    snprintf(op->name, SIM_NAME_BYTES, "%s", name);
    sim_image_link(disk->cache, dir, name, inode);
}

static void unlink_name(struct sim_disk *disk, uint32_t dir, const char *name)
{
    struct sim_op *op = record(disk, SIM_OP_UNLINK);

    op->dir = dir;
    op->inode = sim_image_find(disk->cache, dir, name);
    snprintf(op->name, SIM_NAME_BYTES, "%s", name);
    sim_image_unlink(disk->cache, dir, name);
}

/* The root's is the root. */
static uint32_t parent_of(const struct sim_image *image, uint32_t inode)
{
    for (uint32_t dir = SIM_ROOT_INODE; dir < image->node_count; dir++) {
        const struct sim_node *node = image->nodes[dir];

        for (uint32_t index = 0; node != NULL && index < node->entry_count;
             index++) {
            if (node->entries[index].inode == inode) {
                return dir;
            }
        }
    }
    return SIM_ROOT_INODE;
}

/* A path from the root (fd -1), or a name in a directory. */
static uint32_t look_up(const struct sim_process *process, int fd,
                        const char *path)
{
    if (fd >= 0 && strcmp(path, "..") == 0) {
        return parent_of(process->disk->cache, inode_of(process, fd));
    }
    return fd < 0 ? sim_image_walk(process->disk->cache, path)
                  : sim_image_find(process->disk->cache, inode_of(process, fd),
                                   path);
}

static int sim_open_dir(struct io *io, int fd, const char *path)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_OPEN_DIR, path, 0);
    uint32_t inode;

    if (fault != 0) {
        return fault;
    }
    inode = look_up(process, fd, path);
    if (inode == 0) {
        return -ENOENT;
    }
    if (cached(process->disk, inode)->type != IO_TYPE_DIRECTORY) {
        return -ENOTDIR;
    }
    return take_fd(process, inode, path);
}

static int sim_make_dir(struct io *io, int fd, const char *path)
{
    struct sim_process *process = process_of(io);
    const char *slash = strrchr(path, '/');
    const int fault = enter(process, SIM_CALL_MAKE_DIR, path, 0);
    uint32_t parent = SIM_ROOT_INODE;
    char parent_path[256];

    if (fault != 0) {
        return fault;
    }
    if (look_up(process, fd, path) != 0) {
        return -EEXIST;
    }
    if (fd >= 0) {
        parent = inode_of(process, fd);
    } else if (slash != NULL) {
        snprintf(parent_path, sizeof parent_path, "%.*s", (int)(slash - path),
                 path);
        parent = sim_image_walk(process->disk->cache, parent_path);
        path = slash + 1;
    }
    if (parent == 0) {
        return -ENOENT;
    }
    link_name(process->disk, parent, path,
              new_inode(process->disk, IO_TYPE_DIRECTORY));
    return 0;
}

static int sim_open_file(struct io *io, int dir_fd, const char *name,
                         enum io_open_mode mode)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_OPEN_FILE, name, 0);
    const uint32_t dir = inode_of(process, dir_fd);
    uint32_t inode;

    if (fault != 0) {
        return fault;
    }
    inode = sim_image_find(process->disk->cache, dir, name);
    if (inode != 0 && mode == IO_OPEN_CREATE_NEW) {
        return -EEXIST;
    }
    if (inode == 0) {
        if (mode != IO_OPEN_CREATE && mode != IO_OPEN_CREATE_NEW) {
            return -ENOENT;
        }
        inode = new_inode(process->disk, IO_TYPE_REGULAR);
        link_name(process->disk, dir, name, inode);
    }
    if (cached(process->disk, inode)->type == IO_TYPE_DIRECTORY) {
        return -EISDIR;
    }
    return take_fd(process, inode, name);
}

static void drop_locks(struct sim_disk *disk, const struct sim_process *process,
                       int fd)
{
    for (size_t index = 0; index < disk->lock_count;) {
        if (disk->locks[index].process == process &&
            disk->locks[index].fd == fd) {
            disk->locks[index] = disk->locks[--disk->lock_count];
        } else {
            index++;
        }
    }
}

static int sim_close(struct io *io, int fd)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_CLOSE, name_of(process, fd), 0);

    drop_locks(process->disk, process, fd);
    process->fds[fd].inode = 0;
    process->open_count--;
    return fault; /* It is closed whatever this says. */
}

static int sim_sync_dir(struct io *io, int fd)
{
    struct sim_process *process = process_of(io);
    const int fault =
        enter(process, SIM_CALL_SYNC_DIR, name_of(process, fd), 0);

    if (fault != 0) {
        return fault;
    }
    record(process->disk, SIM_OP_SYNC_DIR)->inode = inode_of(process, fd);
    return 0;
}

static int sim_list(struct io *io, int fd,
                    int (*visit)(void *context, const char *name),
                    void *context)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_LIST, name_of(process, fd), 0);
    struct sim_node *node;
    int result = 0;

    if (fault != 0) {
        return fault;
    }
    /* As it is now: the visitor may unlink. */
    node = sim_node_ref(cached(process->disk, inode_of(process, fd)));
    for (uint32_t index = 0; index < node->entry_count && result == 0;
         index++) {
        result = visit(context, node->entries[index].name);
    }
    sim_node_unref(node);
    return result;
}

static int sim_rename(struct io *io, int from_fd, const char *from, int to_fd,
                      const char *to)
{
    struct sim_process *process = process_of(io);
    struct sim_disk *disk = process->disk;
    const int fault = enter(process, SIM_CALL_RENAME, to, 0);
    const uint32_t from_dir = inode_of(process, from_fd);
    const uint32_t to_dir = inode_of(process, to_fd);
    struct sim_op *op;
    uint32_t inode;

    if (fault != 0) {
        return fault;
    }
    inode = sim_image_find(disk->cache, from_dir, from);
    if (inode == 0) {
        return -ENOENT;
    }
    op = record(disk, SIM_OP_RENAME);
    op->inode = inode;
    op->from_dir = from_dir;
    op->dir = to_dir;
    snprintf(op->from_name, SIM_NAME_BYTES, "%s", from);
    snprintf(op->name, SIM_NAME_BYTES, "%s", to);
    sim_image_unlink(disk->cache, from_dir, from);
    sim_image_link(disk->cache, to_dir, to, inode);
    return 0;
}

static int remove_name(struct io *io, enum sim_call call, int fd,
                       const char *name, enum io_file_type type)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, call, name, 0);
    const uint32_t dir = inode_of(process, fd);
    const uint32_t inode = sim_image_find(process->disk->cache, dir, name);
    const struct sim_node *node;

    if (fault != 0) {
        return fault;
    }
    if (inode == 0) {
        return -ENOENT;
    }
    node = cached(process->disk, inode);
    if (node->type != type) {
        return type == IO_TYPE_DIRECTORY ? -ENOTDIR : -EISDIR;
    }
    if (node->entry_count > 0) {
        return -ENOTEMPTY;
    }
    unlink_name(process->disk, dir, name);
    return 0;
}

static int sim_unlink(struct io *io, int fd, const char *name)
{
    return remove_name(io, SIM_CALL_UNLINK, fd, name, IO_TYPE_REGULAR);
}

static int sim_rmdir(struct io *io, int fd, const char *name)
{
    return remove_name(io, SIM_CALL_RMDIR, fd, name, IO_TYPE_DIRECTORY);
}

static int sim_info(struct io *io, int fd, const char *name,
                    struct io_file_info *info_out)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_INFO,
                            name == NULL ? name_of(process, fd) : name, 0);
    uint32_t inode = inode_of(process, fd);

    if (fault != 0) {
        return fault;
    }
    if (name != NULL) {
        inode = sim_image_find(process->disk->cache, inode, name);
        if (inode == 0) {
            return -ENOENT;
        }
    }
    *info_out = (struct io_file_info){
        .type = cached(process->disk, inode)->type,
        .size_bytes = cached(process->disk, inode)->size_bytes,
        .device = process->device,
        .inode = inode,
        .birth_time_ns = inode,
        .link_count = 1,
    };
    return 0;
}

static int sim_fs_kind(struct io *io, int fd, enum io_fs_kind *kind_out)
{
    (void)fd;
    *kind_out = process_of(io)->disk->fs_kind;
    return 0;
}

static ssize_t sim_read(struct io *io, int fd, void *target, size_t bytes,
                        uint64_t offset)
{
    struct sim_process *process = process_of(io);
    const int fault =
        enter(process, SIM_CALL_READ, name_of(process, fd), bytes);

    if (fault < 0) {
        return fault;
    }
    if (fault > 0) {
        bytes = (size_t)(fault - 1);
    }
    return (ssize_t)sim_node_read(cached(process->disk, inode_of(process, fd)),
                                  target, bytes, offset);
}

/* One write, as far as `bytes` go. */
static void write_run(struct sim_disk *disk, uint32_t inode, uint8_t *data,
                      size_t bytes, uint64_t offset)
{
    struct sim_op *op = record(disk, SIM_OP_WRITE);

    op->inode = inode;
    op->offset = offset;
    op->bytes = bytes;
    if (bytes_are_zero(data, bytes)) {
        free(data);
    } else {
        op->data = data;
    }
    sim_image_write(disk->cache, inode, op->data, bytes, offset);
    write_under(disk, inode, op->data, bytes, offset);
}

static ssize_t sim_writev(struct io *io, int fd, const struct iovec *iov,
                          int iov_count, uint64_t offset)
{
    struct sim_process *process = process_of(io);
    size_t bytes = 0;
    size_t filled = 0;
    uint8_t *data;
    int fault;

    for (int index = 0; index < iov_count; index++) {
        bytes += iov[index].iov_len;
    }
    fault = enter(process, SIM_CALL_WRITE, name_of(process, fd), bytes);
    if (fault < 0 && fault != SIM_GARBLED) {
        return fault;
    }
    data = sim_allocate(bytes);
    for (int index = 0; index < iov_count; index++) {
        memcpy(data + filled, iov[index].iov_base, iov[index].iov_len);
        filled += iov[index].iov_len;
    }
    if (fault == SIM_GARBLED) {
        data[random_below(&process->disk->random, bytes)] ^= 1;
    }
    if (fault > 0 && (size_t)(fault - 1) < bytes) {
        bytes = (size_t)(fault - 1);
    }
    if (bytes == 0) {
        free(data);
        return 0;
    }
    write_run(process->disk, inode_of(process, fd), data, bytes, offset);
    return (ssize_t)bytes;
}

static int sim_sync_data(struct io *io, int fd)
{
    struct sim_process *process = process_of(io);
    struct sim_disk *disk = process->disk;
    const uint32_t inode = inode_of(process, fd);
    int fault;

    if (disk->before_sync != NULL) {
        disk->before_sync(disk->before_sync_context, name_of(process, fd));
    }
    fault = enter(process, SIM_CALL_SYNC, name_of(process, fd), 0);
    if (fault != 0) {
        record(disk, SIM_OP_SYNC_LOST)->inode = inode;
        lose_pending(disk, inode);
        return fault;
    }
    record(disk, SIM_OP_SYNC)->inode = inode;
    sync_backing(disk, inode);
    return 0;
}

/* The disk may have it earlier than it would; but it may at any time. */
static int sim_write_back(struct io *io, int fd, uint64_t offset,
                          uint64_t bytes)
{
    struct sim_process *process = process_of(io);
    const uint32_t inode = inode_of(process, fd);
    const int fault =
        enter(process, SIM_CALL_WRITE_BACK, name_of(process, fd), 0);

    (void)offset;
    (void)bytes;
    if (fault != 0) {
        record(process->disk, SIM_OP_SYNC_LOST)->inode = inode;
        lose_pending(process->disk, inode);
    }
    return fault;
}

static int resize(struct io *io, enum sim_call call, int fd, uint64_t bytes)
{
    struct sim_process *process = process_of(io);
    struct sim_disk *disk = process->disk;
    const uint32_t inode = inode_of(process, fd);
    const int fault = enter(process, call, name_of(process, fd), bytes);
    struct sim_op *op;

    if (fault != 0) {
        return fault;
    }
    if (call == SIM_CALL_ALLOCATE && cached(disk, inode)->size_bytes >= bytes) {
        return 0;
    }
    op = record(disk, SIM_OP_RESIZE);
    op->inode = inode;
    op->offset = bytes;
    sim_image_resize(disk->cache, inode, bytes);
    if (backing_of(disk, inode)->under != NULL) {
        sim_node_resize(backing_of(disk, inode)->under, bytes);
    }
    return 0;
}

static int sim_allocate_file(struct io *io, int fd, uint64_t bytes)
{
    return resize(io, SIM_CALL_ALLOCATE, fd, bytes);
}

static int sim_truncate(struct io *io, int fd, uint64_t bytes)
{
    return resize(io, SIM_CALL_TRUNCATE, fd, bytes);
}

static int sim_drop_cache(struct io *io, int fd)
{
    struct sim_process *process = process_of(io);
    const int fault =
        enter(process, SIM_CALL_DROP_CACHE, name_of(process, fd), 0);

    if (fault == 0) {
        reread(process->disk, inode_of(process, fd));
    }
    return fault;
}

static bool held_by_other(const struct sim_process *process, int fd,
                          uint64_t byte)
{
    const struct sim_disk *disk = process->disk;

    for (size_t index = 0; index < disk->lock_count; index++) {
        const struct lock *lock = &disk->locks[index];

        if (lock->inode == inode_of(process, fd) && lock->byte == byte &&
            (lock->process != process || lock->fd != fd)) {
            return true;
        }
    }
    return false;
}

static int sim_lock(struct io *io, int fd, uint64_t byte)
{
    struct sim_process *process = process_of(io);
    struct sim_disk *disk = process->disk;
    const int fault = enter(process, SIM_CALL_LOCK, name_of(process, fd), 0);

    if (fault != 0) {
        return fault;
    }
    if (held_by_other(process, fd, byte)) {
        return -EAGAIN;
    }
    disk->locks = sim_reallocate(disk->locks,
                                 (disk->lock_count + 1) * sizeof *disk->locks);
    disk->locks[disk->lock_count++] =
        (struct lock){.inode = inode_of(process, fd),
                      .byte = byte,
                      .process = process,
                      .fd = fd};
    return 0;
}

static int sim_lock_held(struct io *io, int fd, uint64_t byte)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_LOCK, name_of(process, fd), 0);

    return fault != 0 ? fault : held_by_other(process, fd, byte);
}

static uint64_t sim_clock(struct io *io)
{
    struct sim_disk *disk = process_of(io)->disk;

    disk->now_ns += CALL_NS;
    return disk->now_ns;
}

static uint64_t sim_wall_clock(struct io *io)
{
    const int64_t jump_ns = process_of(io)->disk->wall_jump_ns;
    const uint64_t now_ns = sim_clock(io);

    return jump_ns < 0 && (uint64_t)-jump_ns > now_ns
               ? 0
               : now_ns + (uint64_t)jump_ns;
}

static int sim_random(struct io *io, void *target, size_t bytes)
{
    struct sim_process *process = process_of(io);
    const int fault = enter(process, SIM_CALL_RANDOM, "", bytes);
    uint8_t *to = target;

    for (size_t index = 0; index < bytes; index++) {
        to[index] = (uint8_t)random_u64(&process->disk->random);
    }
    return fault;
}

static void sim_describe(struct io *io, char *target, size_t bytes)
{
    snprintf(target, bytes, "process %llu of a simulation",
             (unsigned long long)process_of(io)->number);
}

static const struct io_calls calls = {
    .open_dir = sim_open_dir,
    .make_dir = sim_make_dir,
    .open_file = sim_open_file,
    .close = sim_close,
    .sync_dir = sim_sync_dir,
    .list = sim_list,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .rmdir = sim_rmdir,
    .info = sim_info,
    .fs_kind = sim_fs_kind,
    .read = sim_read,
    .writev = sim_writev,
    .sync_data = sim_sync_data,
    .write_back = sim_write_back,
    .allocate = sim_allocate_file,
    .truncate = sim_truncate,
    .drop_cache = sim_drop_cache,
    .lock = sim_lock,
    .lock_held = sim_lock_held,
    .clock_wall_ns = sim_wall_clock,
    .clock_monotonic_ns = sim_clock,
    .random = sim_random,
    .describe_process = sim_describe,
};

/* ---- The machine ------------------------------------------------------------------- */

struct sim_disk *sim_disk_create(struct sim_image *image, uint64_t seed)
{
    struct sim_disk *disk = sim_allocate(sizeof *disk);

    *disk = (struct sim_disk){
        .start = image,
        .cache = sim_image_copy(image),
        .inode_next = image->node_count + 1,
        .process_next = 1,
        .now_ns = 1000000000,
        .random = {.state = seed},
        .fs_kind = IO_FS_OVERWRITE,
    };
    for (uint32_t inode = 0; inode < image->node_count; inode++) {
        if (image->nodes[inode] != NULL) {
            backing_of(disk, inode)->synced = sim_node_ref(image->nodes[inode]);
        }
    }
    return disk;
}

void sim_disk_free(struct sim_disk *disk)
{
    if (disk == NULL) {
        return;
    }
    for (uint32_t inode = 0; inode < disk->backing_count; inode++) {
        sim_node_unref(disk->backings[inode].synced);
        sim_node_unref(disk->backings[inode].under);
    }
    for (size_t index = 0; index < disk->op_count; index++) {
        free(disk->ops[index].data);
        sim_map_unref(disk->ops[index].map);
        sim_node_unref(disk->ops[index].node);
    }
    free(disk->backings);
    free(disk->ops);
    free(disk->locks);
    sim_image_free(disk->start);
    sim_image_free(disk->cache);
    free(disk);
}

struct sim_process *sim_process_start(struct sim_disk *disk)
{
    static uint64_t device_last;
    struct sim_process *process = sim_allocate(sizeof *process);

    *process = (struct sim_process){
        .io = {.calls = &calls},
        .disk = disk,
        .number = disk->process_next++,
        .device = ++device_last,
    };
    return process;
}

struct io *sim_process_io(struct sim_process *process)
{
    return &process->io;
}

uint32_t sim_process_open_count(const struct sim_process *process)
{
    return process->open_count;
}

void sim_process_end(struct sim_process *process)
{
    struct sim_disk *disk = process->disk;

    for (size_t index = 0; index < disk->lock_count;) {
        if (disk->locks[index].process == process) {
            disk->locks[index] = disk->locks[--disk->lock_count];
        } else {
            index++;
        }
    }
    free(process);
}

struct sim_disk *sim_disk_of(struct io *io)
{
    assert(io->calls == &calls);
    return process_of(io)->disk;
}

const struct sim_image *sim_disk_cache(const struct sim_disk *disk)
{
    return disk->cache;
}

const struct sim_image *sim_disk_start(const struct sim_disk *disk)
{
    return disk->start;
}

void sim_disk_set_fault(struct sim_disk *disk, sim_fault *fault, void *context)
{
    disk->fault = fault;
    disk->fault_context = context;
}

void sim_disk_set_before_sync(struct sim_disk *disk, sim_before_sync *before,
                              void *context)
{
    disk->before_sync = before;
    disk->before_sync_context = context;
}

void sim_disk_set_fs_kind(struct sim_disk *disk, enum io_fs_kind kind)
{
    disk->fs_kind = kind;
}

void sim_disk_advance_clock(struct sim_disk *disk, uint64_t ns)
{
    disk->now_ns += ns;
}

void sim_disk_jump_wall_clock(struct sim_disk *disk, int64_t ns)
{
    disk->wall_jump_ns = ns;
}

void sim_disk_rot_map(struct sim_disk *disk, uint32_t inode,
                      struct sim_map *map)
{
    sim_image_set_map(disk->cache, inode, map);
}

int sim_disk_commit_map(struct sim_disk *disk, uint32_t inode,
                        struct sim_map *map)
{
    struct sim_op *op = record(disk, SIM_OP_MAP_BEGIN);
    int fault;

    op->inode = inode;
    op->map = sim_map_ref(map);
    fault = disk->fault == NULL
                ? 0
                : disk->fault(disk->fault_context, SIM_CALL_INDEX_COMMIT,
                              "data.mdb", 0);
    if (fault != 0) {
        return fault;
    }
    record(disk, SIM_OP_MAP_END)->inode = inode;
    sim_image_set_map(disk->cache, inode, map);
    return 0;
}
