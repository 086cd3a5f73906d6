/* One device: what fits on it beside what it carries. */
#include <assert.h>

#include "pool_impl.h"

struct class_device device_empty(const struct pool_device *is)
{
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
    return d->permille >= a->permille && d->mem_bytes >= a->mem_bytes &&
           (!a->models || a->models >> d->model & 1) &&
           (!a->sharing || a->sharing >> class_sharing(d) & 1) &&
           (!(d->flags & CLASS_USED) || (class_sharing(d) != POOL_EXCLUSIVE &&
                                         (!is_owned(p, d) || d->owner == a->owner))) &&
           (!(d->flags & CLASS_SPANNED) || a->devices == 1);
}

uint64_t device_holds(const struct pool *p, const struct pool_ask *a,
                      const struct class_device *d, uint64_t most)
{
    if (!most || !pool_device_suits(p, a, d))
        return 0;
    if (class_sharing(d) == POOL_EXCLUSIVE ||
        (class_sharing(d) == POOL_TIME && a->devices > 1))
        return 1;
    return times_in(d->permille, a->permille, times_in(d->mem_bytes, a->mem_bytes, most));
}

void device_take(const struct pool *p, const struct pool_ask *a, struct class_device *d)
{
    d->permille -= (uint16_t)a->permille;
    d->mem_bytes -= a->mem_bytes;
    if (is_owned(p, d))
        d->owner = a->owner;
    d->flags |= CLASS_USED;
    if (class_sharing(d) == POOL_EXCLUSIVE)
        d->permille = 0, d->mem_bytes = 0;
    else if (class_sharing(d) == POOL_TIME && a->devices > 1)
        d->flags |= CLASS_SPANNED;
}

void device_give(const struct pool_ask *a, struct class_device *d)
{
    assert(d->permille + a->permille <= 1000);
    d->permille += (uint16_t)a->permille;
    d->mem_bytes += a->mem_bytes;
    if (a->devices > 1)
        d->flags &= (uint8_t)~CLASS_SPANNED;
}
