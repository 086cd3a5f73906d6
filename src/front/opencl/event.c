/*
 * Owns the set of unset events, the entry points of user events and waits, and
 * the order of markers and barriers behind held commands.
 */
#include <stdlib.h>

#include "event.h"

struct ptrmap event_unset = PTRMAP_INIT;

void event_unset_add(cl_event event)
{
    ptrmap_put(&event_unset, event, 0, 0);
}

void event_unset_remove(cl_event event)
{
    if (atomic_load_explicit(&event_unset.count, memory_order_relaxed))
        ptrmap_take(&event_unset, event, NULL, NULL);
}

bool event_depends(const struct ocl_queue *q, cl_uint count, const cl_event *list)
{
    if (atomic_load_explicit(&q->blocked, memory_order_relaxed))
        return true;
    if (!count || !list || !atomic_load_explicit(&event_unset.count, memory_order_relaxed))
        return false;
    for (cl_uint i = 0; i < count; i++)
        if (ptrmap_find(&event_unset, list[i], NULL, NULL))
            return true;
    return false;
}

cl_event ocl_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
    cl_event event = ocl_next.clCreateUserEvent(context, errcode_ret);
    if (event)
        event_unset_add(event);
    return event;
}

/* Never waits: what depended on it goes on when the gate's thread has a turn. */
cl_int ocl_clSetUserEventStatus(cl_event event, cl_int execution_status)
{
    cl_int code = ocl_next.clSetUserEventStatus(event, execution_status);
    if (code == CL_SUCCESS)
        event_unset_remove(event);
    return code;
}

/* A user event released unset stays unset, but its address may come again. */
cl_int ocl_clReleaseEvent(cl_event event)
{
    cl_uint references = 0;
    if (atomic_load_explicit(&event_unset.count, memory_order_relaxed) &&
        ptrmap_find(&event_unset, event, NULL, NULL) &&
        ocl_next.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(references),
                                &references, NULL) == CL_SUCCESS &&
        references == 1)
        event_unset_remove(event);
    return ocl_next.clReleaseEvent(event);
}

/* ---- waits: the device may be drained afterwards ---------------------------------- */

cl_int ocl_clFinish(cl_command_queue command_queue)
{
    struct ocl_queue *q = queue_find(command_queue);
    uint64_t ticket = q ? gate_ticket(&q->gate) : 0;
    cl_int code = ocl_next.clFinish(command_queue);
    if (q && code == CL_SUCCESS)
        gate_drained(&q->gate, ticket);
    return code;
}

/* The queue of which this is the newest command, if it completes in order. */
static struct ocl_queue *queue_ending_in(cl_event event)
{
    cl_command_queue handle = NULL;
    if (ocl_next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(handle), &handle,
                                NULL) ||
        !handle)
        return NULL;
    struct ocl_queue *q = queue_find(handle);
    return q && !atomic_load(&q->out_of_order) && atomic_load(&q->last_event) == event
               ? q
               : NULL;
}

cl_int ocl_clWaitForEvents(cl_uint num_events, const cl_event *event_list)
{
    struct ocl_queue *q =
        num_events && event_list ? queue_ending_in(event_list[num_events - 1]) : NULL;
    uint64_t ticket = q ? gate_ticket(&q->gate) : 0;
    cl_int code = ocl_next.clWaitForEvents(num_events, event_list);
    if (q && code == CL_SUCCESS)
        gate_drained(&q->gate, ticket);
    return code;
}

/* ---- markers and barriers --------------------------------------------------------- */

struct sync {
    struct ocl_queue *queue;
    bool blocks; /* later commands of the queue wait for it */
};

static void CL_CALLBACK sync_done(cl_event event, cl_int status, void *data)
{
    struct sync *s = data;
    event_unset_remove(event);
    if (s->blocks)
        atomic_fetch_sub(&s->queue->blocked, 1);
    atomic_fetch_sub(&s->queue->held, 1);
    free(s);
}

/* Later commands and waits on `event` depend on an unset event until it is complete. */
static void sync_follow(struct ocl_queue *q, cl_event event, bool blocks)
{
    struct sync *s = malloc(sizeof(*s));
    if (!s)
        return;
    s->queue = q;
    s->blocks = blocks;
    event_unset_add(event);
    atomic_fetch_add(&q->held, 1);
    if (blocks)
        atomic_fetch_add(&q->blocked, 1);
    if (ocl_next.clSetEventCallback(event, CL_COMPLETE, sync_done, s) != CL_SUCCESS)
        sync_done(event, CL_COMPLETE, s);
}

/* An empty list means: everything before. */
static bool sync_depends(struct ocl_queue *q, cl_uint count, const cl_event *list)
{
    return q && (event_depends(q, count, list) || (count == 0 && atomic_load(&q->held)));
}

static cl_int sync_put(struct ocl_queue *q, cl_api_clEnqueueMarkerWithWaitList driver,
                       bool barrier, cl_uint count, const cl_event *list, cl_event *event)
{
    cl_event own = NULL;
    cl_event *out = event ? event : &own;
    cl_int code = driver(q->handle, count, list, out);
    if (code == CL_SUCCESS)
        sync_follow(q, *out, barrier || !atomic_load(&q->out_of_order));
    if (own)
        ocl_next.clReleaseEvent(own);
    return code;
}

cl_int ocl_clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                       cl_uint num_events_in_wait_list,
                                       const cl_event *event_wait_list, cl_event *event)
{
    struct ocl_queue *q = queue_find(command_queue);
    if (sync_depends(q, num_events_in_wait_list, event_wait_list))
        return sync_put(q, ocl_next.clEnqueueMarkerWithWaitList, false,
                        num_events_in_wait_list, event_wait_list, event);
    return ocl_next.clEnqueueMarkerWithWaitList(command_queue, num_events_in_wait_list,
                                                event_wait_list, event);
}

cl_int ocl_clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                        cl_uint num_events_in_wait_list,
                                        const cl_event *event_wait_list, cl_event *event)
{
    struct ocl_queue *q = queue_find(command_queue);
    if (sync_depends(q, num_events_in_wait_list, event_wait_list))
        return sync_put(q, ocl_next.clEnqueueBarrierWithWaitList, true,
                        num_events_in_wait_list, event_wait_list, event);
    return ocl_next.clEnqueueBarrierWithWaitList(command_queue, num_events_in_wait_list,
                                                 event_wait_list, event);
}

cl_int ocl_clEnqueueMarker(cl_command_queue command_queue, cl_event *event)
{
    struct ocl_queue *q = queue_find(command_queue);
    if (event && sync_depends(q, 0, NULL))
        return sync_put(q, ocl_next.clEnqueueMarkerWithWaitList, false, 0, NULL, event);
    return ocl_next.clEnqueueMarker(command_queue, event);
}

cl_int ocl_clEnqueueBarrier(cl_command_queue command_queue)
{
    struct ocl_queue *q = queue_find(command_queue);
    if (sync_depends(q, 0, NULL))
        return sync_put(q, ocl_next.clEnqueueBarrierWithWaitList, true, 0, NULL, NULL);
    return ocl_next.clEnqueueBarrier(command_queue);
}

cl_int ocl_clEnqueueWaitForEvents(cl_command_queue command_queue, cl_uint num_events,
                                  const cl_event *event_list)
{
    struct ocl_queue *q = queue_find(command_queue);
    if (num_events && event_list && sync_depends(q, num_events, event_list))
        return sync_put(q, ocl_next.clEnqueueBarrierWithWaitList, true, num_events,
                        event_list, NULL);
    return ocl_next.clEnqueueWaitForEvents(command_queue, num_events, event_list);
}
