/* sluice-sim jobs: a trace under policies, as JSON or a table. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "sim/command.h"
#include "sim/jobstats.h"
#include "sim/schedlog.h"

#define MAX_POLICIES 16
#define TIE_ORDERS   10 /* where --ties does not say */

struct plan {
    struct trace trace;
    struct jobsim_options options;
    const char *nodes;
    unsigned policies[MAX_POLICIES], count;
    uint32_t orders;
};

static bool has_ties(const struct trace *t)
{
    for (uint32_t i = 1; i < t->job_count; i++)
        if (t->jobs[i].submit_ms == t->jobs[i - 1].submit_ms)
            return true;
    return false;
}

/* Muri's order of ties is part of what was published. */
static uint32_t orders_of(const struct sim_args *args, const struct plan *p)
{
    uint32_t usual = p->options.rules == JOBSIM_MURI ? 1 : TIE_ORDERS;
    return has_ties(&p->trace) ? sim_count(args, "ties", usual) : 1;
}

/* A log is of one run. */
static int open_log(const struct sim_args *args, struct plan *p, struct sl_err *err)
{
    const char *path = sim_value(args, "log");
    if (!path)
        return 0;
    if (p->count != 1 || !jobsim_policy_has_log(p->policies[0]))
        return sl_fail(err, SL_INVALID,
                       "--log: of one of our own policies; --policy says which");
    p->orders = 1;
    return schedlog_create(path, &p->options.log, err);
}

static int make_plan(const struct sim_args *args, struct plan *p, struct sl_err *err)
{
    const char *names[MAX_POLICIES], *format = sim_value(args, "format");
    unsigned count = 0, chosen;
    while (count < MAX_POLICIES && jobsim_policy_name(count)) {
        names[count] = jobsim_policy_name(count);
        count++;
    }
    int rc = sim_choose("policy", sim_value(args, "policy"), names, count, p->policies,
                        &p->count, err);
    if (rc == 0)
        rc = trace_open(format, sim_value(args, "trace"), &p->trace, err);
    if (rc < 0)
        return rc;
    p->nodes = sim_value(args, "nodes");
    p->options = jobsim_options_of(format);
    chosen = p->count;
    for (unsigned i = p->count = 0; i < chosen; i++) /* all: those that can be run */
        if (sim_value(args, "policy") ||
            jobsim_policy_under(p->policies[i], p->options.rules))
            p->policies[p->count++] = p->policies[i];
    p->options.start_overhead &= !sim_has(args, "no-start-overhead");
    p->orders = orders_of(args, p);
    return open_log(args, p, err);
}

/* The file's own order counts as one only where it is the only one. */
static int run_policy(struct sim *sim, struct plan *p, unsigned i, struct jobstats *stats,
                      struct sl_err *err)
{
    const char *policy = jobsim_policy_name(p->policies[i]);
    int rc = 0;
    for (uint32_t order = 0; order < p->orders && rc == 0; order++) {
        AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
        p->options.tie_order = p->orders == 1 ? 0 : order + 1;
        sim_progress(sim, policy, i * p->orders + order, p->count * p->orders);
        rc = jobsim_run(policy, &p->trace, p->nodes, &p->options, &r, err);
        if (rc == 0)
            rc = jobstats_add(stats, &p->trace, &r, err);
    }
    return rc;
}

static int print_json(FILE *out, const struct plan *p, const struct jobstats *stats,
                      struct sl_err *err)
{
    bool ok = true;
    AUTO_JSON json_t *all = json_object();
    json_t *list = json_array();
    for (unsigned i = 0; i < p->count; i++) {
        const char *policy = jobsim_policy_name(p->policies[i]);
        if (json_array_append_new(list, jobstats_json(&stats[i], policy)) < 0)
            ok = false;
    }
    json_put(all, "policies", list, &ok);
    if (!ok || json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) < 0)
        return sl_fail(err, SL_INTERNAL, "the report cannot be written");
    fputc('\n', out);
    return 0;
}

static void print_seconds(FILE *out, double s)
{
    if (s < 0)
        fprintf(out, " %12s", "-");
    else
        fprintf(out, " %12.1f", s);
}

static void print_table(FILE *out, const struct plan *p, const struct jobstats *stats)
{
    fprintf(out, "%-14s %12s %12s %12s %12s %12s %9s %6s\n", "policy", "avg JCT s",
            "p50 JCT s", "p99 JCT s", "avg wait s", "makespan s", "preempted", "held %");
    for (unsigned i = 0; i < p->count; i++) {
        const struct jobstats *s = &stats[i];
        fprintf(out, "%-14s", jobsim_policy_name(p->policies[i]));
        print_seconds(out, s->avg_jct_s);
        print_seconds(out, s->p50_jct_s);
        print_seconds(out, s->p99_jct_s);
        print_seconds(out, s->avg_wait_s);
        print_seconds(out, s->makespan_s);
        fprintf(out, " %9.0f %6.1f\n", s->preemptions, s->held_pct);
    }
    fprintf(out, "\n%u jobs on %s", stats->jobs, p->nodes);
    if (stats->cpu_jobs)
        fprintf(out, "; %u more ask for no device", stats->cpu_jobs);
    if (stats->rejected)
        fprintf(out, "; %u more do not fit into these nodes and were rejected",
                stats->rejected);
    if (p->orders > 1)
        fprintf(out, "\nmeans over %u orders of the jobs submitted at the same moment",
                p->orders);
    fputc('\n', out);
}

int sim_cmd_jobs(struct sim *sim, const struct sim_args *args)
{
    struct plan p = { 0 };
    struct jobstats stats[MAX_POLICIES] = { 0 };
    struct sl_err err = { 0 };
    int rc = make_plan(args, &p, &err);
    for (unsigned i = 0; i < p.count && rc == 0; i++)
        rc = run_policy(sim, &p, i, &stats[i], &err);
    sim_progress(sim, "", 1, 1);
    if (rc == 0 && sim_has(args, "json"))
        rc = print_json(sim->out, &p, stats, &err);
    else if (rc == 0)
        print_table(sim->out, &p, stats);
    trace_finish(&p.trace);
    int closed = schedlog_close(p.options.log, rc ? NULL : &err);
    rc = rc ? rc : closed;
    return rc < 0 ? sim_fail(sim, &err) : 0;
}
