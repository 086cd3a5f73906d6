/* Owns OpenCL devices as the agent sees them: runs the probe and makes devices of what it
 * says. */
#include "backend.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "mem_total.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "child.h"
#include "core/macros.h"
#include "model/units.h"

#define PROBE_MAX_BYTES  (1u << 20)
#define PROBE_TIMEOUT_MS 20000

#define CPU_RESERVE_PERCENT 25 /* of a device that lives in the host's memory */
#define GPU_RESERVE_BYTES \
    (512 * MIB) /* contexts and the driver's own; no figure is public */

/* FNV-1a, 32 bits: an id must be the same after every restart, and short. */
static uint32_t hash_text(uint32_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return (h ^ 0xff) * 16777619u; /* "ab","c" is not "a","bc" */
}

static const struct {
    const char *platform, *prefix;
} prefixes[] = {
    { "Portable Computing Language", "pocl" },
    { "NVIDIA CUDA", "nvidia" },
    { "AMD Accelerated Parallel Processing", "amd" },
    { "Intel", "intel" },
};

static void make_id(struct device *d, const struct device *before, uint32_t count)
{
    const char *prefix = "ocl";
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncmp(d->platform, prefixes[i].platform, strlen(prefixes[i].platform)) == 0)
            prefix = prefixes[i].prefix;
    uint32_t same = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool alike = strcmp(before[i].platform, d->platform) == 0 &&
                     strcmp(before[i].model, d->model) == 0;
        same += alike;
        d->ordinal += alike && strcmp(before[i].driver, d->driver) == 0;
    }
    uint32_t h = hash_text(hash_text(2166136261u, d->platform), d->model);
    snprintf(d->id, sizeof d->id, "%s-%08x-%u", prefix, h, same);
}

static void settle_memory(struct device *d, bool cpu, uint64_t mem_total_bytes)
{
    snprintf(d->memory_source, sizeof d->memory_source, "clGetDeviceInfo");
    if (d->unified && mem_total_bytes && d->memory_bytes > mem_total_bytes) {
        d->memory_bytes = mem_total_bytes;
        snprintf(d->memory_source, sizeof d->memory_source, "MemTotal");
    }
    /* a CPU device's memory is the kernel's, which clears each page before it gives it out */
    snprintf(d->wipe, sizeof d->wipe, "%s", cpu ? "driver" : "unknown");
    d->reserve_bytes = cpu || d->unified ? d->memory_bytes / 100 * CPU_RESERVE_PERCENT
                                         : min_u64(GPU_RESERVE_BYTES, d->memory_bytes / 4);
    d->reserve_bytes = (d->reserve_bytes + MIB - 1) / MIB * MIB;
}

static int read_device(const json_t *j, uint64_t mem_total_bytes, struct device *d,
                       struct sl_err *err)
{
    const char *type = "", *failed = NULL;
    int rc = json_copy_str(j, "platform", d->platform, sizeof d->platform, err);
    if (rc == 0)
        rc = json_copy_str(j, "name", d->model, sizeof d->model, err);
    if (rc == 0)
        rc = json_copy_str(j, "vendor", d->vendor, sizeof d->vendor, err);
    if (rc == 0)
        rc = json_copy_str(j, "driver", d->driver, sizeof d->driver, err);
    if (rc == 0)
        rc = json_copy_str(j, "pci", d->pci, sizeof d->pci, err);
    if (rc == 0)
        rc = json_get_str(j, "type", &type, err);
    if (rc == 0)
        rc = json_get_str(j, "failed", &failed, err);
    if (rc == 0)
        rc = backend_read_numbers(j, d, err);
    if (rc < 0)
        return rc;
    bool cpu = strcmp(type, "cpu") == 0;
    struct utsname host;
    snprintf(d->arch, sizeof d->arch, "%.31s",
             cpu && uname(&host) == 0 ? host.machine : type);
    if (d->memory_bytes == 0 && !failed)
        failed = "the driver reports no memory";
    if (failed) {
        d->state = DEVICE_FAILED;
        snprintf(d->why, sizeof d->why, "%s", failed);
    }
    settle_memory(d, cpu, mem_total_bytes);
    return 0;
}

int opencl_parse(const char *text, size_t len, uint64_t mem_total_bytes, struct device *out,
                 uint32_t max, uint32_t *count, struct sl_err *err)
{
    AUTO_JSON json_t *root = json_parse(text, len, err);
    if (!root)
        return sl_prefix(err, "sluice-probe printed no JSON");
    const json_t *list = json_object_get(root, "devices"), *item;
    if (!json_is_array(list))
        return sl_fail(err, SL_PROTOCOL, "sluice-probe printed no list of devices");
    size_t i;
    json_array_foreach((json_t *)list, i, item) {
        if (*count >= max)
            return sl_fail(err, SL_TOO_LARGE, "more than %u devices", max);
        struct device d = { .state = DEVICE_OK, .numa_node = -1 };
        int rc = read_device(item, mem_total_bytes, &d, err);
        if (rc < 0)
            return sl_prefix(err, "sluice-probe");
        snprintf(d.backend, sizeof d.backend, "opencl");
        d.grades = (struct grades){ .memory = GRADE_FRONT,
                                    .time = GRADE_FRONT,
                                    .visibility = GRADE_FRONT };
        make_id(&d, out, *count);
        out[(*count)++] = d;
    }
    return 0;
}

/* Only what locates things, and what the operator named: POCL_MEMORY_LIMIT, OPENCL_LAYERS
 * and their like in our own environment would change what the driver says. */
static char **make_env(const struct backend_options *o)
{
    char **env = calloc(o->probe_env_count + 4, sizeof *env);
    size_t n = 0;
    const char *home = getenv("HOME");
    if (!env)
        return NULL;
    env[n++] = strdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    env[n++] = strdup("LC_ALL=C");
    if (home && asprintf(&env[n], "HOME=%s", home) > 0)
        n++;
    for (uint32_t i = 0; i < o->probe_env_count; i++) {
        const char *value = getenv(o->probe_env[i]);
        if (value && asprintf(&env[n], "%s=%s", o->probe_env[i], value) > 0)
            n++;
    }
    env[n] = NULL;
    return env;
}

static void free_env(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}

static int probe(const struct backend_options *o, struct device *out, uint32_t max,
                 uint32_t *count, struct sl_err *err)
{
    const char *const argv[] = { o->probe_program, "--backend", "opencl", "--json", NULL };
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    char **env = make_env(o);
    struct sl_err why = { 0 };
    int rc = child_capture(argv, env,
                           o->probe_timeout_ms ? o->probe_timeout_ms : PROBE_TIMEOUT_MS,
                           PROBE_MAX_BYTES, &text, &len, &why);
    free_env(env);
    if (rc == 0)
        rc = opencl_parse(text, len, mem_total_bytes(), out, max, count, &why);
    if (rc == 0 || *count >= max)
        return rc < 0 ? sl_fail(err, why.code, "%s", why.msg) : 0;

    /* Which devices there would have been is not known: one row says that, and why. */
    struct device d = { .state = DEVICE_FAILED,
                        .numa_node = -1,
                        .id = "opencl-unknown",
                        .backend = "opencl",
                        .model = "unknown",
                        .platform = "OpenCL" };
    snprintf(d.why, sizeof d.why, "the probe failed: %.100s", why.msg);
    out[(*count)++] = d;
    return 0;
}

const struct backend backend_opencl = { .name = "opencl", .probe = probe };
