/*
 * What a policy of the job simulator is, and what it may do.
 *
 * The simulator tells it of every job that comes (submit) and ends (finish), and after
 * those of one moment asks it once to decide.  Deciding is starting and stopping jobs;
 * the answer is the time at which it wants to be asked again though nothing happens
 * (a round, a job that passes a threshold), later than now, or JOBSIM_NEVER.
 *
 * A job that is stopped and started in the same decision goes on, moved; one that stays
 * stopped was pre-empted.  A policy sees only jobs that ask for a device and fit
 * into the pool when it is empty.
 *
 * Policies are named in one table (policies.c); a policy that differs under the
 * two families of rules is two rows of functions.
 */
#ifndef SIM_JOBS_POLICY_H
#define SIM_JOBS_POLICY_H

#include "sim/jobsim.h"

#define JOBSIM_NEVER UINT64_MAX
#define JOBSIM_NONE  UINT32_MAX

enum sim_job_state { SIM_JOB_OUTSIDE, SIM_JOB_WAITS, SIM_JOB_RUNS };

struct sim_job {
    const struct trace_job *trace;
    struct jobsim_outcome *outcome;
    enum sim_job_state state;
    uint64_t submit_us;
    uint64_t work_us;     /* all of it: under Muri's rules more than trace->duration_ms */
    uint64_t left_us;     /* of it, at since_us */
    uint64_t since_us;    /* runs: since then without a change */
    uint64_t own_ns;      /* an iteration alone; 0: the trace has no stages, nobody joins */
    uint64_t cycle_ns;    /* runs: an iteration beside those who share its devices */
    uint64_t lost_us;     /* at every event, alone */
    uint64_t all_lost_us; /* runs: the same of it and its partners together */
    uint64_t stopped_at;  /* the decision that stopped it while it ran */
    uint64_t end_us;      /* runs: when it will be done */
    uint32_t heap_at;     /* its place among the ends */
    uint32_t first_device; /* it holds, the others behind */
    uint32_t partner; /* runs: the next in the ring of those on its devices; itself alone */
    bool stale;       /* a partner left: the ring's pace is to be made anew */
};

struct jobsim {
    const struct trace *trace;
    struct jobsim_options options;
    struct cluster cluster;
    uint64_t now_us;
    struct sim_job *jobs; /* in the order in which they come */
    uint32_t job_count;

    /* The simulator's own. */
    const struct job_policy *policy;
    void *state;       /* the policy's */
    uint32_t *ends;    /* heap of the running jobs by (end_us, index) */
    uint32_t running;  /* in it */
    uint32_t live;     /* waiting or running */
    uint32_t *stopped; /* jobs that ran when the decision at hand began */
    uint32_t stopped_count;
    uint32_t *next_device; /* the next one of the same job */
    uint32_t *device;      /* the policy's: room for one job's devices */
    uint32_t *scratch;     /* the policy's: room for all jobs */
    uint32_t next_job;     /* the first that has not come yet */
    uint64_t tick_us;      /* when the policy wants to be asked again */
    uint64_t decisions, starts;
    uint32_t idle_decisions; /* in a row, with nothing running and nothing to come */
    uint32_t doubled;        /* devices that running jobs hold beyond the first on each */
    unsigned __int128 lent;  /* device-microseconds */
    unsigned __int128 lent_again; /* of them, what had a holder already */
    struct sl_err *err;
    int rc; /* the first violation */
};

struct job_policy {
    int (*create)(struct jobsim *sim, void **state); /* 0, or -1: out of memory */
    void (*submit)(struct jobsim *sim, void *state, uint32_t job);
    void (*finish)(struct jobsim *sim, void *state, uint32_t job);
    uint64_t (*decide)(struct jobsim *sim, void *state);
    void (*destroy)(void *state);
    const void *config; /* what tells rows with the same functions apart */
};

/* Start on these devices, as many as the job asks for. */
void jobsim_start(struct jobsim *sim, uint32_t job, const uint32_t *device);
/* Start on the devices of a running job of as many, and share them with it and its partners:
 * from then on all take turns at Muri's stages (muri_cycle_ns). */
void jobsim_join(struct jobsim *sim, uint32_t job, uint32_t host);
/* Start where the rules' search finds room; false if it finds none. */
bool jobsim_try_start(struct jobsim *sim, uint32_t job);
void jobsim_stop(struct jobsim *sim, uint32_t job);
/* What stopping costs: so much work more.  The job waits. */
void jobsim_add_work(struct jobsim *sim, uint32_t job, uint64_t us);
/* The run cannot go on: what is against the rules, or not to be had. */
void jobsim_violation(struct jobsim *sim, const char *what);
/* The price of stopping under Helios' rules. */
uint64_t jobsim_checkpoint_us(uint32_t devices);

/* Work left, and time on devices, at this moment. */
uint64_t jobsim_left_us(const struct jobsim *sim, uint32_t job);
uint64_t jobsim_ran_us(const struct jobsim *sim, uint32_t job);

/* What a time on so many devices is in device-time; absurd ones are all the same. */
static inline uint64_t device_time(uint64_t us, uint32_t devices)
{
    uint64_t product;
    return __builtin_mul_overflow(us, devices, &product) ? UINT64_MAX : product;
}

/* By name, for these rules; NULL and an error for an unknown one. */
const struct job_policy *job_policy_find(const char *name, enum jobsim_rules rules,
                                         struct sl_err *err);

/* The iteration that `count` jobs have in common on the same devices, each with its stages
 * (muri.c). */
#define MURI_MOST_PARTNERS 4
uint64_t muri_cycle_ns(const struct trace_stages *const *jobs, uint32_t count);

/* Muri's start overhead of a job that trains this model on so many devices. */
uint64_t muri_start_overhead_us(const char *model, uint32_t devices);

/* jobsim_run with a policy that need not be in the table. */
int jobsim_run_policy(const struct job_policy *policy, const char *name,
                      const struct trace *trace, const char *nodes,
                      const struct jobsim_options *options, struct jobsim_result *out,
                      struct sl_err *err);

extern const struct job_policy job_policy_fifo, job_policy_sjf, job_policy_qssf;
extern const struct job_policy job_policy_srtf_helios, job_policy_srsf_helios;
extern const struct job_policy job_policy_srtf_muri, job_policy_srsf_muri;
extern const struct job_policy job_policy_tiresias_muri, job_policy_tiresias_lucid;
extern const struct job_policy job_policy_sluice_shared;
extern const struct job_policy job_policy_sluice, job_policy_sluice_blind,
    job_policy_sluice_history, job_policy_sluice_told;

#endif
