/*
 * The machine-wide lock of a device: an abstract Unix socket named after it,
 * bound and listened for as long as the broker lives.
 *
 * The kernel drops it with the process, also after kill -9; anyone can ask who
 * holds it by connecting, without a message (SO_PEERCRED of the listener).
 */
#ifndef BROKER_LOCK_H
#define BROKER_LOCK_H

#include <stdint.h>

/* The listening descriptor, or -SL_CONFLICT with the holder's pid and uid (pid
 * 0 when it cannot be told), or -SL_IO. */
int device_lock_take(const char *id, int32_t *holder_pid, uint32_t *holder_uid);

/* Someone asked who holds it: take the connections off the queue, so that the
 * next one who asks is answered too. */
void device_lock_answer(int fd);

#endif
