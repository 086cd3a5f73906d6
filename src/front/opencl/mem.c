/*
 * Charges memory objects: at creation, on each leased device of the context,
 * host pointers included (a CPU device uses them in place, others copy them).
 * They are given back when the driver deletes the object, which its destructor
 * callback says: a retain by the driver or a queued command keeps it charged.
 */
#include <stdlib.h>

#include "charge.h"
#include "image.h"

struct object {
    uint64_t bytes;
    uint32_t slot_mask;
};

static cl_mem refuse(cl_int code, cl_int *errcode_ret)
{
    if (errcode_ret)
        *errcode_ret = code;
    return NULL;
}

static void CL_CALLBACK object_deleted(cl_mem mem, void *data)
{
    struct object *o = data;
    charge_refund(o->slot_mask, o->bytes);
    free(o);
}

/*
 * The driver's answer is in: keep the charge with the object or give it back.
 * The object holds `bytes`, of which `committed` are charged already.
 */
static cl_mem settle(struct charge *c, cl_mem mem, cl_int code, uint64_t bytes,
                     uint64_t committed, cl_int *errcode_ret)
{
    if (!mem || c->count == 0) {
        charge_abort(c);
        if (errcode_ret)
            *errcode_ret = code;
        return mem;
    }
    struct object *o = malloc(sizeof(*o));
    if (o) {
        o->bytes = bytes;
        o->slot_mask = c->slot_mask;
    }
    if (!o || ocl_next.clSetMemObjectDestructorCallback(mem, object_deleted, o)) {
        /* What we cannot follow is not handed out. */
        free(o);
        ocl_next.clReleaseMemObject(mem);
        charge_abort(c);
        charge_refund(c->slot_mask, committed);
        return refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
    }
    charge_commit(c, bytes - committed);
    if (errcode_ret)
        *errcode_ret = code;
    return mem;
}

/* ---- buffers and pipes ------------------------------------------------------------ */

/* Zero bytes are the driver's to refuse. */
static bool buffer_reserve(struct charge *c, cl_context context, uint64_t bytes,
                           cl_int *errcode_ret)
{
    uint32_t mask = charge_slots(context);
    if (charge_above_maximum(mask, bytes)) {
        refuse(CL_INVALID_BUFFER_SIZE, errcode_ret);
        return false;
    }
    if (!charge_reserve(c, mask, bytes)) {
        refuse(CL_MEM_OBJECT_ALLOCATION_FAILURE, errcode_ret);
        return false;
    }
    return true;
}

cl_mem ocl_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                          void *host_ptr, cl_int *errcode_ret)
{
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!buffer_reserve(&c, context, size, errcode_ret))
        return NULL;
    cl_mem mem = ocl_next.clCreateBuffer(context, flags, size, host_ptr, &code);
    return settle(&c, mem, code, size, 0, errcode_ret);
}

cl_mem ocl_clCreateBufferWithProperties(cl_context context,
                                        const cl_mem_properties *properties,
                                        cl_mem_flags flags, size_t size, void *host_ptr,
                                        cl_int *errcode_ret)
{
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!buffer_reserve(&c, context, size, errcode_ret))
        return NULL;
    cl_mem mem = ocl_next.clCreateBufferWithProperties(context, properties, flags, size,
                                                       host_ptr, &code);
    return settle(&c, mem, code, size, 0, errcode_ret);
}

cl_mem ocl_clCreateBufferWithPropertiesINTEL(cl_context context,
                                             const cl_mem_properties_intel *properties,
                                             cl_mem_flags flags, size_t size,
                                             void *host_ptr, cl_int *errcode_ret)
{
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!buffer_reserve(&c, context, size, errcode_ret))
        return NULL;
    cl_mem mem = ocl_ext.clCreateBufferWithPropertiesINTEL(context, properties, flags, size,
                                                           host_ptr, &code);
    return settle(&c, mem, code, size, 0, errcode_ret);
}

cl_mem ocl_clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint pipe_packet_size,
                        cl_uint pipe_max_packets, const cl_pipe_properties *properties,
                        cl_int *errcode_ret)
{
    struct charge c;
    cl_int code = CL_SUCCESS;
    uint64_t bytes = charge_times(pipe_packet_size, pipe_max_packets);
    if (!charge_reserve(&c, charge_slots(context), bytes))
        return refuse(CL_MEM_OBJECT_ALLOCATION_FAILURE, errcode_ret);
    cl_mem mem = ocl_next.clCreatePipe(context, flags, pipe_packet_size, pipe_max_packets,
                                       properties, &code);
    return settle(&c, mem, code, bytes, 0, errcode_ret);
}

/* ---- images ----------------------------------------------------------------------- */

/*
 * The real size is known when the driver has made the image (pitches are its
 * choice).  What it took beyond the first reservation is asked for afterwards;
 * when that is refused the image goes again.
 */
static cl_mem image_settle(struct charge *c, cl_mem mem, cl_int code,
                           const cl_image_desc *desc, cl_int *errcode_ret)
{
    uint64_t real = mem && c->count > 0 ? image_real_bytes(mem, desc) : 0;
    if (real <= c->bytes)
        return settle(c, mem, code, real ? real : c->bytes, 0, errcode_ret);
    struct charge more;
    if (!charge_reserve(&more, c->slot_mask, real - c->bytes)) {
        ocl_next.clReleaseMemObject(mem);
        charge_abort(c);
        return refuse(CL_MEM_OBJECT_ALLOCATION_FAILURE, errcode_ret);
    }
    charge_commit(&more, more.bytes);
    return settle(c, mem, code, real, more.bytes, errcode_ret);
}

static bool image_reserve(struct charge *c, cl_context context,
                          const cl_image_format *format, const cl_image_desc *desc,
                          cl_int *errcode_ret)
{
    if (charge_reserve(c, charge_slots(context), image_least_bytes(format, desc)))
        return true;
    refuse(CL_MEM_OBJECT_ALLOCATION_FAILURE, errcode_ret);
    return false;
}

cl_mem ocl_clCreateImage(cl_context context, cl_mem_flags flags,
                         const cl_image_format *image_format,
                         const cl_image_desc *image_desc, void *host_ptr,
                         cl_int *errcode_ret)
{
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!image_reserve(&c, context, image_format, image_desc, errcode_ret))
        return NULL;
    cl_mem mem =
        ocl_next.clCreateImage(context, flags, image_format, image_desc, host_ptr, &code);
    return image_settle(&c, mem, code, image_desc, errcode_ret);
}

cl_mem ocl_clCreateImageWithProperties(cl_context context,
                                       const cl_mem_properties *properties,
                                       cl_mem_flags flags,
                                       const cl_image_format *image_format,
                                       const cl_image_desc *image_desc, void *host_ptr,
                                       cl_int *errcode_ret)
{
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!image_reserve(&c, context, image_format, image_desc, errcode_ret))
        return NULL;
    cl_mem mem = ocl_next.clCreateImageWithProperties(
        context, properties, flags, image_format, image_desc, host_ptr, &code);
    return image_settle(&c, mem, code, image_desc, errcode_ret);
}

cl_mem ocl_clCreateImage2D(cl_context context, cl_mem_flags flags,
                           const cl_image_format *image_format, size_t image_width,
                           size_t image_height, size_t image_row_pitch, void *host_ptr,
                           cl_int *errcode_ret)
{
    const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
                                 .image_width = image_width,
                                 .image_height = image_height };
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!image_reserve(&c, context, image_format, &desc, errcode_ret))
        return NULL;
    cl_mem mem = ocl_next.clCreateImage2D(context, flags, image_format, image_width,
                                          image_height, image_row_pitch, host_ptr, &code);
    return image_settle(&c, mem, code, &desc, errcode_ret);
}

cl_mem ocl_clCreateImage3D(cl_context context, cl_mem_flags flags,
                           const cl_image_format *image_format, size_t image_width,
                           size_t image_height, size_t image_depth, size_t image_row_pitch,
                           size_t image_slice_pitch, void *host_ptr, cl_int *errcode_ret)
{
    const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE3D,
                                 .image_width = image_width,
                                 .image_height = image_height,
                                 .image_depth = image_depth };
    struct charge c;
    cl_int code = CL_SUCCESS;
    if (!image_reserve(&c, context, image_format, &desc, errcode_ret))
        return NULL;
    cl_mem mem = ocl_next.clCreateImage3D(context, flags, image_format, image_width,
                                          image_height, image_depth, image_row_pitch,
                                          image_slice_pitch, host_ptr, &code);
    return image_settle(&c, mem, code, &desc, errcode_ret);
}
