/*
 * The command queues of the program: which device, which order, what is held.
 *
 * Found by handle without a lock; made and forgotten under one.  Records are
 * recycled, never freed, because a reader may still look at one.
 */
#ifndef OPENCL_QUEUE_H
#define OPENCL_QUEUE_H

#include "opencl/layer.h"

/* A launch that the thread which owns the queue has made, and its cost entry: one cache
 * line. */
struct ocl_launch {
    uintptr_t key;            /* launch_key(); 0: free */
    struct cost_entry *entry; /* of this kernel and shape */
    size_t global[3], local[3];
};

#define QUEUE_LAUNCHES 8u /* a power of two */

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
    struct ocl_launch launch[QUEUE_LAUNCHES]; /* of the owner's thread only */
};

/* The queue that this thread used last; good while no queue was forgotten since.  The
 * handle is NULL when there is none. */
struct queue_last {
    cl_command_queue handle;
    struct ocl_queue *queue;
    uint32_t forgotten;
};
extern __thread struct queue_last queue_last
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
/* The same for launches: set only of a queue that this thread gate_owns(), and empty
 * while a callback runs, so that one comparison answers three questions. */
extern __thread struct queue_last queue_mine
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern _Atomic uint32_t queue_forgotten __attribute__((visibility("hidden")));

static inline bool queue_is(const struct queue_last *last, cl_command_queue handle)
{
    return last->handle == handle &&
           last->forgotten == atomic_load_explicit(&queue_forgotten, memory_order_acquire);
}

/* NULL for a queue that is not on a leased device.  Unknown handles are adopted. */
struct ocl_queue *queue_find(cl_command_queue handle);
void queue_created(cl_command_queue handle);

#endif
