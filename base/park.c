/* base/park.c -- see base/park.h. */
#include "base/park.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void park_while(_Atomic uint32_t *word, uint32_t expected,
                _Atomic uint32_t *gate, uint32_t reasons)
{
    for (;;) {
        const uint32_t seen = atomic_load_explicit(gate, memory_order_acquire);

        if (atomic_load_explicit(word, memory_order_acquire) != expected) {
            return;
        }
        /* EAGAIN (opened already), EINTR and a wake-up that was meant for others all
         * mean: look again. */
        (void)syscall(SYS_futex, gate, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL,
                      NULL, reasons);
    }
}

void park_open(_Atomic uint32_t *gate, uint32_t reasons)
{
    (void)atomic_fetch_add_explicit(gate, 1, memory_order_release);
    (void)syscall(SYS_futex, gate, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL,
                  NULL, reasons);
}
