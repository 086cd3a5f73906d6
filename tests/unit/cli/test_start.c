/*
 * Starting the agent: twenty racing callers give one, it keeps nothing of its
 * caller, and what it says when it fails is quoted.  The agent is this program
 * under another name.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include <cmocka.h>

#include "cli/start.h"
#include "core/macros.h"
#include "os/file.h"
#include "os/sock.h"

#define CALLERS 20

static char home[48]; /* where this program lies as `test` and as `sluice-agent` */

/* ---- the agent ---- */

static void write_facts(const char *run_dir)
{
    char path[160], cwd[256] = "";
    int fds = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));)
        fds += e->d_name[0] != '.';
    closedir(d);
    if (!getcwd(cwd, sizeof cwd))
        return;
    snprintf(path, sizeof path, "%s/facts", run_dir);
    FILE *f = fopen(path, "w");
    /* its own folder stream is one of them, and the socket and the lock are two */
    fprintf(f, "session=%d cwd=%s fds=%d lease=%s secret=%s ignored=%d\n", getsid(0), cwd,
            fds - 3, getenv("SLUICE_LEASE") ? "kept" : "gone",
            getenv("SECRET") ? "kept" : "gone", signal(SIGINT, SIG_DFL) == SIG_IGN);
    fclose(f);
}

static int be_agent(int argc, char **argv)
{
    const char *run_dir = "";
    char path[160];
    int ready = -1;
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--run-dir"))
            run_dir = argv[i + 1];
        if (!strcmp(argv[i], "--ready-fd"))
            ready = atoi(argv[i + 1]);
    }
    if (getenv("SLUICE_TEST_FAIL")) {
        static const char why[] = "-no device: the probe died";
        fputs("2026-12-01T00:00:00Z info agent device device=po", stderr); /* a full disk */
        return write(ready, why, sizeof why - 1) == sizeof why - 1;
    }
    if (getenv("SLUICE_TEST_USAGE")) {
        fputs("sluice-agent: --reserve: a size or a percentage\n", stderr);
        return 2;
    }
    snprintf(path, sizeof path, "%s/agent.lock", run_dir);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (flock(lock, LOCK_EX | LOCK_NB))
        return 0;
    usleep(100 * 1000); /* a start takes a while: losers must wait for it */
    snprintf(path, sizeof path, "%s/agent.sock", run_dir);
    int fd = sock_listen_unix(path, SOCK_STREAM, 0600, NULL);
    if (fd < 0)
        return 1;
    write_facts(run_dir);
    snprintf(path, sizeof path, "%s/count", run_dir);
    int count = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(count, "x", 1) != 1 || write(ready, "ready\n", 6) != 6)
        return 1;
    close(ready);
    snprintf(path, sizeof path, "%s/stop", run_dir);
    for (int ms = 0; ms < 20000 && access(path, F_OK); ms += 20)
        usleep(20 * 1000);
    return 0;
}

/* ---- the tests ---- */

static struct rundir make_rundir(const char *name)
{
    struct rundir r;
    snprintf(r.path, sizeof r.path, "%s/%s", home, name);
    return r;
}

static void read_file(const struct rundir *r, const char *name, char *out, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", r->path, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = 0;
    if (f)
        fclose(f);
}

static void stop(const struct rundir *r)
{
    char path[160];
    snprintf(path, sizeof path, "%s/stop", r->path);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static void test_twenty_callers_give_one(void **state)
{
    struct rundir r = make_rundir("race");
    struct start_options o = { .embedded = true };
    char text[64];
    int failed = 0, started = 0;

    for (int i = 0; i < CALLERS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct sl_err err = { 0 };
            int rc = agent_start(&r, &o, &err);
            if (rc < 0)
                fprintf(stderr, "caller %d: %s\n", i, err.msg);
            _exit(rc < 0 || !agent_is_running(&r) ? 1 : rc == 0 ? 2 : 0);
        }
    }
    for (int status; wait(&status) > 0;) {
        started += WEXITSTATUS(status) == 2;
        failed += status != 0 && WEXITSTATUS(status) != 2;
    }
    assert_int_equal(failed, 0);
    assert_int_equal(started, 1); /* and only that caller is told so */
    read_file(&r, "count", text, sizeof text);
    assert_string_equal(text, "x");
    stop(&r);
}

static void test_keeps_nothing(void **state)
{
    struct rundir r = make_rundir("clean");
    struct start_options o = { 0 };
    struct sl_err err = { 0 };
    char text[512];

    int extra = open("/dev/null", O_RDONLY); /* without CLOEXEC */
    signal(SIGINT, SIG_IGN);
    setenv("SECRET", "1", 1);
    setenv("SLUICE_LEASE", "L1", 1);
    int rc = agent_start(&r, &o, &err);
    close(extra);
    signal(SIGINT, SIG_DFL);
    unsetenv("SLUICE_LEASE");
    if (rc)
        fail_msg("%d: %s", rc, err.msg);
    read_file(&r, "facts", text, sizeof text);
    assert_int_not_equal(atoi(text + strlen("session=")), getsid(0));
    assert_string_equal(strstr(text, " cwd"),
                        " cwd=/ fds=4 lease=gone secret=gone ignored=0\n");
    assert_int_equal(agent_start(&r, &o, &err), 1);
    stop(&r);
}

static void test_failure_is_quoted(void **state)
{
    struct rundir r = make_rundir("fail");
    struct start_options o = { 0 };
    struct sl_err err = { 0 };

    setenv("SLUICE_TEST_FAIL", "1", 1);
    int rc = agent_start(&r, &o, &err);
    unsetenv("SLUICE_TEST_FAIL");
    assert_int_equal(rc, -SL_UNAVAILABLE);
    assert_string_equal(err.msg, "the agent did not start: no device: the probe died");

    setenv("SLUICE_TEST_USAGE", "1", 1);
    rc = agent_start(&r, &o, &err);
    unsetenv("SLUICE_TEST_USAGE");
    assert_int_equal(rc, -SL_INVALID);
    assert_string_equal(err.msg, "--reserve: a size or a percentage");
}

/* What stands in the run directory, and whether that is an agent that broke. */
static const struct {
    const char *label, *dir, *file;
    bool traces;
    const char *says;
} places[] = {
    { "a directory that is not there", "nowhere", NULL, false, "no agent runs" },
    { "an empty one", "empty", NULL, false, "no agent runs" },
    { "a lock and a log stay after an end in order", "ended", "agent.log", false,
      "no agent runs" },
    { "a socket that nobody serves", "dead", "agent.sock", true, "did not end in order" },
    { "a broker's socket alone", "broker", "control.sock", true, "its broker runs on" },
};

static void test_traces(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct rundir r = make_rundir(places[i].dir);
        struct sl_err err = { 0 };
        char path[160];
        if (strcmp(places[i].dir, "nowhere"))
            assert_int_equal(mkdir(r.path, 0700), 0);
        snprintf(path, sizeof path, "%s/%s", r.path, places[i].file ? places[i].file : "");
        if (places[i].file)
            close(strstr(path, ".sock") ? sock_listen_unix(path, SOCK_STREAM, 0600, &err)
                                        : open(path, O_WRONLY | O_CREAT, 0600));
        bool said = agent_fail_missing(&r, &err) == -SL_UNAVAILABLE &&
                    strstr(err.msg, places[i].says);
        if (agent_left_traces(&r) != places[i].traces || !said)
            fail_msg("%s: %s", places[i].label, err.msg);
    }
}

static void test_no_directory(void **state)
{
    struct rundir r = make_rundir("file");
    struct sl_err err = { 0 };
    close(open(r.path, O_WRONLY | O_CREAT, 0600));
    assert_true(agent_left_traces(&r)); /* or it would look like an empty machine */
    assert_true(agent_fail_missing(&r, &err) < 0);
    assert_non_null(strstr(err.msg, "Not a directory"));
}

/* Lie beside a program named sluice-agent, and start again from there. */
static int move_home(char **argv)
{
    char agent[96], self[96];
    snprintf(home, sizeof home, "/tmp/sluice-start-XXXXXX");
    if (!mkdtemp(home))
        return 1;
    snprintf(agent, sizeof agent, "%s/sluice-agent", home);
    snprintf(self, sizeof self, "%s/test", home);
    struct sl_err err = { 0 };
    if (file_copy("/proc/self/exe", agent, 0755, &err) < 0 ||
        file_copy("/proc/self/exe", self, 0755, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    setenv("TEST_START_HOME", home, 1);
    execv(self, argv);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twenty_callers_give_one),
        cmocka_unit_test(test_keeps_nothing),
        cmocka_unit_test(test_failure_is_quoted),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_no_directory),
    };
    const char *name = strrchr(argv[0], '/');
    if (name && !strcmp(name, "/sluice-agent"))
        return be_agent(argc, argv);
    if (!getenv("TEST_START_HOME"))
        return move_home(argv);
    snprintf(home, sizeof home, "%s", getenv("TEST_START_HOME"));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    usleep(50 * 1000); /* the agents see their stop */
    file_remove_tree(home, NULL);
    return failed;
}
