/* Devices of profiles: which profile an ask gets, and where on the card. */
#include <assert.h>

#include "pool_impl.h"

#define MAX_COMPUTE_SLOTS 7

int cut_check(const struct pool_profiles *t, struct sl_err *err)
{
    if (!t->compute_slots || t->compute_slots > MAX_COMPUTE_SLOTS || !t->mem_slots ||
        t->mem_slots > POOL_MAX_SLOTS)
        return sl_fail(err, SL_INVALID,
                       "profiles: a device has 1 to %d compute and 1 to %d memory slots",
                       MAX_COMPUTE_SLOTS, POOL_MAX_SLOTS);
    if (!t->count || t->count > POOL_MAX_PROFILES)
        return sl_fail(err, SL_INVALID, "profiles: 1 to %d, not %u", POOL_MAX_PROFILES,
                       t->count);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct pool_profile *c = &t->profile[i];
        if (!c->mem_slots || c->mem_slots > t->mem_slots || !c->compute_slots ||
            c->compute_slots > t->compute_slots || !c->most)
            return sl_fail(err, SL_INVALID, "profiles: no device can carry number %u", i);
        if (!c->starts || c->starts >> (t->mem_slots - c->mem_slots + 1))
            return sl_fail(err, SL_INVALID,
                           "profiles: number %u starts nowhere, or ends behind the device",
                           i);
    }
    return 0;
}

static const struct pool_profiles *table_of(const struct pool *p,
                                            const struct class_device *d)
{
    return &p->profiles[d->model];
}

static uint8_t mask_of(const struct pool_profile *c, uint32_t start)
{
    return (uint8_t)(((1u << c->mem_slots) - 1) << start);
}

/* Free compute is rounded down to permille; the slots come back whole. */
static uint32_t compute_free(const struct pool_profiles *t, const struct class_device *d)
{
    return (d->permille * t->compute_slots + 999u) / 1000;
}

static uint32_t mem_free(const struct pool_profiles *t, const struct class_device *d)
{
    return t->mem_slots - (uint32_t)__builtin_popcount(d->cut.slots);
}

static void set_free(const struct pool_profiles *t, struct class_device *d,
                     uint32_t compute, uint64_t slot_bytes)
{
    d->permille = (uint16_t)(compute * 1000 / t->compute_slots);
    d->mem_bytes = slot_bytes * mem_free(t, d);
}

struct class_device cut_empty(const struct pool *p, const struct pool_device *is)
{
    struct class_device d = { .model = (uint8_t)is->model,
                              .flags = POOL_PROFILE << CLASS_SHARING };
    const struct pool_profiles *t = table_of(p, &d);
    set_free(t, &d, t->compute_slots, is->mem_bytes / t->mem_slots);
    return d;
}

static bool covers(const struct pool_profiles *t, const struct pool_profile *c,
                   const struct pool_ask *a, uint64_t slot_bytes)
{
    return c->compute_slots * 1000u >= a->permille * t->compute_slots &&
           c->mem_slots * slot_bytes >= a->mem_bytes;
}

static bool smaller(const struct pool_profile *a, const struct pool_profile *b)
{
    return a->compute_slots != b->compute_slots ? a->compute_slots < b->compute_slots
                                                : a->mem_slots < b->mem_slots;
}

/* The smallest that covers the ask; NULL: none does. */
static const struct pool_profile *profile_for(const struct pool_profiles *t,
                                              const struct pool_ask *a, uint64_t slot_bytes)
{
    const struct pool_profile *best = NULL;
    for (uint32_t i = 0; i < t->count; i++)
        if (covers(t, &t->profile[i], a, slot_bytes) &&
            (!best || smaller(&t->profile[i], best)))
            best = &t->profile[i];
    return best;
}

static bool has_room(const struct pool_profiles *t, const struct pool_profile *c,
                     const struct class_device *d, uint32_t start)
{
    return c->starts >> start & 1 && !(d->cut.slots & mask_of(c, start)) &&
           compute_free(t, d) >= c->compute_slots && !(d->cut.full >> (c - t->profile) & 1);
}

bool cut_find(const struct pool *p, const struct pool_ask *a, const struct class_device *d,
              struct pool_cut *out)
{
    const struct pool_profiles *t = table_of(p, d);
    uint32_t slots = mem_free(t, d);
    const struct pool_profile *c = slots ? profile_for(t, a, d->mem_bytes / slots) : NULL;
    for (uint32_t start = 0; c && start < t->mem_slots; start++)
        if (has_room(t, c, d, start)) {
            *out = (struct pool_cut){ (uint8_t)(c - t->profile), (uint8_t)start };
            return true;
        }
    return false;
}

bool cut_suits(const struct pool *p, const struct pool_ask *a, const struct class_device *d,
               struct pool_cut cut)
{
    const struct pool_profiles *t = table_of(p, d);
    uint32_t slots = mem_free(t, d);
    return slots && cut.profile < t->count && cut.start < t->mem_slots &&
           covers(t, &t->profile[cut.profile], a, d->mem_bytes / slots) &&
           has_room(t, &t->profile[cut.profile], d, cut.start);
}

void cut_take(const struct pool *p, struct class_device *d, struct pool_cut cut, bool full)
{
    const struct pool_profiles *t = table_of(p, d);
    const struct pool_profile *c = &t->profile[cut.profile];
    uint32_t compute = compute_free(t, d) - c->compute_slots;
    uint64_t slot_bytes = d->mem_bytes / mem_free(t, d);
    d->cut.slots |= mask_of(c, cut.start);
    if (full)
        d->cut.full |= (uint8_t)(1u << cut.profile);
    set_free(t, d, compute, slot_bytes);
}

void cut_give(const struct pool *p, const struct pool_device *is, struct class_device *d,
              struct pool_cut cut)
{
    const struct pool_profiles *t = table_of(p, d);
    const struct pool_profile *c = &t->profile[cut.profile];
    uint32_t compute = compute_free(t, d) + c->compute_slots;
    uint8_t mask = mask_of(c, cut.start);
    assert((d->cut.slots & mask) == mask && compute <= t->compute_slots);
    d->cut.slots &= (uint8_t)~mask;
    d->cut.full &= (uint8_t) ~(1u << cut.profile);
    set_free(t, d, compute, is->mem_bytes / t->mem_slots);
}
