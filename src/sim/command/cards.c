/* `sluice-sim scenario 200-cards`: the systems on the same sessions, as JSON, a table, a page. */
#include "cards.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/macros.h"

/* ---- figures ---- */

#define FIGURE(name, expression)                      \
    static double name(const struct closed_result *r) \
    {                                                 \
        return expression;                            \
    }
FIGURE(effective, r->effective_pct)
FIGURE(allocated, r->allocated_pct)
FIGURE(occupied, r->occupied_pct)
FIGURE(wait_mean, r->wait_mean_s / 3600)
FIGURE(wait_p50, r->wait_p50_s / 3600)
FIGURE(wait_p90, r->wait_p90_s / 3600)
FIGURE(wait_p99, r->wait_p99_s / 3600)
FIGURE(finished, r->finished)
FIGURE(starved, r->starved)
FIGURE(evictions, r->evictions)
FIGURE(run_mean, r->run_mean_s / 3600)
FIGURE(little, r->little_error_pct)
FIGURE(work, r->work_per_mj)

const struct cards_figure cards_figures[] = {
    { "effective_pct", "effective", "%", effective, 1 },
    { "allocated_pct", "allocated", "%", allocated, 1 },
    { "occupied_pct", "occupied", "%", occupied, 1 },
    { "wait_mean_h", "wait mean", "h", wait_mean, 2 },
    { "wait_p50_h", "p50", "h", wait_p50, 2 },
    { "wait_p90_h", "p90", "h", wait_p90, 2 },
    { "wait_p99_h", "p99", "h", wait_p99, 2 },
    { "run_mean_h", "run", "h", run_mean, 2 },
    { "finished", "jobs", "", finished, 0 },
    { "starved", "starved", "", starved, 1 },
    { "evictions", "displaced", "", evictions, 0 },
    { "work_per_mj", "work/MJ", "s", work, 0 },
    { "little_error_pct", "Little", "%", little, 2 },
    { NULL },
};

struct stats cards_stats(const struct cards *c, unsigned system,
                         const struct cards_figure *f)
{
    double value[CARDS_SEEDS];
    for (uint32_t i = 0; i < c->seeds; i++)
        value[i] = f->of(&c->result[system][i]);
    return stats_of(value, c->seeds);
}

struct stats cards_gain(const struct cards *c, unsigned system,
                        const struct cards_figure *f)
{
    double value[CARDS_SEEDS];
    for (uint32_t i = 0; i < c->seeds; i++)
        value[i] = f->of(&c->result[system][i]) - f->of(&c->result[0][i]);
    return stats_of(value, c->seeds);
}

/* ---- JSON ---- */

static json_t *json_rounded(double value)
{
    return isnan(value) ? json_null() : json_real(round(value * 1000) / 1000);
}

/* The runs too, seed by seed, so that compare can pair them. */
static json_t *json_values(const struct cards *c, unsigned system,
                           const struct cards_figure *f, bool *ok)
{
    json_t *j = json_array();
    for (uint32_t i = 0; i < c->seeds; i++)
        *ok &= json_array_append_new(j, json_rounded(f->of(&c->result[system][i]))) == 0;
    return j;
}

static json_t *json_stats(struct stats s, bool *ok)
{
    json_t *j = json_object();
    json_put(j, "mean", json_rounded(s.mean), ok);
    json_put(j, "std", json_rounded(s.std), ok);
    json_put(j, "low", json_rounded(s.low), ok);
    json_put(j, "high", json_rounded(s.high), ok);
    return j;
}

static json_t *json_system(const struct cards *c, unsigned system, bool *ok)
{
    json_t *j = json_object(), *against = json_object();
    json_put(j, "system", json_string(closed_system_name(c->system[system])), ok);
    json_put(j, "about", json_string(closed_system_about(c->system[system])), ok);
    for (const struct cards_figure *f = cards_figures; f->key; f++) {
        json_t *figure = json_stats(cards_stats(c, system, f), ok);
        json_put(figure, "values", json_values(c, system, f, ok), ok);
        json_put(j, f->key, figure, ok);
    }
    for (const struct cards_figure *f = cards_figures; system && f->key; f++)
        json_put(against, f->key, json_stats(cards_gain(c, system, f), ok), ok);
    if (system)
        json_put(j, "less_the_first", against, ok);
    else
        json_decref(against);
    return j;
}

static int print_json(FILE *out, const struct cards *c, struct sl_err *err)
{
    const struct closed_setup *s = &c->setup;
    bool ok = true;
    AUTO_JSON json_t *all = json_object();
    json_t *list = json_array(), *setup = json_object();
    json_put(all, "scenario", json_string("200-cards"), &ok);
    json_put(
        all, "fitted",
        json_string("sessions and think time are chosen so that the first system shows what"
                    " partitioned places report"),
        &ok);
    json_put(all, "seeds", json_integer(c->seeds), &ok);
    json_put(setup, "cards", json_integer(c->result[0][0].cards), &ok);
    json_put(setup, "sessions", json_integer(c->result[0][0].sessions), &ok);
    json_put(setup, "think_s", json_integer(s->think_s), &ok);
    json_put(setup, "heavy_pct", json_real(s->heavy_permille / 10.0), &ok);
    json_put(setup, "offered_pct", json_real(s->open_permille / 10.0), &ok);
    json_put(setup, "warm_days", json_integer(s->warm_days), &ok);
    json_put(setup, "days", json_integer(s->days), &ok);
    json_put(all, "setup", setup, &ok);
    for (unsigned i = 0; i < c->systems; i++)
        ok = json_array_append_new(list, json_system(c, i, &ok)) == 0 && ok;
    json_put(all, "systems", list, &ok);
    if (!ok)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    json_dumpf(all, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(8));
    fputc('\n', out);
    return 0;
}

/* ---- the table ---- */

static void print_table(FILE *out, const struct cards *c)
{
    const struct closed_result *first = &c->result[0][0];
    fprintf(out, "%-14s", "system");
    for (const struct cards_figure *f = cards_figures; f->key; f++)
        fprintf(out, " %9s%s%s", f->title, f->unit[0] ? " " : "", f->unit);
    for (unsigned i = 0; i < c->systems; i++) {
        fprintf(out, "\n%-14s", closed_system_name(c->system[i]));
        for (const struct cards_figure *f = cards_figures; f->key; f++) {
            double mean = cards_stats(c, i, f).mean;
            int width = 9 + (f->unit[0] ? 1 + (int)strlen(f->unit) : 0);
            if (isnan(mean))
                fprintf(out, " %*s", width, "-");
            else
                fprintf(out, " %*.*f", width, (int)f->digits, mean);
        }
    }
    fprintf(out, "\n\n%u cards, ", first->cards);
    if (c->setup.open_permille)
        fprintf(out, "arrivals that offer %.1f %% of their native work",
                c->setup.open_permille / 10.0);
    else
        fprintf(out, "%u sessions", first->sessions);
    fprintf(
        out,
        ", %u days after %u; means of %u seeds. The replica is fitted: sessions and think\n"
        "time are chosen so that the first system shows what such places report.\n",
        c->setup.days, c->setup.warm_days, c->seeds);
    for (unsigned i = 0; i < c->systems; i++)
        fprintf(out, "  %-14s %s\n", closed_system_name(c->system[i]),
                closed_system_about(c->system[i]));
}

/* ---- the command ---- */

int cards_choose(const char *list, unsigned *system, unsigned *count, struct sl_err *err)
{
    const char *names[CARDS_SYSTEMS];
    unsigned all = 0;
    while (all < CARDS_SYSTEMS && closed_system_name(all)) {
        names[all] = closed_system_name(all);
        all++;
    }
    return sim_choose("policy", list, names, all, system, count, err);
}

static int read_options(const struct sim_args *args, struct cards *c, struct sl_err *err)
{
    closed_setup_init(&c->setup);
    c->seeds = sim_count(args, "seeds", 5);
    c->setup.days = sim_count(args, "days", c->setup.days);
    c->setup.warm_days = sim_count(args, "warm-days", c->setup.warm_days);
    c->setup.think_s = 60 * sim_count(args, "think", c->setup.think_s / 60);
    c->setup.sessions_permille = 10 * sim_count(args, "sessions", 100);
    c->setup.heavy_permille = 10 * sim_count(args, "heavy", 100);
    c->setup.nodes_permille = 10 * sim_count(args, "cards", 100);
    c->setup.open_permille = 10 * sim_count(args, "offered", 0);
    return cards_choose(sim_value(args, "policy"), c->system, &c->systems, err);
}

static int run_all(struct sim *sim, struct cards *c, struct sl_err *err)
{
    uint32_t total = c->systems * c->seeds, done = 0;
    int rc = 0;
    for (unsigned i = 0; i < c->systems && !rc; i++)
        for (uint32_t seed = 0; seed < c->seeds && !rc; seed++) {
            c->setup.seed = seed + 1;
            sim_progress(sim, closed_system_name(c->system[i]), done++, total);
            rc = closed_run(closed_system_name(c->system[i]), &c->setup,
                            &c->result[i][seed], err);
        }
    sim_progress(sim, "", 1, 1);
    return rc;
}

static int answer(struct sim *sim, const struct sim_args *args, struct cards *c,
                  struct sl_err *err)
{
    int rc = read_options(args, c, err);
    if (!rc)
        rc = run_all(sim, c, err);
    if (!rc && sim_has(args, "html"))
        rc = cards_html(c, sim_value(args, "html"), err);
    if (!rc && sim_has(args, "json"))
        rc = print_json(sim->out, c, err);
    else if (!rc)
        print_table(sim->out, c);
    return rc;
}

int sim_cmd_cards(struct sim *sim, const struct sim_args *args)
{
    struct sl_err err = { 0 };
    struct cards *c = calloc(1, sizeof *c);
    int rc = c ? answer(sim, args, c, &err) : sl_fail(&err, SL_INTERNAL, "out of memory");
    for (unsigned i = 0; c && i < CARDS_SYSTEMS; i++)
        for (uint32_t seed = 0; seed < CARDS_SEEDS; seed++)
            closed_result_finish(&c->result[i][seed]);
    free(c);
    return rc ? sim_fail(sim, &err) : 0;
}
