/*
 * The connection of one process to the broker: hello, the shared page, memory
 * calls, and what happens when either end goes away.
 *
 * A link is memory of the caller (static storage; zeroed is closed).  All
 * functions may be called from any thread.  Nothing here allocates, prints or
 * exits.  Memory calls wait for the broker (about 40 us, 5 s at most) and take
 * the link's mutex; link_want() and link_release() never wait and take none.
 *
 * The socket is CLOEXEC and sits at a high descriptor number; before each send
 * it is checked to be still ours (a program may close_range() or dup2() over
 * it).  When ours is gone or the broker is, the link is LINK_LOST: growth waits
 * for two seconds, which is many times what a broker takes to restart, and then is
 * refused; frees and commits are remembered, and it reconnects at most every
 * 100 ms, from whoever calls.  After that a NEW page holds; the old one stays
 * mapped for those who still look at it.
 *
 * A forked child of a process with a link finds it LINK_FORKED: nothing here
 * works any more and the gate lets everything pass.  The front then makes a
 * link of its own with link_open(), on other memory or the same, zeroed first.
 */
#ifndef FRONT_LINK_H
#define FRONT_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "proto/msg.h"

enum link_state {
    LINK_CLOSED = 0,
    LINK_UP,
    LINK_LOST,   /* had a WELCOME; the broker or our descriptor is gone */
    LINK_FORKED, /* this is a child of the process that opened it */
};

struct link {
    _Atomic uint32_t state;            /* enum link_state */
    _Atomic(struct proto_page *) page; /* of the newest WELCOME; never unmapped */
    _Atomic uint32_t generation;       /* counts WELCOMEs */

    /* private from here */
    _Atomic int fd;
    _Atomic uint64_t fd_ino, fd_dev;
    _Atomic uint64_t lost_ns, next_try_ns; /* LOST: since when; not before */
    _Atomic uint32_t seq;
    pthread_mutex_t mutex; /* one request and its answer at a time */
    char path[108];
    _Atomic uint64_t committed_bytes[PROTO_MAX_SLOTS];
    uint64_t told_bytes[PROTO_MAX_SLOTS]; /* what the broker was told of them */
};

/* What link_reserve() got; pass it on to commit or abort, once. */
struct link_reservation {
    uint64_t id;
    uint64_t bytes;
    uint32_t slot;
    uint32_t generation;
};

/*
 * Connect, say hello, map the page.  Start-up is fail-closed: the front shows
 * no device when this fails.
 *   -SL_UNAVAILABLE  no broker at this path for two seconds, or it went away at the hello
 *   -SL_DENIED       the broker knows no lease for this process (or its own code)
 *   -SL_PROTOCOL     another version, or an answer that makes no sense
 *   -SL_TIMEOUT      no answer in 5 s
 */
int link_open(struct link *l, const char *socket_path, struct sl_err *err);

/* For tests and an orderly end; the pages stay mapped. */
void link_close(struct link *l);

static inline bool link_forked(const struct link *l)
{
    return atomic_load_explicit(&l->state, memory_order_relaxed) == LINK_FORKED;
}

/* How often this process is a forked child of one that had a link: what was set
 * up at another count belongs to an ancestor. */
uint32_t link_fork_count(void);

/* The newest page; NULL before link_open(). */
static inline struct proto_page *link_page(const struct link *l)
{
    return atomic_load_explicit(&l->page, memory_order_acquire);
}

/*
 * Look at the connection, reconnect when it is lost and 100 ms have passed.
 * Cheap while it is up (two system calls).  True when it is up afterwards.
 * The gate's thread calls it a few times a second; a front need not.
 */
bool link_check(struct link *l);

/* ---- memory: reserve, allocate, then commit or abort ------------------- */

/* All or nothing.  -SL_NO_CAPACITY at the limit, with *free_bytes what would
 * be granted; -SL_UNAVAILABLE (free_bytes 0) when the link is lost for two seconds. */
int link_reserve(struct link *l, uint32_t slot, uint64_t bytes, struct link_reservation *r,
                 uint64_t *free_bytes);
/* The allocator took `bytes`, at most what was reserved. */
void link_commit(struct link *l, const struct link_reservation *r, uint64_t bytes);
void link_abort(struct link *l, const struct link_reservation *r);
/* Bytes committed before are free again: after the real release. */
void link_free(struct link *l, uint32_t slot, uint64_t bytes);

/* Bytes this process holds on a slot, by its own count. */
uint64_t link_committed_bytes(const struct link *l, uint32_t slot);

/* ---- turns: used by the gate; false when it could not be sent --------- */
bool link_want(struct link *l, uint32_t slot);
bool link_release(struct link *l, uint32_t slot, bool more);

#endif
