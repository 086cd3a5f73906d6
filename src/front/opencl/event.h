/*
 * Events that have not happened and that the device cannot bring about: user
 * events not yet set, and events of commands that we hold behind such ones.
 */
#ifndef OPENCL_EVENT_H
#define OPENCL_EVENT_H

#include "queue.h"

void event_unset_add(cl_event event);
void event_unset_remove(cl_event event);

/* Would a command with this wait list, put on this queue now, depend on one? */
bool event_depends(const struct ocl_queue *q, cl_uint count, const cl_event *list);

#endif
