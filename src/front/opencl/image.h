/* How many bytes an image takes.  Pure but for the second, which asks the driver. */
#ifndef OPENCL_IMAGE_H
#define OPENCL_IMAGE_H

#include "opencl/layer.h"

/* The least it can take: element size x elements, all levels and samples.  0 for an image
 * over another object's memory, and for a description the driver will refuse anyway. */
uint64_t image_least_bytes(const cl_image_format *format, const cl_image_desc *desc);

/* What the driver made of it, from its pitches; 0 when it does not say. */
uint64_t image_real_bytes(cl_mem image, const cl_image_desc *desc);

#endif
