/* Owns the table of command queues and the entry points that make and release them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "queue.h"

#define QUEUES 4096u /* a power of two; three quarters are used at most */

/* A key that was used before stops no search. */
#define GONE ((cl_command_queue)(uintptr_t)1)

static struct {
    _Atomic(cl_command_queue) key;
    _Atomic(struct ocl_queue *) queue;
} table[QUEUES];
static uint32_t used; /* keys and tombstones */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ocl_queue *free_list;

_Atomic uint32_t queue_forgotten;
__thread struct queue_last queue_last __attribute__((tls_model("initial-exec")));
__thread struct queue_last queue_mine __attribute__((tls_model("initial-exec")));

static uint32_t place_of(cl_command_queue handle)
{
    return (uint32_t)(cost_mix((uintptr_t)handle, 0) % QUEUES);
}

static struct ocl_queue *table_find(cl_command_queue handle)
{
    for (uint32_t i = place_of(handle), n = 0; n < QUEUES; i = (i + 1) % QUEUES, n++) {
        cl_command_queue key = atomic_load_explicit(&table[i].key, memory_order_acquire);
        if (key == handle)
            return atomic_load_explicit(&table[i].queue, memory_order_acquire);
        if (!key)
            return NULL;
    }
    return NULL;
}

/* Under the lock. */
static bool table_insert(cl_command_queue handle, struct ocl_queue *q)
{
    for (uint32_t i = place_of(handle), n = 0; n < QUEUES; i = (i + 1) % QUEUES, n++) {
        cl_command_queue key = atomic_load(&table[i].key);
        if (key && key != GONE)
            continue;
        if (!key && ++used > QUEUES / 4 * 3) {
            used--;
            return false;
        }
        atomic_store_explicit(&table[i].queue, q, memory_order_relaxed);
        atomic_store_explicit(&table[i].key, handle, memory_order_release);
        return true;
    }
    return false;
}

static void table_remove(cl_command_queue handle)
{
    for (uint32_t i = place_of(handle), n = 0; n < QUEUES; i = (i + 1) % QUEUES, n++) {
        cl_command_queue key = atomic_load(&table[i].key);
        if (key == handle)
            atomic_store(&table[i].key, GONE);
        if (key == handle || !key)
            return;
    }
}

/* Under the lock.  gate_queue_init() makes a recycled record new. */
static struct ocl_queue *record_make(void)
{
    struct ocl_queue *q = free_list;
    if (q)
        free_list = q->next_free;
    else
        q = aligned_alloc(64, (sizeof(*q) + 63) / 64 * 64);
    if (q)
        memset(q, 0, sizeof(*q));
    return q;
}

static struct ocl_queue *queue_adopt(cl_command_queue handle)
{
    struct ocl_session *session = ocl_session();
    cl_device_id id = NULL;
    cl_context context = NULL;
    cl_command_queue_properties order = 0;
    if (session->device_count == 0 ||
        ocl_next.clGetCommandQueueInfo(handle, CL_QUEUE_DEVICE, sizeof(id), &id, NULL) ||
        ocl_next.clGetCommandQueueInfo(handle, CL_QUEUE_CONTEXT, sizeof(context), &context,
                                       NULL) ||
        ocl_next.clGetCommandQueueInfo(handle, CL_QUEUE_PROPERTIES, sizeof(order), &order,
                                       NULL))
        return NULL;
    const struct ocl_device *d = ocl_device_find(session, id);
    if (!d)
        return NULL;

    pthread_mutex_lock(&lock);
    struct ocl_queue *q = table_find(handle);
    if (!q && (q = record_make())) {
        q->context = context;
        q->gate_of = &session->gates.gate[d->slot];
        q->costs = &session->costs[d->slot];
        q->out_of_order = (order & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
        q->references = 1;
        q->handle = handle;
        gate_queue_init(&q->gate, q->gate_of, q);
        if (!table_insert(handle, q)) {
            gate_queue_finish(&q->gate);
            q->next_free = free_list;
            free_list = q;
            q = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return q;
}

static void queue_forget(struct ocl_queue *q)
{
    gate_queue_finish(&q->gate);
    pthread_mutex_lock(&lock);
    table_remove(q->handle);
    q->handle = NULL;
    atomic_fetch_add_explicit(&queue_forgotten, 1, memory_order_release);
    /* Held commands still count on this record: then it is not used again. */
    if (atomic_load(&q->held) == 0) {
        q->next_free = free_list;
        free_list = q;
    }
    pthread_mutex_unlock(&lock);
}

struct ocl_queue *queue_find(cl_command_queue handle)
{
    uint32_t now = atomic_load_explicit(&queue_forgotten, memory_order_acquire);
    if (!handle || handle == GONE)
        return NULL;
    if (queue_is(&queue_last, handle))
        return queue_last.queue;
    struct ocl_queue *q = table_find(handle);
    if (!q)
        q = queue_adopt(handle);
    if (q)
        queue_last = (struct queue_last){ handle, q, now };
    return q;
}

void queue_created(cl_command_queue handle)
{
    if (handle)
        queue_find(handle);
}

/* ---- entry points ----------------------------------------------------------------- */

cl_command_queue ocl_clCreateCommandQueue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties,
                                          cl_int *errcode_ret)
{
    cl_command_queue q =
        ocl_next.clCreateCommandQueue(context, device, properties, errcode_ret);
    queue_created(q);
    return q;
}

cl_command_queue ocl_clCreateCommandQueueWithProperties(
    cl_context context, cl_device_id device, const cl_queue_properties *properties,
    cl_int *errcode_ret)
{
    cl_command_queue q = ocl_next.clCreateCommandQueueWithProperties(
        context, device, properties, errcode_ret);
    queue_created(q);
    return q;
}

cl_command_queue ocl_clCreateCommandQueueWithPropertiesKHR(
    cl_context context, cl_device_id device, const cl_queue_properties_khr *properties,
    cl_int *errcode_ret)
{
    cl_command_queue q = ocl_ext.clCreateCommandQueueWithPropertiesKHR(
        context, device, properties, errcode_ret);
    queue_created(q);
    return q;
}

cl_int ocl_clSetCommandQueueProperty(cl_command_queue command_queue,
                                     cl_command_queue_properties properties, cl_bool enable,
                                     cl_command_queue_properties *old_properties)
{
    cl_int code = ocl_next.clSetCommandQueueProperty(command_queue, properties, enable,
                                                     old_properties);
    struct ocl_queue *q = queue_find(command_queue);
    if (code == CL_SUCCESS && q && (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
        atomic_store(&q->out_of_order, enable == CL_TRUE);
    return code;
}

cl_int ocl_clRetainCommandQueue(cl_command_queue command_queue)
{
    cl_int code = ocl_next.clRetainCommandQueue(command_queue);
    struct ocl_queue *q = code == CL_SUCCESS ? queue_find(command_queue) : NULL;
    if (q)
        atomic_fetch_add(&q->references, 1);
    return code;
}

cl_int ocl_clReleaseCommandQueue(cl_command_queue command_queue)
{
    struct ocl_queue *q = command_queue ? table_find(command_queue) : NULL;
    if (q && atomic_fetch_sub(&q->references, 1) == 1)
        queue_forget(q);
    return ocl_next.clReleaseCommandQueue(command_queue);
}
