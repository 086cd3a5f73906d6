/* `sluice-sim replay`: a log's events through a scheduler core, each decision compared. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sched/log.h"
#include "sim/command.h"
#include "sim/schedlog.h"

#define PROGRESS_EVENTS 4096

struct replay {
    struct sim *sim;
    const char *path;
    bool say_decisions, say_events;
    struct sched *sched;
    struct sched_log_reader log;
    uint64_t events, decisions, refused, unknown; /* unknown: without an outcome */
    /* the last event: what came of it here, until its outcome is read */
    bool open;
    int rc;
    struct buf event, body; /* in words; as bytes */
    uint64_t now_ms;
    const struct sched_decision *decision;
    uint32_t count;
};

static void print_place_in_time(FILE *out, const struct replay *r)
{
    fprintf(out, "event %" PRIu64 " at %" PRIu64 ".%03u s", r->events, r->now_ms / 1000,
            (unsigned)(r->now_ms % 1000));
}

static void print_decision(FILE *out, const char *what, const struct sched_decision *d)
{
    AUTO_BUF struct buf text = { 0 };
    if (d)
        sched_decision_text(&text, d);
    fprintf(out, "%s%s\n", what, d ? text.text ? text.text : "?" : "nothing more");
}

static int apply_event(struct replay *r, const struct sched_event *e, struct sl_err *err)
{
    r->unknown += r->open;
    r->open = true;
    r->events++;
    r->now_ms = e->now_ms;
    r->event.len = 0;
    sched_event_text(&r->event, e);
    r->rc = sched_apply(r->sched, e, &r->decision, &r->count, NULL);
    if (buf_failed(&r->event) || r->rc == -SL_INTERNAL)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    r->decisions += r->count;
    r->refused += r->rc != 0;
    if (r->say_events) {
        print_place_in_time(r->sim->out, r);
        fprintf(r->sim->out, ": %s%s\n", r->event.text, r->rc ? " (refused)" : "");
    }
    for (uint32_t i = 0; r->say_decisions && i < r->count; i++) {
        print_place_in_time(r->sim->out, r);
        print_decision(r->sim->out, ": ", &r->decision[i]);
    }
    return 0;
}

static bool same_decision(const struct sched_decision *a, const struct sched_decision *b)
{
    AUTO_BUF struct buf x = { 0 }, y = { 0 };
    sched_log_outcome_body(&x, 0, a, 1);
    sched_log_outcome_body(&y, 0, b, 1);
    return x.len == y.len && !memcmp(x.text, y.text, x.len);
}

/* The first decision that is another, of both. */
static void print_difference(const struct replay *r, const struct sched_log_record *x)
{
    FILE *out = r->sim->out;
    uint32_t i = 0;
    fprintf(out, "%s: ", r->path);
    print_place_in_time(out, r);
    fprintf(out, " decides otherwise: %s\n", r->event.text);
    if (r->rc != x->rc) {
        fprintf(out, "  the log:  %s\n", x->rc ? sl_code_row(-x->rc)->wire : "accepted");
        fprintf(out, "  this run: %s\n", r->rc ? sl_code_row(-r->rc)->wire : "accepted");
        return;
    }
    while (i < r->count && i < x->count && same_decision(&r->decision[i], &x->decision[i]))
        i++;
    print_decision(out, "  the log:  ", i < x->count ? &x->decision[i] : NULL);
    print_decision(out, "  this run: ", i < r->count ? &r->decision[i] : NULL);
}

/* 1: they differ, and it was said where. */
static int compare_outcome(struct replay *r, const struct sched_log_record *x,
                           struct sl_err *err)
{
    if (!r->open)
        return sl_fail(err, SL_INVALID, "%s: byte %zu: decisions without an event", r->path,
                       x->at);
    r->open = false;
    r->body.len = 0;
    sched_log_outcome_body(&r->body, r->rc, r->decision, r->count);
    if (buf_failed(&r->body))
        return sl_fail(err, SL_INTERNAL, "out of memory");
    if (r->body.len == x->body_size && !memcmp(r->body.text, x->body, r->body.len))
        return 0;
    print_difference(r, x);
    return 1;
}

static void print_sum(const struct replay *r, const struct sched_log_record *last)
{
    FILE *out = r->sim->out;
    fprintf(out, "%s: %" PRIu64 " events, %" PRIu64 " decisions: all as in the log\n",
            r->path, r->events, r->decisions);
    if (r->refused)
        fprintf(out, "  %" PRIu64 " events were refused, as then\n", r->refused);
    if (r->unknown)
        fprintf(out, "  of %" PRIu64 " events the log does not say what was decided\n",
                r->unknown);
    if (last->kind == SCHED_LOG_TORN)
        fprintf(out,
                "  the log ends inside a record: %zu bytes from byte %zu on are not"
                " used\n",
                r->log.size - last->at, last->at);
}

/* 0: the same; 1: it was said where they differ. */
static int replay_all(struct replay *r, struct sl_err *err)
{
    struct sched_log_record x;
    for (;;) {
        int rc = sched_log_next(&r->log, &x, err);
        if (rc)
            return sl_prefix(err, "%.100s", r->path);
        if (x.kind == SCHED_LOG_END || x.kind == SCHED_LOG_TORN)
            break;
        rc = x.kind == SCHED_LOG_EVENT ? apply_event(r, &x.event, err)
                                       : compare_outcome(r, &x, err);
        if (rc)
            return rc;
        if (r->events % PROGRESS_EVENTS == 0 && !r->say_events && !r->say_decisions)
            sim_progress(r->sim, "replay", x.at, r->log.size);
    }
    r->unknown += r->open;
    sim_progress(r->sim, "replay", 1, 1);
    print_sum(r, &x);
    return 0;
}

static int replay(struct replay *r, struct sl_err *err)
{
    AUTO_FREE char *bytes = NULL;
    size_t size;
    struct sched_policy policy;
    int rc = schedlog_read(r->path, &bytes, &size, err);
    if (rc)
        return rc;
    if (sched_log_open(&r->log, bytes, size, &policy, err))
        return sl_prefix(err, "%.100s", r->path);
    rc = sched_create(&policy, &r->sched, err);
    if (!rc)
        rc = replay_all(r, err);
    sched_destroy(r->sched);
    sched_log_close(&r->log);
    return rc;
}

int sim_cmd_replay(struct sim *sim, const struct sim_args *args)
{
    struct sl_err err = { 0 };
    struct replay r = { .sim = sim,
                        .path = args->operand[0],
                        .say_decisions = sim_has(args, "decisions"),
                        .say_events = sim_has(args, "events") };
    int rc = replay(&r, &err);
    buf_finish(&r.event);
    buf_finish(&r.body);
    return rc < 0 ? sim_fail(sim, &err) : rc;
}
