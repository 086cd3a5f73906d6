/* What a scenario expects: looking, waiting for it, and saying what is so instead. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "model/units.h"
#include "run.h"

static bool waits(const struct run *r, uint32_t job, const struct expectation *x)
{
    struct sched_view view;
    if (r->job[job].state != JOB_WAITS || sched_find(r->sched, job, &view))
        return false;
    return x->verdict < 0 || (int)view.verdict == x->verdict;
}

static bool runs(const struct run *r, uint32_t job, const struct expectation *x)
{
    struct sched_view view;
    if (r->job[job].state != JOB_RUNS || sched_find(r->sched, job, &view))
        return false;
    for (uint32_t i = 0; x->other != NAMES_NONE && i < view.place_count; i++)
        if (view.place[i].node != r->core_node[x->other])
            return false;
    return true;
}

static bool is_so(const struct run *r, uint32_t job, const struct expectation *x)
{
    const struct job *j = &r->job[job];
    switch (x->what) {
    case EX_RUNS:
        return runs(r, job, x);
    case EX_WAITS:
        return waits(r, job, x);
    case EX_LEAVES:
        return j->state == JOB_LEAVES;
    case EX_OVER:
        return j->state == JOB_OVER;
    case EX_REFUSED:
        return j->state == JOB_REFUSED;
    case EX_EVICTED:
        return j->evicted && (x->other == NAMES_NONE || x->other == j->by) &&
               (x->rule < 0 || (int)j->rule == x->rule);
    case EX_WAITED:
        return x->more ? job_waited_ms(r, job) > x->amount
                       : job_waited_ms(r, job) < x->amount;
    case EX_HOLDS:
        return sched_held_milli(r->sched, job + 1, x->model) == x->amount;
    }
    return false;
}

/* How many of the set are as expected; *first is one that is not. */
static uint32_t count(const struct run *r, const struct statement *st, uint32_t *first)
{
    uint32_t good = 0;
    *first = NAMES_NONE;
    for (uint32_t i = 0; i < st->who.count; i++) {
        uint32_t job = r->s->index[st->who.first + i];
        if (is_so(r, job, &st->expect) != st->expect.negated)
            good++;
        else if (*first == NAMES_NONE)
            *first = job;
    }
    return good;
}

static bool holds(const struct run *r, const struct statement *st, uint32_t *good,
                  uint32_t *first)
{
    const struct expectation *x = &st->expect;
    *good = count(r, st, first);
    if (!x->counted)
        return *good == st->who.count;
    return x->exactly ? *good == x->count : *good >= x->count;
}

/* ---- what is so instead ---- */

static void describe_wait(const struct run *r, uint32_t job, char *out, size_t room)
{
    static const char *const why[] = {
        [SCHED_NOT_WAITING] = "for its turn",
        [SCHED_IMPOSSIBLE] = "for nothing: no node could ever run it",
        [SCHED_OVER_LIMIT] = "for quota",
        [SCHED_NO_ROOM] = "for room",
        [SCHED_BEING_MADE] = "for others to go",
    };
    struct sched_view view = { 0 };
    char since[32];
    sched_find(r->sched, job, &view);
    units_format_duration(job_waited_ms(r, job), since);
    snprintf(out, room, "waits %s, %s so far",
             view.verdict < ARRAY_LEN(why) ? why[view.verdict] : "", since);
}

static void describe(const struct run *r, uint32_t job, char *out, size_t room)
{
    const struct job *j = &r->job[job];
    char waited[32];
    units_format_duration(j->waited_ms, waited);
    switch (j->state) {
    case JOB_NEW:
        snprintf(out, room, "was not submitted");
        break;
    case JOB_REFUSED:
        snprintf(out, room, "was refused");
        break;
    case JOB_WAITS:
        describe_wait(r, job, out, room);
        break;
    case JOB_RUNS:
        snprintf(out, room, "runs on %s and waited %s", names_text(&r->s->nodes, j->node),
                 waited);
        break;
    case JOB_LEAVES:
    case JOB_OVER:
        snprintf(out, room, "%s%s%s", j->state == JOB_OVER ? "is over" : "is leaving",
                 j->evicted ? ", told to go for " : "",
                 j->evicted ? names_text(&r->s->jobs, j->by) : "");
        break;
    }
}

static void say(struct run *r, const struct statement *st, uint32_t good, uint32_t first)
{
    char line[512], instead[192], now[32];
    size_t at;
    units_format_duration(r->now_ms, now);
    at = (size_t)snprintf(line, sizeof line, "%s:%u: %.*s\n  at %s ", r->s->file, st->line,
                          (int)strcspn(st->text, "\r\n"), st->text, now);
    if (st->expect.what == EX_HOLDS) {
        uint64_t milli =
            sched_held_milli(r->sched, r->s->index[st->who.first] + 1, st->expect.model);
        snprintf(line + at, sizeof line - at, "it holds %" PRIu64 ".%03u", milli / 1000,
                 (unsigned)(milli % 1000));
    } else {
        if (st->expect.counted)
            at += (size_t)snprintf(line + at, sizeof line - at, "there are %u%s", good,
                                   first == NAMES_NONE ? "" : "; ");
        if (first != NAMES_NONE) {
            describe(r, first, instead, sizeof instead);
            snprintf(line + at, sizeof line - at, "%s %s", names_text(&r->s->jobs, first),
                     instead);
        }
    }
    r->say(r->ctx, line);
}

int expect_check(struct run *r, const struct statement *st)
{
    uint32_t good, first;
    uint64_t until = r->now_ms + st->expect.within_ms;
    int rc = 0;
    r->result.expected++;
    while (!rc && !holds(r, st, &good, &first)) {
        if (r->now_ms == until && !run_due(r)) {
            r->result.failed++;
            say(r, st, good, first);
            return 0;
        }
        rc = run_step(r, until);
    }
    return rc;
}
