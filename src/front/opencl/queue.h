/*
 * The command queues of the program: which device, which order, what is held.
 *
 * Found by handle without a lock; made and forgotten under one.  Records are
 * recycled, never freed, because a reader may still look at one.
 */
#ifndef OPENCL_QUEUE_H
#define OPENCL_QUEUE_H

#include "opencl/layer.h"

struct ocl_queue {
    struct gate_queue gate; /* first: aligned to a cache line */
    _Atomic(cl_command_queue) handle;
    cl_context context;
    struct gate *gate_of;     /* of its device */
    struct cost_table *costs; /* of its device */
    _Atomic bool out_of_order;
    _Atomic uint32_t references;  /* as the program counts */
    _Atomic uint32_t held;        /* commands not yet let go by us */
    _Atomic uint32_t blocked;     /* what makes later commands wait for an unset event */
    _Atomic(cl_event) last_event; /* of the newest command; NULL: the program has none */
    struct ocl_queue *next_free;
};

/* NULL for a queue that is not on a leased device.  Unknown handles are adopted. */
struct ocl_queue *queue_find(cl_command_queue handle);
void queue_created(cl_command_queue handle);

#endif
