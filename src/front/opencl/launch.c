/*
 * Owns kernel launches: an ordinary one costs some hundred instructions, because
 * 2 % of a launch is what the whole front may cost.  bench-launch counts them.
 */
#include "event.h"

/* ---- launches that were made before ----------------------------------------------- */

/* Kernel, dimensions, and whether there is a local size, in one word: a handle points to an
 * object that starts with a pointer, so its last three bits are free.  (One that does not
 * would only be a wrong guess of the cost.) */
static inline uintptr_t launch_key(cl_kernel kernel, cl_uint dims, const size_t *local)
{
    return (uintptr_t)kernel + 2 * (dims & 3) + (local != NULL);
}

/* No other thread than the owner's reads or writes the queue's launches. */
static inline struct ocl_launch *launch_place(struct ocl_queue *q, uintptr_t key,
                                              size_t first)
{
    uint64_t mixed = (key ^ first) * 0x9e3779b97f4a7c15ull;
    return &q->launch[mixed >> 61];
}

_Static_assert(QUEUE_LAUNCHES == 8, "launch_place() makes three bits");

/* 0: alike in the first `dims` sizes.  Without a loop: three instructions a size. */
static inline size_t sizes_differ(const size_t *a, const size_t *b, cl_uint dims)
{
    size_t differ = 0;
    switch (dims) {
    case 3:
        differ |= a[2] ^ b[2];
        __attribute__((fallthrough));
    case 2:
        differ |= a[1] ^ b[1];
        __attribute__((fallthrough));
    default:
        return differ | (a[0] ^ b[0]);
    }
}

static inline bool launch_is(const struct ocl_launch *l, uintptr_t key, cl_uint dims,
                             const size_t *global, const size_t *local)
{
    return l->key == key && sizes_differ(l->global, global, dims) == 0 &&
           (!local || sizes_differ(l->local, local, dims) == 0);
}

static void launch_remember(struct ocl_queue *q, struct cost_entry *entry, cl_kernel kernel,
                            cl_uint dims, const size_t *global, const size_t *local)
{
    uintptr_t key = launch_key(kernel, dims, local);
    struct ocl_launch *l = launch_place(q, key, global[0]);
    l->key = key;
    l->entry = entry;
    for (cl_uint i = 0; i < dims; i++) {
        l->global[i] = global[i];
        l->local[i] = local ? local[i] : 0;
    }
}

/* ---- the entry point -------------------------------------------------------------- */

/* Everything that the fast path does not know. */
static __attribute__((noinline)) cl_int launch_slow(cl_command_queue queue,
                                                    cl_kernel kernel, cl_uint dims,
                                                    const size_t *offset,
                                                    const size_t *global,
                                                    const size_t *local, cl_uint count,
                                                    const cl_event *list, cl_event *event)
{
    struct submit s;
    submit_to(&s, queue);
    struct submit_cost cost = submit_kernel(&s, kernel, dims, global, local);
    if (!submit_begin(&s, cost, CL_FALSE, count, list, event))
        return CL_OUT_OF_RESOURCES;
    /* The first launch made this thread the queue's owner. */
    if (s.queue && cost.entry && global && dims - 1 < 3 && !submit_in_callback &&
        gate_owns(&s.queue->gate)) {
        launch_remember(s.queue, cost.entry, kernel, dims, global, local);
        queue_mine = queue_last;
    }
    cl_int code = ocl_next.clEnqueueNDRangeKernel(
        queue, kernel, dims, offset, global, local, s.wait_count, s.wait_list, s.event);
    return submit_end(&s, code);
}

cl_int ocl_clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel,
                                  cl_uint work_dim, const size_t *global_work_offset,
                                  const size_t *global_work_size,
                                  const size_t *local_work_size,
                                  cl_uint num_events_in_wait_list,
                                  const cl_event *event_wait_list, cl_event *event)
{
    struct ocl_queue *q = queue_mine.queue;
    if (!queue_is(&queue_mine, command_queue) || !global_work_size ||
        !event_none_depends(q, num_events_in_wait_list))
        goto slow;
    uintptr_t key = launch_key(kernel, work_dim, local_work_size);
    const struct ocl_launch *l = launch_place(q, key, global_work_size[0]);
    if (work_dim > 3 || !launch_is(l, key, work_dim, global_work_size, local_work_size) ||
        !gate_try_enter(&q->gate, l->entry, GATE_KERNEL, true))
        goto slow;

    cl_int code = ocl_next.clEnqueueNDRangeKernel(
        command_queue, kernel, work_dim, global_work_offset, global_work_size,
        local_work_size, num_events_in_wait_list, event_wait_list, event);
    if (code == CL_SUCCESS)
        atomic_store_explicit(&q->last_event, event ? *event : NULL, memory_order_relaxed);
    gate_leave_owned(&q->gate);
    return code;

slow:
    return launch_slow(command_queue, kernel, work_dim, global_work_offset,
                       global_work_size, local_work_size, num_events_in_wait_list,
                       event_wait_list, event);
}
