/*
 * tests/test_wal_unit.c -- wal/unit.h: each of the rules (1) to (5) by itself.
 *
 * A rule is tested on a unit that breaks this one and no other: fields are
 * changed before checksum and chain are computed, or after, as the rule wants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/lib/wal_log.h"
#include "wal/unit.h"

enum {
    SALT = 7,
    SEGMENT = 2,
    OFFSET = 3 * WAL_PAGE_BYTES,
    SEGMENT_BYTES = 1 << 20,
    PREVIOUS_UNIT = 8,
    PREVIOUS_LSN = 40,
    RECORDS_MAX = 3,
    BODY_MAX = RECORDS_MAX * (WAL_RECORD_HEADER_BYTES + 8),
    /* In the header. */
    CHECKSUM_OFFSET = 8,
    VERSION_OFFSET = 16,
    ZERO_OFFSET = 96,
};

static const uint8_t golden_header[WAL_UNIT_HEADER_BYTES] = {
    'S',  'T',  'E',  'L',  'U',  'N',  'I',  'T',  /* magic */
    0xbf, 0xa5, 0xb4, 0xad, 0x04, 0xf4, 0x35, 0x66, /* checksum */
    0x01, 0x00, 0x00, 0x00,                         /* version */
    0x02, 0x00, 0x00, 0x00,                         /* record count */
    0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* number */
    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* segment */
    0x78, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* body bytes */
    0x29, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* first lsn */
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* unit durable */
    0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* incarnation */
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* wall ns */
    0x35, 0xe9, 0x0f, 0xfd, 0xc4, 0x27, 0x00, 0xc0, /* chain */
    0x05, 0x87, 0xb4, 0x7f, 0x1a, 0xea, 0xa2, 0x73, /**/
};

/* ---- A small vocabulary ------------------------------------------------------- */

/* A unit in the making: its fields, and the records of its body. */
struct draft {
    struct wal_unit unit;
    uint32_t records; /* That are really in the body. */
    uint64_t lsns[RECORDS_MAX];
    uint8_t body[BODY_MAX];
};

static struct wal_position previous(void)
{
    const struct wal_uuid uuid = wal_log_uuid();
    struct wal_position position = wal_position_origin(&uuid, 0);

    position.unit = PREVIOUS_UNIT;
    position.lsn = PREVIOUS_LSN;
    return position;
}

static uint64_t seed(void)
{
    return wal_unit_seed(SALT, OFFSET);
}

/* Two records, LSNs 41 and 42, whose bodies are four bytes each. */
static struct draft draft(void)
{
    return (struct draft){
        .unit = {.number = PREVIOUS_UNIT + 1,
                 .segment = SEGMENT,
                 .lsn_first = PREVIOUS_LSN + 1,
                 .unit_durable = 7,
                 .incarnation = 4,
                 .wall_ns = UINT64_C(0x1112131415161718),
                 .record_count = 2},
        .records = 2,
        .lsns = {PREVIOUS_LSN + 1, PREVIOUS_LSN + 2, PREVIOUS_LSN + 3},
    };
}

/* Fill in body, length and chain. */
static void finish(struct draft *made, const struct wal_position *before)
{
    const uint8_t *headers[RECORDS_MAX] = {NULL};
    struct byte_writer out = byte_writer_init(made->body, sizeof made->body);

    for (uint32_t index = 0; index < made->records; index++) {
        const struct wal_record record = {
            .lsn = made->lsns[index],
            .op_count = 1,
            .body_bytes = 4,
            .body_checksum = wal_record_body_checksum("body", 4),
        };

        headers[index] = made->body + out.offset;
        wal_record_encode_header(&record, made->body + out.offset);
        out.offset += WAL_RECORD_HEADER_BYTES;
        byte_writer_copy(&out, "body", 4);
    }
    made->unit.body_bytes = out.offset;
    if (made->unit.record_count <= made->records) {
        made->unit.chain =
            wal_chain_next(&before->chain, &made->unit, headers, seed());
    }
}

static bool is_whole(const struct draft *made)
{
    const struct wal_position before = previous();
    uint64_t lsn_last = 77;
    const bool whole =
        wal_unit_is_whole(&made->unit, made->body, seed(), &before, &lsn_last);

    if (!whole) {
        assert_int_equal(lsn_last, 77);
    }
    return whole;
}

static void encode(const struct draft *made,
                   uint8_t header[WAL_UNIT_HEADER_BYTES])
{
    wal_unit_encode_header(&made->unit, seed(), header);
}

static bool decodes_at(const uint8_t header[WAL_UNIT_HEADER_BYTES],
                       uint64_t with_seed, uint64_t segment, uint64_t offset,
                       uint64_t segment_bytes)
{
    struct wal_unit unit = {.number = 42};
    const bool decoded = wal_unit_decode_header(header, with_seed, segment,
                                                offset, segment_bytes, &unit);

    if (!decoded) {
        assert_int_equal(unit.number, 42);
    }
    return decoded;
}

static bool decodes(const uint8_t header[WAL_UNIT_HEADER_BYTES])
{
    return decodes_at(header, seed(), SEGMENT, OFFSET, SEGMENT_BYTES);
}

/* As a writer that knows the salt would make it. */
static void seal(uint8_t header[WAL_UNIT_HEADER_BYTES])
{
    put_u64le(header + CHECKSUM_OFFSET,
              checksum64(header + VERSION_OFFSET,
                         WAL_UNIT_HEADER_BYTES - VERSION_OFFSET, seed()));
}

/* ---- The format ------------------------------------------------------------------ */

static void a_unit_is_encoded_as_the_golden_bytes(void **state)
{
    const struct wal_position before = previous();
    struct draft made = draft();
    uint8_t header[WAL_UNIT_HEADER_BYTES];

    (void)state;
    finish(&made, &before);
    encode(&made, header);
    assert_memory_equal(header, golden_header, sizeof header);
    assert_true(is_whole(&made));
}

static void the_golden_bytes_are_decoded_to_every_field(void **state)
{
    const struct draft made = draft();
    struct wal_unit unit;

    (void)state;
    assert_true(wal_unit_decode_header(golden_header, seed(), SEGMENT, OFFSET,
                                       SEGMENT_BYTES, &unit));
    assert_int_equal(unit.number, made.unit.number);
    assert_int_equal(unit.segment, made.unit.segment);
    assert_int_equal(unit.body_bytes, 120);
    assert_int_equal(unit.lsn_first, made.unit.lsn_first);
    assert_int_equal(unit.unit_durable, made.unit.unit_durable);
    assert_int_equal(unit.incarnation, made.unit.incarnation);
    assert_int_equal(unit.wall_ns, made.unit.wall_ns);
    assert_int_equal(unit.record_count, made.unit.record_count);
    assert_memory_equal(unit.chain.bytes, golden_header + 80,
                        CHECKSUM128_BYTES);
}

static void units_are_padded_to_whole_pages(void **state)
{
    (void)state;
    assert_int_equal(wal_unit_padded_bytes(0), 4096);
    assert_int_equal(wal_unit_padded_bytes(4096 - 128), 4096);
    assert_int_equal(wal_unit_padded_bytes(4096 - 127), 8192);
    assert_true(wal_unit_padded_bytes(UINT64_C(1) << 30) ==
                (UINT64_C(1) << 30) + 4096);
}

static void the_first_chain_is_that_of_the_origin(void **state)
{
    const struct wal_uuid uuid = wal_log_uuid();
    const struct checksum128 chain = wal_position_origin(&uuid, 0).chain;
    const struct wal_position origin = wal_position_origin(&uuid, 0);

    (void)state;
    assert_memory_equal(chain.bytes, origin.chain.bytes, CHECKSUM128_BYTES);
}

/* ---- Rule (1): magic, header checksum, segment, version --------------------------- */

static void no_single_bit_flip_of_a_header_is_accepted(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < (size_t)WAL_UNIT_HEADER_BYTES * 8; bit++) {
        uint8_t damaged[WAL_UNIT_HEADER_BYTES];

        memcpy(damaged, golden_header, sizeof damaged);
        damaged[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(decodes(damaged));
    }
}

static void a_unit_at_another_offset_is_not_one(void **state)
{
    (void)state;
    assert_true(decodes(golden_header));
    assert_false(decodes_at(golden_header,
                            wal_unit_seed(SALT, OFFSET + WAL_PAGE_BYTES),
                            SEGMENT, OFFSET + WAL_PAGE_BYTES, SEGMENT_BYTES));
}

static void a_unit_under_another_salt_is_not_one(void **state)
{
    (void)state;
    assert_false(decodes_at(golden_header, wal_unit_seed(SALT + 1, OFFSET),
                            SEGMENT, OFFSET, SEGMENT_BYTES));
    assert_true(wal_unit_seed(1, 2) != wal_unit_seed(2, 1));
}

/* With a checksum that holds: a copy of a whole segment file has the salt. */
static void a_unit_of_another_segment_is_not_one(void **state)
{
    (void)state;
    assert_false(
        decodes_at(golden_header, seed(), SEGMENT + 1, OFFSET, SEGMENT_BYTES));
}

static void another_version_is_not_one_either(void **state)
{
    static const uint32_t versions[] = {0, 2, UINT32_MAX};

    (void)state;
    for (size_t index = 0; index < 3; index++) {
        uint8_t header[WAL_UNIT_HEADER_BYTES];

        memcpy(header, golden_header, sizeof header);
        put_u32le(header + VERSION_OFFSET, versions[index]);
        seal(header);
        assert_false(decodes(header));
    }
}

static void a_page_of_zeros_is_not_a_unit(void **state)
{
    const uint8_t zeros[WAL_UNIT_HEADER_BYTES] = {0};
    uint8_t sealed[WAL_UNIT_HEADER_BYTES] = {0};

    (void)state;
    assert_false(decodes(zeros));
    seal(sealed); /* No magic. */
    assert_false(decodes(sealed));
}

/* ---- Rule (2): it ends inside the segment ------------------------------------------- */

static bool decodes_with_length(uint64_t body_bytes)
{
    struct draft made = draft();
    uint8_t header[WAL_UNIT_HEADER_BYTES];

    made.unit.body_bytes = body_bytes;
    encode(&made, header);
    return decodes(header);
}

static void a_unit_may_end_where_the_segment_ends(void **state)
{
    const uint64_t most = SEGMENT_BYTES - OFFSET - WAL_UNIT_HEADER_BYTES;

    (void)state;
    assert_true(decodes_with_length(0));
    assert_true(decodes_with_length(most));
    assert_false(decodes_with_length(most + 1));
}

/* Under a good checksum: 13 PB were once believed and allocated. */
static void an_absurd_length_is_refused_before_anything_is_done_with_it(
    void **state)
{
    static const uint64_t lengths[] = {
        UINT64_C(13000000000000000),
        UINT64_C(1) << 31,
        UINT64_C(1) << 32,
        UINT64_C(1) << 63,
        INT64_MAX,
        UINT64_MAX,
        UINT64_MAX - WAL_UNIT_HEADER_BYTES,
        UINT64_MAX - OFFSET - WAL_UNIT_HEADER_BYTES + 1,
    };

    (void)state;
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        assert_false(decodes_with_length(lengths[index]));
    }
}

static void an_offset_behind_the_segments_end_is_refused(void **state)
{
    (void)state;
    assert_false(
        decodes_at(golden_header, seed(), SEGMENT, OFFSET, OFFSET - 4096));
    assert_false(decodes_at(golden_header, seed(), SEGMENT, OFFSET, OFFSET));
    assert_false(
        decodes_at(golden_header, seed(), SEGMENT, OFFSET, OFFSET + 127));
}

/* ---- Rule (3): the number ------------------------------------------------------------- */

static void only_the_next_number_is_whole(void **state)
{
    const struct wal_position before = previous();

    (void)state;
    for (uint64_t number = PREVIOUS_UNIT - 1; number < PREVIOUS_UNIT + 4;
         number++) {
        struct draft made = draft();

        made.unit.number = number;
        finish(&made, &before);
        assert_int_equal(is_whole(&made), number == PREVIOUS_UNIT + 1);
    }
}

/* ---- Rule (4): the records -------------------------------------------------------------- */

static void a_unit_has_at_least_one_record(void **state)
{
    const struct wal_position before = previous();
    struct draft made = draft();

    (void)state;
    made.unit.record_count = 0;
    made.records = 0;
    finish(&made, &before);
    assert_false(is_whole(&made));
}

static void the_body_is_exactly_the_records_announced(void **state)
{
    const struct wal_position before = previous();
    struct draft fewer = draft();
    struct draft more = draft();

    (void)state;
    fewer.records = 3; /* One behind those announced. */
    finish(&fewer, &before);
    assert_false(is_whole(&fewer));
    more.unit.record_count = 3;
    finish(&more, &before);
    assert_false(is_whole(&more));
    more.unit.record_count = UINT32_MAX;
    finish(&more, &before);
    assert_false(is_whole(&more));
}

static void lsns_ascend_from_the_first_one(void **state)
{
    static const struct {
        uint64_t lsn_first;
        uint64_t lsns[2];
        bool whole;
    } cases[] = {
        {41, {41, 42}, true},  {41, {41, 99}, true}, /* With gaps. */
        {60, {60, 61}, true},                        /* After a restart. */
        {41, {41, 41}, false}, {42, {42, 41}, false},
        {40, {40, 41}, false}, /* The previous unit's last. */
        {39, {39, 41}, false}, {0, {0, 41}, false},
        {41, {42, 43}, false}, /* Not the first one announced. */
        {43, {42, 43}, false},
    };
    const struct wal_position before = previous();

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        struct draft made = draft();

        made.unit.lsn_first = cases[index].lsn_first;
        made.lsns[0] = cases[index].lsns[0];
        made.lsns[1] = cases[index].lsns[1];
        finish(&made, &before);
        assert_int_equal(is_whole(&made), cases[index].whole);
    }
}

static void the_last_lsn_is_told(void **state)
{
    const struct wal_position before = previous();
    struct draft made = draft();
    uint64_t lsn_last = 0;

    (void)state;
    made.lsns[1] = 1000;
    finish(&made, &before);
    assert_true(
        wal_unit_is_whole(&made.unit, made.body, seed(), &before, &lsn_last));
    assert_int_equal(lsn_last, 1000);
}

/* Bodies are covered by their checksums, headers by the chain: all of it. */
static void no_single_bit_flip_in_the_body_is_whole(void **state)
{
    const struct wal_position before = previous();
    struct draft made = draft();

    (void)state;
    finish(&made, &before);
    for (size_t bit = 0; bit < made.unit.body_bytes * 8; bit++) {
        made.body[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(is_whole(&made));
        made.body[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    assert_true(is_whole(&made));
}

/* ---- Rule (5): the chain ------------------------------------------------------------------ */

static void a_unit_behind_another_history_is_not_whole(void **state)
{
    struct wal_position other = previous();
    struct draft made = draft();

    (void)state;
    other.chain.bytes[0] ^= 1;
    finish(&made, &other);
    assert_false(is_whole(&made));
}

static void the_chain_covers_every_field_of_the_header(void **state)
{
    const struct wal_position before = previous();
    struct draft made = draft();
    struct draft changed;

    (void)state;
    finish(&made, &before);
    changed = made;
    changed.unit.unit_durable++;
    assert_false(is_whole(&changed));
    changed = made;
    changed.unit.incarnation++;
    assert_false(is_whole(&changed));
    changed = made;
    changed.unit.wall_ns++;
    assert_false(is_whole(&changed));
    changed = made;
    changed.unit.segment++;
    assert_false(is_whole(&changed));
    changed = made;
    changed.unit.chain.bytes[15] ^= 1;
    assert_false(is_whole(&changed));
    assert_true(is_whole(&made));
}

static void the_chain_depends_on_the_place(void **state)
{
    const struct wal_position before = previous();
    struct draft made = draft();
    uint64_t lsn_last;

    (void)state;
    finish(&made, &before);
    assert_false(wal_unit_is_whole(&made.unit, made.body,
                                   wal_unit_seed(SALT, OFFSET + 4096), &before,
                                   &lsn_last));
    assert_false(wal_unit_is_whole(&made.unit, made.body,
                                   wal_unit_seed(SALT + 1, OFFSET), &before,
                                   &lsn_last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_is_encoded_as_the_golden_bytes),
        cmocka_unit_test(the_golden_bytes_are_decoded_to_every_field),
        cmocka_unit_test(units_are_padded_to_whole_pages),
        cmocka_unit_test(the_first_chain_is_that_of_the_origin),
        cmocka_unit_test(no_single_bit_flip_of_a_header_is_accepted),
        cmocka_unit_test(a_unit_at_another_offset_is_not_one),
        cmocka_unit_test(a_unit_under_another_salt_is_not_one),
        cmocka_unit_test(a_unit_of_another_segment_is_not_one),
        cmocka_unit_test(another_version_is_not_one_either),
        cmocka_unit_test(a_page_of_zeros_is_not_a_unit),
        cmocka_unit_test(a_unit_may_end_where_the_segment_ends),
        cmocka_unit_test(
            an_absurd_length_is_refused_before_anything_is_done_with_it),
        cmocka_unit_test(an_offset_behind_the_segments_end_is_refused),
        cmocka_unit_test(only_the_next_number_is_whole),
        cmocka_unit_test(a_unit_has_at_least_one_record),
        cmocka_unit_test(the_body_is_exactly_the_records_announced),
        cmocka_unit_test(lsns_ascend_from_the_first_one),
        cmocka_unit_test(the_last_lsn_is_told),
        cmocka_unit_test(no_single_bit_flip_in_the_body_is_whole),
        cmocka_unit_test(a_unit_behind_another_history_is_not_whole),
        cmocka_unit_test(the_chain_covers_every_field_of_the_header),
        cmocka_unit_test(the_chain_depends_on_the_place),
    };

    return cmocka_run_group_tests_name("wal/unit", tests, NULL, NULL);
}
