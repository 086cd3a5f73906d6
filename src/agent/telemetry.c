/* Owns what is observed once a second: the broker's figures put into devices and leases. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/macros.h"

#define USAGE_KEEP_NS (10 * NS_PER_S) /* what agent and broker killed at once may cost */

static bool ask(struct agent *a, struct proto_ctl *m, enum proto_ctl_kind kind,
                uint64_t cursor)
{
    *m = broker_link_message(kind);
    m->cursor = cursor;
    return broker_link_call(&a->broker, m, NULL) == 0;
}

/* Of the device and not the sum of its leases: theirs are over as long as each has lived. */
static void sample_device(struct agent *a, struct device *d, const struct proto_ctl *m)
{
    struct sampler *s = &a->device_sampler[d->index];
    sampler_push(s, m->device_stat.now_ns, m->device_stat.held_ns,
                 m->device_stat.deliverable_ns);
    d->achieved_permille_10s = sampler_achieved_permille(s);
}

/* The rings take one sample a second; whoever only looks in between adds none. */
static void take_devices(struct agent *a, bool second)
{
    struct proto_ctl m;
    for (uint64_t cursor = 0; ask(a, &m, PROTO_CTL_STAT_DEVICE, cursor);
         cursor = m.cursor) {
        struct device *d = inventory_find_index(a, m.device_stat.index);
        if (d) {
            d->used_bytes = m.device_stat.used_bytes;
            a->device_deliverable_ns[d->index] = m.device_stat.deliverable_ns;
        }
        if (d && second)
            sample_device(a, d, &m);
        if (!m.more)
            return;
    }
}

static void take_slice(struct agent_lease *al, uint32_t i, const struct proto_slice_stat *s)
{
    struct lease_slice *to = &al->l.slice[i];
    to->mem_used_bytes = s->committed_bytes + s->reserved_bytes;
    to->mem_over_bytes = s->over_bytes;
    usage_take(&al->usage[i], s, to);
    to->holds = s->flags & SLICE_HOLDS;
    to->waits = s->flags & SLICE_WAITS;
    to->late = s->flags & SLICE_LATE;
    to->stuck = s->flags & SLICE_STUCK;
}

static void sample(struct agent *a, struct agent_lease *al, uint32_t i,
                   const struct proto_slice_stat *s, uint64_t now_ns)
{
    if (s->device < AGENT_MAX_DEVICES)
        sampler_push(&al->sampler[i], now_ns, s->held_ns,
                     a->device_deliverable_ns[s->device]);
    al->l.slice[i].achieved_permille_10s = sampler_achieved_permille(&al->sampler[i]);
}

static void take_leases(struct agent *a, bool second)
{
    struct proto_ctl m;
    for (uint64_t cursor = 0; ask(a, &m, PROTO_CTL_STAT_LEASE, cursor); cursor = m.cursor) {
        struct agent_lease *al = agent_find_number(a, m.lease_stat.number);
        if (al && agent_lease_is_live(al)) {
            al->l.clients = m.lease_stat.clients;
            al->l.suspects = m.lease_stat.suspects;
            al->l.granularity_ns = m.lease_stat.granularity_ns;
            for (uint32_t i = 0; i < al->l.slice_count && i < m.lease_stat.slice_count;
                 i++) {
                take_slice(al, i, &m.lease_stat.slice[i]);
                if (second)
                    sample(a, al, i, &m.lease_stat.slice[i], m.lease_stat.now_ns);
            }
        }
        if (!m.more)
            return;
    }
}

/* What a short program did between two seconds would else be lost with its lease. */
void telemetry_last(struct agent *a, struct agent_lease *al)
{
    struct proto_ctl m;
    if (a->broker.fd < 0 || !ask(a, &m, PROTO_CTL_STAT_LEASE, al->l.number) ||
        m.lease_stat.number != al->l.number)
        return;
    for (uint32_t i = 0; i < al->l.slice_count && i < m.lease_stat.slice_count; i++)
        take_slice(al, i, &m.lease_stat.slice[i]);
}

static void take_clients(struct agent *a)
{
    struct proto_ctl m;
    a->client_count = 0;
    for (uint64_t cursor = 0; ask(a, &m, PROTO_CTL_STAT_CLIENT, cursor);
         cursor = m.cursor) {
        if (a->client_count == a->client_room) {
            uint32_t room = a->client_room ? 2 * a->client_room : 64;
            struct agent_client *more = realloc(a->client, room * sizeof *more);
            if (!more)
                return;
            a->client = more;
            a->client_room = room;
        }
        a->client[a->client_count++] = (struct agent_client){
            .lease = m.client_stat.lease,
            .id = { m.client_stat.pid, m.client_stat.start_ticks },
        };
        if (!m.more)
            return;
    }
}

static void sum_lent(struct agent *a)
{
    const struct lease **list = calloc(a->lease_count + 1, sizeof *list);
    struct place_use use[AGENT_MAX_DEVICES];
    if (!list)
        return;
    for (uint32_t i = 0; i < a->lease_count; i++)
        list[i] = &a->lease[i]->l;
    place_sum(a->device, a->device_count, list, a->lease_count, NULL, use);
    free(list);
    for (uint32_t i = 0; i < a->device_count; i++) {
        a->device[i].lent_bytes = use[i].mem_request_bytes;
        a->device[i].lent_permille = use[i].permille;
        a->device[i].lease_count = use[i].lease_count;
    }
}

void telemetry_rebase(struct agent *a)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        bool any = false;
        for (uint32_t k = 0; agent_lease_is_live(al) && k < al->l.slice_count; k++)
            any |= usage_rebase(&al->usage[k], &al->l.slice[k]);
        if (any)
            agent_save(a, al, NULL);
    }
}

/* For an agent that follows one that was killed. */
static void keep_usage(struct agent *a, uint64_t now_ns)
{
    if (now_ns - a->usage_kept_ns < USAGE_KEEP_NS)
        return;
    a->usage_kept_ns = now_ns;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        uint64_t held_ns = 0;
        for (uint32_t k = 0; k < al->l.slice_count; k++)
            held_ns += al->l.slice[k].held_ns;
        if (agent_lease_is_live(al) && held_ns != al->kept_held_ns &&
            agent_save(a, al, NULL) == 0)
            al->kept_held_ns = held_ns;
    }
}

void telemetry_sample(struct agent *a, uint64_t now_ns)
{
    if (a->broker.fd < 0)
        return;
    take_devices(a, true);
    take_leases(a, true);
    take_clients(a);
    keep_usage(a, now_ns);
    for (uint32_t i = 0; i < a->device_count; i++)
        if (a->device[i].state == DEVICE_HELD)
            restate_device(a, &a->device[i], NULL); /* its holder may have gone */
}

void telemetry_refresh(struct agent *a)
{
    if (a->broker.fd >= 0) {
        take_devices(a, false);
        take_leases(a, false);
    }
    sum_lent(a);
}
