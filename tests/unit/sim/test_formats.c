/* Each format: its sample in tests/data/traces field by field, and what it refuses. */
#include "../rows.h"

#include <string.h>

#include "sim/carbon.h"
#include "sim/gavel.h"
#include "sim/helios.h"
#include "sim/llm.h"
#include "sim/openb.h"
#include "sim/trace.h"

static void open_sample(const char *name, struct text *out)
{
    struct sl_err err;
    char path[300];
    snprintf(path, sizeof path, "%s/%s", SAMPLES, name);
    if (text_open(path, out, &err) < 0)
        fail_msg("%s", err.msg);
}

#define READ_SAMPLE(name, read, ...)            \
    do {                                        \
        AUTO_TEXT struct text text_ = { 0 };    \
        struct sl_err err_;                     \
        open_sample(name, &text_);              \
        if (read(&text_, __VA_ARGS__, &err_))   \
            fail_msg("%s: %s", name, err_.msg); \
    } while (0)

static void read_sample_jobs(const char *format, const char *name, struct trace *out)
{
    AUTO_TEXT struct text text = { 0 };
    struct sl_err err;
    open_sample(name, &text);
    if (trace_read(format, &text, out, &err) < 0)
        fail_msg("%s: %s", name, err.msg);
}

/* ---- openb ---- */

static void openb_nodes(void **state)
{
    struct openb_nodes n;
    READ_SAMPLE("openb_nodes.csv", openb_nodes_read, &n);
    assert_int_equal(n.count, 4);
    assert_int_equal(n.models.count, 2);
    const struct openb_node *b = &n.nodes[1], *c = &n.nodes[2];
    ROW_STR("name", names_text(&n.names, b->name), "node-b");
    ROW("sizes", b->cpu_milli == 96000 && b->memory_mib == 393216 && b->gpus == 8);
    ROW_STR("model", names_text(&n.models, b->model), "A100");
    ROW("a CPU node has no model", c->gpus == 0 && c->model == OPENB_NONE);
    ROW("same model, same number", n.nodes[0].model == n.nodes[3].model);
    openb_nodes_finish(&n);
}

static void openb_pods_of_the_long_form(void **state)
{
    static const char *const sorted[] = { "pod-1", "pod-10", "pod-2", "pod-3" };
    struct openb_pods p;
    READ_SAMPLE("openb_pods.csv", openb_pods_read, &p);
    assert_int_equal(p.count, 4);
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        ROW_STR("sorted by name, byte by byte", names_text(&p.names, p.pods[i].name),
                sorted[i]);
    const struct openb_pod *gang = &p.pods[0], *cpu = &p.pods[1], *share = &p.pods[3];
    uint32_t t4 = names_find(&p.models, "T4"), a100 = names_find(&p.models, "A100");
    ROW("one model", share->models == 1ull << t4);
    ROW("two models", gang->models == (1ull << t4 | 1ull << a100));
    ROW_STR("the list as written", names_text(&p.specs, gang->spec), "A100|T4");
    ROW("any model", p.pods[2].models == 0 && p.pods[2].spec == OPENB_NONE);
    ROW("a share", share->gpus == 1 && share->gpu_milli == 460);
    ROW("CPU only", cpu->gpus == 0 && cpu->gpu_milli == 0 && cpu->cpu_milli == 4000);
    ROW("words", share->qos == OPENB_LS && share->phase == OPENB_RUNNING);
    ROW("other words", gang->qos == OPENB_GUARANTEED && gang->phase == OPENB_PENDING);
    ROW("times",
        share->creation_s == 0 && share->deletion_s == 5000 && share->scheduled_s == 12);
    ROW("never scheduled", gang->scheduled_s == OPENB_UNKNOWN);
    ROW("the line", share->line == 2 && gang->line == 4);
    openb_pods_finish(&p);
}

static void openb_pods_of_the_short_form(void **state)
{
    struct openb_pods p;
    READ_SAMPLE("openb_pods_short.csv", openb_pods_read, &p);
    assert_int_equal(p.count, 2);
    ROW("share", p.pods[0].gpus == 1 && p.pods[0].gpu_milli == 250);
    ROW("nothing is said", p.pods[1].qos == OPENB_QOS_UNKNOWN &&
                               p.pods[1].phase == OPENB_PHASE_UNKNOWN &&
                               p.pods[1].creation_s == OPENB_UNKNOWN);
    openb_pods_finish(&p);
}

static void openb_orders(void **state)
{
    struct openb_orders o;
    READ_SAMPLE("openb_pods.order.gz", openb_orders_read, 4, &o);
    assert_int_equal(o.count, 2);
    ROW("first", o.orders[0].seed == 42 && o.orders[0].count == 4);
    ROW("a pod may come twice", o.orders[1].seed == 43 && o.orders[1].count == 5);
    ROW("its indices",
        o.index[o.orders[1].first] == 2 && o.index[o.orders[1].first + 4] == 3);
    openb_orders_finish(&o);
}

/* ---- jobs ---- */

static void muri_jobs(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    read_sample_jobs("muri", "muri.csv", &t);
    assert_int_equal(t.job_count, 3);
    const struct trace_job *beta = &t.jobs[1];
    const struct trace_stages *s = &t.stages[beta->stages];
    ROW_STR("id", names_text(&t.ids, beta->id), "1");
    ROW_STR("model", names_text(&t.models, beta->model), "beta");
    ROW("milliseconds", beta->submit_ms == 60000 && beta->devices == 8);
    ROW("the work is iterations x iteration_time", beta->duration_ms == 500 * 500);
    ROW("stages", s->iterations == 500 && s->batch_size == 4 && s->iteration_us == 500000);
    ROW("down to microseconds",
        s->stage_us[0] == 400000 && s->stage_us[1] == 50000 && s->stage_us[2] == 250);
    ROW("priority", beta->priority == 1 && t.jobs[0].priority == 0);
    ROW("no owner, no deadline", beta->owner == TRACE_NONE && beta->deadline == TRACE_NONE);
}

static void philly_jobs(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    read_sample_jobs("philly", "philly.csv.gz", &t);
    assert_int_equal(t.job_count, 3);
    ROW("from the earliest on", t.begin_ms == 1614675600000 && t.jobs[0].submit_ms == 0);
    ROW("sorted", t.jobs[1].submit_ms == 30000 && t.jobs[2].submit_ms == 86399000);
    ROW("milliseconds", t.jobs[0].duration_ms == 2951000 && t.jobs[0].devices == 4);
    ROW("no time at all counts as a millisecond", t.jobs[2].duration_ms == 1);
    ROW("the cluster is the owner",
        t.owners.count == 2 && t.jobs[1].owner == t.jobs[2].owner);
    ROW_STR("by name", names_text(&t.owners, t.jobs[0].owner), "blue");
    ROW("no id", t.jobs[0].id == TRACE_NONE);
}

static void chronus_jobs(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    read_sample_jobs("chronus", "chronus.csv", &t);
    assert_int_equal(t.job_count, 3);
    const struct trace_job *soft = &t.jobs[0], *best = &t.jobs[1], *strict = &t.jobs[2];
    ROW("minutes", soft->submit_ms == 12 * 60000 && soft->duration_ms == 20 * 60000);
    ROW("best effort has no deadline", best->deadline == TRACE_NONE && best->devices == 0);
    const struct trace_deadline *d = &t.deadlines[strict->deadline];
    ROW("strict", d->strict && d->steps == 1 && d->after_ms[0] == 105 * 60000);
    d = &t.deadlines[soft->deadline];
    ROW("soft", !d->strict && d->steps == 4);
    ROW("its last step", d->after_ms[3] == 90 * 60000 && d->value[3] == 2);
    ROW_STR("owner", names_text(&t.owners, soft->owner), "blue");
}

static void our_own_jobs(void **state)
{
    AUTO_TRACE struct trace t = { 0 };
    read_sample_jobs("csv", "jobs.csv", &t);
    assert_int_equal(t.job_count, 3);
    const struct trace_job *first = &t.jobs[0], *note = &t.jobs[1], *last = &t.jobs[2];
    ROW_STR("id", names_text(&t.ids, first->id), "train-1");
    ROW("all of it", first->devices == 2 && first->duration_ms == 3600000 &&
                         first->priority == 5 && first->share_permille == 1000);
    ROW("a deadline is strict", t.deadlines[first->deadline].strict &&
                                    t.deadlines[first->deadline].after_ms[0] == 7200000);
    ROW("a share", note->share_permille == 250 && note->mem_bytes == 4294967296);
    ROW("milliseconds", note->submit_ms == 10500 && note->duration_ms == 250);
    ROW("no model, no owner", note->model == TRACE_NONE && last->owner == TRACE_NONE);
    ROW("no time at all counts as a millisecond", last->duration_ms == 1);
}

/* ---- gavel ---- */

static void gavel_speeds(void **state)
{
    struct gavel_speeds s;
    READ_SAMPLE("speeds.json", gavel_speeds_read, &s);
    assert_int_equal(s.gpus.count, 2);
    assert_int_equal(s.job_count, 2);
    uint32_t alpha = gavel_find_job(&s, "alpha (batch size 16)", 1);
    uint32_t beta = gavel_find_job(&s, "beta", 2);
    uint32_t fast = names_find(&s.gpus, "fast"), slow = names_find(&s.gpus, "slow");
    ROW("both kinds", alpha != GAVEL_NONE && beta != GAVEL_NONE && s.jobs[beta].gpus == 2);
    ROW("on so many GPUs only", gavel_find_job(&s, "beta", 1) == GAVEL_NONE);
    ROW("no such model", gavel_find_job(&s, "gamma", 1) == GAVEL_NONE);
    ROW("alone", s.alone_micro[fast * s.job_count + alpha] == 10500000);
    ROW("rounded", s.alone_micro[slow * s.job_count + beta] == 1000001 ||
                       s.alone_micro[slow * s.job_count + beta] == 1000000);
    ROW("not measured", s.alone_micro[slow * s.job_count + alpha] == GAVEL_UNKNOWN);
    const struct gavel_pair *pair = gavel_find_pair(&s, fast, alpha, beta);
    ROW("a pair", pair && pair->job_micro == 8250000 && pair->other_micro == 3000000);
    pair = gavel_find_pair(&s, fast, beta, alpha);
    ROW("the other way round", pair && pair->job_micro == 3000000);
    ROW("with itself", gavel_find_pair(&s, fast, alpha, alpha));
    ROW("not measured together", !gavel_find_pair(&s, slow, beta, alpha));
    gavel_speeds_finish(&s);
}

static void gavel_arrivals(void **state)
{
    struct gavel_trace t;
    READ_SAMPLE("arrivals.trace.gz", gavel_trace_read, &t);
    assert_int_equal(t.count, 2);
    ROW("sorted", t.arrivals[0].arrival_ms == 0 && t.arrivals[1].arrival_ms == 90000);
    ROW("fields", t.arrivals[0].steps == 70 && t.arrivals[0].gpus == 8);
    ROW_STR("model", names_text(&t.models, t.arrivals[1].model), "alpha (batch size 16)");
    gavel_trace_finish(&t);
}

/* ---- the others ---- */

static void carbon_hours(void **state)
{
    struct carbon c;
    READ_SAMPLE("carbon.csv", carbon_read, &c);
    ROW("hours", c.hours == 3 && c.unknown_hours == 1 && c.begin_s == 1640991600);
    ROW("millionths",
        c.micro_g_per_kwh[0] == 222295921 && c.micro_g_per_kwh[2] == 90000000);
    ROW("not measured is not 0", c.micro_g_per_kwh[1] == CARBON_UNKNOWN);
    carbon_finish(&c);
}

static void llm_requests(void **state)
{
    struct llm_trace t;
    READ_SAMPLE("llm.csv", llm_trace_read, &t);
    assert_int_equal(t.count, 3);
    ROW("from the first on",
        t.requests[0].arrival_us == 0 && t.begin_us == 1684261023979960);
    ROW("sorted", t.requests[1].arrival_us == 20040 && t.requests[2].arrival_us == 52000);
    ROW("tokens",
        t.requests[1].context_tokens == 7 && t.requests[1].generated_tokens == 90);
    llm_trace_finish(&t);
}

static void helios_samples(void **state)
{
    struct helios h;
    READ_SAMPLE("helios.csv", helios_read, &h);
    assert_int_equal(h.count, 4);
    assert_int_equal(h.vcs.count, 2);
    const struct helios_sample *s = &h.samples[1];
    ROW("fields", s->total_gpus == 32 && s->running_gpus == 32 && s->pending_gpus == 8 &&
                      s->running_jobs == 4 && s->pending_jobs == 1);
    ROW("ten minutes", h.samples[2].time_s - h.samples[0].time_s == 600);
    helios_finish(&h);
}

/* ---- what is refused ---- */

static int read_nodes(const struct text *text, struct sl_err *err)
{
    struct openb_nodes out;
    return openb_nodes_read(text, &out, err);
}
static int read_pods(const struct text *text, struct sl_err *err)
{
    struct openb_pods out;
    return openb_pods_read(text, &out, err);
}
static int read_orders(const struct text *text, struct sl_err *err)
{
    struct openb_orders out;
    return openb_orders_read(text, 8, &out, err);
}
static int read_muri(const struct text *text, struct sl_err *err)
{
    struct trace out;
    return trace_read("muri", text, &out, err);
}
static int read_philly(const struct text *text, struct sl_err *err)
{
    struct trace out;
    return trace_read("philly", text, &out, err);
}
static int read_chronus(const struct text *text, struct sl_err *err)
{
    struct trace out;
    return trace_read("chronus", text, &out, err);
}
static int read_speeds(const struct text *text, struct sl_err *err)
{
    struct gavel_speeds out;
    return gavel_speeds_read(text, &out, err);
}
static int read_arrivals(const struct text *text, struct sl_err *err)
{
    struct gavel_trace out;
    return gavel_trace_read(text, &out, err);
}
static int read_carbon(const struct text *text, struct sl_err *err)
{
    struct carbon out;
    return carbon_read(text, &out, err);
}
static int read_llm(const struct text *text, struct sl_err *err)
{
    struct llm_trace out;
    return llm_trace_read(text, &out, err);
}
static int read_helios(const struct text *text, struct sl_err *err)
{
    struct helios out;
    return helios_read(text, &out, err);
}

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
#define MURI                                                           \
    "job_id,num_gpu,submit_time,iterations,model_name,iteration_time," \
    "resource_time_0,resource_time_1,resource_time_2\n"
#define CHRONUS                                                             \
    "job_id,user,num_gpu,submit_time,model_name,duration,expect_time_list," \
    "expect_value_list,job_type\n"
#define HELIOS                                               \
    "time,vc,total_gpu_num,running_gpu_num,pending_gpu_num," \
    "running_gpujob_num,pending_gpujob_num\n"

static void what_each_format_refuses(void **state)
{
    static const struct {
        const char *label;
        int (*read)(const struct text *text, struct sl_err *err);
        const char *text, *want;
    } rows[] = {
        { "a node twice", read_nodes, NODES "a,1,1,0,\nb,1,1,0,\na,1,1,0,\n",
          "x:4: sn: 'a' is on line 2 already" },
        { "devices without a model", read_nodes, NODES "a,1,1,2,\n",
          "x:2: model: '' is empty; a name is expected" },
        { "a node without CPU", read_nodes, NODES "a,0,1,2,T4\n",
          "x:2: cpu_milli: '0' is below 1; expected 1..10000000" },
        { "more devices than a node can have", read_nodes, NODES "a,1,1,70000,T4\n",
          "x:2: gpu: '70000' is above 1024; expected 0..1024" },

        { "a negative share", read_pods, PODS "p,1,1,1,-5,,\n",
          "x:2: gpu_milli: '-5' is below 0; expected 0..1000" },
        { "parts of several", read_pods, PODS "p,1,1,2,500,,\n",
          "x:2: gpu_milli: '500' but num_gpu is 2: several are whole, 1000" },
        { "a share of no device", read_pods, PODS "p,1,1,0,500,,\n",
          "x:2: gpu_milli: '500' but num_gpu is 0" },
        { "no share of one device", read_pods, PODS "p,1,1,1,0,,\n",
          "x:2: gpu_milli: '0' but num_gpu is 1" },
        { "a pod twice", read_pods, PODS "p,1,1,0,0,,\np,1,1,0,0,,\n",
          "x:3: name: 'p' is on line 2 already" },
        { "an unknown word", read_pods, PODS "p,1,1,0,0,,XL\n",
          "x:2: qos: 'XL' is none of: LS, BE, Burstable, Guaranteed" },
        { "a gap in the models", read_pods, PODS "p,1,1,1,1000,T4|,\n",
          "x:2: gpu_spec: 'T4|' names no model at one place" },
        { "nodes where pods should be", read_pods, NODES "a,1,1,0,\n",
          "x:1: no column 'name'; the header is 'sn,cpu_milli,memory_mib,gpu,model'" },

        { "a pod that is not there", read_orders, "42 1 2 8\n",
          "x:1: index of a pod: '8' is no number in 0..7" },
        { "a negative index", read_orders, "42 1 2\n43 -1\n",
          "x:2: index of a pod: '-1' is no number in 0..7" },
        { "a seed twice", read_orders, "42 1\n\n42 1\n",
          "x:3: seed 42 is on line 1 already" },
        { "a seed alone", read_orders, "42\n", "x:1: a seed without pods" },
        { "no orders", read_orders, "\n", "x has no orders" },
        { "no seed", read_orders, "x 1\n",
          "x:1: seed: 'x' is no number in 0..18446744073709551615" },

        { "a job twice", read_muri, MURI "7,1,0,1,m,1,1,1,1\n7,1,0,1,m,1,1,1,1\n",
          "x:3: job_id: '7' is on line 2 already" },
        { "no iterations", read_muri, MURI "7,1,0,0,m,1,1,1,1\n",
          "x:2: iterations: '0' is below 1; expected 1..10000000000" },
        { "more work than a lifetime", read_muri, MURI "7,1,0,9999999999,m,1000,1,1,1\n",
          "x:2: iterations x iteration_time is more than 31 years" },

        { "no date", read_philly, "timestamp,duration,num_gpus,cluster\n7,1,1,c\n",
          "x:2: timestamp: '7' is no time such as '2022-01-31 10:00:00' (UTC)" },
        { "no owner", read_philly,
          "timestamp,duration,num_gpus,cluster\n2022-01-01 00:00:00,1,1,\n",
          "x:2: cluster: '' is empty; a name is expected" },

        { "an unknown kind", read_chronus, CHRONUS "1,u,1,0,m,1,5,10,hard\n",
          "x:2: job_type: 'hard' is none of: strict, soft, best" },
        { "steps that do not ascend", read_chronus, CHRONUS "1,u,1,0,m,1,5-5,10-8,soft\n",
          "x:2: expect_time_list: '5-5' does not ascend" },
        { "lists of two lengths", read_chronus, CHRONUS "1,u,1,0,m,1,5-6,10,soft\n",
          "x:2: expect_time_list and expect_value_list differ in length" },
        { "a list with a gap", read_chronus, CHRONUS "1,u,1,0,m,1,5--6,10-9-8,soft\n",
          "x:2: expect_time_list: '5--6' is no list such as 10-8-5 of numbers up to "
          "16666666" },
        { "a list that ends in a dash", read_chronus, CHRONUS "1,u,1,0,m,1,5-,10,soft\n",
          "x:2: expect_time_list: '5-' is no list such as 10-8-5 of numbers up to "
          "16666666" },
        { "too many steps", read_chronus,
          CHRONUS "1,u,1,0,m,1,1-2-3-4-5-6-7-8-9,9-8-7-6-5-4-3-2-1,soft\n",
          "x:2: expect_time_list: '1-2-3-4-5-6-7-8-9' has more than 8 steps" },
        { "two strict deadlines", read_chronus, CHRONUS "1,u,1,0,m,1,5-6,10-9,strict\n",
          "x:2: expect_time_list: '5-6' has steps; a strict job has one deadline" },

        { "no JSON", read_speeds, "{",
          "x: line 1, column 1: string or '}' expected near end "
          "of file" },
        { "no object", read_speeds, "[]",
          "x: an object of 1..64 kinds of GPU is expected" },
        { "a key that is none", read_speeds, "{\"g\":{\"A3C\":{\"null\":1}}}",
          "x: g: A3C: a job's key is written ('model', GPUs)" },
        { "a negative speed", read_speeds, "{\"g\":{\"('A', 1)\":{\"null\":-1}}}",
          "x: g: ('A', 1): null: is no number of iterations a second" },
        { "an absurd speed", read_speeds, "{\"g\":{\"('A', 1)\":{\"null\":1e300}}}",
          "x: g: ('A', 1): null: is no number of iterations a second" },
        { "half a pair", read_speeds, "{\"g\":{\"('A', 1)\":{\"('A', 1)\":[1]}}}",
          "x: g: ('A', 1): ('A', 1): two numbers are expected: mine and theirs" },
        { "a job twice in one GPU", read_speeds,
          "{\"g\":{\"('A', 1)\":{\"null\":1},\"('A', 1)\":{\"null\":2}}}",
          "x: line 1, column 38: duplicate object key near '\"('A', 1)\"'" },

        { "ten fields", read_arrivals, "m\tc\td\t-n\t1\t5\t1\t1\t-1.0\t0\n",
          "x:1: 10 fields; 7 are expected" },
        { "on no GPU", read_arrivals, "m\tc\t-n\t1\t5\t1.0\t0\n",
          "x:1: scale factor: '0' is below 1; expected 1..1000000" },
        { "nothing", read_arrivals, "", "x has no rows" },

        { "an hour is missing", read_carbon,
          "timestamp,avg_CI\n2022-01-01 00:00:00,1\n2022-01-01 02:00:00,1\n",
          "x:3: timestamp: '2022-01-01 02:00:00' is not the hour after that of the row "
          "before" },
        { "an hour twice", read_carbon,
          "timestamp,avg_CI\n2022-01-01 00:00:00,1\n2022-01-01 00:00:00,1\n",
          "x:3: timestamp: '2022-01-01 00:00:00' is not the hour after that of the row "
          "before" },
        { "a negative intensity", read_carbon,
          "timestamp,avg_CI\n2022-01-01 00:00:00,-1.5\n",
          "x:2: avg_CI: '-1.5' is below 0; expected 0..100000" },

        { "half a token", read_llm,
          "TIMESTAMP,ContextTokens,GeneratedTokens\n2022-01-01 00:00:00,1.5,1\n",
          "x:2: ContextTokens: '1.5' is not whole; expected 0..1000000000" },

        { "a sample twice", read_helios,
          HELIOS "2020-05-01 00:00:00,a,8,1,0,1,0\n2020-05-01 00:00:00,a,8,1,0,1,0\n",
          "x:3: time: '2020-05-01 00:00:00' is not after that of the same vc on line 2" },
        { "more running than there are", read_helios,
          HELIOS "2020-05-01 00:00:00,a,8,9,0,1,0\n",
          "x:2: running_gpu_num: '9' of 8 GPUs" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text text = { 0 };
        struct sl_err err = { 0 };
        assert_int_equal(text_copy("x", rows[i].text, &text, &err), 0);
        int rc = rows[i].read(&text, &err);
        ROW(rows[i].label, rc == -SL_INVALID && err.code == SL_INVALID);
        ROW_STR(rows[i].label, err.msg, rows[i].want);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(openb_nodes),
    cmocka_unit_test(openb_pods_of_the_long_form),
    cmocka_unit_test(openb_pods_of_the_short_form),
    cmocka_unit_test(openb_orders),
    cmocka_unit_test(muri_jobs),
    cmocka_unit_test(philly_jobs),
    cmocka_unit_test(chronus_jobs),
    cmocka_unit_test(our_own_jobs),
    cmocka_unit_test(gavel_speeds),
    cmocka_unit_test(gavel_arrivals),
    cmocka_unit_test(carbon_hours),
    cmocka_unit_test(llm_requests),
    cmocka_unit_test(helios_samples),
    cmocka_unit_test(what_each_format_refuses),
};
ROWS_MAIN(tests)
