/*
 * A stage: one Sluice of its own (run directory, agent, broker) for a bench, and the
 * programs that are run on it.  Not a test: it exits with a message when
 * something does not start.
 */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/ctl.h"

struct stage {
    char dir[64];  /* run directory, removed at the end */
    char bin[256]; /* where this bench is; the programs are in ../bin */
    int control;   /* the broker's control socket */
    uint32_t seq;
    pid_t agent;
};

/* `up` options, NULL-terminated; `cpu` >= 0 keeps agent and broker on that one. */
void stage_open(struct stage *s, int cpu, const char *const *up_options);
void stage_close(struct stage *s);
/* The two halves of stage_close(): end agent and broker; remove the directory. */
void stage_close_keep(struct stage *s);
void stage_remove(struct stage *s);
/* After the broker was restarted; false while none listens. */
bool stage_reconnect(struct stage *s);

/*
 * Start `sluice run OPTIONS -- PROGRAM…`; stdout goes to `out` (NULL: /dev/null).
 * `options` and `program` are NULL-terminated.
 */
pid_t stage_run(struct stage *s, const char *const *options, const char *const *program,
                const char *out);
/* A program without Sluice. */
pid_t stage_spawn(const char *const *program, const char *out, int cpu);
int stage_wait(pid_t pid); /* exit status as a shell says it */

/* One control request and its answer; false: the broker is gone. */
bool stage_try(struct stage *s, struct proto_ctl *m);
/* The same, returning the answer's code; a broker that is gone ends the bench. */
int stage_call(struct stage *s, struct proto_ctl *m);

/* The path of a program, ours or a bench-…, in a static ring of four. */
const char *stage_program(const struct stage *s, const char *name);

/* What one lease and its device had, at one moment of the broker's clock. */
struct share_sample {
    uint64_t now_ns, deliverable_ns, gap_ns, handoffs;
    uint32_t count;
    struct {
        uint64_t number, held_ns, kernels, turns, overrun_ns, wait_ns;
    } lease[16];
};
void stage_sample(struct stage *s, struct share_sample *out);
/* Index of lease `number` in a sample, or -1. */
int stage_find(const struct share_sample *sample, uint64_t number);

#endif
