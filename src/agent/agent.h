/*
 * The agent's state, and who may do what with it.
 *
 * One thread, one loop (agent.c).  Every change of a lease goes through
 * `agent_save()` before anyone is told: the API's caller, the broker or the
 * shim.  What the broker holds is re-stated whenever a broker is new.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "backend/backend.h"
#include "broker_link.h"
#include "cgroup.h"
#include "journal.h"
#include "model/device.h"
#include "model/lease.h"
#include "os/proc.h"
#include "os/rundir.h"
#include "place.h"
#include "sampler.h"
#include "usage.h"

#define AGENT_MAX_DEVICES   PROTO_MAX_DEVICES
#define AGENT_MAX_WAITERS   8   /* callers that wait for one lease's end */
#define AGENT_KEEP_RELEASED 256 /* ended leases that `ps -a` still shows */
#define AUDIT_MAX_SUSPECTS  64  /* ungated processes told apart per lease */
#define OPTIONS_MAX_GIVEN   40

struct agent_options {
    const char *run_dir;
    bool embedded, foreground, share_tenants;
    uint64_t idle_exit_ms;    /* embedded: after the last lease */
    uint64_t orphan_grace_ms; /* for a lease that is never anchored */
    uint64_t kill_grace_ms;   /* between SIGTERM and SIGKILL */
    char reserve[32];         /* "2GiB" or "10%"; empty: the backend's figure */
    uint64_t turn_ms;         /* base turn of every device; 0: the broker's own */
    uint32_t mem_overcommit_permille;
    const char *backend[BACKEND_MAX_NAMES];
    uint32_t backend_count; /* 0: as --emulate implies */
    struct backend_options probe;
    int ready_fd;                         /* -1: none */
    const char *given[OPTIONS_MAX_GIVEN]; /* those that a follower takes over */
    uint32_t given_count;
};

/* Of an earlier agent's options, as they are typed; empty: none. */
struct options_change {
    char taken[300], lost[300];
};

struct agent;

/* A descriptor in the loop. */
struct watch {
    int fd; /* -1: not in the loop */
    void (*ready)(struct agent *a, struct watch *w);
    void *owner;
};

/* A process that maps a vendor library and has not said hello. */
struct suspect_process {
    struct proc_id id;
    uint64_t since_ns;
    bool reported;
};

struct agent_lease {
    struct lease l;
    struct lease_request q; /* of a pending one */

    struct api_request *waiting;                 /* PENDING: who is answered at the grant */
    uint64_t wait_until_ns;                      /* UNKNOWN_U64: for ever */
    struct api_request *ends[AGENT_MAX_WAITERS]; /* who is answered at the end */
    uint32_t end_count;
    json_t *job;      /* submit: what to start; owned; agent_save() lets go of it */
    size_t job_bytes; /* of it in a record */

    bool unsaved;                         /* the journal could not take the last change */
    bool by_run;                          /* has a command: returns if never anchored */
    struct watch shim, caller;            /* pidfds */
    uint64_t unanchored_until_ns;         /* 0: anchored, or persistent */
    bool shim_gone;                       /* its pidfd fired without a report */
    uint64_t expires_ns;                  /* --time; 0: none */
    uint64_t kill_at_ns, kill_shim_at_ns; /* DRAINING; 0: done */
    pid_t child;                          /* as anchored, of this agent's life */

    struct sampler sampler[LEASE_MAX_SLICES];
    struct usage_base usage[LEASE_MAX_SLICES]; /* counted by brokers before this one */
    uint64_t kept_held_ns;                     /* as the journal last had it */
    struct suspect_process suspect[AUDIT_MAX_SUSPECTS];
    uint32_t suspect_count, ungated_processes;
};

/* A process that said hello to the broker. */
struct agent_client {
    uint64_t lease;
    struct proc_id id;
};

struct agent {
    struct agent_options o;
    struct rundir dir;
    json_t *earlier; /* options of the agent before; NULL: unknown */
    struct options_change change;
    char program_dir[256];
    uint64_t started_ns;
    int lock_fd, epoll_fd;
    bool homeless; /* the run directory was removed: its paths may be another agent's */
    struct watch listen, signals, broker_watch;
    struct api_server *api;
    struct journal *journal;
    struct broker_link broker;
    uint64_t broker_retry_ns; /* not before */
    struct cgroup_host cgroups;
    char placement[24]; /* how a front gets into jobs of root */
    bool front_ready;   /* the front's copies are in place */

    struct device device[AGENT_MAX_DEVICES]; /* by index, with gaps where one is gone */
    uint32_t device_count;
    uint64_t device_deliverable_ns[AGENT_MAX_DEVICES]; /* at the device's index */
    struct sampler device_sampler[AGENT_MAX_DEVICES];  /* there too */

    struct agent_lease **lease;
    uint32_t lease_count, lease_room;
    uint64_t next_number;
    struct agent_client *client;
    uint32_t client_count, client_room;

    uint64_t idle_since_ns, next_sample_ns, usage_kept_ns;
    bool ended_files_grew;    /* a lease ended since they were counted */
    bool ending;              /* leave the loop */
    bool end_broker;          /* and take the broker along */
    struct api_request *down; /* `sluice down`, answered at the end */
};

/* ---- agent.c: the loop ---- */

/* Take the run directory.  -SL_CONFLICT: another agent has it, and answers. */
int agent_init(struct agent *a, const struct agent_options *o, struct sl_err *err);
/* Journal, devices, broker, socket: when it returns 0, callers are answered. */
int agent_start(struct agent *a, struct sl_err *err);
int agent_run(struct agent *a, struct sl_err *err);
void agent_finish(struct agent *a);
int agent_watch(struct agent *a, struct watch *w, struct sl_err *err);
void agent_unwatch(struct agent *a, struct watch *w); /* closes it */
void agent_path(const struct agent *a, const char *name, char *out, size_t size);
uint64_t agent_wall_ms(void);

/* ---- table.c: leases and their records ---- */

struct agent_lease *agent_add(struct agent *a, uint64_t number, struct sl_err *err);
/* By id or name; a name means a live lease of `uid`, then anybody's, then an ended one. */
struct agent_lease *agent_find(struct agent *a, const char *id, uid_t uid);
struct agent_lease *agent_find_number(struct agent *a, uint64_t number);
bool agent_lease_is_live(const struct agent_lease *al);
/* `job` is taken. */
void agent_set_job(struct agent_lease *al, json_t *job);
uint32_t agent_live_count(const struct agent *a);
/* Of those, the ones that hold a slice: what waits knows no device. */
uint32_t agent_held_count(const struct agent *a);
/* Write it to the journal; on failure the record is marked unsaved and tried again by
 * agent_tidy().  Callers that must not go on without it look at the result.  With the first
 * record that does not carry its job, the job goes. */
int agent_save(struct agent *a, struct agent_lease *al, struct sl_err *err);
int agent_open_journal(struct agent *a, struct sl_err *err);
int agent_save_options(struct agent *a, struct sl_err *err);
int agent_save_device(struct agent *a, const struct device *d, struct sl_err *err);
/* Compact the journal, cut the logs, forget what ended long ago. */
void agent_tidy(struct agent *a);
int agent_compact(struct agent *a, struct sl_err *err);
/* The agent's own uid or root. */
bool agent_may_end(uid_t uid);
/* Its uid or root. */
bool agent_may_change(const struct agent_lease *al, const struct api_caller *c);
json_t *agent_lease_json(const struct agent *a, const struct agent_lease *al);
json_t *agent_job_json(const struct agent *a, const struct agent_lease *al);

/* ---- inventory.c ---- */

/* Probe, give out indexes that the journal keeps, state. */
int inventory_build(struct agent *a, struct sl_err *err);
struct device *inventory_find_index(struct agent *a, uint32_t index);
/* As the journal has it: the last word on an index, and on an id. */
void inventory_replay(struct agent *a, const struct device *d);
/* Those that are no longer found go with their last lease. */
void inventory_forget_gone(struct agent *a);
/* Bytes of "2GiB" or "10%" of so much memory. */
int inventory_reserve(const char *text, uint64_t memory_bytes, uint64_t *out,
                      struct sl_err *err);

/* ---- broker side (restate.c) ---- */

int restate_open(struct agent *a,
                 struct sl_err *err); /* connect or start, then state all */
int restate_device(struct agent *a, struct device *d, struct sl_err *err);
/* over_bytes may be NULL. */
int restate_lease(struct agent *a, struct agent_lease *al, uint64_t *over_bytes,
                  struct sl_err *err);
int restate_anchor(struct agent *a, struct agent_lease *al, struct sl_err *err);
void restate_drop(struct agent *a, const struct agent_lease *al);

/* ---- lease.c: from request to grant ---- */

void lease_create_op(void *ctx, struct api_request *r, const struct lease_request *q,
                     const char *command, bool dry_run);
/* `job` is taken: a lease that starts a job when it is granted. */
void lease_ask(struct agent *a, struct api_request *r, const struct lease_request *q,
               const char *command, bool dry_run, json_t *job);
/* The process that shall anchor a submitted job: the lease ends with it until then. */
void lease_watch_starter(struct agent *a, struct agent_lease *al, pid_t pid);
/* Room was returned: grant what waits, in order. */
void lease_retry_pending(struct agent *a);
/* Returns what agent_save() does; `err` may be NULL. */
int lease_refuse_pending(struct agent *a, struct agent_lease *al, const struct sl_err *why,
                         struct sl_err *err);
/* One that holds nothing is released; returns what agent_save() does. */
int lease_end(struct agent *a, struct agent_lease *al, const char *why, struct sl_err *err);
/* Time passed: waits that ended, leases that expired or were never anchored. */
void lease_tick(struct agent *a, uint64_t now_ns);
void lease_arm_timers(struct agent *a, struct agent_lease *al);

/* ---- drain.c: from the end of use to released ---- */

void drain_start(struct agent *a, struct agent_lease *al, const char *why);
void drain_tick(struct agent *a, uint64_t now_ns);
/* Release it if nothing of it lives any more. */
bool drain_try_finish(struct agent *a, struct agent_lease *al);
uint32_t drain_pids(const struct agent *a, const struct agent_lease *al, pid_t *pids,
                    uint32_t room);
void drain_release_op(void *ctx, struct api_request *r, const char *id);

/* ---- keep.c: what is kept of ended leases ---- */

/* Records, at most AGENT_KEEP_RELEASED, and files, as os/room.h allows; the oldest go. */
void keep_tidy(struct agent *a);
void keep_clear_op(void *ctx, struct api_request *r);

/* ---- resize.c, anchor.c, job.c, ops.c ---- */

void resize_op(void *ctx, struct api_request *r, const char *id, const json_t *patch);
void anchor_op(void *ctx, struct api_request *r, const char *id, pid_t child);
void anchor_exit_op(void *ctx, struct api_request *r, const char *id, int exit_status);
/* After a restart: find the shim again, or learn that it ended, or start it. */
void anchor_adopt(struct agent *a, struct agent_lease *al);
void job_submit_op(void *ctx, struct api_request *r, const struct lease_request *q,
                   const json_t *job);
void job_list_op(void *ctx, struct api_request *r, bool all);
void job_log_op(void *ctx, struct api_request *r, const char *id);
/* The directory that the job's shim writes to. */
int job_make_dir(const struct agent *a, const struct agent_lease *al, struct sl_err *err);
/* Start the shim of a granted submit; on failure the lease ends. */
int job_start(struct agent *a, struct agent_lease *al, struct sl_err *err);
extern const struct api_ops agent_ops;

/* ---- once a second ---- */

void telemetry_sample(struct agent *a, uint64_t now_ns);      /* telemetry.c */
void telemetry_last(struct agent *a, struct agent_lease *al); /* of a lease that ends */
/* The broker is a new one: what is shown of a lease is where its figures go on. */
void telemetry_rebase(struct agent *a);
void telemetry_refresh(struct agent *a);          /* for an answer: the newest figures */
void audit_run(struct agent *a, uint64_t now_ns); /* audit.c */
void front_copy(struct agent *a);                 /* front_copy.c, at start */
void front_remove(const struct agent *a);         /* with the broker's end */

#endif
