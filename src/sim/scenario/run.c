/* Scenarios run: statements in order, virtual time, and the core's decisions. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"

#define NEVER  UINT64_MAX
#define QUOTAS (SCHED_ALL_MODELS + 1)

static int no_memory(struct run *r)
{
    return sl_fail(r->err, SL_INTERNAL, "%s:%u: out of memory", r->s->file, r->at->line);
}

/* ---- timers ---- */

static int timer_add(struct run *r, struct agenda_item t)
{
    return agenda_add(&r->agenda, t) ? no_memory(r) : 0;
}

/* ---- jobs ---- */

uint64_t job_waited_ms(const struct run *r, uint32_t job)
{
    const struct job *j = &r->job[job];
    return j->waited_ms + (j->state == JOB_WAITS ? r->now_ms - j->since_ms : 0);
}

static void job_becomes(struct run *r, uint32_t job, enum job_state state)
{
    struct job *j = &r->job[job];
    uint64_t passed = r->now_ms - j->since_ms;
    if (j->state == JOB_WAITS) {
        j->waited_ms += passed;
        r->waiting--;
    }
    if (j->state == JOB_RUNS || j->state == JOB_LEAVES)
        j->ran_ms += passed;
    if (state == JOB_WAITS)
        r->waiting++;
    j->state = state;
    j->since_ms = r->now_ms;
    j->epoch++;
}

static int job_timer(struct run *r, uint32_t job, enum timer_kind kind, uint64_t in_ms)
{
    return timer_add(r, (struct agenda_item){ .at_ms = r->now_ms + in_ms,
                                              .kind = kind,
                                              .id = job,
                                              .epoch = r->job[job].epoch });
}

static int granted(struct run *r, const struct sched_decision *d)
{
    uint32_t job = (uint32_t)d->id;
    struct job *j = &r->job[job];
    job_becomes(r, job, JOB_RUNS);
    j->node = r->node_name[d->place[0].node];
    uint64_t run_ms = j->sub->run_ms ? sub_sat_u64(j->sub->run_ms, j->ran_ms) : NEVER;
    if (j->sub->request.limit_ms) /* it is killed */
        run_ms = min_u64(run_ms, j->sub->request.limit_ms);
    return run_ms == NEVER ? 0 : job_timer(r, job, TIMER_DONE, run_ms);
}

static int told(struct run *r, const struct sched_decision *d)
{
    uint32_t job = (uint32_t)d->id;
    struct job *j = &r->job[job];
    job_becomes(r, job, JOB_LEAVES);
    j->evicted = true;
    j->by = (uint32_t)d->by;
    j->rule = d->rule;
    return job_timer(r, job, TIMER_GONE, j->sub->leave_ms);
}

static int apply(struct run *r, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    e->now_ms = r->now_ms;
    int rc = sched_apply(r->sched, e, &d, &count, r->err);
    for (uint32_t i = 0; i < count; i++) {
        int failed = d[i].kind == SCHED_GRANT ? granted(r, &d[i]) : told(r, &d[i]);
        rc = rc ? rc : failed;
    }
    if (!rc)
        sched_check(r->sched);
    return rc;
}

/* What the core refuses ends the scenario. */
static int must(struct run *r, struct sched_event *e)
{
    int rc = apply(r, e);
    return rc ? sl_prefix(r->err, "%s:%u", r->s->file, r->at->line) : 0;
}

static int submit(struct run *r, const struct submission *sub, uint32_t job)
{
    struct job *j = &r->job[job];
    struct sched_event e = { .kind = SCHED_SUBMIT, .submit = sub->request };
    struct sl_err refusal;
    e.submit.id = job;
    e.submit.option = sub->option;
    if (j->state != JOB_OVER && j->state != JOB_NEW && j->state != JOB_REFUSED)
        return sl_fail(r->err, SL_CONFLICT, "%s:%u: '%s' was submitted and is not over",
                       r->s->file, r->at->line, names_text(&r->s->jobs, job));
    if (sub != j->sub || !sub->requeued)
        *j = (struct job){ .epoch = j->epoch };
    e.submit.attained_ms = j->ran_ms;
    j->sub = sub;
    job_becomes(r, job, JOB_WAITS); /* the answer may grant it */
    struct sl_err *err = r->err;
    r->err = &refusal;
    int rc = apply(r, &e);
    r->err = err;
    if (rc == -SL_INTERNAL)
        return no_memory(r);
    if (rc)
        job_becomes(r, job, JOB_REFUSED);
    return 0;
}

/* It is over; what must run again waits again. */
static int finish(struct run *r, uint32_t job, bool again)
{
    struct job *j = &r->job[job];
    struct sched_event e = { .kind = SCHED_END, .end = job };
    if (j->state != JOB_WAITS && j->state != JOB_RUNS && j->state != JOB_LEAVES)
        return 0;
    job_becomes(r, job, JOB_OVER);
    int rc = must(r, &e);
    if (rc || !again || !j->sub->requeued)
        return rc;
    return submit(r, j->sub, job);
}

/* ---- time ---- */

static int submit_next(struct run *r, const struct statement *st, uint32_t nth);

static int fire(struct run *r, const struct agenda_item *t)
{
    if (t->kind == TIMER_SUBMIT)
        return submit_next(r, t->of, t->id);
    if (t->epoch != r->job[t->id].epoch)
        return 0;
    return finish(r, t->id, t->kind == TIMER_GONE);
}

bool run_due(const struct run *r)
{
    return agenda_next_ms(&r->agenda) <= r->now_ms;
}

int run_step(struct run *r, uint64_t until_ms)
{
    uint64_t timer = agenda_next_ms(&r->agenda);
    uint64_t tick = r->waiting ? (r->now_ms / r->s->tick_ms + 1) * r->s->tick_ms : NEVER;
    uint64_t next = min_u64(timer, tick);
    if (next > until_ms) {
        r->now_ms = until_ms;
        return 0;
    }
    r->now_ms = next;
    if (next == timer) {
        struct agenda_item t = agenda_take(&r->agenda);
        return fire(r, &t);
    }
    return must(r, &(struct sched_event){ .kind = SCHED_TICK });
}

static int run_until(struct run *r, uint64_t ms)
{
    int rc = 0;
    if (ms < r->now_ms)
        return sl_fail(r->err, SL_INVALID, "%s:%u: it is later than that already",
                       r->s->file, r->at->line);
    while (!rc && (r->now_ms < ms || run_due(r)))
        rc = run_step(r, ms);
    return rc;
}

/* ---- statements ---- */

static uint32_t member(const struct run *r, const struct set *set, uint32_t nth)
{
    return r->s->index[set->first + nth];
}

static int add_nodes(struct run *r, const struct statement *st)
{
    int rc = 0;
    for (uint32_t i = 0; i < st->who.count && !rc; i++) {
        uint32_t number = pool_node_count(sched_pool(r->sched));
        struct sched_event e = { .kind = SCHED_ADD_NODE, .node = st->node };
        r->core_node[member(r, &st->who, i)] = number;
        r->node_name[number] = member(r, &st->who, i);
        rc = must(r, &e);
    }
    return rc;
}

static int set_quota(struct run *r, uint32_t tenant, const struct tenant_quota *said)
{
    struct tenant_quota *q = &r->quota[tenant * QUOTAS + said->model];
    if (said->deserves)
        q->deserved_milli = said->deserved_milli;
    if (said->limits)
        q->limit_milli = said->limit_milli;
    struct sched_event e = { .kind = SCHED_SET_QUOTA,
                             .quota = { tenant + 1, said->model, q->deserved_milli,
                                        q->limit_milli } };
    return must(r, &e);
}

static int set_tenant(struct run *r, const struct statement *st)
{
    uint32_t tenant = member(r, &st->who, 0);
    int rc = 0;
    if (!r->tenant_known[tenant] || st->tenant.has_weight) {
        if (!r->tenant_known[tenant] && st->tenant.has_parent)
            r->tenant_parent[tenant] = st->tenant.parent + 1;
        r->tenant_known[tenant] = true;
        struct sched_event e = { .kind = SCHED_SET_TENANT,
                                 .tenant = { tenant + 1, r->tenant_parent[tenant],
                                             st->tenant.has_weight ? st->tenant.weight
                                                                   : 1 } };
        rc = must(r, &e);
    }
    for (uint32_t i = 0; i < st->tenant.quota_count && !rc; i++)
        rc = set_quota(r, tenant, &st->tenant.quota[i]);
    return rc;
}

static int submit_next(struct run *r, const struct statement *st, uint32_t nth)
{
    int rc = submit(r, st->submit, member(r, &st->who, nth));
    if (rc || nth + 1 == st->who.count)
        return rc;
    return timer_add(r, (struct agenda_item){ .at_ms = r->now_ms + st->submit->every_ms,
                                              .kind = TIMER_SUBMIT,
                                              .of = st,
                                              .id = nth + 1 });
}

static int submit_all(struct run *r, const struct statement *st)
{
    int rc = 0;
    if (st->submit->every_ms)
        return submit_next(r, st, 0);
    for (uint32_t i = 0; i < st->who.count && !rc; i++)
        rc = submit(r, st->submit, member(r, &st->who, i));
    return rc;
}

static int end_all(struct run *r, const struct statement *st)
{
    int rc = 0;
    for (uint32_t i = 0; i < st->who.count && !rc; i++)
        rc = finish(r, member(r, &st->who, i), false);
    return rc;
}

static bool runs_on(const struct run *r, uint32_t job, uint32_t node)
{
    struct sched_view view;
    if (r->job[job].state != JOB_RUNS && r->job[job].state != JOB_LEAVES)
        return false;
    if (sched_find(r->sched, job, &view))
        return false;
    for (uint32_t i = 0; i < view.place_count; i++)
        if (view.place[i].node == node)
            return true;
    return false;
}

static int set_open(struct run *r, const struct statement *st)
{
    int rc = 0;
    for (uint32_t i = 0; i < st->who.count && !rc; i++) {
        uint32_t node = r->core_node[member(r, &st->who, i)];
        struct sched_event e = { .kind = SCHED_OPEN_NODE,
                                 .open = { node, st->kind == ST_OPEN } };
        rc = must(r, &e);
        for (uint32_t job = 0; st->kind == ST_FAIL && job < r->s->jobs.count && !rc; job++)
            if (runs_on(r, job, node))
                rc = finish(r, job, true);
    }
    return rc;
}

static int perform(struct run *r, const struct statement *st)
{
    struct sched_event price = { .kind = SCHED_SET_PRICE };
    r->at = st;
    switch (st->kind) {
    case ST_NODE:
        return add_nodes(r, st);
    case ST_TENANT:
        return set_tenant(r, st);
    case ST_PRICE:
        price.price = st->price;
        return must(r, &price);
    case ST_SUBMIT:
        return submit_all(r, st);
    case ST_END:
        return end_all(r, st);
    case ST_OPEN:
    case ST_CLOSE:
    case ST_FAIL:
        return set_open(r, st);
    case ST_AT:
        return run_until(r, st->ms);
    case ST_AFTER:
        return run_until(r, r->now_ms + st->ms);
    case ST_EXPECT:
        return expect_check(r, st);
    }
    return 0;
}

/* What happens at this very moment has happened before the next statement. */
static int settle(struct run *r)
{
    int rc = 0;
    while (!rc && run_due(r))
        rc = run_step(r, r->now_ms);
    return rc;
}

static int prepare(struct run *r)
{
    const struct scenario *s = r->s;
    size_t quotas = (size_t)s->tenants.count * QUOTAS;
    r->job = calloc(s->jobs.count + 1, sizeof *r->job);
    r->core_node = calloc(s->nodes.count + 1, sizeof *r->core_node);
    r->node_name = calloc(s->nodes.count + 1, sizeof *r->node_name);
    r->tenant_known = calloc(s->tenants.count + 1, sizeof *r->tenant_known);
    r->tenant_parent = calloc(s->tenants.count + 1, sizeof *r->tenant_parent);
    r->quota = calloc(quotas + 1, sizeof *r->quota);
    if (!r->job || !r->core_node || !r->node_name || !r->tenant_known ||
        !r->tenant_parent || !r->quota)
        return sl_fail(r->err, SL_INTERNAL, "%s: out of memory", s->file);
    for (size_t i = 0; i < quotas; i++)
        r->quota[i].limit_milli = SCHED_NO_LIMIT;
    return sched_create(&s->policy, &r->sched, r->err);
}

int scenario_run(const struct scenario *s, scenario_say_fn *say, void *ctx,
                 struct scenario_result *out, struct sl_err *err)
{
    struct run r = { .s = s, .say = say, .ctx = ctx, .err = err };
    int rc = prepare(&r);
    for (uint32_t i = 0; i < s->count && !rc; i++) {
        rc = perform(&r, &s->statement[i]);
        if (!rc)
            rc = settle(&r);
    }
    r.result.ms = r.now_ms;
    if (!rc)
        *out = r.result;
    sched_destroy(r.sched);
    free(r.job);
    free(r.core_node);
    free(r.node_name);
    free(r.tenant_known);
    free(r.tenant_parent);
    free(r.quota);
    agenda_finish(&r.agenda);
    return rc;
}
