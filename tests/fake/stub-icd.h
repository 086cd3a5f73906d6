/*
 * A fake OpenCL driver for tests: objects that its two files share.
 *
 * It says so in its names ("Fake ..."), computes nothing and sleeps where a
 * device would work.  One lock for everything.  Read once from the environment:
 *   STUB_DEVICES       how many devices (1)
 *   STUB_MEM_BYTES     what each says it has (1 GiB)
 *   STUB_MAX_ALLOC     its maximum allocation (the same)
 *   STUB_PITCH         images' rows are padded to a multiple of this (1)
 *   STUB_NO_ZERO       hand out freed memory with its old content
 *   STUB_FAIL_ALLOC    the Nth allocation fails
 * A kernel's name carries its duration ("spin_200us"); "never" never completes.
 */
#ifndef FAKE_STUB_ICD_H
#define FAKE_STUB_ICD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "opencl/headers.h"

#define STUB_EXPORT __attribute__((visibility("default")))

/* Every object starts like this: the loader reads the first word. */
struct object {
    cl_icd_dispatch *dispatch;
    int references;
};

struct _cl_platform_id {
    struct object o;
};
struct _cl_device_id {
    struct object o;
    int index;
    struct command *first;
    pthread_t worker;
    bool works;
};
struct _cl_context {
    struct object o;
    cl_uint count;
    cl_device_id device[16];
};
struct _cl_command_queue {
    struct object o;
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
};
struct _cl_program {
    struct object o;
    cl_context context;
};
struct _cl_kernel {
    struct object o;
    uint64_t ns;
    bool never;
};
struct _cl_command_buffer_khr {
    struct object o;
    cl_command_queue queue;
    uint64_t ns;
};

struct hook {
    void(CL_CALLBACK *fn)(cl_mem, void *);
    void *data;
    struct hook *next;
};
struct _cl_mem {
    struct object o;
    cl_context context;
    struct _cl_mem *parent; /* of a sub-buffer */
    size_t size, row, slice;
    char *bytes;
    bool host; /* CL_MEM_USE_HOST_PTR */
    struct hook *hooks;
};

struct watch {
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    void *data;
    struct watch *next;
};
struct _cl_event {
    struct object o;
    cl_context context;
    cl_command_queue queue; /* NULL: user event */
    cl_int status;
    struct watch *watches;
};

/* What a command does when its time is over. */
struct work {
    int kind;
    void *to;
    const void *from;
    size_t size, pattern;
    void(CL_CALLBACK *native)(void *);
};
enum { WORK_NONE, WORK_COPY, WORK_FILL, WORK_NATIVE, WORK_FREE_SVM };

struct command {
    struct command *next;
    cl_command_queue queue;
    cl_event event;
    uint64_t ns;
    bool never, all_before, barrier, done;
    struct work work;
    cl_uint waits;
    cl_event wait[64];
};

extern cl_icd_dispatch stub_dispatch;
extern pthread_mutex_t stub_lock;

void stub_count(const char *function);
void *stub_new(size_t size);
void stub_retain(void *object);
/* True: the last reference went; the caller frees it. */
bool stub_release(void *object);

cl_int stub_enqueue(cl_command_queue q, uint64_t ns, bool never, struct work work,
                    cl_bool blocking, cl_uint count, const cl_event *list, cl_event *event);
void stub_fill_queue_calls(cl_icd_dispatch *d);
void *stub_extension(const char *name);
/* Memory as the fake device hands it out; NULL when it is to fail. */
void *stub_memory(size_t size);
void stub_memory_free(void *p);

#endif
