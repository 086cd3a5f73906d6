/*
 * Futex on a 32-bit word that two processes share.  Any thread.
 */
#ifndef CORE_FUTEX_H
#define CORE_FUTEX_H

#include <linux/futex.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleep while *word == expected, at most timeout_ns (UINT64_MAX: for ever).
 * May wake early for any reason: the caller looks again. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t expected,
                              uint64_t timeout_ns)
{
    struct timespec ts = { (time_t)(timeout_ns / 1000000000u),
                           (long)(timeout_ns % 1000000000u) };
    syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns == UINT64_MAX ? NULL : &ts,
            NULL, 0);
}

static inline void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
