/*
 * 200 mixed cards in a closed loop: sessions that think, ask for cards, wait, run, and
 * think again; who waits less asks more.
 *
 * A replica that is *fitted*: sessions and think time are chosen so that the first system –
 * partitions, whole cards, first come first served – shows what such places report, a third
 * of the cards' work and waits of hours.  The mixes of sizes, run times and utilisations
 * are of published traces; docs/benchmarks.md lists each with its source.
 *
 * The same seed gives each system the same sessions with the same jobs in the same order,
 * so that differences are paired.  Virtual time; one thread.
 */
#ifndef SIM_CLOSED_H
#define SIM_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

#define CLOSED_PARTS     10  /* departments with cards of one type */
#define CLOSED_CDF       200 /* points */
#define CLOSED_MAX_NODES 256
#define CLOSED_NODES     25  /* of 8 cards, and … */
#define CLOSED_SESSIONS  248 /* of the scenario itself */

/* What may be varied; closed_setup_init gives the scenario itself. */
struct closed_setup {
    uint32_t seed;
    uint32_t sessions_permille; /* of CLOSED_SESSIONS */
    uint32_t think_s;           /* mean */
    uint32_t heavy_permille;    /* of each share of jobs on several cards: the mix */
    uint32_t nodes_permille;    /* of CLOSED_NODES; each department keeps one */
    uint32_t open_permille;   /* > 0: no loop, but arrivals at random that offer so much of
                                 * the cards' native capacity */
    uint32_t warm_days, days; /* not measured, and then measured */
};

struct closed_part {
    const char *name;
    uint32_t cards;
    double work_device_h; /* native, finished by its sessions */
    double wait_mean_s;
    uint32_t finished;
};

struct closed_sample {
    uint32_t hour; /* of the measured time */
    float allocated_pct, occupied_pct, working_pct;
    float unusable_pct; /* not lent though somebody waits */
    uint32_t waiting;
};

struct closed_result {
    uint32_t cards, sessions;
    uint32_t finished, starved, evictions;
    /* of the cards' time: native device-seconds of finished work; what was lent; cards that
     * anybody held */
    double effective_pct, allocated_pct, occupied_pct;
    double wait_mean_s, wait_p50_s, wait_p90_s, wait_p99_s; /* of finished jobs, in all */
    double wait_all_mean_s; /* who still waits counts too: jobs that wait / throughput */
    double think_mean_s, run_mean_s;
    /* sessions against throughput x (think + wait + run), in per cent: Little's law */
    double little_error_pct;
    double work_per_mj; /* native device-seconds per megajoule, by the model of power */
    double wait_cdf_s[CLOSED_CDF]; /* i-th: so long or less waited (i + 1) / CLOSED_CDF */
    struct closed_part part[CLOSED_PARTS];
    struct closed_sample *sample; /* one an hour */
    uint32_t sample_count;
};

void closed_setup_init(struct closed_setup *setup);

/* Names of the systems, in the order of the table; NULL at the end. */
const char *closed_system_name(unsigned i);
const char *closed_system_about(unsigned i);

/* The caller frees by closed_result_finish.  -SL_NOT_FOUND: no such system; -SL_INTERNAL. */
int closed_run(const char *system, const struct closed_setup *setup,
               struct closed_result *out, struct sl_err *err);
void closed_result_finish(struct closed_result *r);

#endif
