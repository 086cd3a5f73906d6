/* One device: what fits on it beside what it carries. */
#include <assert.h>

#include "pool_impl.h"

struct class_device device_empty(const struct pool *p, const struct pool_device *is)
{
    if (is->sharing == POOL_PROFILE)
        return cut_empty(p, is);
    struct class_device d = { .mem_bytes = is->mem_bytes,
                              .permille = 1000,
                              .model = (uint8_t)is->model,
                              .flags = (uint8_t)(is->sharing << CLASS_SHARING) };
    d.lower.permille = is->over_permille;
    d.lower.mem_bytes = is->over_mem_bytes & DEVICE_OVER_MEM_MAX;
    return d;
}

/* Is it one owner's while it is used? */
static bool is_owned(const struct pool *p, const struct class_device *d)
{
    return class_sharing(d) != POOL_EXCLUSIVE && !(p->tenancy >> class_sharing(d) & 1);
}

bool device_cut_suits(const struct pool *p, const struct pool_ask *a,
                      const struct class_device *d)
{
    struct pool_cut cut;
    return cut_find(p, a, d, &cut);
}

/* Whose first-class leases are here or come does not matter, so nobody's may be barred. */
bool device_lower_suits(const struct pool *p, const struct pool_ask *a,
                        const struct class_device *d)
{
    return (class_sharing(d) == POOL_SPATIAL ||
            (class_sharing(d) == POOL_TIME && a->devices == 1)) &&
           !is_owned(p, d) && device_is_wanted(a, d) && d->lower.permille >= a->permille &&
           d->lower.mem_bytes >= a->mem_bytes;
}

static uint64_t cuts_in(const struct pool *p, const struct pool_ask *a,
                        struct class_device d, uint64_t most)
{
    struct pool_cut cut;
    uint64_t count = 0;
    for (; count < most && cut_find(p, a, &d, &cut); count++)
        cut_take(p, &d, cut, p->profiles[d.model].profile[cut.profile].most == count + 1);
    return count;
}

uint64_t device_holds(const struct pool *p, const struct pool_ask *a,
                      const struct class_device *d, uint64_t most)
{
    if (!most || !pool_device_suits(p, a, d))
        return 0;
    if (a->lower)
        return times_in(d->lower.permille, a->permille,
                        times_in(d->lower.mem_bytes, a->mem_bytes, most));
    if (class_sharing(d) == POOL_EXCLUSIVE ||
        (class_sharing(d) == POOL_TIME && a->devices > 1))
        return 1;
    if (class_sharing(d) == POOL_PROFILE)
        return cuts_in(p, a, *d, most);
    return times_in(d->permille, a->permille, times_in(d->mem_bytes, a->mem_bytes, most));
}

/* … all but the cut. */
static void occupy(const struct pool *p, const struct pool_ask *a, struct class_device *d)
{
    if (a->lower) {
        d->lower.permille -= a->permille;
        d->lower.mem_bytes -= a->mem_bytes;
        return;
    }
    d->flags |= CLASS_USED;
    if (is_owned(p, d)) {
        d->owner = a->owner;
        d->flags |= CLASS_OWNED;
    }
    if (class_sharing(d) == POOL_PROFILE)
        return;
    d->permille -= (uint16_t)a->permille;
    d->mem_bytes -= a->mem_bytes;
    if (class_sharing(d) == POOL_EXCLUSIVE) {
        d->permille = 0;
        d->mem_bytes = 0;
        d->flags |= CLASS_CLOSED;
    } else if (class_sharing(d) == POOL_TIME && a->devices > 1) {
        d->flags |= CLASS_SPANNED;
    }
}

void device_put(const struct pool *p, const struct pool_ask *a, struct class_device *d)
{
    struct pool_cut cut;
    occupy(p, a, d);
    if (class_sharing(d) == POOL_PROFILE && !a->lower && cut_find(p, a, d, &cut))
        cut_take(p, d, cut, p->profiles[d->model].profile[cut.profile].most == 1);
}

void device_take(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 struct pool_cut cut)
{
    if (a->lower)
        d->lower_users++;
    else
        d->users++;
    occupy(p, a, &d->now);
    if (class_sharing(&d->now) == POOL_PROFILE)
        cut_take(p, &d->now, cut,
                 ++d->cuts[cut.profile] ==
                     p->profiles[d->now.model].profile[cut.profile].most);
}

static void give_lower(const struct pool_ask *a, struct pool_slot_device *d)
{
    assert(d->lower_users);
    d->lower_users--;
    d->now.lower.permille += a->permille;
    d->now.lower.mem_bytes += a->mem_bytes;
}

void device_give(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 const struct pool_device *is, struct pool_cut cut)
{
    if (a->lower) {
        give_lower(a, d);
        return;
    }
    assert(d->users);
    if (is->sharing == POOL_PROFILE) {
        assert(d->cuts[cut.profile]);
        d->cuts[cut.profile]--;
        cut_give(p, is, &d->now, cut);
    }
    if (!--d->users) {
        uint64_t lower = d->now.more; /* of a cut device: nothing any more */
        d->now = device_empty(p, is);
        d->now.more = lower;
        return;
    }
    if (is->sharing == POOL_PROFILE)
        return;
    assert(d->now.permille + a->permille <= 1000);
    d->now.permille += (uint16_t)a->permille;
    d->now.mem_bytes += a->mem_bytes;
    if (a->devices > 1)
        d->now.flags &= (uint8_t)~CLASS_SPANNED;
}
