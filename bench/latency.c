/*
 * bench-latency: how soon a lease that wakes up has the device.
 *
 *   bench-latency burst      a lease promised 50 % wakes beside a burst neighbour that borrowed its time:
 *                            how much later its 1 ms kernel completes than alone
 *   bench-latency priority   a 1 ms kernel at priority 90 beside a besteffort stream
 *
 * The program launches one kernel, waits, pauses 50 ms, so that it is idle before
 * each launch.  Alone and beside are interleaved: A B A B.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "lease_load.h"
#include "stats.h"

#define MAX_LAUNCHES 20000

static const struct question {
    const char *name, *text;
    const char *waker[8], *neighbour[8]; /* options of `sluice run` */
    double neighbour_us, added_goal_ms;
    const char *note;
} questions[] = {
    /* clang-format off */
    { "burst", "a waking lease beside a burst neighbour: added to launch-to-complete",
      { "--mem", "256MiB", "--compute", "50" },
      { "--mem", "256MiB", "--compute", "50..100" },
      1000, 10.5, "goal: one turn (10 ms) and a wake-up" },
    { "priority", "a 1 ms kernel at priority 90 beside a besteffort stream of 1 ms kernels: added",
      { "--mem", "256MiB", "--compute", "50", "--priority", "90" },
      { "--mem", "256MiB", "--mode", "besteffort" },
      1000, 2.0, "goal: the longest besteffort kernel and 1 ms" },
    /* clang-format on */
};

static size_t measure(struct stage *s, const struct question *q, bool beside,
                      double seconds, double *us, size_t room)
{
    char path[96], other[96];
    snprintf(path, sizeof path, "%s/waker", s->dir);
    snprintf(other, sizeof other, "%s/neighbour", s->dir);
    struct load waker = { "wait", 1000, 50000, seconds, 0, true, true };
    struct load stream = { "async", q->neighbour_us, 0, seconds + 4, 0, true, false };
    pid_t neighbour = beside ? load_start(s, &stream, q->neighbour, other) : 0;
    if (beside)
        sleep(2);
    stage_wait(load_start(s, &waker, q->waker, path));
    if (neighbour) {
        kill(neighbour, SIGTERM);
        stage_wait(neighbour);
    }
    return load_latencies(path, us, room);
}

static void add(struct report *r, const char *name, double *us, size_t n, double goal_us,
                const char *note)
{
    double low, high, p99 = stats_quantile(us, n, 0.99), max = stats_max(us, n);
    stats_median_interval(us, n, &low, &high);
    char label[128];
    snprintf(label, sizeof label, "%s, median", name);
    report_add(r, &(struct row){ label, "us", "median", stats_median(us, n), low, high, NAN,
                                 n, NULL });
    snprintf(label, sizeof label, "%s, tail", name);
    report_add(r, &(struct row){ label, "us", isnan(p99) ? "max" : "p99",
                                 isnan(p99) ? max : p99, NAN, NAN, goal_us, n, note });
}

int main(int argc, char **argv)
{
    const struct question *q = NULL;
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(questions); i++)
        if (!strcmp(questions[i].name, argv[1]))
            q = &questions[i];
    if (!q) {
        fprintf(stderr, "usage: bench-latency burst|priority\n");
        return 2;
    }
    int rounds = getenv("QUICK") ? 1 : 3;
    double seconds = getenv("QUICK") ? 4 : 16;
    static double alone[MAX_LAUNCHES], beside[MAX_LAUNCHES];
    size_t alone_count = 0, beside_count = 0;
    struct stage stage;
    load_environment(true);
    stage_open(&stage, 1, NULL);
    char name[64];
    snprintf(name, sizeof name, "latency-%s", q->name);
    struct report *r = report_open(name, q->text);
    for (int i = 0; i < rounds; i++) {
        alone_count += measure(&stage, q, false, seconds, alone + alone_count,
                               MAX_LAUNCHES - alone_count);
        beside_count += measure(&stage, q, true, seconds, beside + beside_count,
                                MAX_LAUNCHES - beside_count);
    }
    add(r, "alone", alone, alone_count, NAN, NULL);
    double tail_alone = stats_quantile(alone, alone_count, 0.99);
    if (isnan(tail_alone))
        tail_alone = stats_max(alone, alone_count);
    add(r, "beside", beside, beside_count, tail_alone + q->added_goal_ms * 1e3, q->note);
    stage_close(&stage);
    return report_close(r);
}
