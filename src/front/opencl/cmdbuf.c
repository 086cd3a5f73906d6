/* Gates recorded command buffers: one submit, its cost learned per buffer. */
#include "ptrmap.h"
#include "queue.h"

/* command buffer -> its first queue, references as the program counts */
static struct ptrmap buffers = PTRMAP_INIT;

cl_command_buffer_khr ocl_clCreateCommandBufferKHR(
    cl_uint num_queues, const cl_command_queue *queues,
    const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret)
{
    cl_command_buffer_khr b =
        ocl_ext.clCreateCommandBufferKHR(num_queues, queues, properties, errcode_ret);
    if (b && num_queues)
        ptrmap_put(&buffers, b, (uintptr_t)queues[0], 1);
    return b;
}

cl_int ocl_clRetainCommandBufferKHR(cl_command_buffer_khr command_buffer)
{
    uint64_t queue, references;
    cl_int code = ocl_ext.clRetainCommandBufferKHR(command_buffer);
    if (code == CL_SUCCESS && ptrmap_take(&buffers, command_buffer, &queue, &references))
        ptrmap_put(&buffers, command_buffer, queue, references + 1);
    return code;
}

cl_int ocl_clReleaseCommandBufferKHR(cl_command_buffer_khr command_buffer)
{
    uint64_t queue, references;
    if (ptrmap_take(&buffers, command_buffer, &queue, &references) && references > 1)
        ptrmap_put(&buffers, command_buffer, queue, references - 1);
    return ocl_ext.clReleaseCommandBufferKHR(command_buffer);
}

cl_int ocl_clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue *queues,
                                     cl_command_buffer_khr command_buffer,
                                     cl_uint num_events_in_wait_list,
                                     const cl_event *event_wait_list, cl_event *event)
{
    uint64_t recorded = 0;
    if (num_queues && queues)
        recorded = (uintptr_t)queues[0];
    else
        ptrmap_find(&buffers, command_buffer, &recorded, NULL);
    struct submit s;
    submit_to(&s, (cl_command_queue)(uintptr_t)recorded);
    if (!submit_begin(&s, submit_object(&s, command_buffer), CL_FALSE,
                      num_events_in_wait_list, event_wait_list, event))
        return CL_OUT_OF_RESOURCES;
    cl_int code = ocl_ext.clEnqueueCommandBufferKHR(num_queues, queues, command_buffer,
                                                    s.wait_count, s.wait_list, s.event);
    return submit_end(&s, code);
}
