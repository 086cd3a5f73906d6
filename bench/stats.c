/* Order statistics with their intervals, and the report of one bench. */
#include "stats.h"

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double stats_median(double *values, size_t n)
{
    if (!n)
        return NAN;
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double stats_quantile(double *values, size_t n, double q)
{
    size_t beyond = (size_t)((1 - q) * (double)n);
    if (beyond < 10)
        return NAN;
    qsort(values, n, sizeof *values, compare);
    return values[n - 1 - beyond];
}

double stats_max(const double *values, size_t n)
{
    double max = NAN;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || values[i] > max)
            max = values[i];
    return max;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void stats_median_interval(const double *values, size_t n, double *low, double *high)
{
    enum { ROUNDS = 2000 };
    *low = *high = NAN;
    if (n < 3)
        return;
    double *sample = malloc(n * sizeof *sample),
           *medians = malloc(ROUNDS * sizeof *medians);
    if (sample && medians) {
        uint64_t state = 88172645463325252ull;
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t i = 0; i < n; i++)
                sample[i] = values[next_random(&state) % n];
            medians[round] = stats_median(sample, n);
        }
        qsort(medians, ROUNDS, sizeof *medians, compare);
        *low = medians[ROUNDS * 25 / 1000];
        *high = medians[ROUNDS * 975 / 1000];
    }
    free(sample);
    free(medians);
}

struct report {
    char name[64];
    json_t *doc, *rows;
    int missed;
};

/* First "model name" of /proc/cpuinfo. */
static void cpu_name(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (colon && !strncmp(line, "model name", 10)) {
            colon[strcspn(colon, "\n")] = 0;
            snprintf(out, size, "%s", colon + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

static json_t *machine(void)
{
    struct utsname u;
    char cpu[128];
    uname(&u);
    cpu_name(cpu, sizeof cpu);
    return json_pack("{s:s, s:I, s:I, s:s, s:s}", "cpu", cpu, "cpus",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE), "kernel",
                     u.release, "device", "PoCL on the CPU");
}

struct report *report_open(const char *name, const char *question)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r)
        exit(1);
    snprintf(r->name, sizeof r->name, "%s", name);
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    r->rows = json_array();
    r->doc = json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", name, "question", question,
                       "at", when, "machine", machine(), "rows", r->rows);
    printf("\n%s: %s\n", name, question);
    return r;
}

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

void report_add(struct report *r, const struct row *row)
{
    bool met = isnan(row->goal) || row->value <= row->goal;
    if (!met)
        r->missed++;
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I}", "name", row->name, "unit",
                  row->unit, "statistic", row->statistic, "value", number(row->value),
                  "low", number(row->low), "high", number(row->high), "goal",
                  number(row->goal), "samples", (json_int_t)row->samples);
    json_object_set_new(j, "met", isnan(row->goal) ? json_null() : json_boolean(met));
    if (row->note)
        json_object_set_new(j, "note", json_string(row->note));
    json_array_append_new(r->rows, j);

    char interval[48] = "", goal[32] = "";
    if (!isnan(row->low))
        snprintf(interval, sizeof interval, " [%.3g, %.3g]", row->low, row->high);
    if (!isnan(row->goal))
        snprintf(goal, sizeof goal, "goal <= %.3g %s", row->goal, met ? "met" : "MISSED");
    printf("  %-58s %s %8.3f %s%s  n=%zu  %s%s%s\n", row->name, row->statistic, row->value,
           row->unit, interval, row->samples, goal, row->note ? "  " : "",
           row->note ? row->note : "");
    fflush(stdout);
}

int report_close(struct report *r)
{
    const char *dir = getenv("BENCH_OUT");
    char path[512];
    if (!dir)
        dir = "bench/out";
    mkdir(dir, 0755);
    snprintf(path, sizeof path, "%s/%s.json", dir, r->name);
    if (json_dump_file(r->doc, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
        fprintf(stderr, "bench: cannot write %s\n", path);
    int missed = r->missed;
    json_decref(r->doc);
    free(r);
    return missed ? 1 : 0;
}
