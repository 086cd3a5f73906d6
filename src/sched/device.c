/* One device: what fits on it beside what it carries. */
#include <assert.h>

#include "pool_impl.h"

struct class_device device_empty(const struct pool *p, const struct pool_device *is)
{
    if (is->sharing == POOL_PROFILE)
        return cut_empty(p, is);
    return (struct class_device){ .mem_bytes = is->mem_bytes,
                                  .permille = 1000,
                                  .model = (uint8_t)is->model,
                                  .flags = (uint8_t)(is->sharing << CLASS_SHARING) };
}

/* Is it one owner's while it is used? */
static bool is_owned(const struct pool *p, const struct class_device *d)
{
    return class_sharing(d) != POOL_EXCLUSIVE && !(p->tenancy >> class_sharing(d) & 1);
}

bool pool_device_suits(const struct pool *p, const struct pool_ask *a,
                       const struct class_device *d)
{
    struct pool_cut cut;
    return d->permille >= a->permille && d->mem_bytes >= a->mem_bytes &&
           (!a->models || a->models >> d->model & 1) &&
           (!a->sharing || a->sharing >> class_sharing(d) & 1) &&
           (!(d->flags & CLASS_USED) || (class_sharing(d) != POOL_EXCLUSIVE &&
                                         (!is_owned(p, d) || d->owner == a->owner))) &&
           (!(d->flags & CLASS_SPANNED) || a->devices == 1) &&
           (class_sharing(d) != POOL_PROFILE || cut_find(p, a, d, &cut));
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
    if (is_owned(p, d))
        d->owner = a->owner;
    d->flags |= CLASS_USED;
    if (class_sharing(d) == POOL_PROFILE)
        return;
    d->permille -= (uint16_t)a->permille;
    d->mem_bytes -= a->mem_bytes;
    if (class_sharing(d) == POOL_EXCLUSIVE)
        d->permille = 0, d->mem_bytes = 0;
    else if (class_sharing(d) == POOL_TIME && a->devices > 1)
        d->flags |= CLASS_SPANNED;
}

void device_put(const struct pool *p, const struct pool_ask *a, struct class_device *d)
{
    struct pool_cut cut;
    occupy(p, a, d);
    if (class_sharing(d) == POOL_PROFILE && cut_find(p, a, d, &cut))
        cut_take(p, d, cut, p->profiles[d->model].profile[cut.profile].most == 1);
}

void device_take(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 struct pool_cut cut)
{
    d->users++;
    occupy(p, a, &d->now);
    if (class_sharing(&d->now) == POOL_PROFILE)
        cut_take(p, &d->now, cut,
                 ++d->cuts[cut.profile] ==
                     p->profiles[d->now.model].profile[cut.profile].most);
}

void device_give(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 const struct pool_device *is, struct pool_cut cut)
{
    assert(d->users);
    if (is->sharing == POOL_PROFILE) {
        assert(d->cuts[cut.profile]);
        d->cuts[cut.profile]--;
        cut_give(p, is, &d->now, cut);
    }
    if (!--d->users) {
        d->now = device_empty(p, is);
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
