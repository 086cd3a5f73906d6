/* The FAKE driver's queues, events and extension functions: one worker a device, which
 * sleeps. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stub-icd.h"

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

#define COUNT() stub_count(__func__ + 5)

/* ---- events ----------------------------------------------------------------------- */

static cl_event event_make(cl_context c, cl_command_queue q, cl_int status)
{
    cl_event e = stub_new(sizeof(*e));
    e->context = c;
    e->queue = q;
    e->status = status;
    return e;
}

static void event_unref(cl_event e)
{
    if (stub_release(e))
        free(e);
}

/* Callbacks run without the lock, on the thread that completed the event. */
static void event_finish(cl_event e, cl_int status)
{
    pthread_mutex_lock(&stub_lock);
    e->status = status;
    struct watch *list = e->watches;
    e->watches = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&stub_lock);
    while (list) {
        struct watch *w = list;
        list = w->next;
        w->fn(e, status, w->data);
        free(w);
    }
}

static cl_int stub_clSetEventCallback(cl_event e, cl_int type,
                                      void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
                                      void *data)
{
    COUNT();
    pthread_mutex_lock(&stub_lock);
    bool done = e->status <= CL_COMPLETE;
    if (!done) {
        struct watch *w = malloc(sizeof(*w));
        *w = (struct watch){ fn, data, e->watches };
        e->watches = w;
    }
    pthread_mutex_unlock(&stub_lock);
    if (done)
        fn(e, e->status, data); /* complete: it does not change any more */
    return CL_SUCCESS;
}

static cl_event stub_clCreateUserEvent(cl_context c, cl_int *code)
{
    COUNT();
    if (code)
        *code = CL_SUCCESS;
    return event_make(c, NULL, CL_SUBMITTED);
}

static cl_int stub_clSetUserEventStatus(cl_event e, cl_int status)
{
    COUNT();
    event_finish(e, status);
    return CL_SUCCESS;
}

static cl_int stub_clWaitForEvents(cl_uint n, const cl_event *list)
{
    COUNT();
    pthread_mutex_lock(&stub_lock);
    for (cl_uint i = 0; i < n; i++)
        while (list[i]->status > CL_COMPLETE)
            pthread_cond_wait(&changed, &stub_lock);
    pthread_mutex_unlock(&stub_lock);
    return CL_SUCCESS;
}

static cl_int stub_clGetEventInfo(cl_event e, cl_event_info what, size_t room, void *out,
                                  size_t *size_ret)
{
    cl_uint n = (cl_uint)__atomic_load_n(&e->o.references, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&stub_lock);
    cl_int status = e->status;
    pthread_mutex_unlock(&stub_lock);
    if (what == CL_EVENT_COMMAND_QUEUE)
        memcpy(out, &e->queue, sizeof(e->queue));
    else if (what == CL_EVENT_REFERENCE_COUNT)
        memcpy(out, &n, sizeof(n));
    else if (what == CL_EVENT_COMMAND_EXECUTION_STATUS)
        memcpy(out, &status, sizeof(status));
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static cl_int stub_clRetainEvent(cl_event e)
{
    stub_retain(e);
    return CL_SUCCESS;
}

static cl_int stub_clReleaseEvent(cl_event e)
{
    event_unref(e);
    return CL_SUCCESS;
}

/* ---- the worker ------------------------------------------------------------------- */

/* Under the lock: may this one run, given what came before it? */
static bool runnable(cl_device_id d, struct command *c)
{
    bool in_order = !(c->queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (struct command *b = d->first; b != c; b = b->next)
        if (b->queue == c->queue && (in_order || c->all_before || b->barrier))
            return false;
    for (cl_uint i = 0; i < c->waits; i++)
        if (c->wait[i]->status > CL_COMPLETE)
            return false;
    return !c->never;
}

static void run(struct command *c)
{
    struct timespec t = { (time_t)(c->ns / 1000000000), (long)(c->ns % 1000000000) };
    if (c->ns)
        nanosleep(&t, NULL);
    struct work *w = &c->work;
    if (w->kind == WORK_COPY && w->to && w->from)
        memmove(w->to, w->from, w->size);
    else if (w->kind == WORK_FILL)
        for (size_t i = 0; w->pattern && i + w->pattern <= w->size; i += w->pattern)
            memcpy((char *)w->to + i, w->from, w->pattern);
    else if (w->kind == WORK_NATIVE)
        w->native(w->to);
    else if (w->kind == WORK_FREE_SVM)
        stub_memory_free(w->to);
}

static void finish(cl_device_id d, struct command *c)
{
    cl_int status = CL_COMPLETE;
    for (cl_uint i = 0; i < c->waits; i++)
        if (c->wait[i]->status < 0)
            status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (status == CL_COMPLETE)
        run(c);
    pthread_mutex_lock(&stub_lock);
    struct command **p = &d->first;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    pthread_mutex_unlock(&stub_lock);
    event_finish(c->event, status);
    for (cl_uint i = 0; i < c->waits; i++)
        event_unref(c->wait[i]);
    event_unref(c->event);
    free(c);
}

static void *worker(void *arg)
{
    cl_device_id d = arg;
    for (;;) {
        pthread_mutex_lock(&stub_lock);
        struct command *c = d->first;
        while (c && !runnable(d, c))
            c = c->next;
        if (!c)
            pthread_cond_wait(&changed, &stub_lock);
        pthread_mutex_unlock(&stub_lock);
        if (c)
            finish(d, c);
    }
    return NULL;
}

/* ---- queues ----------------------------------------------------------------------- */

static cl_int put(cl_command_queue q, struct command *c, cl_bool blocking, cl_uint count,
                  const cl_event *list, cl_event *event)
{
    cl_device_id d = q->device;
    if (count > 64)
        return CL_OUT_OF_RESOURCES;
    c->queue = q;
    c->event = event_make(q->context, q, CL_QUEUED);
    stub_retain(c->event);
    c->waits = count;
    for (cl_uint i = 0; i < count; i++) {
        c->wait[i] = list[i];
        stub_retain(list[i]);
    }
    cl_event e = c->event;
    pthread_mutex_lock(&stub_lock);
    struct command **p = &d->first;
    while (*p)
        p = &(*p)->next;
    *p = c;
    if (!d->works)
        d->works = pthread_create(&d->worker, NULL, worker, d) == 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&stub_lock);
    if (blocking)
        stub_clWaitForEvents(1, &e);
    if (event)
        *event = e;
    else
        event_unref(e);
    return CL_SUCCESS;
}

cl_int stub_enqueue(cl_command_queue q, uint64_t ns, bool never, struct work work,
                    cl_bool blocking, cl_uint count, const cl_event *list, cl_event *event)
{
    struct command *c = calloc(1, sizeof(*c));
    c->ns = ns;
    c->never = never;
    c->work = work;
    return put(q, c, blocking, count, list, event);
}

static cl_int sync_put(cl_command_queue q, bool barrier, cl_uint count,
                       const cl_event *list, cl_event *event)
{
    struct command *c = calloc(1, sizeof(*c));
    c->barrier = barrier;
    c->all_before = count == 0;
    return put(q, c, CL_FALSE, count, list, event);
}

static cl_command_queue stub_clCreateCommandQueue(cl_context c, cl_device_id d,
                                                  cl_command_queue_properties p,
                                                  cl_int *code)
{
    cl_command_queue q = stub_new(sizeof(*q));
    q->context = c;
    q->device = d;
    q->properties = p;
    if (code)
        *code = CL_SUCCESS;
    return q;
}

static cl_command_queue stub_clCreateCommandQueueWithProperties(
    cl_context c, cl_device_id d, const cl_queue_properties *list, cl_int *code)
{
    cl_command_queue_properties p = 0;
    for (; list && *list; list += 2)
        if (*list == CL_QUEUE_PROPERTIES)
            p = list[1];
    return stub_clCreateCommandQueue(c, d, p, code);
}

static cl_int stub_clGetCommandQueueInfo(cl_command_queue q, cl_command_queue_info what,
                                         size_t room, void *out, size_t *size_ret)
{
    if (what == CL_QUEUE_DEVICE)
        memcpy(out, &q->device, sizeof(q->device));
    else if (what == CL_QUEUE_CONTEXT)
        memcpy(out, &q->context, sizeof(q->context));
    else if (what == CL_QUEUE_PROPERTIES)
        memcpy(out, &q->properties, sizeof(q->properties));
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static cl_int stub_clRetainCommandQueue(cl_command_queue q)
{
    stub_retain(q);
    return CL_SUCCESS;
}

static cl_int stub_clFinish(cl_command_queue q)
{
    COUNT();
    cl_event e = NULL;
    sync_put(q, false, 0, NULL, &e);
    stub_clWaitForEvents(1, &e);
    event_unref(e);
    return CL_SUCCESS;
}

static cl_int stub_clReleaseCommandQueue(cl_command_queue q)
{
    return stub_release(q) ? CL_SUCCESS : CL_SUCCESS; /* commands may still name it */
}

static cl_int stub_clSetDefaultDeviceCommandQueue(cl_context c, cl_device_id d,
                                                  cl_command_queue q)
{
    COUNT();
    return CL_SUCCESS;
}

static cl_int stub_clFlush(cl_command_queue q)
{
    COUNT();
    return CL_SUCCESS;
}

static cl_int stub_clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n,
                                               const cl_event *list, cl_event *event)
{
    COUNT();
    return sync_put(q, false, n, list, event);
}

static cl_int stub_clEnqueueBarrierWithWaitList(cl_command_queue q, cl_uint n,
                                                const cl_event *list, cl_event *event)
{
    COUNT();
    return sync_put(q, true, n, list, event);
}

static cl_int stub_clEnqueueMarker(cl_command_queue q, cl_event *event)
{
    COUNT();
    return sync_put(q, false, 0, NULL, event);
}

static cl_int stub_clEnqueueBarrier(cl_command_queue q)
{
    COUNT();
    return sync_put(q, true, 0, NULL, NULL);
}

static cl_int stub_clEnqueueWaitForEvents(cl_command_queue q, cl_uint n,
                                          const cl_event *list)
{
    COUNT();
    return sync_put(q, true, n, list, NULL);
}

/* ---- commands --------------------------------------------------------------------- */

#define WAITS   cl_uint n, const cl_event *list, cl_event *event
#define NOTHING ((struct work){ .kind = WORK_NONE })
#define COPY_NS 1000
#define COPY(to_, from_, size_) \
    ((struct work){ .kind = WORK_COPY, .to = (to_), .from = (from_), .size = (size_) })
#define PUT(work, blocking) \
    COUNT();                \
    return stub_enqueue(q, COPY_NS, false, work, blocking, n, list, event)

static cl_int stub_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims,
                                          const size_t *off, const size_t *global,
                                          const size_t *local, WAITS)
{
    COUNT();
    return stub_enqueue(q, k->ns, k->never, NOTHING, CL_FALSE, n, list, event);
}
static cl_int stub_clEnqueueTask(cl_command_queue q, cl_kernel k, WAITS)
{
    COUNT();
    return stub_enqueue(q, k->ns, k->never, NOTHING, CL_FALSE, n, list, event);
}
static cl_int stub_clEnqueueNativeKernel(cl_command_queue q, void(CL_CALLBACK *fn)(void *),
                                         void *args, size_t cb, cl_uint mems,
                                         const cl_mem *mem, const void **loc, WAITS)
{
    struct work w = { .kind = WORK_NATIVE, .native = fn };
    PUT(w, CL_FALSE);
}
static cl_int stub_clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t off,
                                       size_t cb, void *p, WAITS)
{
    PUT(COPY(p, m->bytes + off, cb), b);
}
static cl_int stub_clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t off,
                                        size_t cb, const void *p, WAITS)
{
    PUT(COPY(m->bytes + off, p, cb), b);
}
static cl_int stub_clEnqueueCopyBuffer(cl_command_queue q, cl_mem s, cl_mem d, size_t so,
                                       size_t dof, size_t cb, WAITS)
{
    PUT(COPY(d->bytes + dof, s->bytes + so, cb), CL_FALSE);
}
static cl_int stub_clEnqueueFillBuffer(cl_command_queue q, cl_mem m, const void *p,
                                       size_t ps, size_t off, size_t cb, WAITS)
{
    COUNT();
    memset(m->bytes + off, *(const char *)p, cb);
    return stub_enqueue(q, COPY_NS, false, NOTHING, CL_FALSE, n, list, event);
}
static cl_int stub_clEnqueueReadImage(cl_command_queue q, cl_mem m, cl_bool b,
                                      const size_t *o, const size_t *r, size_t rp,
                                      size_t sp, void *p, WAITS)
{
    PUT(NOTHING, b);
}
static cl_int stub_clEnqueueWriteImage(cl_command_queue q, cl_mem m, cl_bool b,
                                       const size_t *o, const size_t *r, size_t rp,
                                       size_t sp, const void *p, WAITS)
{
    PUT(NOTHING, b);
}
static cl_int stub_clEnqueueFillImage(cl_command_queue q, cl_mem m, const void *c,
                                      const size_t *o, const size_t *r, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueCopyImage(cl_command_queue q, cl_mem s, cl_mem d,
                                      const size_t *so, const size_t *dof, const size_t *r,
                                      WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueCopyImageToBuffer(cl_command_queue q, cl_mem s, cl_mem d,
                                              const size_t *o, const size_t *r, size_t off,
                                              WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueCopyBufferToImage(cl_command_queue q, cl_mem s, cl_mem d,
                                              size_t off, const size_t *o, const size_t *r,
                                              WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueReadBufferRect(cl_command_queue q, cl_mem m, cl_bool b,
                                           const size_t *bo, const size_t *ho,
                                           const size_t *r, size_t a1, size_t a2, size_t a3,
                                           size_t a4, void *p, WAITS)
{
    PUT(NOTHING, b);
}
static cl_int stub_clEnqueueWriteBufferRect(cl_command_queue q, cl_mem m, cl_bool b,
                                            const size_t *bo, const size_t *ho,
                                            const size_t *r, size_t a1, size_t a2,
                                            size_t a3, size_t a4, const void *p, WAITS)
{
    PUT(NOTHING, b);
}
static cl_int stub_clEnqueueCopyBufferRect(cl_command_queue q, cl_mem s, cl_mem d,
                                           const size_t *so, const size_t *dof,
                                           const size_t *r, size_t a1, size_t a2, size_t a3,
                                           size_t a4, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *p, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueMigrateMemObjects(cl_command_queue q, cl_uint c,
                                              const cl_mem *m, cl_mem_migration_flags f,
                                              WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueSVMMemcpy(cl_command_queue q, cl_bool b, void *d, const void *s,
                                      size_t size, WAITS)
{
    PUT(COPY(d, s, size), b);
}
static cl_int stub_clEnqueueSVMMemFill(cl_command_queue q, void *d, const void *p,
                                       size_t ps, size_t size, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueSVMMap(cl_command_queue q, cl_bool b, cl_map_flags f, void *p,
                                   size_t size, WAITS)
{
    PUT(NOTHING, b);
}
static cl_int stub_clEnqueueSVMUnmap(cl_command_queue q, void *p, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueSVMMigrateMem(cl_command_queue q, cl_uint c, const void **p,
                                          const size_t *s, cl_mem_migration_flags f, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueSVMFree(cl_command_queue q, cl_uint c, void **p,
                                    void(CL_CALLBACK *fn)(cl_command_queue, cl_uint,
                                                          void **, void *),
                                    void *data, WAITS)
{
    struct work w = { .kind = WORK_FREE_SVM, .to = c ? p[0] : NULL };
    PUT(w, CL_FALSE);
}
static void *stub_clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool b,
                                     cl_map_flags f, size_t off, size_t cb, WAITS,
                                     cl_int *code)
{
    COUNT();
    cl_int c = stub_enqueue(q, COPY_NS, false, NOTHING, b, n, list, event);
    if (code)
        *code = c;
    return m->bytes + off;
}
static void *stub_clEnqueueMapImage(cl_command_queue q, cl_mem m, cl_bool b, cl_map_flags f,
                                    const size_t *o, const size_t *r, size_t *rp,
                                    size_t *sp, WAITS, cl_int *code)
{
    COUNT();
    *rp = m->row;
    cl_int c = stub_enqueue(q, COPY_NS, false, NOTHING, b, n, list, event);
    if (code)
        *code = c;
    return m->bytes;
}

/* ---- extension functions ---------------------------------------------------------- */

static cl_command_buffer_khr stub_clCreateCommandBufferKHR(
    cl_uint n, const cl_command_queue *q, const cl_command_buffer_properties_khr *p,
    cl_int *code)
{
    cl_command_buffer_khr b = stub_new(sizeof(*b));
    b->queue = q[0];
    if (code)
        *code = CL_SUCCESS;
    return b;
}
static cl_int stub_clCommandNDRangeKernelKHR(
    cl_command_buffer_khr b, cl_command_queue q,
    const cl_ndrange_kernel_command_properties_khr *p, cl_kernel k, cl_uint dims,
    const size_t *o, const size_t *g, const size_t *l, cl_uint n,
    const cl_sync_point_khr *list, cl_sync_point_khr *point, cl_mutable_command_khr *handle)
{
    b->ns += k->ns;
    return CL_SUCCESS;
}
static cl_int stub_clFinalizeCommandBufferKHR(cl_command_buffer_khr b)
{
    return CL_SUCCESS;
}
static cl_int stub_clRetainCommandBufferKHR(cl_command_buffer_khr b)
{
    stub_retain(b);
    return CL_SUCCESS;
}
static cl_int stub_clReleaseCommandBufferKHR(cl_command_buffer_khr b)
{
    if (stub_release(b))
        free(b);
    return CL_SUCCESS;
}
static cl_int stub_clEnqueueCommandBufferKHR(cl_uint nq, cl_command_queue *qs,
                                             cl_command_buffer_khr b, WAITS)
{
    COUNT();
    return stub_enqueue(nq ? qs[0] : b->queue, b->ns, false, NOTHING, CL_FALSE, n, list,
                        event);
}
static void *usm_alloc(size_t size, cl_int *code)
{
    void *p = stub_memory(size);
    if (code)
        *code = p ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
    return p;
}
static void *stub_clHostMemAllocINTEL(cl_context c, const cl_mem_properties_intel *p,
                                      size_t size, cl_uint a, cl_int *code)
{
    return usm_alloc(size, code);
}
static void *stub_clDeviceMemAllocINTEL(cl_context c, cl_device_id d,
                                        const cl_mem_properties_intel *p, size_t size,
                                        cl_uint a, cl_int *code)
{
    return usm_alloc(size, code);
}
static void *stub_clSharedMemAllocINTEL(cl_context c, cl_device_id d,
                                        const cl_mem_properties_intel *p, size_t size,
                                        cl_uint a, cl_int *code)
{
    return usm_alloc(size, code);
}
static cl_int stub_clMemFreeINTEL(cl_context c, void *p)
{
    stub_memory_free(p);
    return CL_SUCCESS;
}
static cl_int stub_clMemBlockingFreeINTEL(cl_context c, void *p)
{
    return stub_clMemFreeINTEL(c, p);
}
static cl_int stub_clEnqueueMemcpyINTEL(cl_command_queue q, cl_bool b, void *d,
                                        const void *s, size_t size, WAITS)
{
    PUT(COPY(d, s, size), b);
}
static cl_int stub_clEnqueueMemFillINTEL(cl_command_queue q, void *d, const void *p,
                                         size_t ps, size_t size, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueMemsetINTEL(cl_command_queue q, void *d, cl_int v, size_t size,
                                        WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueMigrateMemINTEL(cl_command_queue q, const void *p, size_t size,
                                            cl_mem_migration_flags f, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clEnqueueMigrateMemObjectEXT(cl_command_queue q, cl_uint c,
                                                const cl_mem *m,
                                                cl_mem_migration_flags_ext f, WAITS)
{
    PUT(NOTHING, CL_FALSE);
}
static cl_int stub_clTerminateContextKHR(cl_context c)
{
    return CL_SUCCESS;
}
/* What no table knows. */
static cl_int stub_clStubSecretSubmit(cl_command_queue q)
{
    return CL_SUCCESS;
}

void *stub_extension(const char *name)
{
#define IS(x)                  \
    if (strcmp(name, #x) == 0) \
    return (void *)stub_##x
    IS(clCreateCommandBufferKHR);
    IS(clCommandNDRangeKernelKHR);
    IS(clFinalizeCommandBufferKHR);
    IS(clRetainCommandBufferKHR);
    IS(clReleaseCommandBufferKHR);
    IS(clEnqueueCommandBufferKHR);
    IS(clHostMemAllocINTEL);
    IS(clDeviceMemAllocINTEL);
    IS(clSharedMemAllocINTEL);
    IS(clMemFreeINTEL);
    IS(clMemBlockingFreeINTEL);
    IS(clEnqueueMemcpyINTEL);
    IS(clEnqueueMemFillINTEL);
    IS(clEnqueueMemsetINTEL);
    IS(clEnqueueMigrateMemINTEL);
    IS(clEnqueueMigrateMemObjectEXT);
    IS(clTerminateContextKHR);
    IS(clStubSecretSubmit);
    IS(clEnqueueNDRangeKernel);
    return NULL;
}

void stub_fill_queue_calls(cl_icd_dispatch *d)
{
#define SET(x) d->x = stub_##x
    SET(clCreateCommandQueue);
    SET(clCreateCommandQueueWithProperties);
    SET(clGetCommandQueueInfo);
    SET(clRetainCommandQueue);
    SET(clReleaseCommandQueue);
    SET(clFinish);
    SET(clFlush);
    SET(clSetDefaultDeviceCommandQueue);
    SET(clSetEventCallback);
    SET(clCreateUserEvent);
    SET(clSetUserEventStatus);
    SET(clWaitForEvents);
    SET(clGetEventInfo);
    SET(clRetainEvent);
    SET(clReleaseEvent);
    SET(clEnqueueMarkerWithWaitList);
    SET(clEnqueueBarrierWithWaitList);
    SET(clEnqueueMarker);
    SET(clEnqueueBarrier);
    SET(clEnqueueWaitForEvents);
    SET(clEnqueueNDRangeKernel);
    SET(clEnqueueTask);
    SET(clEnqueueNativeKernel);
    SET(clEnqueueReadBuffer);
    SET(clEnqueueWriteBuffer);
    SET(clEnqueueCopyBuffer);
    SET(clEnqueueFillBuffer);
    SET(clEnqueueReadImage);
    SET(clEnqueueWriteImage);
    SET(clEnqueueFillImage);
    SET(clEnqueueCopyImage);
    SET(clEnqueueCopyImageToBuffer);
    SET(clEnqueueCopyBufferToImage);
    SET(clEnqueueReadBufferRect);
    SET(clEnqueueWriteBufferRect);
    SET(clEnqueueCopyBufferRect);
    SET(clEnqueueMapBuffer);
    SET(clEnqueueMapImage);
    SET(clEnqueueUnmapMemObject);
    SET(clEnqueueMigrateMemObjects);
    SET(clEnqueueSVMMemcpy);
    SET(clEnqueueSVMMemFill);
    SET(clEnqueueSVMMap);
    SET(clEnqueueSVMUnmap);
    SET(clEnqueueSVMMigrateMem);
    SET(clEnqueueSVMFree);
}
