/* tests/lib/files.c -- see tests/lib/files.h. */
#include "tests/lib/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"

static void die(const char *what, const char *path)
{
    fprintf(stderr, "%s: ", what);
    perror(path);
    abort();
}

void files_path(char path_out[FILES_PATH_BYTES], const char *dir,
                const char *name)
{
    const int size = snprintf(path_out, FILES_PATH_BYTES, "%s/%s", dir, name);

    if (size < 0 || size >= FILES_PATH_BYTES) {
        die("path is too long", dir);
    }
}

static int open_file(const char *path, int flags)
{
    const int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd < 0) {
        die("open", path);
    }
    return fd;
}

uint64_t files_size(const char *path)
{
    struct stat found;

    if (stat(path, &found) != 0) {
        die("stat", path);
    }
    return (uint64_t)found.st_size;
}

void files_read_at(const char *path, uint64_t offset, void *target,
                   size_t bytes)
{
    const int fd = open_file(path, O_RDONLY);

    if (pread(fd, target, bytes, (off_t)offset) != (ssize_t)bytes) {
        die("read", path);
    }
    close(fd);
}

uint8_t *files_read(const char *path, size_t *bytes_out)
{
    const size_t bytes = (size_t)files_size(path);
    uint8_t *data = malloc(bytes + 1);

    if (data == NULL) {
        die("malloc", path);
    }
    files_read_at(path, 0, data, bytes);
    *bytes_out = bytes;
    return data;
}

static void write_all(int fd, const char *path, uint64_t offset,
                      const void *data, size_t bytes)
{
    if (pwrite(fd, data, bytes, (off_t)offset) != (ssize_t)bytes) {
        die("write", path);
    }
    close(fd);
}

void files_write_at(const char *path, uint64_t offset, const void *data,
                    size_t bytes)
{
    write_all(open_file(path, O_WRONLY), path, offset, data, bytes);
}

void files_write(const char *path, const void *data, size_t bytes)
{
    write_all(open_file(path, O_WRONLY | O_CREAT | O_TRUNC), path, 0, data,
              bytes);
}

void files_fill_at(const char *path, uint64_t offset, int byte, size_t bytes)
{
    void *data = malloc(bytes);

    if (data == NULL) {
        die("malloc", path);
    }
    memset(data, byte, bytes);
    files_write_at(path, offset, data, bytes);
    free(data);
}

void files_flip_bit(const char *path, uint64_t offset, uint64_t bit)
{
    uint8_t byte;

    files_read_at(path, offset + bit / 8, &byte, 1);
    byte ^= (uint8_t)(1u << (bit % 8));
    files_write_at(path, offset + bit / 8, &byte, 1);
}

uint64_t files_find(const char *path, const void *data, size_t bytes)
{
    size_t size;
    uint8_t *content = files_read(path, &size);
    const uint8_t *found = memmem(content, size, data, bytes);
    const uint64_t offset =
        found == NULL ? UINT64_MAX : (uint64_t)(found - content);

    free(content);
    return offset;
}

void files_flip_everywhere(const char *path, const void *data, size_t bytes,
                           uint64_t bit)
{
    uint64_t offset = files_find(path, data, bytes);

    if (offset == UINT64_MAX) {
        die("find what is to be damaged", path);
    }
    for (; offset != UINT64_MAX; offset = files_find(path, data, bytes)) {
        files_flip_bit(path, offset, bit);
    }
}

void files_truncate(const char *path, uint64_t bytes)
{
    if (truncate(path, (off_t)bytes) != 0) {
        die("truncate", path);
    }
}

void files_remove(const char *path)
{
    if (remove(path) != 0) {
        die("remove", path);
    }
}

void files_rename(const char *from, const char *to)
{
    if (rename(from, to) != 0) {
        die("rename", from);
    }
}

void files_copy(const char *from, const char *to)
{
    size_t bytes;
    uint8_t *data = files_read(from, &bytes);

    files_write(to, data, bytes);
    free(data);
}

bool files_exists(const char *path)
{
    struct stat ignored;

    return lstat(path, &ignored) == 0;
}

static uint64_t digest_file(const char *path, uint64_t digest)
{
    size_t bytes;
    uint8_t *data = files_read(path, &bytes);

    digest = checksum64(data, bytes, digest);
    free(data);
    return digest;
}

uint64_t files_tree_digest(const char *dir, const char *except)
{
    struct dirent **entries;
    const int count = scandir(dir, &entries, NULL, alphasort);
    uint64_t digest = 0;

    if (count < 0) {
        die("scandir", dir);
    }
    for (int index = 0; index < count; index++) {
        const char *name = entries[index]->d_name;
        char path[FILES_PATH_BYTES];
        struct stat found;

        files_path(path, dir, name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            (except == NULL || strcmp(name, except) != 0)) {
            digest = checksum64(name, strlen(name), digest);
            if (lstat(path, &found) != 0) {
                die("stat", path);
            }
            if (S_ISDIR(found.st_mode)) {
                digest += files_tree_digest(path, except);
            } else if (S_ISREG(found.st_mode)) {
                digest = digest_file(path, digest);
            }
        }
        free(entries[index]);
    }
    free(entries);
    return digest;
}

size_t files_count(const char *dir, const char *suffix)
{
    const size_t suffix_size = strlen(suffix);
    DIR *stream = opendir(dir);
    const struct dirent *entry;
    size_t count = 0;

    if (stream == NULL) {
        die("opendir", dir);
    }
    while ((entry = readdir(stream)) != NULL) {
        const size_t size = strlen(entry->d_name);

        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0 && size >= suffix_size &&
            strcmp(entry->d_name + size - suffix_size, suffix) == 0) {
            count++;
        }
    }
    closedir(stream);
    return count;
}
