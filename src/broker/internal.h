/*
 * The broker's state and the functions that its files share.
 *
 * One thread owns all of it.  `struct broker` is one mapping made at start:
 * fixed tables, no heap afterwards.  Three tables hold who is who:
 *   conn    a socket of a front; before its hello it belongs to no client;
 *   client  a process of a lease, named by pid and start time.  It may have no
 *           socket (suspect, recovering).  Its index is the ledger's too;
 *   lease   what the agent said: the devices of its slots, and its anchors.
 * Times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef BROKER_INTERNAL_H
#define BROKER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/identity.h"
#include "core/err.h"
#include "ledger/ledger.h"
#include "os/log.h"
#include "proto/ctl.h"
#include "runfile.h"

#define BROKER_CONNS (LEDGER_MAX_CLIENTS + 1024) /* the rest have not said hello yet */
#define BROKER_CLIENTS_A_LEASE \
    (LEDGER_MAX_CLIENTS / 4 * 3) /* one may not crowd out the rest */
#define BROKER_CONTROLS 64
#define BROKER_BATCH    16   /* messages taken from one client in one turn of the loop */
#define BROKER_BUCKETS  4096 /* of the table pid -> client */
#define BROKER_NONE     UINT32_MAX

#define BROKER_GRACE_NS \
    (2 * 1000000000ull) /* after a restart: hellos wait for their lease */
#define BROKER_HELLO_NS   (5 * 1000000000ull) /* a connection that says nothing ends */
#define BROKER_RECHECK_NS (250 * 1000000ull)  /* has a suspect exec'ed? */

struct broker_options {
    const char *run_dir;        /* borrowed from the command line */
    bool foreground;            /* log to stderr instead of broker.log */
    bool cgroup, ancestry;      /* sources of identity in use */
    bool peerpidfd, pidfd_info; /* off: as on a kernel that lacks them */
    enum log_level log_level;
};

struct conn {
    int fd;    /* -1: free */
    int pidfd; /* until the hello; then the client's */
    pid_t pid;
    uint32_t uid;
    uint64_t start_ticks;
    uint64_t since_ns;
    uint32_t client;     /* BROKER_NONE before hello */
    uint32_t generation; /* an event of an earlier user of this index is stale */
    uint32_t prev, next; /* in that list; next also in the free list */
    bool mute;           /* in the list of those without hello */
    bool parked;         /* hello came, its lease is not here yet (restart) */
    struct proto_msg hello;
};

enum client_state { CLIENT_CONNECTED = 0, CLIENT_SUSPECT = 1, CLIENT_RECOVERING = 2 };

struct client {
    pid_t pid; /* 0: free */
    uint32_t uid;
    uint64_t start_ticks;
    uint64_t lease;
    int pidfd;
    int maps_fd;   /* its address space at the hello; -1 unknown (process.c) */
    uint32_t conn; /* BROKER_NONE: suspect or recovering */
    enum client_state state;
    enum broker_identity identity;
    bool in_ledger; /* false: recovered, and its lease is not restated yet */
    uint32_t generation;
    uint32_t next; /* in its bucket, or free */
    uint32_t slot_count;
    struct proto_page *page;
    uint64_t recovered_bytes[PROTO_MAX_SLOTS];
};

struct lease {
    uint64_t number; /* 0: free */
    uint64_t epoch;
    uint32_t flags, mode, slice_count;
    bool dropped; /* ends with its last client */
    uint32_t clients;
    uint32_t device[PROTO_MAX_SLOTS];
    pid_t shim_pid; /* 0: none */
    uint64_t shim_start_ticks;
    uint64_t cgroup_id; /* 0: none */
};

struct device {
    bool used;
    int lock_fd; /* -1: emulated */
    uint32_t flags, ordinal;
    char id[64], platform[64], name[128], driver[64];
};

struct control {
    int fd; /* -1: free */
    uint32_t generation;
};

/* Lines in this second that clients caused. */
struct noise {
    uint64_t window_ns;
    uint32_t lines, suppressed;
};

struct broker {
    struct broker_options options;
    int log_fd; /* -1: stderr */
    struct noise noise;
    int dir_fd, lock_fd, epoll_fd, timer_fd, signal_fd, listen_fd, control_fd;
    struct ledger *ledger;
    struct runfile runfile;

    struct conn conns[BROKER_CONNS];
    struct client clients[LEDGER_MAX_CLIENTS];
    struct lease leases[LEDGER_MAX_LEASES];
    struct device devices[PROTO_MAX_DEVICES];
    struct control controls[BROKER_CONTROLS];
    uint32_t bucket[BROKER_BUCKETS];
    uint32_t free_conn, free_client;
    uint32_t mute_first, mute_last; /* connections without hello, oldest first */
    uint32_t client_count, lease_count, device_count, conn_count;
    uint32_t lease_top;                    /* no lease at or beyond it */
    uint32_t conn_limit;                   /* what RLIMIT_NOFILE leaves room for */
    uint32_t detached_count, parked_count; /* clients without socket; parked hellos */
    uint64_t settled_ns;                   /* when the governor last ran */
    uint64_t armed_ns;                     /* what the timer is set to */

    char cgroup_mount[256], cgroup_root[256]; /* "" when there is no v2 hierarchy */

    bool end;
    uint64_t started_ns, grace_until_ns, recheck_ns;
    uint64_t recovered_clients, refused_clients, nonsense_messages, deaths;
    uint64_t death_to_free_ns_max;
};

/* What an epoll event belongs to. */
enum event_kind {
    EVENT_LISTEN,
    EVENT_CONTROL_LISTEN,
    EVENT_TIMER,
    EVENT_SIGNAL,
    EVENT_LOCK,
    EVENT_CONN,
    EVENT_PIDFD,
    EVENT_CONTROL,
};

/* ---- broker.c: the loop ------------------------------------------------- */

/* A broker with empty tables, without a descriptor; NULL when out of memory. */
struct broker *broker_create(const struct broker_options *options);
/* Close what is open and unmap; NULL is fine.  Clients keep what they hold. */
void broker_destroy(struct broker *b);
int broker_watch(struct broker *b, int fd, enum event_kind kind, uint32_t index,
                 uint32_t generation);
int broker_run(struct broker *b);
/* Let the governor act on what has changed, ring bells, arm the timer. */
void broker_settle(struct broker *b);

/* ---- noise.c -------------------------------------------------------------- */

/* Log what a client can provoke: at most 50 lines a second, the rest counted. */
void log_client(struct broker *b, enum log_level level, const char *event, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));

/* ---- setup.c: directory, lock, sockets, limits --------------------------- */

int setup_open(struct broker *b, struct sl_err *err);

/* ---- identity.c ---------------------------------------------------------- */

/* Look for the v2 hierarchy, once at start. */
void identity_init(struct broker *b);
/* The process at the other end of a new socket: pid, uid, start time, pidfd
 * (the caller's to close).  -SL_DENIED when the kernel does not say. */
int identity_peer(const struct broker *b, int fd, struct conn *out);
/* The lease that process belongs to, NULL if none; *how says who knew. */
struct lease *identity_find_lease(struct broker *b, const struct conn *c,
                                  enum broker_identity *how);

/* ---- conn.c: sockets of fronts ------------------------------------------- */

void conn_accept(struct broker *b);
/* A new socket; takes `fd`. */
void conn_admit(struct broker *b, int fd);
void conn_readable(struct broker *b, uint32_t index);
/* Close it; its client, if it lives, becomes suspect. */
void conn_close(struct broker *b, uint32_t index);
/* One received message, from process `pid` by the kernel's word.  False: it is
 * nonsense, and the connection must end. */
bool conn_message(struct broker *b, uint32_t index, const struct proto_msg *m,
                  size_t length, pid_t pid, uint64_t now_ns);
/* Answer; a client that does not read its answers is ended. */
void conn_send(struct broker *b, uint32_t index, const struct proto_msg *m, int fd);
/* End connections that never said hello; try parked hellos again. */
void conn_retry_parked(struct broker *b, uint64_t now_ns);
void conn_expire(struct broker *b, uint64_t now_ns);

/* ---- process.c: processes ------------------------------------------------- */

/* The client with this pid and start time, or BROKER_NONE. */
uint32_t process_find(const struct broker *b, pid_t pid, uint64_t start_ticks);
/* Make, or take over, the record of the process behind a connection and send
 * WELCOME.  Takes the connection's pidfd. */
int process_join(struct broker *b, uint32_t conn, struct lease *lease,
                 enum broker_identity how, const struct proto_msg *hello, uint64_t now_ns);
void process_suspect(struct broker *b, uint32_t index, uint64_t now_ns);
/* It died, or its address space is gone: everything returns. */
void process_leave(struct broker *b, uint32_t index, uint64_t now_ns);
/* The pidfd fired. */
void process_died(struct broker *b, uint32_t index, uint64_t now_ns);
/* Write its line of the run file from the ledger. */
void process_record(struct broker *b, uint32_t index);
/* Wake who waits on its page; the ledger has bumped the bell. */
void process_wake(struct broker *b, uint32_t index);
void process_recheck_suspects(struct broker *b, uint64_t now_ns);

/* Enter a filled record into the table by pid; open its /proc/PID/maps (-1: may
 * not look). */
void process_link(struct broker *b, uint32_t index);
int process_open_maps(pid_t pid);

/* ---- recover.c: after a restart ------------------------------------------- */

/* Read the run file: processes that still live become clients; the free list
 * of clients is made of the rest. */
void recover_read(struct broker *b);
/* A lease was restated: charge its recovered clients in the ledger. */
void recover_lease(struct broker *b, const struct lease *lease);

/* ---- control.c -------------------------------------------------------------- */

void control_accept(struct broker *b);
void control_readable(struct broker *b, uint32_t index);
/* Carry out one request; `m` becomes the answer. */
void control_message(struct broker *b, struct proto_ctl *m, uint64_t now_ns);

/* ---- grant.c: the tables that the agent fills -------------------------------- */

struct lease *grant_find(struct broker *b, uint64_t number);
/* A client of it went: a dropped lease without clients is forgotten. */
void grant_put(struct broker *b, struct lease *lease);

#endif
