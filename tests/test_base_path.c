/* tests/test_base_path.c -- base/path.h: taking paths apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/path.h"

static void assert_parts(const char *path, const char *parent, const char *name)
{
    char *found_parent = path_parent(path);
    char *found_name = path_name(path);

    assert_string_equal(found_parent, parent);
    assert_string_equal(found_name, name);
    free(found_parent);
    free(found_name);
}

static void a_path_is_a_parent_and_a_name(void **state)
{
    (void)state;
    assert_parts("a/b/c", "a/b", "c");
    assert_parts("a/b/c/", "a/b", "c");
    assert_parts("a//b//", "a", "b");
    assert_parts("c", ".", "c");
    assert_parts("c/", ".", "c");
    assert_parts("/c", "/", "c");
    assert_parts("//c", "/", "c");
    assert_parts("../c", "..", "c");
    assert_parts("..", ".", "..");
}

static void the_root_has_no_name(void **state)
{
    (void)state;
    assert_parts("/", "/", "");
    assert_parts("//", "/", "");
    assert_parts("", ".", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_a_parent_and_a_name),
        cmocka_unit_test(the_root_has_no_name),
    };

    return cmocka_run_group_tests_name("base/path", tests, NULL, NULL);
}
