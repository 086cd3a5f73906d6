/*
 * Unix sockets.  A path that does not fit is an error that says so.
 */
#ifndef OS_SOCK_H
#define OS_SOCK_H

#include <sys/socket.h>
#include <sys/types.h>

#include "core/err.h"

/* `type`: SOCK_STREAM or SOCK_SEQPACKET; CLOEXEC.  Returns the descriptor or
 * -SL_*.  A stale socket file is replaced (the caller holds the lock that says
 * it is stale). */
int sock_listen_unix(const char *path, int type, mode_t mode, struct sl_err *err);
/* -SL_UNAVAILABLE where nobody listens. */
int sock_connect_unix(const char *path, int type, struct sl_err *err);
int sock_peer(int fd, struct ucred *out, struct sl_err *err);

#endif
