/* Takes commands through the gate: those that can run now, and those behind unset user
 * events or issued inside callbacks. */
#include <stdlib.h>
#include <string.h>

#include "event.h"

/* ---- what a command costs --------------------------------------------------------- */

#define SHAPE_WORDS 8 /* dims, global, local, has local */

static struct cost_entry *kernel_entry(struct cost_table *costs, cl_kernel kernel,
                                       const size_t *shape)
{
    uint64_t key = 0, items = 1;
    for (int i = 0; i < SHAPE_WORDS; i++)
        key = cost_mix(key, shape[i]);
    for (size_t i = 0; i < shape[0]; i++)
        items *= shape[1 + i];
    return cost_find(costs, (uintptr_t)kernel, key, items);
}

struct submit_cost submit_kernel(const struct submit *s, cl_kernel kernel, cl_uint dims,
                                 const size_t *global, const size_t *local)
{
    struct submit_cost cost = { NULL, GATE_KERNEL };
    size_t shape[SHAPE_WORDS] = { 0 };
    if (!s->queue || dims > 3)
        return cost;
    shape[0] = global ? dims : 0;
    for (cl_uint i = 0; i < shape[0]; i++) {
        shape[1 + i] = global[i];
        shape[4 + i] = local ? local[i] : 0;
    }
    shape[7] = local != NULL;
    cost.entry = kernel_entry(s->queue->costs, kernel, shape);
    return cost;
}

/* Copies of one kind and about one size take about as long. */
struct submit_cost submit_copy(const struct submit *s, enum ocl_fn fn, uint64_t bytes)
{
    struct submit_cost cost = { NULL, GATE_COPY };
    unsigned size_class = bytes > 1 ? 64 - (unsigned)__builtin_clzll(bytes - 1) : 0;
    if (s->queue)
        cost.entry = cost_find(s->queue->costs, (uint64_t)fn + 1, size_class,
                               size_class < 64 ? 1ull << size_class : UINT64_MAX);
    return cost;
}

struct submit_cost submit_object(const struct submit *s, const void *object)
{
    struct submit_cost cost = { NULL, GATE_KERNEL };
    if (s->queue)
        cost.entry = cost_find(s->queue->costs, (uintptr_t)object, 0, 1);
    return cost;
}

/* ---- sensing ---------------------------------------------------------------------- */

static void CL_CALLBACK batch_done(cl_event event, cl_int status, void *token)
{
    gate_completed(token);
}

/* A marker behind all that was put on the queue, with a callback for the token. */
static bool sense_marker(cl_command_queue queue, struct gate_batch *token)
{
    cl_event marker = NULL;
    if (ocl_next.clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker) != CL_SUCCESS)
        return false;
    bool ok =
        ocl_next.clSetEventCallback(marker, CL_COMPLETE, batch_done, token) == CL_SUCCESS;
    ocl_next.clReleaseEvent(marker);
    return ok;
}

/* A marker waits for held commands too: where there are some, the command's own event must
 * do. */
static void sense(struct ocl_queue *q, struct gate_batch *token, cl_event event)
{
    bool by_marker = atomic_load(&q->out_of_order) && !atomic_load(&q->held);
    bool ok = by_marker ? sense_marker(q->handle, token)
                        : ocl_next.clSetEventCallback(event, CL_COMPLETE, batch_done,
                                                      token) == CL_SUCCESS;
    if (ok)
        ocl_next.clFlush(q->handle);
    else
        gate_unsensed(token);
}

static bool op_mark(struct gate_queue *gq, struct gate_batch *token)
{
    struct ocl_queue *q = gq->front;
    cl_command_queue handle = atomic_load(&q->handle);
    if (!handle || atomic_load(&q->held) || !sense_marker(handle, token))
        return false;
    ocl_next.clFlush(handle);
    return true;
}

/* ---- held commands ---------------------------------------------------------------- */

/*
 * A command behind a gate event of ours.  `ready` says that all it depends on
 * is complete; then the gate's thread takes a turn and sets `gate_event`.
 * Referenced by the callback of `ready` (later by the gate) and by the callback
 * of `done`.
 */
struct held {
    struct ocl_queue *queue;
    struct gate_deferred *deferred;
    cl_event gate_event, ready, done;
    _Atomic(struct gate_batch *) token;
    _Atomic uint32_t references;
    bool blocks;     /* later commands of the queue wait for it */
    bool unfollowed; /* nothing will tell us when it is done */
};

static void held_unref(struct held *h)
{
    if (atomic_fetch_sub(&h->references, 1) != 1)
        return;
    if (h->gate_event)
        ocl_next.clReleaseEvent(h->gate_event);
    if (h->ready)
        ocl_next.clReleaseEvent(h->ready);
    if (h->done)
        ocl_next.clReleaseEvent(h->done);
    free(h);
}

/* Not behind an unset event any more. */
static void held_uncount(struct held *h)
{
    if (h->done)
        event_unset_remove(h->done);
    if (h->blocks)
        atomic_fetch_sub(&h->queue->blocked, 1);
    atomic_fetch_sub(&h->queue->held, 1);
}

/* From the gate's thread, with the turn. */
static bool op_open(void *front, struct gate_batch *token)
{
    struct held *h = front;
    atomic_store(&h->token, token);
    held_uncount(h);
    cl_command_queue handle = atomic_load(&h->queue->handle);
    ocl_next.clSetUserEventStatus(h->gate_event, CL_COMPLETE);
    if (handle)
        ocl_next.clFlush(handle);
    bool followed = !h->unfollowed;
    held_unref(h);
    return followed;
}

const struct gate_ops submit_gate_ops = { .mark = op_mark, .open = op_open };

static void CL_CALLBACK held_ready(cl_event event, cl_int status, void *data)
{
    struct held *h = data;
    if (status == CL_COMPLETE) {
        gate_defer_ready(h->deferred); /* our reference is op_open()'s now */
        return;
    }
    /* A dependency failed, so the command will: let it. */
    held_uncount(h);
    gate_defer_cancel(h->deferred);
    ocl_next.clSetUserEventStatus(h->gate_event, CL_COMPLETE);
    held_unref(h);
}

static void CL_CALLBACK held_done(cl_event event, cl_int status, void *data)
{
    struct held *h = data;
    struct gate_batch *token = atomic_load(&h->token);
    if (token)
        gate_completed(token);
    held_unref(h);
}

static struct held *held_make(struct ocl_queue *q, struct submit_cost cost, cl_uint count,
                              const cl_event *list)
{
    cl_int code = CL_SUCCESS;
    struct held *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->queue = q;
    h->references = 1;
    h->deferred = gate_defer(&q->gate, cost.entry, cost.kind, h);
    if (h->deferred) {
        h->gate_event = ocl_next.clCreateUserEvent(q->context, &code);
        if (h->gate_event && ocl_next.clEnqueueMarkerWithWaitList(
                                 q->handle, count, list, &h->ready) == CL_SUCCESS) {
            h->blocks = !atomic_load(&q->out_of_order);
            atomic_fetch_add(&q->held, 1);
            if (h->blocks)
                atomic_fetch_add(&q->blocked, 1);
            return h;
        }
        h->ready = NULL;
        gate_defer_cancel(h->deferred);
    }
    held_unref(h);
    return NULL;
}

/* The caller's list and the gate event. */
static bool held_list(struct submit *s, cl_uint count, const cl_event *list)
{
    cl_event *all = s->list;
    if (count >= SUBMIT_LIST) {
        all = s->long_list = malloc((count + 1) * sizeof(*all));
        if (!all)
            return false;
    }
    if (count)
        memcpy(all, list, count * sizeof(*all));
    all[count] = s->held->gate_event;
    s->wait_list = all;
    s->wait_count = count + 1;
    return true;
}

static void held_drop(struct held *h)
{
    held_uncount(h);
    gate_defer_cancel(h->deferred);
    held_unref(h);
}

static cl_int held_end(struct submit *s, cl_int code)
{
    struct held *h = s->held;
    free(s->long_list);
    if (code != CL_SUCCESS) {
        held_drop(h);
        return code;
    }
    h->done = *s->event;
    if (s->asked)
        ocl_next.clRetainEvent(h->done);
    event_unset_add(h->done);
    cl_command_queue handle = h->queue->handle;
    atomic_store(&h->references, 2);
    if (ocl_next.clSetEventCallback(h->done, CL_COMPLETE, held_done, h) != CL_SUCCESS) {
        h->unfollowed = true;
        held_unref(h);
    }
    if (ocl_next.clSetEventCallback(h->ready, CL_COMPLETE, held_ready, h) != CL_SUCCESS)
        held_ready(h->ready, CL_INVALID_EVENT, h);
    ocl_next.clFlush(handle);
    return code;
}

/* A blocking call waits for its dependencies as it would without us, and then for a turn.
 */
static void wait_dependencies(struct ocl_queue *q, cl_uint count, const cl_event *list)
{
    cl_event ready = NULL;
    if (ocl_next.clEnqueueMarkerWithWaitList(q->handle, count, list, &ready) != CL_SUCCESS)
        return;
    ocl_next.clFlush(q->handle);
    ocl_next.clWaitForEvents(1, &ready);
    ocl_next.clReleaseEvent(ready);
}

/* True: the command is held.  False: it goes the usual way. */
static bool hold(struct submit *s, struct submit_cost cost, cl_uint count,
                 const cl_event *list)
{
    struct ocl_queue *q = s->queue;
    if (s->blocking) {
        if (!submit_in_callback)
            wait_dependencies(q, count, list);
        return false;
    }
    s->held = held_make(q, cost, count, list);
    if (s->held && !held_list(s, count, list)) {
        held_drop(s->held);
        s->held = NULL;
        s->wait_list = list;
        s->wait_count = count;
    }
    return s->held != NULL;
}

/* ---- around the driver's call ----------------------------------------------------- */

void submit_to(struct submit *s, cl_command_queue queue)
{
    s->queue = queue_find(queue);
}

bool submit_begin(struct submit *s, struct submit_cost cost, cl_bool blocking,
                  cl_uint count, const cl_event *list, cl_event *event)
{
    struct ocl_queue *q = s->queue;
    s->batch = NULL;
    s->held = NULL;
    s->entered = false;
    s->blocking = blocking;
    s->wait_count = count;
    s->wait_list = list;
    s->event = s->asked = event;
    /* In a forked child the turn word counts the parent's work: nothing is gated. */
    if (!q || __builtin_expect(gate_is_forked(q->gate_of), 0))
        return ocl_may_pass();
    s->own = NULL;
    s->long_list = NULL;
    /* On the driver's own thread nothing waits, so what is not held could not be stopped
     * either: a program that launches from callbacks would have the whole device. */
    bool depends = event_depends(q, count, list);
    if (__builtin_expect(depends || submit_in_callback, 0)) {
        if (hold(s, cost, count, list)) {
            if (!event)
                s->event = &s->own;
            return true;
        }
        if (depends && !blocking)
            return ocl_may_pass();
    }
    s->batch = __builtin_expect(submit_in_callback, 0)
                   ? gate_enter_nowait(&q->gate, cost.entry, cost.kind)
                   : gate_enter(&q->gate, cost.entry, cost.kind);
    s->entered = true;
    if (s->batch && !event)
        s->event = &s->own;
    if (blocking)
        s->ticket = gate_ticket(&q->gate);
    return true;
}

cl_int submit_end(struct submit *s, cl_int code)
{
    struct ocl_queue *q = s->queue;
    if (!q || gate_is_forked(q->gate_of))
        return code;
    if (code == CL_SUCCESS)
        atomic_store_explicit(&q->last_event, s->asked ? *s->asked : NULL,
                              memory_order_relaxed);
    if (s->held)
        return held_end(s, code);
    if (!s->entered)
        return code;
    gate_leave(&q->gate);
    if (s->batch) {
        if (code == CL_SUCCESS)
            sense(q, s->batch, *s->event);
        else
            gate_unsensed(s->batch);
        if (s->own)
            ocl_next.clReleaseEvent(s->own);
    }
    if (s->blocking && code == CL_SUCCESS && !atomic_load(&q->out_of_order))
        gate_drained(&q->gate, s->ticket);
    return code;
}
