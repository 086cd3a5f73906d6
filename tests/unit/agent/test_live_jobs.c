/* Jobs that wait for room: their order, and what they outlive. */
#include "live_one.h"

#include "../rows.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/file.h"

#define ONE_CARD ((const char *const[]){ "--emulate", "t4", NULL })
#define FOR_EVER "\"forever\""

/* Submit a job that writes its name to `ran`, with these members of its lease; the HTTP
 * status. */
static int submit_with(const char *name, const char *members)
{
    char body[400];
    snprintf(body, sizeof body,
             "{\"lease\":{\"name\":\"%s\",%s},"
             "\"argv\":[\"/bin/sh\",\"-c\",\"echo %s >>%s/ran\"]}",
             name, members, name, l.dir);
    return live_call(&l, "POST", "/v1/jobs", body, NULL);
}

/* For the whole card. */
static int submit(const char *name, int priority, const char *wait_ms)
{
    char members[80];
    snprintf(members, sizeof members, "\"priority\":%d,\"wait_ms\":%s", priority, wait_ms);
    return submit_with(name, members);
}

/* What the jobs wrote, in their order; the caller's to free. */
static char *what_ran(void)
{
    char path[100], *text = NULL;
    snprintf(path, sizeof path, "%s/ran", l.dir);
    if (file_read(path, 65536, &text, NULL, NULL) < 0)
        text = strdup("");
    return text;
}

static void waiting_jobs_outlive_the_agent(void **state)
{
    start(ONE_CARD);
    ask("{\"name\":\"all\"}", NULL);
    ROW("a job waits", submit("old", 50, FOR_EVER) == 202);
    ROW("another", submit("young", 50, FOR_EVER) == 202);
    ROW("one that is wanted more", submit("keen", 90, FOR_EVER) == 202);
    ROW("one that nobody wants any more", submit("gone", 50, FOR_EVER) == 202);
    ROW("and one for a while", submit("brief", 50, "1500") == 202);
    live_release(&l, "gone");
    ROW("its record says so", live_lease_is(&l, "gone", "state", "released"));
    pid_t caller = live_call_async(&l, 0, "POST", "/v1/leases",
                                   "{\"name\":\"asked\",\"wait_ms\":20000}");
    ROW("a caller waits too", live_lease_is(&l, "asked", "state", "pending"));
    live_stop(&l, SIGKILL);
    live_join(caller);
    start(ONE_CARD);
    ROW("the caller's request ended with its connection",
        live_lease_is(&l, "asked", "why", "the agent was restarted while it waited"));
    ROW("the job waits on", live_lease_is(&l, "old", "state", "pending"));
    ROW("the released one does not", live_lease_is(&l, "gone", "state", "released"));
    ROW("nor longer than it would have", live_lease_is(&l, "brief", "state", "released"));
    ROW("one more", submit("late", 50, FOR_EVER) == 202);
    live_release(&l, "late");
    live_stop(&l, SIGKILL);
    start(ONE_CARD);
    ROW("a release after a restart holds too",
        live_lease_is(&l, "late", "state", "released"));
    ROW("and says why",
        live_lease_is(&l, "late", "why", "released while it waited for room"));
    live_release(&l, "all");
    ROW("with room they run", live_lease_is(&l, "young", "state", "released"));
    ROW("to their end", live_lease_is(&l, "young", "exit_status", "0"));
    char *ran = what_ran();
    ROW_STR("in the order they had", ran, "keen\nold\nyoung\n");
    free(ran);
}

/* How many processes the agent watches. */
static int pidfds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        char path[64], to[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", l.agent, fd);
        ssize_t len = readlink(path, to, sizeof to - 1);
        to[len > 0 ? len : 0] = '\0';
        n += strstr(to, "pidfd") != NULL;
    }
    return n;
}

/* A job for the whole card that says its pid and stays; its pid, and its shim's. */
static pid_t staying_job(const char *name, pid_t *shim)
{
    char body[300], url[80];
    json_t *j;
    pid_t pid = 0;
    snprintf(body, sizeof body,
             "{\"lease\":{\"name\":\"%s\"},\"argv\":[\"/bin/sh\",\"-c\","
             "\"echo $$ >>%s/ran; exec sleep 300\"]}",
             name, l.dir);
    assert_int_equal(live_call(&l, "POST", "/v1/jobs", body, NULL), 201);
    for (int i = 0; i < 500 && pid == 0; i++) {
        usleep(20000);
        char *ran = what_ran();
        pid = atoi(ran);
        free(ran);
    }
    snprintf(url, sizeof url, "/v1/leases/%s", name);
    live_call(&l, "GET", url, NULL, &j);
    *shim = atoi(live_get(j, "shim.pid"));
    json_decref(j);
    snprintf(url, sizeof url, "%s/ran", l.dir);
    unlink(url);
    return pid;
}

static void a_wait_ends_while_adopting(void **state)
{
    pid_t shim, program;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(ONE_CARD);
    program = staying_job("first", &shim);
    ROW("a job runs", program > 0 && shim > 0);
    ROW("another waits for its room", submit("second", 50, FOR_EVER) == 202);
    live_stop(&l, SIGKILL);
    kill(shim, SIGKILL);
    waitpid(shim, NULL, 0); /* no zombie: the agent cannot watch it */
    kill(program, SIGKILL);
    waitpid(program, NULL, 0);
    start(ONE_CARD);
    ROW("the next agent finds the first ended",
        live_lease_is(&l, "first", "state", "released"));
    ROW("the second runs to its end", live_lease_is(&l, "second", "exit_status", "0"));
    ROW("and is released", live_lease_is(&l, "second", "state", "released"));
    char *ran = what_ran();
    ROW_STR("it ran once", ran, "second\n");
    free(ran);
    ROW("and nothing of it is watched any more", pidfds() == 0);
}

static void never_placed_again(void **state)
{
    start(((const char *const[]){ "--emulate", "a100-80g", NULL }));
    ask("{\"name\":\"all\"}", NULL);
    ROW("a job waits for more than the next card has",
        submit_with("big", "\"mem\":{\"request\":64424509440},\"wait_ms\":\"forever\"") ==
            202);
    live_stop(&l, SIGKILL);
    start(ONE_CARD);
    ROW("it still waits", live_lease_is(&l, "big", "state", "pending"));
    ROW("one that fits comes after it", submit("small", 50, FOR_EVER) == 201);
    ROW("and is not kept waiting", live_lease_is(&l, "small", "exit_status", "0"));
    ROW("by what never can", live_lease_is(&l, "big", "state", "pending"));
}

static void waiting_jobs_on_a_full_disk(void **state)
{
    struct rlimit was, full = { 1, 0 };
    start(ONE_CARD);
    ask("{\"name\":\"all\"}", NULL);
    ROW("a job waits", submit("old", 50, FOR_EVER) == 202);
    ROW("another", submit("young", 50, FOR_EVER) == 202);
    getrlimit(RLIMIT_FSIZE, &was);
    full.rlim_max = was.rlim_max;
    prlimit(l.agent, RLIMIT_FSIZE, &full, NULL);
    live_release(&l, "all");
    ROW("with room, but none on the disk, it waits on",
        live_lease_is(&l, "old", "state", "pending"));
    ROW("with no device", live_lease_is(&l, "old", "device", "null"));
    ROW("so does the other", live_lease_is(&l, "young", "state", "pending"));
    json_t *j;
    ROW("its release cannot be promised",
        live_call(&l, "DELETE", "/v1/leases/young", NULL, &j) == 500);
    ROW_STR("by the disk's fault", live_get(j, "code"), "io");
    json_decref(j);
    ROW("and it waits on", live_lease_is(&l, "young", "state", "pending"));
    prlimit(l.agent, RLIMIT_FSIZE, &was, NULL);
    ROW("then they run", live_lease_is(&l, "young", "exit_status", "0"));
    char *ran = what_ran();
    ROW_STR("in the order they had", ran, "old\nyoung\n");
    free(ran);
}

/* Else the journal would grow until no agent could read it. */
static void too_much_waits(void **state)
{
    enum { LARGE = 1000000 };
    char *body = malloc(LARGE + 200);
    int taken = 0, status = 0;
    json_t *j = NULL;
    start(ONE_CARD);
    ask("{\"name\":\"all\"}", NULL);
    while (taken < 80) {
        int at = sprintf(body,
                         "{\"lease\":{\"name\":\"j%d\",\"wait_ms\":\"forever\"},"
                         "\"argv\":[\"true\"],\"env\":[\"A=",
                         taken);
        memset(body + at, 'x', LARGE);
        strcpy(body + at + LARGE, "\"]}");
        json_decref(j);
        status = live_call(&l, "POST", "/v1/jobs", body, &j);
        if (status != 202)
            break;
        taken++;
    }
    free(body);
    ROW("many large jobs may wait, but not all", taken > 60 && taken < 80 && status == 403);
    ROW_STR("for lack of a quota", live_get(j, "code"), "quota");
    json_decref(j);
    live_stop(&l, SIGKILL);
    start(ONE_CARD);
    ROW("the next agent reads them", live_lease_is(&l, "j60", "state", "pending"));
    ROW("and takes no more", submit("more", 50, FOR_EVER) == 403);
}

/* A device has several names. */
static void none_passes_by_another_name(void **state)
{
    json_t *plan = NULL;
    start(TWO_CARDS);
    ask(HALF ",\"device\":\"0\"}", NULL);
    ROW("a job waits for all of a card",
        submit_with("large", "\"device\":\"0\",\"wait_ms\":\"forever\"") == 202);
    ROW("a small one for the same by its id",
        submit_with("small",
                    "\"device\":\"emu-a100-80g-0\",\"wait_ms\":\"forever\","
                    "\"mem\":{\"request\":1048576},\"compute\":{\"request\":10}") == 202);
    ROW("is behind it", live_lease_is(&l, "small", "why", "behind another that waits"));
    ROW("as a plan of it says", live_call(&l, "POST", "/v1/leases?dry_run=1",
                                          "{\"device\":\"emu-a100-80g-0\","
                                          "\"wait_ms\":\"forever\","
                                          "\"mem\":{\"request\":1048576},"
                                          "\"compute\":{\"request\":10}}",
                                          &plan) == 409);
    ROW_STR("with the same words", live_get(plan, "detail"), "behind another that waits");
    json_decref(plan);
    ROW("one for the other card",
        submit_with("other", "\"device\":\"emu-a100-80g-1\",\"wait_ms\":\"forever\"") ==
            201);
    ROW("is not", live_lease_is(&l, "other", "exit_status", "0"));
}

static void a_waiting_job_keeps_no_devices(void **state)
{
    setenv("SLUICE_FAULT", "journal.after-sync:kill@5",
           1); /* card, options, all, job, all's end */
    start(ONE_CARD);
    unsetenv("SLUICE_FAULT");
    ask("{\"name\":\"all\"}", NULL);
    ROW("a job waits", submit("j", 50, FOR_EVER) == 202);
    pid_t broker = live_broker(&l);
    live_call(&l, "DELETE", "/v1/leases/all", NULL, NULL);
    live_stop(&l, 0);
    start(((const char *const[]){ "--emulate", "l4", NULL }));
    ROW("the next agent has its devices alone",
        live_until(&l, "/v1/devices", "devices.0.id", "emu-l4-0"));
    ROW("and a broker that knows no others", live_broker(&l) != broker);
    ROW("the job runs", live_lease_is(&l, "j", "exit_status", "0"));
}

static void torn_job(void **state)
{
    char path[100], *text = NULL;
    size_t len;
    start(ONE_CARD);
    ask("{\"name\":\"all\"}", NULL);
    submit("whole", 50, FOR_EVER);
    submit("torn", 50, FOR_EVER);
    live_stop(&l, SIGKILL);
    snprintf(path, sizeof path, "%s/journal", l.dir);
    assert_int_equal(file_read(path, 1 << 20, &text, &len, NULL), 0);
    assert_int_equal(truncate(path, (off_t)len - 9), 0);
    free(text);
    start(ONE_CARD);
    ROW("the record that was torn is cut",
        live_call(&l, "GET", "/v1/leases/torn", NULL, NULL) == 404);
    ROW("the one before it stands", live_lease_is(&l, "whole", "state", "pending"));
    live_release(&l, "all");
    ROW("and its job runs", live_lease_is(&l, "whole", "exit_status", "0"));
}

static bool log_is(const char *id, const char *want)
{
    char path[100], *text = NULL;
    snprintf(path, sizeof path, "%s/jobs/%s/log", l.dir, id);
    bool is = file_read(path, 65536, &text, NULL, NULL) == 0 && strcmp(text, want) == 0;
    free(text);
    return is;
}

/* The records: the card, the options, "all", the job waiting, "all" released, the job granted, anchored,
 * ended. */
static void jobs_and_marked_points(void **state)
{
    static const char *const points[] = { "journal.before-write", "journal.after-write",
                                          "journal.after-sync" };
    for (size_t p = 0; p < ARRAY_LEN(points); p++) {
        for (int nth = 4; nth <= 8; nth++) {
            char fault[64];
            live_init(&l);
            snprintf(fault, sizeof fault, "%s:kill@%d", points[p], nth);
            setenv("SLUICE_FAULT", fault, 1);
            start(ONE_CARD);
            unsetenv("SLUICE_FAULT");
            ask("{\"name\":\"all\"}", NULL);
            bool promised = submit("j", 50, FOR_EVER) == 202;
            ROW("it is promised until the agent dies", promised == (nth > 4));
            live_call(&l, "DELETE", "/v1/leases/all", NULL, NULL);
            ROW("it died where it was told to", live_stop(&l, 0) == 128 + SIGKILL);
            start(ONE_CARD);
            live_call(&l, "DELETE", "/v1/leases/all", NULL, NULL);
            bool known = live_call(&l, "GET", "/v1/leases/j", NULL, NULL) == 200;
            ROW("what was promised is known", known || !promised);
            ROW("what was not written is not", promised || known == (p > 0));
            if (known)
                ROW("it ends well", live_lease_is(&l, "j", "exit_status", "0"));
            char *ran = what_ran();
            ROW_STR("it ran once", ran, known ? "j\n" : "");
            free(ran);
            if (nth == 7) /* the shim of the agent that died tries each 100 ms */
                usleep(300000);
            if (known)
                ROW("nothing but its output is in its log", log_is("L2", ""));
            live_finish(&l);
            l.agent = 0;
        }
    }
}

#define LIVE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    LIVE(waiting_jobs_outlive_the_agent),
    LIVE(a_wait_ends_while_adopting),
    LIVE(never_placed_again),
    LIVE(waiting_jobs_on_a_full_disk),
    LIVE(too_much_waits),
    LIVE(none_passes_by_another_name),
    LIVE(a_waiting_job_keeps_no_devices),
    LIVE(torn_job),
    cmocka_unit_test(jobs_and_marked_points),
};

ROWS_MAIN(tests)
