/* What link.c (the connection) and link_mem.c (memory calls on it) share. */
#ifndef FRONT_LINK_INTERNAL_H
#define FRONT_LINK_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/clock.h"
#include "front/link.h"

/* How long a broker may be away before a program is told (a killed one is back within some
 * 50 ms). */
#define LINK_RESTART_NS (2 * NS_PER_S)
/* Between two tries: 5 ms, then twice as long each time, at most 100; *ns begins at 0. */
void link_pause(uint64_t *ns);

/* The descriptor still names the socket that we opened. */
bool link_fd_is_ours(struct link *l);

/* Fill version and seq and send; false (and perhaps LOST) when that failed. */
bool link_send(struct link *l, struct proto_msg *m, int flags);

/* One packet, or recvmsg()'s failure.  *passed (may be NULL) is a descriptor
 * that came along, else -1. */
ssize_t link_receive(int fd, struct proto_msg *m, int *passed);

/* The connection is gone: LINK_UP -> LINK_LOST, the next try may be at once. */
void link_lose(struct link *l);

/* Reconnect if lost and if it is time; under the mutex.  True when up. */
bool link_revive(struct link *l);

/* Tell the broker what changed while it was away; under the mutex. */
void link_settle(struct link *l);

#endif
