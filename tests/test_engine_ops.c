/*
 * tests/test_engine_ops.c -- engine/ops.h: the trust boundary. A body may be
 * any bytes; what comes out is an operation that could have been put in, or BAD.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/limits.h"
#include "engine/ops.h"

#define BYTES(literal) ((struct bytes){literal, sizeof(literal) - 1})
#define NOTHING        ((struct bytes){NULL, 0})

enum { BODY_MAX = 4096, OPS_MAX = 16 };

/* ---- A small vocabulary ---------------------------------------------------------- */

/* A body in the making. */
struct body {
    uint8_t data[BODY_MAX];
    size_t size;
    size_t borders[2 * OPS_MAX]; /* Where operations, or tables, end. */
    size_t border_count;
};

static void add_border(struct body *body)
{
    assert_true(body->border_count < 2 * OPS_MAX);
    body->borders[body->border_count++] = body->size;
}

static void add_table(struct body *body, struct bytes name)
{
    ops_encode_table(name, body->data + body->size);
    body->size += ops_table_bytes(name);
    add_border(body);
}

static void add(struct body *body, struct op op)
{
    assert_true(ops_bytes(&op) <= BODY_MAX - body->size);
    ops_encode(&op, body->data + body->size);
    body->size += ops_bytes(&op);
    add_border(body);
}

static void add_raw(struct body *body, struct bytes raw)
{
    memcpy(body->data + body->size, raw.data, raw.size);
    body->size += raw.size;
}

/* One operation of each kind, on two tables. */
static struct body one_of_each(void)
{
    struct body body = {.size = 0};

    add_table(&body, BYTES("t"));
    add(&body, (struct op){.kind = OP_EXPECT_LSN,
                           .key = BYTES("k"),
                           .lsn = UINT64_C(0x0102030405060708)});
    add(&body, (struct op){.kind = OP_EXPECT_ABSENT, .key = BYTES("a")});
    add(&body, (struct op){.kind = OP_EXPECT_PRESENT, .key = BYTES("p")});
    add(&body, (struct op){.kind = OP_PUT,
                           .key = BYTES("key"),
                           .value = BYTES("value")});
    add_table(&body, BYTES("uv"));
    add(&body, (struct op){.kind = OP_DELETE, .key = BYTES("gone")});
    add(&body, (struct op){.kind = OP_DELETE_RANGE,
                           .key = BYTES("a"),
                           .end = BYTES("b")});
    add(&body, (struct op){.kind = OP_DELETE_RANGE}); /* All of it. */
    add(&body, (struct op){.kind = OP_PUT, .key = BYTES("e")});
    return body;
}

/* Read to the end or to what is bad; how many operations that were. */
static enum ops_verdict read_all(const uint8_t *data, size_t size,
                                 uint32_t *count_out)
{
    /* On the heap and exactly as long: a sanitizer sees one byte too many. */
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    struct ops_reader reader = ops_reader_init(copy, size);
    enum ops_verdict verdict;
    struct op op;

    assert_non_null(copy);
    memcpy(copy, data, size);
    *count_out = 0;
    while ((verdict = ops_next(&reader, &op)) == OPS_OP) {
        assert_int_equal(op.index, *count_out);
        assert_true(limit_table_name_is_valid(op.table));
        assert_true(op.table.size + 1 + op.key.size <=
                    LIMIT_FULL_KEY_BYTES_MAX);
        assert_true(op.table.size + 1 + op.end.size <=
                    LIMIT_FULL_KEY_BYTES_MAX);
        assert_true(op.value.size <= LIMIT_VALUE_BYTES_MAX);
        assert_true(op.kind == OP_DELETE_RANGE || op.key.size > 0);
        ++*count_out;
    }
    free(copy);
    return verdict;
}

static enum ops_verdict verdict_of(const struct body *body)
{
    uint32_t ignored;

    return read_all(body->data, body->size, &ignored);
}

/* Of a body of one table "t" and one raw operation. */
static enum ops_verdict verdict_of_raw(struct bytes raw)
{
    struct body body = {.size = 0};

    add_table(&body, BYTES("t"));
    add_raw(&body, raw);
    return verdict_of(&body);
}

static bool same(struct bytes left, struct bytes right)
{
    return bytes_compare(left, right) == 0;
}

static void next_is(struct ops_reader *reader, enum op_kind kind,
                    struct bytes table, struct bytes key, struct op *op_out)
{
    assert_int_equal(ops_next(reader, op_out), OPS_OP);
    assert_int_equal(op_out->kind, kind);
    assert_true(same(op_out->table, table));
    assert_true(same(op_out->key, key));
}

/* ---- The format ---------------------------------------------------------------------- */

static void a_body_is_encoded_as_the_golden_bytes(void **state)
{
    static const uint8_t golden[] = {
        0x01, 1,    't',                                     /* table */
        0x05, 1,    0,                                       /* expect lsn */
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 'k', /**/
        0x06, 1,    0,    'a',                               /* expect absent */
        0x07, 1,    0,    'p',                         /* expect present */
        0x02, 3,    0,    5,    0,    0,    0,         /* put */
        'k',  'e',  'y',  'v',  'a',  'l',  'u',  'e', /**/
        0x01, 2,    'u',  'v',                         /* table */
        0x03, 4,    0,    'g',  'o',  'n',  'e',       /* delete */
        0x04, 1,    0,    1,    0,    'a',  'b',       /* delete range */
        0x04, 0,    0,    0,    0,                     /* ... of everything */
        0x02, 1,    0,    0,    0,    0,    0,    'e', /* put of nothing */
    };
    const struct body body = one_of_each();

    (void)state;
    assert_int_equal(body.size, sizeof golden);
    assert_memory_equal(body.data, golden, sizeof golden);
}

static void what_was_encoded_is_read_back(void **state)
{
    const struct body body = one_of_each();
    struct ops_reader reader = ops_reader_init(body.data, body.size);
    struct op op;

    (void)state;
    next_is(&reader, OP_EXPECT_LSN, BYTES("t"), BYTES("k"), &op);
    assert_int_equal(op.lsn, UINT64_C(0x0102030405060708));
    next_is(&reader, OP_EXPECT_ABSENT, BYTES("t"), BYTES("a"), &op);
    next_is(&reader, OP_EXPECT_PRESENT, BYTES("t"), BYTES("p"), &op);
    assert_true(op_is_expectation(op.kind));
    next_is(&reader, OP_PUT, BYTES("t"), BYTES("key"), &op);
    assert_true(same(op.value, BYTES("value")));
    assert_false(op_is_expectation(op.kind));
    assert_int_equal(op.index, 3); /* The table does not count. */
    next_is(&reader, OP_DELETE, BYTES("uv"), BYTES("gone"), &op);
    next_is(&reader, OP_DELETE_RANGE, BYTES("uv"), BYTES("a"), &op);
    assert_true(same(op.end, BYTES("b")));
    next_is(&reader, OP_DELETE_RANGE, BYTES("uv"), NOTHING, &op);
    assert_int_equal(op.end.size, 0);
    next_is(&reader, OP_PUT, BYTES("uv"), BYTES("e"), &op);
    assert_int_equal(op.value.size, 0);
    assert_int_equal(op.index, 7);
    assert_int_equal(ops_next(&reader, &op), OPS_END);
    assert_int_equal(reader.op_count, 8);
    assert_int_equal(ops_next(&reader, &op), OPS_END);
}

static void an_empty_body_ends_at_once(void **state)
{
    const struct body empty = {.size = 0};

    (void)state;
    assert_int_equal(verdict_of(&empty), OPS_END);
}

/* ---- Damage ------------------------------------------------------------------------------ */

static bool is_border(const struct body *body, size_t size)
{
    for (size_t index = 0; index < body->border_count; index++) {
        if (body->borders[index] == size) {
            return true;
        }
    }
    return size == 0;
}

static void a_cut_body_is_bad_or_ends_between_two_operations(void **state)
{
    const struct body body = one_of_each();

    (void)state;
    for (size_t size = 0; size <= body.size; size++) {
        uint32_t ignored;

        assert_int_equal(read_all(body.data, size, &ignored),
                         is_border(&body, size) ? OPS_END : OPS_BAD);
    }
}

/* read_all() checks every operation that comes out against the limits. */
static void no_changed_byte_makes_an_impossible_operation(void **state)
{
    struct body body = one_of_each();

    (void)state;
    for (size_t offset = 0; offset < body.size; offset++) {
        const uint8_t before = body.data[offset];

        for (unsigned value = 0; value < 256; value++) {
            body.data[offset] = (uint8_t)value;
            (void)verdict_of(&body);
        }
        body.data[offset] = before;
    }
    assert_int_equal(verdict_of(&body), OPS_END);
}

static void an_unknown_kind_is_bad(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 256; kind++) {
        const uint8_t raw[] = {
            (uint8_t)kind, 1, 0, 'k', 0, 0, 0, 0, 0, 0, 0, 'x'};
        const enum ops_verdict verdict =
            verdict_of_raw((struct bytes){raw, sizeof raw});

        if (kind < OP_TABLE || kind > OP_EXPECT_PRESENT) {
            assert_int_equal(verdict, OPS_BAD);
        }
    }
}

static void an_operation_before_its_table_is_bad(void **state)
{
    (void)state;
    for (int kind = OP_PUT; kind <= OP_EXPECT_PRESENT; kind++) {
        struct body body = {.size = 0};

        add(&body, (struct op){.kind = (enum op_kind)kind, .key = BYTES("k")});
        assert_int_equal(verdict_of(&body), OPS_BAD);
    }
}

static void an_empty_key_is_bad_but_for_a_range(void **state)
{
    (void)state;
    for (int kind = OP_PUT; kind <= OP_EXPECT_PRESENT; kind++) {
        struct body body = {.size = 0};

        add_table(&body, BYTES("t"));
        add(&body, (struct op){.kind = (enum op_kind)kind});
        assert_int_equal(verdict_of(&body),
                         kind == OP_DELETE_RANGE ? OPS_END : OPS_BAD);
    }
}

static void a_range_that_ends_at_or_below_its_start_is_bad(void **state)
{
    static const struct {
        struct bytes first;
        struct bytes end;
        enum ops_verdict expected;
    } cases[] = {
        {{"a", 1}, {"b", 1}, OPS_END},   {{"a", 1}, {"a\0", 2}, OPS_END},
        {{"a", 1}, {NULL, 0}, OPS_END},  {{NULL, 0}, {"\0", 1}, OPS_END},
        {{"a", 1}, {"a", 1}, OPS_BAD},   {{"b", 1}, {"a", 1}, OPS_BAD},
        {{"a\0", 2}, {"a", 1}, OPS_BAD},
    };

    (void)state;
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        struct body body = {.size = 0};

        add_table(&body, BYTES("t"));
        add(&body, (struct op){.kind = OP_DELETE_RANGE,
                               .key = cases[index].first,
                               .end = cases[index].end});
        assert_int_equal(verdict_of(&body), cases[index].expected);
    }
}

/* ---- Limits, and one more -------------------------------------------------------------------- */

static void a_table_name_over_its_limit_is_bad(void **state)
{
    char name[LIMIT_TABLE_NAME_BYTES_MAX + 1];

    (void)state;
    memset(name, 't', sizeof name);
    for (size_t size = 0; size <= sizeof name; size++) {
        struct body body = {.size = 0};

        add_table(&body, (struct bytes){name, size});
        assert_int_equal(verdict_of(&body),
                         size >= 1 && size <= LIMIT_TABLE_NAME_BYTES_MAX
                             ? OPS_END
                             : OPS_BAD);
    }
}

static void a_table_name_of_other_bytes_is_bad(void **state)
{
    static const struct bytes names[] = {
        {"a b", 3}, {"a/b", 3}, {"\0", 1}, {"t\0", 2}, {"\xc3\xa4", 2}};

    (void)state;
    for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
        struct body body = {.size = 0};

        add_table(&body, names[index]);
        assert_int_equal(verdict_of(&body), OPS_BAD);
    }
}

static void keys_and_bounds_over_their_limit_are_bad(void **state)
{
    static const uint8_t zeros[LIMIT_FULL_KEY_BYTES_MAX];
    static uint8_t ones[LIMIT_FULL_KEY_BYTES_MAX];
    const size_t most = LIMIT_FULL_KEY_BYTES_MAX - 1 - 1; /* In "t". */

    (void)state;
    memset(ones, 1, sizeof ones);
    for (size_t over = 0; over <= 1; over++) {
        const enum ops_verdict expected = over == 0 ? OPS_END : OPS_BAD;
        const struct bytes low = {zeros, most + over};
        const struct bytes high = {ones, most + over};

        for (int kind = OP_PUT; kind <= OP_EXPECT_PRESENT; kind++) {
            struct body body = {.size = 0};

            add_table(&body, BYTES("t"));
            add(&body, (struct op){.kind = (enum op_kind)kind, .key = low});
            assert_int_equal(verdict_of(&body), expected);
        }
        {
            struct body body = {.size = 0};

            add_table(&body, BYTES("t"));
            add(&body, (struct op){.kind = OP_DELETE_RANGE, .end = high});
            assert_int_equal(verdict_of(&body), expected);
        }
    }
}

/* The limit depends on the name: a longer one may come later in the body. */
static void the_key_limit_is_that_of_the_table_selected_last(void **state)
{
    static const uint8_t key[LIMIT_FULL_KEY_BYTES_MAX];
    const struct op op = {.kind = OP_DELETE,
                          .key = {key, LIMIT_FULL_KEY_BYTES_MAX - 1 - 1}};
    struct body body = {.size = 0};

    (void)state;
    add_table(&body, BYTES("t"));
    add(&body, op);
    assert_int_equal(verdict_of(&body), OPS_END);
    add_table(&body, BYTES("tt"));
    add(&body, op);
    assert_int_equal(verdict_of(&body), OPS_BAD);
}

static void a_value_over_its_limit_is_bad(void **state)
{
    (void)state;
    for (size_t over = 0; over <= 1; over++) {
        const size_t value_bytes = LIMIT_VALUE_BYTES_MAX + over;
        const size_t size = 3 + 7 + 1 + value_bytes;
        uint8_t *data = calloc(1, size);
        struct op put = {.kind = OP_PUT, .key = BYTES("k")};
        uint32_t count;

        assert_non_null(data);
        ops_encode_table(BYTES("t"), data);
        ops_encode(&put, data + 3);
        put_u32le(data + 6, (uint32_t)value_bytes);
        assert_int_equal(read_all(data, size, &count),
                         over == 0 ? OPS_END : OPS_BAD);
        free(data);
    }
}

/* 4 GiB of value in a body of a few bytes. */
static void a_length_beyond_the_body_is_bad(void **state)
{
    (void)state;
    assert_int_equal(verdict_of_raw(BYTES("\x02\x01\x00\xff\xff\xff\xffk")),
                     OPS_BAD);
    assert_int_equal(verdict_of_raw(BYTES("\x03\xff\xffk")), OPS_BAD);
    assert_int_equal(verdict_of_raw(BYTES("\x04\x01\x00\xff\xff"
                                          "ab")),
                     OPS_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_encoded_as_the_golden_bytes),
        cmocka_unit_test(what_was_encoded_is_read_back),
        cmocka_unit_test(an_empty_body_ends_at_once),
        cmocka_unit_test(a_cut_body_is_bad_or_ends_between_two_operations),
        cmocka_unit_test(no_changed_byte_makes_an_impossible_operation),
        cmocka_unit_test(an_unknown_kind_is_bad),
        cmocka_unit_test(an_operation_before_its_table_is_bad),
        cmocka_unit_test(an_empty_key_is_bad_but_for_a_range),
        cmocka_unit_test(a_range_that_ends_at_or_below_its_start_is_bad),
        cmocka_unit_test(a_table_name_over_its_limit_is_bad),
        cmocka_unit_test(a_table_name_of_other_bytes_is_bad),
        cmocka_unit_test(keys_and_bounds_over_their_limit_are_bad),
        cmocka_unit_test(the_key_limit_is_that_of_the_table_selected_last),
        cmocka_unit_test(a_value_over_its_limit_is_bad),
        cmocka_unit_test(a_length_beyond_the_body_is_bad),
    };

    return cmocka_run_group_tests_name("engine/ops", tests, NULL, NULL);
}
