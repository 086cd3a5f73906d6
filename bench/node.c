/*
 * bench-node: the node's own costs and promises, each a row:
 *
 *   bench-node memory   reserve + commit, beside a socket round trip of this machine
 *   bench-node races    two processes race for the last byte
 *   bench-node start    `sluice run` to the program's first instruction, agent up
 *   bench-node death    kill -9 observed by the broker to its bytes back
 *   bench-node crowd    300 processes of one lease at once; 2,000 clients
 *
 * No accelerator is used: these rows run on an *emulated* card and say so.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "stage.h"
#include "stats.h"

#define MAX_VALUES 200000

/* The broker logs at most 50 lines a second that clients cause, and a process that comes and
 * is killed causes three: hello, suspect, death. */
#define ROUND_NS (NS_PER_S * 3 / 45)

static const char *const emulated[] = { "--emulate", "a100-80g:1", NULL };

static void add_tail(struct report *r, const char *name, const char *unit, double *value,
                     size_t n, double q, double goal, const char *note)
{
    double tail = stats_quantile(value, n, q);
    char label[16];
    snprintf(label, sizeof label, "p%g", q * 100);
    report_add(r, &(struct row){ name, unit, isnan(tail) ? "max" : label,
                                 isnan(tail) ? stats_max(value, n) : tail, NAN, NAN, goal,
                                 n, note });
}

static void add_median(struct report *r, const char *name, const char *unit, double *value,
                       size_t n, const char *note)
{
    double low, high;
    stats_median_interval(value, n, &low, &high);
    report_add(r, &(struct row){ name, unit, "median", stats_median(value, n), low, high,
                                 NAN, n, note });
}

/* Run bench-client in a lease of `mem`; its output is left in `out`. */
static pid_t start_client(struct stage *s, const char *mem, const char *const *words,
                          const char *out)
{
    const char *options[] = { "--mem", mem, "--compute", "1", NULL };
    const char *argv[8] = { stage_program(s, "bench-client") };
    for (size_t n = 1; *words && n < ARRAY_LEN(argv) - 1; n++)
        argv[n] = *words++;
    return stage_run(s, options, argv, out);
}

static int memory(struct stage *s, struct report *r, bool quick)
{
    static double ask[MAX_VALUES], trip[MAX_VALUES];
    char path[96];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/out", s->dir);
    const char *words[] = { "reserve", quick ? "2000" : "20000", NULL };
    int status = stage_wait(start_client(s, "1GiB", words, path));
    FILE *f = fopen(path, "re");
    while (f && n < MAX_VALUES && fscanf(f, "%lf %lf", &ask[n], &trip[n]) == 2)
        n++;
    if (f)
        fclose(f);
    add_median(r, "reserve + commit", "ns", ask, n, "emulated card");
    add_median(r, "socket round trip of this machine", "ns", trip, n, NULL);
    return status;
}

static int races(struct stage *s, struct report *r, bool quick)
{
    char path[96], line[128] = "";
    snprintf(path, sizeof path, "%s/out", s->dir);
    const char *words[] = { "race", quick ? "1000" : "10000", "1073741824", NULL };
    int status = stage_wait(start_client(s, "1GiB", words, path));
    int count = 0;
    long long won = 0, over = -1;
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f))
        sscanf(line, "%d races, %lld won, %lld over", &count, &won, &over);
    if (f)
        fclose(f);
    char note[96];
    snprintf(note, sizeof note, "0 of n is <= 3/n = %.1e; emulated card",
             3.0 / (count ? count : 1));
    report_add(r, &(struct row){ "races won by both", "", "count", (double)over, NAN, NAN,
                                 0, (size_t)count, note });
    return status;
}

static int start(struct stage *s, struct report *r, bool quick)
{
    size_t n = quick ? 100 : 1000;
    static double took[MAX_VALUES];
    char path[96];
    snprintf(path, sizeof path, "%s/out", s->dir);
    const char *words[] = { "first", NULL };
    size_t good = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = clock_now_ns();
        unsigned long long then = 0;
        int status = stage_wait(start_client(s, "16MiB", words, path));
        FILE *f = fopen(path, "re");
        if (!status && f && fscanf(f, "%llu", &then) == 1)
            took[good++] = (double)(then - begin) / 1e6;
        if (f)
            fclose(f);
    }
    add_median(r, "`run` to first instruction", "ms", took, good, "emulated card");
    add_tail(r, "`run` to first instruction, tail", "ms", took, good, 0.99, 50, NULL);
    report_add(r, &(struct row){ "starts that failed", "", "count", (double)(n - good), NAN,
                                 NAN, 0, n, NULL });
    return 0;
}

/* The newest client of the broker with at least `bytes`; 0 if none. */
static pid_t find_holder(struct stage *s, uint64_t bytes)
{
    uint64_t cursor = 0;
    for (;;) {
        struct proto_ctl m = { .kind = PROTO_CTL_STAT_CLIENT, .cursor = cursor };
        if (stage_call(s, &m))
            return 0;
        if (m.client_stat.bytes >= bytes)
            return m.client_stat.pid;
        if (!m.more)
            return 0;
        cursor = m.cursor;
    }
}

/* What the broker logged of each death: milliseconds from seeing it to having the bytes. */
static size_t read_freed(const struct stage *s, double *ms, size_t room)
{
    char path[96], line[512], *found;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/broker.log", s->dir);
    FILE *f = fopen(path, "re");
    while (f && n < room && fgets(line, sizeof line, f))
        if ((found = strstr(line, " freed_in_ns=")))
            ms[n++] = strtod(found + strlen(" freed_in_ns="), NULL) / 1e6;
    if (f)
        fclose(f);
    return n;
}

static uint64_t used_bytes(struct stage *s)
{
    struct proto_ctl m = { .kind = PROTO_CTL_STAT_DEVICE };
    stage_call(s, &m);
    return m.device_stat.used_bytes;
}

static int death(struct stage *s, struct report *r, bool quick)
{
    size_t n = quick ? 50 : 1000;
    static double took[MAX_VALUES];
    size_t good = 0;
    const char *words[] = { "hold", "1073741824", NULL };
    for (size_t i = 0; i < n; i++) {
        pid_t run = start_client(s, "1GiB", words, NULL), holder = 0;
        for (int tries = 0; tries < 2000 && !(holder = find_holder(s, 1u << 30)); tries++)
            usleep(500);
        if (!holder)
            break;
        uint64_t begin = clock_now_ns();
        kill(holder, SIGKILL);
        while (used_bytes(s) && clock_now_ns() - begin < 5 * NS_PER_S)
            ;
        took[good++] = (double)(clock_now_ns() - begin) / 1e6;
        stage_wait(run);
        while (clock_now_ns() - begin < ROUND_NS)
            usleep(1000);
    }
    static double freed[MAX_VALUES];
    size_t deaths = read_freed(s, freed, MAX_VALUES);
    add_median(r, "death observed to bytes back, in the broker", "ms", freed, deaths,
               "emulated card");
    add_tail(r, "death observed to bytes back, in the broker, tail", "ms", freed, deaths,
             0.99, 1.0, NULL);
    add_median(r, "kill -9 to bytes back, seen from outside", "ms", took, good,
               "includes the kernel's own teardown");
    add_tail(r, "kill -9 to bytes back, tail", "ms", took, good, 0.99, NAN, NULL);
    report_add(r, &(struct row){ "deaths missing in the broker's log", "", "count",
                                 (double)(good - deaths), NAN, NAN, 0, good, NULL });
    return good == n ? 0 : 1;
}

static int crowd(struct stage *s, struct report *r, bool quick)
{
    static const int sizes[] = { 300, 1000, 2000 };
    char path[96];
    int failed = 0;
    snprintf(path, sizeof path, "%s/out", s->dir);
    for (size_t i = 0; i < (quick ? 1 : ARRAY_LEN(sizes)); i++) {
        char count[16], name[64];
        snprintf(count, sizeof count, "%d", sizes[i]);
        snprintf(name, sizeof name, "%d processes of one lease at once", sizes[i]);
        const char *words[] = { "crowd", count, NULL };
        stage_wait(start_client(s, "1GiB", words, path));
        int served = 0, of = 0;
        unsigned long long ns = 0;
        FILE *f = fopen(path, "re");
        if (!f || fscanf(f, "%d of %d served in %llu ns", &served, &of, &ns) != 3)
            failed = 1;
        if (f)
            fclose(f);
        char note[64];
        snprintf(note, sizeof note, "%d served; %.3f ms each; emulated card", served,
                 served ? (double)ns / 1e6 / served : 0);
        report_add(r, &(struct row){ name, "ms", "total", (double)ns / 1e6, NAN, NAN, NAN,
                                     (size_t)served, note });
        report_add(r, &(struct row){ "not served", "", "count", sizes[i] - served, NAN, NAN,
                                     0, (size_t)sizes[i], NULL });
    }
    return failed;
}

static const struct {
    const char *name, *question;
    int (*run)(struct stage *, struct report *, bool quick);
} questions[] = {
    { "memory", "what a reservation costs (emulated card)", memory },
    { "races", "two processes race for the last byte (emulated card)", races },
    { "start", "`sluice run` to the first instruction (emulated card)", start },
    { "death", "a killed process's bytes come back (emulated card)", death },
    { "crowd", "many processes of one lease at once (emulated card)", crowd },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(questions); i++) {
        if (strcmp(questions[i].name, argv[1]))
            continue;
        struct stage stage;
        stage_open(&stage, -1, emulated);
        struct report *r = report_open(questions[i].name, questions[i].question);
        int failed = questions[i].run(&stage, r, getenv("QUICK") != NULL);
        stage_close(&stage);
        return report_close(r) | failed;
    }
    fprintf(stderr, "usage: bench-node memory|races|start|death|crowd\n");
    return 2;
}
