/*
 * bench-lost: how much throughput sharing costs.
 *
 * Two equal programs at 50/50 under turns against one alone with the same front, interleaved
 * A B A B; lost = 1 - (sum of their rates / the rate alone).  Beside it, two
 * programs without any gate: they fill each other's gaps and can pass 100 %.
 *
 *   bench-lost          at the default turn
 *   bench-lost turns    against the length of a turn, as a picture
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "lease_load.h"
#include "stats.h"

#define MAX_ROUNDS 64

static double together(struct stage *s, size_t count, const char *share, double seconds)
{
    pid_t pid[2];
    char out[2][96];
    struct load load = { "async", 1000, 0, seconds, clock_now_ns() + 1500 * NS_PER_MS,
                         true,    false };
    const char *options[] = { "--mem", "256MiB", "--compute", share, NULL };
    for (size_t i = 0; i < count; i++) {
        snprintf(out[i], sizeof out[i], "%s/load%zu", s->dir, i);
        pid[i] = load_start(s, &load, share ? options : NULL, out[i]);
    }
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        stage_wait(pid[i]);
        sum += load_rate(out[i], 0, UINT64_MAX);
    }
    return sum;
}

static void add(struct report *r, const char *name, double *value, size_t n, double goal,
                const char *note)
{
    double low, high;
    stats_median_interval(value, n, &low, &high);
    report_add(r, &(struct row){ name, "%", "median", stats_median(value, n), low, high,
                                 goal, n, note });
}

static int against_turn(bool quick)
{
    static const char *const turns[] = { "2ms", "5ms", "10ms", "20ms", "50ms" };
    size_t rounds = quick ? 1 : 3;
    double seconds = quick ? 2 : 5;
    static double lost[MAX_ROUNDS];
    struct report *r =
        report_open("lost-turns", "throughput lost against the length of a turn");
    for (size_t t = 0; t < ARRAY_LEN(turns); t++) {
        struct stage stage;
        const char *up[] = { "--turn", turns[t], NULL };
        stage_open(&stage, 1, up);
        double before = together(&stage, 1, "100", seconds);
        for (size_t i = 0; i < rounds; i++) {
            double pair = together(&stage, 2, "50", seconds);
            double after = together(&stage, 1, "100", seconds);
            lost[i] = (1 - pair / ((before + after) / 2)) * 100;
            before = after;
        }
        char name[64];
        snprintf(name, sizeof name, "turn of %s", turns[t]);
        add(r, name, lost, rounds, NAN, NULL);
        stage_close(&stage);
    }
    report_picture(r, "turn of", "percent lost");
    return report_close(r);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "turns")) {
        load_environment(true);
        return against_turn(getenv("QUICK") != NULL);
    }
    size_t rounds = getenv("QUICK") ? 3 : 8;
    double seconds = getenv("QUICK") ? 2 : 5;
    static double lost[MAX_ROUNDS], noise[MAX_ROUNDS], ungated[MAX_ROUNDS];
    struct stage stage;
    load_environment(true);
    stage_open(&stage, 1, NULL);
    struct report *r =
        report_open("lost", "throughput lost when two share, at the default turn");
    double before = together(&stage, 1, "100", seconds);
    for (size_t i = 0; i < rounds; i++) {
        double pair = together(&stage, 2, "50", seconds);
        double after = together(&stage, 1, "100", seconds);
        lost[i] = (1 - pair / ((before + after) / 2)) * 100;
        noise[i] = (1 - after / before) * 100;
        ungated[i] =
            (1 - together(&stage, 2, NULL, seconds) / ((before + after) / 2)) * 100;
        before = after;
    }
    add(r, "two at 50/50 under turns, against one alone", lost, rounds, 3.0, NULL);
    add(r, "one alone against itself (A A)", noise, rounds, NAN, NULL);
    add(r, "two without a gate (negative: more than one alone)", ungated, rounds, NAN,
        NULL);
    stage_close(&stage);
    return report_close(r);
}
