/* tests/lib/letters.c -- see tests/lib/letters.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/lib/files.h"
#include "tests/lib/letters.h"

static struct letters_image image;

void letters_make(struct store_dir *dir)
{
    store_dir_make(dir);
    dir->tuning.segment_bytes = LETTERS_SEGMENT_BYTES;
    dir->options.skip_close_checkpoint = true;
}

void letters_make_anew(struct store_dir *dir)
{
    store_dir_remove(dir);
    letters_make(dir);
}

void letters_begin(struct store_dir *dir)
{
    store_dir_open(dir);
    letters_put(dir, 'a');
    letters_put(dir, 'b');
}

const char *letters_value(char letter)
{
    static char value[LETTERS_VALUE_BYTES + 1];

    memset(value, letter, LETTERS_VALUE_BYTES);
    return value;
}

void letters_put(struct store_dir *dir, char letter)
{
    store_dir_put(dir, (char[]){letter, '\0'}, letters_value(letter));
}

void letters_put_relaxed(struct store_dir *dir, char letter)
{
    store_dir_put_relaxed(dir, (char[]){letter, '\0'}, letters_value(letter));
}

void letters_assert(struct store_dir *dir, unsigned count)
{
    for (char letter = 'a'; letter <= 'd'; letter++) {
        const bool there = letter < 'a' + (char)count;

        assert_true(store_dir_has(dir, (char[]){letter, '\0'},
                                  there ? letters_value(letter) : NULL));
    }
}

void letters_assert_opens(struct store_dir *dir, unsigned count, char row)
{
    store_dir_open(dir);
    assert_int_equal(store_dir_stats(dir).recovery_row, row);
    letters_assert(dir, count);
    store_dir_put(dir, "next", "1");
    store_dir_kill(dir);
    store_dir_open(dir);
    letters_assert(dir, count);
    assert_true(store_dir_has(dir, "next", "1"));
    store_dir_assert_verifies(dir);
    store_dir_kill(dir);
}

static void keep(const struct store_dir *dir)
{
    char path[FILES_PATH_BYTES];

    store_dir_path(dir, "ANCHOR", path);
    files_read_at(path, 0, image.anchor, sizeof image.anchor);
    store_dir_path(dir, SEGMENT_1, path);
    files_read_at(path, 0, image.segment, sizeof image.segment);
}

const struct letters_image *letters_kept(void)
{
    return &image;
}

void letters_restore(const struct store_dir *dir)
{
    char path[FILES_PATH_BYTES];

    store_dir_path(dir, "ANCHOR", path);
    files_write_at(path, 0, image.anchor, sizeof image.anchor);
    store_dir_path(dir, SEGMENT_1, path);
    files_write_at(path, 0, image.segment, sizeof image.segment);
    store_dir_path(dir, SEGMENT_2, path);
    if (files_exists(path)) {
        files_remove(path);
    }
}

void letters_leave_in_flight(struct store_dir *dir, const char *letters)
{
    store_dir_open(dir);
    letters_put(dir, 'a');
    for (; *letters != '\0'; letters++) {
        letters_put_relaxed(dir, *letters);
    }
    store_dir_kill(dir);
    keep(dir);
}

void letters_leave_acknowledged(struct store_dir *dir)
{
    store_dir_open(dir);
    letters_put(dir, 'a');
    letters_put(dir, 'b');
    letters_put(dir, 'c');
    store_dir_close(dir);
    keep(dir);
}
