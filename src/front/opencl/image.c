/* Computes what images take, before and after the driver chose its pitches. */
#include "charge.h"
#include "image.h"

static uint64_t channels(cl_channel_order order)
{
    switch (order) {
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_RGBx:
    case CL_sRGBA:
    case CL_sBGRA:
    case CL_sRGBx:
        return 4;
    case CL_RGB:
    case CL_sRGB:
        return 3;
    case CL_RG:
    case CL_RA:
    case CL_Rx:
    case CL_RGx:
        return 2;
    default:
        return 1;
    }
}

static uint64_t element_bytes(const cl_image_format *f)
{
    switch (f->image_channel_data_type) {
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
        return 2;
    case CL_UNORM_INT_101010:
    case CL_UNORM_INT_101010_2:
    case CL_UNORM_INT24:
        return 4;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
        return 2 * channels(f->image_channel_order);
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
        return 4 * channels(f->image_channel_order);
    default:
        return channels(f->image_channel_order);
    }
}

static uint64_t at_least_one(uint64_t n)
{
    return n ? n : 1;
}

/* Rows of one slice, and slices. */
static uint64_t rows(const cl_image_desc *d)
{
    switch (d->image_type) {
    case CL_MEM_OBJECT_IMAGE2D:
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
    case CL_MEM_OBJECT_IMAGE3D:
        return at_least_one(d->image_height);
    default:
        return 1;
    }
}

static uint64_t slices(const cl_image_desc *d)
{
    switch (d->image_type) {
    case CL_MEM_OBJECT_IMAGE3D:
        return at_least_one(d->image_depth);
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        return at_least_one(d->image_array_size);
    default:
        return 1;
    }
}

/* Further mip levels: each a quarter of the one before, so at most a third more. */
static uint64_t with_levels(const cl_image_desc *d, uint64_t bytes)
{
    uint64_t all = bytes;
    for (cl_uint level = 1; level < d->num_mip_levels && level < 32 && bytes > 0; level++) {
        bytes /= 4;
        all = all > UINT64_MAX - bytes ? UINT64_MAX : all + bytes;
    }
    return charge_times(all, at_least_one(d->num_samples));
}

uint64_t image_least_bytes(const cl_image_format *format, const cl_image_desc *desc)
{
    if (!format || !desc || desc->mem_object)
        return 0;
    uint64_t bytes = charge_times(element_bytes(format), desc->image_width);
    bytes = charge_times(bytes, rows(desc));
    return with_levels(desc, charge_times(bytes, slices(desc)));
}

uint64_t image_real_bytes(cl_mem image, const cl_image_desc *desc)
{
    size_t row = 0, slice = 0;
    ocl_next.clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(row), &row, NULL);
    ocl_next.clGetImageInfo(image, CL_IMAGE_SLICE_PITCH, sizeof(slice), &slice, NULL);
    uint64_t by_rows = charge_times(row, rows(desc));
    uint64_t one = slice > by_rows ? slice : by_rows;
    return with_levels(desc, charge_times(one, slices(desc)));
}
