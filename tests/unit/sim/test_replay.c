/* Logs of the scheduler core as files: written by a run, replayed, and what is said of those
 * that differ, are cut or are none. */
#include "ask.h"

#include <unistd.h>

#include "sched/log.h"
#include "sim/schedlog.h"

static char dir[] = "/tmp/sluice-replay-XXXXXX";

/* A line in which every @ is the directory. */
static const struct answer *ask_in(const char *line)
{
    char full[1000];
    size_t at = 0;
    for (; *line && at < sizeof full - sizeof dir; line++) {
        if (*line == '@')
            at += (size_t)snprintf(full + at, sizeof full - at, "%s", dir);
        else
            full[at++] = *line;
    }
    full[at] = '\0';
    return ask(full);
}

static void put(const char *name, const void *bytes, size_t size)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
        abort();
}

static void add_event(struct buf *log, struct sched *s, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    sched_log_event(log, e);
    int rc = sched_apply(s, e, &d, &count, NULL);
    sched_log_outcome(log, rc, d, count);
}

/* A node, a request that is granted, one that is refused. */
static void small_log(struct buf *log, struct sched **out)
{
    static struct sched_option o = {
        .group_count = 1, .group = { { { .devices = 1, .permille = 500 }, 1 } }
    };
    struct sched_event e = { .kind = SCHED_ADD_NODE };
    struct sched_policy policy;
    struct sched *s;
    sched_policy_init(&policy);
    if (sched_create(&policy, &s, NULL))
        abort();
    sched_log_begin(log, &policy);
    e.node.device_count = 2;
    add_event(log, s, &e);
    e = (struct sched_event){ .kind = SCHED_SUBMIT,
                              .now_ms = 1500,
                              .submit = { .id = 7, .option_count = 1, .option = &o } };
    add_event(log, s, &e);
    add_event(log, s, &e); /* its id is in use */
    *out = s;
}

/* A card, 1 that has all of it, and 2 that waits for half. */
static void put_busy_log(void)
{
    AUTO_BUF struct buf log = { 0 };
    struct sched_option o = { .group_count = 1, .group = { { { .devices = 1 }, 1 } } };
    struct sched_event e = { .kind = SCHED_ADD_NODE };
    struct sched_policy policy;
    struct sched *s;
    sched_policy_init(&policy);
    if (sched_create(&policy, &s, NULL))
        abort();
    sched_log_begin(&log, &policy);
    e.node.device_count = 1;
    add_event(&log, s, &e);
    for (uint64_t id = 1; id <= 2; id++) {
        o.group[0].ask.permille = id == 1 ? 1000 : 500;
        e = (struct sched_event){ .kind = SCHED_SUBMIT,
                                  .now_ms = 1500,
                                  .submit = { .id = id,
                                              .priority = 10,
                                              .preemptible = true,
                                              .option_count = 1,
                                              .option = &o } };
        add_event(&log, s, &e);
    }
    put("busy", log.text, log.len);
    sched_destroy(s);
}

static int make_logs(void **state)
{
    AUTO_BUF struct buf log = { 0 }, other = { 0 }, alone = { 0 }, accepted = { 0 };
    struct sched_event tick = { .kind = SCHED_TICK, .now_ms = 2000 };
    const struct pool_place place = { 1, 1, { 1 } };
    const struct sched_decision d = {
        .kind = SCHED_GRANT, .id = 7, .place_count = 1, .place = &place
    };
    struct sched *s;
    if (!mkdtemp(dir))
        return -1;
    small_log(&log, &s);
    put("same", log.text, log.len);
    put("cut", log.text, log.len - 2);
    log.text[log.len - 3] ^= 1;
    put("damaged", log.text, log.len);
    log.text[log.len - 3] ^= 1;
    buf_add_bytes(&other, log.text, log.len);
    sched_log_event(&other, &tick);
    put("open", other.text, other.len);
    sched_log_outcome(&other, 0, &d, 1);
    put("otherwise", other.text, other.len);
    buf_add_bytes(&accepted, log.text, log.len);
    sched_log_event(&accepted, &tick);
    sched_log_outcome(&accepted, -SL_INVALID, NULL, 0);
    put("refused", accepted.text, accepted.len);
    buf_add_bytes(&alone, log.text, log.len);
    sched_log_outcome(&alone, 0, NULL, 0);
    put("alone", alone.text, alone.len);
    put_busy_log();
    put("none", "{}", 2);
    put("empty", "", 0);
    sched_destroy(s);
    return 0;
}

static int remove_logs(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

static void a_log_is_replayed(void **state)
{
    static const struct {
        const char *label, *line;
        int status;
        const char *out, *err; /* parts of what is said; "": nothing is */
    } rows[] = {
        { "the same", "replay @/same", 0,
          ": 3 events, 1 decisions: all as in the log\n  1 events were refused, as then\n",
          "" },
        { "its decisions", "replay @/same --decisions", 0,
          "event 2 at 1.500 s: grant 7: option 0, node 0 devices 0\n", "" },
        { "its events", "replay @/same --events", 0,
          "event 3 at 1.500 s: submit 7: tenant 0, priority 0, 1 x 500 permille "
          "(refused)\n",
          "" },
        { "another decision", "replay @/otherwise", 1,
          "event 4 at 2.000 s decides otherwise: tick\n"
          "  the log:  grant 7: option 0, node 1 devices 1\n"
          "  this run: nothing more\n",
          "" },
        { "another answer", "replay @/refused", 1,
          "  the log:  invalid\n  this run: accepted\n", "" },
        { "the last event before a crash", "replay @/open", 0,
          "  of 1 events the log does not say what was decided\n", "" },
        { "cut off", "replay @/cut", 0, "  the log ends inside a record: ", "" },
        { "damaged", "replay @/damaged", 2, "", "the log is damaged: the record at byte " },
        { "an outcome of nothing", "replay @/alone", 2, "", "decisions without an event" },
        { "no log", "replay @/none", 2, "", "/none: this is no log of a scheduler core" },
        { "an empty file", "replay @/empty", 2, "", "this is no log of a scheduler core" },
        { "no file", "replay @/nothing", 3, "", "/nothing: No such file" },
        { "a directory", "replay @", 1, "", "cannot be read" },
        { "not said which", "replay", 2, "", "usage: sluice-sim replay LOG" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer *a = ask_in(rows[i].line);
        ROW(rows[i].label, a->status == rows[i].status);
        ROW(rows[i].label, rows[i].out[0] ? !!strstr(a->out, rows[i].out) : !a->out[0]);
        ROW(rows[i].label, rows[i].err[0] ? !!strstr(a->err, rows[i].err) : !a->err[0]);
    }
}

static void a_log_is_asked(void **state)
{
    static const struct {
        const char *label, *line;
        int status;
        const char *out, *err; /* parts of what is said; "": nothing is */
    } rows[] = {
        { "who waits", "explain @/busy 2", 0,
          "after event 3 at 1.500 s:\n"
          "2 waits for room for 500 permille of a device.\n"
          "  1 node: compute (at most 0 permille free)\n"
          "It would start now with\n  the end of 1 lease, such as 1\n",
          "" },
        { "who runs", "explain @/busy 1", 0, "1 runs since 1.500 s.\n", "" },
        { "who was not there yet", "explain @/busy 2 --at 2", 3, "",
          "2 neither waits nor runs after event 2" },
        { "not so far", "explain @/busy 2 --at 4", 3, "", "/busy: it has 3 events only" },
        { "no number", "explain @/busy x", 2, "", "'x' is no number of a request" },
        { "no log to explain", "explain @/none 2", 2, "", "this is no log" },
        { "whom", "explain @/busy", 2, "", "usage: sluice-sim explain LOG ID" },

        { "another node", "whatif @/busy --add-nodes 1", 0,
          "after event 3 at 1.500 s:\n  grant 2: option 0, node 1 devices 0\n"
          "waiting for room: 0, were 1\n",
          "" },
        { "before anybody waited", "whatif @/busy --at 2 --add-nodes 1", 0,
          "after event 2 at 1.500 s:\n  nothing starts and nobody must go\n", "" },
        { "like one that is not there", "whatif @/busy --add-nodes 1 --like 1", 3, "",
          "--like: there is no node 1, but 1" },
        { "a lower limit", "whatif @/busy --quota 0:0=0:1", 0,
          "  nothing starts and nobody must go\nblocked by a limit: 1, were 0\n"
          "waiting for room: 0, were 1\n",
          "" },
        { "half a quota", "whatif @/busy --quota 0:0", 2, "",
          "--quota: '0:0' is not TENANT:MODEL=DESERVED[:LIMIT], such as 3:0=4:8" },
        { "a quota of nobody", "whatif @/busy --quota 9:all=1", 3, "",
          "quota: no tenant 9" },
        { "one more that waits", "whatif @/busy --submit 20%", 0,
          "  nothing starts and nobody must go\nwaiting for room: 2, were 1\n"
          "the new request is 3\n"
          "3 waits for room for 200 permille of a device.\n",
          "" },
        { "one more that matters", "whatif @/busy --submit=100% --priority 50", 0,
          "  evict 1: for 3 by priority\nwaiting for room: 1, were 1\n"
          "waiting for others to go: 1, were 0\n"
          "the new request is 3\n3 waits for others to go",
          "" },
        { "nodes and a request", "whatif @/busy --add-nodes 2 --submit 100%", 0,
          "the new request is 3; it starts\n", "" },
        { "no share", "whatif @/busy --submit 8GiB", 2, "", "--submit:1:1: " },
        { "more than is meant", "whatif @/busy --submit 5%,6%", 2, "", "',' is too much" },
        { "a request of nobody", "whatif @/busy --submit 5% --tenant 3", 3, "",
          "request: no tenant 3" },
        { "nothing", "whatif @/busy", 2, "",
          "what if what? --add-nodes, --quota or --submit say it" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer *a = ask_in(rows[i].line);
        ROW(rows[i].label, a->status == rows[i].status);
        ROW(rows[i].label, rows[i].out[0] ? !!strstr(a->out, rows[i].out) : !a->out[0]);
        ROW(rows[i].label, rows[i].err[0] ? !!strstr(a->err, rows[i].err) : !a->err[0]);
    }
}

#define JOBS "jobs --format csv --trace " SAMPLES "/jobs.csv --nodes 2x4 "

static void a_run_writes_a_log(void **state)
{
    static const struct {
        const char *label, *line;
        int status;
        const char *err;
    } refused[] = {
        { "two policies", JOBS "--policy sluice,sluice-told --log @/x", 2,
          "--log: of one of our own policies" },
        { "all policies", JOBS "--log @/x", 2, "--log: of one of our own policies" },
        { "one without a core", JOBS "--policy fifo --log @/x", 2,
          "--log: of one of our own policies" },
        { "no such directory", JOBS "--policy sluice --log @/no/x", 1, "No such file" },
        { "a full disk", JOBS "--policy sluice --log /dev/full", 1, "No space left" },
    };
    static const char *const policies[] = { "sluice", "sluice-blind", "sluice-history",
                                            "sluice-told" };
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        char line[300];
        snprintf(line, sizeof line, JOBS "--policy %s --log @/run", policies[i]);
        ROW(policies[i], ask_in(line)->status == 0);
        const struct answer *a = ask_in("replay @/run");
        ROW(policies[i], a->status == 0 && strstr(a->out, "8 events, 3 decisions: all as"));
    }
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const struct answer *a = ask_in(refused[i].line);
        ROW(refused[i].label,
            a->status == refused[i].status && strstr(a->err, refused[i].err));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_log_is_replayed),
    cmocka_unit_test(a_log_is_asked),
    cmocka_unit_test(a_run_writes_a_log),
};

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_logs, remove_logs);
}
