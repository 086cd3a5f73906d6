/* The shim driven directly, beside a FAKE agent: statuses, signals, orphans, log. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/macros.h"
#include "fake_agent.h"
#include "spec.h"
#include "status.h"

#define SHIM getenv("SLUICE_SHIM")

struct run {
    pid_t shim;
    int link;
    char said[4096]; /* words of the shim, a line each */
};

static struct fake_agent agent;

static int set_up(void **state)
{
    fake_start(&agent, NULL);
    return 0;
}

static int tear_down(void **state)
{
    fake_stop(&agent);
    return 0;
}

/* `more` is further members of the spec, each after a comma. */
static void start(struct run *r, const char *more, const char *const *argv)
{
    int link[2], spec[2];
    char text[1024];
    const char *args[32] = { "sluice-shim", "--spec-fd", "20", "--notify-fd", "21", "--" };
    for (int i = 0; argv[i]; i++)
        args[6 + i] = argv[i];
    snprintf(text, sizeof text, "{\"lease\":\"L7\",\"run_dir\":\"%s\"%s}", agent.dir, more);
    assert_int_equal(pipe2(spec, O_CLOEXEC), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link), 0);
    assert_int_equal(write(spec[1], text, strlen(text)), (int)strlen(text));
    r->shim = fork();
    if (r->shim == 0) {
        dup2(spec[0], 20);
        dup2(link[1], 21);
        execv(SHIM, (char **)args);
        _exit(99);
    }
    close(spec[0]);
    close(spec[1]);
    close(link[1]);
    r->link = link[0];
    r->said[0] = 0;
}

/* Read words until one begins with `word`, the shim closes, or ten seconds pass. */
static bool hear(struct run *r, const char *word)
{
    char words[512];
    for (;;) {
        struct pollfd p = { .fd = r->link, .events = POLLIN };
        if (poll(&p, 1, 10000) != 1)
            return false;
        ssize_t n = recv(r->link, words, sizeof words - 1, 0);
        if (n <= 0)
            return false;
        words[n] = 0;
        strcat(strcat(r->said, words), "\n");
        if (!strncmp(words, word, strlen(word)))
            return true;
    }
}

static void say(struct run *r, const char *words)
{
    assert_int_equal(send(r->link, words, strlen(words), 0), (int)strlen(words));
}

static int finish(struct run *r)
{
    int status;
    hear(r, "nothing says this");
    close(r->link);
    assert_int_equal(waitpid(r->shim, &status, 0), r->shim);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void read_status(struct job_status *out)
{
    struct rundir run;
    struct sl_err err;
    snprintf(run.path, sizeof run.path, "%s", agent.dir);
    if (job_status_read(&run, "L7", out, &err) < 0)
        fail_msg("%s", err.msg);
}

static void exit_statuses(void **state)
{
    static const struct {
        const char *label, *argv[4];
        int want;
        const char *says;
    } rows[] = {
        { "success", { "true" }, 0, "exited 0" },
        { "the program's own status", { "sh", "-c", "exit 3" }, 3, "exited 3" },
        { "a signal is 128 + N", { "sh", "-c", "kill -9 $$" }, 137, "exited 137" },
        { "no such program",
          { "sluice-no-such-program" },
          127,
          "there is no such program" },
        { "no such path", { "/no/such/program" }, 127, "there is no such program" },
        { "a directory", { "/tmp" }, 126, "is a directory" },
        { "not executable", { "/etc/passwd" }, 126, "not executable" },
        { "an empty name", { "" }, 127, "no such program" },
        { "a script of an interpreter that is not there",
          { "%s/lost" },
          126,
          "/no/such/interp" },
        { "a script without an interpreter", { "%s/bare" }, 126, "first line" },
        { "a script", { "%s/script" }, 4, "exited 4" },
    };
    static const struct {
        const char *name, *text;
    } files[] = { { "lost", "#!/no/such/interp -x\n" },
                  { "bare", "exit 5\n" },
                  { "script", "#! /bin/sh\nexit 4\n" } };
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", agent.dir, files[i].name);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        assert_true(write(fd, files[i].text, strlen(files[i].text)) > 0);
        close(fd);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r;
        const char *argv[5] = { 0 };
        memcpy(argv, rows[i].argv, sizeof rows[i].argv);
        if (!strncmp(argv[0], "%s", 2)) {
            snprintf(path, sizeof path, "%s%s", agent.dir, argv[0] + 2);
            argv[0] = path;
        }
        start(&r, "", argv);
        int got = finish(&r);
        if (got != rows[i].want || !strstr(r.said, rows[i].says))
            fail_msg("%s: status %d, said:\n%s", rows[i].label, got, r.said);
        struct job_status st;
        read_status(&st);
        assert_true(st.exited);
        assert_int_equal(st.exit_status, rows[i].want);
        assert_int_equal(st.signal, rows[i].want == 137 ? 9 : 0);
    }
}

static void order_of_events(void **state)
{
    struct run r;
    start(&r, "", (const char *[]){ "sh", "-c", "exit 3", NULL });
    assert_int_equal(finish(&r), 3);
    assert_string_equal(r.said, "ready\nstarted environment\nexited 3 0\ndone\n");
    const char *asked = fake_requests(&agent);
    assert_non_null(strstr(asked, "POST /v1/leases/L7/anchor {\"child_pid\":"));
    assert_non_null(strstr(asked, "POST /v1/leases/L7/exit {\"exit_status\":3}"));
    struct job_status st;
    read_status(&st);
    assert_int_equal(st.shim.pid, r.shim);
    assert_true(st.child.pid > 0 && st.child.start_ticks > 0);
    assert_true(st.started_ms > 0 && st.ended_ms >= st.started_ms);
    assert_string_equal(st.placement, "environment");
}

static const char *must_not_be(void)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/touched", agent.dir);
    return path;
}

static void no_agent(void **state)
{
    struct run r;
    fake_kill(&agent);
    start(&r, "", (const char *[]){ "touch", must_not_be(), NULL });
    assert_int_equal(finish(&r), 125);
    assert_non_null(strstr(r.said, "failed 125 "));
    assert_int_equal(access(must_not_be(), F_OK), -1);
}

static void stops_and_continues(void **state)
{
    struct run r;
    char word[32];
    start(&r, "", (const char *[]){ "sleep", "100", NULL });
    assert_true(hear(&r, "started"));
    snprintf(word, sizeof word, "signal %d", SIGSTOP);
    say(&r, word);
    assert_true(hear(&r, "stopped 19"));
    snprintf(word, sizeof word, "signal %d", SIGCONT);
    say(&r, word);
    assert_true(hear(&r, "continued"));
    say(&r, "resumed");
    say(&r, "signal 15");
    assert_int_equal(finish(&r), 143);
}

/* Is a `sleep $NAP` of this test alive? */
static bool nap_lives(void)
{
    char command[128];
    snprintf(command, sizeof command, "pgrep -f '[^]]sleep %s' >/dev/null", getenv("NAP"));
    return system(command) == 0;
}

static void orphans(void **state)
{
    static const struct {
        const char *label, *script;
    } rows[] = {
        { "an orphan that ends by itself is waited for", "sleep 0.1 & exit 4" },
        { "one that does not gets SIGTERM", "sleep $NAP & exit 4" },
        { "one that ignores SIGTERM gets SIGKILL",
          "(trap '' TERM; while :; do sleep $NAP; done) & exit 4" },
        { "a daemon with a session of its own",
          "setsid sh -c 'trap \"\" TERM HUP; (sleep $NAP; sleep $NAP) & sleep $NAP' "
          "</dev/null >/dev/null 2>&1 & sleep 0.1; exit 4" },
        { "a stopped one", "sleep $NAP & kill -STOP $!; exit 4" },
        { "many", "for i in 1 2 3 4 5 6 7 8 9; do (trap '' TERM; sleep $NAP; sleep $NAP) & "
                  "done; exit 4" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r;
        start(&r, ",\"grace_ms\":250",
              (const char *[]){ "sh", "-c", rows[i].script, NULL });
        int got = finish(&r);
        if (got != 4 || nap_lives())
            fail_msg("%s: status %d, said:\n%s", rows[i].label, got, r.said);
    }
}

/* Wait until the file `name` is in the run directory. */
static void await_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", agent.dir, name);
    for (int i = 0; access(path, F_OK) < 0; i++) {
        assert_true(i < 1000);
        usleep(10000);
    }
    unlink(path);
}

static void ended_from_outside(void **state)
{
    static const struct {
        const char *label, *script, *more;
        int want;
    } rows[] = {
        { "SIGTERM reaches the program",
          "trap 'exit 9' TERM; >$DIR/up; while :; do sleep 0.02; done", "", 9 },
        { "one that ignores it is killed", "trap '' TERM; >$DIR/up; sleep $NAP; sleep $NAP",
          ",\"grace_ms\":200", 137 },
        { "one that is stopped is ended", ">$DIR/up; kill -STOP $$; sleep $NAP", "", 143 },
    };
    setenv("DIR", agent.dir, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct run r;
        start(&r, rows[i].more, (const char *[]){ "sh", "-c", rows[i].script, NULL });
        assert_true(hear(&r, i == 2 ? "stopped" : "started"));
        await_file("up");
        kill(r.shim, SIGTERM);
        int got = finish(&r);
        if (got != rows[i].want || nap_lives())
            fail_msg("%s: status %d, said:\n%s", rows[i].label, got, r.said);
        assert_non_null(strstr(r.said, "ending by process"));
    }
}

static void terminal_signals_to_the_shim(void **state)
{
    static const int signals[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTSTP,
                                   SIGTTIN, SIGTTOU, SIGPIPE };
    struct run r;
    start(&r, "", (const char *[]){ "sh", "-c", "sleep 0.4; exit 6", NULL });
    assert_true(hear(&r, "started"));
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        kill(r.shim, signals[i]);
    assert_int_equal(finish(&r), 6);
}

static void outlives_everybody(void **state)
{
    struct run r;
    struct job_status st;
    start(&r, "", (const char *[]){ "sh", "-c", "sleep 0.5; exit 8", NULL });
    assert_true(hear(&r, "started"));
    close(r.link);
    fake_kill(&agent);
    for (int i = 0; i < 1000; i++) {
        read_status(&st);
        if (st.exited)
            break;
        usleep(10000);
    }
    assert_true(st.exited);
    assert_int_equal(st.exit_status, 8);
    fake_restart(&agent);
    assert_true(fake_saw(&agent, "/exit {\"exit_status\":8}"));
    assert_int_equal(waitpid(r.shim, NULL, 0), r.shim);
}

static void log_is_kept(void **state)
{
    char more[256], path[128], text[512] = "";
    struct run r;
    struct job_status st;
    snprintf(path, sizeof path, "%s/log", agent.dir);
    snprintf(more, sizeof more, ",\"detach\":true,\"log\":\"%s\",\"log_max_bytes\":100",
             path);
    start(&r, more,
          (const char *[]){ "sh", "-c",
                            "echo out; echo err >&2; cat; ps -o sid= -p $$;"
                            "head -c 100000 /dev/zero | tr '\\0' x; exit 2",
                            NULL });
    assert_int_equal(finish(&r), 2);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_memory_equal(text, "out\nerr\n", 8);
    assert_int_equal(atoi(text + 8), r.shim); /* its own session */
    assert_non_null(strstr(text, "bytes of output not kept: the log is full]"));
    read_status(&st);
    assert_true(st.log_dropped_bytes > 99000 && st.log_dropped_bytes < 100100);
}

static void log_says_why_nothing_ran(void **state)
{
    char more[256], text[512] = "";
    struct run r;
    snprintf(more, sizeof more, ",\"detach\":true,\"log\":\"%s/log\"", agent.dir);
    start(&r, more, (const char *[]){ "sluice-no-such-program", NULL });
    assert_int_equal(finish(&r), 127);
    snprintf(more, sizeof more, "%s/log", agent.dir);
    int fd = open(more, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    assert_string_equal(text, "sluice: sluice-no-such-program: there is no such program\n");
}

/* The second file that a rename needs has no room. */
static void status_on_a_full_disk(void **state)
{
    struct run r;
    struct job_status st;
    setenv("SLUICE_FAULT", "file.before-rename:fail=ENOSPC@2", 1);
    start(&r, "", (const char *[]){ "sh", "-c", "exit 5", NULL });
    unsetenv("SLUICE_FAULT");
    assert_int_equal(finish(&r), 5);
    read_status(&st);
    assert_true(st.exited);
    assert_int_equal(st.exit_status, 5);
}

static void disk_is_full(void **state)
{
    struct run r;
    struct job_status st;
    start(&r, ",\"detach\":true,\"log\":\"/dev/full\"",
          (const char *[]){ "sh", "-c", "head -c 200000 /dev/zero && exit 5", NULL });
    assert_int_equal(finish(&r), 5);
    read_status(&st);
    assert_int_equal(st.log_dropped_bytes, 200000);
}

static void caller_dies_before_the_anchor(void **state)
{
    struct run r;
    kill(agent.pid, SIGSTOP);
    start(&r, "", (const char *[]){ "touch", must_not_be(), NULL });
    close(r.link);
    usleep(200000);
    kill(agent.pid, SIGCONT);
    int status;
    assert_int_equal(waitpid(r.shim, &status, 0), r.shim);
    /* Gone before the call: nothing ran.  (Had the call gone out, it would run on.) */
    if (WEXITSTATUS(status) == 125)
        assert_int_equal(access(must_not_be(), F_OK), -1);
}

static void bad_specs(void **state)
{
    static const struct {
        const char *label, *text, *says;
    } rows[] = {
        { "not JSON", "{", "job spec" },
        { "not an object", "[]", "object" },
        { "no lease", "{\"run_dir\":\"/r\"}", "lease" },
        { "no run directory", "{\"lease\":\"L7\"}", "run_dir" },
        { "an unknown key", "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"graze_ms\":1}",
          "graze_ms" },
        { "argv that is no list", "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"argv\":\"x\"}",
          "argv" },
        { "argv without a program", "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"argv\":[]}",
          "argv" },
        { "an environment without =",
          "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"env\":[\"A\"]}", "NAME=value" },
        { "a relative directory", "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"cwd\":\"a\"}",
          "absolute" },
        { "uid without gid", "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"uid\":1}",
          "together" },
        { "an unknown placement",
          "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"placement\":\"magic\"}", "placement" },
        { "an unknown limit",
          "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"rlimits\":{\"x\":[1,2]}}",
          "limit called 'x'" },
        { "a limit of one number",
          "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"rlimits\":{\"core\":[1]}}",
          "[soft, hard]" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_spec spec;
        struct sl_err err = { 0 };
        int rc = job_spec_parse(rows[i].text, strlen(rows[i].text), &spec, &err);
        if (rc >= 0 || !strstr(err.msg, rows[i].says))
            fail_msg("%s: %d, %s", rows[i].label, rc, err.msg);
    }
}

static void whole_spec(void **state)
{
    static const char text[] =
        "{\"lease\":\"L7\",\"run_dir\":\"/r\",\"argv\":[\"a\",\"b c\"],\"cwd\":\"/c\","
        "\"env\":[\"A=1\"],\"env_add\":[\"B=\"],\"placement\":\"mount\",\"fail_closed\":"
        "true,"
        "\"userns\":true,\"detach\":true,\"pgid\":5,\"grace_ms\":9,\"log\":\"/l\","
        "\"log_max_bytes\":7,\"uid\":1000,\"gid\":100,\"groups\":[4,5],\"umask\":18,"
        "\"rlimits\":{\"core\":[0,null]}}";
    struct job_spec s;
    struct sl_err err;
    assert_int_equal(job_spec_parse(text, strlen(text), &s, &err), 0);
    assert_string_equal(s.argv[1], "b c");
    assert_null(s.argv[2]);
    assert_true(s.mount && s.fail_closed && s.userns && s.detach && s.has_uid);
    assert_int_equal(s.pgid, 5);
    assert_int_equal(s.umask, 022);
    assert_int_equal(s.group_count, 2);
    assert_int_equal(s.limits[0].resource, RLIMIT_CORE);
    assert_true(s.limits[0].value.rlim_max == RLIM_INFINITY);
    job_spec_finish(&s);
}

/* A directory of ours in the v2 hierarchy; false: we may not make one. */
static bool make_cgroup(char *dir, size_t size)
{
    char line[512], where[256], type[32];
    FILE *f = fopen("/proc/self/mounts", "re");
    bool made = false;
    while (f && !made && fgets(line, sizeof line, f))
        if (sscanf(line, "%*s %255s %31s", where, type) == 2 && !strcmp(type, "cgroup2")) {
            snprintf(dir, size, "%s/sluice-test-%d", where, getpid());
            made = mkdir(dir, 0755) == 0;
        }
    if (f)
        fclose(f);
    return made;
}

static void starts_in_its_cgroup(void **state)
{
    struct run r;
    char more[400], dir[300] = "/no/such/cgroup", script[360];
    snprintf(more, sizeof more, ",\"cgroup\":\"%s\"", dir);
    start(&r, more, (const char *[]){ "true", NULL });
    assert_int_equal(finish(&r), 0); /* without one it is as before */
    if (!make_cgroup(dir, sizeof dir)) {
        print_message("SKIP: a cgroup for the program: needs root and a v2 hierarchy\n");
        skip();
    }
    snprintf(more, sizeof more, ",\"cgroup\":\"%s\"", dir);
    snprintf(script, sizeof script, "grep -q '^0::.*%s$' /proc/self/cgroup",
             strrchr(dir, '/'));
    start(&r, more, (const char *[]){ "sh", "-c", script, NULL });
    int got = finish(&r);
    rmdir(dir);
    assert_int_equal(got, 0);
}

static void environment_merge(void **state)
{
    const char *base[] = { "A=1", "SLUICE=x", "B=2", "noequals", NULL };
    const char *add[] = { "B=new", "C=3", "SLUICE_LEASE=L7", NULL };
    static const char *const want[] = { "A=1",      "SLUICE=x", "B=new",
                                        "noequals", "C=3",      "SLUICE_LEASE=L7" };
    char **got = job_env_merge((char *const *)base, (char *const *)add);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_string_equal(got[i], want[i]);
    assert_null(got[ARRAY_LEN(want)]);
    free(got);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_specs),
        cmocka_unit_test(whole_spec),
        cmocka_unit_test(environment_merge),
#define WITH_AGENT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        WITH_AGENT(exit_statuses),
        WITH_AGENT(order_of_events),
        WITH_AGENT(no_agent),
        WITH_AGENT(stops_and_continues),
        WITH_AGENT(orphans),
        WITH_AGENT(ended_from_outside),
        WITH_AGENT(terminal_signals_to_the_shim),
        WITH_AGENT(outlives_everybody),
        WITH_AGENT(log_is_kept),
        WITH_AGENT(log_says_why_nothing_ran),
        WITH_AGENT(disk_is_full),
        WITH_AGENT(status_on_a_full_disk),
        WITH_AGENT(starts_in_its_cgroup),
        WITH_AGENT(caller_dies_before_the_anchor),
    };
    char nap[32];
    snprintf(nap, sizeof nap, "7331.%d", getpid()); /* ours among those of other runs */
    setenv("NAP", nap, 1);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
