/* tests/test_base_error.c -- base/error.h, message by message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"

/* A text that no message has room for. */
static const char *long_text(void)
{
    static char text[2 * STELE_ERROR_MESSAGE_BYTES];

    memset(text, 'x', sizeof text - 1);
    return text;
}

static void setting_an_error_records_status_and_message(void **state)
{
    struct stele_error error = {.sys_errno = EIO};

    (void)state;
    assert_int_equal(error_set(&error, STELE_CORRUPT, "%s: offset %d", "f", 7),
                     STELE_CORRUPT);
    assert_int_equal(error.status, STELE_CORRUPT);
    assert_int_equal(error.sys_errno, 0);
    assert_string_equal(error.message, "f: offset 7");
}

static void a_system_error_is_told_in_words_and_number(void **state)
{
    struct stele_error error;

    (void)state;
    assert_int_equal(
        error_set_errno(&error, STELE_IO, EIO, "%s: read", "wal/1"), STELE_IO);
    assert_int_equal(error.status, STELE_IO);
    assert_int_equal(error.sys_errno, EIO);
    assert_string_equal(error.message,
                        "wal/1: read: Input/output error (errno 5)");
}

static void an_unknown_errno_still_has_its_number(void **state)
{
    struct stele_error error;

    (void)state;
    assert_int_equal(error_set_errno(&error, STELE_IO, 9999, "read"), STELE_IO);
    assert_int_equal(error.sys_errno, 9999);
    assert_non_null(strstr(error.message, "(errno 9999)"));
}

/* Outermost first: what the user reads is a path to the fault. */
static void context_is_put_in_front_of_the_message(void **state)
{
    struct stele_error error;

    (void)state;
    error_set_errno(&error, STELE_NO_SPACE, ENOSPC, "write");
    assert_int_equal(error_wrap(&error, STELE_NO_SPACE, "append unit %d", 3),
                     STELE_NO_SPACE);
    assert_int_equal(error_wrap(&error, STELE_NO_SPACE, "commit"),
                     STELE_NO_SPACE);
    assert_string_equal(
        error.message,
        "commit: append unit 3: write: No space left on device (errno 28)");
    assert_int_equal(error.status, STELE_NO_SPACE);
    assert_int_equal(error.sys_errno, ENOSPC);
}

static void what_is_too_long_is_cut_and_still_terminated(void **state)
{
    struct stele_error error;

    (void)state;
    error_set(&error, STELE_IO, "%s", long_text());
    assert_int_equal(strlen(error.message), STELE_ERROR_MESSAGE_BYTES - 1);
    error_set_errno(&error, STELE_IO, EIO, "%s", long_text());
    assert_int_equal(strlen(error.message), STELE_ERROR_MESSAGE_BYTES - 1);
    error_wrap(&error, STELE_IO, "%s", long_text());
    assert_int_equal(strlen(error.message), STELE_ERROR_MESSAGE_BYTES - 1);
    error_set(&error, STELE_IO, "inner");
    error_wrap(&error, STELE_IO, "%s", long_text());
    assert_int_equal(strlen(error.message), STELE_ERROR_MESSAGE_BYTES - 1);
}

static void the_message_of_a_long_error_is_cut_at_its_end(void **state)
{
    struct stele_error error;

    (void)state;
    error_set(&error, STELE_IO, "%s", long_text());
    error_wrap(&error, STELE_IO, "open");
    assert_int_equal(strncmp(error.message, "open: xxx", 9), 0);
    assert_int_equal(strlen(error.message), STELE_ERROR_MESSAGE_BYTES - 1);
}

static void nobody_has_to_care(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, STELE_BUSY, "x"), STELE_BUSY);
    assert_int_equal(error_set_errno(NULL, STELE_IO, EIO, "x"), STELE_IO);
    assert_int_equal(error_wrap(NULL, STELE_CORRUPT, "x"), STELE_CORRUPT);
    assert_int_equal(error_no_memory(NULL, "x"), STELE_NO_MEMORY);
}

static void a_failed_allocation_says_of_what(void **state)
{
    struct stele_error error;

    (void)state;
    assert_int_equal(error_no_memory(&error, "view"), STELE_NO_MEMORY);
    assert_int_equal(error.status, STELE_NO_MEMORY);
    assert_string_equal(error.message, "out of memory: view");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_an_error_records_status_and_message),
        cmocka_unit_test(a_system_error_is_told_in_words_and_number),
        cmocka_unit_test(an_unknown_errno_still_has_its_number),
        cmocka_unit_test(context_is_put_in_front_of_the_message),
        cmocka_unit_test(what_is_too_long_is_cut_and_still_terminated),
        cmocka_unit_test(the_message_of_a_long_error_is_cut_at_its_end),
        cmocka_unit_test(nobody_has_to_care),
        cmocka_unit_test(a_failed_allocation_says_of_what),
    };

    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
