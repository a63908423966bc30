/* base/park.c -- see base/park.h. */
#include "base/park.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void park_while(_Atomic uint32_t *word, uint32_t expected)
{
    while (atomic_load_explicit(word, memory_order_acquire) == expected) {
        /* EAGAIN (changed already), EINTR and a spurious wake all mean: look
         * again. */
        (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL,
                      0);
    }
}

void park_release(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    /* Only the address is used: waking nobody, or somebody else who looks again,
     * is harmless if the word's memory has been reused meanwhile. */
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

uint32_t park_gate_look(_Atomic uint32_t *gate)
{
    return atomic_load_explicit(gate, memory_order_acquire);
}

void park_gate_wait(_Atomic uint32_t *gate, uint32_t seen, uint32_t reasons)
{
    (void)syscall(SYS_futex, gate, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL,
                  reasons);
}

void park_gate_open(_Atomic uint32_t *gate, uint32_t reasons)
{
    (void)atomic_fetch_add_explicit(gate, 1, memory_order_release);
    (void)syscall(SYS_futex, gate, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL,
                  NULL, reasons);
}
