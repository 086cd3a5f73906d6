/* Runs the rows of the OpenCL front, each in a process of its own, and the mutation of each
 * role. */
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "opencl.h"

struct fake_broker broker;
static char self[PATH_MAX], vendors[64];

/* ---- in the process of one row ---------------------------------------------------- */

bool fixture_open(struct fixture *f)
{
    cl_uint n = 0;
    cl_int code;
    size_t one = 1;
    *f = (struct fixture){ 0 };
    EXPECT(clGetPlatformIDs(1, &f->platform, &n) == CL_SUCCESS && n == 1);
    EXPECT(clGetDeviceIDs(f->platform, CL_DEVICE_TYPE_ALL, 4, f->device, &f->devices) ==
           CL_SUCCESS);
    f->context = clCreateContext(NULL, f->devices, f->device, NULL, NULL, &code);
    EXPECT(f->context);
    f->queue = clCreateCommandQueue(f->context, f->device[0], 0, &code);
    f->unordered = clCreateCommandQueue(f->context, f->device[0],
                                        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    EXPECT(f->queue && f->unordered);
    f->kernel = fixture_kernel(f, "spin_200us");
    f->a = clCreateBuffer(f->context, 0, 4096, NULL, &code);
    f->b = clCreateBuffer(f->context, 0, 4096, NULL, &code);
    f->image = clCreateImage2D(f->context, 0, &(cl_image_format){ CL_RGBA, CL_UNORM_INT8 },
                               8, 8, 0, NULL, &code);
    f->svm = clSVMAlloc(f->context, 0, 4096, 0);
    EXPECT(f->a && f->b && f->image && f->svm);
    /* Two launches: the cost of the kernel is known afterwards. */
    for (int i = 0; i < 2; i++) {
        EXPECT(clEnqueueNDRangeKernel(f->queue, f->kernel, 1, NULL, &one, NULL, 0, NULL,
                                      NULL) == CL_SUCCESS);
        EXPECT(clFinish(f->queue) == CL_SUCCESS);
    }
    return true;
}

cl_kernel fixture_kernel(struct fixture *f, const char *name)
{
    cl_int code;
    const char *text = "";
    cl_program p = clCreateProgramWithSource(f->context, 1, &text, NULL, &code);
    clBuildProgram(p, 0, NULL, "", NULL, NULL);
    return clCreateKernel(p, name, &code);
}

void *fixture_fn(struct fixture *f, const char *name)
{
    return clGetExtensionFunctionAddressForPlatform(f->platform, name);
}

static void *driver_symbol(const char *symbol)
{
    void *stub = dlopen(getenv("STUB_ICD"), RTLD_NOW | RTLD_NOLOAD);
    return stub ? dlsym(stub, symbol) : NULL;
}

int driver_calls(const char *function)
{
    int (*calls)(const char *) = (int (*)(const char *))driver_symbol("stub_calls");
    return calls ? calls(function) : -1;
}

cl_device_id driver_device(int i)
{
    cl_device_id (*device)(int) = (cl_device_id(*)(int))driver_symbol("stub_device");
    return device ? device(i) : NULL;
}

bool eventually(bool (*what)(void *), void *arg)
{
    for (int i = 0; i < 400; i++) {
        if (what(arg))
            return true;
        usleep(5000);
    }
    return what(arg);
}

/* The broker's thread reads frees a moment later. */
uint64_t used_bytes(void)
{
    uint64_t last = UINT64_MAX, now = atomic_load(&broker.used_bytes);
    for (int same = 0; same < 4;) {
        usleep(5000);
        last = now;
        now = atomic_load(&broker.used_bytes);
        same = now == last ? same + 1 : 0;
    }
    return now;
}

uint64_t gated_commands(void)
{
    uint64_t last = 0, now = 0;
    for (int same = 0; same < 4;) {
        usleep(5000);
        last = now;
        now = 0;
        for (uint32_t i = 0; i < 2; i++)
            now += atomic_load(&fake_slot(&broker, i)->kernels) +
                   atomic_load(&fake_slot(&broker, i)->copies);
        same = now == last ? same + 1 : 0;
    }
    return now;
}

static const struct row *find_row(const char *label)
{
    const struct row *all[] = { view_rows, mem_rows, gate_rows };
    for (size_t i = 0; i < 3; i++)
        for (const struct row *r = all[i]; r->label; r++)
            if (strcmp(r->label, label) == 0)
                return r;
    return NULL;
}

/* Exit status: 0 green, 1 red, 2 no such row. */
static int run_here(const char *label)
{
    /* A call that waits where it must not is red; with a role switched off that is
     * expected. */
    alarm(getenv("SLUICE_TEST_PASS") ? 3 : 20);
    broker.limit_bytes = 64 * MIB;
    broker.auto_grant = 1;
    broker.request_permille = broker.limit_permille = 1000;
    strcpy(broker.platform, "Fake platform of the Sluice tests");
    strcpy(broker.name, "Fake device");
    strcpy(broker.driver, "fake-1.0");
    if (!getenv("TEST_NO_BROKER"))
        fake_start(&broker);
    setenv("SLUICE_BROKER", broker.path[0] ? broker.path : "/nonexistent/broker.sock", 1);
    bool known = true, ok;
    if (strncmp(label, "role:", 5) == 0) {
        ok = role_check(label + 5, &known);
    } else {
        const struct row *r = find_row(label);
        known = r != NULL;
        ok = r && r->check();
    }
    if (broker.path[0]) {
        unlink(broker.path);
        rmdir(broker.dir);
    }
    return !known ? 2 : ok ? 0 : 1;
}

/* ---- in the test program ---------------------------------------------------------- */

static void set_all(const char *env)
{
    char text[512];
    snprintf(text, sizeof(text), "%s", env ? env : "");
    for (char *save, *one = strtok_r(text, " ", &save); one;
         one = strtok_r(NULL, " ", &save)) {
        char *value = strchr(one, '=');
        *value = 0;
        setenv(one, value + 1, 1);
    }
}

/* `pass`: the entry point whose role is switched off, or NULL. */
static pid_t start_row(const char *label, const char *env, const char *pass, bool quiet)
{
    pid_t child = fork();
    if (child == 0) {
        set_all(env);
        setenv("OCL_ICD_VENDORS", vendors, 1);
        setenv("OPENCL_LAYERS", getenv("TEST_LAYER"), 1);
        if (pass)
            setenv("SLUICE_TEST_PASS", pass, 1);
        if (quiet && !freopen("/dev/null", "w", stderr))
            _exit(3);
        execl(self, self, "--row", label, NULL);
        _exit(3);
    }
    return child;
}

static int end_row(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Rows mostly sleep: several at once. */
#define AT_ONCE 6

static void run_rows(const struct row *rows)
{
    int red = 0;
    for (const struct row *r = rows; r->label; r += AT_ONCE) {
        pid_t child[AT_ONCE];
        int n = 0;
        for (; n < AT_ONCE && r[n].label; n++)
            child[n] = start_row(r[n].label, r[n].env, NULL, false);
        for (int i = 0; i < n; i++) {
            int status = end_row(child[i]);
            if (status != 0) {
                print_message("red (%d): %s\n", status, r[i].label);
                red++;
            }
        }
        if (n < AT_ONCE)
            break;
    }
    assert_int_equal(red, 0);
}

static void fake_driver_call(void) {}

/* The layer against a driver whose every slot is the same function. */
static void test_slots(void **state)
{
    enum { SLOTS = sizeof(cl_icd_dispatch) / sizeof(void *) };
    void *layer = dlopen(getenv("TEST_LAYER"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(layer);
    pfn_clInitLayer init = (pfn_clInitLayer)dlsym(layer, "clInitLayer");
    pfn_clGetLayerInfo info = (pfn_clGetLayerInfo)dlsym(layer, "clGetLayerInfo");
    assert_true(init && info);

    cl_layer_api_version version = 0;
    assert_int_equal(info(CL_LAYER_API_VERSION, sizeof(version), &version, NULL),
                     CL_SUCCESS);
    assert_int_equal(version, CL_LAYER_API_VERSION_100);

    void *below[SLOTS];
    for (size_t i = 0; i < SLOTS; i++)
        below[i] = (void *)fake_driver_call;
    cl_uint n = 0;
    const cl_icd_dispatch *ours = NULL;
    assert_int_equal(init(SLOTS, (const cl_icd_dispatch *)below, &n, &ours), CL_SUCCESS);
    assert_int_equal(n, 149);
    int wrapped = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        void *slot = ((void *const *)ours)[i];
        assert_non_null(slot);
        wrapped += slot != (void *)fake_driver_call;
    }
    print_message("%d of %d slots have a role\n", wrapped, 149 - 16);
    assert_true(wrapped > 60 && wrapped <= 133);
}

static void test_view(void **state)
{
    run_rows(view_rows);
}

static void test_mem(void **state)
{
    run_rows(mem_rows);
}

static void test_gate(void **state)
{
    run_rows(gate_rows);
}

/* What no check can tell apart with the fake driver. */
static bool unproven(const char *name)
{
    static const char *const names[] = {
        "clReleaseEvent",
        "clSetContextDestructorCallback",
        "clSetProgramReleaseCallback",
        "clGetGLContextInfoKHR",
        "clCreateSubDevicesEXT",
        "clGetExtensionFunctionAddress",
        "clSetCommandQueueProperty",
        "clRetainCommandBufferKHR",
        "clReleaseCommandBufferKHR",
        "clCreateCommandQueueWithPropertiesKHR",
        "clCreateBufferWithPropertiesINTEL",
        /* an unknown queue is adopted at its first command; a retained one forgotten too
           early too */
        "clCreateCommandQueue",
        "clCreateCommandQueueWithProperties",
        "clRetainCommandQueue",
        "clReleaseCommandQueue",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Two of three devices are leased: else there is nothing to hide. */
static bool needs_more_devices(const char *name)
{
    return strcmp(name, "clGetDeviceIDs") == 0 || strcmp(name, "clCreateContext") == 0 ||
           strcmp(name, "clCreateContextFromType") == 0;
}

struct role {
    char name[64], role[16];
    pid_t with, without;
};

/* Green with its role, red without. */
static int roles_red(struct role *list, int n)
{
    int red = 0;
    for (int i = 0; i < n; i++) {
        char label[80];
        snprintf(label, sizeof(label), "role:%s", list[i].name);
        const char *env = needs_more_devices(list[i].name) ? "STUB_DEVICES=3" : "";
        list[i].with = start_row(label, env, NULL, false);
        list[i].without = start_row(label, env, list[i].name, true);
    }
    for (int i = 0; i < n; i++) {
        int with = end_row(list[i].with), without = end_row(list[i].without);
        if (with == 0 && without != 0)
            continue;
        print_message("%s (%s): with the role %d, without it %d\n", list[i].name,
                      list[i].role, with, without);
        red++;
    }
    return red;
}

/* Each role of the table is green, and red when the row is turned to pass. */
static void test_roles(void **state)
{
    FILE *table = fopen(getenv("TEST_TABLE"), "r");
    char line[512], version[8], key[64];
    struct role batch[AT_ONCE];
    int rows = 0, red = 0, n = 0;
    assert_non_null(table);
    while (fgets(line, sizeof(line), table)) {
        struct role *r = &batch[n];
        if (line[0] == '#' ||
            sscanf(line, "%63s %7s %15s %63s", r->name, version, r->role, key) != 4 ||
            strcmp(version, "ext") == 0 || strcmp(r->role, "pass") == 0 ||
            strcmp(r->role, "hide") == 0 || unproven(r->name))
            continue;
        rows++;
        if (++n == AT_ONCE) {
            red += roles_red(batch, n);
            n = 0;
        }
    }
    red += roles_red(batch, n);
    fclose(table);
    print_message("%d roles, each proven by its removal\n", rows);
    assert_true(rows > 50);
    assert_int_equal(red, 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots), cmocka_unit_test(test_view),
        cmocka_unit_test(test_mem),   cmocka_unit_test(test_gate),
        cmocka_unit_test(test_roles),
    };
    if (argc == 3 && strcmp(argv[1], "--row") == 0) {
        int status = run_here(argv[2]);
        fflush(NULL);
        _exit(status); /* drivers' threads still run */
    }
    if (!realpath("/proc/self/exe", self))
        return 1;
    strcpy(vendors, "/tmp/slvXXXXXX");
    if (!mkdtemp(vendors))
        return 1;
    char file[96];
    snprintf(file, sizeof(file), "%s/stub.icd", vendors);
    FILE *icd = fopen(file, "w");
    if (!icd)
        return 1;
    fprintf(icd, "%s\n", getenv("STUB_ICD"));
    fclose(icd);
    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file);
    rmdir(vendors);
    return failed;
}
