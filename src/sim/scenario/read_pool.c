/* Statements about what there is: nodes, tenants, prices, the policy. */
#include "reader.h"

#include "core/macros.h"
#include "model/units.h"

#define NODE_CPU_MILLI  64000u
#define NODE_MEM_BYTES  (512 * GIB)
#define MODEL_MEM_BYTES (80 * GIB)
#define LEAST_TICK_MS   1000u

/* ---- node n1: 8 x A100 80GiB, 64 cpus, 512GiB host, label gen=new ---- */

static void add_devices(struct reader *r, uint32_t count)
{
    struct pool_node *n = &r->st->node;
    words_need(&r->w, "x");
    uint32_t model = read_model(r, false);
    uint64_t mem = words_at_size(&r->w) ? words_size(&r->w) : MODEL_MEM_BYTES;
    if (!r->w.rc && n->device_count + count > POOL_MAX_DEVICES)
        words_fail(&r->w, "more than %d devices on a node", POOL_MAX_DEVICES);
    for (uint32_t i = 0; i < count && !r->w.rc; i++)
        n->device[n->device_count++] =
            (struct pool_device){ .model = model, .mem_bytes = mem };
}

static void read_label_clause(struct reader *r)
{
    read_label(r, &r->st->node.labels);
}

static void read_rack(struct reader *r)
{
    r->st->node.rack = 1 + read_name(r, &r->s->places, "rack", false);
}

static void read_zone(struct reader *r)
{
    r->st->node.zone = 1 + read_name(r, &r->s->places, "zone", false);
}

/* shared by time | in space | by nobody: all devices said so far */
static void read_shared(struct reader *r)
{
    enum pool_sharing sharing = POOL_TIME;
    if (words_take(&r->w, "in")) {
        words_need(&r->w, "space");
        sharing = POOL_SPATIAL;
    } else {
        words_need(&r->w, "by");
        if (words_take(&r->w, "nobody"))
            sharing = POOL_EXCLUSIVE;
        else
            words_need(&r->w, "time");
    }
    for (uint32_t i = 0; i < r->st->node.device_count; i++)
        r->st->node.device[i].sharing = (uint8_t)sharing;
}

/* over 50% 16GiB: so much more of each device in the lower class, and of the host */
static void read_over(struct reader *r)
{
    struct pool_node *n = &r->st->node;
    uint32_t permille = words_share(&r->w);
    uint64_t mem = words_at_size(&r->w) ? words_size(&r->w) : 0;
    for (uint32_t i = 0; i < n->device_count; i++) {
        n->device[i].over_permille = (uint16_t)permille;
        n->device[i].over_mem_bytes = mem;
    }
    n->over_cpu_milli = n->cpu_milli;
    n->over_host_mem_bytes = n->host_mem_bytes;
}

static const struct clause node_clauses[] = {
    { "label", read_label_clause }, { "rack", read_rack }, { "zone", read_zone },
    { "shared", read_shared },      { "over", read_over },
};

/* What begins with a number, or a clause by its word. */
static void read_node_part(struct reader *r)
{
    struct pool_node *n = &r->st->node;
    if (words_at_size(&r->w)) {
        n->host_mem_bytes = words_size(&r->w);
        words_need(&r->w, "host");
    } else if (words_at_count(&r->w)) {
        uint32_t count = (uint32_t)words_count(&r->w, "how many", 0, UINT32_MAX / 1000);
        if (words_take(&r->w, "cpus"))
            n->cpu_milli = count * 1000;
        else
            add_devices(r, count);
    } else {
        read_clause(r, node_clauses, ARRAY_LEN(node_clauses), "part of a node");
    }
}

void read_node(struct reader *r)
{
    r->st->kind = ST_NODE;
    r->st->node.cpu_milli = NODE_CPU_MILLI;
    r->st->node.host_mem_bytes = NODE_MEM_BYTES;
    uint32_t had = r->s->nodes.count;
    r->st->who = read_set(r, &r->s->nodes, "node", false);
    if (!r->w.rc && r->s->nodes.count - had != r->st->who.count)
        words_fail(&r->w, "a node of this name is there already");
    words_need(&r->w, ":");
    do
        read_node_part(r);
    while (words_take(&r->w, ","));
}

/* ---- tenant vision in research: weight 2, deserves 4 A100, at most 8 A100 ---- */

static struct tenant_quota *quota_of(struct reader *r, uint32_t model)
{
    uint32_t i = 0;
    while (i < r->st->tenant.quota_count && r->st->tenant.quota[i].model != model)
        i++;
    if (i == SCENARIO_QUOTAS) {
        words_fail(&r->w, "more than %d models in one statement", SCENARIO_QUOTAS);
        i = 0;
    }
    if (i == r->st->tenant.quota_count)
        r->st->tenant.quota_count++;
    r->st->tenant.quota[i].model = model;
    return &r->st->tenant.quota[i];
}

static void read_weight(struct reader *r)
{
    r->st->tenant.has_weight = true;
    r->st->tenant.weight = (uint32_t)words_count(&r->w, "a weight", 0, UINT32_MAX);
}

static void read_deserves(struct reader *r)
{
    uint64_t milli = words_milli(&r->w, "how many devices");
    struct tenant_quota *q = quota_of(r, read_counted(r));
    q->deserves = true;
    q->deserved_milli = milli;
}

static void read_at_most(struct reader *r)
{
    words_need(&r->w, "most");
    uint64_t milli = words_milli(&r->w, "how many devices");
    struct tenant_quota *q = quota_of(r, read_counted(r));
    q->limits = true;
    q->limit_milli = milli;
}

static const struct clause tenant_clauses[] = {
    { "weight", read_weight },
    { "deserves", read_deserves },
    { "at", read_at_most },
};

void read_tenant(struct reader *r)
{
    r->st->kind = ST_TENANT;
    uint32_t had = r->s->tenants.count;
    add_index(r, &r->st->who, read_name(r, &r->s->tenants, "tenant", false));
    if (words_take(&r->w, "in")) {
        if (r->s->tenants.count == had)
            words_fail(&r->w, "a tenant's parent cannot be changed");
        r->st->tenant.has_parent = true;
        if (!r->w.rc &&
            names_find(&r->s->tenants, r->w.word) == r->s->index[r->st->who.first])
            words_fail(&r->w, "a tenant is not below itself");
        r->st->tenant.parent = read_name(r, &r->s->tenants, "tenant", true);
    }
    if (words_take(&r->w, ":"))
        read_clauses(r, tenant_clauses, ARRAY_LEN(tenant_clauses), "clause of a tenant");
}

/* price A100 2.5 */
void read_price(struct reader *r)
{
    r->st->kind = ST_PRICE;
    r->st->price.model = read_model(r, true);
    r->st->price.permille = (uint32_t)words_milli(&r->w, "a price");
}

/* ---- policy … ---- */

static void read_order(struct reader *r)
{
    static const char *const orders[] = { "age", "attained", "remaining" };
    words_need(&r->w, "by");
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (words_take(&r->w, orders[i])) {
            r->s->policy.order = (enum sched_order)i;
            return;
        }
    words_unknown(&r->w, "order", orders, ARRAY_LEN(orders));
}

static void read_place(struct reader *r)
{
    static const char *const rules[] = { "fill", "best-fit", "spread" };
    words_need(&r->w, "by");
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (words_take(&r->w, rules[i])) {
            r->s->policy.place.rule = (enum place_rule)i;
            return;
        }
    words_unknown(&r->w, "rule", rules, ARRAY_LEN(rules));
}

static void read_tick(struct reader *r)
{
    r->s->tick_ms = words_duration(&r->w);
    if (r->s->tick_ms < LEAST_TICK_MS)
        words_fail(&r->w, "a tick is at least 1s");
}

static void read_tenants(struct reader *r)
{
    words_need(&r->w, "apart");
    r->s->policy.tenancy = POOL_ISOLATED;
}

static void read_protect(struct reader *r)
{
    r->s->policy.protect = (uint32_t)words_count(&r->w, "how many", 0, SCHED_MAX_PROTECT);
}

static void read_patience(struct reader *r)
{
    r->s->policy.patience_ms = words_duration(&r->w);
}

static const struct clause policy_clauses[] = {
    { "order", read_order },     { "place", read_place },     { "tick", read_tick },
    { "tenants", read_tenants }, { "protect", read_protect }, { "patience", read_patience },
};

void read_policy(struct reader *r)
{
    words_need(&r->w, ":");
    if (r->s->count)
        words_fail(&r->w, "the policy comes before everything else");
    read_clauses(r, policy_clauses, ARRAY_LEN(policy_clauses), "clause of the policy");
}
