/*
 * What the tests of the OpenCL front share.  Each row runs in a process of its
 * own (a session lasts as long as its process): the test program starts itself
 * again with the row's name, a fake broker in it, the loader, our layer and the
 * fake driver of tests/fake.
 */
#ifndef TEST_FRONT_OPENCL_H
#define TEST_FRONT_OPENCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake/broker.h"
#include "opencl/headers.h"

#define MIB (1ull << 20)

/* Of the process that runs a row. */
extern struct fake_broker broker;

struct fixture {
    cl_platform_id platform;
    cl_device_id device[4];
    cl_uint devices;
    cl_context context; /* over all of them */
    cl_command_queue queue, unordered;
    cl_kernel kernel; /* 200 us */
    cl_mem a, b, image;
    void *svm;
};

struct row {
    const char *label;   /* a sentence */
    const char *env;     /* "NAME=value NAME=value" for the process */
    bool (*check)(void); /* in that process; false: red */
};

extern const struct row view_rows[], mem_rows[], gate_rows[];

/* Say what is wrong and fail the row. */
#define EXPECT(cond)                                                               \
    do {                                                                           \
        if (!(cond)) {                                                             \
            fprintf(stderr, "  %s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
            return false;                                                          \
        }                                                                          \
    } while (0)

bool fixture_open(struct fixture *f);
cl_kernel fixture_kernel(struct fixture *f, const char *name);
/* An extension function by name, through the loader. */
void *fixture_fn(struct fixture *f, const char *name);
/* How often the fake driver's function was called. */
int driver_calls(const char *function);
/* The driver's own device, leased or not. */
cl_device_id driver_device(int i);
uint64_t used_bytes(void);
/* Commands the slot's counters know, after they settled. */
uint64_t gated_commands(void);
/* Wait until `what(arg)` or two seconds. */
bool eventually(bool (*what)(void *), void *arg);

/* One role row of gen/opencl.tbl: does the wrapper do its work? */
bool role_check(const char *name, bool *known);

#endif
