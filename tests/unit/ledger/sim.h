/*
 * A node in virtual time: devices that execute commands in order, processes
 * with a front that follows proto/page.h, and the ledger between them.
 *
 * Deterministic: everything random comes from the seed.  What a message, a wake
 * and a timer take is set below; together a hand-off takes about 60 us, as it
 * does on the machine of the measurements.
 */
#ifndef SIM_H
#define SIM_H

#include "core/clock.h"
#include "ledger/ledger.h"

#define SIM_MAX_PROCS   2048
#define SIM_MAX_SAMPLES 512
#define SIM_MAX_LEASES  16
#define SIM_HANGS       (1000 * NS_PER_S) /* a kernel of this length never ends */

/* What a process does, for ever: `batch` commands of kernel_ns each, then (if
 * waits) it waits for the last of them, computes for host_ns, and again. */
struct sim_program {
    uint64_t kernel_ns, host_ns;
    uint32_t batch;         /* 0: never waits, the flight bound is all that holds it */
    uint64_t idle_every_ns; /* after this long awake sleep for idle_ns; 0: never */
    uint64_t idle_ns;
    uint64_t start_ns; /* when it starts to work */
    uint32_t count;    /* stop after this many commands; 0: never */
    bool collective;   /* one command on every device of the lease, which spin
                          until all run */
    bool liar;         /* never gives back, says that it is done, predicts no end */
};

struct sim;
struct sim *sim_create(uint32_t seed);
void sim_destroy(struct sim *s);
/* To the broker, from it to a thread that runs, and how late its timer is; else 30, 30
 * and 50 us. */
void sim_set_delays(struct sim *s, uint64_t message_ns, uint64_t wake_ns,
                    uint64_t timer_ns);
struct ledger *sim_ledger(struct sim *s);
uint64_t sim_now(const struct sim *s);

void sim_device(struct sim *s, uint32_t index, bool concurrent);
/* On one device, 1 GiB; see sim_lease_on() for more. */
int sim_lease(struct sim *s, uint64_t number, enum proto_mode mode, uint32_t request,
              uint32_t limit, uint32_t priority);
int sim_lease_on(struct sim *s, uint64_t number, enum proto_mode mode, uint32_t request,
                 uint32_t limit, uint32_t priority, const uint32_t *devices,
                 uint32_t count);
/* A process of the lease; returns its client index. */
uint32_t sim_process(struct sim *s, uint64_t lease, const struct sim_program *program);

/* Run until this virtual time; checks the ledger's invariants now and then. */
void sim_run(struct sim *s, uint64_t until_ns);

/* kill -9, SIGSTOP and SIGCONT, a closed socket. */
void sim_kill(struct sim *s, uint32_t client);
void sim_stop(struct sim *s, uint32_t client);
void sim_continue(struct sim *s, uint32_t client);
void sim_suspect(struct sim *s, uint32_t client);

/* Up to now: time charged to a lease on its first device, deliverable time of that
 * device, commands completed by a lease, time it waited. */
uint64_t sim_held(struct sim *s, uint64_t lease);
uint64_t sim_deliverable(struct sim *s, uint32_t device);
uint64_t sim_completed(const struct sim *s, uint64_t lease);
uint64_t sim_busy(const struct sim *s, uint64_t lease);
struct proto_slice_stat sim_slice(struct sim *s, uint64_t lease, uint32_t slice);
struct proto_slot *sim_slot(struct sim *s, uint32_t client, uint32_t slot);

/* The longest that a process waited from asking to holding, since the last call. */
uint64_t sim_take_longest_wait(struct sim *s, uint64_t lease);
/* Messages the lease's processes sent. */
uint64_t sim_messages(const struct sim *s, uint64_t lease);

/* Share error (bench/README.md) of the windows of a run of
 * `seconds` from now on, slid by 1 s; in permille. */
struct sim_error {
    double max_1s;                             /* of 1 s windows */
    double p95_10s, max_10s, p95_60s, max_60s; /* permille, absolute */
    double mean;                               /* permille of the whole run */
    uint32_t windows_10s, disjoint_10s;
};
void sim_measure(struct sim *s, uint32_t seconds, const uint64_t *leases,
                 const double *promise_permille, uint32_t count, struct sim_error *out);

#endif
