/* Charges shared virtual memory and Intel's unified shared memory, by pointer. */
#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "ptrmap.h"

/* pointer -> bytes, mask of slots */
static struct ptrmap held_bytes = PTRMAP_INIT;

/* Keep the charge with the pointer; false: nothing is charged and the caller frees it. */
static bool settle(struct charge *c, void *p)
{
    if (p && c->count > 0 && ptrmap_put(&held_bytes, p, c->bytes, c->slot_mask)) {
        charge_commit(c, c->bytes);
        return true;
    }
    charge_abort(c);
    return p == NULL || c->count == 0;
}

static void refund(uint64_t bytes, uint64_t mask)
{
    charge_refund((uint32_t)mask, bytes);
}

void *ocl_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                     unsigned int alignment)
{
    struct charge c;
    uint32_t mask = charge_slots(context);
    if (charge_above_maximum(mask, size) || !charge_reserve(&c, mask, size))
        return NULL;
    void *p = ocl_next.clSVMAlloc(context, flags, size, alignment);
    if (settle(&c, p))
        return p;
    ocl_next.clSVMFree(context, p);
    return NULL;
}

/* The entry goes first: as soon as the driver has freed the address another thread may get
 * it. */
void ocl_clSVMFree(cl_context context, void *svm_pointer)
{
    uint64_t bytes = 0, mask = 0;
    bool ours = svm_pointer && ptrmap_take(&held_bytes, svm_pointer, &bytes, &mask);
    ocl_next.clSVMFree(context, svm_pointer);
    if (ours)
        refund(bytes, mask);
}

/* ---- clEnqueueSVMFree: given back when the command is complete -------------------- */

struct doomed {
    cl_uint count;
    struct {
        void *p;
        uint64_t bytes, mask;
    } part[];
};

static void CL_CALLBACK svm_freed(cl_event event, cl_int status, void *data)
{
    struct doomed *d = data;
    for (cl_uint i = 0; i < d->count; i++)
        refund(d->part[i].bytes, d->part[i].mask);
    free(d);
}

static struct doomed *take_all(void **pointers, cl_uint n)
{
    struct doomed *d = calloc(1, sizeof(*d) + n * sizeof(d->part[0]));
    for (cl_uint i = 0; d && i < n; i++) {
        d->part[d->count].p = pointers[i];
        if (ptrmap_take(&held_bytes, pointers[i], &d->part[d->count].bytes,
                        &d->part[d->count].mask))
            d->count++;
    }
    return d;
}

static void put_back(struct doomed *d)
{
    for (cl_uint i = 0; i < d->count; i++)
        ptrmap_put(&held_bytes, d->part[i].p, d->part[i].bytes, d->part[i].mask);
    free(d);
}

/* With a function of its own the program frees by clSVMFree, or frees what was never ours.
 */
cl_int ocl_clEnqueueSVMFree(cl_command_queue command_queue, cl_uint num_svm_pointers,
                            void **svm_pointers,
                            void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint,
                                                             void **, void *),
                            void *user_data, cl_uint num_events_in_wait_list,
                            const cl_event *event_wait_list, cl_event *event)
{
    if (pfn_free_func || !svm_pointers || num_svm_pointers == 0)
        return ocl_next.clEnqueueSVMFree(command_queue, num_svm_pointers, svm_pointers,
                                         pfn_free_func, user_data, num_events_in_wait_list,
                                         event_wait_list, event);
    struct doomed *d = take_all(svm_pointers, num_svm_pointers);
    if (!d)
        return CL_OUT_OF_HOST_MEMORY;
    cl_event own = NULL;
    cl_event *done = event ? event : &own;
    cl_int code = ocl_next.clEnqueueSVMFree(command_queue, num_svm_pointers, svm_pointers,
                                            NULL, user_data, num_events_in_wait_list,
                                            event_wait_list, done);
    if (code != CL_SUCCESS)
        put_back(d);
    else if (ocl_next.clSetEventCallback(*done, CL_COMPLETE, svm_freed, d) != CL_SUCCESS)
        svm_freed(*done, CL_COMPLETE, d);
    if (own)
        ocl_next.clReleaseEvent(own);
    return code;
}

/* ---- Intel's unified shared memory ------------------------------------------------ */

static void *usm_refuse(cl_int code, cl_int *errcode_ret)
{
    if (errcode_ret)
        *errcode_ret = code;
    return NULL;
}

static bool usm_reserve(struct charge *c, uint32_t mask, size_t size, cl_int *errcode_ret)
{
    if (charge_above_maximum(mask, size)) {
        usm_refuse(CL_INVALID_BUFFER_SIZE, errcode_ret);
        return false;
    }
    if (!charge_reserve(c, mask, size)) {
        usm_refuse(CL_OUT_OF_RESOURCES, errcode_ret);
        return false;
    }
    return true;
}

static void *usm_settle(struct charge *c, cl_context context, void *p, cl_int *errcode_ret)
{
    if (settle(c, p))
        return p;
    if (ocl_ext.clMemFreeINTEL)
        ocl_ext.clMemFreeINTEL(context, p);
    return usm_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
}

/* The device named, or all of the context's. */
static uint32_t usm_slots(cl_context context, cl_device_id device)
{
    const struct ocl_device *d = device ? ocl_device_find(ocl_session(), device) : NULL;
    return d ? 1u << d->slot : charge_slots(context);
}

void *ocl_clHostMemAllocINTEL(cl_context context, const cl_mem_properties_intel *properties,
                              size_t size, cl_uint alignment, cl_int *errcode_ret)
{
    struct charge c;
    if (!usm_reserve(&c, charge_slots(context), size, errcode_ret))
        return NULL;
    return usm_settle(
        &c, context,
        ocl_ext.clHostMemAllocINTEL(context, properties, size, alignment, errcode_ret),
        errcode_ret);
}

void *ocl_clDeviceMemAllocINTEL(cl_context context, cl_device_id device,
                                const cl_mem_properties_intel *properties, size_t size,
                                cl_uint alignment, cl_int *errcode_ret)
{
    struct charge c;
    if (!usm_reserve(&c, usm_slots(context, device), size, errcode_ret))
        return NULL;
    return usm_settle(&c, context,
                      ocl_ext.clDeviceMemAllocINTEL(context, device, properties, size,
                                                    alignment, errcode_ret),
                      errcode_ret);
}

void *ocl_clSharedMemAllocINTEL(cl_context context, cl_device_id device,
                                const cl_mem_properties_intel *properties, size_t size,
                                cl_uint alignment, cl_int *errcode_ret)
{
    struct charge c;
    if (!usm_reserve(&c, usm_slots(context, device), size, errcode_ret))
        return NULL;
    return usm_settle(&c, context,
                      ocl_ext.clSharedMemAllocINTEL(context, device, properties, size,
                                                    alignment, errcode_ret),
                      errcode_ret);
}

static cl_int usm_free(clMemFreeINTEL_fn driver, cl_context context, void *ptr)
{
    uint64_t bytes = 0, mask = 0;
    bool ours = ptr && ptrmap_take(&held_bytes, ptr, &bytes, &mask);
    cl_int code = driver(context, ptr);
    if (ours && code == CL_SUCCESS)
        refund(bytes, mask);
    else if (ours)
        ptrmap_put(&held_bytes, ptr, bytes, mask);
    return code;
}

cl_int ocl_clMemFreeINTEL(cl_context context, void *ptr)
{
    return usm_free(ocl_ext.clMemFreeINTEL, context, ptr);
}

cl_int ocl_clMemBlockingFreeINTEL(cl_context context, void *ptr)
{
    return usm_free(ocl_ext.clMemBlockingFreeINTEL, context, ptr);
}
