/*
 * Views of the ledger for the control socket.  What fronts say of themselves is
 * summed here and nowhere believed.
 */
#include "internal.h"

int ledger_stat_device(struct ledger *l, uint64_t cursor, struct proto_ctl *m,
                       uint64_t now_ns)
{
    while (cursor < l->device_count && !l->device[cursor].present)
        cursor++;
    if (cursor >= l->device_count)
        return -SL_NOT_FOUND;
    struct device *d = &l->device[cursor];
    account_advance(d, now_ns);
    EACH(s, &d->holders, struct share, queue)
        account_sync(s, now_ns);
    EACH(s, &d->lates, struct share, queue)
        account_sync(s, now_ns);

    m->device_stat.index = (uint32_t)cursor;
    m->device_stat.waiting = 0;
    EACH(s, &d->waiting, struct share, queue)
        m->device_stat.waiting++;
    m->device_stat.now_ns = now_ns;
    m->device_stat.deliverable_ns = d->deliverable_ns;
    m->device_stat.gap_ns = d->gap_ns;
    m->device_stat.held_ns = d->held_ns;
    m->device_stat.capacity_bytes = d->capacity_bytes;
    m->device_stat.reserve_bytes = d->reserve_bytes;
    m->device_stat.used_bytes = d->used_bytes;
    m->device_stat.holder = 0;
    if (!list_empty(&d->holders))
        m->device_stat.holder =
            CONTAINER(d->holders.next, struct share, queue)->lease->number;
    m->device_stat.handoffs = d->handoffs;

    m->cursor = ++cursor;
    while (cursor < l->device_count && !l->device[cursor].present)
        cursor++;
    m->more = cursor < l->device_count;
    return 0;
}

/* The known lease with the smallest number at or after `cursor`. */
static struct lease *lease_after(struct ledger *l, uint64_t cursor)
{
    uint64_t best = NEVER;
    uint32_t index = 0;
    for (uint32_t i = 0; i < LEDGER_MAX_LEASES; i++) {
        if (l->lease_number[i] && l->lease_number[i] >= cursor &&
            l->lease_number[i] < best) {
            best = l->lease_number[i];
            index = i;
        }
    }
    return best == NEVER ? NULL : &l->lease[index];
}

static void add_counters(struct proto_slice_stat *out, const struct share *s)
{
    out->kernels = s->gone_kernels;
    out->copies = s->gone_copies;
    out->ungated = s->gone_ungated;
    out->longest_ns = s->gone_longest_ns;
    EACH(c, &s->lease->clients, struct client, member) {
        const struct proto_slot *slot = c->seat[s->index].slot;
        if (!slot)
            continue;
        out->kernels += atomic_load_explicit(&slot->kernels, memory_order_relaxed);
        out->copies += atomic_load_explicit(&slot->copies, memory_order_relaxed);
        out->ungated += atomic_load_explicit(&slot->ungated, memory_order_relaxed);
        out->longest_ns = max_u64(
            out->longest_ns, atomic_load_explicit(&slot->longest_ns, memory_order_relaxed));
    }
}

static void stat_share(struct ledger *l, struct share *s, struct proto_slice_stat *out,
                       uint64_t now_ns)
{
    account_sync(s, now_ns);
    out->device = (uint32_t)(s->device - l->device);
    out->flags = (s->holds ? SLICE_HOLDS : 0) | (s->waits ? SLICE_WAITS : 0) |
                 (share_is_late(s) ? SLICE_LATE : 0) | (s->stuck ? SLICE_STUCK : 0);
    out->committed_bytes = s->committed_bytes;
    out->reserved_bytes = s->reserved_bytes;
    out->limit_bytes = s->mem_limit;
    out->over_bytes = sub_sat_u64(share_used(s), s->mem_limit);
    out->held_ns = s->held_ns;
    out->turns = s->turns;
    out->overrun_ns = s->overrun_ns;
    out->wait_ns = s->wait_ns;
    out->refused = s->refused;
    add_counters(out, s);
}

/* How far apart the turns of this share lie: what it gets in less time is lumpy. */
static uint64_t granularity_ns(const struct share *s, const struct proto_slice_stat *stat)
{
    uint32_t weight = share_weight(s);
    uint64_t turn = max_u64(account_base_turn(s->device, weight),
                            min_u64(stat->longest_ns, MAX_KERNEL_NS));
    return turn * 1000 / weight;
}

int ledger_stat_lease(struct ledger *l, uint64_t cursor, struct proto_ctl *m,
                      uint64_t now_ns)
{
    struct lease *lease = lease_after(l, cursor);
    if (!lease)
        return -SL_NOT_FOUND;
    m->lease_stat.number = lease->number;
    m->lease_stat.epoch = lease->epoch;
    m->lease_stat.now_ns = now_ns;
    m->lease_stat.clients = lease->client_count;
    m->lease_stat.suspects = 0;
    EACH(c, &lease->clients, struct client, member)
        m->lease_stat.suspects += c->suspect;
    m->lease_stat.mode = lease->mode;
    m->lease_stat.slice_count = lease->slice_count;
    m->lease_stat.granularity_ns = 0;
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct proto_slice_stat *out = &m->lease_stat.slice[i];
        stat_share(l, &lease->share[i], out, now_ns);
        m->lease_stat.granularity_ns =
            max_u64(m->lease_stat.granularity_ns, granularity_ns(&lease->share[i], out));
    }
    m->cursor = lease->number + 1;
    m->more = m->cursor != 0 && lease_after(l, m->cursor) != NULL;
    return 0;
}
