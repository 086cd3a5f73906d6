/*
 * A real sluice-broker in a directory of its own, and processes that talk to it.
 *
 * Devices are emulated, so nothing machine-wide is taken.  An actor is a forked
 * child that carries out one order after another from the test: it is the
 * client, with a pid, a death and an exec of its own.
 */
#ifndef LIVE_H
#define LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/ctl.h"

struct live {
    char dir[32]; /* "/tmp/slb-XXXXXX" */
    pid_t broker;
    int control;
    const char *fault;      /* SLUICE_FAULT of the next broker */
    const char *options[8]; /* more arguments for the broker, NULL at the end */
};

/* cmocka fixtures: *state is a struct live with a running broker, device 0 of
 * 1 MiB + 1000 bytes (1000 free) and no lease. */
int live_setup(void **state);
int live_teardown(void **state);

void live_start(struct live *l); /* (again) in the same directory */
void live_kill(struct live *l, int signal);
void live_forget(struct live *l); /* remove the run file of a dead broker */
/* Run a broker that is expected to end by itself; its stderr into `text`. */
int live_try(const char *const *arguments, char *text, size_t size);

/* One request; returns the answer's code. */
/* Descriptors that the broker has open. */
unsigned live_descriptors(const struct live *l);

int live_control(struct live *l, struct proto_ctl *m);
int live_device(struct live *l, uint32_t index, uint64_t bytes);
/* Lease `number` on device 0, `bytes`, 30 % of the time; its shim is `shim`. */
int live_lease(struct live *l, uint64_t number, uint64_t bytes, pid_t shim);
int live_anchor(struct live *l, uint64_t number, pid_t shim, uint64_t cgroup_id);
/* Committed + reserved bytes of a lease on device 0. */
uint64_t live_used(struct live *l, uint64_t number);
struct proto_ctl live_info(struct live *l);
struct proto_ctl live_client(struct live *l, pid_t pid); /* .code -SL_NOT_FOUND: gone */

/* Poll until `condition` holds, at most 10 s, then fail. */
#define LIVE_UNTIL(condition)                \
    do {                                     \
        int tries_ = 5000;                   \
        while (!(condition) && tries_-- > 0) \
            live_nap();                      \
        assert_true(condition);              \
    } while (0)
void live_nap(void);

/* ---- actors ------------------------------------------------------------------- */

enum order {
    ORDER_HELLO,   /* (a: resume, b: bytes declared) connect, hello; code, value: slot's
                      memory limit */
    ORDER_RESERVE, /* (a: bytes, b: slot) value: reservation, or what is free */
    ORDER_COMMIT,  /* (a: bytes, b: reservation) */
    ORDER_ABORT,   /* (b: reservation) */
    ORDER_FREE,    /* (a: bytes, b: slot) */
    ORDER_PING,    /* code 0 when answered, -SL_IO when the socket ended */
    ORDER_WANT,    /* ask for the turn of slot 0 */
    ORDER_TURN,    /* wait for the turn (a: ns); value: grants, code -SL_TIMEOUT */
    ORDER_RAW,     /* (a: length, b: seed) send that many bytes of garbage */
    ORDER_SEND,    /* (a: kind, b: slot) send a well-formed message of this kind */
    ORDER_FLOOD,   /* (a: count) that many aborts of nothing */
    ORDER_RACE,  /* (a: rounds) for the last byte; value: rounds won, -SL_INTERNAL: over */
    ORDER_CLOSE, /* close the socket and go on living */
    ORDER_CHILD_FREE, /* (a: bytes) a forked child frees on the inherited socket */
    ORDER_EXEC,       /* become `sleep` */
    ORDER_SPAWN,      /* fork an actor of its own that says hello; value: its pid */
    ORDER_SETSID,
    ORDER_PASS, /* (a: count) ping with that many descriptors attached */
};

struct actor {
    pid_t pid;
    int to, from;
};

struct reply {
    int code;
    uint64_t value;
};

struct actor actor_start(const struct live *l);
struct reply actor_do(struct actor *a, enum order order, uint64_t x, uint64_t y);
/* Give the order without waiting for its reply; fetch it later. */
void actor_begin(struct actor *a, enum order order, uint64_t x, uint64_t y);
struct reply actor_reply(struct actor *a);
void actor_kill(struct actor *a); /* -9 and reap */
/* hello, then reserve and commit so many bytes. */
void actor_hold(struct actor *a, uint64_t bytes);

/* A word shared with all actors, for the race. */
extern _Atomic int *live_holders;

#endif
