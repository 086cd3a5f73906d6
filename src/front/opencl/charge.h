/*
 * Bytes asked of the broker for one object of a context: reserved on each
 * leased device of it, all or nothing, then committed or given back.
 *
 * A charge is memory of the caller.  Any thread; waits for the broker.
 */
#ifndef OPENCL_CHARGE_H
#define OPENCL_CHARGE_H

#include "opencl/layer.h"

struct charge {
    uint64_t bytes; /* on each device */
    uint32_t slot_mask;
    uint32_t count;
    struct link_reservation part[PROTO_MAX_SLOTS];
};

/* Which leased devices a context has, as a mask of slots; 0 for a bad handle. */
uint32_t charge_slots(cl_context context);

/* True: reserved.  A mask of 0 or 0 bytes is granted and costs nothing. */
bool charge_reserve(struct charge *c, uint32_t slot_mask, uint64_t bytes);
void charge_commit(const struct charge *c, uint64_t bytes);
void charge_abort(const struct charge *c);
void charge_refund(uint32_t slot_mask, uint64_t bytes);

/* Above the shown maximum of every device of the mask. */
bool charge_above_maximum(uint32_t slot_mask, uint64_t bytes);

/* a * b; UINT64_MAX when it does not fit. */
static inline uint64_t charge_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
