/*
 * base/park.h -- threads wait for a word to change (a futex). With base/io_posix.c the
 * only place that makes system calls.
 */
#ifndef BASE_PARK_H
#define BASE_PARK_H

#include <stdatomic.h>
#include <stdint.h>

/* Return when *word is not `expected` (loaded with acquire). */
void park_while(_Atomic uint32_t *word, uint32_t expected);

/* Store `value` with release and wake the thread parked on the word. The word
 * may be gone as soon as its thread has seen the value; it is not touched
 * afterwards. */
void park_release(_Atomic uint32_t *word, uint32_t value);

/*
 * Many threads wait at a gate, each with a mask of reasons for which it wants to be
 * woken; opening it wakes all those that share a reason, in one call. A gate is counted
 * up by every opening, so that none between looking and waiting is missed. It must
 * outlive all who use it.
 */
uint32_t park_gate_look(_Atomic uint32_t *gate);
/* Returns once the gate is no longer at `seen`, or for no reason: look again. */
void park_gate_wait(_Atomic uint32_t *gate, uint32_t seen, uint32_t reasons);
void park_gate_open(_Atomic uint32_t *gate, uint32_t reasons);

#endif
