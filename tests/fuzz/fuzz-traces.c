/*
 * Every reader of traces from any bytes: what is read keeps what its header promises,
 * what is refused says why and leaves the output alone.  The first byte says which.
 */
#include <string.h>

#include "fuzz.h"
#include "sim/carbon.h"
#include "sim/gavel.h"
#include "sim/helios.h"
#include "sim/llm.h"
#include "sim/openb.h"
#include "sim/trace.h"

const char *const fuzz_seeds[] = {
    "nsn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,T4\nb,8000,32768,0,\n",
    "pname,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\nb,8000,16384,1,460,T4|G2,LS,Running,0,5000,\n"
    "a,4000,8192,0,0,,BE,Pending,30,90,31\n",
    "o42 1 2 3 4\n43 7 7\n",
    "mjob_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
    "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\r\n"
    "0,1,60,1000,alpha,16,200000,0,200,0.5,150,20,0\r\n1,8,0,5,b,4,2,0,7.5,1,2,3,1\r\n",
    "htimestamp,duration,num_gpus,gpu_time,cluster\n2021-03-02 09:00:30,66.0,1,66.0,red\n"
    "2021-03-02 09:00:00,2951.0,4,1.0,blue\n\n",
    "cjob_id,user,num_gpu,submit_time,model_name,duration,expect_time_list,"
    "expect_value_list,job_type\n0,red,1,50,alpha,70,105,10,strict\n"
    "1,blue,4,12,beta,20,30-40-60,10-8-5,soft\n2,red,0,12,beta,10,12,10,best\n",
    "jjob_id,submit_s,gpu_num,duration_s,owner,share_permille,mem_bytes,deadline_s\n"
    "a,10.5,2,3600,ann,,,7200\nb,0,1,0,,250,4096,\n",
    "s{\"v\":{\"('A (batch size 1)', 1)\":{\"null\":1.5,\"('B', 2)\":[1,0.5]},"
    "\"('B', 2)\":{\"('A (batch size 1)', 1)\":[0.5,1]}},\"w\":{}}",
    "aalpha\trun\t-n\t1\t5000\t90.000000\t1\nbeta\trun\t-n\t0\t70\t0.0\t8\n",
    "bWND,timestamp,avg_CI\n1,2021-12-31 23:00:00+00:00,222.29592090536\n"
    ",2022-01-01 00:00:00+00:00,\n",
    "lTIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-05-16 18:17:03.9799600,48,10\r\n"
    "2023-05-16 18:17:03.0,1,2\r\n",
    "etime,vc,total_gpu_num,running_gpu_num,pending_gpu_num,running_gpujob_num,"
    "pending_gpujob_num\n2020-05-01 00:00:00,x,64,59,0,11,0\n"
    "2020-05-01 00:10:00,x,64,9,1,3,2\n",
    "j\x1f\x8b\x08",
    NULL,
};

#define POD_COUNT 8u

static struct sl_err err;

/* 0, or what was refused: then with a message. */
static int checked(int rc)
{
    FUZZ_CHECK(rc == 0 || (rc == -(int)err.code && err.msg[0]));
    return rc;
}

static void check_nodes(const struct text *text)
{
    struct openb_nodes n = { .count = 99 };
    if (checked(openb_nodes_read(text, &n, &err)) < 0) {
        FUZZ_CHECK(n.count == 99 && !n.nodes);
        return;
    }
    FUZZ_CHECK(n.count > 0 && n.names.count == n.count);
    for (uint32_t i = 0; i < n.count; i++)
        FUZZ_CHECK(n.nodes[i].gpus ? n.nodes[i].model < n.models.count
                                   : n.nodes[i].model == OPENB_NONE);
    openb_nodes_finish(&n);
}

static void check_pods(const struct text *text)
{
    struct openb_pods p = { .count = 99 };
    if (checked(openb_pods_read(text, &p, &err)) < 0) {
        FUZZ_CHECK(p.count == 99 && !p.pods);
        return;
    }
    FUZZ_CHECK(p.count > 0 && p.names.count == p.count);
    for (uint32_t i = 0; i < p.count; i++) {
        const struct openb_pod *pod = &p.pods[i];
        FUZZ_CHECK(pod->gpus <= 1 || pod->gpu_milli == 1000);
        FUZZ_CHECK((pod->gpus == 0) == (pod->gpu_milli == 0));
        FUZZ_CHECK((pod->models == 0) == (pod->spec == OPENB_NONE));
        FUZZ_CHECK(i == 0 || strcmp(names_text(&p.names, pod[-1].name),
                                    names_text(&p.names, pod->name)) < 0);
    }
    openb_pods_finish(&p);
}

static void check_orders(const struct text *text)
{
    struct openb_orders o = { .count = 99 };
    uint32_t total = 0;
    if (checked(openb_orders_read(text, POD_COUNT, &o, &err)) < 0) {
        FUZZ_CHECK(o.count == 99 && !o.orders);
        return;
    }
    FUZZ_CHECK(o.count > 0);
    for (uint32_t i = 0; i < o.count; i++) {
        FUZZ_CHECK(o.orders[i].count > 0 && o.orders[i].first == total);
        total += o.orders[i].count;
    }
    for (uint32_t i = 0; i < total; i++)
        FUZZ_CHECK(o.index[i] < POD_COUNT);
    openb_orders_finish(&o);
}

static void check_deadline(const struct trace_deadline *d)
{
    FUZZ_CHECK(d->steps >= 1 && d->steps <= TRACE_MAX_STEPS);
    FUZZ_CHECK(!d->strict || d->steps == 1);
    for (uint32_t i = 1; i < d->steps; i++)
        FUZZ_CHECK(d->after_ms[i] > d->after_ms[i - 1]);
}

static void check_jobs(const char *format, const struct text *text)
{
    struct trace t = { .job_count = 99 };
    if (checked(trace_read(format, text, &t, &err)) < 0) {
        FUZZ_CHECK(t.job_count == 99 && !t.jobs);
        return;
    }
    FUZZ_CHECK(t.job_count > 0);
    for (uint32_t i = 0; i < t.job_count; i++) {
        const struct trace_job *job = &t.jobs[i];
        FUZZ_CHECK(i == 0 || job[-1].submit_ms < job->submit_ms ||
                   (job[-1].submit_ms == job->submit_ms && job[-1].line < job->line));
        FUZZ_CHECK(job->duration_ms >= 1 && job->duration_ms <= TRACE_MAX_MS);
        FUZZ_CHECK(job->share_permille >= 1 && job->share_permille <= 1000);
        FUZZ_CHECK(job->devices <= TRACE_MAX_DEVICES);
        FUZZ_CHECK(job->id == TRACE_NONE || job->id < t.ids.count);
        FUZZ_CHECK(job->owner == TRACE_NONE || job->owner < t.owners.count);
        FUZZ_CHECK(job->model == TRACE_NONE || job->model < t.models.count);
        FUZZ_CHECK(job->stages == TRACE_NONE || job->stages < t.stages_count);
        FUZZ_CHECK(job->deadline == TRACE_NONE || job->deadline < t.deadline_count);
        if (job->deadline != TRACE_NONE)
            check_deadline(&t.deadlines[job->deadline]);
    }
    trace_finish(&t);
}

static void check_speeds(const struct text *text)
{
    struct gavel_speeds s = { .job_count = 99 };
    if (checked(gavel_speeds_read(text, &s, &err)) < 0) {
        FUZZ_CHECK(s.job_count == 99 && !s.jobs);
        return;
    }
    for (uint32_t i = 0; i < s.job_count; i++) {
        FUZZ_CHECK(s.jobs[i].gpus >= 1);
        FUZZ_CHECK(gavel_find_job(&s, names_text(&s.models, s.jobs[i].model),
                                  s.jobs[i].gpus) <= i);
    }
    for (uint32_t i = 0; i < s.pair_count; i++) {
        const struct gavel_pair *p = &s.pairs[i];
        FUZZ_CHECK(p->job < s.job_count && p->other < s.job_count);
        FUZZ_CHECK(gavel_find_pair(&s, p->gpu, p->job, p->other) == p);
    }
    gavel_speeds_finish(&s);
}

static void check_arrivals(const struct text *text)
{
    struct gavel_trace t = { .count = 99 };
    if (checked(gavel_trace_read(text, &t, &err)) < 0) {
        FUZZ_CHECK(t.count == 99 && !t.arrivals);
        return;
    }
    for (uint32_t i = 0; i < t.count; i++) {
        const struct gavel_arrival *a = &t.arrivals[i];
        FUZZ_CHECK(a->steps >= 1 && a->gpus >= 1 && a->model < t.models.count);
        FUZZ_CHECK(i == 0 || a[-1].arrival_ms <= a->arrival_ms);
    }
    gavel_trace_finish(&t);
}

static void check_carbon(const struct text *text)
{
    struct carbon c = { .hours = 99 };
    uint32_t unknown = 0;
    if (checked(carbon_read(text, &c, &err)) < 0) {
        FUZZ_CHECK(c.hours == 99 && !c.micro_g_per_kwh);
        return;
    }
    for (uint32_t i = 0; i < c.hours; i++)
        unknown += c.micro_g_per_kwh[i] == CARBON_UNKNOWN;
    FUZZ_CHECK(c.hours > 0 && unknown == c.unknown_hours);
    carbon_finish(&c);
}

static void check_requests(const struct text *text)
{
    struct llm_trace t = { .count = 99 };
    if (checked(llm_trace_read(text, &t, &err)) < 0) {
        FUZZ_CHECK(t.count == 99 && !t.requests);
        return;
    }
    FUZZ_CHECK(t.count > 0 && t.requests[0].arrival_us == 0);
    for (uint32_t i = 1; i < t.count; i++)
        FUZZ_CHECK(t.requests[i - 1].arrival_us <= t.requests[i].arrival_us);
    llm_trace_finish(&t);
}

static void check_samples(const struct text *text)
{
    struct helios h = { .count = 99 };
    if (checked(helios_read(text, &h, &err)) < 0) {
        FUZZ_CHECK(h.count == 99 && !h.samples);
        return;
    }
    for (uint32_t i = 0; i < h.count; i++)
        FUZZ_CHECK(h.samples[i].vc < h.vcs.count &&
                   h.samples[i].running_gpus <= h.samples[i].total_gpus);
    helios_finish(&h);
}

static void check_one(char which, const struct text *text)
{
    switch (which) {
    case 'n':
        return check_nodes(text);
    case 'p':
        return check_pods(text);
    case 'o':
        return check_orders(text);
    case 'm':
        return check_jobs("muri", text);
    case 'h':
        return check_jobs("philly", text);
    case 'c':
        return check_jobs("chronus", text);
    case 's':
        return check_speeds(text);
    case 'a':
        return check_arrivals(text);
    case 'b':
        return check_carbon(text);
    case 'l':
        return check_requests(text);
    case 'e':
        return check_samples(text);
    default:
        return check_jobs("csv", text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text text;
    if (size == 0)
        return 0;
    char *bytes =
        malloc(size > 1 ? size - 1 : 1); /* exact: the sanitizer sees one too far */
    memcpy(bytes, data + 1, size - 1);
    err = (struct sl_err){ 0 };
    if (checked(text_take("x", bytes, size - 1, &text, &err)) == 0) {
        check_one((char)data[0], &text);
        text_finish(&text);
    }
    return 0;
}
