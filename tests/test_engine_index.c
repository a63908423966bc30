/*
 * tests/test_engine_index.c -- engine/index.h, sentence by sentence.
 *
 * Every test has a directory of its own, with an index in it, already open.
 * Damage is done to data.mdb while no index is open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checksum.h"
#include "engine/index.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})
#define END_OF_TABLE   BYTES("t\x01")

enum { READERS_MAX = 4, GENERATION = 7, FILE_BYTES_MAX = 1 << 20 };

static char directory[256];
static char index_path[300];
static char data_path[320];
static struct index *idx;
static struct stele_error error;

/* ---- A small vocabulary -------------------------------------------------- */

static struct index_options options(void)
{
    return (struct index_options){.map_bytes = 256 * 1024 * 1024,
                                  .readers_max = READERS_MAX};
}

static struct index_identity identity(void)
{
    struct index_identity made = {.generation = GENERATION};

    for (uint8_t index = 0; index < WAL_UUID_BYTES; index++) {
        made.uuid.bytes[index] = (uint8_t)(0xa0 + index);
    }
    return made;
}

static struct wal_position at(uint64_t lsn)
{
    const struct wal_uuid uuid = identity().uuid;
    struct wal_position position = wal_position_origin(&uuid, 0);

    position.lsn = lsn;
    position.unit = lsn;
    return position;
}

static enum stele_status create_in(const char *path,
                                   const struct index_options *wanted,
                                   const struct index_identity *made,
                                   const struct wal_position *base)
{
    struct io_dir *dir = NULL;
    enum stele_status status = io_dir_open(io_posix(), path, &dir, &error);

    if (status == STELE_OK) {
        status = index_create(dir, wanted, made, base, &error);
    }
    io_dir_close(dir);
    return status;
}

static enum stele_status open_in(const char *path,
                                 const struct index_options *wanted,
                                 struct index **index_out)
{
    struct io_dir *dir = NULL;
    enum stele_status status = io_dir_open(io_posix(), path, &dir, &error);

    if (status == STELE_OK) {
        status = index_open(dir, wanted, index_out, &error);
    }
    io_dir_close(dir);
    return status;
}

static void create(void)
{
    const struct index_options wanted = options();
    const struct index_identity made = identity();
    const struct wal_position base = at(0);

    assert_int_equal(mkdir(index_path, 0700), 0);
    assert_int_equal(create_in(index_path, &wanted, &made, &base), STELE_OK);
}

static enum stele_status open_with(const struct index_options *wanted)
{
    assert_null(idx);
    return open_in(index_path, wanted, &idx);
}

static enum stele_status try_open(void)
{
    const struct index_options wanted = options();

    return open_with(&wanted);
}

static void close_index(void)
{
    index_close(idx);
    idx = NULL;
}

static struct index_writer *begin(void)
{
    struct index_writer *writer;

    assert_int_equal(index_writer_begin(idx, &writer, &error), STELE_OK);
    return writer;
}

static void commit(struct index_writer *writer, uint64_t lsn)
{
    const struct wal_position position = at(lsn);

    assert_int_equal(index_writer_commit(writer, &position, &position, &error),
                     STELE_OK);
}

static struct base_value value_of(struct bytes key, uint64_t lsn,
                                  struct bytes value)
{
    return (struct base_value){
        .lsn = lsn, .check = base_value_check(key, lsn, value), .value = value};
}

static enum stele_status try_put(struct index_writer *writer, struct bytes key,
                                 uint64_t lsn, struct bytes value)
{
    const struct base_value made = value_of(key, lsn, value);

    return index_writer_put(writer, key, &made, &error);
}

static void put(struct index_writer *writer, struct bytes key, uint64_t lsn,
                struct bytes value)
{
    assert_int_equal(try_put(writer, key, lsn, value), STELE_OK);
}

static void put_one(struct bytes key, uint64_t lsn, struct bytes value)
{
    struct index_writer *writer = begin();

    put(writer, key, lsn, value);
    commit(writer, lsn);
}

static struct index_reader *acquire(void)
{
    struct index_reader *reader;

    assert_int_equal(index_reader_acquire(idx, &reader, &error), STELE_OK);
    return reader;
}

static enum stele_status get(struct index_reader *reader, struct bytes key,
                             struct base_value *value_out)
{
    return index_reader_get(reader, key, value_out, &error);
}

/* What a fresh reader gets for `key`. */
static enum stele_status get_one(struct bytes key)
{
    struct index_reader *reader = acquire();
    struct base_value ignored;
    const enum stele_status status = get(reader, key, &ignored);

    index_reader_release(reader);
    return status;
}

static void expect_entry(struct index_reader *reader, struct bytes key,
                         uint64_t lsn, struct bytes expected)
{
    struct base_value value;

    assert_int_equal(get(reader, key, &value), STELE_OK);
    assert_int_equal(value.lsn, lsn);
    assert_int_equal(value.check, base_value_check(key, lsn, expected));
    assert_int_equal(value.value.size, expected.size);
    if (expected.size > 0) {
        assert_memory_equal(value.value.data, expected.data, expected.size);
    }
}

static void expect_positions(uint64_t applied, uint64_t applying)
{
    struct index_reader *reader = acquire();
    const struct wal_position expected_applied = at(applied);
    const struct wal_position expected_applying = at(applying);

    assert_true(
        wal_position_equal(index_reader_applied(reader), &expected_applied));
    assert_true(
        wal_position_equal(index_reader_applying(reader), &expected_applying));
    index_reader_release(reader);
}

static uint64_t entry_count(void)
{
    struct index_reader *reader = acquire();
    uint64_t count;

    assert_int_equal(index_reader_entry_count(reader, &count, &error),
                     STELE_OK);
    index_reader_release(reader);
    return count;
}

/* "t", 0x00, six digits: in the order of the numbers. */
struct numbered_key {
    char text[16];
    struct bytes bytes;
};

static struct bytes number(struct numbered_key *key, unsigned n)
{
    const int bytes =
        snprintf(key->text, sizeof key->text, "t%c%06u", 0, n % 1000000);

    key->bytes = (struct bytes){key->text, (size_t)bytes};
    return key->bytes;
}

static unsigned number_in(struct bytes key)
{
    char digits[7] = {0};

    assert_int_equal(key.size, 8);
    memcpy(digits, (const char *)key.data + 2, 6);
    return (unsigned)strtoul(digits, NULL, 10);
}

static void put_numbers(unsigned count)
{
    struct index_writer *writer = begin();

    for (unsigned n = 0; n < count; n++) {
        struct numbered_key key;

        put(writer, number(&key, n), n + 1, BYTES("value"));
    }
    commit(writer, count);
}

/* ---- Damage -------------------------------------------------------------- */

static uint8_t file_data[FILE_BYTES_MAX];
static size_t file_bytes;

/* Up to the last page of the newer meta page. */
static size_t claimed_bytes(void)
{
    const uint8_t *newer = file_data + 4096;

    if (get_u64le(file_data + 144) > get_u64le(newer + 144)) {
        newer = file_data;
    }
    return (size_t)(get_u64le(newer + 136) + 1) * 4096;
}

static void read_data_file(void)
{
    FILE *file = fopen(data_path, "rb");

    assert_non_null(file);
    file_bytes = fread(file_data, 1, sizeof file_data, file);
    /* A writer keeps the file longer than its meta page claims; what is behind
     * the last page is a hole. */
    assert_true(claimed_bytes() < sizeof file_data);
    assert_true(claimed_bytes() <= file_bytes);
    file_bytes = claimed_bytes();
    fclose(file);
}

static void write_data_file(const void *data, size_t bytes)
{
    FILE *file = fopen(data_path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

/* The next place of `pattern` in file_data at or behind `from`, or NULL. */
static uint8_t *find(struct bytes pattern, const uint8_t *from)
{
    const size_t offset = from == NULL ? 0 : (size_t)(from - file_data);

    return memmem(file_data + offset, file_bytes - offset, pattern.data,
                  pattern.size);
}

/* Flip a bit `offset` bytes behind every place of `pattern`: LMDB keeps older
 * copies of pages. */
static void flip_bit_behind(struct bytes pattern, size_t offset)
{
    uint8_t *place;

    close_index();
    read_data_file();
    place = find(pattern, NULL);
    assert_non_null(place);
    for (; place != NULL; place = find(pattern, place + offset + 1)) {
        place[offset] ^= 0x10;
    }
    write_data_file(file_data, file_bytes);
}

static void expect_refused(enum stele_status status, const char *message)
{
    assert_int_equal(try_open(), status);
    assert_string_equal(error.message, message);
}

/* ---- The directory of a test --------------------------------------------- */

static int make_directory(void **state)
{
    const char *parent = getenv("TMPDIR");

    (void)state;
    snprintf(directory, sizeof directory, "%s/stele_index_XXXXXX",
             parent == NULL ? "/tmp" : parent);
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    snprintf(index_path, sizeof index_path, "%s/index", directory);
    snprintf(data_path, sizeof data_path, "%s/data.mdb", index_path);
    memset(&error, 0, sizeof error);
    return 0;
}

static int make_index(void **state)
{
    if (make_directory(state) != 0) {
        return -1;
    }
    create();
    return try_open() == STELE_OK ? 0 : -1;
}

static int remove_all(void **state)
{
    char lock_path[320];

    (void)state;
    close_index();
    snprintf(lock_path, sizeof lock_path, "%s/lock.mdb", index_path);
    unlink(lock_path);
    unlink(data_path);
    rmdir(data_path);
    rmdir(index_path);
    return rmdir(directory);
}

/* ---- Create and open ----------------------------------------------------- */

static void a_new_index_has_its_identity_and_its_base_twice(void **state)
{
    const struct index_identity expected = identity();

    (void)state;
    assert_true(wal_uuid_equal(&index_identity(idx)->uuid, &expected.uuid));
    assert_int_equal(index_identity(idx)->generation, GENERATION);
    expect_positions(0, 0);
    assert_int_equal(entry_count(), 3);
}

static void the_identity_is_stored_as_the_golden_bytes(void **state)
{
    static const uint8_t golden[48] = {
        'S',  'T',  'E',  'L',  'E',  'I',  'D',  'X',  /* magic */
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* version, zero */
        0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, /* uuid */
        0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, /**/
        0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* generation */
        0xb7, 0x79, 0x9f, 0xe0, 0x10, 0xf8, 0xa5, 0x0f, /* checksum */
    };

    (void)state;
    close_index();
    read_data_file();
    assert_non_null(find(BYTES("identitySTELEIDX"), NULL));
    assert_non_null(find((struct bytes){golden, sizeof golden}, NULL));
}

static void the_files_are_the_owners_alone(void **state)
{
    struct stat found;

    (void)state;
    assert_int_equal(stat(data_path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
}

static void an_index_is_not_created_over_another(void **state)
{
    const struct index_options wanted = options();
    const struct index_identity made = identity();
    const struct wal_position base = at(9);

    (void)state;
    close_index();
    assert_int_equal(create_in(index_path, &wanted, &made, &base),
                     STELE_EXISTS);
    assert_int_equal(try_open(), STELE_OK);
    expect_positions(0, 0);
}

static void an_index_is_not_created_in_a_missing_directory(void **state)
{
    const struct index_options wanted = options();
    const struct index_identity made = identity();
    const struct wal_position base = at(0);

    (void)state;
    assert_int_equal(create_in(index_path, &wanted, &made, &base),
                     STELE_NOT_FOUND);
}

static void more_address_space_than_there_is_falls_back(void **state)
{
    struct index_options wanted = options();

    (void)state;
    close_index();
    wanted.map_bytes = UINT64_C(1) << 56;
    assert_int_equal(open_with(&wanted), STELE_OK);
    put_one(BYTES("t\0a"), 1, BYTES("1"));
}

/* A child that the host process starts must not inherit the index. */
static void every_descriptor_is_closed_on_exec(void **state)
{
    DIR *descriptors = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned found = 0;

    (void)state;
    put_one(BYTES("t\0a"), 1, BYTES("1"));
    assert_non_null(descriptors);
    while ((entry = readdir(descriptors)) != NULL) {
        const int fd = (int)strtol(entry->d_name, NULL, 10);
        char path[512] = {0};

        if (readlinkat(dirfd(descriptors), entry->d_name, path,
                       sizeof path - 1) > 0 &&
            strncmp(path, index_path, strlen(index_path)) == 0) {
            assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
            found++;
        }
    }
    closedir(descriptors);
    assert_true(found >= 2);
}

/* ---- What is refused at open --------------------------------------------- */

static void a_missing_file_is_not_found(void **state)
{
    (void)state;
    assert_int_equal(try_open(), STELE_NOT_FOUND);
    assert_int_equal(mkdir(index_path, 0700), 0);
    assert_int_equal(try_open(), STELE_NOT_FOUND);
}

static void a_directory_in_place_of_the_file_is_foreign(void **state)
{
    (void)state;
    assert_int_equal(mkdir(index_path, 0700), 0);
    assert_int_equal(mkdir(data_path, 0700), 0);
    assert_int_equal(try_open(), STELE_FOREIGN);
}

static void a_link_in_place_of_the_file_is_foreign(void **state)
{
    (void)state;
    assert_int_equal(mkdir(index_path, 0700), 0);
    assert_int_equal(symlink("/dev/zero", data_path), 0);
    assert_int_equal(try_open(), STELE_FOREIGN);
}

static void an_empty_file_is_corrupt(void **state)
{
    (void)state;
    close_index();
    write_data_file("", 0);
    expect_refused(
        STELE_CORRUPT,
        "index/data.mdb: the file has 0 bytes, fewer than two pages");
}

static void a_file_of_zeroes_is_foreign(void **state)
{
    (void)state;
    close_index();
    memset(file_data, 0, sizeof file_data);
    write_data_file(file_data, sizeof file_data);
    expect_refused(STELE_FOREIGN, "index/data.mdb: not an LMDB file");
}

static void garbage_is_foreign(void **state)
{
    uint64_t random = 1;

    (void)state;
    close_index();
    for (size_t index = 0; index < sizeof file_data; index++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        file_data[index] = (uint8_t)(random >> 56);
    }
    write_data_file(file_data, sizeof file_data);
    expect_refused(STELE_FOREIGN, "index/data.mdb: not an LMDB file");
}

/* LMDB would map it and die of SIGBUS. */
static void a_file_cut_anywhere_is_corrupt(void **state)
{
    size_t whole_bytes;

    (void)state;
    put_numbers(300);
    close_index();
    read_data_file();
    whole_bytes = file_bytes;
    for (size_t kept_bytes = 0; kept_bytes < whole_bytes;
         kept_bytes += 4096 - 1) {
        write_data_file(file_data, kept_bytes);
        assert_int_equal(try_open(), STELE_CORRUPT);
    }
    write_data_file(file_data, whole_bytes);
    assert_int_equal(try_open(), STELE_OK);
}

static void one_damaged_meta_page_of_two_is_corrupt(void **state)
{
    (void)state;
    close_index();
    for (size_t page = 0; page < 2; page++) {
        char message[64];

        read_data_file();
        file_data[page * 4096 + 16] ^= 1;
        write_data_file(file_data, file_bytes);
        snprintf(message, sizeof message,
                 "index/data.mdb: meta page %zu is damaged", page);
        expect_refused(STELE_CORRUPT, message);
        file_data[page * 4096 + 16] ^= 1;
        write_data_file(file_data, file_bytes);
    }
    assert_int_equal(try_open(), STELE_OK);
}

static void another_version_of_lmdb_is_foreign(void **state)
{
    (void)state;
    close_index();
    read_data_file();
    file_data[20] = 2;
    file_data[4096 + 20] = 2;
    write_data_file(file_data, file_bytes);
    expect_refused(STELE_FOREIGN,
                   "index/data.mdb: LMDB format version 2, not 1");
}

/* No bit of the meta pages' fields that we look at can kill the process. */
static void no_bit_flip_in_a_meta_page_crashes_the_open(void **state)
{
    static const size_t fields[][2] = {
        {10, 12}, {16, 24}, {40, 44}, {80, 88}, {128, 144},
    };

    (void)state;
    put_numbers(300);
    close_index();
    read_data_file();
    for (size_t page = 0; page < 2; page++) {
        for (size_t field = 0; field < 5; field++) {
            /* The low bits of roots may lead to another page of the tree. */
            const size_t first_bit =
                fields[field][0] * 8 + (fields[field][0] >= 80 ? 8 : 0);

            for (size_t bit = first_bit; bit < fields[field][1] * 8; bit++) {
                uint8_t *place = file_data + page * 4096 + bit / 8;
                enum stele_status status;

                *place ^= (uint8_t)(1u << (bit % 8));
                write_data_file(file_data, file_bytes);
                status = try_open();
                assert_true(status == STELE_OK || status == STELE_CORRUPT ||
                            status == STELE_FOREIGN);
                close_index();
                *place ^= (uint8_t)(1u << (bit % 8));
            }
        }
    }
}

static void a_damaged_identity_is_corrupt(void **state)
{
    (void)state;
    flip_bit_behind(BYTES("STELEIDX"), 30);
    expect_refused(STELE_CORRUPT,
                   "index/data.mdb: identity: checksum mismatch");
}

static void an_index_without_identity_is_corrupt(void **state)
{
    (void)state;
    flip_bit_behind(BYTES("identitySTELEIDX"), 7);
    expect_refused(STELE_CORRUPT, "index/data.mdb: identity is missing");
}

/* Rewrite a byte of the identity as a Stele that meant it would have. */
static void rewrite_identity(size_t offset, uint8_t byte)
{
    uint8_t *place;

    close_index();
    read_data_file();
    for (place = find(BYTES("STELEIDX"), NULL); place != NULL;
         place = find(BYTES("STELEIDX"), place + 1)) {
        place[offset] = byte;
        put_u64le(place + 40, checksum64(place, 40, 0));
    }
    write_data_file(file_data, file_bytes);
}

static void a_newer_format_is_foreign(void **state)
{
    (void)state;
    rewrite_identity(8, 2);
    expect_refused(STELE_FOREIGN,
                   "index/data.mdb: index format version 2 is newer than 1");
}

static void another_magic_is_foreign(void **state)
{
    (void)state;
    rewrite_identity(0, 'X');
    expect_refused(STELE_FOREIGN, "index/data.mdb: not an index of Stele");
}

static void a_damaged_position_is_corrupt_when_a_reader_begins(void **state)
{
    struct index_reader *reader;

    (void)state;
    flip_bit_behind(BYTES("applying"), 30);
    assert_int_equal(try_open(), STELE_OK);
    assert_int_equal(index_reader_acquire(idx, &reader, &error), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "index/data.mdb: applying: checksum mismatch");
}

/* ---- Read-only ----------------------------------------------------------- */

static void a_read_only_index_reads_and_does_not_write(void **state)
{
    struct index_options wanted = options();
    struct index_writer *writer;

    (void)state;
    put_one(BYTES("t\0a"), 1, BYTES("1"));
    close_index();
    wanted.read_only = true;
    assert_int_equal(open_with(&wanted), STELE_OK);
    assert_int_equal(get_one(BYTES("t\0a")), STELE_OK);
    assert_int_equal(index_writer_begin(idx, &writer, &error), STELE_READ_ONLY);
}

static void without_lock_no_lock_file_is_made(void **state)
{
    struct index_options wanted = options();
    char lock_path[320];

    (void)state;
    put_one(BYTES("t\0a"), 1, BYTES("1"));
    close_index();
    snprintf(lock_path, sizeof lock_path, "%s/lock.mdb", index_path);
    assert_int_equal(unlink(lock_path), 0);
    wanted.read_only = true;
    wanted.no_lock = true;
    assert_int_equal(open_with(&wanted), STELE_OK);
    assert_int_equal(get_one(BYTES("t\0a")), STELE_OK);
    assert_int_equal(access(lock_path, F_OK), -1);
}

/* ---- Get, put, delete, positions ----------------------------------------- */

static void what_was_put_is_got(void **state)
{
    struct index_writer *writer = begin();
    struct index_reader *reader;

    (void)state;
    put(writer, BYTES("t\0b"), 2, BYTES("two"));
    put(writer, BYTES("t\0a"), 1, BYTES("one"));
    put(writer, BYTES("t\0a"), 3, BYTES("again"));
    put(writer, BYTES("t\0"), 3, BYTES("sixteen bytes ok"));
    put(writer, BYTES("t\0empty"), 3, (struct bytes){NULL, 0});
    commit(writer, 3);
    close_index();
    assert_int_equal(try_open(), STELE_OK);
    reader = acquire();
    expect_entry(reader, BYTES("t\0a"), 3, BYTES("again"));
    expect_entry(reader, BYTES("t\0b"), 2, BYTES("two"));
    expect_entry(reader, BYTES("t\0"), 3, BYTES("sixteen bytes ok"));
    expect_entry(reader, BYTES("t\0empty"), 3, (struct bytes){NULL, 0});
    index_reader_release(reader);
    assert_int_equal(entry_count(), 3 + 4);
}

static void a_value_of_a_mebibyte_and_a_key_of_511_bytes_are_kept(void **state)
{
    enum { VALUE_BYTES = 1 << 20 };
    uint8_t *value = malloc(VALUE_BYTES);
    char key_data[BASE_KEY_BYTES_MAX];
    const struct bytes key = {key_data, sizeof key_data};
    struct index_reader *reader;

    (void)state;
    assert_non_null(value);
    memset(value, 0x5a, VALUE_BYTES);
    memset(key_data, 'k', sizeof key_data);
    key_data[1] = 0;
    put_one(key, 1, (struct bytes){value, VALUE_BYTES});
    reader = acquire();
    expect_entry(reader, key, 1, (struct bytes){value, VALUE_BYTES});
    index_reader_release(reader);
    free(value);
}

/* A checkpoint copies the check; were it recomputed, rot would be signed. */
static void the_check_is_stored_as_given(void **state)
{
    const struct base_value rotten = {
        .lsn = 1, .check = 0xdeadbeef, .value = BYTES("rotten")};
    struct index_writer *writer = begin();

    (void)state;
    assert_int_equal(index_writer_put(writer, BYTES("t\0a"), &rotten, &error),
                     STELE_OK);
    commit(writer, 1);
    assert_int_equal(get_one(BYTES("t\0a")), STELE_CORRUPT);
}

static void what_is_not_there_is_not_found(void **state)
{
    struct index_writer *writer = begin();
    struct base_value ignored;

    (void)state;
    assert_int_equal(get_one(BYTES("t\0a")), STELE_NOT_FOUND);
    assert_int_equal(index_writer_get(writer, BYTES("t\0a"), &ignored, &error),
                     STELE_NOT_FOUND);
    index_writer_abort(writer);
}

static void a_writer_sees_what_it_did(void **state)
{
    struct index_writer *writer = begin();
    struct base_value value;

    (void)state;
    put(writer, BYTES("t\0a"), 1, BYTES("one"));
    assert_int_equal(index_writer_get(writer, BYTES("t\0a"), &value, &error),
                     STELE_OK);
    assert_int_equal(value.lsn, 1);
    assert_memory_equal(value.value.data, "one", 3);
    assert_int_equal(index_writer_delete(writer, BYTES("t\0a"), &error),
                     STELE_OK);
    assert_int_equal(index_writer_get(writer, BYTES("t\0a"), &value, &error),
                     STELE_NOT_FOUND);
    index_writer_abort(writer);
}

static void deleting_what_is_not_there_is_ok(void **state)
{
    struct index_writer *writer = begin();

    (void)state;
    assert_int_equal(index_writer_delete(writer, BYTES("t\0a"), &error),
                     STELE_OK);
    commit(writer, 1);
    assert_int_equal(entry_count(), 3);
}

static void reserved_empty_and_too_long_keys_are_invalid(void **state)
{
    static const char long_key[BASE_KEY_BYTES_MAX + 1] = "t";
    const struct bytes keys[] = {
        BYTES("\0applied"),
        BYTES("\0"),
        {NULL, 0},
        {long_key, sizeof long_key},
    };
    struct index_writer *writer = begin();
    struct base_value ignored;

    (void)state;
    for (size_t index = 0; index < 4; index++) {
        assert_int_equal(get_one(keys[index]), STELE_INVALID);
        assert_int_equal(
            index_writer_get(writer, keys[index], &ignored, &error),
            STELE_INVALID);
        assert_int_equal(try_put(writer, keys[index], 1, BYTES("x")),
                         STELE_INVALID);
        assert_int_equal(index_writer_delete(writer, keys[index], &error),
                         STELE_INVALID);
    }
    commit(writer, 1);
    expect_positions(1, 1);
}

static void the_positions_travel_with_the_data(void **state)
{
    const struct wal_position applied = at(5);
    const struct wal_position applying = at(9);
    struct index_reader *before = acquire();
    struct index_writer *writer = begin();

    (void)state;
    put(writer, BYTES("t\0a"), 9, BYTES("1"));
    assert_int_equal(index_writer_commit(writer, &applied, &applying, &error),
                     STELE_OK);
    /* The reader from before keeps both as they were. */
    assert_int_equal(index_reader_applied(before)->lsn, 0);
    assert_int_equal(index_reader_applying(before)->lsn, 0);
    assert_int_equal(get(before, BYTES("t\0a"), &(struct base_value){0}),
                     STELE_NOT_FOUND);
    index_reader_release(before);
    /* The pooled transaction, renewed, sees both. */
    expect_positions(5, 9);
    assert_int_equal(get_one(BYTES("t\0a")), STELE_OK);
    close_index();
    assert_int_equal(try_open(), STELE_OK);
    expect_positions(5, 9);
}

static void an_abort_leaves_data_and_positions_as_before(void **state)
{
    struct index_writer *writer;

    (void)state;
    put_one(BYTES("t\0a"), 1, BYTES("1"));
    writer = begin();
    put(writer, BYTES("t\0a"), 2, BYTES("2"));
    put(writer, BYTES("t\0b"), 2, BYTES("2"));
    index_writer_abort(writer);
    index_writer_abort(NULL);
    expect_positions(1, 1);
    assert_int_equal(get_one(BYTES("t\0a")), STELE_OK);
    assert_int_equal(get_one(BYTES("t\0b")), STELE_NOT_FOUND);
}

/* ---- Rot inside values --------------------------------------------------- */

static void a_flipped_bit_in_a_value_is_corrupt_naming_table_and_key(
    void **state)
{
    struct index_writer *writer;
    struct base_value ignored;

    (void)state;
    put_one(BYTES("topics\0k\"\x7fy"), 1, BYTES("precious bytes"));
    flip_bit_behind(BYTES("precious bytes"), 5);
    assert_int_equal(try_open(), STELE_OK);
    assert_int_equal(get_one(BYTES("topics\0k\"\x7fy")), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "index: table \"topics\", key 6b227f79: check "
                        "mismatch");
    writer = begin();
    assert_int_equal(
        index_writer_get(writer, BYTES("topics\0k\"\x7fy"), &ignored, &error),
        STELE_CORRUPT);
    index_writer_abort(writer);
}

static void a_flipped_bit_in_a_table_row_is_corrupt_naming_the_table(
    void **state)
{
    (void)state;
    put_one(BYTES("topics\0"), 1, BYTES("count-and-sum-16"));
    flip_bit_behind(BYTES("count-and-sum-16"), 0);
    assert_int_equal(try_open(), STELE_OK);
    assert_int_equal(get_one(BYTES("topics\0")), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "index: row of table \"topics\": check mismatch");
}

static void a_value_shorter_than_its_header_is_corrupt(void **state)
{
    enum { NODE_HEADER_BYTES = 8 };
    const struct bytes key = BYTES("topics\0cut");
    uint8_t *place;

    (void)state;
    put_one(key, 1, BYTES("value"));
    close_index();
    read_data_file();
    for (place = find(key, NULL); place != NULL; place = find(key, place + 1)) {
        put_u16le(place - NODE_HEADER_BYTES, 11); /* Its data's length. */
    }
    write_data_file(file_data, file_bytes);
    assert_int_equal(try_open(), STELE_OK);
    assert_int_equal(get_one(key), STELE_CORRUPT);
    assert_string_equal(error.message,
                        "index: table \"topics\", key \"cut\": shorter than "
                        "its header");
}

static void a_long_key_is_cut_in_messages(void **state)
{
    char key_data[BASE_KEY_BYTES_MAX];
    const struct bytes key = {key_data, sizeof key_data};
    const struct base_value rotten = {.lsn = 1, .check = 1};
    struct index_writer *writer = begin();

    (void)state;
    memset(key_data, 0xff, sizeof key_data);
    memcpy(key_data, "t", 2);
    assert_int_equal(index_writer_put(writer, key, &rotten, &error), STELE_OK);
    commit(writer, 1);
    assert_int_equal(get_one(key), STELE_CORRUPT);
    assert_string_equal(
        error.message,
        "index: table \"t\", key ffffffffffffffffffffffffffffffffffffffffffff"
        "ffffffffffffffffffff...: check mismatch");
}

/* ---- No space, failed commits -------------------------------------------- */

static void expect_writable(void)
{
    put_one(BYTES("t\0after"), 99, BYTES("1"));
    expect_positions(99, 99);
}

static void a_full_map_is_no_space_and_the_index_goes_on(void **state)
{
    static const uint8_t value[4000];
    const struct wal_position position = at(5);
    struct index_options wanted = options();
    struct index_writer *writer;
    enum stele_status status = STELE_OK;

    (void)state;
    close_index();
    wanted.map_bytes = 512 * 1024;
    assert_int_equal(open_with(&wanted), STELE_OK);
    for (unsigned ending = 0; ending < 2; ending++) {
        writer = begin();
        for (unsigned n = 0; status == STELE_OK; n++) {
            struct numbered_key key;

            status = try_put(writer, number(&key, n), 5,
                             (struct bytes){value, sizeof value});
        }
        assert_int_equal(status, STELE_NO_SPACE);
        /* From here on the transaction says nothing else. */
        status = try_put(writer, BYTES("t\0a"), 5, BYTES("1"));
        assert_int_equal(status, STELE_NO_SPACE);
        if (ending == 0) {
            index_writer_abort(writer);
        } else {
            assert_int_equal(
                index_writer_commit(writer, &position, &position, &error),
                STELE_NO_SPACE);
        }
        status = STELE_OK;
        expect_positions(0, 0);
        assert_int_equal(entry_count(), 3);
    }
    expect_writable();
}

/* Let no file grow beyond `bytes`. */
static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct index_writer *begin_with_big_value(void)
{
    static const uint8_t value[100000];
    struct index_writer *writer = begin();

    put(writer, BYTES("t\0big"), 5, (struct bytes){value, sizeof value});
    return writer;
}

/* How a write ends on a disk that fills up meanwhile. */
static void a_short_write_at_commit_is_no_space_and_the_index_goes_on(
    void **state)
{
    const struct wal_position position = at(5);
    struct index_writer *writer = begin_with_big_value();
    enum stele_status status;

    (void)state;
    limit_file_size(50000);
    status = index_writer_commit(writer, &position, &position, &error);
    limit_file_size(RLIM_INFINITY);
    assert_int_equal(status, STELE_NO_SPACE);
    expect_positions(0, 0);
    assert_int_equal(entry_count(), 3);
    expect_writable();
}

static void another_failure_at_commit_is_io_and_ends_writing(void **state)
{
    const struct wal_position position = at(5);
    struct index_writer *writer;
    enum stele_status status;

    (void)state;
    put_one(BYTES("t\0a"), 1, BYTES("1"));
    writer = begin_with_big_value();
    limit_file_size(4096); /* EFBIG. */
    status = index_writer_commit(writer, &position, &position, &error);
    limit_file_size(RLIM_INFINITY);
    assert_int_equal(status, STELE_IO);
    assert_int_equal(error.sys_errno, EFBIG);
    assert_int_equal(index_writer_begin(idx, &writer, &error), STELE_IO);
    assert_string_equal(
        error.message,
        "index/data.mdb: an earlier commit failed; not written again");
    /* Reading goes on, and the file is as the commit before left it. */
    expect_positions(1, 1);
    assert_int_equal(get_one(BYTES("t\0a")), STELE_OK);
    close_index();
    assert_int_equal(try_open(), STELE_OK);
    expect_positions(1, 1);
}

/* ---- Readers ------------------------------------------------------------- */

static void readers_max_readers_are_given_then_busy(void **state)
{
    struct index_reader *readers[READERS_MAX];
    struct index_reader *one_more;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (size_t index = 0; index < READERS_MAX; index++) {
            readers[index] = acquire();
        }
        assert_int_equal(index_reader_acquire(idx, &one_more, &error),
                         STELE_BUSY);
        assert_string_equal(error.message,
                            "index/data.mdb: all 4 readers are in use");
        index_reader_release(readers[0]);
        readers[0] = acquire();
        for (size_t index = 0; index < READERS_MAX; index++) {
            index_reader_release(readers[index]);
        }
    }
    index_reader_release(NULL);
}

/* Another process takes what reader slots there are, and dies. */
static void take_all_slots_and_die(void)
{
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct index *own;
        struct index_reader *reader;
        const struct index_options wanted = options();

        if (open_in(index_path, &wanted, &own) != STELE_OK) {
            _exit(1);
        }
        while (index_reader_acquire(own, &reader, NULL) == STELE_OK) {
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_reader_slots_of_the_dead_are_cleared(void **state)
{
    struct index_reader *reader;

    (void)state;
    take_all_slots_and_die();
    assert_int_equal(index_reader_acquire(idx, &reader, &error), STELE_BUSY);
    assert_int_equal(index_reader_check(idx, &error), STELE_OK);
    index_reader_release(acquire());
}

/* Every value of a transaction has the LSN of its position: a reader that sees
 * two different ones sees half a transaction. */
enum { PARALLEL_KEYS = 50, PARALLEL_COMMITS = 60, PARALLEL_READERS = 3 };

static void *read_until_last_commit(void *context)
{
    uint64_t lsn = 0;

    (void)context;
    while (lsn < PARALLEL_COMMITS) {
        struct index_reader *reader;

        if (index_reader_acquire(idx, &reader, NULL) != STELE_OK) {
            return (void *)(uintptr_t) "acquire";
        }
        lsn = index_reader_applied(reader)->lsn;
        for (unsigned n = 0; lsn > 0 && n < PARALLEL_KEYS; n++) {
            struct numbered_key key;
            struct base_value value;

            if (index_reader_get(reader, number(&key, n), &value, NULL) !=
                    STELE_OK ||
                value.lsn != lsn) {
                return (void *)(uintptr_t) "get";
            }
        }
        index_reader_release(reader);
    }
    return NULL;
}

static void readers_in_threads_see_whole_transactions_of_a_writer(void **state)
{
    pthread_t threads[PARALLEL_READERS];

    (void)state;
    for (size_t index = 0; index < PARALLEL_READERS; index++) {
        assert_int_equal(
            pthread_create(&threads[index], NULL, read_until_last_commit, NULL),
            0);
    }
    for (uint64_t lsn = 1; lsn <= PARALLEL_COMMITS; lsn++) {
        struct index_writer *writer = begin();

        for (unsigned n = 0; n < PARALLEL_KEYS; n++) {
            struct numbered_key key;

            put(writer, number(&key, n), lsn, BYTES("value"));
        }
        commit(writer, lsn);
    }
    for (size_t index = 0; index < PARALLEL_READERS; index++) {
        void *failed;

        assert_int_equal(pthread_join(threads[index], &failed), 0);
        assert_null(failed);
    }
}

/* ---- Cursors ------------------------------------------------------------- */

static struct index_cursor *open_cursor(struct index_reader *reader)
{
    struct index_cursor *cursor;

    assert_int_equal(index_cursor_open(reader, &cursor, &error), STELE_OK);
    return cursor;
}

static void expect_key(const struct base_entry *entry, struct bytes key)
{
    assert_int_equal(bytes_compare(entry->key, key), 0);
}

static void a_cursor_walks_both_ways_in_key_order(void **state)
{
    struct index_writer *writer = begin();
    struct index_reader *reader;
    struct index_cursor *cursor;
    struct base_entry entry;
    struct base_value value;

    (void)state;
    put(writer, BYTES("t\0b"), 1, BYTES("b"));
    put(writer, BYTES("t\0"), 1, BYTES("row"));
    put(writer, BYTES("t\0d"), 1, BYTES("d"));
    commit(writer, 1);
    reader = acquire();
    cursor = open_cursor(reader);
    assert_int_equal(index_cursor_seek(cursor, BYTES("t\0a"), &entry, &error),
                     STELE_OK);
    expect_key(&entry, BYTES("t\0b"));
    assert_true(base_value_decode(entry.stored, &value));
    assert_true(base_value_verify(entry.key, &value));
    assert_int_equal(index_cursor_next(cursor, &entry, &error), STELE_OK);
    expect_key(&entry, BYTES("t\0d"));
    assert_int_equal(index_cursor_prev(cursor, &entry, &error), STELE_OK);
    expect_key(&entry, BYTES("t\0b"));
    assert_int_equal(index_cursor_prev(cursor, &entry, &error), STELE_OK);
    expect_key(&entry, BYTES("t\0"));
    assert_int_equal(
        index_cursor_seek_before(cursor, BYTES("t\0d"), &entry, &error),
        STELE_OK);
    expect_key(&entry, BYTES("t\0b"));
    assert_int_equal(
        index_cursor_seek_before(cursor, BYTES("u"), &entry, &error), STELE_OK);
    expect_key(&entry, BYTES("t\0d"));
    index_cursor_close(cursor);
    index_cursor_close(NULL);
    index_reader_release(reader);
}

static void a_cursor_never_shows_the_reserved_keys(void **state)
{
    const struct bytes low_keys[] = {
        {NULL, 0}, BYTES("\0"), BYTES("\0applied"), BYTES("\0zzz"), BYTES("A"),
    };
    struct index_reader *reader;
    struct index_cursor *cursor;
    struct base_entry entry;

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        reader = acquire();
        cursor = open_cursor(reader);
        for (size_t index = 0; index < 5; index++) {
            assert_int_equal(index_cursor_seek_before(cursor, low_keys[index],
                                                      &entry, &error),
                             STELE_NOT_FOUND);
            if (round == 0) { /* Empty but for them. */
                assert_int_equal(
                    index_cursor_seek(cursor, low_keys[index], &entry, &error),
                    STELE_NOT_FOUND);
                continue;
            }
            assert_int_equal(
                index_cursor_seek(cursor, low_keys[index], &entry, &error),
                STELE_OK);
            expect_key(&entry, BYTES("t\0a"));
            assert_int_equal(index_cursor_prev(cursor, &entry, &error),
                             STELE_NOT_FOUND);
        }
        index_cursor_close(cursor);
        index_reader_release(reader);
        put_one(BYTES("t\0a"), 1, BYTES("1"));
    }
}

/* What it reads ahead does not show, wherever it turns. */
static void a_cursor_may_turn_anywhere(void **state)
{
    enum { ENTRIES = 300, STEPS = 20000 };
    struct index_reader *reader;
    struct index_cursor *cursor;
    struct base_entry entry;
    uint32_t random = 1;
    unsigned place = 0;

    (void)state;
    put_numbers(ENTRIES);
    reader = acquire();
    cursor = open_cursor(reader);
    assert_int_equal(index_cursor_seek(cursor, BYTES(""), &entry, &error),
                     STELE_OK);
    for (unsigned step = 0; step < STEPS; step++) {
        /* Runs of up to 30 steps in one direction. */
        const unsigned run = 1 + (random >> 8) % 30;
        const bool forward = (random >> 16) % 2 == 0;

        random = random * 1664525u + 1013904223u;
        for (unsigned i = 0; i < run; i++) {
            if (forward ? place == ENTRIES - 1 : place == 0) {
                break;
            }
            assert_int_equal(forward
                                 ? index_cursor_next(cursor, &entry, &error)
                                 : index_cursor_prev(cursor, &entry, &error),
                             STELE_OK);
            place = forward ? place + 1 : place - 1;
            assert_int_equal(number_in(entry.key), place);
        }
    }
    index_cursor_close(cursor);
    index_reader_release(reader);
}

static void after_not_found_a_cursor_must_seek_again(void **state)
{
    struct index_reader *reader;
    struct index_cursor *cursor;
    struct base_entry entry;

    (void)state;
    put_one(BYTES("t\0a"), 1, BYTES("1"));
    reader = acquire();
    cursor = open_cursor(reader);
    assert_int_equal(index_cursor_next(cursor, &entry, &error), STELE_INVALID);
    assert_int_equal(index_cursor_seek(cursor, BYTES("t\0a"), &entry, &error),
                     STELE_OK);
    assert_int_equal(index_cursor_next(cursor, &entry, &error),
                     STELE_NOT_FOUND);
    assert_int_equal(index_cursor_prev(cursor, &entry, &error), STELE_INVALID);
    assert_int_equal(index_cursor_seek(cursor, BYTES("t\0a"), &entry, &error),
                     STELE_OK);
    index_cursor_close(cursor);
    index_reader_release(reader);
}

static void a_hundred_thousand_entries_are_kept_in_order(void **state)
{
    enum { ENTRIES = 100000 };
    struct index_reader *reader;
    struct index_cursor *cursor;
    struct base_entry entry;
    enum stele_status status;
    unsigned seen = 0;

    (void)state;
    put_numbers(ENTRIES);
    assert_int_equal(entry_count(), 3 + ENTRIES);
    reader = acquire();
    cursor = open_cursor(reader);
    status = index_cursor_seek(cursor, BYTES(""), &entry, &error);
    while (status == STELE_OK) {
        struct base_value value;

        assert_int_equal(number_in(entry.key), seen);
        assert_true(base_value_decode(entry.stored, &value));
        assert_true(base_value_verify(entry.key, &value));
        seen++;
        status = index_cursor_next(cursor, &entry, &error);
    }
    assert_int_equal(status, STELE_NOT_FOUND);
    assert_int_equal(seen, ENTRIES);
    index_cursor_close(cursor);
    index_reader_release(reader);
}

/* ---- Sweep --------------------------------------------------------------- */

struct visits {
    uint64_t count;
    unsigned last_number;
    unsigned delete_every; /* Delete numbers divisible by it; 0: none. */
};

static void visit(void *context, struct bytes key,
                  const struct base_value *value, bool *delete_out)
{
    struct visits *visits = context;
    const unsigned n = number_in(key);

    assert_true(visits->count == 0 || n > visits->last_number);
    assert_true(base_value_verify(key, value));
    visits->count++;
    visits->last_number = n;
    *delete_out = visits->delete_every != 0 && n % visits->delete_every == 0;
}

/* A whole sweep in steps of `visits_max`; how many steps. */
static unsigned sweep(struct index_writer *writer, struct bytes first,
                      struct bytes end, uint64_t visits_max,
                      struct visits *visits)
{
    uint8_t next_key[BASE_KEY_BYTES_MAX];
    size_t next_key_bytes;
    bool more = true;
    unsigned steps = 0;

    while (more) {
        const uint64_t before = visits->count;

        assert_int_equal(index_writer_sweep(writer, first, end, visits_max,
                                            visit, visits, &more, next_key,
                                            &next_key_bytes, &error),
                         STELE_OK);
        assert_true(visits->count - before <= visits_max);
        assert_true(!more || visits->count - before == visits_max);
        first = (struct bytes){next_key, next_key_bytes};
        steps++;
    }
    return steps;
}

static void a_sweep_visits_the_range_and_deletes_what_it_is_told(void **state)
{
    struct numbered_key first;
    struct numbered_key end;
    struct visits visits = {.delete_every = 3};
    struct index_writer *writer;

    (void)state;
    put_numbers(1000);
    writer = begin();
    assert_int_equal(sweep(writer, number(&first, 100), number(&end, 900),
                           UINT64_MAX, &visits),
                     1);
    assert_int_equal(visits.count, 800);
    assert_int_equal(visits.last_number, 899);
    commit(writer, 1001);
    for (unsigned n = 0; n < 1000; n++) {
        struct numbered_key key;
        const bool deleted = n >= 100 && n < 900 && n % 3 == 0;

        assert_int_equal(get_one(number(&key, n)),
                         deleted ? STELE_NOT_FOUND : STELE_OK);
    }
}

static void a_sweep_with_a_limit_goes_on_at_next_key(void **state)
{
    struct visits visits = {.delete_every = 1};
    struct index_writer *writer;

    (void)state;
    put_numbers(1000);
    writer = begin();
    /* Exactly at the end of the range there is no more. */
    assert_int_equal(sweep(writer, BYTES("t\0"), END_OF_TABLE, 250, &visits),
                     4);
    assert_int_equal(visits.count, 1000);
    commit(writer, 1001);
    assert_int_equal(entry_count(), 3);
}

static void a_sweep_of_nothing_visits_nothing(void **state)
{
    struct visits visits = {.delete_every = 1};
    struct index_writer *writer;

    (void)state;
    put_numbers(10);
    writer = begin();
    assert_int_equal(sweep(writer, BYTES("u"), BYTES("v"), 10, &visits), 1);
    assert_int_equal(sweep(writer, END_OF_TABLE, BYTES("t"), 10, &visits), 1);
    /* The reserved keys are below every range. */
    assert_int_equal(sweep(writer, BYTES(""), BYTES("\x01"), 10, &visits), 1);
    assert_int_equal(visits.count, 0);
    index_writer_abort(writer);
}

static void a_sweep_stops_at_a_damaged_entry(void **state)
{
    struct visits visits = {0};
    struct index_writer *writer;
    uint8_t next_key[BASE_KEY_BYTES_MAX];
    size_t next_key_bytes;
    bool more;

    (void)state;
    put_numbers(3);
    flip_bit_behind(BYTES("t\0"
                          "000001"),
                    8 + BASE_VALUE_HEADER_BYTES);
    assert_int_equal(try_open(), STELE_OK);
    writer = begin();
    assert_int_equal(index_writer_sweep(writer, BYTES("t\0"), END_OF_TABLE, 9,
                                        visit, &visits, &more, next_key,
                                        &next_key_bytes, &error),
                     STELE_CORRUPT);
    assert_string_equal(error.message,
                        "index: table \"t\", key \"000001\": check mismatch");
    assert_int_equal(visits.count, 1);
    index_writer_abort(writer);
}

static void a_hundred_thousand_entries_are_swept_in_one_go(void **state)
{
    struct visits visits = {.delete_every = 1};
    struct index_writer *writer;

    (void)state;
    put_numbers(100000);
    writer = begin();
    assert_int_equal(
        sweep(writer, BYTES("t\0"), END_OF_TABLE, UINT64_MAX, &visits), 1);
    assert_int_equal(visits.count, 100000);
    commit(writer, 100001);
    assert_int_equal(entry_count(), 3);
}

/* ---- Against a model ----------------------------------------------------- */

enum { MODEL_KEYS = 400, MODEL_VALUE_BYTES_MAX = 6000 };

static struct {
    uint64_t lsn; /* 0: absent. */
    size_t value_bytes;
} model[MODEL_KEYS];
static uint8_t model_value[MODEL_VALUE_BYTES_MAX];
static uint64_t model_random;

static unsigned random_below(unsigned bound)
{
    model_random ^= model_random << 13;
    model_random ^= model_random >> 7;
    model_random ^= model_random << 17;
    return (unsigned)((model_random >> 11) % bound);
}

static void model_visit(void *context, struct bytes key,
                        const struct base_value *value, bool *delete_out)
{
    const unsigned n = number_in(key);

    (void)context;
    assert_int_equal(value->lsn, model[n].lsn);
    *delete_out = random_below(3) > 0;
    if (*delete_out) {
        model[n].lsn = 0;
    }
}

static void model_step(struct index_writer *writer, uint64_t lsn)
{
    const unsigned n = random_below(MODEL_KEYS);
    struct numbered_key key;
    struct numbered_key end;
    struct base_value value;
    uint8_t next_key[BASE_KEY_BYTES_MAX];
    size_t next_key_bytes;
    bool more;

    number(&key, n);
    switch (random_below(8)) {
    case 0:
        assert_int_equal(index_writer_sweep(writer, key.bytes,
                                            number(&end, n + random_below(30)),
                                            random_below(20), model_visit, NULL,
                                            &more, next_key, &next_key_bytes,
                                            &error),
                         STELE_OK);
        return;
    case 1:
        assert_int_equal(index_writer_delete(writer, key.bytes, &error),
                         STELE_OK);
        model[n].lsn = 0;
        return;
    case 2:
    case 3:
        assert_int_equal(index_writer_get(writer, key.bytes, &value, &error),
                         model[n].lsn == 0 ? STELE_NOT_FOUND : STELE_OK);
        return;
    default:
        model[n].lsn = lsn;
        model[n].value_bytes = random_below(20) == 0
                                   ? random_below(MODEL_VALUE_BYTES_MAX)
                                   : random_below(200);
        put(writer, key.bytes, lsn,
            (struct bytes){model_value, model[n].value_bytes});
    }
}

static unsigned model_next(unsigned n)
{
    while (n < MODEL_KEYS && model[n].lsn == 0) {
        n++;
    }
    return n;
}

static void model_compare(void)
{
    struct index_reader *reader = acquire();
    struct index_cursor *cursor = open_cursor(reader);
    struct base_entry entry;
    struct numbered_key key;
    enum stele_status status;
    unsigned n = model_next(0);

    status = index_cursor_seek(cursor, BYTES("t\0"), &entry, &error);
    for (; status == STELE_OK; n = model_next(n + 1)) {
        assert_int_equal(number_in(entry.key), n);
        expect_entry(reader, entry.key, model[n].lsn,
                     (struct bytes){model_value, model[n].value_bytes});
        status = index_cursor_next(cursor, &entry, &error);
    }
    assert_int_equal(n, MODEL_KEYS);
    for (unsigned seeks = 0; seeks < 100; seeks++) {
        const unsigned wanted = random_below(MODEL_KEYS);
        const unsigned found = model_next(wanted);

        number(&key, wanted);
        status = index_cursor_seek(cursor, key.bytes, &entry, &error);
        assert_int_equal(status,
                         found < MODEL_KEYS ? STELE_OK : STELE_NOT_FOUND);
        assert_true(status != STELE_OK || number_in(entry.key) == found);
        status = index_cursor_seek_before(cursor, key.bytes, &entry, &error);
        for (n = wanted; n > 0 && model[n - 1].lsn == 0; n--) {
        }
        assert_int_equal(status, n > 0 ? STELE_OK : STELE_NOT_FOUND);
        assert_true(status != STELE_OK || number_in(entry.key) == n - 1);
    }
    index_cursor_close(cursor);
    index_reader_release(reader);
}

static void random_transactions_agree_with_a_model(void **state)
{
    const char *seed = getenv("STELE_TEST_SEED");

    (void)state;
    model_random = seed == NULL ? 20240229 : strtoull(seed, NULL, 10);
    print_message("STELE_TEST_SEED=%" PRIu64 "\n", model_random);
    for (size_t index = 0; index < sizeof model_value; index++) {
        model_value[index] = (uint8_t)index;
    }
    memset(model, 0, sizeof model);
    for (uint64_t lsn = 1; lsn <= 60; lsn++) {
        struct index_writer *writer = begin();
        const unsigned steps = random_below(300);

        for (unsigned step = 0; step < steps; step++) {
            model_step(writer, lsn);
        }
        commit(writer, lsn);
        model_compare();
    }
}

#define TEST_WITH_INDEX(test)                                                  \
    cmocka_unit_test_setup_teardown(test, make_index, remove_all)
#define TEST_WITHOUT_INDEX(test)                                               \
    cmocka_unit_test_setup_teardown(test, make_directory, remove_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_WITH_INDEX(a_new_index_has_its_identity_and_its_base_twice),
        TEST_WITH_INDEX(the_identity_is_stored_as_the_golden_bytes),
        TEST_WITH_INDEX(the_files_are_the_owners_alone),
        TEST_WITH_INDEX(an_index_is_not_created_over_another),
        TEST_WITHOUT_INDEX(an_index_is_not_created_in_a_missing_directory),
        TEST_WITH_INDEX(more_address_space_than_there_is_falls_back),
        TEST_WITH_INDEX(every_descriptor_is_closed_on_exec),
        TEST_WITHOUT_INDEX(a_missing_file_is_not_found),
        TEST_WITHOUT_INDEX(a_directory_in_place_of_the_file_is_foreign),
        TEST_WITHOUT_INDEX(a_link_in_place_of_the_file_is_foreign),
        TEST_WITH_INDEX(an_empty_file_is_corrupt),
        TEST_WITH_INDEX(a_file_of_zeroes_is_foreign),
        TEST_WITH_INDEX(garbage_is_foreign),
        TEST_WITH_INDEX(a_file_cut_anywhere_is_corrupt),
        TEST_WITH_INDEX(one_damaged_meta_page_of_two_is_corrupt),
        TEST_WITH_INDEX(another_version_of_lmdb_is_foreign),
        TEST_WITH_INDEX(no_bit_flip_in_a_meta_page_crashes_the_open),
        TEST_WITH_INDEX(a_damaged_identity_is_corrupt),
        TEST_WITH_INDEX(an_index_without_identity_is_corrupt),
        TEST_WITH_INDEX(a_newer_format_is_foreign),
        TEST_WITH_INDEX(another_magic_is_foreign),
        TEST_WITH_INDEX(a_damaged_position_is_corrupt_when_a_reader_begins),
        TEST_WITH_INDEX(a_read_only_index_reads_and_does_not_write),
        TEST_WITH_INDEX(without_lock_no_lock_file_is_made),
        TEST_WITH_INDEX(what_was_put_is_got),
        TEST_WITH_INDEX(a_value_of_a_mebibyte_and_a_key_of_511_bytes_are_kept),
        TEST_WITH_INDEX(the_check_is_stored_as_given),
        TEST_WITH_INDEX(what_is_not_there_is_not_found),
        TEST_WITH_INDEX(a_writer_sees_what_it_did),
        TEST_WITH_INDEX(deleting_what_is_not_there_is_ok),
        TEST_WITH_INDEX(reserved_empty_and_too_long_keys_are_invalid),
        TEST_WITH_INDEX(the_positions_travel_with_the_data),
        TEST_WITH_INDEX(an_abort_leaves_data_and_positions_as_before),
        TEST_WITH_INDEX(
            a_flipped_bit_in_a_value_is_corrupt_naming_table_and_key),
        TEST_WITH_INDEX(
            a_flipped_bit_in_a_table_row_is_corrupt_naming_the_table),
        TEST_WITH_INDEX(a_value_shorter_than_its_header_is_corrupt),
        TEST_WITH_INDEX(a_long_key_is_cut_in_messages),
        TEST_WITH_INDEX(a_full_map_is_no_space_and_the_index_goes_on),
        TEST_WITH_INDEX(
            a_short_write_at_commit_is_no_space_and_the_index_goes_on),
        TEST_WITH_INDEX(another_failure_at_commit_is_io_and_ends_writing),
        TEST_WITH_INDEX(readers_max_readers_are_given_then_busy),
        TEST_WITH_INDEX(the_reader_slots_of_the_dead_are_cleared),
        TEST_WITH_INDEX(readers_in_threads_see_whole_transactions_of_a_writer),
        TEST_WITH_INDEX(a_cursor_walks_both_ways_in_key_order),
        TEST_WITH_INDEX(a_cursor_may_turn_anywhere),
        TEST_WITH_INDEX(a_cursor_never_shows_the_reserved_keys),
        TEST_WITH_INDEX(after_not_found_a_cursor_must_seek_again),
        TEST_WITH_INDEX(a_hundred_thousand_entries_are_kept_in_order),
        TEST_WITH_INDEX(a_sweep_visits_the_range_and_deletes_what_it_is_told),
        TEST_WITH_INDEX(a_sweep_with_a_limit_goes_on_at_next_key),
        TEST_WITH_INDEX(a_sweep_of_nothing_visits_nothing),
        TEST_WITH_INDEX(a_sweep_stops_at_a_damaged_entry),
        TEST_WITH_INDEX(a_hundred_thousand_entries_are_swept_in_one_go),
        TEST_WITH_INDEX(random_transactions_agree_with_a_model),
    };

    return cmocka_run_group_tests_name("engine/index", tests, NULL, NULL);
}
