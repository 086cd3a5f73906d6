/*
 * One device: what it can carry, by how it is shared.  Private to sched.
 */
#ifndef SCHED_DEVICE_H
#define SCHED_DEVICE_H

#include "class.h"

struct pool; /* whose tenancy rule and profiles count */
struct pool_slot_device;

/* Its state when nobody has anything of it. */
struct class_device device_empty(const struct pool *p, const struct pool_device *is);

/* Take the ask's part, or give it back, at the place's cut. */
void device_take(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 struct pool_cut cut);
void device_give(const struct pool *p, const struct pool_ask *a, struct pool_slot_device *d,
                 const struct pool_device *is, struct pool_cut cut);

/* Is what the ask wants of a device free on this one? */
bool pool_device_suits(const struct pool *p, const struct pool_ask *a,
                       const struct class_device *d);

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
