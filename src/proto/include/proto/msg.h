/*
 * Messages between a front (inside the tenant's process) and the broker.
 *
 * A Unix SEQPACKET socket, one fixed-size message a packet, version and
 * sequence number in each.  The broker answers every message whose row says so,
 * with the same seq.  Everything a client sends is untrusted; what does not
 * parse ends that client's connection and nothing else.
 *
 * Amounts are bytes; `device` is the slot index of the page.
 */
#ifndef PROTO_MSG_H
#define PROTO_MSG_H

#include <stdint.h>

#include "proto/page.h"

#define PROTO_VERSION 1

/* How compute is held. */
enum proto_mode { PROTO_HARD = 0, PROTO_BURST = 1, PROTO_BESTEFFORT = 2 };

/* Flags of a lease, in the page and in control messages. */
#define PROTO_LEASE_FAIL_CLOSED 1u /* refuse ungated use found after start-up */
#define PROTO_LEASE_EMULATED    2u /* no real device behind it: show none */

/* clang-format off */
/*   name      direction        answered by */
#define PROTO_KINDS(X)                                                            \
    X(HELLO)    /* front->broker  WELCOME, or REFUSED and the socket closes */    \
    X(WELCOME)  /* broker->front  carries the page's descriptor (SCM_RIGHTS) */   \
    X(REFUSED)  /* broker->front  `code` says why */                              \
    X(RESERVE)  /* front->broker  RESERVED or REFUSED; all or nothing */          \
    X(RESERVED) /* broker->front  `reservation` names it */                       \
    X(COMMIT)   /* front->broker  no answer; bytes may be less than reserved */   \
    X(ABORT)    /* front->broker  no answer */                                    \
    X(FREE)     /* front->broker  no answer; more than held is cut and counted */ \
    X(WANT)     /* front->broker  no answer; the turn comes through the page */   \
    X(RELEASE)  /* front->broker  no answer; `more`: a standing request */        \
    X(PING)     /* front->broker  PONG */                                         \
    X(PONG)

enum proto_kind {
    PROTO_NONE = 0,
#define X(name) PROTO_##name,
    PROTO_KINDS(X)
#undef X
    PROTO_KIND_COUNT
};
/* clang-format on */

struct proto_msg {
    uint16_t version; /* PROTO_VERSION */
    uint16_t kind;    /* enum proto_kind */
    uint32_t seq;
    uint32_t device; /* slot index */
    int32_t code;    /* answers: 0 or -SL_* */
    union {
        struct {                 /* HELLO */
            uint32_t resume;     /* 1: had a WELCOME before (broker restarted) */
            uint32_t slot_count; /* with resume: declared bytes per slot follow */
            /* What the broker had been told when the connection broke.  Where its
             * record differs, messages were sent and not read: the difference is
             * taken as FREE, or as RESERVE and COMMIT within the limit, and logged.
             * What changed since follows as messages of that kind; reservations of
             * the old connection are void. */
            uint64_t declared_bytes[PROTO_MAX_SLOTS];
        } hello;
        struct { /* RESERVE, RESERVED, COMMIT, ABORT, FREE */
            uint64_t bytes;
            uint64_t reservation; /* COMMIT, ABORT: from RESERVED */
            uint64_t free_bytes;  /* REFUSED: what would have been granted */
        } mem;
        struct {           /* RELEASE */
            uint32_t more; /* the process has or expects more work */
        } turn;
        uint64_t pad[12];
    };
};

_Static_assert(sizeof(struct proto_msg) == 112, "one size on every machine");

#endif
