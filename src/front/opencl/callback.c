/*
 * Fences the program's callbacks: while one runs, no call on its thread waits
 * for a turn, because that thread is the driver's and others wait for it.
 */
#include <stdlib.h>

#include "queue.h"

__thread unsigned submit_in_callback __attribute__((tls_model("initial-exec")));

/* One program callback: which member is set is known by who made it. */
struct fence {
    union {
        void(CL_CALLBACK *event)(cl_event, cl_int, void *);
        void(CL_CALLBACK *mem)(cl_mem, void *);
        void(CL_CALLBACK *program)(cl_program, void *);
        void(CL_CALLBACK *context)(cl_context, void *);
    } call;
    void *data;
};

/* The callback's own copy; freed when it runs.  The driver calls each once. */
static struct fence *fence_make(void *data)
{
    struct fence *f = calloc(1, sizeof(*f));
    if (f)
        f->data = data;
    return f;
}

/* A thread without a queue of its own takes the careful way with each launch. */
#define FENCE_RUN(member, ...)                  \
    do {                                        \
        struct fence f = *(struct fence *)data; \
        free(data);                             \
        submit_in_callback++;                   \
        queue_mine.handle = NULL;               \
        f.call.member(__VA_ARGS__, f.data);     \
        submit_in_callback--;                   \
    } while (0)

static void CL_CALLBACK run_event(cl_event event, cl_int status, void *data)
{
    FENCE_RUN(event, event, status);
}

static void CL_CALLBACK run_mem(cl_mem mem, void *data)
{
    FENCE_RUN(mem, mem);
}

static void CL_CALLBACK run_program(cl_program program, void *data)
{
    FENCE_RUN(program, program);
}

static void CL_CALLBACK run_context(cl_context context, void *data)
{
    FENCE_RUN(context, context);
}

cl_int ocl_clSetEventCallback(cl_event event, cl_int command_exec_callback_type,
                              void(CL_CALLBACK *pfn_notify)(cl_event, cl_int, void *),
                              void *user_data)
{
    struct fence *f = pfn_notify ? fence_make(user_data) : NULL;
    if (!f)
        return pfn_notify ? CL_OUT_OF_HOST_MEMORY
                          : ocl_next.clSetEventCallback(event, command_exec_callback_type,
                                                        NULL, user_data);
    f->call.event = pfn_notify;
    cl_int code =
        ocl_next.clSetEventCallback(event, command_exec_callback_type, run_event, f);
    if (code != CL_SUCCESS)
        free(f);
    return code;
}

cl_int ocl_clSetMemObjectDestructorCallback(cl_mem memobj,
                                            void(CL_CALLBACK *pfn_notify)(cl_mem, void *),
                                            void *user_data)
{
    struct fence *f = pfn_notify ? fence_make(user_data) : NULL;
    if (!f)
        return pfn_notify ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_VALUE;
    f->call.mem = pfn_notify;
    cl_int code = ocl_next.clSetMemObjectDestructorCallback(memobj, run_mem, f);
    if (code != CL_SUCCESS)
        free(f);
    return code;
}

cl_int ocl_clSetContextDestructorCallback(cl_context context,
                                          void(CL_CALLBACK *pfn_notify)(cl_context, void *),
                                          void *user_data)
{
    struct fence *f = pfn_notify ? fence_make(user_data) : NULL;
    if (!f)
        return pfn_notify ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_VALUE;
    f->call.context = pfn_notify;
    cl_int code = ocl_next.clSetContextDestructorCallback(context, run_context, f);
    if (code != CL_SUCCESS)
        free(f);
    return code;
}

cl_int ocl_clSetProgramReleaseCallback(cl_program program,
                                       void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                       void *user_data)
{
    struct fence *f = pfn_notify ? fence_make(user_data) : NULL;
    if (!f)
        return pfn_notify ? CL_OUT_OF_HOST_MEMORY : CL_INVALID_VALUE;
    f->call.program = pfn_notify;
    cl_int code = ocl_next.clSetProgramReleaseCallback(program, run_program, f);
    if (code != CL_SUCCESS)
        free(f);
    return code;
}

/* ---- builds ----------------------------------------------------------------------- */

/*
 * Drivers differ in whether a build that fails at once still calls back, and on
 * which thread: so the caller and the callback each hold a reference.  A failed
 * build that never calls back leaves a few bytes behind.
 */
struct build_fence {
    void(CL_CALLBACK *notify)(cl_program, void *);
    void *data;
    _Atomic uint32_t references;
};

static struct build_fence *build_make(void(CL_CALLBACK *notify)(cl_program, void *),
                                      void *data)
{
    struct build_fence *b = calloc(1, sizeof(*b));
    if (b)
        *b = (struct build_fence){ .notify = notify, .data = data, .references = 2 };
    return b;
}

static void build_unref(struct build_fence *b)
{
    if (atomic_fetch_sub(&b->references, 1) == 1)
        free(b);
}

static void CL_CALLBACK run_build(cl_program program, void *data)
{
    struct build_fence *b = data;
    submit_in_callback++;
    queue_mine.handle = NULL;
    b->notify(program, b->data);
    submit_in_callback--;
    build_unref(b);
}

cl_int ocl_clBuildProgram(cl_program program, cl_uint num_devices,
                          const cl_device_id *device_list, const char *options,
                          void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                          void *user_data)
{
    if (!pfn_notify)
        return ocl_next.clBuildProgram(program, num_devices, device_list, options, NULL,
                                       user_data);
    struct build_fence *b = build_make(pfn_notify, user_data);
    if (!b)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int code =
        ocl_next.clBuildProgram(program, num_devices, device_list, options, run_build, b);
    build_unref(b);
    return code;
}

cl_int ocl_clCompileProgram(cl_program program, cl_uint num_devices,
                            const cl_device_id *device_list, const char *options,
                            cl_uint num_input_headers, const cl_program *input_headers,
                            const char **header_include_names,
                            void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                            void *user_data)
{
    if (!pfn_notify)
        return ocl_next.clCompileProgram(program, num_devices, device_list, options,
                                         num_input_headers, input_headers,
                                         header_include_names, NULL, user_data);
    struct build_fence *b = build_make(pfn_notify, user_data);
    if (!b)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int code = ocl_next.clCompileProgram(program, num_devices, device_list, options,
                                            num_input_headers, input_headers,
                                            header_include_names, run_build, b);
    build_unref(b);
    return code;
}

cl_program ocl_clLinkProgram(cl_context context, cl_uint num_devices,
                             const cl_device_id *device_list, const char *options,
                             cl_uint num_input_programs, const cl_program *input_programs,
                             void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                             void *user_data, cl_int *errcode_ret)
{
    struct build_fence *b = pfn_notify ? build_make(pfn_notify, user_data) : NULL;
    if (pfn_notify && !b) {
        if (errcode_ret)
            *errcode_ret = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    cl_program program = ocl_next.clLinkProgram(
        context, num_devices, device_list, options, num_input_programs, input_programs,
        b ? run_build : NULL, b ? (void *)b : user_data, errcode_ret);
    if (b)
        build_unref(b);
    return program;
}
