/* `sluice-sim openb`: policies on the openb pod lists, over orders and tie orders. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "core/macros.h"
#include "sim/command.h"
#include "sim/fill.h"
#include "sim/random.h"
#include "sim/stats.h"

#define MAX_POLICIES 24

/* What is printed of each policy. */
static const struct figure {
    const char *key, *title;
    unsigned column;
    enum { ALLOCATED, FRAGMENTED, POWER } of;
} figures[] = {
    { "alloc_pct_at_100", "alloc@100", 100, ALLOCATED },
    { "alloc_pct_at_130", "alloc@130", 130, ALLOCATED },
    { "frag_ratio_pct_at_50", "frag@50", 50, FRAGMENTED },
    { "frag_ratio_pct_at_80", "frag@80", 80, FRAGMENTED },
    { "frag_ratio_pct_at_90", "frag@90", 90, FRAGMENTED },
    /* from here on in the JSON alone */
    { "alloc_pct_at_120", NULL, 120, ALLOCATED },
    { "power_kw_at_20", NULL, 20, POWER },
    { "power_kw_at_40", NULL, 40, POWER },
    { "power_kw_at_60", NULL, 60, POWER },
    { "power_kw_at_80", NULL, 80, POWER },
    { "power_kw_at_100", NULL, 100, POWER },
    { "power_kw_at_120", NULL, 120, POWER },
};
#define FIGURES ARRAY_LEN(figures)
#define PRINTED 5 /* of these */

struct openb {
    struct openb_nodes nodes;
    struct openb_pods pods;
    struct openb_orders orders;
    struct fill_input input;
    uint32_t seeds, ties;
    unsigned policy[MAX_POLICIES], policies; /* chosen, in fill_policies */
    int against;                             /* a place in `policy`, or -1 */
    /* figures of each run: [place in policy][figure][seed][tie] */
    double *values;
    double *means; /* room for one of each seed */
    uint32_t refused_though_fits[MAX_POLICIES];
};

static void openb_finish(struct openb *o)
{
    openb_nodes_finish(&o->nodes);
    openb_pods_finish(&o->pods);
    openb_orders_finish(&o->orders);
    fill_input_finish(&o->input);
    free(o->values);
    free(o->means);
}

static double *values_of(const struct openb *o, unsigned policy, size_t figure)
{
    return o->values + (policy * FIGURES + figure) * o->seeds * o->ties;
}

static int choose_policies(struct openb *o, const struct sim_args *args, struct sl_err *err)
{
    const char *names[MAX_POLICIES], *against = sim_value(args, "against");
    unsigned which, count;
    for (unsigned i = 0; i < fill_policy_count; i++)
        names[i] = fill_policies[i].name;
    int rc = sim_choose("policy", sim_value(args, "policy"), names, fill_policy_count,
                        o->policy, &o->policies, err);
    o->against = -1;
    if (rc < 0 || !against)
        return rc;
    for (unsigned i = 0; i < o->policies; i++)
        names[i] = fill_policies[o->policy[i]].name;
    rc = sim_choose("policy", against, names, o->policies, &which, &count, err);
    o->against = (int)which;
    return rc < 0 ? sl_prefix(err, "--against, of those that run") : 0;
}

static int read_files(struct openb *o, const struct sim_args *args, struct sl_err *err)
{
    AUTO_TEXT struct text nodes = { 0 }, pods = { 0 }, order = { 0 };
    int rc = text_open(sim_value(args, "nodes"), &nodes, err);
    if (rc == 0)
        rc = openb_nodes_read(&nodes, &o->nodes, err);
    if (rc == 0)
        rc = text_open(sim_value(args, "pods"), &pods, err);
    if (rc == 0)
        rc = openb_pods_read(&pods, &o->pods, err);
    if (rc == 0)
        rc = text_open(sim_value(args, "order"), &order, err);
    if (rc == 0)
        rc = openb_orders_read(&order, o->pods.count, &o->orders, err);
    if (rc < 0)
        return rc;
    o->seeds = sim_count(args, "seeds", o->orders.count);
    o->ties = sim_count(args, "ties", 5);
    if (o->seeds > o->orders.count)
        return sl_fail(err, SL_INVALID, "--seeds: %u, but %s has %u", o->seeds, order.name,
                       o->orders.count);
    if (sim_value(args, "memory"))
        fill_draw_memory(&o->pods, sim_count(args, "memory", 0));
    rc = fill_input_make(&o->nodes, &o->pods, &o->input, err);
    return rc < 0 ? sl_prefix(err, "%s", nodes.name) : 0;
}

/* ---- the runs ---- */

static const double *columns_of(const struct fill_result *r, unsigned of)
{
    return of == ALLOCATED ? r->alloc_pct : of == POWER ? r->power_kw : r->frag_ratio_pct;
}

static void keep_figures(struct openb *o, unsigned policy, uint32_t run,
                         const struct fill_result *r)
{
    for (size_t f = 0; f < FIGURES; f++)
        values_of(o, policy, f)[run] = columns_of(r, figures[f].of)[figures[f].column];
    o->refused_though_fits[policy] += r->refused_though_fits;
}

/* Every policy on one order with one order of the nodes. */
static int run_once(struct openb *o, uint32_t seed, uint32_t tie, uint32_t *tie_order,
                    struct sl_err *err)
{
    const struct openb_order *order = &o->orders.orders[seed];
    uint64_t chance = random_seed(order->seed, tie);
    struct random r = { chance };
    struct fill_result result;
    for (uint32_t i = 0; i < o->input.node_count; i++)
        tie_order[i] = i;
    random_shuffle(&r, tie_order, o->input.node_count);
    for (unsigned p = 0; p < o->policies; p++) {
        int rc = fill_run(&o->input, &fill_policies[o->policy[p]],
                          o->orders.index + order->first, order->count, tie_order, chance,
                          &result, err);
        if (rc < 0)
            return rc;
        keep_figures(o, p, seed * o->ties + tie, &result);
    }
    return 0;
}

static int run_all(struct sim *sim, struct openb *o, struct sl_err *err)
{
    AUTO_FREE uint32_t *tie_order = calloc(o->input.node_count, sizeof *tie_order);
    uint64_t total = (uint64_t)o->seeds * o->ties;
    int rc = 0;
    o->values = calloc(o->policies * FIGURES * total, sizeof *o->values);
    o->means = calloc(o->seeds, sizeof *o->means);
    if (!tie_order || !o->values || !o->means)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    for (uint64_t i = 0; i < total && rc == 0; i++) {
        sim_progress(sim, "openb", i, total);
        rc = run_once(o, (uint32_t)(i / o->ties), (uint32_t)(i % o->ties), tie_order, err);
    }
    sim_progress(sim, "openb", total, total);
    return rc;
}

/* ---- the answer ---- */

static struct stats figure_of(const struct openb *o, unsigned policy, size_t figure)
{
    return stats_of(values_of(o, policy, figure), (size_t)o->seeds * o->ties);
}

/* The difference to the policy --against, on the same order and order of nodes.  The runs
 * of one order are no independent samples: their mean is one. */
static struct stats paired(const struct openb *o, unsigned policy, size_t figure)
{
    const double *a = values_of(o, policy, figure);
    const double *b = values_of(o, (unsigned)o->against, figure);
    memset(o->means, 0, o->seeds * sizeof *o->means);
    for (uint32_t i = 0; i < o->seeds * o->ties; i++)
        o->means[i / o->ties] += (a[i] - b[i]) / o->ties;
    return stats_of(o->means, o->seeds);
}

/* In thousandths of a percent; what is unknown is null. */
static json_t *json_pct(double value)
{
    return isnan(value) ? json_null() : json_real(round(value * 1000) / 1000);
}

static json_t *json_figure(struct stats s, bool *ok)
{
    json_t *j = json_object();
    json_put(j, "mean", json_pct(s.mean), ok);
    json_put(j, "std", json_pct(s.std), ok);
    return j;
}

static json_t *json_paired(const struct openb *o, unsigned policy, bool *ok)
{
    json_t *j = json_object();
    json_put(j, "against", json_string(fill_policies[o->policy[o->against]].name), ok);
    json_put(j, "orders", json_integer(o->seeds), ok);
    for (size_t f = 0; f < FIGURES; f++) {
        struct stats s = paired(o, policy, f);
        json_t *figure = json_object();
        json_put(figure, "mean", json_pct(s.mean), ok);
        json_put(figure, "low", json_pct(s.low), ok);
        json_put(figure, "high", json_pct(s.high), ok);
        json_put(j, figures[f].key, figure, ok);
    }
    return j;
}

static json_t *json_policy(const struct openb *o, unsigned policy, bool *ok)
{
    json_t *j = json_object();
    json_put(j, "policy", json_string(fill_policies[o->policy[policy]].name), ok);
    json_put(j, "runs", json_integer((json_int_t)o->seeds * o->ties), ok);
    for (size_t f = 0; f < FIGURES; f++)
        json_put(j, figures[f].key, json_figure(figure_of(o, policy, f), ok), ok);
    json_put(j, "refused_though_fits", json_integer(o->refused_though_fits[policy]), ok);
    if (o->against >= 0 && policy != (unsigned)o->against)
        json_put(j, "paired", json_paired(o, policy, ok), ok);
    return j;
}

static int print_json(struct sim *sim, const struct openb *o, struct sl_err *err)
{
    bool ok = true;
    AUTO_JSON json_t *all = json_object();
    json_t *list = json_array();
    for (unsigned p = 0; p < o->policies; p++)
        ok = json_array_append_new(list, json_policy(o, p, &ok)) == 0 && ok;
    json_put(all, "policies", list, &ok);
    if (!ok)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    json_dumpf(all, sim->out,
               JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(8));
    fputc('\n', sim->out);
    return 0;
}

static void print_cell(FILE *out, double value, double beside, const char *fmt)
{
    if (isnan(value))
        fprintf(out, " %15s", "-");
    else if (isnan(beside))
        fprintf(out, " %8.2f       ", value);
    else
        fprintf(out, fmt, value, beside);
}

static void print_table(struct sim *sim, const struct openb *o)
{
    FILE *out = sim->out;
    fprintf(out, "%-12s", "policy");
    for (size_t f = 0; f < PRINTED; f++)
        fprintf(out, " %15s", figures[f].title);
    for (unsigned p = 0; p < o->policies; p++) {
        fprintf(out, "\n%-12s", fill_policies[o->policy[p]].name);
        for (size_t f = 0; f < PRINTED; f++) {
            struct stats s = figure_of(o, p, f);
            print_cell(out, s.mean, s.std, " %8.2f \u00b1 %4.2f");
        }
    }
    for (unsigned p = 0; o->against >= 0 && p < o->policies; p++) {
        if (p == (unsigned)o->against)
            continue;
        fprintf(out, "\n%-12s", fill_policies[o->policy[p]].name);
        for (size_t f = 0; f < PRINTED; f++) {
            struct stats s = paired(o, p, f);
            print_cell(out, s.mean, s.high - s.mean, " %+8.2f \u00b1 %4.2f");
        }
        fprintf(out, "  less %s", fill_policies[o->policy[o->against]].name);
    }
    fprintf(
        out,
        "\n\nPercent: mean and standard deviation of %u runs (%u orders \u00d7 %u orders of"
        " nodes)%s.\n",
        o->seeds * o->ties, o->seeds, o->ties,
        o->against >= 0
            ? "; of differences mean and half of its 95 % interval, paired by order"
            : "");
}

static int check_refusals(const struct openb *o, struct sl_err *err)
{
    for (unsigned p = 0; p < o->policies; p++)
        if (o->refused_though_fits[p])
            return sl_fail(err, SL_INTERNAL, "%s refused %u pods that fit somewhere",
                           fill_policies[o->policy[p]].name, o->refused_though_fits[p]);
    return 0;
}

static int answer(struct sim *sim, const struct sim_args *args, struct openb *o,
                  struct sl_err *err)
{
    int rc = choose_policies(o, args, err);
    if (rc == 0)
        rc = read_files(o, args, err);
    if (rc == 0)
        rc = run_all(sim, o, err);
    if (rc == 0 && sim_has(args, "json"))
        rc = print_json(sim, o, err);
    else if (rc == 0)
        print_table(sim, o);
    return rc < 0 ? rc : check_refusals(o, err);
}

int sim_cmd_openb(struct sim *sim, const struct sim_args *args)
{
    struct openb o = { 0 };
    struct sl_err err = { 0 };
    int rc = answer(sim, args, &o, &err);
    openb_finish(&o);
    return rc < 0 ? sim_fail(sim, &err) : 0;
}
