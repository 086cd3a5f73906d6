/* An explanation in words. */
#include <inttypes.h>

#include "model/units.h"
#include "sched/explain.h"

static void add_size(struct buf *to, uint64_t bytes)
{
    char text[32];
    buf_add(to, bytes ? units_format_size(bytes, text) : "0");
}

/* ---- what it asks ---- */

static void add_ask(struct buf *to, const struct sched_explanation *x)
{
    const struct pool_ask *a = &x->ask;
    if (x->count > 1)
        buf_addf(to, "%u times ", x->count);
    if (a->devices == 1)
        buf_addf(to, "%u permille of a device", a->permille);
    else if (a->devices)
        buf_addf(to, "%u permille of each of %u devices", a->permille, a->devices);
    else
        buf_add(to, "host work");
    if (a->devices && a->mem_bytes) {
        buf_add(to, " with ");
        add_size(to, a->mem_bytes);
    }
    if (a->cpu_milli)
        buf_addf(to, ", %u milli-cores", a->cpu_milli);
    if (a->host_mem_bytes) {
        buf_add(to, ", ");
        add_size(to, a->host_mem_bytes);
        buf_add(to, " of host memory");
    }
}

/* ---- the nodes ---- */

enum unit { NOTHING, DEVICES, BYTES, PERMILLE, MILLI_CORES };

static const struct {
    const char *what;
    enum unit unit;
} lack_words[SCHED_LACKS] = {
    [SCHED_LACKS_LABEL] = { "other labels", NOTHING },
    [SCHED_LACKS_MODEL] = { "other model", NOTHING },
    [SCHED_LACKS_DEVICES] = { "too few devices of the model", DEVICES },
    [SCHED_LACKS_QUOTA] = { "a model that a limit bars", NOTHING },
    [SCHED_IS_CLOSED] = { "closed", NOTHING },
    [SCHED_IS_KEPT] = { "kept for another request", NOTHING },
    [SCHED_LACKS_SHARING] = { "devices that may not be shared with it", NOTHING },
    [SCHED_LACKS_MEMORY] = { "memory", BYTES },
    [SCHED_LACKS_COMPUTE] = { "compute", PERMILLE },
    [SCHED_LACKS_PROFILE] = { "no free profile that covers it", NOTHING },
    [SCHED_LACKS_CPU] = { "host CPU", MILLI_CORES },
    [SCHED_LACKS_HOST_MEMORY] = { "host memory", BYTES },
    [SCHED_LACKS_NOTHING] = { "room for one, not for all, or not as near or apart as asked",
                              NOTHING },
};

static void add_most(struct buf *to, enum unit unit, uint64_t most, bool ever)
{
    if (unit == NOTHING)
        return;
    buf_add(to, " (at most ");
    if (unit == BYTES)
        add_size(to, most);
    else
        buf_addf(to, "%" PRIu64 "%s", most,
                 unit == PERMILLE      ? " permille"
                 : unit == MILLI_CORES ? " milli-cores"
                                       : "");
    buf_add(to, unit == DEVICES || ever ? ")" : " free)");
}

static void add_lacks(struct buf *to, const struct sched_explanation *x)
{
    for (int i = 0; i < SCHED_LACKS; i++) {
        uint32_t nodes = x->lacking[i].nodes;
        if (!nodes)
            continue;
        buf_addf(to, "  %u node%s: %s", nodes, nodes == 1 ? "" : "s", lack_words[i].what);
        add_most(to, lack_words[i].unit, x->lacking[i].most,
                 x->tier == SCHED_MISCONFIGURED);
        buf_add(to, "\n");
    }
}

/* ---- what would do ---- */

static void add_model(struct buf *to, uint32_t model)
{
    if (model == SCHED_ALL_MODELS)
        buf_add(to, "all models");
    else
        buf_addf(to, "model %u", model);
}

static void add_bytes_instead(struct buf *to, const struct sched_change *c,
                              const char *what)
{
    add_size(to, c->to);
    buf_addf(to, " of %s instead of ", what);
    add_size(to, c->from);
}

static void add_instead(struct buf *to, const struct sched_change *c, const char *what)
{
    buf_addf(to, "%" PRIu64 " %s instead of %" PRIu64, c->to, what, c->from);
}

static void add_change(struct buf *to, enum sched_change_kind kind,
                       const struct sched_change *c)
{
    switch (kind) {
    case SCHED_LESS_MEMORY:
        return add_bytes_instead(to, c, "memory on each device");
    case SCHED_LESS_COMPUTE:
        return add_instead(to, c, "permille of each device");
    case SCHED_FEWER_DEVICES:
        return add_instead(to, c, "devices on a node");
    case SCHED_SMALLER_GANG:
        return add_instead(to, c, "members of the gang");
    case SCHED_LESS_CPU:
        return add_instead(to, c, "milli-cores");
    case SCHED_LESS_HOST_MEMORY:
        return add_bytes_instead(to, c, "host memory");
    case SCHED_OTHER_MODEL:
        buf_addf(to, "model %u allowed, too", c->model);
        return;
    case SCHED_WITHOUT_LABEL:
        buf_addf(to, "no condition on label %u", c->label);
        return;
    case SCHED_LESS_NEAR:
        buf_add(to, "places that need not lie together");
        return;
    case SCHED_LESS_TIED:
        buf_addf(to, "with or apart from tag %u only preferred", c->tag);
        return;
    case SCHED_HIGHER_LIMIT:
        buf_addf(to, "tenant %u's limit of ", c->tenant);
        add_model(to, c->model);
        buf_addf(to, " raised by %" PRIu64 " milli-devices to %" PRIu64, c->to - c->from,
                 c->to);
        return;
    case SCHED_A_LEASE_ENDS:
        buf_addf(to, "the end of %s%s%u lease%s, such as %" PRIu64,
                 c->leases == 1 && !c->more ? "" : "one of ", c->more ? "at least " : "",
                 c->leases, c->leases == 1 ? "" : "s", c->lease);
        return;
    case SCHED_CHANGES:
        return;
    }
}

static void add_changes(struct buf *to, const struct sched_explanation *x)
{
    bool any = false;
    for (int i = 0; i < SCHED_CHANGES; i++) {
        const struct sched_change *c = &x->change[i];
        if (!c->admits)
            continue;
        buf_add(to, any ? "  or " : "It would start now with\n  ");
        add_change(to, i, c);
        if (c->option && i != SCHED_HIGHER_LIMIT && i != SCHED_A_LEASE_ENDS)
            buf_addf(to, " (option %u)", c->option);
        if (c->group && i != SCHED_HIGHER_LIMIT && i != SCHED_A_LEASE_ENDS)
            buf_addf(to, " (group %u)", c->group);
        buf_add(to, "\n");
        any = true;
    }
    if (!any && x->view.state == SCHED_PENDING)
        buf_add(to, "No single change would start it now.\n");
}

/* What rests on neither limits nor predictions is not worth a sentence. */
static void add_estimate(struct buf *to, const struct sched_explanation *x)
{
    uint64_t in_ms = x->estimate_ms - x->now_ms;
    if (x->basis != SCHED_BASIS_LIMITS && x->basis != SCHED_BASIS_PREDICTIONS)
        return;
    buf_addf(to, "It is expected to start in %" PRIu64 ".%03u s, %s.\n", in_ms / 1000,
             (unsigned)(in_ms % 1000),
             x->basis == SCHED_BASIS_LIMITS ? "by the limits of what runs at the latest"
                                            : "if the others run as long as predicted");
}

/* ---- the verdict ---- */

static void add_limit(struct buf *to, const struct sched_explanation *x)
{
    buf_addf(to, "a limit of tenant %u is in the way", x->limit_tenant);
    if (!x->short_milli)
        return;
    buf_add(to, ": of ");
    add_model(to, x->limit_model);
    buf_addf(to, " it may have %" PRIu64 " milli-devices, %" PRIu64 " too few",
             x->limit_milli, x->short_milli);
}

static void add_victim(struct buf *to, const struct sched_explanation *x)
{
    static const char *const why[] = {
        [SCHED_BY_PRIORITY] = "of the same tenant, with a higher priority",
        [SCHED_BY_RECLAIM] =
            "of a tenant that holds less than it deserves, while this one's"
            " holds more",
        [SCHED_BY_SERVICE] = "of the same tenant and priority, earlier in its order",
    };
    buf_addf(
        to,
        "%" PRIu64 " was told to go for %" PRIu64 ", %s.\n"
        "%u could have gone; it was number %u in the order: no gang first, then the lowest"
        " priority, the last in its order, the tenant furthest above its share, the least"
        " work lost, the youngest. Those before it either went, too, or fit beside.\n",
        x->id, x->by, why[x->rule], x->among, x->place);
}

void sched_explanation_text(struct buf *to, const struct sched_explanation *x)
{
    switch (x->tier) {
    case SCHED_RUNS:
        buf_addf(to, "%" PRIu64 " runs since %" PRIu64 ".%03u s.\n", x->id,
                 x->start_ms / 1000, (unsigned)(x->start_ms % 1000));
        return;
    case SCHED_GOES:
        add_victim(to, x);
        return;
    case SCHED_MISCONFIGURED:
        buf_addf(to,
                 "%" PRIu64 " can never run here: no node, were it empty, has room for ",
                 x->id);
        add_ask(to, x);
        break;
    case SCHED_BLOCKED:
        buf_addf(to, "%" PRIu64 " is blocked: ", x->id);
        add_limit(to, x);
        break;
    case SCHED_WAITING:
        if (x->view.verdict == SCHED_BEING_MADE) {
            buf_addf(to,
                     "%" PRIu64 " waits for others to go; its place is kept until then.\n",
                     x->id);
            return;
        }
        buf_addf(to, "%" PRIu64 " waits for room for ", x->id);
        add_ask(to, x);
        break;
    }
    buf_add(to, ".\n");
    if (x->view.unproven)
        buf_add(to, "The search was long and gave up: there may be a place after all.\n");
    if (x->tier != SCHED_BLOCKED)
        add_lacks(to, x);
    add_estimate(to, x);
    add_changes(to, x);
}
