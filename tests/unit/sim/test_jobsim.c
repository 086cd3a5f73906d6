/* The job simulator on traces made by hand, with results computed by hand. */
#include "../rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "jobs/policy.h"
#include "sim/jobstats.h"

#define CSV "job_id,submit_s,gpu_num,duration_s,owner\n"
#define MURI                                                                           \
    "job_id,num_gpu,submit_time,iterations,model_name,iteration_time,resource_time_0," \
    "resource_time_1,resource_time_2\n"

static const struct jobsim_options helios = { .rules = JOBSIM_HELIOS },
                                   muri = { .rules = JOBSIM_MURI, .start_overhead = true },
                                   muri_without = { .rules = JOBSIM_MURI };

/* Rows below the header of the format that goes with the rules. */
static void read_rows(enum jobsim_rules rules, const char *rows, struct trace *out)
{
    AUTO_TEXT struct text text = { 0 };
    AUTO_FREE char *all = NULL;
    struct sl_err err;
    bool is_muri = rules == JOBSIM_MURI;
    if (asprintf(&all, "%s%s", is_muri ? MURI : CSV, rows) < 0 ||
        text_copy("rows", all, &text, &err) < 0 ||
        trace_read(is_muri ? "muri" : "csv", &text, out, &err) < 0)
        fail_msg("%s", err.msg);
}

static void say_outcome(struct buf *said, const struct jobsim_outcome *o)
{
    if (o->fate == JOBSIM_CPU)
        buf_add(said, " cpu");
    else if (o->fate == JOBSIM_REJECTED)
        buf_add(said, " rejected");
    else
        buf_addf(said, " %.10g-%.10g", (double)o->start_us / 1e6, (double)o->end_us / 1e6);
    if (o->preemptions)
        buf_addf(said, "(%u)", o->preemptions);
}

/* "a 0-10 b 10-15.5(2)": first start and end of each job, and how often it was stopped.
 * Or the error.  The caller frees. */
static char *run(const char *policy, const char *nodes,
                 const struct jobsim_options *options, const char *rows)
{
    AUTO_TRACE struct trace t = { 0 };
    AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
    struct buf said = { 0 };
    struct sl_err err = { 0 };
    read_rows(options->rules, rows, &t);
    if (jobsim_run(policy, &t, nodes, options, &r, &err) < 0)
        buf_add(&said, err.msg);
    for (uint32_t i = 0; i < r.count; i++) {
        buf_addf(&said, "%s%s", i ? " " : "", names_text(&t.ids, t.jobs[i].id));
        say_outcome(&said, &r.outcomes[i]);
    }
    return buf_take(&said);
}

struct row {
    const char *label, *policy, *nodes, *rows, *want;
};

static void check_rows(const struct row *rows, size_t count,
                       const struct jobsim_options *options)
{
    for (size_t i = 0; i < count; i++) {
        AUTO_FREE char *have = run(rows[i].policy, rows[i].nodes, options, rows[i].rows);
        ROW_STR(rows[i].label, have, rows[i].want);
    }
}

/* ---- by hand: helios' rules ---- */

static void queues(void **state)
{
    static const struct row rows[] = {
        { "the first holds up all behind", "fifo", "1x2", "a,0,1,10,\nb,1,2,5,\nc,2,1,1,\n",
          "a 0-10 b 10-15 c 15-16" },
        { "equal moments in the order of the file", "fifo", "1x1", "b,0,1,10,\na,0,1,5,\n",
          "b 0-10 a 10-15" },
        { "the shortest first", "sjf", "1x2", "a,0,2,10,\nb,1,2,5,\nc,2,2,1,\n",
          "a 0-10 b 11-16 c 10-11" },
        { "the shortest holds up who would fit", "sjf", "1x2",
          "a,0,1,10,\nb,1,2,5,\nc,2,1,6,\n", "a 0-10 b 10-15 c 15-21" },
        { "what its owner ran before decides", "qssf", "1x1",
          "a,0,1,100,x\nb,1,1,10,y\nc,150,1,100,z\nd,160,1,5,x\ne,170,1,50,y\n",
          "a 0-100 b 100-110 c 150-250 d 300-305 e 250-300" },
        { "the mean of the last two runs", "qssf", "1x1",
          "a,0,1,100,x\nb,0,1,10,x\nc,0,1,30,x\nd,200,1,60,y\ne,300,1,100,z\n"
          "f,310,1,1,y\ng,320,1,1,x\n",
          "a 0-100 b 100-110 c 110-140 d 200-260 e 300-400 f 401-402 g 400-401" },
        { "times its devices", "qssf", "1x4",
          "a,0,1,30,x\nb,0,2,20,y\nz,100,4,10,z\nc,101,1,1,x\nd,101,1,1,y\nf,101,3,1,y\n",
          "a 0-30 b 0-20 z 100-110 c 110-111 d 110-111 f 111-112" },
    };
    check_rows(rows, ARRAY_LEN(rows), &helios);
}

static void places(void **state)
{
    static const struct row rows[] = {
        { "two halves of nodes are no place", "fifo", "2x3",
          "a,0,2,9,\nb,0,2,9,\nc,0,2,9,\n", "a 0-9 b 0-9 c 9-18" },
        { "the fullest node that fits", "fifo", "2x3", "a,0,2,9,\nb,0,1,9,\nc,0,3,9,\n",
          "a 0-9 b 0-9 c 0-9" },
        { "more than a node takes a whole one and a rest", "fifo", "3x2",
          "a,0,1,9,\nb,0,3,9,\nc,0,2,9,\n", "a 0-9 b 0-9 c 9-18" },
        { "the rest fits beside others", "fifo", "3x4", "a,0,3,9,\nb,0,9,9,\n",
          "a 0-9 b 0-9" },
        { "a job of CPU only runs beside", "fifo", "1x1", "a,0,1,10,\nb,1,0,5,\nc,2,1,1,\n",
          "a 0-10 b cpu c 10-11" },
        { "too large is rejected, and holds up nobody", "fifo", "1x8",
          "a,0,9,10,\nb,1,8,5,\n", "a rejected b 1-6" },
        { "nothing but CPU jobs", "tiresias", "1x1", "a,0,0,10,\n", "a cpu" },
        { "nothing that fits", "srtf", "1x1", "a,0,2,10,\n", "a rejected" },
    };
    check_rows(rows, ARRAY_LEN(rows), &helios);
}

static void preemption(void **state)
{
    static const struct row rows[] = {
        { "stopping costs 7 s on one device", "srtf", "1x1", "a,0,1,100,\nb,10,1,5,\n",
          "a 0-112(1) b 10-15" },
        { "30 s on a node", "srtf", "1x2", "a,0,2,100,\nb,10,1,5,\n",
          "a 0-135(1) b 10-15" },
        { "60 s on more than a node", "srtf", "2x8", "a,0,16,100,\nb,10,1,5,\n",
          "a 0-165(1) b 10-15" },
        { "who has less left is not stopped", "srtf", "1x1", "a,0,1,100,\nb,97,1,5,\n",
          "a 0-100 b 100-105" },
        { "equal ones: the waiting one first", "srtf", "1x1", "a,0,1,100,\nb,60,1,40,\n",
          "a 0-147(1) b 60-100" },
        /* At 10 b is given two devices by number, and d none; but no node has two. */
        { "stopped for one that then finds no room", "srtf", "2x2",
          "a,0,1,50,\nx,0,1,5,\nc,1,1,60,\nd,2,1,100,\nb,10,2,3,\n",
          "a 0-50 x 0-5 c 1-61 d 2-149(1) b 50-53" },
        { "the least time x devices first", "srsf", "1x2", "a,0,2,10,\nb,1,1,15,\n",
          "a 0-55(1) b 1-16" },
        { "by time alone it is the other way", "srtf", "1x2", "a,0,2,10,\nb,1,1,15,\n",
          "a 0-10 b 10-25" },
        /* 18,000 s, a whole minute; b ends between minutes, a goes on at the next. */
        { "one threshold, asked every minute", "tiresias", "1x1",
          "a,0,1,30000,\nb,100,1,1000,\n", "a 0-31027(1) b 18000-19000" },
        { "device-time counts, not time", "tiresias", "1x2", "a,0,2,30000,\nb,9,1,1000,\n",
          "a 0-31050(1) b 9000-10000" },
        { "nobody starts between minutes", "tiresias", "1x1", "a,30,1,60,\nb,40,1,60,\n",
          "a 60-120 b 120-180" },
    };
    check_rows(rows, ARRAY_LEN(rows), &helios);
}

static void our_own(void **state)
{
    static const struct row rows[] = {
        { "who had less so far goes first", "sluice-blind", "1x1",
          "a,0,1,100,\nb,50,1,10,\n", "a 0-117(1) b 50-60" },
        /* a has had 50 s; b is stopped when it has had 64, not 51 */
        { "in powers of two", "sluice-blind", "1x1", "a,0,1,100,\nb,50,1,100,\n",
          "a 0-171.001(1) b 50-214(1)" },
        { "told, the shorter one goes first", "sluice-told", "1x1",
          "a,0,1,100,\nb,10,1,5,\n", "a 0-112(1) b 10-15" },
        { "who has less left is not stopped", "sluice-told", "1x1",
          "a,0,1,100,\nb,97,1,5,\n", "a 0-100 b 100-105" },
        { "its owner's history says it is short", "sluice-history", "1x1",
          "a,0,1,5,x\nb,10,1,1000,y\nc,1100,1,1000,y\nd,1200,1,5,x\n",
          "a 0-5 b 10-1010 c 1100-2112(1) d 1200-1205" },
        { "more than a node: a whole one, and the rest beside another", "sluice", "3x2",
          "a,0,1,9,\nb,0,3,9,\nc,0,2,9,\n", "a 0-9 b 0-9 c 0-9" },
        { "too large is rejected", "sluice", "1x8", "a,0,9,10,\nb,1,8,5,\n",
          "a rejected b 1-6" },
    };
    check_rows(rows, ARRAY_LEN(rows), &helios);
}

/* ---- by hand: Muri's rules; an iteration takes 1.015 times its time ---- */

static void muri_by_hand(void **state)
{
    static const struct row rows[] = {
        { "the shortest remaining time", "srtf", "1x1",
          "a,1,0,1000,dqn,100,0,0,0\nb,1,10000,10,vgg16,100,0,0,0\n",
          "a 0-102.515(1) b 10-11.015" },
        { "the least remaining time x devices", "srsf", "1x2",
          "a,2,0,10,dqn,1000,0,0,0\nb,1,1000,15,dqn,1000,0,0,0\n",
          "a 0-25.375(1) b 1-16.225" },
        /* When a ends, b and c are put on the first node, and the second is free for f. */
        { "placed anew on the empty pool", "srtf", "2x2",
          "a,1,0,10,dqn,1000,0,0,0\nb,1,0,100,dqn,1000,0,0,0\nc,1,0,200,dqn,1000,0,0,0\n"
          "f,2,20000,1000,dqn,1000,0,0,0\n",
          "a 0-10.15 b 0-101.5 c 0-203 f 20-1035" },
        { "a threshold of 3,250 s", "tiresias", "1x1",
          "a,1,0,10000,dqn,1000,0,0,0\nb,1,100000,1000,dqn,1000,0,0,0\n",
          "a 0-11165(1) b 3250-4265" },
        { "and one of 7,200 s; in a queue the first come first", "tiresias", "1x1",
          "a,1,0,10000,dqn,1000,0,0,0\nb,1,100000,10000,dqn,1000,0,0,0\n",
          "a 0-17350(2) b 3250-20300(2)" },
        { "of device-time, in whole seconds", "tiresias", "1x4",
          "a,4,0,10000,dqn,1000,0,0,0\nb,4,100000,100,dqn,1000,0,0,0\n",
          "a 0-10251.5(1) b 813-914.5" },
        { "devices are counted, not placed", "tiresias", "2x4",
          "a,3,0,100,dqn,1000,0,0,0\nb,3,0,100,dqn,1000,0,0,0\nc,2,0,100,dqn,1000,0,0,0\n",
          "a 0-101.5 b 0-101.5 c 0-101.5" },
    };
    check_rows(rows, ARRAY_LEN(rows), &muri_without);
}

/* data, computing and talking of an iteration in milliseconds */
static void common_iterations(void **state)
{
    static const struct {
        const char *label;
        uint32_t count, ms[4][3];
        uint64_t want_ns;
    } rows[] = {
        { "alone: 1.015 times its time", 1, { { 40, 30, 20 } }, 101500000 },
        { "one loads while the other computes",
          2,
          { { 100, 0, 0 }, { 0, 100, 0 } },
          131034482 },
        { "two that only load do not meet",
          2,
          { { 100, 0, 0 }, { 100, 0, 0 } },
          131034482 },
        { "one after the other on the GPU",
          2,
          { { 0, 100, 0 }, { 0, 100, 0 } },
          262068965 },
        { "as wholes: 110 + 70", 2, { { 100, 60, 0 }, { 70, 80, 30 } }, 235862068 },
        { "three at three things",
          3,
          { { 90, 0, 0 }, { 0, 40, 0 }, { 0, 0, 40 } },
          133004926 },
        { "four: data has two of four slots",
          4,
          { { 100, 50, 50 }, { 100, 50, 50 }, { 100, 50, 50 }, { 100, 50, 50 } },
          269950738 },
        { "the slowest is waited for",
          4,
          { { 0, 10, 0 }, { 0, 10, 0 }, { 0, 10, 0 }, { 500, 10, 0 } },
          701871921 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace_stages s[4];
        const struct trace_stages *jobs[4];
        for (uint32_t k = 0; k < 4; k++) {
            s[k] = (struct trace_stages){ .iteration_us = 100000 };
            for (unsigned stage = 0; stage < 3; stage++)
                s[k].stage_us[stage] = rows[i].ms[k][stage] * 1000;
            jobs[k] = &s[k];
        }
        uint64_t have_ns = muri_cycle_ns(jobs, rows[i].count);
        if (have_ns != rows[i].want_ns)
            fail_msg("row \"%s\": have %llu", rows[i].label, (unsigned long long)have_ns);
    }
}

static void taking_turns(void **state)
{
    static const struct row rows[] = {
        { "who would wait shares, 1.291 times as long", "sluice-shared", "1x1",
          "a,1,0,100,dqn,100,100,0,0\nb,1,0,100,bert,100,0,100,0\n",
          "a 0-13.103449 b 0-13.103449" },
        { "not if both need the same", "sluice-shared", "1x1",
          "a,1,0,100,bert,100,0,100,0\nb,1,0,100,bert,100,0,100,0\n",
          "a 0-10.15 b 10.15-20.3" },
        { "nor on other devices than the host's", "sluice-shared", "1x2",
          "a,2,0,100,dqn,100,100,0,0\nb,1,0,300,bert,100,0,100,0\n",
          "a 0-10.15 b 10.15-40.6" },
        { "nor where there is room", "sluice-shared", "1x2",
          "a,1,0,100,dqn,100,100,0,0\nb,1,0,100,bert,100,0,100,0\n",
          "a 0-10.15 b 0-10.15" },
        /* b has 20.3 - 10.15 left when a ends */
        { "the guest goes on alone", "sluice-shared", "1x1",
          "a,1,0,100,dqn,100,100,0,0\nb,1,0,200,bert,100,0,100,0\n",
          "a 0-13.103449 b 0-23.253449" },
        { "its own lease as soon as there is room", "sluice-shared", "1x2",
          "a,1,0,100,dqn,100,100,0,0\nc,1,0,50,bert,100,0,100,0\nb,1,0,200,bert,100,0,100,"
          "0\n",
          "a 0-11.293879 c 0-5.075 b 0-21.443879" },
    };
    check_rows(rows, ARRAY_LEN(rows), &muri_without);
}

static void muri_start_overhead(void **state)
{
    static const struct row rows[] = {
        /* At 10 a loses 5 of its 10 s. */
        { "lost at an event", "srtf", "1x1",
          "a,1,0,1000,dqn,100,0,0,0\nb,1,10000,10,vgg16,100,0,0,0\n",
          "a 0-107.515(1) b 10-11.015" },
        /* At 20.15, b's end, 5 more. */
        { "at every event, though it ran on", "srtf", "1x2",
          "a,1,0,1000,dqn,100,0,0,0\nb,1,10000,100,vgg16,100,0,0,0\n",
          "a 0-111.5 b 10-20.15" },
        /* The 1.015 s between the events are less than 5. */
        { "never more than was won", "srtf", "1x2",
          "a,1,0,1000,dqn,100,0,0,0\nb,1,10000,10,vgg16,100,0,0,0\n",
          "a 0-107.515 b 10-11.015" },
        { "more on more devices: 46 s", "srtf", "2x8",
          "a,8,0,1000,a2c,100,0,0,0\nb,1,50000,10,vgg16,100,0,0,0\n",
          "a 0-148.515 b 50-51.015" },
        { "a model without a row: 10 s", "srtf", "1x2",
          "a,1,0,1000,other,100,0,0,0\nb,1,50000,10,vgg16,100,0,0,0\n",
          "a 0-112.515 b 50-51.015" },
        /* 5 and 7 s, both from both */
        { "partners lose each other's too", "sluice-shared", "1x1",
          "a,1,0,100,dqn,100,100,0,0\nb,1,0,100,vgg16,100,0,100,0\nc,2,13000,1,dqn,1,0,0,"
          "0\n",
          "a 0-25.103449 b 0-25.103449 c rejected" },
        { "under every policy", "fifo", "1x2",
          "a,1,0,1000,dqn,100,0,0,0\nb,1,10000,10,vgg16,100,0,0,0\n",
          "a 0-107.515 b 10-11.015" },
    };
    check_rows(rows, ARRAY_LEN(rows), &muri);
    ROW("3 devices count as 2", muri_start_overhead_us("resnet18", 3) == 5000000);
    ROW("4 as 4", muri_start_overhead_us("vgg16", 4) == 8000000);
    ROW("32 as 32", muri_start_overhead_us("vgg16", 32) == 10000000);
    ROW("64 as 32", muri_start_overhead_us("dqn", 64) == 8000000);
}

/* ---- orders of ties, statistics ---- */

static void tie_orders(void **state)
{
    bool seen_other = false, seen_file = false;
    const char *rows = "a,0,1,1,\nb,0,1,1,\nc,0,1,1,\nd,5,1,1,\n";
    AUTO_FREE char *file = run("fifo", "1x1", &helios, rows);
    ROW_STR("0 is the file's", file, "a 0-1 b 1-2 c 2-3 d 5-6");
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const struct jobsim_options o = { .rules = JOBSIM_HELIOS, .tie_order = seed };
        AUTO_FREE char *one = run("fifo", "1x1", &o, rows);
        AUTO_FREE char *again = run("fifo", "1x1", &o, rows);
        ROW_STR("a seed gives one order", one, again);
        ROW("only ties are mixed", !!strstr(one, "d 5-6"));
        seen_file |= !strcmp(one, file);
        seen_other |= !!strstr(one, "c 0-1");
    }
    ROW("all orders come up", seen_file && seen_other);
}

/* Jobs one after the other on one device: i ends at 2 (i + 1), after waiting 2 i. */
static void stats_of(uint32_t jobs, struct jobstats *s)
{
    AUTO_TRACE struct trace t = { 0 };
    AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
    AUTO_BUF struct buf rows = { 0 };
    struct sl_err err;
    for (uint32_t i = 0; i < jobs; i++)
        buf_addf(&rows, "%u,0,1,2,\n", i);
    buf_add(&rows, "cpu,0,0,5,\nlarge,0,2,5,\n");
    read_rows(JOBSIM_HELIOS, rows.text, &t);
    assert_int_equal(jobsim_run("fifo", &t, "1x1", &helios, &r, &err), 0);
    assert_int_equal(jobstats_add(s, &t, &r, &err), 0);
    assert_int_equal(jobstats_add(s, &t, &r, &err), 0);
}

static void averages_and_percentiles(void **state)
{
    struct jobstats some = { 0 }, many = { 0 };
    stats_of(19, &some);
    ROW("counts", some.jobs == 19 && some.cpu_jobs == 1 && some.rejected == 1);
    ROW("two runs", some.runs == 2);
    ROW("the mean of 2, 4, … 38", some.avg_jct_s == 20 && some.avg_wait_s == 18);
    ROW("of equal runs", some.least_avg_jct_s == 20 && some.largest_avg_jct_s == 20);
    ROW("9 beyond the median are too few", some.p50_jct_s == JOBSTATS_NONE);
    ROW("the last end", some.makespan_s == 38);
    ROW("always busy", some.held_pct == 100);
    stats_of(1000, &many);
    ROW("10 beyond it are enough", many.p99_jct_s == 1980 && many.p99_wait_s == 1978);
    ROW("half of them", many.p50_jct_s == 1000);
}

static void a_report(void **state)
{
    struct jobstats s = { 0 };
    stats_of(19, &s);
    AUTO_JSON json_t *j = jobstats_json(&s, "fifo");
    AUTO_FREE char *text = json_dumps(j, JSON_COMPACT);
    ROW_STR("as JSON", text,
            "{\"policy\":\"fifo\",\"jobs\":19,\"cpu_jobs\":1,\"rejected\":1,\"orders\":2,"
            "\"avg_jct_s\":20.0,\"least_avg_jct_s\":20.0,\"largest_avg_jct_s\":20.0,"
            "\"p50_jct_s\":null,\"p99_jct_s\":null,\"avg_wait_s\":18.0,"
            "\"p99_wait_s\":null,\"makespan_s\":38.0,\"preemptions\":0.0,"
            "\"held_pct\":100.0}");
}

/* ---- the simulator catches a policy that breaks its rules ---- */

static int no_state(struct jobsim *sim, void **state)
{
    *state = malloc(1);
    return *state ? 0 : -1;
}

static void ignore(struct jobsim *sim, void *state, uint32_t job) {}

static uint64_t never_starts(struct jobsim *sim, void *state)
{
    return JOBSIM_NEVER;
}

static uint64_t asks_for_ever(struct jobsim *sim, void *state)
{
    return sim->now_us + 1;
}

static uint64_t asks_for_now(struct jobsim *sim, void *state)
{
    return sim->now_us;
}

static uint64_t two_on_one(struct jobsim *sim, void *state)
{
    const uint32_t device[] = { 0, 1 };
    for (uint32_t i = 0; i < 2; i++)
        if (sim->jobs[i].state == SIM_JOB_WAITS)
            jobsim_start(sim, i, device);
    return JOBSIM_NEVER;
}

static uint64_t one_twice(struct jobsim *sim, void *state)
{
    const uint32_t device[] = { 1, 1 };
    jobsim_start(sim, 1, device);
    return JOBSIM_NEVER;
}

static uint64_t no_such_device(struct jobsim *sim, void *state)
{
    const uint32_t device[] = { 2 };
    jobsim_start(sim, 0, device);
    return JOBSIM_NEVER;
}

static uint64_t starts_twice(struct jobsim *sim, void *state)
{
    const uint32_t device[] = { 0 };
    jobsim_start(sim, 0, device);
    jobsim_start(sim, 0, device);
    return JOBSIM_NEVER;
}

static uint64_t stops_who_waits(struct jobsim *sim, void *state)
{
    jobsim_stop(sim, 0);
    return JOBSIM_NEVER;
}

static uint64_t burdens_who_runs(struct jobsim *sim, void *state)
{
    if (!sim->running && jobsim_try_start(sim, 0))
        jobsim_add_work(sim, 0, 1);
    return JOBSIM_NEVER;
}

static void violations_are_found(void **state)
{
    static const struct {
        const char *label;
        uint64_t (*decide)(struct jobsim *sim, void *state);
        const char *want;
    } rows[] = {
        { "a job is left", never_starts,
          "policy p: at 0 us: jobs wait, and nothing will happen any more" },
        { "for ever", asks_for_ever, "policy p: at 1000 us: jobs wait for ever" },
        { "the past", asks_for_now, "policy p: at 0 us: the policy asks for a time that" },
        { "a held device", two_on_one,
          "policy p: at 0 us, job of line 3: put on a device that is held" },
        { "a device twice", one_twice, "line 3: put on a device that is held" },
        { "no such device", no_such_device, "line 2: put on a device that is held" },
        { "a job twice", starts_twice, "line 2: started though it does not wait" },
        { "who waits", stops_who_waits, "line 2: stopped though it does not run" },
        { "more work", burdens_who_runs, "line 2: given more work though it does not" },
    };
    AUTO_TRACE struct trace t = { 0 };
    read_rows(JOBSIM_HELIOS, "a,0,1,10,\nb,0,2,10,\n", &t);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct job_policy p = { no_state, ignore, ignore, rows[i].decide, free };
        AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
        struct sl_err err = { 0 };
        ROW(rows[i].label,
            jobsim_run_policy(&p, "p", &t, "1x2", &helios, &r, &err) == -SL_INTERNAL);
        ROW(rows[i].label, !!strstr(err.msg, rows[i].want));
    }
}

static void bad_input(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    struct jobsim_result r = { 0 };
    struct sl_err err = { 0 };
    read_rows(JOBSIM_HELIOS, "a,0,1,10,\n", &t);
    ROW("no such policy", jobsim_run("fif", &t, "1x1", &helios, &r, &err) == -SL_INVALID);
    ROW_STR("its name", err.msg, "'fif' is no policy for jobs");
    ROW("not without stages",
        jobsim_run("sluice-shared", &t, "1x1", &helios, &r, &err) == -SL_INVALID);
    ROW_STR("which it needs", err.msg, "'sluice-shared' needs the stages of a muri trace");
    AUTO_BUF struct buf rows = { 0 };
    AUTO_TRACE struct trace absurd = { 0 };
    for (int i = 0; i < 2500; i++)
        buf_addf(&rows, "%d,0,1,1000000000,\n", i);
    read_rows(JOBSIM_HELIOS, rows.text, &absurd);
    ROW("79,000 years",
        jobsim_run("fifo", &absurd, "1x1", &helios, &r, &err) == -SL_INVALID);
    ROW_STR("is too long", err.msg,
            "the work of all jobs adds up to more than 70,000 years");
}

/* ---- random traces: the run checks itself ---- */

static uint32_t any(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)*seed * below) >> 32);
}

static char *random_rows(enum jobsim_rules rules, uint32_t *seed)
{
    static const char *const models[] = { "dqn", "a2c", "vgg16", "other" };
    struct buf rows = { 0 };
    uint32_t count = 1 + any(seed, 60), span = 1 + any(seed, 3000);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t devices = any(seed, 4) ? 1 + any(seed, 4) : any(seed, 20);
        uint32_t submit = any(seed, span), length = any(seed, 6) ? any(seed, 500) : 20000;
        if (rules == JOBSIM_MURI)
            buf_addf(&rows, "%u,%u,%u,%u,%s,%u,%u,%u,%u\n", i, devices, submit * 1000,
                     1 + length, models[any(seed, 4)], 1 + any(seed, 1500), any(seed, 700),
                     any(seed, 400), any(seed, 100));
        else
            buf_addf(&rows, "%u,%u,%u,%u.%03u,o%u\n", i, submit, devices, length,
                     any(seed, 1000), any(seed, 3));
    }
    return buf_take(&rows);
}

static void random_traces(void **state)
{
    static const char *const pools[] = { "1x1", "4x4", "2x8", "3x2" };
    const struct jobsim_options *const options[] = { &helios, &muri, &muri_without };
    uint32_t seed = 7;
    for (int round = 0; round < 60; round++) {
        const struct jobsim_options *o = options[round % 3];
        const char *pool = pools[any(&seed, ARRAY_LEN(pools))];
        AUTO_FREE char *rows = random_rows(o->rules, &seed);
        AUTO_TRACE struct trace t = { 0 };
        read_rows(o->rules, rows, &t);
        for (unsigned p = 0; jobsim_policy_name(p); p++) {
            if (!jobsim_policy_under(p, o->rules))
                continue;
            AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
            struct sl_err err = { 0 };
            if (jobsim_run(jobsim_policy_name(p), &t, pool, o, &r, &err) < 0)
                fail_msg("round %d: %s\n%s", round, err.msg, rows);
            for (uint32_t i = 0; i < r.count; i++)
                ROW("not before it came, not faster than its work",
                    r.outcomes[i].fate == JOBSIM_REJECTED ||
                        (r.outcomes[i].start_us >= t.jobs[i].submit_ms * 1000 &&
                         r.outcomes[i].end_us - r.outcomes[i].start_us >=
                             t.jobs[i].duration_ms * 1000));
        }
    }
}

/* ---- the pool ---- */

static void pools(void **state)
{
    static const struct {
        const char *label, *nodes, *want; /* "nodes devices largest", or the error */
    } rows[] = {
        { "a shape", "30x8", "30 240 8" },
        { "a node list, without its nodes of CPU only", SAMPLES "/openb_nodes.csv",
          "3 14 8" },
        { "no node", "0x8",
          "'0x8' is neither a shape such as 8x8 (nodes x devices) nor a"
          " file" },
        { "half a shape", "8x", "'8x' is neither" },
        { "more than a shape", "8x8x8", "'8x8x8' is neither" },
        { "negative", "-1x8", "'-1x8' is neither" },
        { "too many", "100000x100", "100000x100: more than 1000000 devices" },
        { "no such column", SAMPLES "/jobs.csv", "no column 'gpu'; the header is" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_CLUSTER struct cluster p = { 0 };
        struct sl_err err = { 0 };
        char have[300];
        if (cluster_open(rows[i].nodes, &p, &err) < 0)
            snprintf(have, sizeof have, "%s", err.msg);
        else
            snprintf(have, sizeof have, "%u %u %u", p.node_count, p.device_count,
                     p.largest_node);
        if (!strstr(have, rows[i].want))
            fail_msg("row \"%s\": have \"%s\", want \"%s\"", rows[i].label, have,
                     rows[i].want);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(queues),
    cmocka_unit_test(places),
    cmocka_unit_test(preemption),
    cmocka_unit_test(our_own),
    cmocka_unit_test(common_iterations),
    cmocka_unit_test(taking_turns),
    cmocka_unit_test(muri_by_hand),
    cmocka_unit_test(muri_start_overhead),
    cmocka_unit_test(tie_orders),
    cmocka_unit_test(averages_and_percentiles),
    cmocka_unit_test(a_report),
    cmocka_unit_test(violations_are_found),
    cmocka_unit_test(bad_input),
    cmocka_unit_test(random_traces),
    cmocka_unit_test(pools),
};
ROWS_MAIN(tests)
