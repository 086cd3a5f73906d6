/*
 * The invariants of ledger.h, checked the slow way; for tests and debug builds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "ledger: broken invariant: %s\n", what);
    abort();
}

static uint32_t list_length(const struct link *head)
{
    uint32_t n = 0;
    for (const struct link *i = head->next; i != head; i = i->next)
        require(n++ <= LEDGER_MAX_CLIENTS && i->next->prev == i, "a list is whole");
    return n;
}

static void check_client(const struct ledger *l, const struct client *c)
{
    uint64_t reserved[PROTO_MAX_SLOTS] = { 0 };
    uint32_t count = 0;
    EACH(r, &c->reservations, struct reservation, member) {
        require(r->client == c && r->slot < c->lease->slice_count,
                "a reservation is its own");
        reserved[r->slot] += r->bytes;
        count++;
    }
    require(count == c->reservation_count, "reservations are counted");
    for (uint32_t i = 0; i < c->lease->slice_count; i++) {
        require(reserved[i] == c->seat[i].reserved_bytes,
                "reserved is the sum of reservations");
        require(!c->suspect || c->seat[i].state == SEAT_IDLE ||
                    c->seat[i].state == SEAT_LATE,
                "a suspect has no turn");
    }
}

static void check_share(const struct ledger *l, const struct share *s)
{
    uint64_t committed = 0, reserved = 0;
    EACH(c, &s->lease->clients, struct client, member) {
        committed += c->seat[s->index].committed_bytes;
        reserved += c->seat[s->index].reserved_bytes;
    }
    require(committed == s->committed_bytes, "a lease holds what its clients hold");
    require(reserved == s->reserved_bytes, "a lease reserves what its clients reserve");
    require(s->over || share_used(s) <= s->mem_limit, "no lease above its limit");
    require(list_length(&s->granted) == s->granted_count, "granted seats are counted");
    require(!s->waits || (!s->holds && !share_is_late(s)), "who waits does not hold");
    require(!share_is_late(s) || !s->holds, "who is late does not hold");
    require(s->holds || s->granted_count == 0, "seats are granted in a turn only");
    require(!s->holds || s->kept || s->granted_count > 0, "a turn has a seat");
    list_length(&s->wanting);
    list_length(&s->late);
}

static void check_device(const struct ledger *l, const struct device *d)
{
    uint64_t used = 0, promised = 0;
    bool over = false;
    EACH(s, &d->shares, struct share, member) {
        check_share(l, s);
        used += share_used(s);
        promised += max_u64(share_used(s), s->mem_request);
        over = over || s->over;
    }
    require(used == d->used_bytes, "a device holds what its leases hold");
    require(promised == d->promised_bytes, "what a device promises is the sum");
    require(over || d->shrunk || used + d->reserve_bytes <= d->capacity_bytes,
            "no device above its capacity");
    require(d->concurrent || list_length(&d->holders) <= 1, "one lease at a time");
    list_length(&d->waiting);
}

void ledger_check(const struct ledger *l)
{
    for (uint32_t i = 0; i < LEDGER_MAX_LEASES; i++) {
        if (!l->lease_number[i])
            continue;
        EACH(c, &l->lease[i].clients, struct client, member)
            check_client(l, c);
    }
    for (uint32_t i = 0; i < l->device_count; i++)
        if (l->device[i].present)
            check_device(l, &l->device[i]);
}
