/* Scenarios: from words to statements; what happens, and the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"
#include "reader.h"

#define TICK_MS 10000u

/* ---- events ---- */

static void read_end(struct reader *r)
{
    r->st->kind = ST_END;
    r->st->who = read_set(r, &r->s->jobs, "job", true);
}

static void read_nodes(struct reader *r, enum statement_kind kind)
{
    r->st->kind = kind;
    r->st->who = read_set(r, &r->s->nodes, "node", true);
}

static void read_open(struct reader *r)
{
    read_nodes(r, ST_OPEN);
}

static void read_close(struct reader *r)
{
    read_nodes(r, ST_CLOSE);
}

static void read_fail(struct reader *r)
{
    read_nodes(r, ST_FAIL);
}

static void read_at(struct reader *r)
{
    r->st->kind = ST_AT;
    r->st->ms = words_duration(&r->w);
}

static void read_after(struct reader *r)
{
    r->st->kind = ST_AFTER;
    r->st->ms = words_duration(&r->w);
}

/* ---- the file ---- */

static const struct clause statements[] = {
    { "node", read_node },     { "nodes", read_node },    { "tenant", read_tenant },
    { "price", read_price },   { "submit", read_submit }, { "end", read_end },
    { "cancel", read_end },    { "open", read_open },     { "close", read_close },
    { "fail", read_fail },     { "at", read_at },         { "after", read_after },
    { "expect", read_expect },
};

static void read_statement(struct reader *r)
{
    struct scenario *s = r->s;
    const char *line = r->w.line_begin;
    if (words_take(&r->w, "policy")) {
        read_policy(r);
        return;
    }
    if (array_reserve(&s->statement, &s->room, s->count + 1, sizeof *s->statement)) {
        out_of_memory(r);
        return;
    }
    r->st = &s->statement[s->count++];
    *r->st = (struct statement){ .line = r->w.line };
    read_clause(r, statements, ARRAY_LEN(statements), "statement");
    if (r->st->kind == ST_EXPECT)
        snprintf(r->st->text, sizeof r->st->text, "%.*s", (int)(r->w.next - line), line);
}

int scenario_read(const struct text *text, struct scenario **out, struct sl_err *err)
{
    struct scenario *s = calloc(1, sizeof *s);
    struct reader r = { .s = s };
    if (!s)
        return sl_fail(err, SL_INTERNAL, "%s: out of memory", text->name);
    memcpy(s->file, text->name, sizeof s->file);
    sched_policy_init(&s->policy);
    s->policy.tenancy = POOL_ALL_SHARING; /* unless they are said to be apart */
    s->tick_ms = TICK_MS;
    words_begin(&r.w, text, err);
    while (words_line(&r.w)) {
        read_statement(&r);
        if (!words_done(&r.w))
            words_fail(&r.w, "'%s' is one word too many, or a comma is missing", r.w.word);
    }
    if (!r.w.rc && !s->count)
        words_fail(&r.w, "a scenario without a statement");
    if (r.w.rc) {
        scenario_destroy(s);
        return r.w.rc;
    }
    *out = s;
    return 0;
}

void scenario_destroy(struct scenario *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->statement[i].kind == ST_SUBMIT)
            free(s->statement[i].submit);
    names_finish(&s->jobs);
    names_finish(&s->nodes);
    names_finish(&s->tenants);
    names_finish(&s->models);
    names_finish(&s->labels);
    names_finish(&s->places);
    names_finish(&s->tags);
    free(s->statement);
    free(s->index);
    free(s);
}
