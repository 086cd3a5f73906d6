/* bench-load inside a lease: start it, read what it printed. */
#include "lease_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

void load_environment(bool one_thread)
{
    setenv("POCL_AFFINITY", "1", 1);
    if (one_thread)
        setenv("POCL_MAX_PTHREAD_COUNT", "1", 1);
}

/* Iterations for a kernel of this length, measured once, without Sluice. */
static const char *iterations(struct stage *s, double kernel_us)
{
    static struct {
        double us;
        char text[32];
    } known[16];
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].us == kernel_us)
            return known[i].text;
        if (known[i].us != 0)
            continue;
        char us[32], path[96];
        snprintf(us, sizeof us, "%g", kernel_us);
        snprintf(path, sizeof path, "%s/calibrate", s->dir);
        const char *argv[] = { stage_program(s, "bench-load"), "--calibrate", "--kernel-us",
                               us, NULL };
        stage_wait(stage_spawn(argv, path, -1));
        FILE *f = fopen(path, "re");
        if (!f || !fgets(known[i].text, sizeof known[i].text, f)) {
            fprintf(stderr, "bench: cannot calibrate\n");
            exit(1);
        }
        fclose(f);
        known[i].text[strcspn(known[i].text, "\n")] = 0;
        known[i].us = kernel_us;
        return known[i].text;
    }
    return "1000";
}

pid_t load_start(struct stage *s, const struct load *l, const char *const *options,
                 const char *out)
{
    char seconds[32], start[32], gap[32];
    snprintf(seconds, sizeof seconds, "%g", l->seconds);
    snprintf(start, sizeof start, "%llu", (unsigned long long)l->start_ns);
    snprintf(gap, sizeof gap, "%u", l->gap_us);
    /* clang-format off */
    const char *argv[20] = {
        stage_program(s, "bench-load"), "--mode", l->mode, "--iters", iterations(s, l->kernel_us),
        "--seconds", seconds, "--start-ns", start, "--gap-us", gap,
        "--depth", l->kernel_us >= 10000 ? "4" : "64",
    };
    /* clang-format on */
    size_t n = 0;
    while (argv[n])
        n++;
    if (l->host_on_cpu1) {
        argv[n++] = "--host-cpu";
        argv[n++] = "1";
    }
    if (l->latencies)
        argv[n++] = "--latencies";
    return options ? stage_run(s, options, argv, out) : stage_spawn(argv, out, -1);
}

double load_rate(const char *out, uint64_t from_ns, uint64_t to_ns)
{
    FILE *f = fopen(out, "re");
    char line[128];
    unsigned long long t, k, t0 = 0, k0 = 0;
    double rate = NAN;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%llu %llu", &t, &k) != 2 || t < from_ns || t > to_ns)
            continue;
        if (!t0) {
            t0 = t;
            k0 = k;
        } else if (t > t0) {
            rate = (double)(k - k0) * 1e9 / (double)(t - t0);
        }
    }
    if (f)
        fclose(f);
    return rate;
}

size_t load_latencies(const char *out, double *us, size_t room)
{
    FILE *f = fopen(out, "re");
    char line[128];
    size_t n = 0;
    while (f && n < room && fgets(line, sizeof line, f))
        if (sscanf(line, "lat %lf", &us[n]) == 1)
            n++;
    if (f)
        fclose(f);
    return n;
}
