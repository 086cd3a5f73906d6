/*
 * bench-share: does each lease get the share it was promised?
 *
 *   bench-share pinned    pairs and a triple; a PoCL device of one thread pinned to CPU 0,
 *                         host threads and broker on CPU 1: device time and kernels
 *   bench-share cores     all cores, fixed affinity: device time; kernels reported
 *   bench-share alone     `hard` alone at 1 … 90 %
 *   bench-share unequal   kernels of 20 us beside 2 ms, and 2 ms beside 50 ms
 *
 * The error, over a window: device time charged / deliverable time, less the
 * promise.  Windows come from one continuous run per case, slid by 1 s: of 10 s, and of
 * 60 s for the async cases; the broker's own counters are the evidence, read every 100 ms.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "lease_load.h"
#include "stats.h"

#define MAX_LEASES  3
#define MAX_SAMPLES 4000

struct member {
    double percent;
    const char *mode; /* of bench-load */
    double kernel_us;
    unsigned gap_us;
};

struct scene {
    const char *label;
    struct member member[MAX_LEASES];
};

#define ASYNC(share)            \
    {                           \
        share, "async", 1000, 0 \
    }
#define WAIT(share)              \
    {                            \
        share, "wait", 1000, 200 \
    }
#define GAP(share)             \
    {                          \
        share, "gap", 300, 500 \
    }
#define QUEUES(share)            \
    {                            \
        share, "queues", 1000, 0 \
    }

static const struct scene pinned[] = {
    { "50/50 async", { ASYNC(50), ASYNC(50) } },
    { "30/70 async", { ASYNC(30), ASYNC(70) } },
    { "10/90 async", { ASYNC(10), ASYNC(90) } },
    { "1/99 async", { ASYNC(1), ASYNC(99) } },
    { "5/5/90 async", { ASYNC(5), ASYNC(5), ASYNC(90) } },
    { "50/50 wait", { WAIT(50), WAIT(50) } },
    { "30/70 wait", { WAIT(30), WAIT(70) } },
    { "10/90 wait", { WAIT(10), WAIT(90) } },
    { "1/99 wait", { WAIT(1), WAIT(99) } },
    { "5/5/90 wait", { WAIT(5), WAIT(5), WAIT(90) } },
    { "50/50 gap", { GAP(50), GAP(50) } },
    { "30/70 gap", { GAP(30), GAP(70) } },
    { "10/90 gap", { GAP(10), GAP(90) } },
    { "1/99 gap", { GAP(1), GAP(99) } },
    { "5/5/90 gap", { GAP(5), GAP(5), GAP(90) } },
    { "50/50 queues", { QUEUES(50), QUEUES(50) } },
    { "30/70 queues", { QUEUES(30), QUEUES(70) } },
    { "10/90 queues", { QUEUES(10), QUEUES(90) } },
    { "1/99 queues", { QUEUES(1), QUEUES(99) } },
    { "5/5/90 queues", { QUEUES(5), QUEUES(5), QUEUES(90) } },
    { NULL, { { 0 } } },
};

static const struct scene cores[] = {
    { "50/50 async", { ASYNC(50), ASYNC(50) } },
    { "30/70 async", { ASYNC(30), ASYNC(70) } },
    { "10/90 async", { ASYNC(10), ASYNC(90) } },
    { "1/99 async", { ASYNC(1), ASYNC(99) } },
    { "5/5/90 async", { ASYNC(5), ASYNC(5), ASYNC(90) } },
    { "30/70 wait", { WAIT(30), WAIT(70) } },
    { NULL, { { 0 } } },
};

static const struct scene alone[] = {
    { "1 % alone", { ASYNC(1) } },
    { "5 % alone", { ASYNC(5) } },
    { "10 % alone", { ASYNC(10) } },
    { "30 % alone", { ASYNC(30) } },
    { "50 % alone", { ASYNC(50) } },
    { "90 % alone", { ASYNC(90) } },
    { NULL, { { 0 } } },
};

static const struct scene unequal[] = {
    { "20 us beside 2 ms, 50/50", { { 50, "async", 20, 0 }, { 50, "async", 2000, 0 } } },
    { "2 ms beside 50 ms, 50/50", { { 50, "async", 2000, 0 }, { 50, "async", 50000, 0 } } },
    { NULL, { { 0 } } },
};

static const struct set {
    const char *name, *question;
    const struct scene *scenes;
    bool one_thread;
    int seconds;       /* of an async case: some windows of 60 s */
    int other_seconds; /* of the others: windows of 10 s */
} sets[] = {
    { "pinned", "share error, a one-thread device pinned to one core", pinned, true, 63,
      30 },
    { "cores", "share error, all cores with fixed affinity", cores, false, 63, 30 },
    { "alone", "share error of `hard` leases alone", alone, true, 63, 30 },
    { "unequal", "share error of unequal kernels", unequal, true, 63, 30 },
};

/* One run: samples every 100 ms, and the kernels each program says it completed. */
struct take {
    struct share_sample sample[MAX_SAMPLES];
    size_t samples;
    uint64_t number[MAX_LEASES]; /* of the leases, in member order */
    size_t members;
    double kernels_per_s[MAX_LEASES];
};

/* Until every program runs, and what the driver spent on compiling its kernel (some 60 ms of device
 * time, charged) has been paid back by the smallest share. */
static void wait_settled(const struct scene *scene, char out[][96], size_t members)
{
    double least = 100;
    for (size_t i = 0; i < members; i++) {
        struct stat file = { 0 };
        for (int tries = 0; tries < 600 && (stat(out[i], &file) || !file.st_size); tries++)
            usleep(50000);
        least = fmin(least, scene->member[i].percent);
    }
    usleep((useconds_t)((1 + 8 / least) * 1e6));
}

static void run_scene(struct stage *s, const struct scene *scene, const struct set *set,
                      int seconds, struct take *take)
{
    pid_t pid[MAX_LEASES];
    char out[MAX_LEASES][96];
    uint64_t start_ns = clock_now_ns() + 1500 * NS_PER_MS;
    take->samples = take->members = 0;

    struct share_sample before;
    stage_sample(s, &before);
    for (size_t i = 0; i < MAX_LEASES && scene->member[i].mode; i++) {
        const struct member *m = &scene->member[i];
        struct load load = { m->mode,  m->kernel_us,    m->gap_us, 3600,
                             start_ns, set->one_thread, false };
        char share[32];
        snprintf(out[i], sizeof out[i], "%s/load%zu", s->dir, i);
        snprintf(share, sizeof share, "%g", m->percent);
        const char *options[] = { "--mem", "256MiB", "--compute", share, NULL };
        pid[i] = load_start(s, &load, options, out[i]);
        take->members++;
        /* leases are numbered in the order of their grant: wait for this one */
        for (int tries = 0; tries < 100; tries++) {
            struct share_sample now;
            stage_sample(s, &now);
            uint64_t newest = now.count ? now.lease[now.count - 1].number : 0;
            if (now.count && stage_find(&before, newest) < 0 &&
                (i == 0 || newest > take->number[i - 1])) {
                take->number[i] = newest;
                break;
            }
            usleep(20000);
        }
    }
    wait_settled(scene, out, take->members);
    uint64_t from_ns = clock_now_ns(), next = from_ns,
             end = next + (uint64_t)seconds * NS_PER_S;
    for (; next <= end && take->samples < MAX_SAMPLES; next += 100 * NS_PER_MS) {
        uint64_t now = clock_now_ns();
        if (next > now)
            usleep((useconds_t)((next - now) / 1000));
        stage_sample(s, &take->sample[take->samples++]);
    }
    for (size_t i = 0; i < take->members; i++) {
        kill(pid[i], SIGTERM);
        stage_wait(pid[i]);
        take->kernels_per_s[i] = load_rate(out[i], from_ns, next);
    }
}

/* Errors in percentage points of every window of `window_s`, slid by 1 s. */
static size_t errors(const struct take *take, size_t member, double percent,
                     double window_s, double *out, size_t room)
{
    size_t n = 0;
    size_t span = (size_t)(window_s * 10);
    for (size_t i = 0; i + span < take->samples && n < room; i += 10) {
        const struct share_sample *a = &take->sample[i], *b = &take->sample[i + span];
        int x = stage_find(a, take->number[member]),
            y = stage_find(b, take->number[member]);
        if (x < 0 || y < 0)
            continue;
        double held = (double)(b->lease[y].held_ns - a->lease[x].held_ns);
        double deliverable = (double)(b->deliverable_ns - a->deliverable_ns);
        out[n++] = fabs(held / deliverable * 100 - percent);
    }
    return n;
}

struct pool {
    double *value;
    size_t n;
};

/* F + L as it was: how long a lease of the case held past its deadlines, on average of the
 * turns between the worst two samples. */
static double worst_overrun_s(const struct take *take)
{
    uint64_t worst = 0;
    for (size_t i = 0; i + 1 < take->samples; i++) {
        const struct share_sample *a = &take->sample[i], *b = a + 1;
        for (size_t k = 0; k < take->members; k++) {
            int x = stage_find(a, take->number[k]), y = stage_find(b, take->number[k]);
            if (x < 0 || y < 0)
                continue;
            uint64_t overrun = b->lease[y].overrun_ns - a->lease[x].overrun_ns;
            uint64_t turns = max_u64(b->lease[y].turns - a->lease[x].turns, 1);
            worst = max_u64(worst, overrun / turns);
        }
    }
    return (double)worst / 1e9;
}

/* B: as credit, one turn of this lease.  The smallest lease has 10 ms, at most 2.5 % of its
 * share of 10 s, and others in proportion. */
static double turn_s(const struct scene *scene, size_t member)
{
    double least = 100;
    for (size_t i = 0; i < MAX_LEASES && scene->member[i].mode; i++)
        least = fmin(least, scene->member[i].percent);
    return fmin(10e-3, 0.25 * least / 100) * scene->member[member].percent / least;
}

static void report_windows(struct report *r, const struct scene *scene,
                           const struct take *take, double window_s, struct pool *pool)
{
    double overrun = worst_overrun_s(take);
    for (size_t i = 0; i < take->members; i++) {
        static double value[MAX_SAMPLES];
        double percent = scene->member[i].percent;
        size_t n = errors(take, i, percent, window_s, value, MAX_SAMPLES);
        if (!n)
            continue;
        char name[128], note[128];
        for (size_t k = 0; pool && k < n; k++)
            pool->value[pool->n++] = value[k];
        double p95 = stats_quantile(value, n, 0.95), max = stats_max(value, n);
        double goal = window_s >= 60   ? 0.1
                      : window_s >= 10 ? fmin(1.0, percent * 0.05)
                                       : NAN;
        double bound = (overrun + turn_s(scene, i)) / window_s * 100;
        snprintf(name, sizeof name, "%s: %g %% over %g s", scene->label, percent, window_s);
        snprintf(note, sizeof note, "%zu disjoint; F+L seen %.1f ms, (F+L+B)/W = %.3f pp",
                 (size_t)((double)take->samples / 10 / window_s), overrun * 1e3, bound);
        report_add(r, &(struct row){ name, "pp", isnan(p95) ? "max" : "p95",
                                     isnan(p95) ? max : p95, NAN, NAN, goal, n, note });
    }
}

/* Share of kernels among equal programs, each normalised by its own rate alone. */
static void report_kernels(struct report *r, const struct scene *scene,
                           const struct take *take, const double *alone_rate)
{
    double sum = 0;
    for (size_t i = 0; i < take->members; i++)
        sum += take->kernels_per_s[i] / alone_rate[i];
    double promised = 0;
    for (size_t i = 0; i < take->members; i++)
        promised += scene->member[i].percent;
    for (size_t i = 0; i < take->members; i++) {
        double part = take->kernels_per_s[i] / alone_rate[i];
        double got = take->members > 1 ? part / sum * promised : part * 100;
        char name[128], note[128];
        snprintf(name, sizeof name, "%s: %g %% as kernels", scene->label,
                 scene->member[i].percent);
        snprintf(note, sizeof note, "got %.2f %%; sum of rates %.1f %% of alone", got,
                 sum * 100);
        report_add(r,
                   &(struct row){ name, "pp", "error", fabs(got - scene->member[i].percent),
                                  NAN, NAN, NAN, 1, note });
    }
}

/* Rate of a program with the whole device and the same front. */
static double rate_alone(struct stage *s, const struct member *m, const struct set *set,
                         int seconds)
{
    static struct {
        const struct set *set;
        struct member m;
        double rate;
    } known[16];
    size_t i = 0;
    for (; i < ARRAY_LEN(known) && known[i].set; i++)
        if (known[i].set == set && !strcmp(known[i].m.mode, m->mode) &&
            known[i].m.kernel_us == m->kernel_us && known[i].m.gap_us == m->gap_us)
            return known[i].rate;
    static struct take take;
    struct scene scene = { "alone", { *m } };
    scene.member[0].percent = 100;
    run_scene(s, &scene, set, seconds, &take);
    if (i < ARRAY_LEN(known)) {
        known[i].set = set;
        known[i].m = *m;
        known[i].rate = take.kernels_per_s[0];
    }
    return take.kernels_per_s[0];
}

static int run_set(const struct set *set, const char *only)
{
    bool quick = getenv("QUICK") != NULL;
    load_environment(set->one_thread);

    struct stage stage;
    stage_open(&stage, set->one_thread ? 1 : -1, NULL);
    char name[64];
    snprintf(name, sizeof name, "share-%s", set->name);
    struct report *r = report_open(name, set->question);
    static double all[1 << 20];
    struct pool pool = { all, 0 };
    static struct take take;
    for (const struct scene *scene = set->scenes; scene->label; scene++) {
        if (only && !strstr(scene->label, only))
            continue;
        double alone_rate[MAX_LEASES];
        for (size_t i = 0; i < MAX_LEASES && scene->member[i].mode; i++)
            alone_rate[i] = rate_alone(&stage, &scene->member[i], set, quick ? 2 : 6);
        bool is_async = !strcmp(scene->member[0].mode, "async");
        const char *given = getenv("BENCH_SECONDS");
        int seconds = given      ? atoi(given)
                      : quick    ? 12
                      : is_async ? set->seconds
                                 : set->other_seconds;
        run_scene(&stage, scene, set, seconds, &take);
        report_windows(r, scene, &take, 1, NULL);
        report_windows(r, scene, &take, 10, &pool);
        report_windows(r, scene, &take, 60, NULL);
        report_kernels(r, scene, &take, alone_rate);
    }
    double p95 = stats_quantile(pool.value, pool.n, 0.95);
    report_add(r,
               &(struct row){ "all cases, 10 s windows", "pp", isnan(p95) ? "max" : "p95",
                              isnan(p95) ? stats_max(pool.value, pool.n) : p95, NAN, NAN,
                              1.0, pool.n, NULL });
    report_picture(r, "over 10 s", "error in percentage points");
    stage_close(&stage);
    return report_close(r);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(sets); i++)
        if (!strcmp(sets[i].name, argv[1]))
            return run_set(&sets[i], argc > 2 ? argv[2] : NULL);
    fprintf(stderr, "usage: bench-share pinned|cores|alone|unequal [CASE]\n");
    return 2;
}
