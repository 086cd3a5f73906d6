/*
 * Messages between the agent (or a test) and the broker, on the control
 * socket.  Same framing as proto/msg.h: SEQPACKET, one fixed-size struct a
 * packet, every request answered once by a message of the same kind and seq
 * with `code` 0 or -SL_*.  Only the broker's own uid and root may connect.
 *
 * The agent says what should be (devices, leases, anchors) and may say it
 * again at any time: each request is idempotent, so that an agent and a broker
 * can restart independently.  A lease message with an older epoch than the
 * broker holds is refused with -SL_STALE.
 */
#ifndef PROTO_CTL_H
#define PROTO_CTL_H

#include <stdint.h>

#include "proto/msg.h"

#define PROTO_MAX_DEVICES 64

/* DEVICE flags */
#define PROTO_DEVICE_EMULATED   1u /* no hardware behind it, no machine-wide lock */
#define PROTO_DEVICE_UNIFIED    2u /* host memory is device memory (a CPU device) */
#define PROTO_DEVICE_CONCURRENT 4u /* turns need not be exclusive */
#define PROTO_DEVICE_HELD       8u /* answer: another broker on this machine holds it */

#define PROTO_CTL_KINDS(X)                                                               \
    X(DEVICE)      /* add or refresh a device; the broker takes its machine-wide lock */ \
    X(LEASE)       /* grant, resize or re-state a lease; answered with over_bytes */     \
    X(ANCHOR)      /* how processes of a lease are recognised: shim and cgroup */        \
    X(DROP)        /* end a lease; its clients lose turns and growth at once */          \
    X(STAT_DEVICE) /* one record: the device with index >= cursor */                     \
    X(STAT_LEASE)  /* one record: the lease with number >= cursor */                     \
    X(STAT_CLIENT) /* one record: the client with table index >= cursor */               \
    X(INFO)        /* the broker itself */                                               \
    X(QUIT)        /* end; refused with -SL_CONFLICT while clients live, unless forced */

enum proto_ctl_kind {
    PROTO_CTL_NONE = 0,
#define X(name) PROTO_CTL_##name,
    PROTO_CTL_KINDS(X)
#undef X
        PROTO_CTL_KIND_COUNT
};

/* One slice of a lease: bytes and time of one device. */
struct proto_slice {
    uint32_t device;           /* index of a DEVICE message */
    uint16_t request_permille; /* 0 only for besteffort */
    uint16_t limit_permille;   /* 1..1000, >= request */
    uint64_t mem_request_bytes;
    uint64_t mem_limit_bytes;
};

struct proto_slice_stat {
    uint32_t device;
    uint32_t flags; /* SLICE_* */
    uint64_t committed_bytes, reserved_bytes, limit_bytes;
    uint64_t over_bytes; /* above the limit after a shrink */
    uint64_t held_ns;    /* device time charged since the grant */
    uint64_t turns;
    uint64_t overrun_ns;      /* held past deadlines, in held_ns too */
    uint64_t wait_ns;         /* time with a process waiting for a turn */
    uint64_t kernels, copies; /* as the fronts say */
    uint64_t ungated;         /* as the fronts say */
    uint64_t longest_ns;      /* longest command, as the fronts say */
    uint64_t refused;         /* reservations refused */
};
#define SLICE_HOLDS 1u
#define SLICE_WAITS 2u
#define SLICE_LATE  4u /* kept the device past deadline + rest + 50 ms */
#define SLICE_STUCK 8u /* a command ran past max_kernel_ns while others waited */

struct proto_ctl {
    uint16_t version; /* PROTO_VERSION */
    uint16_t kind;    /* enum proto_ctl_kind */
    uint32_t seq;
    int32_t code;    /* answers */
    uint32_t more;   /* STAT answers: records follow after this one */
    uint64_t cursor; /* STAT: in: first index; out: next index */
    union {
        struct { /* DEVICE */
            uint32_t index, flags;
            uint64_t capacity_bytes, reserve_bytes;
            uint64_t turn_ns; /* base turn; 0: 10 ms */
            char id[64];      /* stable id: "pocl-1a2b3c4d" */
            char platform[64], name[128], driver[64];
            uint32_t ordinal;
            int32_t holder_pid; /* answer with PROTO_DEVICE_HELD */
            uint32_t holder_uid;
        } device;
        struct { /* LEASE; the answer fills over_bytes */
            uint64_t number, epoch;
            uint32_t mode, priority; /* enum proto_mode; 0..100 */
            uint32_t flags;          /* PROTO_LEASE_* */
            uint32_t slice_count;
            uint64_t max_kernel_ns; /* 0: 10 s */
            struct proto_slice slice[PROTO_MAX_SLOTS];
            uint64_t over_bytes[PROTO_MAX_SLOTS];
        } lease;
        struct { /* ANCHOR */
            uint64_t number, epoch;
            int32_t shim_pid; /* 0: none */
            uint32_t pad;
            uint64_t shim_start_ticks; /* field 22 of /proc/PID/stat */
            uint64_t cgroup_id;        /* inode of the v2 directory; 0: none */
        } anchor;
        struct { /* DROP */
            uint64_t number, epoch;
        } drop;
        struct { /* STAT_DEVICE */
            uint32_t index;
            uint32_t waiting;        /* leases that wait */
            uint64_t now_ns;         /* the broker's clock at this record */
            uint64_t deliverable_ns; /* wall time less gaps between leases, since DEVICE */
            uint64_t gap_ns;
            uint64_t held_ns; /* sum over leases, gone ones included */
            uint64_t capacity_bytes, reserve_bytes, used_bytes;
            uint64_t holder; /* lease number, 0: none */
            uint64_t handoffs;
        } device_stat;
        struct { /* STAT_LEASE */
            uint64_t number, epoch;
            uint64_t now_ns;
            uint32_t clients, suspects;
            uint32_t mode, slice_count;
            uint64_t granularity_ns; /* turn period this share implies now */
            struct proto_slice_stat slice[PROTO_MAX_SLOTS];
        } lease_stat;
        struct { /* STAT_CLIENT */
            uint64_t lease;
            int32_t pid;
            uint32_t uid;
            uint64_t start_ticks;
            uint32_t state;    /* 0 connected, 1 suspect, 2 recovering */
            uint32_t identity; /* how the kernel named it: enum in broker/identity.h */
            uint64_t bytes;
        } client_stat;
        struct { /* INFO */
            int32_t pid;
            uint32_t clients, leases, devices;
            uint64_t started_ns, now_ns;
            uint64_t recovered_clients; /* read back from the run file */
            uint64_t refused_clients, nonsense_messages, deaths;
            uint64_t death_to_free_ns_max;
            uint32_t force; /* QUIT: 1 */
            char version[32];
        } info;
        uint64_t pad[140];
    };
};

_Static_assert(sizeof(struct proto_ctl) == 24 + 140 * 8, "one size on every machine");

#endif
