/*
 * One device: what it can carry, by how it is shared.  Private to sched.
 */
#ifndef SCHED_DEVICE_H
#define SCHED_DEVICE_H

#include "class.h"

#define DEVICE_OVER_MEM_MAX ((1ull << 48) - 1)

struct pool; /* whose tenancy rule and profiles count */
struct pool_slot_device;

/* Its state when nobody has anything of it. */
struct class_device device_empty(const struct pool *p, const struct pool_device *is);

/* Take the ask's part, or give it back, at the place's cut. */
void device_take(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 struct pool_cut cut);
void device_give(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 const struct pool_device *is, struct pool_cut cut);

/* Is a device shared so, and of such a model, as the ask wants it? */
static inline bool device_is_wanted(const struct pool_ask *a, const struct class_device *d)
{
    return (!a->models || a->models >> d->model & 1) &&
           (!a->sharing || a->sharing >> class_sharing(d) & 1);
}

bool device_cut_suits(const struct pool *p, const struct pool_ask *a,
                      const struct class_device *d);
bool device_lower_suits(const struct pool *p, const struct pool_ask *a,
                        const struct class_device *d);

/* Is what the ask wants of a device free on this one? */
static inline bool pool_device_suits(const struct pool *p, const struct pool_ask *a,
                                     const struct class_device *d)
{
    if (a->lower)
        return device_lower_suits(p, a, d);
    return d->permille >= a->permille && d->mem_bytes >= a->mem_bytes &&
           device_is_wanted(a, d) && !(d->flags & CLASS_CLOSED) &&
           (!(d->flags & CLASS_OWNED) || d->owner == a->owner) &&
           (!(d->flags & CLASS_SPANNED) || a->devices == 1) &&
           (class_sharing(d) != POOL_PROFILE || device_cut_suits(p, a, d));
}

/* How many asks alike it holds together, each its part of it; `most` at most. */
uint64_t device_holds(const struct pool *p, const struct pool_ask *a,
                      const struct class_device *d, uint64_t most);

/* How often does `part` go into `whole`, at most so often? */
static inline uint64_t times_in(uint64_t whole, uint64_t part, uint64_t most)
{
    return part && whole / part < most ? whole / part : most;
}

/* The state with the ask on it, which fits there; where it is cut, by the first that does. */
void device_put(const struct pool *p, const struct pool_ask *a, struct class_device *d);

#endif
