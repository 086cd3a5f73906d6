/*
 * The tables: devices, leases and clients come and go here.
 */
#include <string.h>

#include "internal.h"

size_t ledger_size(void)
{
    return sizeof(struct ledger);
}

struct ledger *ledger_init(void *memory)
{
    struct ledger *l = memory;
    list_init(&l->wakes);
    list_init(&l->free_reservations);
    l->publish_ns = NEVER;
    for (uint32_t i = 0; i < MAX_RESERVATIONS; i++)
        list_append(&l->free_reservations, &l->reservation[i].member);
    for (uint32_t i = 0; i < PROTO_MAX_DEVICES; i++) {
        list_init(&l->device[i].shares);
        list_init(&l->device[i].waiting);
        list_init(&l->device[i].holders);
        list_init(&l->device[i].lates);
    }
    return l;
}

/* ---- looking up ---------------------------------------------------------- */

struct lease *lease_find(struct ledger *l, uint64_t number)
{
    if (number == 0)
        return NULL;
    for (uint32_t i = 0; i < LEDGER_MAX_LEASES; i++)
        if (l->lease_number[i] == number)
            return &l->lease[i];
    return NULL;
}

struct client *client_find(struct ledger *l, uint32_t client)
{
    if (client >= LEDGER_MAX_CLIENTS || !l->client[client].lease)
        return NULL;
    return &l->client[client];
}

struct seat *seat_find(struct ledger *l, uint32_t client, uint32_t slot)
{
    struct client *c = client_find(l, client);
    return c && slot < c->lease->slice_count ? &c->seat[slot] : NULL;
}

uint64_t ledger_client_lease(const struct ledger *l, uint32_t client)
{
    const struct client *c = client_find((struct ledger *)l, client);
    return c ? c->lease->number : 0;
}

uint64_t ledger_lease_epoch(const struct ledger *l, uint64_t number)
{
    const struct lease *lease = lease_find((struct ledger *)l, number);
    return lease ? lease->epoch : 0;
}

/* ---- wakes ---------------------------------------------------------------- */

void client_wake(struct ledger *l, struct client *c)
{
    if (!c->page)
        return;
    atomic_fetch_add_explicit(&c->page->bell, 1, memory_order_release);
    if (list_empty(&c->wake))
        list_append(&l->wakes, &c->wake);
}

uint32_t ledger_take_wake(struct ledger *l)
{
    if (list_empty(&l->wakes))
        return UINT32_MAX;
    struct client *c = CONTAINER(l->wakes.next, struct client, wake);
    list_remove(&c->wake);
    return (uint32_t)(c - l->client);
}

/* ---- devices --------------------------------------------------------------- */

int ledger_set_device(struct ledger *l, uint32_t index, const struct ledger_device *have,
                      uint64_t now_ns)
{
    if (index >= PROTO_MAX_DEVICES || have->reserve_bytes > have->capacity_bytes)
        return -SL_INVALID;
    struct device *d = &l->device[index];
    l->now_ns = max_u64(l->now_ns, now_ns);
    if (!d->present) {
        d->present = true;
        d->advanced_ns = l->now_ns;
        l->device_count = max_u64(l->device_count, index + 1);
    }
    d->capacity_bytes = have->capacity_bytes;
    d->reserve_bytes = have->reserve_bytes;
    d->turn_ns = have->turn_ns ? have->turn_ns : TURN_NS;
    d->concurrent = have->concurrent;
    d->shrunk = d->used_bytes > d->capacity_bytes - d->reserve_bytes;
    d->dirty = true;
    return 0;
}

/* ---- leases ------------------------------------------------------------------ */

static bool slice_is_valid(const struct ledger *l, const struct ledger_lease *want,
                           uint32_t i)
{
    const struct proto_slice *s = &want->slice[i];
    for (uint32_t j = 0; j < i; j++)
        if (want->slice[j].device == s->device)
            return false;
    return s->device < PROTO_MAX_DEVICES && l->device[s->device].present &&
           s->limit_permille >= 1 && s->limit_permille <= 1000 &&
           s->request_permille <= s->limit_permille &&
           (s->request_permille > 0 || want->mode == PROTO_BESTEFFORT) &&
           s->mem_request_bytes <= s->mem_limit_bytes;
}

/* A lease that is known keeps its devices, in the same order: the pages of its
 * processes name them. */
static bool lease_is_valid(const struct ledger *l, const struct ledger_lease *want,
                           const struct lease *have)
{
    if (want->number == 0 || want->slice_count == 0 ||
        want->slice_count > PROTO_MAX_SLOTS || want->priority > 100 ||
        (uint32_t)want->mode > PROTO_BESTEFFORT)
        return false;
    if (have && have->slice_count != want->slice_count)
        return false;
    for (uint32_t i = 0; i < want->slice_count; i++) {
        if (!slice_is_valid(l, want, i))
            return false;
        if (have && have->share[i].device != &l->device[want->slice[i].device])
            return false;
    }
    return true;
}

/* Would the device still keep what it promises to all? */
static int slice_fits(const struct device *d, const struct proto_slice *want,
                      const struct lease *have, uint32_t index)
{
    uint64_t before = 0, permille = want->request_permille, now_permille = 0;
    uint64_t after = want->mem_request_bytes;
    EACH(s, &d->shares, struct share, member) {
        bool self = have && s == &have->share[index];
        if (self) {
            before = max_u64(share_used(s), s->mem_request);
            after = max_u64(after, share_used(s));
            now_permille = s->request;
        } else if (!s->lease->dropped) {
            permille += s->request;
        }
    }
    uint64_t room = d->capacity_bytes - d->reserve_bytes;
    uint64_t others = d->promised_bytes - before;
    if (after > before && (after > room || others > room - after))
        return -SL_NO_CAPACITY;
    if (permille > 1000 && want->request_permille > now_permille)
        return -SL_NO_CAPACITY;
    return 0;
}

/* Two leases that each hold one card of a pair and spin for the other dead-lock;
 * with one such lease a device there is no cycle. */
static bool spans_beside_another(const struct device *d, const struct lease *have)
{
    if (d->concurrent)
        return false;
    EACH(s, &d->shares, struct share, member)
        if (s->lease != have && s->lease->slice_count > 1 && !s->lease->dropped)
            return true;
    return false;
}

static int lease_fits(const struct ledger *l, const struct ledger_lease *want,
                      const struct lease *have)
{
    for (uint32_t i = 0; i < want->slice_count; i++) {
        const struct device *d = &l->device[want->slice[i].device];
        if (want->slice_count > 1 && spans_beside_another(d, have))
            return -SL_CONFLICT;
        int rc = slice_fits(d, &want->slice[i], have, i);
        if (rc)
            return rc;
    }
    return 0;
}

static struct lease *lease_create(struct ledger *l, const struct ledger_lease *want)
{
    uint32_t index = 0;
    while (index < LEDGER_MAX_LEASES && l->lease_number[index] != 0)
        index++;
    if (index == LEDGER_MAX_LEASES)
        return NULL;
    struct lease *lease = &l->lease[index];
    memset(lease, 0, sizeof(*lease));
    l->lease_number[index] = lease->number = want->number;
    lease->slice_count = want->slice_count;
    lease->mode = want->mode;
    list_init(&lease->clients);
    for (uint32_t i = 0; i < want->slice_count; i++) {
        struct share *s = &lease->share[i];
        struct device *d = &l->device[want->slice[i].device];
        account_advance(d, l->now_ns);
        s->lease = lease;
        s->device = d;
        s->index = i;
        s->synced_ns = l->now_ns;
        s->synced_deliverable = d->deliverable_ns;
        s->vt = want->mode == PROTO_BESTEFFORT ? d->besteffort_vt : d->vt;
        list_init(&s->queue);
        list_init(&s->wanting);
        list_init(&s->granted);
        list_init(&s->late);
        list_append(&d->shares, &s->member);
    }
    return lease;
}

static void lease_destroy(struct ledger *l, struct lease *lease)
{
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct share *s = &lease->share[i];
        account_sync(s, l->now_ns);
        memory_set_limits(l, s, 0, 0);
        list_remove(&s->member);
        if (s->device->last == lease)
            s->device->last = NULL;
    }
    lease->number = 0;
    l->lease_number[lease - l->lease] = 0;
}

static void client_write_limits(const struct client *c)
{
    for (uint32_t i = 0; c->page && i < c->lease->slice_count; i++) {
        const struct share *s = &c->lease->share[i];
        struct proto_slot *slot = &c->page->slot[i];
        atomic_store(&slot->request_permille, s->request);
        atomic_store(&slot->limit_permille, s->limit);
        atomic_store(&slot->mem_limit_bytes, s->mem_limit);
        atomic_store(&slot->mem_used_bytes, share_used(s));
        slot->mode = c->lease->mode;
    }
}

static void share_set_terms(struct ledger *l, struct share *s,
                            const struct proto_slice *want, bool besteffort)
{
    account_sync(s, l->now_ns);
    if (share_is_besteffort(s) != besteffort) /* virtual time is one of its kind */
        s->vt = besteffort ? s->device->besteffort_vt : s->device->vt;
    s->request = want->request_permille;
    s->limit = want->limit_permille;
    s->restate = true;
    s->device->dirty = true;
    memory_set_limits(l, s, want->mem_request_bytes, want->mem_limit_bytes);
}

int ledger_set_lease(struct ledger *l, const struct ledger_lease *want,
                     uint64_t over_bytes[PROTO_MAX_SLOTS], uint64_t now_ns)
{
    struct lease *lease = lease_find(l, want->number);
    if (lease && (lease->dropped || want->epoch < lease->epoch))
        return -SL_STALE;
    if (!lease_is_valid(l, want, lease))
        return -SL_INVALID;
    int rc = lease_fits(l, want, lease);
    if (rc)
        return rc;

    l->now_ns = max_u64(l->now_ns, now_ns);
    if (!lease)
        lease = lease_create(l, want);
    if (!lease)
        return -SL_TOO_LARGE;
    lease->epoch = want->epoch;
    lease->priority = want->priority;
    lease->max_kernel_ns = want->max_kernel_ns;
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct share *s = &lease->share[i];
        share_set_terms(l, s, &want->slice[i], want->mode == PROTO_BESTEFFORT);
        if (over_bytes)
            over_bytes[i] = sub_sat_u64(share_used(s), s->mem_limit);
    }
    lease->mode = want->mode;
    EACH(c, &lease->clients, struct client, member) {
        client_write_limits(c);
        if (c->page)
            atomic_fetch_add(&c->page->limits_epoch, 1);
        client_wake(l, c);
    }
    return 0;
}

int ledger_drop_lease(struct ledger *l, uint64_t number, uint64_t epoch, uint64_t now_ns)
{
    struct lease *lease = lease_find(l, number);
    if (!lease)
        return -SL_NOT_FOUND;
    if (epoch < lease->epoch)
        return -SL_STALE;
    l->now_ns = max_u64(l->now_ns, now_ns);
    lease->dropped = true;
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct share *s = &lease->share[i];
        EACH(seat, &s->wanting, struct seat, member)
            seat_retire(l, seat, l->now_ns);
        memory_set_limits(l, s, 0, s->mem_limit);
        s->device->dirty = true;
        if (s->holds)
            turn_set_terms(l, s, min_u64(s->deadline_ns, l->now_ns), s->contended,
                           l->now_ns);
    }
    if (lease->client_count == 0)
        lease_destroy(l, lease);
    return 0;
}

/* ---- clients ------------------------------------------------------------------- */

static void client_create(struct ledger *l, struct client *c, struct lease *lease)
{
    memset(c, 0, sizeof(*c));
    c->lease = lease;
    list_init(&c->wake);
    list_init(&c->reservations);
    list_append(&lease->clients, &c->member);
    lease->client_count++;
    for (uint32_t i = 0; i < lease->slice_count; i++)
        seat_init(&c->seat[i], c, &lease->share[i], NULL);
}

/* Before the client's page goes: what it counted is the lease's. */
static void keep_counters(struct client *c)
{
    for (uint32_t i = 0; c->page && i < c->lease->slice_count; i++) {
        struct share *s = &c->lease->share[i];
        struct proto_slot *slot = &c->page->slot[i];
        s->gone_kernels += atomic_load(&slot->kernels);
        s->gone_copies += atomic_load(&slot->copies);
        s->gone_ungated += atomic_load(&slot->ungated);
        s->gone_longest_ns = max_u64(s->gone_longest_ns, atomic_load(&slot->longest_ns));
    }
}

int ledger_join(struct ledger *l, uint32_t client, uint64_t number, struct proto_page *page,
                uint64_t now_ns)
{
    struct lease *lease = lease_find(l, number);
    if (client >= LEDGER_MAX_CLIENTS || !page)
        return -SL_INVALID;
    if (!lease || lease->dropped)
        return -SL_NOT_FOUND;
    struct client *c = &l->client[client];
    if (c->lease && (c->lease != lease || (c->page && !c->suspect)))
        return -SL_CONFLICT;

    l->now_ns = max_u64(l->now_ns, now_ns);
    if (!c->lease)
        client_create(l, c, lease);
    else
        memory_void(l, c);
    keep_counters(c);
    c->page = page;
    c->suspect = false;
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        if (c->seat[i].state != SEAT_IDLE) /* late under its old page */
            seat_retire(l, &c->seat[i], l->now_ns);
        seat_init(&c->seat[i], c, &lease->share[i], &page->slot[i]);
        atomic_store(&page->slot[i].state, SLOT_NONE);
        atomic_store(&page->slot[i].deadline_ns, 0);
    }
    client_write_limits(c);
    return 0;
}

int ledger_recover(struct ledger *l, uint32_t client, uint64_t number,
                   const uint64_t committed_bytes[PROTO_MAX_SLOTS])
{
    struct lease *lease = lease_find(l, number);
    if (client >= LEDGER_MAX_CLIENTS || !lease)
        return -SL_NOT_FOUND;
    if (l->client[client].lease)
        return -SL_CONFLICT;
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        const struct share *s = &lease->share[i];
        if (committed_bytes[i] >
            UINT64_MAX / 4 - max_u64(s->device->promised_bytes, s->device->used_bytes))
            return -SL_INVALID;
    }
    struct client *c = &l->client[client];
    client_create(l, c, lease);
    for (uint32_t i = 0; i < lease->slice_count; i++) {
        struct share *s = &lease->share[i];
        memory_adjust(l, &c->seat[i], committed_bytes[i], 0);
        s->over = share_used(s) > s->mem_limit;
        s->device->shrunk =
            s->device->used_bytes > s->device->capacity_bytes - s->device->reserve_bytes;
    }
    return 0;
}

void ledger_suspect(struct ledger *l, uint32_t client, uint64_t now_ns)
{
    struct client *c = client_find(l, client);
    if (!c)
        return;
    l->now_ns = max_u64(l->now_ns, now_ns);
    c->suspect = true;
    for (uint32_t i = 0; i < c->lease->slice_count; i++) {
        if (c->seat[i].state != SEAT_LATE)
            seat_retire(l, &c->seat[i], l->now_ns);
        c->seat[i].wants_after = false;
    }
}

void ledger_leave(struct ledger *l, uint32_t client, uint64_t now_ns)
{
    struct client *c = client_find(l, client);
    if (!c)
        return;
    struct lease *lease = c->lease;
    l->now_ns = max_u64(l->now_ns, now_ns);
    keep_counters(c);
    for (uint32_t i = 0; i < lease->slice_count; i++)
        seat_retire(l, &c->seat[i], l->now_ns);
    memory_leave(l, c);
    list_remove(&c->wake);
    list_remove(&c->member);
    c->lease = NULL;
    c->page = NULL;
    lease->client_count--;
    if (lease->dropped && lease->client_count == 0)
        lease_destroy(l, lease);
}
