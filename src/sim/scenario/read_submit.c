/* What is asked: slices, gangs, alternatives, and the clauses behind them. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* ---- submit j1..j3 by vision: gang of 2 x 8 x 100% 40GiB on A100|H100 + 4 cpus, priority 60 ---- */

static struct submission *submission(struct reader *r)
{
    return r->st->submit;
}

static uint64_t read_models(struct reader *r)
{
    uint64_t models = 0;
    char word[WORD_MAX + 1], *at = word, *name;
    memcpy(word, r->w.word, sizeof word);
    while (!r->w.rc && (name = strsep(&at, "|"))) {
        uint32_t m = names_find(&r->s->models, name);
        if (m == NAMES_NONE)
            words_fail(&r->w, "there is no model '%s'", name);
        else
            models |= 1ull << m;
    }
    words_next(&r->w);
    return models;
}

/* … "with 4 cpus 8GiB host", or the latter alone */
static void read_host(struct reader *r, struct pool_ask *a)
{
    if (words_at_count(&r->w)) {
        a->cpu_milli = 1000 * (uint32_t)words_count(&r->w, "how many cpus", 1, 1000000);
        words_need(&r->w, "cpus");
    }
    if (words_at_size(&r->w)) {
        a->host_mem_bytes = words_size(&r->w);
        words_need(&r->w, "host");
    }
}

static void read_slice(struct reader *r, struct pool_ask *a)
{
    a->devices = 1;
    if (words_at_count(&r->w)) {
        a->devices = (uint32_t)words_count(&r->w, "devices", 1, POOL_MAX_DEVICES);
        words_need(&r->w, "x");
    }
    a->permille = words_share(&r->w);
    if (words_at_size(&r->w))
        a->mem_bytes = words_size(&r->w);
    if (words_take(&r->w, "on"))
        a->models = read_models(r);
    if (words_take(&r->w, "with"))
        read_host(r, a);
}

/* Is this "4 cpus …", and not "4 x …"? */
static bool at_cpus(const struct words *w)
{
    struct words ahead = *w;
    struct sl_err ignored;
    ahead.err = &ignored;
    if (!words_at_count(&ahead))
        return false;
    words_next(&ahead);
    return words_at(&ahead, "cpus");
}

static void read_group(struct reader *r, struct sched_option *o)
{
    if (o->group_count == SCHED_MAX_GROUPS) {
        words_fail(&r->w, "more than %d parts", SCHED_MAX_GROUPS);
        return;
    }
    struct sched_group *g = &o->group[o->group_count++];
    g->count = 1;
    if (words_take(&r->w, "gang")) {
        words_need(&r->w, "of");
        g->count = (uint32_t)words_count(&r->w, "a gang", 0, UINT32_MAX);
        words_need(&r->w, "x");
    }
    if (at_cpus(&r->w))
        read_host(r, &g->ask);
    else
        read_slice(r, &g->ask);
}

static void read_option(struct reader *r)
{
    struct sched_request *q = &submission(r)->request;
    if (q->option_count == SCHED_MAX_OPTIONS) {
        words_fail(&r->w, "more than %d alternatives", SCHED_MAX_OPTIONS);
        return;
    }
    struct sched_option *o = &submission(r)->option[q->option_count++];
    do
        read_group(r, o);
    while (words_take(&r->w, "+"));
}

/* For each part of each alternative. */
#define FOR_EACH_ASK(r, a)                                                    \
    for (uint32_t o_ = 0, g_; o_ < submission(r)->request.option_count; o_++) \
        for (g_ = 0; g_ < submission(r)->option[o_].group_count; g_++)        \
            for (struct pool_ask *a = &submission(r)->option[o_].group[g_].ask; a; a = NULL)

static void read_priority(struct reader *r)
{
    submission(r)->request.priority =
        (uint32_t)words_count(&r->w, "a priority", 0, UINT32_MAX);
}

static void read_never(struct reader *r)
{
    words_need(&r->w, "evicted");
    submission(r)->request.preemptible = false;
}

static void read_runs(struct reader *r)
{
    submission(r)->run_ms = words_duration(&r->w);
}

static void read_predicted(struct reader *r)
{
    submission(r)->request.work_ms = words_duration(&r->w);
}

static void read_limit(struct reader *r)
{
    submission(r)->request.limit_ms = words_duration(&r->w);
}

static void read_undisturbed(struct reader *r)
{
    words_need(&r->w, "for");
    submission(r)->request.min_run_ms = words_duration(&r->w);
}

static void read_leaves(struct reader *r)
{
    words_need(&r->w, "after");
    submission(r)->leave_ms = words_duration(&r->w);
}

static void read_requeued(struct reader *r)
{
    submission(r)->requeued = true;
}

static void read_every(struct reader *r)
{
    submission(r)->every_ms = words_duration(&r->w);
}

static void read_needs(struct reader *r)
{
    struct pool_labels labels = { 0 };
    read_label(r, &labels);
    FOR_EACH_ASK(r, a)
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        a->need.bits[i] |= labels.bits[i];
}

static void read_avoids(struct reader *r)
{
    struct pool_labels labels = { 0 };
    read_label(r, &labels);
    FOR_EACH_ASK(r, a)
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        a->avoid.bits[i] |= labels.bits[i];
}

static enum pool_level read_level(struct reader *r)
{
    static const char *const names[] = { "device", "node", "rack", "zone" };
    static const enum pool_level levels[] = { POOL_DEVICE, POOL_NODE, POOL_RACK,
                                              POOL_ZONE };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (words_take(&r->w, names[i]))
            return levels[i];
    words_unknown(&r->w, "level", names, ARRAY_LEN(names));
    return POOL_NODE;
}

static void set_within(struct reader *r, bool required)
{
    enum pool_level level = read_level(r);
    if (!r->w.rc && level == POOL_DEVICE)
        words_fail(&r->w, "all of it lies within a node, rack or zone");
    for (uint32_t i = 0; i < submission(r)->request.option_count; i++) {
        submission(r)->option[i].within = level;
        submission(r)->option[i].within_required = required;
    }
}

static void read_within(struct reader *r)
{
    set_within(r, true);
}

static uint32_t read_tag(struct reader *r)
{
    return read_name(r, &r->s->tags, "tag", false);
}

static void read_tagged(struct reader *r)
{
    struct sched_ties *t = &submission(r)->request.ties;
    uint32_t tag = read_tag(r);
    if (t->tag_count == SCHED_MAX_TAGS)
        words_fail(&r->w, "more than %d tags", SCHED_MAX_TAGS);
    else
        t->tag[t->tag_count++] = tag;
}

/* with TAG at rack */
static void add_tie(struct reader *r, bool apart, bool required)
{
    struct sched_ties *t = &submission(r)->request.ties;
    struct sched_tie tie = { .tag = read_tag(r), .apart = apart, .required = required };
    words_need(&r->w, "at");
    tie.level = read_level(r);
    if (t->tie_count == SCHED_MAX_TIES)
        words_fail(&r->w, "more than %d ties", SCHED_MAX_TIES);
    else
        t->tie[t->tie_count++] = tie;
}

static void read_with(struct reader *r)
{
    add_tie(r, false, true);
}

static void read_apart(struct reader *r)
{
    words_need(&r->w, "from");
    add_tie(r, true, true);
}

static void read_preferably(struct reader *r)
{
    if (words_take(&r->w, "within")) {
        set_within(r, false);
    } else if (words_take(&r->w, "with")) {
        add_tie(r, false, false);
    } else {
        words_need(&r->w, "apart");
        words_need(&r->w, "from");
        add_tie(r, true, false);
    }
}

static void read_above(struct reader *r)
{
    words_need(&r->w, "capacity");
    FOR_EACH_ASK(r, a)
    a->lower = true;
}

static const struct clause submit_clauses[] = {
    { "within", read_within },     { "preferably", read_preferably },
    { "tagged", read_tagged },     { "with", read_with },
    { "apart", read_apart },       { "above", read_above },
    { "priority", read_priority }, { "never", read_never },
    { "runs", read_runs },         { "predicted", read_predicted },
    { "limit", read_limit },       { "undisturbed", read_undisturbed },
    { "leaves", read_leaves },     { "requeued", read_requeued },
    { "every", read_every },       { "needs", read_needs },
    { "avoids", read_avoids },
};

void read_submit(struct reader *r)
{
    r->st->kind = ST_SUBMIT;
    struct submission *sub = r->st->submit = calloc(1, sizeof *sub);
    if (!sub) {
        out_of_memory(r);
        return;
    }
    sub->request = (struct sched_request){ .priority = 50, .preemptible = true };
    r->st->who = read_set(r, &r->s->jobs, "job", false);
    if (words_take(&r->w, "by"))
        sub->request.tenant = 1 + read_name(r, &r->s->tenants, "tenant", true);
    words_need(&r->w, ":");
    do
        read_option(r);
    while (words_take(&r->w, "or"));
    if (words_take(&r->w, ","))
        read_clauses(r, submit_clauses, ARRAY_LEN(submit_clauses),
                     "clause of a submission");
}
