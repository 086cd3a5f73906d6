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

static void out_path(const struct report *r, const char *ending, char *path, size_t size)
{
    const char *dir = getenv("BENCH_OUT");
    if (!dir)
        dir = "bench/out";
    mkdir(dir, 0755);
    snprintf(path, size, "%s/%s.%s", dir, r->name, ending);
}

static double real(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static bool drawn(const json_t *row, const char *only)
{
    const char *statistic = text(row, "statistic");
    return strstr(text(row, "name"), only) && !isnan(real(row, "value")) &&
           (!strcmp(statistic, "p95") || !strcmp(statistic, "max") ||
            !strcmp(statistic, "median"));
}

/* The end of an axis that holds `max`: 1, 2 or 5 times a power of ten. */
static double axis_end(double max)
{
    double step = pow(10, floor(log10(max > 0 ? max : 1)));
    return max <= step       ? step
           : max <= 2 * step ? 2 * step
           : max <= 5 * step ? 5 * step
                             : 10 * step;
}

static void draw_row(FILE *f, const json_t *row, int y, double x0, double scale)
{
    double value = real(row, "value"), goal = real(row, "goal");
    double low = real(row, "low"), high = real(row, "high");
    bool met = isnan(goal) || value <= goal;
    fprintf(f, "<text x='%.0f' y='%d' text-anchor='end'>%s</text>\n", x0 - 10, y + 4,
            text(row, "name"));
    fprintf(f, "<line x1='%.0f' x2='%.1f' y1='%d' y2='%d' stroke='#ddd'/>\n", x0,
            x0 + 440.0, y, y);
    if (!isnan(low))
        fprintf(f,
                "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#1b6ca8' "
                "stroke-width='3'/>\n",
                x0 + fmax(low, 0) * scale, x0 + fmax(high, 0) * scale, y, y);
    if (!isnan(goal))
        fprintf(
            f,
            "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#888' stroke-width='2'/>\n",
            x0 + goal * scale, x0 + goal * scale, y - 6, y + 6);
    fprintf(f, "<circle cx='%.1f' cy='%d' r='4' fill='%s'/>\n", x0 + fmax(value, 0) * scale,
            y, met ? "#1b6ca8" : "#c0392b");
    fprintf(f, "<text x='%.1f' y='%d' fill='#555'>%.3g %s</text>\n", x0 + 450.0, y + 4,
            value, text(row, "statistic"));
}

void report_picture(struct report *r, const char *only, const char *axis)
{
    char path[512];
    size_t i;
    json_t *row;
    int count = 0;
    double max = 0;
    json_array_foreach(r->rows, i, row)
        if (drawn(row, only)) {
            double goal = real(row, "goal"), high = real(row, "high");
            max = fmax(max, fmax(real(row, "value"), isnan(goal) ? 0 : goal));
            max = fmax(max, isnan(high) ? 0 : high);
            count++;
        }
    out_path(r, "svg", path, sizeof path);
    FILE *f = count ? fopen(path, "we") : NULL;
    if (!f)
        return;
    double x0 = 300, end = axis_end(max), scale = 440 / end;
    int height = 70 + 20 * count, y = 50;
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='840' height='%d' "
            "font-family='sans-serif' font-size='12'>\n<rect width='840' height='%d' "
            "fill='white'/>\n",
            height, height);
    fprintf(f, "<text x='10' y='20' font-size='14'>%s</text>\n", text(r->doc, "question"));
    for (int tick = 0; tick <= 5; tick++)
        fprintf(f, "<text x='%.1f' y='%d' text-anchor='middle' fill='#555'>%.3g</text>\n",
                x0 + 88.0 * tick, height - 8, end * tick / 5);
    fprintf(f,
            "<text x='%.0f' y='%d' text-anchor='end' fill='#555'>%s; grey tick: the "
            "goal</text>\n",
            x0 - 10, height - 8, axis);
    json_array_foreach(r->rows, i, row)
        if (drawn(row, only)) {
            draw_row(f, row, y, x0, scale);
            y += 20;
        }
    fputs("</svg>\n", f);
    fclose(f);
}

int report_close(struct report *r)
{
    char path[512];
    out_path(r, "json", path, sizeof path);
    if (json_dump_file(r->doc, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
        fprintf(stderr, "bench: cannot write %s\n", path);
    int missed = r->missed;
    json_decref(r->doc);
    free(r);
    return missed ? 1 : 0;
}
