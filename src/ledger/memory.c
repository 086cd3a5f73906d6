/*
 * Bytes: reserve, commit, abort, free, and the sums that bound them.
 *
 * A share may hold its limit at most.  Up to its request it is always served;
 * above it only from what no other lease was promised, because bytes, unlike
 * turns, cannot be taken back.
 */
#include "internal.h"

/* How often the figure in the pages of a lease's other processes is renewed: it
 * is for display, and one store per process per message would be quadratic. */
#define PUBLISH_NS (20 * NS_PER_MS)

static uint64_t promised(const struct share *s)
{
    return max_u64(share_used(s), s->mem_request);
}

/* What the device has for all leases together. */
static uint64_t device_room(const struct device *d)
{
    return sub_sat_u64(d->capacity_bytes, d->reserve_bytes);
}

static uint64_t share_free(const struct share *s)
{
    if (s->lease->dropped)
        return 0;
    uint64_t within = sub_sat_u64(s->mem_limit, share_used(s));
    uint64_t own = sub_sat_u64(s->mem_request, share_used(s));
    uint64_t spare = sub_sat_u64(device_room(s->device), s->device->promised_bytes);
    uint64_t room = sub_sat_u64(device_room(s->device), s->device->used_bytes);
    return min_u64(min_u64(within, own + min_u64(spare, UINT64_MAX - own)), room);
}

static void publish_one(struct share *s, struct seat *seat)
{
    if (!seat->slot)
        return;
    atomic_store_explicit(&seat->slot->mem_used_bytes, share_used(s), memory_order_relaxed);
    atomic_store_explicit(&seat->slot->mem_limit_bytes, s->mem_limit, memory_order_relaxed);
}

void memory_publish(struct ledger *l, struct share *s)
{
    EACH(c, &s->lease->clients, struct client, member)
        publish_one(s, &c->seat[s->index]);
    s->unpublished = false;
    s->published_ns = l->now_ns;
}

uint64_t memory_publish_due(struct ledger *l)
{
    if (l->now_ns < l->publish_ns)
        return l->publish_ns;
    l->publish_ns = NEVER;
    for (uint32_t i = 0; i < PROTO_MAX_DEVICES; i++) {
        if (!l->device[i].present)
            continue;
        EACH(s, &l->device[i].shares, struct share, member)
            if (s->unpublished)
                memory_publish(l, s);
    }
    return NEVER;
}

void memory_adjust(struct ledger *l, struct seat *seat, uint64_t committed,
                   uint64_t reserved)
{
    struct share *s = seat->share;
    struct device *d = s->device;

    d->promised_bytes -= promised(s);
    d->used_bytes -= share_used(s);
    s->committed_bytes = s->committed_bytes - seat->committed_bytes + committed;
    s->reserved_bytes = s->reserved_bytes - seat->reserved_bytes + reserved;
    seat->committed_bytes = committed;
    seat->reserved_bytes = reserved;
    d->promised_bytes += promised(s);
    d->used_bytes += share_used(s);

    s->over = s->over && share_used(s) > s->mem_limit;
    d->shrunk = d->shrunk && d->used_bytes > device_room(d);
    publish_one(s, seat);
    if (s->lease->client_count > 1) {
        s->unpublished = true;
        l->publish_ns = min_u64(l->publish_ns, l->now_ns + PUBLISH_NS);
    }
}

void memory_set_limits(struct ledger *l, struct share *s, uint64_t request, uint64_t limit)
{
    s->device->promised_bytes -= promised(s);
    s->mem_request = request;
    s->mem_limit = limit;
    s->device->promised_bytes += promised(s);
    s->over = share_used(s) > limit;
    memory_publish(l, s);
}

static void reservation_drop(struct ledger *l, struct reservation *r)
{
    list_remove(&r->member);
    r->client->reservation_count--;
    r->client = NULL;
    r->generation++;
    list_append(&l->free_reservations, &r->member);
}

void memory_void(struct ledger *l, struct client *c)
{
    EACH(r, &c->reservations, struct reservation, member)
        reservation_drop(l, r);
    for (uint32_t i = 0; i < c->lease->slice_count; i++)
        memory_adjust(l, &c->seat[i], c->seat[i].committed_bytes, 0);
}

void memory_leave(struct ledger *l, struct client *c)
{
    EACH(r, &c->reservations, struct reservation, member)
        reservation_drop(l, r);
    for (uint32_t i = 0; i < c->lease->slice_count; i++)
        memory_adjust(l, &c->seat[i], 0, 0);
}

int ledger_reserve(struct ledger *l, uint32_t client, uint32_t slot, uint64_t bytes,
                   uint64_t *reservation, uint64_t *free_bytes)
{
    struct seat *seat = seat_find(l, client, slot);
    if (!seat || bytes == 0)
        return -SL_INVALID;
    struct client *c = seat->client;
    uint64_t free_now = share_free(seat->share);

    if (c->suspect || !c->page || bytes > free_now) {
        seat->share->refused++;
        if (free_bytes)
            *free_bytes = c->suspect || !c->page ? 0 : free_now;
        return -SL_NO_CAPACITY;
    }
    if (c->reservation_count >= MAX_PER_CLIENT || list_empty(&l->free_reservations))
        return -SL_TOO_LARGE;

    struct reservation *r =
        CONTAINER(l->free_reservations.next, struct reservation, member);
    list_remove(&r->member);
    list_append(&c->reservations, &r->member);
    c->reservation_count++;
    r->client = c;
    r->slot = slot;
    r->bytes = bytes;
    memory_adjust(l, seat, seat->committed_bytes, seat->reserved_bytes + bytes);
    *reservation = (uint64_t)r->generation << 32 | (uint64_t)(r - l->reservation + 1);
    return 0;
}

/* NULL where it is not this client's own: numbers are not secrets. */
static struct reservation *reservation_find(struct ledger *l, uint32_t client,
                                            uint64_t name)
{
    struct client *c = client_find(l, client);
    uint32_t index = (uint32_t)name;
    if (!c || index == 0 || index > MAX_RESERVATIONS)
        return NULL;
    struct reservation *r = &l->reservation[index - 1];
    return r->client == c && r->generation == name >> 32 ? r : NULL;
}

int ledger_commit(struct ledger *l, uint32_t client, uint64_t reservation, uint64_t bytes)
{
    struct reservation *r = reservation_find(l, client, reservation);
    if (!r)
        return -SL_NOT_FOUND;
    struct seat *seat = &r->client->seat[r->slot];
    uint64_t taken = min_u64(bytes, r->bytes), reserved = r->bytes;

    reservation_drop(l, r);
    memory_adjust(l, seat, seat->committed_bytes + taken, seat->reserved_bytes - reserved);
    return bytes > reserved ? -SL_INVALID : 0;
}

int ledger_abort(struct ledger *l, uint32_t client, uint64_t reservation)
{
    struct reservation *r = reservation_find(l, client, reservation);
    return r ? ledger_commit(l, client, reservation, 0) : -SL_NOT_FOUND;
}

int ledger_free(struct ledger *l, uint32_t client, uint32_t slot, uint64_t bytes)
{
    struct seat *seat = seat_find(l, client, slot);
    if (!seat)
        return -SL_INVALID;
    uint64_t cut = min_u64(bytes, seat->committed_bytes);
    memory_adjust(l, seat, seat->committed_bytes - cut, seat->reserved_bytes);
    return cut < bytes ? -SL_INVALID : 0;
}

uint64_t ledger_client_bytes(const struct ledger *l, uint32_t client, uint32_t slot)
{
    const struct seat *seat = seat_find((struct ledger *)l, client, slot);
    return seat ? seat->committed_bytes : 0;
}
