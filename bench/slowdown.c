/*
 * bench-slowdown: what a program pays for its slice when it has the device for itself,
 * at full share alone and as `burst` 30..100 % beside a lease that is registered and idle;
 * for kernel-, copy-, wait- and launch-bound programs (bench-slow does the measuring, with
 * the gate switched on and off inside one process).
 */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "lease_load.h"
#include "stats.h"

static const char *const modes[] = { "kernel", "copy", "wait", "launch" };

static double figure(const json_t *doc, const char *key, const char *part)
{
    const json_t *value = json_object_get(doc, key);
    if (part)
        value = json_object_get(value, part);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add(struct report *r, const json_t *doc, const char *mode, const char *where,
                int pairs)
{
    char name[128], note[160];
    snprintf(name, sizeof name, "%s-bound, %s: upper end of the slow-down", mode, where);
    snprintf(note, sizeof note, "median %.2f %% [%.2f, %.2f]; off/off %.2f %% [%.2f, %.2f]",
             figure(doc, "slowdown_pct", "median"), figure(doc, "slowdown_pct", "low"),
             figure(doc, "slowdown_pct", "high"), figure(doc, "off_off_pct", "median"),
             figure(doc, "off_off_pct", "low"), figure(doc, "off_off_pct", "high"));
    report_add(r,
               &(struct row){ name, "%", "95 % upper", figure(doc, "slowdown_pct", "high"),
                              NAN, NAN, 2.0, (size_t)pairs, note });
    if (!strcmp(mode, "launch")) {
        snprintf(name, sizeof name, "launch-bound, %s: CPU time of the front a launch",
                 where);
        snprintf(note, sizeof note, "%.0f ns a launch without the gate",
                 figure(doc, "cpu_ns_off", "median"));
        report_add(r, &(struct row){
                          name, "ns", "median", figure(doc, "cpu_ns_more", "median"),
                          figure(doc, "cpu_ns_more", "low"),
                          figure(doc, "cpu_ns_more", "high"), NAN, (size_t)pairs, note });
    }
    if (!strcmp(mode, "wait")) {
        double native = figure(doc, "p99_us_off", NULL);
        snprintf(name, sizeof name, "wait-bound, %s: launch to complete", where);
        snprintf(note, sizeof note, "native p99 %.1f us; goal 1.05 x native + 20 us",
                 native);
        report_add(r, &(struct row){ name, "us", "p99", figure(doc, "p99_us_on", NULL), NAN,
                                     NAN, native * 1.05 + 20, (size_t)pairs, note });
    }
}

static json_t *measure(struct stage *s, const char *mode, const char *share, int pairs)
{
    char path[96], count[16];
    snprintf(path, sizeof path, "%s/slow", s->dir);
    snprintf(count, sizeof count, "%d", pairs);
    const char *options[] = { "--mem", "256MiB", "--compute", share, NULL };
    const char *program[] = {
        stage_program(s, "bench-slow"), "--mode", mode, "--pairs", count, NULL
    };
    if (stage_wait(stage_run(s, options, program, path)))
        return NULL;
    return json_load_file(path, 0, NULL);
}

int main(int argc, char **argv)
{
    bool quick = getenv("QUICK") != NULL;
    int pairs = quick ? 10 : 200;
    struct stage s;
    load_environment(true);
    stage_open(&s, -1, NULL);
    /* the bench build of the front takes the place of the copy that the jobs use */
    char front[128];
    snprintf(front, sizeof front, "%s/front/libsluice-opencl.so", s.dir);
    const char *copy[] = { "cp", stage_program(&s, "bench-front.so"), front, NULL };
    if (stage_wait(stage_spawn(copy, NULL, -1)))
        return 1;

    struct report *r =
        report_open("slow", "slow-down of a program that has the device for itself");
    int failed = 0;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (argc > 1 && strcmp(argv[1], modes[i]))
            continue;
        for (int beside = 0; beside < 2; beside++) {
            pid_t idle = 0;
            if (beside) { /* says hello, then does nothing for an hour */
                struct load load = { "wait", 100, 3600000000u, 3600, 0, false, false };
                const char *options[] = { "--mem", "64MiB", "--compute", "30", NULL };
                idle = load_start(&s, &load, options, NULL);
                sleep(2);
            }
            json_t *doc = measure(&s, modes[i], beside ? "30..100" : "100", pairs);
            if (doc)
                add(r, doc, modes[i], beside ? "burst beside an idle lease" : "alone",
                    pairs);
            else
                failed = 1;
            json_decref(doc);
            if (idle) {
                kill(idle, SIGTERM);
                stage_wait(idle);
            }
        }
    }
    stage_close(&s);
    return report_close(r) | failed;
}
