/*
 * bench-sched: how fast the scheduler core decides.
 *
 *   bench-sched --nodes N --devices-per-node D [--seconds S] [--mix FILE] [--json]
 *
 * A pool of N mixed nodes is filled by the mix to the part of it that the mix says, and kept
 * there: a request comes, and while more is allocated than that, a running one ends.
 * Timed is sched_apply(), each event by itself, on the monotonic clock; a decision is
 * an event that submits.  Rounds alternate with rounds in which placement looks at every node,
 * on the same pool and queue: the baseline.  D may be a fraction.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sched_impl.h"
#include "sched_mix.h"
#include "stats.h"

#define ROUNDS     4 /* placement by classes, by scan, by classes, … */
#define PAIRS      200
#define REPEATS    15
#define BUILD_GOAL 150000 /* leases */

/* ---- what was submitted, by id ---- */

enum stage { WAITS, RUNS, ENDED };

struct job {
    enum stage stage;
    uint32_t running_at;
    uint32_t option_count;
    uint32_t permille[2], places[2]; /* by option */
    uint32_t option;
};

struct samples {
    double *us;
    size_t count, room;
    double sum_us;
};

struct bench {
    struct mix *mix;
    struct sched *sched;
    uint32_t nodes, devices;
    uint64_t now_ms, next_tick_ms;
    struct job *job; /* by id */
    uint32_t job_count, job_room;
    uint32_t *running, running_count;
    uint32_t oldest; /* no request before it waits */
    uint32_t *evicted, evicted_count;
    uint64_t held_permille, target_permille;
    uint64_t placements, grants, evictions;
    struct samples submit, end, tick;
};

static _Noreturn void fail(const char *what, const struct sl_err *err)
{
    fprintf(stderr, "bench-sched: %s: %s\n", what, err ? err->msg : "out of memory");
    exit(1);
}

static double clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void sample(struct samples *s, double us)
{
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 4096;
        s->us = realloc(s->us, s->room * sizeof *s->us);
        if (!s->us)
            fail("samples", NULL);
    }
    s->us[s->count++] = us;
    s->sum_us += us;
}

static void forget_samples(struct bench *b)
{
    struct samples *all[] = { &b->submit, &b->end, &b->tick };
    for (size_t i = 0; i < 3; i++)
        all[i]->count = 0, all[i]->sum_us = 0;
    b->placements = b->grants = b->evictions = 0;
}

/* ---- events ---- */

static void granted(struct bench *b, const struct sched_decision *d)
{
    struct job *j = &b->job[d->id];
    j->stage = RUNS;
    j->option = d->option;
    j->running_at = b->running_count;
    b->running[b->running_count++] = (uint32_t)d->id;
    b->held_permille += j->permille[d->option];
    b->placements += j->places[d->option];
    b->grants++;
}

/* Apply, timed; grants and evictions are noted.  Microseconds. */
static double apply(struct bench *b, const struct sched_event *e, struct samples *into)
{
    const struct sched_decision *d;
    uint32_t count;
    struct sl_err err = { 0 };
    double begin = clock_us();
    int rc = sched_apply(b->sched, e, &d, &count, &err);
    double us = clock_us() - begin;
    if (rc)
        fail("event", &err);
    if (into)
        sample(into, us);
    for (uint32_t i = 0; i < count; i++) {
        if (d[i].kind == SCHED_GRANT) {
            granted(b, &d[i]);
        } else {
            b->evicted[b->evicted_count++] = (uint32_t)d[i].id;
            b->evictions++;
        }
    }
    return us;
}

static struct sched_event event(const struct bench *b, enum sched_event_kind kind)
{
    return (struct sched_event){ .kind = kind, .now_ms = b->now_ms };
}

static void end(struct bench *b, uint32_t id)
{
    struct sched_event e = event(b, SCHED_END);
    struct job *j = &b->job[id];
    e.end = id;
    if (j->stage == RUNS) {
        uint32_t last = b->running[--b->running_count];
        b->running[j->running_at] = last;
        b->job[last].running_at = j->running_at;
        b->held_permille -= j->permille[j->option];
    }
    j->stage = ENDED;
    apply(b, &e, &b->end);
}

static void grow_jobs(struct bench *b)
{
    b->job_room = b->job_room ? 2 * b->job_room : 1 << 16;
    b->job = realloc(b->job, b->job_room * sizeof *b->job);
    b->running = realloc(b->running, b->job_room * sizeof *b->running);
    b->evicted = realloc(b->evicted, b->job_room * sizeof *b->evicted);
    if (!b->job || !b->running || !b->evicted)
        fail("requests", NULL);
}

/* Its id; *us: what the decision took. */
static uint32_t submit(struct bench *b, struct sched_request r, struct samples *into,
                       double *us)
{
    struct sched_event e = event(b, SCHED_SUBMIT);
    if (b->job_count == b->job_room)
        grow_jobs(b);
    uint32_t id = b->job_count++;
    struct job *j = &b->job[id];
    *j = (struct job){ .option_count = r.option_count };
    for (uint32_t i = 0; i < r.option_count; i++)
        for (uint32_t g = 0; g < r.option[i].group_count; g++) {
            const struct sched_group *x = &r.option[i].group[g];
            if (!x->ask.lower) /* which is lent above what the target is a part of */
                j->permille[i] += x->count * x->ask.devices * x->ask.permille;
            j->places[i] += x->count;
        }
    r.id = id;
    e.submit = r;
    *us = apply(b, &e, into);
    return id;
}

/* Those told to go are gone, and whoever waits too long gives up. */
static void clear_out(struct bench *b)
{
    uint64_t patience =
        mix_number(b->mix, "patience_ms") / mix_number(b->mix, "submit_every_ms");
    while (b->evicted_count) {
        uint32_t id = b->evicted[--b->evicted_count];
        if (b->job[id].stage == RUNS) /* else it ended by itself before it was told */
            end(b, id);
    }
    for (; b->oldest + patience < b->job_count; b->oldest++) {
        struct sched_view view;
        if (b->job[b->oldest].stage == WAITS && !sched_find(b->sched, b->oldest, &view) &&
            view.state == SCHED_PENDING)
            end(b, b->oldest);
    }
}

static void tick(struct bench *b)
{
    struct sched_event e = event(b, SCHED_TICK);
    if (b->now_ms < b->next_tick_ms)
        return;
    b->next_tick_ms = b->now_ms + mix_number(b->mix, "tick_every_ms");
    apply(b, &e, &b->tick);
}

/* A request comes; above the target something ends first. */
static void step(struct bench *b)
{
    double us;
    b->now_ms += mix_number(b->mix, "submit_every_ms");
    tick(b);
    while (b->held_permille > b->target_permille)
        end(b, b->running[mix_below(b->mix, b->running_count)]);
    submit(b, mix_request(b->mix), &b->submit, &us);
    clear_out(b);
}

/* ---- the pool ---- */

static void set_quotas(struct bench *b, uint32_t percent)
{
    struct sched_event e = event(b, SCHED_SET_QUOTA);
    for (uint32_t i = 0; i < mix_tenant_count(b->mix); i++)
        for (uint32_t m = 0; m < mix_model_count(b->mix); m++) {
            e.quota = mix_quota(b->mix, i, m, percent);
            apply(b, &e, NULL);
        }
}

static void build(struct bench *b)
{
    struct sched_policy policy;
    struct sl_err err = { 0 };
    sched_policy_init(&policy);
    policy.tenancy = POOL_ALL_SHARING; /* the mix is of tenants that trust each other */
    if (sched_create(&policy, &b->sched, &err))
        fail("scheduler", &err);
    grow_jobs(b);
    struct sched_event e = event(b, SCHED_ADD_NODE);
    for (uint32_t i = 0; i < b->nodes; i++) {
        e.node = mix_node(b->mix, i, b->nodes, b->devices);
        apply(b, &e, NULL);
    }
    e = event(b, SCHED_SET_TENANT);
    for (uint32_t i = 0; i < mix_tenant_count(b->mix); i++) {
        e.tenant = mix_tenant(b->mix, i);
        apply(b, &e, NULL);
    }
    set_quotas(b, 100);
    b->target_permille =
        (uint64_t)b->devices * 10 * mix_number(b->mix, "allocated_percent");
}

static uint64_t rss_bytes(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGE_SIZE);
}

static json_t *real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *fill(struct bench *b)
{
    uint64_t full = 0;
    forget_samples(b);
    for (uint32_t i = 0; full < 1000 && b->held_permille < b->target_permille; i++) {
        uint64_t before = b->held_permille;
        step(b);
        full = b->held_permille > before ? 0 : full + 1;
    }
    double s = (b->submit.sum_us + b->end.sum_us + b->tick.sum_us) / 1e6;
    return json_pack("{s:I, s:I, s:f}", "leases", (json_int_t)b->running_count, "slices",
                     (json_int_t)b->placements, "s", s);
}

/* ---- after a restart ---- */

static void apply_to(struct sched *s, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    struct sl_err err = { 0 };
    if (sched_apply(s, e, &d, &count, &err))
        fail("rebuild", &err);
}

/* A core like ours, where nothing runs. */
static struct sched *empty_twin(const struct bench *b)
{
    struct sched *twin;
    struct sl_err err = { 0 };
    if (sched_create(&b->sched->policy, &twin, &err))
        fail("rebuild", &err);
    struct sched_event e = event(b, SCHED_ADD_NODE);
    for (uint32_t i = 0; i < b->nodes; i++) {
        e.node = *pool_node_at(sched_pool(b->sched), i);
        apply_to(twin, &e);
    }
    for (uint32_t i = 0; i < mix_tenant_count(b->mix); i++) {
        e = event(b, SCHED_SET_TENANT);
        e.tenant = mix_tenant(b->mix, i);
        apply_to(twin, &e);
        for (uint32_t m = 0; m < mix_model_count(b->mix); m++) {
            e = event(b, SCHED_SET_QUOTA);
            e.quota = mix_quota(b->mix, i, m, 100);
            apply_to(twin, &e);
        }
    }
    return twin;
}

/* What runs is restored in another core: nodes, tenants and all leases. */
static json_t *rebuild(struct bench *b)
{
    uint64_t slices = 0;
    double begin = clock_us();
    struct sched *twin = empty_twin(b);
    double empty = clock_us();
    for (uint32_t i = 0; i < b->running_count; i++) {
        const struct request *r = request_by_id(b->sched, b->running[i]);
        struct sched_event e = event(b, SCHED_RESTORE);
        if (r->state != SCHED_RUNNING)
            continue;
        slices += r->place_count;
        e.restore = (struct sched_restore){
            .request = { .id = r->id,
                         .tenant = r->tenant,
                         .priority = r->priority,
                         .preemptible = r->preemptible,
                         .min_run_ms = r->min_run_ms,
                         .option_count = r->form->option_count,
                         .option = r->form->option,
                         .ties = r->form->ties },
            .option = r->option,
            .start_ms = r->start_ms,
            .place_count = r->place_count,
            .place = r->place,
        };
        apply_to(twin, &e);
    }
    double end = clock_us();
    uint32_t leases = twin->request_count;
    sched_destroy(twin);
    return json_pack("{s:I, s:I, s:f, s:f, s:f}", "leases", (json_int_t)leases, "slices",
                     (json_int_t)slices, "s", (end - begin) / 1e6, "nodes_s",
                     (empty - begin) / 1e6, "s_per_150000_leases",
                     (empty - begin + (end - empty) * BUILD_GOAL / leases) / 1e6);
}

/* ---- the steady state ---- */

struct round_sum {
    struct samples submit;
    double busy_us, end_us, tick_us, worst_end_us, worst_tick_us;
    uint64_t placements, grants, evictions;
    double least_allocated, most_allocated;
};

static void run_round(struct bench *b, double seconds, bool scan, struct round_sum *sum)
{
    double until = clock_us() + seconds * 1e6;
    placer_scan_always(b->sched->placer, scan);
    forget_samples(b);
    do {
        step(b);
        double part = (double)b->held_permille / ((double)b->devices * 10);
        sum->least_allocated = fmin(sum->least_allocated, part);
        sum->most_allocated = fmax(sum->most_allocated, part);
    } while (clock_us() < until);
    placer_scan_always(b->sched->placer, false);
    for (size_t i = 0; i < b->submit.count; i++)
        sample(&sum->submit, b->submit.us[i]);
    sum->busy_us += b->submit.sum_us + b->end.sum_us + b->tick.sum_us;
    sum->end_us += b->end.sum_us;
    sum->tick_us += b->tick.sum_us;
    sum->worst_end_us = fmax(sum->worst_end_us, stats_max(b->end.us, b->end.count));
    sum->worst_tick_us = fmax(sum->worst_tick_us, stats_max(b->tick.us, b->tick.count));
    sum->placements += b->placements;
    sum->grants += b->grants;
    sum->evictions += b->evictions;
}

static json_t *figures(struct round_sum *r)
{
    double s = r->busy_us / 1e6;
    double mean = r->submit.sum_us / (double)r->submit.count;
    json_t *j = json_pack(
        "{s:f, s:f, s:f, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}",
        "placements_per_s", (double)r->placements / s, "requests_per_s",
        (double)r->submit.count / s, "mean_us", mean, "p50_us",
        real_or_null(stats_quantile(r->submit.us, r->submit.count, 0.5)), "p99_us",
        real_or_null(stats_quantile(r->submit.us, r->submit.count, 0.99)), "max_us",
        stats_max(r->submit.us, r->submit.count), "busy_s", s, "ends_s", r->end_us / 1e6,
        "ticks_s", r->tick_us / 1e6, "end_max_us", r->worst_end_us, "tick_max_us",
        r->worst_tick_us, "decisions", (json_int_t)r->submit.count, "placements",
        (json_int_t)r->placements, "evictions", (json_int_t)r->evictions);
    free(r->submit.us);
    return j;
}

/* The same asks on the same state, by classes and by scan; each then taken, so that the
 * next state is another, and all given back. */
static json_t *pairs(struct bench *b)
{
    struct placer *pl = b->sched->placer;
    struct pool *p = b->sched->pool;
    double find_us = 0, scan_us = 0;
    int different = 0, found = 0;
    for (int i = 0; i < PAIRS;
         i++) { /* what the scans left undone is caught up with first */
        struct pool_ask a = mix_ask(b->mix);
        struct pool_place at;
        placer_find(pl, &a, NULL, &at);
    }
    if (pool_try(p, PAIRS))
        fail("try", NULL);
    for (int i = 0; i < PAIRS; i++) {
        struct pool_ask a = mix_ask(b->mix);
        struct pool_place by_find = { 0 }, by_scan = { 0 };
        double t0 = clock_us();
        int rc = placer_find(pl, &a, NULL, &by_find);
        double t1 = clock_us();
        int also = placer_scan(pl, &a, NULL, &by_scan);
        find_us += t1 - t0;
        scan_us += clock_us() - t1;
        different += rc != also || (!rc && memcmp(&by_find, &by_scan, sizeof by_find));
        found += !rc;
        if (!rc)
            pool_take(p, &a, &by_find);
    }
    pool_undo(p);
    return json_pack("{s:i, s:i, s:i, s:f, s:f}", "asks", PAIRS, "placed", found,
                     "different_places", different, "find_mean_us", find_us / PAIRS,
                     "scan_mean_us", scan_us / PAIRS);
}

/* ---- hard decisions ---- */

static struct sched_option gang_of(uint32_t count, uint32_t devices)
{
    return (struct sched_option){ .group_count = 1,
                                  .group[0] = { { devices,
                                                  1000,
                                                  (uint64_t)8 << 30,
                                                  devices * 1000,
                                                  (uint64_t)devices << 32,
                                                  0,
                                                  { { 0 } },
                                                  { { 0 } },
                                                  0 },
                                                count } };
}

static enum sched_verdict verdict_of(const struct bench *b, uint32_t id)
{
    struct sched_view view = { 0 };
    sched_find(b->sched, id, &view);
    return view.verdict;
}

static uint32_t most_of_a_node(const struct bench *b)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->nodes; i++) {
        uint32_t has = pool_node_at(sched_pool(b->sched), i)->device_count;
        most = has > most ? has : most;
    }
    return most;
}

static uint32_t tenant_beside(struct bench *b, uint32_t number)
{
    struct sched_event e = event(b, SCHED_SET_TENANT);
    e.tenant = (struct sched_tenant){ .tenant = mix_tenant_count(b->mix) + number,
                                      .parent = SCHED_ROOT,
                                      .weight = 1 };
    apply(b, &e, NULL);
    return e.tenant.tenant;
}

struct tries {
    struct samples us;
    uint32_t granted, no_room;
};

static void try_gang(struct bench *b, uint32_t tenant, const struct sched_option *o,
                     struct tries *t)
{
    struct sched_request r = { .tenant = tenant, .option_count = 1, .option = o };
    double us;
    uint32_t id = submit(b, r, &t->us, &us);
    t->granted += b->job[id].stage == RUNS;
    t->no_room += b->job[id].stage == WAITS && verdict_of(b, id) == SCHED_NO_ROOM;
    end(b, id);
}

static json_t *tries_json(struct tries *t, uint32_t nodes)
{
    json_t *j = json_pack("{s:i, s:I, s:i, s:i, s:f, s:f}", "nodes", nodes, "tries",
                          (json_int_t)t->us.count, "granted", t->granted, "no_room",
                          t->no_room, "median_us", stats_median(t->us.us, t->us.count),
                          "max_us", stats_max(t->us.us, t->us.count));
    free(t->us.us);
    return j;
}

/* A gang of more whole nodes than are empty: the time until that is known. */
static json_t *cannot_run(struct bench *b)
{
    uint32_t count = b->nodes / 4 < 512 ? b->nodes / 4 : 512;
    uint32_t tenant = tenant_beside(b, 1);
    struct sched_option o = gang_of(count, most_of_a_node(b));
    struct tries t = { 0 };
    for (int i = 0; i < REPEATS; i++) {
        for (int k = 0; k < 20; k++)
            step(b);
        try_gang(b, tenant, &o, &t);
    }
    return tries_json(&t, count);
}

/* Nobody waits; then the leases of so many nodes of this size end. */
static void empty_nodes(struct bench *b, uint32_t count, uint32_t size)
{
    uint32_t last = 0;
    struct sched_view view;
    for (uint32_t id = b->oldest; id < b->job_count; id++)
        if (b->job[id].stage == WAITS && !sched_find(b->sched, id, &view))
            end(b, id);
    for (; count && last < b->nodes; last++)
        count -= pool_node_at(sched_pool(b->sched), last)->device_count == size;
    for (uint32_t i = b->running_count; i-- > 0;) {
        uint32_t id = b->running[i], k = 0;
        if (sched_find(b->sched, id, &view))
            continue;
        while (k < view.place_count && view.place[k].node >= last)
            k++;
        if (k < view.place_count)
            end(b, id);
    }
}

/* A gang of one whole node each over many nodes, where there is room for it. */
static json_t *large_gang(struct bench *b)
{
    uint32_t count = b->nodes / 16 < 512 ? b->nodes / 16 : 512, size = most_of_a_node(b);
    uint32_t tenant = tenant_beside(b, 1);
    struct sched_option o = gang_of(count, size);
    struct tries t = { 0 };
    empty_nodes(b, count, size);
    for (int i = 0; i < REPEATS; i++)
        try_gang(b, tenant, &o, &t);
    return tries_json(&t, count);
}

/* All idle devices go to one tenant; the quotas fall to half of the use; another tenant, owed
 * them, asks for whole devices back in one request. */
static json_t *reclaim(struct bench *b)
{
    uint32_t count = b->devices / 4 < 2000 ? b->devices / 4 : 2000;
    uint32_t filler = tenant_beside(b, 2);
    uint32_t owed = tenant_beside(b, 3);
    struct sched_option o = gang_of(1, 1);
    double us;
    uint32_t id;
    do
        id = submit(
            b,
            (struct sched_request){
                .tenant = filler, .preemptible = true, .option_count = 1, .option = &o },
            NULL, &us);
    while (b->job[id].stage == RUNS);
    end(b, id);
    b->now_ms += mix_number(b->mix, "min_run_ms");
    set_quotas(b, 50);
    struct sched_event e = event(b, SCHED_SET_QUOTA);
    for (uint32_t m = 0; m < mix_model_count(b->mix); m++) {
        e.quota = (struct sched_quota){ owed, m, (uint64_t)count * 1000, SCHED_NO_LIMIT };
        apply(b, &e, NULL);
    }
    o = gang_of(count, 1);
    uint64_t before = b->evictions;
    id =
        submit(b, (struct sched_request){ .tenant = owed, .option_count = 1, .option = &o },
               NULL, &us);
    uint64_t evictions = b->evictions - before;
    clear_out(b);
    return json_pack("{s:i, s:I, s:I, s:b, s:f}", "devices", count, "candidates",
                     (json_int_t)b->running_count, "evicted", (json_int_t)evictions,
                     "granted", b->job[id].stage == RUNS, "us", us);
}

/* ---- the run ---- */

static uint64_t slices(const struct bench *b)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < b->running_count; i++)
        n += b->job[b->running[i]].places[b->job[b->running[i]].option];
    return n;
}

static json_t *measure(struct bench *b, double seconds)
{
    struct round_sum ours = { .least_allocated = 100 }, scan = { .least_allocated = 100 };
    json_t *j = json_pack("{s:i, s:i}", "nodes", b->nodes, "devices", b->devices);
    build(b);
    json_object_set_new(j, "fill", fill(b));
    for (uint32_t i = 0; i < b->running_count / 10 + 100; i++)
        step(b); /* until what was filled in order is mixed */
    json_object_set_new(j, "rebuild", rebuild(b));
    for (int i = 0; i < ROUNDS; i++)
        run_round(b, seconds / ROUNDS * 2, i % 2, i % 2 ? &scan : &ours);
    json_object_update_new(j, figures(&ours));
    json_t *full = figures(&scan);
    json_object_set_new(full, "same_states", pairs(b));
    json_object_set_new(j, "full_scan", full);
    json_object_set_new(j, "allocated_pct",
                        json_pack("{s:f, s:f}", "least",
                                  fmin(ours.least_allocated, scan.least_allocated), "most",
                                  fmax(ours.most_allocated, scan.most_allocated)));
    json_object_set_new(j, "leases", json_integer(b->running_count));
    json_object_set_new(j, "slices", json_integer((json_int_t)slices(b)));
    json_object_set_new(j, "waiting",
                        json_integer(b->sched->request_count - b->running_count));
    json_object_set_new(j, "classes", json_integer(b->sched->pool->classes.live));
    json_object_set_new(j, "rss_bytes", json_integer((json_int_t)rss_bytes()));
    json_object_set_new(j, "cannot_run_now", cannot_run(b));
    json_object_set_new(j, "reclaim", reclaim(b));
    json_object_set_new(j, "large_gang", large_gang(b));
    json_object_set(j, "mix", mix_json(b->mix));
    return j;
}

static void print_table(json_t *j)
{
    static const char *const keys[] = { "placements_per_s", "requests_per_s", "p50_us",
                                        "p99_us", "max_us" };
    const json_t *scan = json_object_get(j, "full_scan");
    printf("%-18s %12s %12s\n", "", "classes", "full scan");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        printf("%-18s %12.1f %12.1f\n", keys[i],
               json_number_value(json_object_get(j, keys[i])),
               json_number_value(json_object_get(scan, keys[i])));
    json_dumpf(json_object_get(j, "mix"), stdout, JSON_INDENT(1));
    putchar('\n');
}

static _Noreturn void usage(void)
{
    fputs("usage: bench-sched --nodes N --devices-per-node D [--seconds S] [--mix FILE] "
          "[--json]\n",
          stderr);
    exit(2);
}

static double positive(const char *text, double most)
{
    char *rest;
    double v = strtod(text, &rest);
    if (*rest || !(v > 0) || v > most)
        usage();
    return v;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "nodes", required_argument, NULL, 'n' },
        { "devices-per-node", required_argument, NULL, 'd' },
        { "seconds", required_argument, NULL, 's' },
        { "mix", required_argument, NULL, 'm' },
        { "json", no_argument, NULL, 'j' },
        { 0 },
    };
    struct bench b = { .now_ms = 1 };
    const char *path = BENCH_MIX;
    double nodes = 0, each = 0, seconds = 10;
    bool json = false;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'n')
            nodes = floor(positive(optarg, 1e6));
        else if (c == 'd')
            each = positive(optarg, 8);
        else if (c == 's')
            seconds = positive(optarg, 3600);
        else if (c == 'm')
            path = optarg;
        else if (c == 'j')
            json = true;
        else
            usage();
    }
    if (nodes < 16 || !each || optind != argc)
        usage();
    b.mix = mix_open(path);
    b.nodes = (uint32_t)nodes;
    b.devices = (uint32_t)lround(nodes * each);
    json_t *j = measure(&b, seconds);
    if (json) {
        json_dumpf(j, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
        putchar('\n');
    } else {
        print_table(j);
    }
    json_decref(j);
    sched_destroy(b.sched);
    mix_close(b.mix);
    free(b.job);
    free(b.running);
    free(b.evicted);
    free(b.submit.us);
    free(b.end.us);
    free(b.tick.us);
    return 0;
}
