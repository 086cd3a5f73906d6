/*
 * Devices of profiles: fixed pieces at fixed starts, as NVIDIA's MIG cuts them.  Private to
 * sched.
 *
 * In the state of such a device, free compute and memory are its free slots; which memory
 * slots are free is a mask.  A profile may lack a start while there are slots enough:
 * that is fragmentation inside the card.
 */
#ifndef SCHED_CUT_H
#define SCHED_CUT_H

#include "class.h"

struct pool;

int cut_check(const struct pool_profiles *t, struct sl_err *err);

struct class_device cut_empty(const struct pool *p, const struct pool_device *is);

/* The cut that the ask gets; false: it has none there now. */
bool cut_find(const struct pool *p, const struct pool_ask *a, const struct class_device *d,
              struct pool_cut *out);
/* Does this cut cover the ask, and is it free? */
bool cut_suits(const struct pool *p, const struct pool_ask *a, const struct class_device *d,
               struct pool_cut cut);

/* `full`: it carries as many of the profile as it may. */
void cut_take(const struct pool *p, struct class_device *d, struct pool_cut cut, bool full);
void cut_give(const struct pool *p, const struct pool_device *is, struct class_device *d,
              struct pool_cut cut);

#endif
