/* `sluice-sim capacity`: how many cards a load needs at a wait, and what they cost. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cards.h"
#include "core/macros.h"
#include "sim/number.h"

#define HOURS_A_YEAR 8766.0
#define PRICE_PLACES 4u
#define STEPS        10u          /* of a search, about */
#define LEAST_NODES  CLOSED_PARTS /* each department keeps one */
#define MOST_NODES   250u

enum price { OWN_PRICE, OWN_YEARS, OWN_RUNNING, POOL_PRICE, RENT_PRICE, PRICES };

static const char *const price_options[PRICES] = { "own-price", "own-years", "own-running",
                                                   "pool-price", "rent-price" };

/* What a system needs; cards 0: more than could be tried. */
struct need {
    uint32_t cards;
    double wait_s, p99_s, effective_pct;
    double jobs_a_day, work_a_year; /* native device-hours */
    double lent_cards;              /* in the mean */
};

struct capacity {
    struct closed_setup setup;
    unsigned system[CARDS_SYSTEMS], systems;
    uint32_t seeds, sessions;
    const char *measure; /* of the wait: mean, p90 or p99 */
    double most_wait_s;
    double price[PRICES]; /* NAN: not given */
    struct need need[CARDS_SYSTEMS];
    uint32_t tried;
};

/* ---- how many cards ---- */

/* A mean that leaves out who never got a card would call that a short wait. */
static double wait_of(const struct capacity *c, const struct closed_result *r)
{
    return !strcmp(c->measure, "mean")  ? r->wait_all_mean_s
           : !strcmp(c->measure, "p90") ? r->wait_p90_s
                                        : r->wait_p99_s;
}

/* Adds a run, one of `seeds`. */
static void add_run(const struct capacity *c, struct need *n, const struct closed_result *r)
{
    double part = 1.0 / c->seeds, days = c->setup.days;
    double work_h = r->effective_pct / 100 * r->cards * days * 24;
    n->cards = r->cards;
    n->wait_s += wait_of(c, r) * part;
    n->p99_s += r->wait_p99_s * part;
    n->effective_pct += r->effective_pct * part;
    n->jobs_a_day += r->finished / days * part;
    n->work_a_year += work_h / (days * 24) * HOURS_A_YEAR * part;
    n->lent_cards += r->allocated_pct / 100 * r->cards * part;
}

/* With so many cards; the mean over the seeds. */
static int try_cards(struct capacity *c, unsigned i, uint32_t nodes, struct need *out,
                     struct sl_err *err)
{
    *out = (struct need){ 0 };
    c->setup.nodes_permille = nodes * 1000 / CLOSED_NODES;
    for (uint32_t seed = 1; seed <= c->seeds; seed++) {
        struct closed_result r;
        c->setup.seed = seed;
        int rc = closed_run(closed_system_name(c->system[i]), &c->setup, &r, err);
        if (rc)
            return rc;
        add_run(c, out, &r);
        c->sessions = r.sessions;
        closed_result_finish(&r);
    }
    return 0;
}

/* Tries a size; what was enough is kept. */
static int ask(struct sim *sim, struct capacity *c, unsigned i, uint32_t nodes,
               bool *enough, struct sl_err *err)
{
    struct need n;
    sim_progress(sim, closed_system_name(c->system[i]), c->tried++ % STEPS, STEPS);
    int rc = try_cards(c, i, nodes, &n, err);
    *enough = !rc && n.wait_s <= c->most_wait_s; /* NAN: too few come through to say */
    if (*enough)
        c->need[i] = n;
    return rc;
}

/* The least number of nodes that is enough: from what the system before needed up or down by
 * halves, and then by halving.  More cards wait less, but for chance. */
static int find_need(struct sim *sim, struct capacity *c, unsigned i, uint32_t *at,
                     struct sl_err *err)
{
    uint32_t low = LEAST_NODES - 1, high = MOST_NODES + 1, nodes = *at;
    while (high - low > 1) {
        bool enough;
        int rc = ask(sim, c, i, nodes, &enough, err);
        if (rc)
            return rc;
        if (enough)
            high = nodes;
        else
            low = nodes;
        nodes = high > MOST_NODES   ? (uint32_t)min_u64(low + low / 2, MOST_NODES)
                : low < LEAST_NODES ? (uint32_t)max_u64(high - high / 4, LEAST_NODES)
                                    : (low + high) / 2;
    }
    *at = (uint32_t)min_u64(high, MOST_NODES);
    return 0;
}

/* ---- what they cost ---- */

static bool has_own(const struct capacity *c)
{
    return !isnan(c->price[OWN_PRICE]);
}

static bool has_rent(const struct capacity *c)
{
    return !isnan(c->price[RENT_PRICE]);
}

/* A year, of cards that are the user's own. */
static double own_cost(const struct capacity *c, const struct need *n, bool pooled)
{
    double a_card = c->price[OWN_PRICE] / c->price[OWN_YEARS] + c->price[OWN_RUNNING];
    return n->cards * (a_card + (pooled ? c->price[POOL_PRICE] : 0));
}

/* A year, of whole cards by the hour, each while its job runs and no longer. */
static double rent_cost(const struct capacity *c, const struct need *n)
{
    return n->lent_cards * HOURS_A_YEAR * c->price[RENT_PRICE];
}

struct cost {
    const char *name;
    const struct need *need;
    double a_year; /* NAN: it cannot be said */
};

/* own: the first system; pooled: the last; rented: the work of the first. */
static unsigned costs_of(const struct capacity *c, struct cost out[3])
{
    const struct need *first = &c->need[0], *last = &c->need[c->systems - 1];
    unsigned count = 0;
    if (has_own(c)) {
        out[count++] =
            (struct cost){ "own", first, first->cards ? own_cost(c, first, false) : NAN };
        out[count++] =
            (struct cost){ "pooled", last, last->cards ? own_cost(c, last, true) : NAN };
    }
    if (has_rent(c))
        out[count++] =
            (struct cost){ "rented", first, first->cards ? rent_cost(c, first) : NAN };
    return count;
}

/* ---- the answer ---- */

static void print_needs(FILE *out, const struct capacity *c)
{
    fprintf(out, "Cards so that the %s wait of %u sessions is at most %g min:\n\n",
            c->measure, c->sessions, c->most_wait_s / 60);
    fprintf(out, "%-14s %6s %9s %9s %12s %9s\n", "system", "cards", "wait min", "p99 min",
            "effective %", "jobs/day");
    for (unsigned i = 0; i < c->systems; i++) {
        const struct need *n = &c->need[i];
        fprintf(out, "%-14s", closed_system_name(c->system[i]));
        if (n->cards)
            fprintf(out, " %6u %9.1f %9.1f %12.1f %9.0f\n", n->cards, n->wait_s / 60,
                    n->p99_s / 60, n->effective_pct, n->jobs_a_day);
        else
            fprintf(out, " more than could be tried\n");
    }
}

static void print_rent_border(FILE *out, const struct capacity *c)
{
    const struct need *first = &c->need[0], *last = &c->need[c->systems - 1];
    if (has_own(c) && first->cards && last->cards)
        fprintf(out,
                "\nRenting is cheaper than %u own cards below %.2f a card-hour, and than"
                " %u pooled ones below %.2f.\n",
                first->cards,
                own_cost(c, first, false) / (first->lent_cards * HOURS_A_YEAR), last->cards,
                own_cost(c, last, true) / (first->lent_cards * HOURS_A_YEAR));
}

static void print_costs(FILE *out, const struct capacity *c)
{
    struct cost cost[3];
    unsigned count = costs_of(c, cost);
    if (!count) {
        fprintf(out, "\nWhat that costs depends on your prices, and none is assumed: "
                     "--own-price, --own-years,\n--own-running and --pool-price for cards "
                     "of your own, --rent-price for rented ones.\n");
        return;
    }
    fprintf(out, "\nA year, in the money of your prices:\n\n%-14s %14s %16s\n", "",
            "cost a year", "an hour of work");
    for (unsigned i = 0; i < count; i++) {
        fprintf(out, "%-14s", cost[i].name);
        if (isnan(cost[i].a_year))
            fprintf(out, " %14s %16s\n", "-", "-");
        else
            fprintf(out, " %14.0f %16.3f\n", cost[i].a_year,
                    cost[i].a_year / cost[i].need->work_a_year);
    }
    print_rent_border(out, c);
}

static void print_notes(FILE *out, const struct capacity *c)
{
    fprintf(out,
            "\nOwn: %s, %s. Pooled: %s, %s.\n"
            "Rented: whole cards by the hour, each only while its job runs, without a "
            "wait.\n"
            "The sessions are those of scenario 200-cards, a fitted replica; %u days after "
            "%u,\n%u seeds; whole nodes of 8.\n",
            closed_system_name(c->system[0]), closed_system_about(c->system[0]),
            closed_system_name(c->system[c->systems - 1]),
            closed_system_about(c->system[c->systems - 1]), c->setup.days,
            c->setup.warm_days, c->seeds);
}

static json_t *json_number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *json_need(const struct capacity *c, unsigned i, bool *ok)
{
    const struct need *n = &c->need[i];
    json_t *j = json_object();
    json_put(j, "system", json_string(closed_system_name(c->system[i])), ok);
    json_put(j, "cards", n->cards ? json_integer(n->cards) : json_null(), ok);
    json_put(j, "wait_s", json_number(n->cards ? n->wait_s : NAN), ok);
    json_put(j, "wait_p99_s", json_number(n->cards ? n->p99_s : NAN), ok);
    json_put(j, "effective_pct", json_number(n->cards ? n->effective_pct : NAN), ok);
    json_put(j, "jobs_a_day", json_number(n->cards ? n->jobs_a_day : NAN), ok);
    json_put(j, "work_device_h_a_year", json_number(n->cards ? n->work_a_year : NAN), ok);
    return j;
}

static json_t *json_cost(const struct cost *cost, bool *ok)
{
    json_t *j = json_object();
    json_put(j, "name", json_string(cost->name), ok);
    json_put(j, "cost_a_year", json_number(cost->a_year), ok);
    json_put(j, "cost_a_work_hour", json_number(cost->a_year / cost->need->work_a_year),
             ok);
    return j;
}

static int print_json(FILE *out, const struct capacity *c, struct sl_err *err)
{
    bool ok = true;
    AUTO_JSON json_t *all = json_object();
    json_t *systems = json_array(), *costs = json_array();
    struct cost cost[3];
    unsigned count = costs_of(c, cost);
    json_put(all, "sessions", json_integer(c->sessions), &ok);
    json_put(all, "wait", json_string(c->measure), &ok);
    json_put(all, "at_most_s", json_real(c->most_wait_s), &ok);
    json_put(all, "seeds", json_integer(c->seeds), &ok);
    for (unsigned i = 0; i < c->systems; i++)
        ok = json_array_append_new(systems, json_need(c, i, &ok)) == 0 && ok;
    for (unsigned i = 0; i < count; i++)
        ok = json_array_append_new(costs, json_cost(&cost[i], &ok)) == 0 && ok;
    json_put(all, "systems", systems, &ok);
    json_put(all, "costs", costs, &ok);
    if (!ok)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    json_dumpf(all, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(8));
    fputc('\n', out);
    return 0;
}

/* ---- the command ---- */

static int read_price(const struct sim_args *args, enum price which, double *out,
                      struct sl_err *err)
{
    const char *option = price_options[which], *text = sim_value(args, option);
    uint64_t value;
    *out = NAN;
    if (!text)
        return 0;
    if (number_parse(text, strlen(text), PRICE_PLACES, &value) != NUMBER_OK)
        return sl_fail(err, SL_INVALID, "--%s: '%s' is no amount such as 1250 or 2.19",
                       option, text);
    *out = (double)value / pow(10, PRICE_PLACES);
    if (which == OWN_YEARS && value == 0)
        return sl_fail(err, SL_INVALID, "--%s: a card is used for some time", option);
    return 0;
}

/* Cards of one's own have all four prices or none; nothing is assumed for one left out. */
static int read_prices(const struct sim_args *args, struct capacity *c, struct sl_err *err)
{
    unsigned given = 0, missing = PRICES;
    for (unsigned i = 0; i < PRICES; i++) {
        int rc = read_price(args, i, &c->price[i], err);
        if (rc)
            return rc;
        if (i == RENT_PRICE)
            continue;
        given += !isnan(c->price[i]);
        missing = isnan(c->price[i]) && missing == PRICES ? i : missing;
    }
    return given && missing != PRICES
               ? sl_fail(err, SL_INVALID,
                         "--%s is missing; no price is assumed (0 is one too)",
                         price_options[missing])
               : 0;
}

static int read_options(const struct sim_args *args, struct capacity *c, struct sl_err *err)
{
    closed_setup_init(&c->setup);
    c->seeds = sim_count(args, "seeds", 2);
    c->setup.days = sim_count(args, "days", 14);
    c->setup.warm_days = sim_count(args, "warm-days", 4);
    c->setup.think_s = 60 * sim_count(args, "think", c->setup.think_s / 60);
    c->setup.heavy_permille = 10 * sim_count(args, "heavy", 100);
    c->setup.sessions_permille =
        (sim_count(args, "sessions", 0) * 1000 + CLOSED_SESSIONS / 2) / CLOSED_SESSIONS;
    c->most_wait_s = 60.0 * sim_count(args, "wait", 0);
    c->measure = sim_value(args, "of") ? sim_value(args, "of") : "mean";
    int rc = cards_choose(sim_value(args, "policy"), c->system, &c->systems, err);
    return rc ? rc : read_prices(args, c, err);
}

int sim_cmd_capacity(struct sim *sim, const struct sim_args *args)
{
    struct capacity c = { 0 };
    struct sl_err err = { 0 };
    int rc = read_options(args, &c, &err);
    uint32_t nodes =
        (uint32_t)max_u64(LEAST_NODES, CLOSED_NODES * c.setup.sessions_permille / 1000);
    for (unsigned i = 0; i < c.systems && !rc; i++)
        rc = find_need(sim, &c, i, &nodes, &err);
    sim_progress(sim, "", 1, 1);
    if (rc)
        return sim_fail(sim, &err);
    if (sim_has(args, "json")) {
        rc = print_json(sim->out, &c, &err);
        return rc ? sim_fail(sim, &err) : 0;
    }
    print_needs(sim->out, &c);
    print_costs(sim->out, &c);
    print_notes(sim->out, &c);
    return 0;
}
