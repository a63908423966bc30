/* base/park.c -- see base/park.h. */
#include "base/park.h"

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
