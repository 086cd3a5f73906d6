/* `sluice-sim whatif`: a core fed by a log, then a change, and what is different. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../scenario/words.h"
#include "base/cleanup.h"
#include "feed.h"
#include "sched/explain.h"
#include "sched/log.h"
#include "sim/number.h"

#define OTHERS_SHOWN 20

struct whatif {
    struct sim *sim;
    struct feed feed;
    enum sched_verdict
        *had; /* of each of the feed's ids, before; NOT_WAITING, too, if it is over */
    uint32_t shown, more;
    bool begun;
    uint64_t submitted; /* id of the request that is added */
    bool granted;       /* … and it started */
};

/* ---- what is asked of it ---- */

static bool parse_number(const char *text, int places, uint64_t *out)
{
    return text && number_parse(text, strlen(text), places, out) == NUMBER_OK;
}

/* TENANT:MODEL=DESERVED[:LIMIT] */
static int read_quota(const char *text, struct sched_quota *q, struct sl_err *err)
{
    char copy[100], *at = copy;
    uint64_t tenant, model = SCHED_ALL_MODELS;
    snprintf(copy, sizeof copy, "%s", text);
    char *first = strsep(&at, ":"), *second = strsep(&at, "="), *third = strsep(&at, ":");
    q->limit_milli = SCHED_NO_LIMIT;
    if (!parse_number(first, 0, &tenant) || tenant >= SCHED_MAX_TENANTS || !second ||
        (strcmp(second, "all") && !parse_number(second, 0, &model)) ||
        model > SCHED_ALL_MODELS || !parse_number(third, 3, &q->deserved_milli) ||
        (at && !parse_number(at, 3, &q->limit_milli)))
        return sl_fail(
            err, SL_INVALID,
            "--quota: '%.60s' is not TENANT:MODEL=DESERVED[:LIMIT], such as 3:0=4:8", text);
    q->tenant = (uint32_t)tenant;
    q->model = (uint32_t)model;
    return 0;
}

static uint64_t read_models(struct words *w)
{
    uint64_t models = 0, m;
    char copy[WORD_MAX + 1], *at = copy, *word;
    memcpy(copy, w->word, sizeof copy);
    while (!w->rc && (word = strsep(&at, "|"))) {
        if (!parse_number(word, 0, &m) || m >= POOL_MAX_MODELS)
            words_fail(w, "'%s' is no number of a model", word);
        else
            models |= 1ull << m;
    }
    words_next(w);
    return models;
}

/* [gang of N x] [N x] SHARE [SIZE] [on MODEL|MODEL] [with N cpus] [SIZE host] */
static void read_group(struct words *w, struct sched_group *g)
{
    struct pool_ask *a = &g->ask;
    *g = (struct sched_group){ .count = 1, .ask.devices = 1 };
    if (words_take(w, "gang")) {
        words_need(w, "of");
        g->count = (uint32_t)words_count(w, "a gang", 1, SCHED_MAX_GANG);
        words_need(w, "x");
    }
    if (words_at_count(w)) {
        a->devices = (uint32_t)words_count(w, "devices", 1, POOL_MAX_DEVICES);
        words_need(w, "x");
    }
    a->permille = words_share(w);
    if (words_at_size(w))
        a->mem_bytes = words_size(w);
    if (words_take(w, "on"))
        a->models = read_models(w);
    if (!words_take(w, "with"))
        return;
    if (words_at_count(w)) {
        a->cpu_milli = 1000 * (uint32_t)words_count(w, "how many cpus", 1, 1000000);
        words_need(w, "cpus");
    }
    if (words_at_size(w)) {
        a->host_mem_bytes = words_size(w);
        words_need(w, "host");
    }
}

static int read_ask(const char *text, struct sched_option *o, struct sl_err *err)
{
    AUTO_TEXT struct text line = { 0 };
    struct words w;
    int rc = text_copy("--submit", text, &line, err);
    if (rc)
        return rc;
    words_begin(&w, &line, err);
    if (!words_line(&w) && !w.rc)
        return sl_fail(err, SL_INVALID, "--submit: nothing is asked");
    do {
        if (o->group_count == SCHED_MAX_GROUPS)
            words_fail(&w, "more than %d parts", SCHED_MAX_GROUPS);
        else
            read_group(&w, &o->group[o->group_count++]);
    } while (!w.rc && words_take(&w, "+"));
    if (!w.rc && !words_done(&w))
        words_fail(&w, "'%s' is too much", w.word);
    return w.rc;
}

/* ---- the change ---- */

/* Before the first line of the answer: a refused change has none. */
static void begin_answer(struct whatif *w)
{
    if (!w->begun)
        feed_print_when(w->sim->out, &w->feed);
    w->begun = true;
}

static void print_decisions(struct whatif *w, const struct sched_decision *d,
                            uint32_t count)
{
    for (; count--; d++) {
        AUTO_BUF struct buf text = { 0 };
        w->granted |= d->kind == SCHED_GRANT && d->id == w->submitted;
        if (w->shown == OTHERS_SHOWN) {
            w->more++;
            continue;
        }
        w->shown++;
        begin_answer(w);
        sched_decision_text(&text, d);
        fprintf(w->sim->out, "  %s\n", text.text ? text.text : "?");
    }
}

static int change(struct whatif *w, struct sched_event *e, struct sl_err *err)
{
    const struct sched_decision *d;
    uint32_t count;
    e->now_ms = w->feed.now_ms;
    int rc = sched_apply(w->feed.sched, e, &d, &count, err);
    if (!rc)
        print_decisions(w, d, count);
    return rc;
}

static int add_nodes(struct whatif *w, const struct sim_args *args, struct sl_err *err)
{
    const struct pool *pool = sched_pool(w->feed.sched);
    uint32_t like = sim_count(args, "like", 0), count = sim_count(args, "add-nodes", 0);
    if (like >= pool_node_count(pool))
        return sl_fail(err, SL_NOT_FOUND, "--like: there is no node %u, but %u", like,
                       pool_node_count(pool));
    struct sched_event e = { .kind = SCHED_ADD_NODE, .node = *pool_node_at(pool, like) };
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = change(w, &e, err);
    return rc;
}

static int submit(struct whatif *w, const struct sim_args *args, struct sl_err *err)
{
    struct sched_option option = { 0 };
    const struct feed *f = &w->feed;
    struct sched_event e = { .kind = SCHED_SUBMIT };
    int rc = read_ask(sim_value(args, "submit"), &option, err);
    if (rc)
        return rc;
    w->submitted = f->id_count ? f->id[f->id_count - 1] + 1 : 1;
    e.submit = (struct sched_request){ .id = w->submitted,
                                       .tenant = sim_count(args, "tenant", SCHED_ROOT),
                                       .priority = sim_count(args, "priority", 0),
                                       .preemptible = true,
                                       .option_count = 1,
                                       .option = &option };
    return change(w, &e, err);
}

static int make_changes(struct whatif *w, const struct sim_args *args, struct sl_err *err)
{
    struct sched_event quota = { .kind = SCHED_SET_QUOTA }, tick = { .kind = SCHED_TICK };
    int rc = 0;
    if (sim_has(args, "add-nodes"))
        rc = add_nodes(w, args, err);
    if (!rc && sim_has(args, "quota"))
        rc = read_quota(sim_value(args, "quota"), &quota.quota, err);
    if (!rc && sim_has(args, "quota"))
        rc = change(w, &quota, err);
    if (!rc && sim_has(args, "submit"))
        rc = submit(w, args, err);
    return rc ? rc : change(w, &tick, err);
}

/* ---- what is different ---- */

static enum sched_verdict verdict_of(const struct whatif *w, uint64_t id)
{
    struct sched_view v;
    return sched_find(w->feed.sched, id, &v) ? SCHED_NOT_WAITING : v.verdict;
}

static const char *verdict_word(enum sched_verdict v)
{
    static const char *const words[] = {
        [SCHED_NOT_WAITING] = "not waiting",
        [SCHED_IMPOSSIBLE] = "can never run",
        [SCHED_OVER_LIMIT] = "blocked by a limit",
        [SCHED_NO_ROOM] = "waiting for room",
        [SCHED_BEING_MADE] = "waiting for others to go",
    };
    return words[v];
}

static void print_waiting(const struct whatif *w)
{
    uint32_t before[SCHED_BEING_MADE + 1] = { 0 }, after[SCHED_BEING_MADE + 1] = { 0 };
    const struct feed *f = &w->feed;
    for (uint32_t i = 0; i < f->id_count; i++) {
        before[w->had[i]]++;
        after[verdict_of(w, f->id[i])]++;
    }
    if (w->submitted)
        after[verdict_of(w, w->submitted)]++;
    for (int v = SCHED_IMPOSSIBLE; v <= SCHED_BEING_MADE; v++)
        if (before[v] || after[v])
            fprintf(w->sim->out, "%s: %u, were %u\n", verdict_word(v), after[v], before[v]);
}

/* The new request's own story, if it did not start. */
static int print_submitted(const struct whatif *w, struct sl_err *err)
{
    struct sched_explanation x;
    AUTO_BUF struct buf text = { 0 };
    if (!w->submitted || w->granted)
        return 0;
    if (sched_explain(w->feed.sched, w->submitted, &x) == -SL_INTERNAL)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    sched_explanation_text(&text, &x);
    fputs(text.text ? text.text : "", w->sim->out);
    return 0;
}

/* What is due by now anyway is no difference. */
static int come_to_rest(struct whatif *w, struct sl_err *err)
{
    const struct sched_decision *d;
    uint32_t count;
    struct sched_event tick = { .kind = SCHED_TICK, .now_ms = w->feed.now_ms };
    int rc = sched_apply(w->feed.sched, &tick, &d, &count, err);
    w->had = calloc(w->feed.id_count + 1, sizeof *w->had);
    if (!w->had)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < w->feed.id_count && !rc; i++)
        w->had[i] = verdict_of(w, w->feed.id[i]);
    return rc;
}

static int whatif(struct whatif *w, const struct sim_args *args, struct sl_err *err)
{
    if (!sim_has(args, "add-nodes") && !sim_has(args, "quota") && !sim_has(args, "submit"))
        return sl_fail(err, SL_INVALID,
                       "what if what? --add-nodes, --quota or --submit say it");
    int rc = feed_open(w->sim, args->operand[0], feed_upto(args), &w->feed, err);
    if (!rc)
        rc = come_to_rest(w, err);
    if (rc)
        return rc;
    rc = make_changes(w, args, err);
    if (rc)
        return rc;
    begin_answer(w);
    if (w->more)
        fprintf(w->sim->out, "  and %u decisions more\n", w->more);
    if (!w->shown)
        fputs("  nothing starts and nobody must go\n", w->sim->out);
    print_waiting(w);
    if (w->submitted)
        fprintf(w->sim->out, "the new request is %" PRIu64 "%s\n", w->submitted,
                w->granted ? "; it starts" : "");
    return print_submitted(w, err);
}

int sim_cmd_whatif(struct sim *sim, const struct sim_args *args)
{
    struct sl_err err = { 0 };
    struct whatif w = { .sim = sim };
    int rc = whatif(&w, args, &err);
    feed_finish(&w.feed);
    free(w.had);
    return rc < 0 ? sim_fail(sim, &err) : 0;
}
