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
