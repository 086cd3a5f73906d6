/*
 * The published data sets, where they are: what traces.md and the papers say of them is
 * what we read.  In $SLUICE_TRACES, else in ../shared/data beside the source tree; what
 * is not there is skipped by name.
 */
#include "../rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/carbon.h"
#include "sim/fill.h"
#include "sim/gavel.h"
#include "sim/helios.h"
#include "sim/jobstats.h"
#include "sim/llm.h"
#include "sim/openb.h"
#include "sim/trace.h"

static void path_of(const char *name, char out[400])
{
    const char *dir = getenv("SLUICE_TRACES");
    snprintf(out, 400, "%s/%s", dir && *dir ? dir : SOURCE_ROOT "/../shared/data", name);
}

/* False, and the row's skip is printed, if the file is not there. */
static bool is_there(const char *name)
{
    char path[400];
    path_of(name, path);
    if (access(path, R_OK) == 0)
        return true;
    print_message("SKIP: the data set's %s is not in $SLUICE_TRACES or ../shared/data\n",
                  name);
    return false;
}

static void open_file(const char *name, struct text *out)
{
    char path[400];
    struct sl_err err;
    path_of(name, path);
    if (text_open(path, out, &err) < 0)
        fail_msg("%s", err.msg);
}

/* Skips the test if the file is not there. */
#define READ_FILE(name, read, ...)            \
    do {                                      \
        AUTO_TEXT struct text text_ = { 0 };  \
        struct sl_err err_;                   \
        if (!is_there(name))                  \
            skip();                           \
        open_file(name, &text_);              \
        if (read(&text_, __VA_ARGS__, &err_)) \
            fail_msg("%s", err_.msg);         \
    } while (0)

static void read_jobs(const char *format, const char *name, struct trace *out)
{
    AUTO_TEXT struct text text = { 0 };
    struct sl_err err;
    open_file(name, &text);
    if (trace_read(format, &text, out, &err) < 0)
        fail_msg("%s", err.msg);
}

#define SUM(array, count, member)                 \
    ({                                            \
        uint64_t sum_ = 0;                        \
        for (uint32_t i_ = 0; i_ < (count); i_++) \
            sum_ += (array)[i_].member;           \
        sum_;                                     \
    })

/* ---- openb ---- */

static void openb_has_1213_nodes(void **state)
{
    static const struct {
        const char *model;
        uint32_t gpus, nodes;
    } kinds[] = {
        { "T4", 2, 387 },     { "P100", 2, 131 }, { "V100M16", 1, 19 },
        { "V100M16", 4, 28 }, { "T4", 4, 17 },    { "V100M32", 4, 9 },
        { "G2", 8, 549 },     { "G3", 8, 39 },    { "V100M32", 8, 21 },
        { "V100M16", 8, 8 },  { "P100", 1, 3 },   { "A10", 1, 2 },
    };
    struct openb_nodes n;
    READ_FILE("openb/csv/openb_node_list_gpu_node.csv", openb_nodes_read, &n);
    ROW("1,213 nodes", n.count == 1213);
    ROW("6,212 GPUs", SUM(n.nodes, n.count, gpus) == 6212);
    ROW("107,018,000 CPU milli", SUM(n.nodes, n.count, cpu_milli) == 107018000);
    ROW("503,828,480 MiB", SUM(n.nodes, n.count, memory_mib) == 503828480);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        uint32_t found = 0, model = names_find(&n.models, kinds[k].model);
        for (uint32_t i = 0; i < n.count; i++)
            found += n.nodes[i].model == model && n.nodes[i].gpus == kinds[k].gpus;
        ROW(kinds[k].model, found == kinds[k].nodes);
    }
    openb_nodes_finish(&n);
}

static void openb_has_310_more_nodes_of_cpu_only(void **state)
{
    struct openb_nodes n;
    READ_FILE("openb/csv/openb_node_list_all_node.csv", openb_nodes_read, &n);
    uint32_t cpu_only = 0;
    for (uint32_t i = 0; i < n.count; i++)
        cpu_only += n.nodes[i].gpus == 0;
    ROW("1,523 nodes", n.count == 1523 && cpu_only == 310);
    ROW("the same GPUs", SUM(n.nodes, n.count, gpus) == 6212);
    openb_nodes_finish(&n);
}

/* A pod list with what it holds, and its ten orders. */
struct openb_row {
    const char *name;
    uint32_t pods, cpu_only, shares, singles, gangs, limited; /* to some models */
    uint64_t gpu_milli;                                       /* of 6,212,000 */
    uint32_t least_arrivals, most_arrivals;                   /* of the orders, at 130 % */
};

static const struct openb_row openb_rows[] = {
    { "default", 8152, 1088, 3078, 3911, 75, 0, 6086800, 10766, 10866 },
    { "multigpu20", 8324, 1088, 3078, 3911, 247, 0, 7086800, 9456, 9552 },
    { "multigpu30", 8508, 1088, 3078, 3911, 431, 0, 8086800, 8491, 8503 },
    { "multigpu40", 8746, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "multigpu50", 9061, 1088, 3078, 3911, 984, 0, 11358800, 6331, 6540 },
    { "gpushare20", 8152, 1088, 2324, 4653, 87, 0, 6531500, 10039, 10143 },
    { "gpushare40", 8152, 1088, 4001, 3001, 62, 0, 5641250, 11574, 11783 },
    { "gpushare60", 8152, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "gpushare80", 8152, 1088, 6279, 768, 17, 0, 4408190, 14942, 15058 },
    { "gpushare100", 8152, 1088, 7064, 0, 0, 0, 3952670, 16595, 16805 },
    { "gpuspec05", 8152, 1088, 3078, 3911, 75, 369, 6086800, 10766, 10866 },
    { "gpuspec10", 8152, 1088, 3078, 3911, 75, 732, 6086800, 10766, 10866 },
    { "gpuspec20", 8152, 1088, 3078, 3911, 75, 1444, 6086800, 10766, 10866 },
    { "gpuspec25", 8152, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "gpuspec33", 8152, 1088, 3078, 3911, 75, 2388, 6086800, 10766, 10866 },
    { "cpu037", 7336, 272, 3078, 3911, 75, 0, 6086800, 9660, 9765 },
    { "cpu050", 7439, 375, 3078, 3911, 75, 0, 6086800, 9833, 9960 },
    { "cpu072", 7608, 544, 3078, 3911, 75, 0, 6086800, 10038, 10117 },
    { "cpu100", 7853, 789, 3078, 3911, 75, 0, 6086800, 10378, 10504 },
    { "cpu200", 8832, 0, 0, 0, 0, 0, 0, 0, 0 },
    { "cpu235", 9240, 2176, 3078, 3911, 75, 0, 6086800, 12206, 12350 },
    { "cpu250", 9420, 2356, 3078, 3911, 75, 0, 6086800, 12462, 12609 },
    { "cpu300", 10094, 3030, 3078, 3911, 75, 0, 6086800, 13342, 13467 },
};

static void check_pods(const struct openb_row *row, const struct openb_pods *p)
{
    struct openb_row have = { .name = row->name, .pods = p->count };
    for (uint32_t i = 0; i < p->count; i++) {
        const struct openb_pod *pod = &p->pods[i];
        have.cpu_only += pod->gpus == 0;
        have.shares += pod->gpus == 1 && pod->gpu_milli < 1000;
        have.singles += pod->gpus == 1 && pod->gpu_milli == 1000;
        have.gangs += pod->gpus > 1;
        have.limited += pod->models != 0;
        have.gpu_milli += (uint64_t)pod->gpus * pod->gpu_milli;
    }
    ROW(row->name, have.pods == row->pods);
    if (!row->gpu_milli) /* only its length was ever told */
        return;
    ROW(row->name, have.cpu_only == row->cpu_only && have.shares == row->shares);
    ROW(row->name, have.singles == row->singles && have.gangs == row->gangs);
    ROW(row->name, have.limited == row->limited && have.gpu_milli == row->gpu_milli);
}

/* In each order the arrivals ask for 130 % of the GPUs, within one pod. */
static void check_orders(const struct openb_row *row, const struct openb_pods *p,
                         const struct openb_orders *o)
{
    uint32_t least = UINT32_MAX, most = 0;
    ROW(row->name, o->count == 10);
    for (uint32_t i = 0; i < o->count; i++) {
        const struct openb_order *order = &o->orders[i];
        uint64_t milli = 0;
        for (uint32_t k = 0; k < order->count; k++) {
            const struct openb_pod *pod = &p->pods[o->index[order->first + k]];
            milli += (uint64_t)pod->gpus * pod->gpu_milli;
        }
        ROW(row->name, order->seed == 42 + i);
        ROW(row->name, milli > 8075600 - 8000 && milli < 8075600 + 8000);
        least = order->count < least ? order->count : least;
        most = order->count > most ? order->count : most;
    }
    if (row->gpu_milli)
        ROW(row->name, least == row->least_arrivals && most == row->most_arrivals);
}

static void openb_pod_lists_and_their_orders(void **state)
{
    char name[100];
    unsigned found = 0;
    for (size_t i = 0; i < ARRAY_LEN(openb_rows); i++) {
        struct openb_pods p;
        struct openb_orders o;
        struct sl_err err;
        AUTO_TEXT struct text text = { 0 }, order = { 0 };
        snprintf(name, sizeof name, "openb/csv/openb_pod_list_%s.csv", openb_rows[i].name);
        if (!is_there(name))
            continue;
        found++;
        open_file(name, &text);
        if (openb_pods_read(&text, &p, &err) < 0)
            fail_msg("%s", err.msg);
        check_pods(&openb_rows[i], &p);
        snprintf(name, sizeof name, "openb/order/openb_pod_list_%s.order.gz",
                 openb_rows[i].name);
        if (is_there(name)) {
            open_file(name, &order);
            if (openb_orders_read(&order, p.count, &o, &err) < 0)
                fail_msg("%s", err.msg);
            check_orders(&openb_rows[i], &p, &o);
            openb_orders_finish(&o);
        }
        openb_pods_finish(&p);
    }
    if (!found)
        skip();
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void openb_pods_live_eleven_minutes(void **state)
{
    struct openb_pods p;
    uint64_t lives[9000];
    uint32_t gpu = 0, lived = 0, ls = 0, be = 0;
    READ_FILE("openb/csv/openb_pod_list_default.csv", openb_pods_read, &p);
    for (uint32_t i = 0; i < p.count && gpu < ARRAY_LEN(lives); i++) {
        if (p.pods[i].gpus == 0)
            continue;
        gpu++;
        if (p.pods[i].scheduled_s != OPENB_UNKNOWN)
            lives[lived++] = p.pods[i].deletion_s - p.pods[i].scheduled_s;
        ls += p.pods[i].qos == OPENB_LS;
        be += p.pods[i].qos == OPENB_BE;
    }
    qsort(lives, lived, sizeof *lives, by_value);
    ROW("GPU pods", gpu == 8152 - 1088);
    ROW("the median lives 655 s", lives[lived / 2] == 655);
    ROW("nine in ten at most 7,389 s", lives[lived * 9 / 10] == 7389);
    ROW("57 % latency sensitive", (ls * 100 + gpu / 2) / gpu == 57);
    ROW("42 % best effort", (be * 100 + gpu / 2) / gpu == 42);
    openb_pods_finish(&p);
}

/* 95.23 % of the GPUs are the published mean, and 95.07 … 95.27 what orders of the nodes
 * make of it; the first order of arrival in the file's order of nodes is near. */
static void fgd_fills_the_default_trace_as_published(void **state)
{
    struct openb_nodes n;
    struct openb_pods p;
    struct openb_orders o;
    struct fill_input in;
    static struct fill_result r;
    struct sl_err err;
    READ_FILE("openb/csv/openb_node_list_gpu_node.csv", openb_nodes_read, &n);
    READ_FILE("openb/csv/openb_pod_list_default.csv", openb_pods_read, &p);
    READ_FILE("openb/order/openb_pod_list_default.order.gz", openb_orders_read, p.count,
              &o);
    assert_int_equal(fill_input_make(&n, &p, &in, &err), 0);
    ROW("35 sorts are the target workload", in.target.count == 35);
    uint32_t *ties = calloc(in.node_count, sizeof *ties);
    assert_non_null(ties);
    for (uint32_t i = 0; i < in.node_count; i++)
        ties[i] = i;
    assert_string_equal(fill_policies[5].name, "fgd");
    if (fill_run(&in, &fill_policies[5], o.index, o.orders[0].count, ties, 0, &r, &err))
        fail_msg("%s", err.msg);
    ROW("allocated at 100 % arrived", r.alloc_pct[100] > 94.73 && r.alloc_pct[100] < 95.73);
    ROW("nothing refused that fits", r.refused > 0 && r.refused_though_fits == 0);
    free(ties);
    fill_input_finish(&in);
    openb_orders_finish(&o);
    openb_pods_finish(&p);
    openb_nodes_finish(&n);
}

/* ---- jobs ---- */

struct jobs_row {
    const char *format, *name;
    uint32_t jobs, owners, models;
    uint64_t devices;
    uint64_t device_ms; /* devices x duration; 0: not known */
    uint64_t last_submit_ms;
};

static void check_jobs(const struct jobs_row *row, struct trace *t)
{
    uint64_t device_ms = 0;
    for (uint32_t i = 0; i < t->job_count; i++)
        device_ms += t->jobs[i].devices * t->jobs[i].duration_ms;
    ROW(row->name, t->job_count == row->jobs);
    if (!row->device_ms) /* only its length was ever told */
        return;
    ROW(row->name, SUM(t->jobs, t->job_count, devices) == row->devices);
    ROW(row->name, device_ms == row->device_ms);
    ROW(row->name, t->jobs[t->job_count - 1].submit_ms == row->last_submit_ms);
    ROW(row->name, t->owners.count == row->owners && t->models.count == row->models);
}

static void check_job_rows(const struct jobs_row *rows, size_t count)
{
    unsigned found = 0;
    for (size_t i = 0; i < count; i++) {
        AUTO_TRACE struct trace t = { 0 };
        if (!is_there(rows[i].name))
            continue;
        found++;
        read_jobs(rows[i].format, rows[i].name, &t);
        check_jobs(&rows[i], &t);
    }
    if (!found)
        skip();
}

/* Offered to 64 GPUs over the submit span of trace1: 1.99, of trace3: 0.80. */
static void muri_traces(void **state)
{
    static const struct jobs_row rows[] = {
        { "muri", "muri/trace/trace1.csv", 1494, 0, 8, 7398, 1379974477235, 10817570000 },
        { "muri", "muri/trace/trace1_pr.csv", 1494, 0, 8, 7398, 1379974477235, 0 },
        { "muri", "muri/trace/trace2.csv", 5755, 0, 0, 0, 0, 0 },
        { "muri", "muri/trace/trace3.csv", 992, 0, 8, 9346, 420081856545, 8166025000 },
        { "muri", "muri/trace/trace3_pr.csv", 992, 0, 8, 9346, 420081856545, 0 },
        { "muri", "muri/trace/trace4.csv", 2638, 0, 0, 0, 0, 0 },
        { "muri", "muri/trace/cluster_trace.csv", 400, 0, 8, 3766, 0, 0 },
    };
    check_job_rows(rows, ARRAY_LEN(rows));
}

static void muri_stages(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    if (!is_there("muri/trace/trace3.csv"))
        skip();
    read_jobs("muri", "muri/trace/trace3.csv", &t);
    uint64_t stage_us = 0;
    for (unsigned i = 0; i < TRACE_STAGES; i++)
        stage_us += SUM(t.stages, t.stages_count, stage_us[i]);
    ROW("stages of all", t.stages_count == 992 && stage_us == 470385600);
    ROW("iterations of all", SUM(t.stages, t.stages_count, iterations) == 133405519);
}

static void philly_traces(void **state)
{
    static const struct jobs_row rows[] = {
        { "philly", "philly/philly.csv.gz", 82247, 15, 0, 107235, 3521082502000,
          9408690000 },
        { "csv", "philly/philly_week1.csv", 10650, 0, 0, 13090, 145964337000, 604561000 },
    };
    check_job_rows(rows, ARRAY_LEN(rows));
}

static void philly_is_mostly_short_jobs_of_one_gpu(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    if (!is_there("philly/philly.csv.gz"))
        skip();
    read_jobs("philly", "philly/philly.csv.gz", &t);
    uint64_t *ms = calloc(t.job_count, sizeof *ms);
    uint32_t single = 0, largest = names_find(&t.owners, "6214e9"), of_largest = 0;
    for (uint32_t i = 0; i < t.job_count; i++) {
        ms[i] = t.jobs[i].duration_ms;
        single += t.jobs[i].devices == 1;
        of_largest += t.jobs[i].owner == largest;
    }
    qsort(ms, t.job_count, sizeof *ms, by_value);
    ROW("the median runs 1,144 s", ms[t.job_count / 2] == 1144000);
    ROW("the mean 13,136 s",
        (SUM(t.jobs, t.job_count, duration_ms) / t.job_count + 500) / 1000 == 13136);
    ROW("93 % on one GPU", single * 100ull / t.job_count == 93);
    ROW("the largest owner has 41 k", of_largest == 41226);
    ROW("from 2017-09-04 10:30:41 on", t.begin_ms == 1504521041000);
    free(ms);
}

/* Submissions from minute 1 to 20,151, which is 14 days. */
static void chronus_traces(void **state)
{
    static const struct jobs_row rows[] = {
        { "chronus", "chronus/trace_job_Philly_MIX1.csv.gz", 30940, 11, 5, 42947,
          22279688 * 60000ull, 20151 * 60000ull },
        { "chronus", "chronus/trace_job_Philly_MIX2.csv.gz", 30940, 11, 5, 43061,
          22738522 * 60000ull, 20151 * 60000ull },
    };
    check_job_rows(rows, ARRAY_LEN(rows));
}

static void chronus_deadlines(void **state)
{
    static const struct {
        const char *name;
        uint32_t strict, soft, best, cpu_only;
    } rows[] = {
        { "chronus/trace_job_Philly_MIX1.csv.gz", 21724, 0, 9216, 184 },
        { "chronus/trace_job_Philly_MIX2.csv.gz", 9276, 18525, 3139, 194 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TRACE struct trace t = { 0 };
        uint32_t strict = 0, soft = 0, cpu_only = 0;
        if (!is_there(rows[i].name))
            skip();
        read_jobs("chronus", rows[i].name, &t);
        for (uint32_t k = 0; k < t.job_count; k++) {
            const struct trace_job *job = &t.jobs[k];
            cpu_only += job->devices == 0;
            if (job->deadline == TRACE_NONE)
                continue;
            const struct trace_deadline *d = &t.deadlines[job->deadline];
            strict += d->strict && d->steps == 1 && d->value[0] == 10;
            soft += !d->strict && d->steps == 4 && d->value[3] == 2;
        }
        ROW(rows[i].name, strict == rows[i].strict && soft == rows[i].soft);
        ROW(rows[i].name, t.job_count - t.deadline_count == rows[i].best);
        ROW(rows[i].name, cpu_only == rows[i].cpu_only);
    }
}

/* ---- gavel ---- */

static void gavel_pairs_gain_by_sharing(void **state)
{
    struct gavel_speeds s;
    READ_FILE("gavel/simulation_throughputs.json", gavel_speeds_read, &s);
    ROW("six kinds of GPU", s.gpus.count == 6);
    ROW("83 kinds of job of 26 models", s.job_count == 83 && s.models.count == 26);
    ROW("all pairs", s.pair_count == 5 * 1759 + 1543);
    uint32_t v100 = names_find(&s.gpus, "v100"), pairs = 0, gain = 0;
    const uint64_t *alone = s.alone_micro + (size_t)v100 * s.job_count;
    uint64_t sum_permille = 0;
    for (uint32_t i = 0; i < s.pair_count; i++) {
        const struct gavel_pair *p = &s.pairs[i];
        const struct gavel_pair *turned = gavel_find_pair(&s, p->gpu, p->other, p->job);
        ROW("each pair is there both ways", turned && turned->job_micro == p->other_micro &&
                                                turned->other_micro == p->job_micro);
        if (p->gpu != v100 || !p->job_micro || !p->other_micro)
            continue;
        uint64_t permille =
            p->job_micro * 1000 / alone[p->job] + p->other_micro * 1000 / alone[p->other];
        pairs++;
        gain += permille > 1200;
        sum_permille += permille;
    }
    ROW("V100: mean 1.31", pairs == 636 && (sum_permille / pairs + 5) / 10 == 131);
    ROW("V100: 71 % gain more than 1.2", (gain * 100 + pairs / 2) / pairs == 71);
    gavel_speeds_finish(&s);
}

static void gavel_jobs_slow_down_when_spread(void **state)
{
    static const struct {
        const char *label;
        uint32_t gpus, median_percent;
    } rows[] = { { "2 GPUs", 2, 50 }, { "4 GPUs", 4, 52 }, { "8 GPUs", 8, 30 } };
    struct gavel_speeds s;
    READ_FILE("gavel/simulation_throughputs.json", gavel_speeds_read, &s);
    const uint64_t *packed =
        s.alone_micro + (size_t)names_find(&s.gpus, "v100") * s.job_count;
    const uint64_t *spread =
        s.alone_micro + (size_t)names_find(&s.gpus, "v100_unconsolidated") * s.job_count;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t permille[GAVEL_MAX_JOBS];
        uint32_t count = 0;
        for (uint32_t j = 0; j < s.job_count; j++)
            if (s.jobs[j].gpus == rows[i].gpus && packed[j])
                permille[count++] = spread[j] * 1000 / packed[j];
        qsort(permille, count, sizeof *permille, by_value);
        ROW(rows[i].label, (permille[count / 2] + 5) / 10 == rows[i].median_percent);
    }
    gavel_speeds_finish(&s);
}

static void gavel_traces(void **state)
{
    static const struct {
        const char *name;
        uint32_t count;
        uint64_t gpus, steps, last_s;
    } rows[] = {
        { "0e4a51", 1181, 3236, 6815877024, 7363956 },
        { "103959", 986, 2364, 1916994894, 7910536 },
        { "11cb48", 2000, 4405, 2876472301, 8799232 },
        { "23dbec", 9, 58, 4632861, 188011 },
        { "2869ce", 533, 5425, 1339392653, 8141054 },
        { "51b7ef", 18, 115, 13170120, 3022240 },
        { "6214e9", 2000, 2214, 17063947829, 4184082 },
        { "6c71a0", 2000, 3270, 7838777082, 2590914 },
        { "795a4c", 3, 3, 85353, 3362 },
        { "7f04ca", 972, 4430, 13913721875, 10817570 },
        { "925e2b", 4, 25, 1432336, 12313 },
        { "b436b2", 2000, 4234, 4380179281, 2722420 },
        { "e13805", 607, 2875, 2274692625, 8468723 },
        { "ed69ec", 951, 951, 3232740580, 6555771 },
        { "ee9e8c", 2000, 8587, 9875481880, 4508448 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct gavel_trace t;
        char name[60];
        snprintf(name, sizeof name, "gavel/msr/seed0_%s.trace.gz", rows[i].name);
        READ_FILE(name, gavel_trace_read, &t);
        ROW(rows[i].name, t.count == rows[i].count);
        ROW(rows[i].name, SUM(t.arrivals, t.count, gpus) == rows[i].gpus);
        ROW(rows[i].name, SUM(t.arrivals, t.count, steps) == rows[i].steps);
        ROW(rows[i].name, t.arrivals[t.count - 1].arrival_ms == rows[i].last_s * 1000);
        gavel_trace_finish(&t);
    }
}

/* ---- the others ---- */

static void carbon_years(void **state)
{
    static const struct {
        const char *name;
        uint32_t unknown;
        uint64_t sum;
    } rows[] = {
        { "CA", 3, 2243438936817 },  { "NY", 0, 2389467901926 }, { "TX", 0, 3041488478052 },
        { "VA", 23, 3168205895911 }, { "WA", 0, 479294917652 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct carbon c;
        char name[60];
        uint64_t sum = 0;
        snprintf(name, sizeof name, "carbon/%s_2022_hourly_avgCI.csv", rows[i].name);
        READ_FILE(name, carbon_read, &c);
        for (uint32_t h = 0; h < c.hours; h++)
            if (c.micro_g_per_kwh[h] != CARBON_UNKNOWN)
                sum += c.micro_g_per_kwh[h];
        ROW(rows[i].name, c.hours == 8760 && c.begin_s == 1640995200);
        ROW(rows[i].name, c.unknown_hours == rows[i].unknown && sum == rows[i].sum);
        carbon_finish(&c);
    }
}

static void azure_requests(void **state)
{
    static const struct {
        const char *name;
        uint32_t count;
        uint64_t context_tokens, generated_tokens, last_us;
    } rows[] = {
        { "code", 8819, 18059974, 245896, 3435948056 },
        { "conv", 19366, 22361870, 4088665, 3501721937 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct llm_trace t;
        char name[60];
        snprintf(name, sizeof name, "azure-llm/AzureLLMInferenceTrace_%s.csv",
                 rows[i].name);
        READ_FILE(name, llm_trace_read, &t);
        ROW(rows[i].name, t.count == rows[i].count);
        ROW(rows[i].name,
            SUM(t.requests, t.count, context_tokens) == rows[i].context_tokens);
        ROW(rows[i].name,
            SUM(t.requests, t.count, generated_tokens) == rows[i].generated_tokens);
        ROW(rows[i].name, t.requests[t.count - 1].arrival_us == rows[i].last_us);
        llm_trace_finish(&t);
    }
}

static void helios_earth_allocates_two_thirds(void **state)
{
    struct helios h;
    READ_FILE("helios-earth/earth_vc_10min.csv", helios_read, &h);
    uint64_t total = SUM(h.samples, h.count, total_gpus);
    uint64_t running = SUM(h.samples, h.count, running_gpus);
    ROW("71,424 samples of 16 clusters", h.count == 71424 && h.vcs.count == 16);
    ROW("856 GPUs", total / (h.count / 16) == 856);
    ROW("66.7 % allocated", (running * 1000 + total / 2) / total == 667);
    helios_finish(&h);
}

/* ---- the job simulator ---- */

/* Under the rules of the format, over so many orders of ties. */
static void simulate(const char *policy, const char *format, const char *name,
                     const char *nodes, uint32_t orders, struct jobstats *out)
{
    AUTO_TRACE struct trace t = { 0 };
    struct jobsim_options options = jobsim_options_of(format);
    struct sl_err err;
    read_jobs(format, name, &t);
    *out = (struct jobstats){ 0 };
    for (uint32_t i = 1; i <= orders; i++) {
        AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
        options.tie_order = orders > 1 ? i : 0;
        if (jobsim_run(policy, &t, nodes, &options, &r, &err) < 0 ||
            jobstats_add(out, &t, &r, &err) < 0)
            fail_msg("%s", err.msg);
    }
}

/* To the digits of muri/published_sim_results.csv, which come from floating point. */
static void muri_averages_are_the_published_ones(void **state)
{
    static const struct {
        const char *name, *policy;
        double avg_jct_s, makespan_s, p99_jct_s; /* p99 0: 992 jobs are too few for us */
    } rows[] = {
        { "trace1", "srtf", 1370603.198, 26045465.532945, 16647148.09074 },
        { "trace1", "srsf", 980140.5699, 26065759.044845, 15529913.227905 },
        { "trace1", "tiresias", 3330371.307, 23556410.217355, 14739851.5052 },
        { "trace1_pr", "srtf", 2303543.816, 24513543.937825, 19871388.29092 },
        { "trace1_pr", "srsf", 1801859.995, 24272529.59311, 18267307.81118 },
        { "trace1_pr", "tiresias", 6921682.793, 21990477.824095, 21765400.784095 },
        { "trace3", "srtf", 193081.796, 8174135.28, 0 },
        { "trace3", "srsf", 185021.8802, 8174135.28, 0 },
        { "trace3", "tiresias", 347213.2481, 8174226.28, 0 },
        { "trace3_pr", "srtf", 844394.78, 7261795.828, 0 },
        { "trace3_pr", "srsf", 798057.6829, 6907790.403, 0 },
        { "trace3_pr", "tiresias", 2213110.128, 6761641.42, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[60], label[80];
        struct jobstats s;
        snprintf(name, sizeof name, "muri/trace/%s.csv", rows[i].name);
        snprintf(label, sizeof label, "%s %s", rows[i].name, rows[i].policy);
        if (!is_there(name))
            skip();
        simulate(rows[i].policy, "muri", name, "8x8", 1, &s);
        ROW(label, fabs(s.avg_jct_s - rows[i].avg_jct_s) < 1e-6 * rows[i].avg_jct_s);
        ROW(label, fabs(s.makespan_s - rows[i].makespan_s) < 0.1);
        ROW(label, rows[i].p99_jct_s ? fabs(s.p99_jct_s - rows[i].p99_jct_s) < 0.1
                                     : s.p99_jct_s == JOBSTATS_NONE);
    }
}

/* Muri-S' averages; ours is to be at most a tenth above. */
static void shared_is_near_muri(void **state)
{
    static const struct {
        const char *name;
        double avg_jct_s;
    } rows[] = { { "muri/trace/trace1.csv", 867705.7941 },
                 { "muri/trace/trace1_pr.csv", 1467191.905 },
                 { "muri/trace/trace3.csv", 85502.55387 },
                 { "muri/trace/trace3_pr.csv", 537776.6163 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jobstats s;
        if (!is_there(rows[i].name))
            skip();
        simulate("sluice-shared", "muri", rows[i].name, "8x8", 1, &s);
        ROW(rows[i].name, s.avg_jct_s < 1.1 * rows[i].avg_jct_s);
    }
}

/* HeliosArtifact counts each job under SRTF a second longer. */
static void philly_week1_srtf_is_the_published_one(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    const struct jobsim_options options = jobsim_options_of("csv");
    static const struct {
        const char *nodes;
        double avg_jct_s, avg_wait_s, makespan_s;
    } rows[] = { { "30x8", 8186.9, 3405.3, 806306 }, { "40x8", 5892.8, 1113.3, 700803 } };
    if (!is_there("philly/philly_week1.csv"))
        skip();
    read_jobs("csv", "philly/philly_week1.csv", &t);
    for (uint32_t i = 0; i < t.job_count; i++)
        t.jobs[i].duration_ms += 1000;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
        struct jobstats s = { 0 };
        struct sl_err err;
        if (jobsim_run("srtf", &t, rows[i].nodes, &options, &r, &err) < 0 ||
            jobstats_add(&s, &t, &r, &err) < 0)
            fail_msg("%s", err.msg);
        ROW(rows[i].nodes, fabs(s.avg_jct_s - rows[i].avg_jct_s) < 0.06);
        ROW(rows[i].nodes, fabs(s.avg_wait_s - rows[i].avg_wait_s) < 0.06);
        ROW(rows[i].nodes, s.makespan_s == rows[i].makespan_s);
    }
}

/* One of the published runs is one order of ties: ours spread around it. */
static void philly_week1_is_within_two_percent(void **state)
{
    static const struct {
        const char *label, *policy, *nodes;
        uint32_t orders; /* where they matter */
        double avg_jct_s;
    } rows[] = {
        { "fifo on 240", "fifo", "30x8", 10, 94371.5 },
        { "sjf on 240", "sjf", "30x8", 1, 14741.4 },
        { "srtf on 240", "srtf", "30x8", 1, 8186.9 },
        { "tiresias on 240", "tiresias", "30x8", 10, 11215.3 },
        { "sjf on 320", "sjf", "40x8", 1, 9214.9 },
        { "srtf on 320", "srtf", "40x8", 1, 5892.8 },
        { "tiresias on 320", "tiresias", "40x8", 10, 6225 },
    };
    const char *name = "philly/philly_week1.csv";
    struct jobstats s;
    if (!is_there(name))
        skip();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        simulate(rows[i].policy, "csv", name, rows[i].nodes, rows[i].orders, &s);
        ROW(rows[i].label, fabs(s.avg_jct_s / rows[i].avg_jct_s - 1) < 0.02);
    }
    simulate("fifo", "csv", name, "40x8", 10, &s);
    ROW("fifo on 320: the published run is inside the spread of the orders",
        s.least_avg_jct_s < 27623.2 && s.largest_avg_jct_s > 27623.2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(openb_has_1213_nodes),
    cmocka_unit_test(openb_has_310_more_nodes_of_cpu_only),
    cmocka_unit_test(openb_pod_lists_and_their_orders),
    cmocka_unit_test(openb_pods_live_eleven_minutes),
    cmocka_unit_test(fgd_fills_the_default_trace_as_published),
    cmocka_unit_test(muri_traces),
    cmocka_unit_test(muri_stages),
    cmocka_unit_test(philly_traces),
    cmocka_unit_test(philly_is_mostly_short_jobs_of_one_gpu),
    cmocka_unit_test(chronus_traces),
    cmocka_unit_test(chronus_deadlines),
    cmocka_unit_test(gavel_pairs_gain_by_sharing),
    cmocka_unit_test(gavel_jobs_slow_down_when_spread),
    cmocka_unit_test(gavel_traces),
    cmocka_unit_test(carbon_years),
    cmocka_unit_test(azure_requests),
    cmocka_unit_test(helios_earth_allocates_two_thirds),
    cmocka_unit_test(muri_averages_are_the_published_ones),
    cmocka_unit_test(shared_is_near_muri),
    cmocka_unit_test(philly_week1_srtf_is_the_published_one),
    cmocka_unit_test(philly_week1_is_within_two_percent),
};
ROWS_MAIN(tests)
