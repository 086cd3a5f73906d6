/* The closed loop from inside: jobs, cards, and what a system may do.  Private. */
#ifndef CLOSED_IMPL_H
#define CLOSED_IMPL_H

#include "sim/agenda.h"
#include "sim/closed.h"
#include "sim/random.h"

#define NODE_CARDS 8u
#define NEVER      UINT64_MAX
#define NO_NODE    UINT32_MAX

enum card_type { V100, A100, ASCEND, CARD_TYPES };

/* A department's cards of one type, and how much its sessions want. */
struct part {
    const char *name;
    enum card_type type;
    uint32_t nodes;
    uint32_t demand_pct; /* of its cards */
};
extern const struct part closed_parts[CLOSED_PARTS];

enum job_state { JOB_THINKS, JOB_WAITS, JOB_RUNS, JOB_OVER };

/* A session's job at hand; in the open form, one of many. */
struct job {
    enum job_state state;
    uint32_t part;
    struct random random;
    /* what it is */
    uint32_t cards, util_permille, share_permille; /* of each card */
    uint64_t mem_bytes;                            /* on each card */
    uint32_t types;                                /* set of card_type */
    uint64_t run_ms;                               /* alone, on whole cards */
    /* what became of it */
    uint64_t think_ms, submit_ms, since_ms;
    uint64_t ran_ms;         /* on its cards, all in all */
    double need_ms, done_ms; /* at full speed; more where shared, and by evictions */
    double speed; /* while it runs: what its slowest card gives it of what it uses */
    uint32_t lent_permille; /* of each card while it runs: what it is sure of */
    uint32_t node, epoch;
    bool raised; /* by the system, as it waited long */
    uint32_t priority;
    uint8_t card[NODE_CARDS];
};

#define CARD_JOBS 20 /* the least share is a twentieth, by half as much again */

struct card {
    uint32_t lent_permille, jobs, util_permille;
    uint64_t mem_bytes;
    uint32_t job[CARD_JOBS];
};

struct node {
    uint32_t part;
    enum card_type type;
    struct card card[NODE_CARDS];
};

/* Sums over the measured time. */
struct books {
    uint64_t since_ms;
    uint64_t allocated, occupied; /* permille x ms */
    uint64_t waiting;             /* jobs x ms */
    double watt_ms;
};

struct closed;

/* A system: who runs where and when.  It starts and stops jobs by closed_start/_stop. */
struct closed_system {
    const char *name, *about;
    int (*create)(struct closed *c);
    int (*submit)(struct closed *c, uint32_t job);
    /* its cards are free already */
    int (*finish)(struct closed *c, uint32_t job);
    /* after all that happened at this moment; *ask_ms: when to be asked again, or NEVER */
    int (*decide)(struct closed *c, uint64_t *ask_ms);
    void (*destroy)(struct closed *c);
};

extern const struct closed_system closed_partitioned, closed_strict, closed_backfill,
    closed_shared, closed_exact, closed_sluice;

struct closed {
    const struct closed_system *system;
    void *state; /* of the system */
    struct closed_setup setup;
    uint64_t now_ms, begin_ms, end_ms; /* begin, end: of what is measured */
    struct node node[CLOSED_MAX_NODES];
    uint32_t node_count, sessions;
    struct job *job;
    uint32_t job_count, job_room;
    struct agenda agenda;   /* whose thought or run ends when; NO_JOB: one arrives */
    struct random arrivals; /* of the open form */
    double arrival_mean_ms;
    uint32_t waiting;
    /* over all cards */
    uint32_t lent_permille, busy_cards;
    double working; /* cards' worth of compute in use */
    double idle_watt, busy_watt;
    struct books books;
    /* of finished jobs */
    double *wait_s;
    uint32_t wait_room;
    double think_sum_s, run_sum_s, work_ms; /* native device-ms */
    struct closed_result *result;
    struct sl_err *err;
};

uint64_t type_mem_bytes(enum card_type type);

/* Its next job: what it is, and how long it thinks before. */
void draw_job(const struct closed *c, struct job *j);

/* These cards of the node, so much of each; the state of the books is checked. */
int closed_start(struct closed *c, uint32_t job, uint32_t node, const uint8_t *card,
                 uint32_t lent_permille);
/* It stops and waits again; it keeps what it did, and has `cost_ms` more to do. */
int closed_stop(struct closed *c, uint32_t job, uint64_t cost_ms);

#endif
