/*
 * A FAKE broker for tests of the fronts: a thread with the real socket and the
 * real page, but no ledger behind it.  It grants turns when told to (or at
 * once), counts bytes against one limit, and remembers what it was sent.
 * The real one is src/broker.
 */
#ifndef FAKE_BROKER_H
#define FAKE_BROKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/msg.h"

#define FAKE_CONNS 16

struct fake_broker {
    char dir[32], path[64];

    /* what it shall do; set before fake_start() or while it runs */
    _Atomic int32_t hello_code;  /* not 0: REFUSED with it */
    _Atomic uint32_t version;    /* not 0: of the answers, instead of ours */
    _Atomic uint32_t auto_grant; /* 1: grant at WANT and at RELEASE(more) */
    _Atomic uint64_t turn_ns;    /* of automatic grants; 0: open deadline */
    _Atomic uint64_t limit_bytes;
    uint32_t mode, request_permille, limit_permille;
    _Atomic uint32_t flags; /* PROTO_LEASE_*, of pages given from now on */
    char platform[64], name[128], driver[64]; /* of every slot; ordinals count up */

    /* what it saw */
    _Atomic(struct proto_page *) page; /* of the newest hello */
    _Atomic uint32_t hellos, wants, releases, releases_more, aborts;
    _Atomic uint64_t used_bytes, freed_bytes;
    struct proto_msg last_hello; /* read after `hellos` moved */

    /* private */
    pthread_t thread;
    int listener, conns[FAKE_CONNS];
    _Atomic uint32_t stop, running;
    uint64_t reserved_bytes[64];
    uint64_t next_reservation;
};

/* Zeroed but for what it shall do.  Makes its own directory at first.  Returns when the thread
 * runs: a row may fork then, and ASan's allocator must not be in a thread's start meanwhile. */
void fake_start(struct fake_broker *b);
/* As kill -9 would: sockets closed, path left.  fake_start() is the restart. */
void fake_kill(struct fake_broker *b);
/* Kill and remove the directory. */
void fake_end(struct fake_broker *b);

struct proto_slot *fake_slot(struct fake_broker *b, uint32_t slot);
/* NONE -> HELD|0 with this deadline. */
void fake_grant(struct fake_broker *b, uint32_t slot, uint64_t deadline_ns);
/* Another deadline for the turn that is held. */
void fake_set_deadline(struct fake_broker *b, uint32_t slot, uint64_t deadline_ns);
/* HELD|0 -> NONE, as after a drain; false when it is not idle. */
bool fake_take_idle(struct fake_broker *b, uint32_t slot);
/* HELD|n -> NONE, as for a late holder. */
void fake_pass_over(struct fake_broker *b, uint32_t slot);

#endif
