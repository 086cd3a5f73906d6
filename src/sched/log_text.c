/* Events and decisions in words, a line each. */
#include <inttypes.h>

#include "core/macros.h"
#include "sched/log.h"

static const char *const sharing_word[] = {
    [POOL_TIME] = "time-shared",
    [POOL_EXCLUSIVE] = "exclusive",
    [POOL_SPATIAL] = "shared in space",
    [POOL_PROFILE] = "cut by profile",
};

static void ask_text(struct buf *to, const struct sched_group *g)
{
    const struct pool_ask *a = &g->ask;
    if (g->count > 1)
        buf_addf(to, "%u nodes of ", g->count);
    if (a->devices)
        buf_addf(to, "%u x %u permille", a->devices, a->permille);
    else
        buf_add(to, "no device");
    if (a->lower)
        buf_add(to, " above capacity");
    if (g->split_least)
        buf_addf(to, ", %u or more on each,", g->split_least);
    if (a->mem_bytes)
        buf_addf(to, " %" PRIu64 " bytes", a->mem_bytes);
    if (a->cpu_milli)
        buf_addf(to, " %u milli-CPU", a->cpu_milli);
    if (a->host_mem_bytes)
        buf_addf(to, " %" PRIu64 " host bytes", a->host_mem_bytes);
    if (a->models)
        buf_addf(to, " models %" PRIx64, a->models);
    for (uint32_t m = 0, said = 0; m < ARRAY_LEN(sharing_word); m++)
        if (a->sharing >> m & 1)
            buf_addf(to, "%s%s", said++ ? " or " : " ", sharing_word[m]);
}

static const char *const level[] = { "anywhere", "node", "rack", "zone", "device" };

static void tie_text(struct buf *to, const struct sched_tie *t)
{
    buf_addf(to, ", %s%s tag %u at the %s", t->required ? "" : "preferably ",
             t->apart ? "apart from" : "with", t->tag,
             t->level <= POOL_DEVICE ? level[t->level] : "?");
}

static void within_text(struct buf *to, const struct sched_option *o)
{
    if (o->within && o->within <= POOL_ZONE)
        buf_addf(to, " %s one %s", o->within_required ? "within" : "preferably within",
                 level[o->within]);
}

static void request_text(struct buf *to, const char *verb, const struct sched_request *q)
{
    buf_addf(to, "%s %" PRIu64 ": tenant %u, priority %u,", verb, q->id, q->tenant,
             q->priority);
    for (uint32_t i = 0; i < q->option_count; i++) {
        for (uint32_t g = 0; g < q->option[i].group_count; g++) {
            bool beside = q->option[i].group[g].beside;
            buf_add(to, beside ? " beside " : g ? " + " : i ? " or " : " ");
            ask_text(to, &q->option[i].group[g]);
        }
        within_text(to, &q->option[i]);
    }
    for (uint32_t i = 0; i < q->ties.tag_count; i++)
        buf_addf(to, "%s %u", i ? "," : ", tags", q->ties.tag[i]);
    for (uint32_t i = 0; i < q->ties.tie_count; i++)
        tie_text(to, &q->ties.tie[i]);
}

static void places_text(struct buf *to, const struct pool_place *p, uint32_t count)
{
    for (; count--; p++) {
        buf_addf(to, ", node %u", p->node);
        for (uint32_t k = 0; k < p->device_count; k++) {
            buf_addf(to, "%s%u", k ? "," : " devices ", p->device[k]);
            if (p->cut[k].profile || p->cut[k].start)
                buf_addf(to, " (profile %u from slot %u)", p->cut[k].profile,
                         p->cut[k].start);
        }
    }
}

static void restore_text(struct buf *to, const struct sched_restore *e)
{
    request_text(to, "restore", &e->request);
    buf_addf(to, ": option %u since %" PRIu64, e->option, e->start_ms);
    places_text(to, e->place, e->place_count);
}

static void quota_text(struct buf *to, const struct sched_quota *q)
{
    buf_addf(to, "quota of tenant %u, model %u: deserves %" PRIu64 ", limit ", q->tenant,
             q->model, q->deserved_milli);
    if (q->limit_milli == SCHED_NO_LIMIT)
        buf_add(to, "none");
    else
        buf_addf(to, "%" PRIu64, q->limit_milli);
}

void sched_event_text(struct buf *to, const struct sched_event *e)
{
    switch (e->kind) {
    case SCHED_ADD_NODE:
        buf_addf(to, "add a node of %u devices", e->node.device_count);
        break;
    case SCHED_OPEN_NODE:
        buf_addf(to, "%s node %u", e->open.open ? "open" : "close", e->open.node);
        break;
    case SCHED_SET_TENANT:
        buf_addf(to, "tenant %u below %u, weight %u", e->tenant.tenant, e->tenant.parent,
                 e->tenant.weight);
        break;
    case SCHED_SET_QUOTA:
        quota_text(to, &e->quota);
        break;
    case SCHED_SET_PRICE:
        buf_addf(to, "price of model %u: %u permille", e->price.model, e->price.permille);
        break;
    case SCHED_SUBMIT:
        request_text(to, "submit", &e->submit);
        break;
    case SCHED_END:
        buf_addf(to, "end %" PRIu64, e->end);
        break;
    case SCHED_TICK:
        buf_add(to, "tick");
        break;
    case SCHED_RESTORE:
        restore_text(to, &e->restore);
        break;
    case SCHED_SET_PROFILES:
        buf_addf(to, "%u profiles of model %u", e->profiles.profiles.count,
                 e->profiles.model);
        break;
    case SCHED_SET_PRIORITY:
        buf_addf(to, "priority of %" PRIu64 ": %u", e->priority.id, e->priority.priority);
        break;
    }
}

static const char *rule_word(enum sched_rule rule)
{
    switch (rule) {
    case SCHED_BY_PRIORITY:
        return "priority";
    case SCHED_BY_RECLAIM:
        return "reclaim";
    case SCHED_BY_SERVICE:
        return "service";
    }
    return "?";
}

void sched_decision_text(struct buf *to, const struct sched_decision *d)
{
    switch (d->kind) {
    case SCHED_GRANT:
        buf_addf(to, "grant %" PRIu64 ": option %u", d->id, d->option);
        places_text(to, d->place, d->place_count);
        break;
    case SCHED_EVICT:
        buf_addf(to, "evict %" PRIu64 ": for %" PRIu64 " by %s", d->id, d->by,
                 rule_word(d->rule));
        break;
    }
}
