/*
 * tests/test_engine_retention.c -- the rule itself: from which segment on the log is
 * needed, and why each segment is kept, by who needs what.
 *
 * Some of what it says cannot come about while the engine is as it is: snapshots are
 * taken of the index, so they never overtake it. The rule holds all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/retention.h"

#define NOBODY UINT64_MAX

enum { OLDEST = 3 }; /* The oldest segment that there is. */

/* ---- A small vocabulary ----------------------------------------------------------- */

/* Two snapshots, the older at segment 20; the index at 30; segment 40 is in use. */
static struct retention_needs at_rest(void)
{
    return (struct retention_needs){
        .current = 40,
        .snapshot = 20,
        .snapshot_lsn = 2000,
        .index = 30,
        .index_lsn = 3000,
        .held = NOBODY,
        .bytes = NOBODY,
        .time = NOBODY,
    };
}

static uint64_t oldest(struct retention_needs needs)
{
    return retention_oldest(&needs, OLDEST);
}

static void assert_kept(struct retention_needs needs, uint64_t seq,
                        enum stele_kept why, uint64_t lsn)
{
    uint64_t found = 1;

    assert_int_equal(retention_why(&needs, seq, &found), why);
    assert_int_equal(found, lsn);
}

/* ---- How far the log goes -------------------------------------------------------------- */

static void it_goes_back_to_the_older_snapshot(void **state)
{
    (void)state;
    assert_int_equal(oldest(at_rest()), 20);
}

static void with_fewer_than_two_snapshots_nothing_goes(void **state)
{
    struct retention_needs needs = at_rest();

    (void)state;
    needs.snapshots_few = true;
    assert_int_equal(oldest(needs), OLDEST);
}

static void an_index_that_the_snapshots_have_overtaken_keeps_its_log(
    void **state)
{
    struct retention_needs needs = at_rest();

    (void)state;
    needs.index = 10;
    needs.index_lsn = 1000;
    assert_int_equal(oldest(needs), 10);
}

/* Each of those who may need it, alone and below all others. */
static void whoever_needs_the_most_decides(void **state)
{
    struct retention_needs needs[] = {at_rest(), at_rest(), at_rest(),
                                      at_rest(), at_rest(), at_rest()};

    (void)state;
    needs[0].current = 7;
    needs[1].snapshot = 7;
    needs[2].index = 7;
    needs[3].held = 7;
    needs[4].bytes = 7;
    needs[5].time = 7;
    for (size_t index = 0; index < sizeof needs / sizeof needs[0]; index++) {
        assert_int_equal(oldest(needs[index]), 7);
    }
}

/* A clock or an amount may keep more, and never less. */
static void options_let_nothing_go_that_is_needed(void **state)
{
    struct retention_needs needs = at_rest();

    (void)state;
    needs.bytes = 39;
    needs.time = 40;
    assert_int_equal(oldest(needs), 20);
}

static void what_is_gone_does_not_come_back(void **state)
{
    struct retention_needs needs = at_rest();

    (void)state;
    needs.held = OLDEST - 1;
    assert_int_equal(oldest(needs), OLDEST);
    needs.bytes = 0;
    assert_int_equal(oldest(needs), OLDEST);
}

/* ---- Why ----------------------------------------------------------------------------------- */

static void the_first_reason_that_there_is_is_told(void **state)
{
    struct retention_needs needs = at_rest();

    (void)state;
    needs.index = 16;
    needs.index_lsn = 1600;
    needs.held = 12;
    needs.held_lsn = 1200;
    needs.bytes = 8;
    needs.time = 5;
    assert_kept(needs, 41, STELE_KEPT_CURRENT, 0);
    assert_kept(needs, 40, STELE_KEPT_CURRENT, 0);
    assert_kept(needs, 39, STELE_KEPT_SNAPSHOT, 2000);
    assert_kept(needs, 20, STELE_KEPT_SNAPSHOT, 2000);
    assert_kept(needs, 19, STELE_KEPT_INDEX, 1600);
    assert_kept(needs, 16, STELE_KEPT_INDEX, 1600);
    assert_kept(needs, 15, STELE_KEPT_HELD, 1200);
    assert_kept(needs, 12, STELE_KEPT_HELD, 1200);
    assert_kept(needs, 11, STELE_KEPT_BYTES, 0);
    assert_kept(needs, 8, STELE_KEPT_BYTES, 0);
    assert_kept(needs, 7, STELE_KEPT_TIME, 0);
    assert_kept(needs, 5, STELE_KEPT_TIME, 0);
    assert_kept(needs, 4, STELE_KEPT_FOR_NOW, 0);
}

static void too_few_snapshots_are_the_reason_for_all_but_the_current(
    void **state)
{
    struct retention_needs needs = at_rest();

    (void)state;
    needs.snapshots_few = true;
    assert_kept(needs, 40, STELE_KEPT_CURRENT, 0);
    assert_kept(needs, 39, STELE_KEPT_SNAPSHOTS, 0);
    assert_kept(needs, OLDEST, STELE_KEPT_SNAPSHOTS, 0);
}

/* What is needed is what has a reason other than "for now", over all that there
 * may be: five needs of four segments each. */
static void rule_and_reasons_agree(void **state)
{
    enum { VALUES = 4, NEEDS = 5, ALL = 1024 };
    static const uint64_t values[VALUES] = {1, 4, 6, NOBODY};

    (void)state;
    for (unsigned number = 0; number < ALL; number++) {
        unsigned rest = number;
        uint64_t chosen[NEEDS];
        struct retention_needs needs = at_rest();
        uint64_t from;

        for (unsigned index = 0; index < NEEDS; index++, rest /= VALUES) {
            chosen[index] = values[rest % VALUES];
        }
        needs.current = 8;
        needs.snapshot = chosen[0];
        needs.index = chosen[1];
        needs.held = chosen[2];
        needs.bytes = chosen[3];
        needs.time = chosen[4];
        from = oldest(needs);
        for (uint64_t seq = OLDEST; seq <= 9; seq++) {
            uint64_t lsn;

            assert_int_equal(retention_why(&needs, seq, &lsn) !=
                                 STELE_KEPT_FOR_NOW,
                             seq >= from);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_back_to_the_older_snapshot),
        cmocka_unit_test(with_fewer_than_two_snapshots_nothing_goes),
        cmocka_unit_test(
            an_index_that_the_snapshots_have_overtaken_keeps_its_log),
        cmocka_unit_test(whoever_needs_the_most_decides),
        cmocka_unit_test(options_let_nothing_go_that_is_needed),
        cmocka_unit_test(what_is_gone_does_not_come_back),
        cmocka_unit_test(the_first_reason_that_there_is_is_told),
        cmocka_unit_test(
            too_few_snapshots_are_the_reason_for_all_but_the_current),
        cmocka_unit_test(rule_and_reasons_agree),
    };

    return cmocka_run_group_tests_name("retention", tests, NULL, NULL);
}
