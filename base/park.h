/*
 * base/park.h -- threads wait for a word to change (a futex). With base/io_posix.c the
 * only place that makes system calls.
 */
#ifndef BASE_PARK_H
#define BASE_PARK_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Many threads wait at a gate, each for a word of its own to change, and with a mask of
 * reasons for which it wants to be woken: opening the gate wakes all those that share a
 * reason, in one call. A gate is counted up by every opening, so that none between
 * looking and waiting is missed; it must outlive all who use it.
 */

/* Return when *word is not `expected` (loaded with acquire). Whoever changes it, with
 * release, opens the gate afterwards. */
void park_while(_Atomic uint32_t *word, uint32_t expected,
                _Atomic uint32_t *gate, uint32_t reasons);

/* The words may be gone by now: they are not touched. */
void park_open(_Atomic uint32_t *gate, uint32_t reasons);

#endif
