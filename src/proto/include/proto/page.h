/*
 * The page that one process of a lease shares with the broker.
 *
 * The broker creates it (memfd, sealed size), sends it with WELCOME and maps it
 * at the client's hello.  It holds one slot per leased device.  Both sides
 * change `state` by compare-and-swap only; every other field has one writer,
 * named beside it.
 *
 * The broker treats all of it as hostile memory: it never takes a limit, a
 * size or an index from here, only what a client may lie about at its own cost
 * (state, submitted, completed, predicted end).  Times are CLOCK_MONOTONIC
 * nanoseconds, amounts bytes, shares permille.
 */
#ifndef PROTO_PAGE_H
#define PROTO_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PROTO_MAX_SLOTS  8           /* devices of one lease on one node */
#define PROTO_PAGE_MAGIC 0x534c5047u /* "SLPG" */

/*
 * The turn word.  SLOT_NONE: the process may not submit.  SLOT_HELD | n: it
 * holds the device's turn with n batches in flight; n = 0 is idle.
 *
 *   front:  HELD|n   -> HELD|n+1   before the first submit of a batch
 *           HELD|n   -> HELD|n-1   when a batch is known complete
 *           HELD|0   -> NONE       gives the turn back (then sends RELEASE)
 *   broker: NONE     -> HELD|0     grants
 *           HELD|0   -> NONE       takes an idle turn (the client needs no thread for it)
 *           HELD|n   -> NONE       only for a late holder; completions that
 *                                  arrive afterwards find NONE and leave it
 */
#define SLOT_NONE          0u
#define SLOT_HELD          0x80000000u
#define SLOT_FLIGHT(state) ((state)&0x7fffffffu)

#define SLOT_OPEN UINT64_MAX /* deadline of a turn nobody else wants */

struct proto_slot {
    /* written by both, CAS only */
    _Alignas(64) _Atomic uint32_t state;

    /* written by the broker */
    _Atomic uint32_t contended;          /* another lease waits for this device */
    _Atomic uint64_t deadline_ns;        /* submit no more after it; SLOT_OPEN when alone */
    _Atomic uint64_t flight_bound_ns;    /* at most this much predicted work in flight */
    _Atomic uint32_t flight_bound_items; /* or this many batches, whichever allows more */
    _Atomic uint32_t grants; /* counts turns: a batch of an older turn is not of this one */
    _Atomic uint32_t request_permille;
    _Atomic uint32_t limit_permille;
    _Atomic uint64_t mem_limit_bytes; /* of the lease on this device */
    _Atomic uint64_t mem_used_bytes;  /* committed + reserved, of the lease */

    /* written by the front */
    _Alignas(64) _Atomic uint64_t submitted; /* commands; grows with every submit */
    _Atomic uint64_t completed;              /* commands known to be complete */
    _Atomic uint64_t idle_since_ns;          /* last time flight fell to 0 */
    _Atomic uint64_t predicted_end_ns;       /* of what is in flight now */
    _Atomic uint32_t waiting;                /* threads blocked for a turn */
    _Atomic uint32_t ungated;                /* calls that went past the gate */
    _Atomic uint64_t kernels;                /* kernel launches submitted */
    _Atomic uint64_t copies;                 /* other commands submitted */
    _Atomic uint64_t longest_ns;             /* longest command seen */

    /* written once by the broker, before WELCOME: which real device this is */
    _Alignas(64) char platform[64];
    char name[128];
    char driver[64];
    uint32_t ordinal; /* among devices alike in all three */
    uint32_t mode;    /* enum proto_mode */
};

struct proto_page {
    uint32_t magic;
    uint32_t version;
    uint32_t slot_count;
    uint32_t flags; /* PROTO_LEASE_* */
    uint64_t lease; /* number; shown as "L7" */
    uint64_t epoch;
    /* futex, for turns too: the broker adds 1 after any change of a turn or its terms, the
     * front to wake its own threads; atomic adds */
    _Atomic uint32_t bell;
    _Atomic uint32_t limits_epoch; /* broker adds 1 when a limit changed */
    struct proto_slot slot[PROTO_MAX_SLOTS];
};

#endif
