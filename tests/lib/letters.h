/*
 * tests/lib/letters.h -- a small store that is all in its log, a page a commit.
 *
 * Under the keys "a", "b", "c", "d" stand a page full of that letter each, so
 * that every sector of the page is needed. They are units 1, 2, ... of the first
 * segment, at the offsets LETTERS_UNIT_1, ... Its files can be kept and brought
 * back, as often as somebody does something to them.
 */
#ifndef TESTS_LIB_LETTERS_H
#define TESTS_LIB_LETTERS_H

#include <stdint.h>

#include "tests/lib/store_dir.h"

#define SEGMENT_1 "wal/0000000000000001.wal"
#define SEGMENT_2 "wal/0000000000000002.wal"

enum {
    LETTERS_SEGMENT_BYTES = 64 << 10,
    LETTERS_ANCHOR_BYTES = 3 * 4096,
    LETTERS_VALUE_BYTES = 3900,
    LETTERS_UNIT_1 = 4096,
    LETTERS_UNIT_2 = 2 * 4096,
    LETTERS_UNIT_3 = 3 * 4096,
};

/* The directory, with small segments, and no checkpoint at close. */
void letters_make(struct store_dir *dir);
/* Another one in its place. */
void letters_make_anew(struct store_dir *dir);
/* Open, with "a" and "b" acknowledged, in one segment. */
void letters_begin(struct store_dir *dir);

/* The value of a letter: borrowed until the next call. */
const char *letters_value(char letter);
void letters_put(struct store_dir *dir, char letter);
/* In the log, not synced: nothing proves that it was ever durable. */
void letters_put_relaxed(struct store_dir *dir, char letter);

/* The first `count` letters are there, and no more. */
void letters_assert(struct store_dir *dir, unsigned count);
/* Open, find that the log ends like this, and see so many letters; go on, be
 * killed, and see them again. */
void letters_assert_opens(struct store_dir *dir, unsigned count, char row);

/* "a" was acknowledged; of these after it nobody knows. Killed, and kept. */
void letters_leave_in_flight(struct store_dir *dir, const char *letters);
/* "a", "b" and "c": acknowledged, closed, ANCHOR names them. Kept. */
void letters_leave_acknowledged(struct store_dir *dir);

/* What was kept; ANCHOR and the first segment. */
struct letters_image {
    uint8_t anchor[LETTERS_ANCHOR_BYTES];
    uint8_t segment[LETTERS_SEGMENT_BYTES];
};
const struct letters_image *letters_kept(void);
/* Put it back; there is no second segment then. */
void letters_restore(const struct store_dir *dir);

#endif
