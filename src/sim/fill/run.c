/* One run: arrivals, the books that every answer is held against, and the columns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fill.h"

struct books {
    const struct fill_input *in;
    struct fill_node *nodes;
    uint64_t *waste; /* of each node */
    uint64_t all_waste, idle_milli, arrived_milli, watts;
    struct {
        uint64_t used_milli; /* summed over arrivals */
        double frag_ratio;
        uint64_t watts; /* summed, too */
        uint32_t arrivals;
    } column[FILL_COLUMNS];
};

static bool books_open(struct books *b, const struct fill_input *in)
{
    *b = (struct books){
        .in = in,
        .nodes = malloc(in->node_count * sizeof *b->nodes),
        .waste = malloc(in->node_count * sizeof *b->waste),
        .idle_milli = in->gpu_milli,
    };
    if (!b->nodes || !b->waste)
        return false;
    memcpy(b->nodes, in->nodes, in->node_count * sizeof *b->nodes);
    for (uint32_t i = 0; i < in->node_count; i++)
        b->watts += fill_watts(&b->nodes[i]);
    for (uint32_t i = 0; i < in->node_count; i++)
        b->all_waste += b->waste[i] = fill_waste(&in->target, &b->nodes[i]);
    return true;
}

static void books_close(struct books *b)
{
    free(b->nodes);
    free(b->waste);
}

/* Why the books cannot take it; NULL if they can. */
static const char *objection(const struct books *b, const struct fill_class *c,
                             const struct fill_place *p)
{
    if (p->node >= b->in->node_count)
        return "there is no such node";
    const struct fill_node *n = &b->nodes[p->node];
    if (!fill_fits(n, c))
        return "it does not fit there";
    if (p->count != c->gpus)
        return "that is not the number of devices it asked for";
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->device[i] >= n->gpus || (i && p->device[i] <= p->device[i - 1]))
            return "the devices are not different ones of the node, in order";
        if (!fill_device_has(n, p->device[i], c->gpu_milli, c->gpu_mem_milli))
            return "a device has too little free";
    }
    return NULL;
}

static void books_take(struct books *b, const struct fill_class *c,
                       const struct fill_place *p)
{
    b->watts -= fill_watts(&b->nodes[p->node]);
    fill_take(&b->nodes[p->node], c, p);
    b->watts += fill_watts(&b->nodes[p->node]);
    b->idle_milli -= (uint64_t)c->gpus * c->gpu_milli;
    b->all_waste -= b->waste[p->node];
    b->waste[p->node] = fill_waste(&b->in->target, &b->nodes[p->node]);
    b->all_waste += b->waste[p->node];
}

static bool fits_somewhere(const struct books *b, const struct fill_class *c)
{
    for (uint32_t i = 0; i < b->in->node_count; i++)
        if (fill_fits(&b->nodes[i], c))
            return true;
    return false;
}

uint64_t fill_column(uint64_t part, uint64_t whole)
{
    uint64_t percent = part * 100 / whole, rest = part * 100 % whole;
    return percent + (rest * 2 > whole || (rest * 2 == whole && percent % 2));
}

/* What the cluster looks like after an arrival. */
static void books_note(struct books *b)
{
    uint64_t column = fill_column(b->arrived_milli, b->in->gpu_milli);
    if (column >= FILL_COLUMNS)
        return;
    b->column[column].arrivals++;
    b->column[column].used_milli += b->in->gpu_milli - b->idle_milli;
    b->column[column].watts += b->watts;
    if (b->idle_milli)
        b->column[column].frag_ratio +=
            (double)b->all_waste / (double)b->in->target.total / (double)b->idle_milli;
}

static void books_report(const struct books *b, struct fill_result *out)
{
    for (unsigned k = 0; k < FILL_COLUMNS; k++) {
        double n = b->column[k].arrivals;
        out->alloc_pct[k] =
            n ? 100.0 * (double)b->column[k].used_milli / (double)b->in->gpu_milli / n
              : NAN;
        out->power_kw[k] = n ? (double)b->column[k].watts / 1000 / n : NAN;
        out->frag_ratio_pct[k] = n ? 100.0 * b->column[k].frag_ratio / n : NAN;
    }
}

static int arrive(struct books *b, const struct fill_policy *policy, void *self,
                  uint32_t pod, struct fill_result *out, struct sl_err *err)
{
    uint32_t class = b->in->class_of[pod];
    const struct fill_class *c = &b->in->classes[class];
    struct fill_place p = { 0 };
    b->arrived_milli += (uint64_t)c->gpus * c->gpu_milli;
    if (policy->place(self, class, &p)) {
        const char *why = objection(b, c, &p);
        if (why)
            return sl_fail(err, SL_INTERNAL, "%s put pod %u on node %u: %s", policy->name,
                           pod, p.node, why);
        books_take(b, c, &p);
    } else {
        out->refused++;
        out->refused_though_fits += fits_somewhere(b, c);
    }
    books_note(b);
    return 0;
}

int fill_run(const struct fill_input *in, const struct fill_policy *policy,
             const uint32_t *order, uint32_t count, const uint32_t *tie_order,
             uint64_t seed, struct fill_result *out, struct sl_err *err)
{
    struct books books;
    struct fill_result result = { 0 };
    void *self = policy->create(in, tie_order, seed);
    int rc = books_open(&books, in) && self
                 ? 0
                 : sl_fail(err, SL_INTERNAL, "%s: out of memory", policy->name);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = arrive(&books, policy, self, order[i], &result, err);
    if (rc == 0) {
        books_report(&books, &result);
        *out = result;
    }
    policy->destroy(self);
    books_close(&books);
    return rc;
}
