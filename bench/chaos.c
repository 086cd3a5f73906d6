/*
 * bench-chaos: kill -9 of a random process, again and again: nothing may leak or hang, and two
 * witnesses that nobody kills must keep their share of the device.
 *
 * Each round starts victims until there are four, picks one of: a victim's program, its
 * shim, its `sluice run`, the agent, the broker; kills it with SIGKILL; and waits
 * for what must follow (seconds, not minutes: more is a hang).  At the end everything is
 * released and nothing may be left: no bytes, no clients, no processes, no cgroups.
 *
 * The witnesses' share is device time by the counters of each broker while it lives; kernels,
 * against 10 s before the first kill, stand beside it: they count the times without a broker too.
 *
 *   KILLS=500 bench-chaos    (default 500, QUICK 25)
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/client.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/macros.h"
#include "lease_load.h"
#include "stats.h"

#define VICTIMS     4
#define PATIENCE_NS (15 * NS_PER_S)
#define ROUND_NS    (500 * NS_PER_MS) /* a start costs the host threads' core some 150 ms */

enum target { PROGRAM, SHIM, RUN, AGENT, BROKER, TARGETS };

struct victim {
    pid_t run; /* our child: `sluice run`; 0: none */
    char name[16];
};

#define MAX_KILLS 10000
#define WITNESSES 2
static const double promise[WITNESSES] = { 40, 20 }; /* percent */

struct chaos {
    struct stage stage;
    struct share_sample last; /* of the broker that lives; count 0: none yet */
    uint64_t held_ns[WITNESSES], deliverable_ns;
    double away_ms[MAX_KILLS]; /* from the kill of a broker to the next one's answer */
    struct victim victim[VICTIMS];
    unsigned random, named;
    int kills[TARGETS], hangs, leaks;
};

/* GET of the API; NULL while no agent answers. */
static json_t *ask(struct chaos *c, const char *path)
{
    char socket[96];
    struct sl_err err;
    json_t *out = NULL;
    snprintf(socket, sizeof socket, "%s/agent.sock", c->stage.dir);
    struct client *client = client_create(socket, &err);
    if (client)
        client_call(client, "GET", path, NULL, 5000, &out, NULL, &err);
    client_destroy(client);
    return out;
}

static void tell(struct chaos *c, const char *command, const char *operand)
{
    const char *argv[] = { stage_program(&c->stage, "sluice"),
                           "--run-dir",
                           c->stage.dir,
                           command,
                           operand,
                           NULL };
    stage_wait(stage_spawn(argv, NULL, -1));
}

static json_t *find_lease(json_t *leases, const char *name)
{
    size_t i;
    json_t *lease;
    json_array_foreach(json_object_get(leases, "leases"), i, lease)
        if (!strcmp(json_string_value(json_object_get(lease, "name")) ?: "", name))
            return lease;
    return NULL;
}

static pid_t shim_of(struct chaos *c, const char *name)
{
    json_t *leases = ask(c, "/v1/leases");
    json_t *lease = find_lease(leases, name);
    pid_t pid =
        (pid_t)json_integer_value(json_object_get(json_object_get(lease, "shim"), "pid"));
    json_decref(leases);
    return pid;
}

static pid_t child_of(pid_t parent)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%d", &pid) != 1)
            pid = 0;
        fclose(f);
    }
    return pid;
}

static void wait_dead(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return;
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    poll(&wait, 1, PATIENCE_NS / NS_PER_MS);
    close(fd);
}

static bool lease_is_gone(struct chaos *c, const char *name)
{
    json_t *leases = ask(c, "/v1/leases");
    bool gone = leases && !find_lease(leases, name);
    json_decref(leases);
    return gone;
}

/* They are the first two leases: numbers 1 and 2. */
static bool shows_witnesses(const struct share_sample *s)
{
    return s->count >= WITNESSES && s->lease[WITNESSES - 1].number == WITNESSES;
}

/* What the witnesses had since the last look at this broker. */
static void look(struct chaos *c)
{
    struct share_sample now;
    const struct share_sample *last = &c->last;
    struct proto_ctl device = { .kind = PROTO_CTL_STAT_DEVICE };
    if (stage_call(&c->stage, &device))
        return; /* a new broker was not told of it yet */
    stage_sample(&c->stage, &now);
    if (shows_witnesses(last) && shows_witnesses(&now)) {
        c->deliverable_ns += now.deliverable_ns - last->deliverable_ns;
        for (int i = 0; i < WITNESSES; i++)
            c->held_ns[i] += now.lease[i].held_ns - last->lease[i].held_ns;
    }
    c->last = now;
}

/* Until another broker answers: a dying one's socket can still be connected to. */
static bool reconnect(struct chaos *c, pid_t killed)
{
    for (uint64_t begin = clock_now_ns(); clock_now_ns() - begin < PATIENCE_NS;
         usleep(2000)) {
        struct proto_ctl info = { .kind = PROTO_CTL_INFO };
        close(c->stage.control);
        if (stage_reconnect(&c->stage) && stage_try(&c->stage, &info) && !info.code &&
            info.info.pid != killed) {
            c->away_ms[c->kills[BROKER] - 1] = (double)(clock_now_ns() - begin) / 1e6;
            return true;
        }
    }
    return false;
}

/* Returns when it has its lease. */
static pid_t start_load(struct chaos *c, const char *name, double percent, const char *out)
{
    char share[16];
    snprintf(share, sizeof share, "%g", percent);
    struct load load = { "async", 500, 0, 36000, 0, true, false };
    const char *options[] = { "--mem", "64MiB", "--compute", share, "--name", name, NULL };
    pid_t run = load_start(&c->stage, &load, options, out);
    for (uint64_t begin = clock_now_ns(); clock_now_ns() - begin < PATIENCE_NS;
         usleep(20000))
        if (shim_of(c, name))
            return run;
    fprintf(stderr, "bench-chaos: %s did not start\n", name);
    c->hangs++;
    return run;
}

static void start_victim(struct chaos *c, struct victim *v)
{
    snprintf(v->name, sizeof v->name, "victim-%u", c->named++);
    v->run = start_load(c, v->name, 5, NULL);
}

static void start_victims(struct chaos *c)
{
    for (size_t k = 0; k < VICTIMS; k++)
        if (!c->victim[k].run)
            start_victim(c, &c->victim[k]);
}

/* The victim's `sluice run` must return and its lease must go. */
static void expect_end(struct chaos *c, struct victim *v)
{
    uint64_t begin = clock_now_ns();
    bool gone = false;
    while (clock_now_ns() - begin < PATIENCE_NS) {
        if (v->run && waitpid(v->run, NULL, WNOHANG) == v->run)
            v->run = 0;
        if (!v->run && (gone = lease_is_gone(c, v->name)))
            return;
        usleep(20000);
    }
    fprintf(stderr, "bench-chaos: %s: %s\n", v->name,
            v->run ? "run did not return" : "lease stays");
    c->hangs++;
    if (v->run) {
        kill(v->run, SIGKILL);
        waitpid(v->run, NULL, 0);
        v->run = 0;
    }
}

static void kill_one(struct chaos *c, enum target target)
{
    struct victim *v = &c->victim[rand_r(&c->random) % VICTIMS];
    struct proto_ctl info = { .kind = PROTO_CTL_INFO };
    json_t *node;
    pid_t shim, pid = 0;
    switch (target) {
    case PROGRAM:
        shim = shim_of(c, v->name);
        pid = shim ? child_of(shim) : 0;
        break;
    case SHIM:
        pid = shim_of(c, v->name);
        break;
    case RUN:
        pid = v->run;
        break;
    case AGENT:
        node = ask(c, "/v1/node");
        pid = (pid_t)json_integer_value(json_object_get(node, "pid"));
        json_decref(node);
        break;
    case BROKER:
        if (!stage_call(&c->stage, &info))
            pid = info.info.pid;
        break;
    case TARGETS:
        return;
    }
    if (pid <= 1)
        return;
    look(c);
    kill(pid, SIGKILL);
    c->kills[target]++;
    switch (target) {
    case PROGRAM:
    case SHIM:
        expect_end(c, v);
        break;
    case RUN: /* the job goes on without it; then we release it */
        waitpid(v->run, NULL, 0);
        v->run = 0;
        if (!shim_of(c, v->name)) {
            fprintf(stderr, "bench-chaos: %s ended with its `sluice run`\n", v->name);
            c->leaks++;
        }
        tell(c, "release", v->name);
        expect_end(c, v);
        break;
    case AGENT:
        wait_dead(pid); /* else `up` may still find it at work */
        tell(c, "up", NULL);
        break;
    case BROKER:
        c->last.count = 0;
        if (!reconnect(c, pid)) {
            fprintf(stderr, "bench-chaos: the broker did not come back\n");
            c->hangs++;
        }
        break;
    case TARGETS:
        break;
    }
}

/* Processes whose command line names our run directory. */
static int processes_left(struct chaos *c)
{
    int left = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && (e = readdir(proc));) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        FILE *f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (!f)
            continue;
        size_t n = fread(line, 1, sizeof line - 1, f);
        fclose(f);
        line[n] = 0;
        if (n && memmem(line, n, c->stage.dir, strlen(c->stage.dir)))
            left++;
    }
    if (proc)
        closedir(proc);
    return left;
}

static void release_all(struct chaos *c, pid_t *witness)
{
    for (size_t i = 0; i < VICTIMS; i++)
        if (c->victim[i].run) {
            tell(c, "release", c->victim[i].name);
            expect_end(c, &c->victim[i]);
        }
    for (int i = 0; i < WITNESSES; i++) {
        kill(witness[i], SIGTERM);
        stage_wait(witness[i]);
    }
    for (uint64_t begin = clock_now_ns(); clock_now_ns() - begin < PATIENCE_NS;
         usleep(50000)) {
        struct proto_ctl m = { .kind = PROTO_CTL_STAT_DEVICE },
                         lease = { .kind = PROTO_CTL_STAT_LEASE };
        if (!stage_call(&c->stage, &m) && !m.device_stat.used_bytes &&
            stage_call(&c->stage, &lease) == -SL_NOT_FOUND)
            return;
    }
    fprintf(stderr, "bench-chaos: the broker still holds something\n");
    c->leaks++;
}

static void report_witness(struct report *r, const struct chaos *c, int i,
                           double kernels_lost)
{
    char name[96], note[160];
    double had = 100.0 * (double)c->held_ns[i] / (double)c->deliverable_ns;
    snprintf(name, sizeof name, "witness at %g %%: device time lost of its promise",
             promise[i]);
    snprintf(note, sizeof note, "had %.3f %% of %.0f s by the brokers' counters", had,
             (double)c->deliverable_ns / 1e9);
    report_add(r, &(struct row){ name, "%", "mean", (1 - had / promise[i]) * 100, NAN, NAN,
                                 3.0, 1, note });
    snprintf(name, sizeof name, "witness at %g %%: kernels lost", promise[i]);
    report_add(r, &(struct row){ name, "%", "mean", kernels_lost * 100, NAN, NAN, NAN, 1,
                                 "against 10 s before the first kill" });
}

int main(void)
{
    static struct chaos c = { .random = 20260401 };
    int rounds = getenv("KILLS") ? atoi(getenv("KILLS")) : getenv("QUICK") ? 25 : 500;
    rounds = rounds > MAX_KILLS ? MAX_KILLS : rounds;
    cpu_set_t cpu1;
    CPU_ZERO(&cpu1);
    CPU_SET(1, &cpu1);
    /* what starts and ends leaves the device alone */
    sched_setaffinity(0, sizeof cpu1, &cpu1);
    load_environment(true);
    stage_open(&c.stage, 1, NULL);
    struct report *r = report_open(
        "chaos", "kill -9 of a random process of lease, shim, client, agent, broker");

    pid_t witness[WITNESSES];
    char out[WITNESSES][96];
    for (int i = 0; i < WITNESSES; i++) {
        snprintf(out[i], sizeof out[i], "%s/witness%d", c.stage.dir, i);
        witness[i] = start_load(&c, i ? "witness-1" : "witness-0", promise[i], out[i]);
    }
    start_victims(&c);
    sleep(2);
    uint64_t begin_ns = clock_now_ns();
    sleep(10);
    uint64_t calm_ns = clock_now_ns();
    double calm[WITNESSES], during[WITNESSES];
    for (int i = 0; i < WITNESSES; i++)
        calm[i] = load_rate(out[i], begin_ns, calm_ns);

    for (int i = 0; i < rounds; i++) {
        uint64_t next_ns = clock_now_ns() + ROUND_NS;
        start_victims(&c);
        kill_one(&c, (enum target)(rand_r(&c.random) % TARGETS));
        for (; clock_now_ns() < next_ns; usleep(20000))
            look(&c);
    }
    look(&c);
    for (int i = 0; i < WITNESSES; i++)
        during[i] = load_rate(out[i], calm_ns, UINT64_MAX);
    release_all(&c, witness);
    stage_close_keep(&c.stage);
    int left = 0;
    for (uint64_t begin = clock_now_ns(); clock_now_ns() - begin < PATIENCE_NS;
         usleep(50000))
        if (!(left = processes_left(&c)))
            break;
    int kills = 0;
    for (int t = 0; t < TARGETS; t++)
        kills += c.kills[t];
    char note[160];
    snprintf(note, sizeof note,
             "program %d, shim %d, run %d, agent %d, broker %d; 0 of n is <= 3/n",
             c.kills[PROGRAM], c.kills[SHIM], c.kills[RUN], c.kills[AGENT],
             c.kills[BROKER]);
    report_add(r, &(struct row){ "kills that hung something", "", "count", c.hangs, NAN,
                                 NAN, 0, (size_t)kills, note });
    report_add(r, &(struct row){ "leaks: bytes, leases, processes", "", "count",
                                 c.leaks + left, NAN, NAN, 0, (size_t)kills, NULL });
    for (int i = 0; i < WITNESSES; i++)
        report_witness(r, &c, i, 1 - during[i] / calm[i]);
    double low, high;
    stats_median_interval(c.away_ms, (size_t)c.kills[BROKER], &low, &high);
    report_add(r, &(struct row){ "kill of the broker to the next one's answer", "ms",
                                 "median", stats_median(c.away_ms, (size_t)c.kills[BROKER]),
                                 low, high, NAN, (size_t)c.kills[BROKER], NULL });
    stage_remove(&c.stage);
    return report_close(r);
}
