/*
 * Events that have not happened and that the device cannot bring about: user
 * events not yet set, and events of commands that we hold behind such ones.
 */
#ifndef OPENCL_EVENT_H
#define OPENCL_EVENT_H

#include "ptrmap.h"
#include "queue.h"

extern struct ptrmap event_unset __attribute__((visibility("hidden")));

void event_unset_add(cl_event event);
void event_unset_remove(cl_event event);

/* Would a command with this wait list, put on this queue now, depend on one? */
bool event_depends(const struct ocl_queue *q, cl_uint count, const cl_event *list);

/* Nobody does: said in a few instructions for nearly every program.  False: ask. */
static inline bool event_none_depends(const struct ocl_queue *q, cl_uint count)
{
    return !atomic_load_explicit(&q->blocked, memory_order_relaxed) &&
           (count == 0 || !atomic_load_explicit(&event_unset.count, memory_order_relaxed));
}

#endif
