/*
 * `sluice run` with a real shim, beside a FAKE agent: nothing of the caller's is
 * changed, and a job behaves under a shell as if Sluice were not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/macros.h"
#include "fake_agent.h"
#include "term.h"

static struct fake_agent agent;
static struct term term;

static int set_up(void **state)
{
    fake_start(&agent, NULL);
    setenv("SLUICE_RUN_DIR", agent.dir, 1);
    setenv("DIR", agent.dir, 1);
    return 0;
}

static int tear_down(void **state)
{
    fake_stop(&agent);
    return 0;
}

/* An interactive bash, without anybody's own settings. */
static int open_shell(void **state)
{
    static char *argv[] = { (char *)"bash", (char *)"--norc", (char *)"--noprofile",
                            (char *)"-i", NULL };
    set_up(state);
    setenv("PS1", "$ ", 1);
    term_open(&term, argv);
    term_type(&term,
              "stty -echo; bind 'set enable-bracketed-paste off'; echo shell-\"is\"-up\n");
    return term_wait(&term, "shell-is-up") ? 0 : -1;
}

static int close_shell(void **state)
{
    term_close(&term);
    return tear_down(state);
}

#define expect(text)                                                               \
    do {                                                                           \
        if (!term_wait(&term, text))                                               \
            fail_msg("waited for '%s'; the terminal shows:\n%s", text, term.seen); \
    } while (0)

static char *read_text(const char *name)
{
    char path[128];
    static char text[2][1 << 16];
    static int turn;
    char *out = text[turn++ % 2];
    snprintf(path, sizeof path, "%s/%s", agent.dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, sizeof text[0] - 1);
    out[n > 0 ? n : 0] = 0;
    close(fd);
    return out;
}

static int shell_status(const char *script)
{
    int status = system(script);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Drop the lines that may differ: the variables that locate front and lease. */
static void drop_ours(char *text)
{
    static const char *const ours[] = { "env SLUICE_BROKER=", "env SLUICE_LEASE=",
                                        "env OPENCL_LAYERS=" };
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        char *at = strstr(text, ours[i]);
        assert_non_null(at);
        char *end = strchr(at, '\n') + 1;
        memmove(at, end, strlen(end) + 1);
    }
}

static void nothing_is_changed(void **state)
{
    static const struct {
        const char *label, *before;
    } rows[] = {
        { "an ordinary caller", "" },
        { "umask, directory, limits and priority",
          "umask 0137; cd /usr/lib; ulimit -n 300; ulimit -c 0; ulimit -s 4096; renice -n "
          "3 $$ "
          ">/dev/null;" },
        { "ignored signals", "trap '' HUP INT QUIT PIPE USR1 TSTP TTOU CHLD;" },
        { "more descriptors", "exec 3</etc/passwd 7>/dev/null 9<>/dev/zero;" },
        { "no standard input", "exec <&-;" },
        { "no standard streams but output", "exec <&- 2>&-;" },
        { "bytes that are not UTF-8, an empty variable",
          "export B=$(printf '\\377\\376x') E= ; set -- $(printf 'a\\377');" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char script[2048];
        snprintf(
            script, sizeof script,
            "export PATH=$PATH:/sbin; %s $RUN_DUMP one \"$@\" '' 'two words' >$DIR/plain",
            rows[i].before);
        assert_int_equal(shell_status(script), 0);
        snprintf(script, sizeof script,
                 "export PATH=$PATH:/sbin; %s $SLUICE run -q -- $RUN_DUMP one \"$@\" '' "
                 "'two words' >$DIR/inside",
                 rows[i].before);
        assert_int_equal(shell_status(script), 0);
        char *plain = read_text("plain"), *inside = read_text("inside");
        /* the shell opened another file of ours for it */
        char *at = strstr(inside, "/inside ");
        if (at)
            memmove(at + 6, at + 7, strlen(at + 7) + 1), memcpy(at, "/plain", 6);
        drop_ours(inside);
        if (strcmp(plain, inside) != 0) {
            fprintf(stderr, "%s\n", rows[i].label);
            if (system("diff $DIR/plain $DIR/inside >&2") < 0)
                abort();
            fail_msg("%s: the program sees a difference", rows[i].label);
        }
    }
}

static void statuses(void **state)
{
    static const struct {
        const char *label, *script;
        int want;
    } rows[] = {
        { "success", "$SLUICE run -q true", 0 },
        { "the program's own", "$SLUICE run -q -- sh -c 'exit 3'", 3 },
        { "125 of the program itself", "$SLUICE run -q -- sh -c 'exit 125'", 125 },
        { "no such program", "$SLUICE run -q no-such-program 2>/dev/null", 127 },
        { "not executable", "$SLUICE run -q /etc/passwd 2>/dev/null", 126 },
        { "a signal", "$SLUICE run -q -- sh -c 'kill -9 $$'", 137 },
        { "SIGTERM", "$SLUICE run -q -- sh -c 'kill $$'", 143 },
        { "wrong usage", "$SLUICE run --no-such-option true 2>/dev/null", 125 },
        { "memory 0", "$SLUICE run --mem 0 true 2>/dev/null", 125 },
        { "compute 101", "$SLUICE run --compute 101 true 2>/dev/null", 125 },
        { "a range upside down", "$SLUICE run --compute 70..30 true 2>/dev/null", 125 },
        { "inside a lease of another machine", "SLUICE_LEASE=L99 $SLUICE run -q true", 0 },
        { "its options end at the program", "$SLUICE run -q sh -c 'exit 4' -q --mem", 4 },
        { "a pipeline",
          "$SLUICE run -q echo a b | $SLUICE run -q tr a-z A-Z | grep -q 'A B'", 0 },
        { "input", "echo in | $SLUICE run -q cat | grep -q in", 0 },
        { "detached", "test \"$($SLUICE run -q --detach -- sh -c 'exit 4')\" = L7", 0 },
        { "detached, no such program", "$SLUICE run -q --detach nope 2>/dev/null", 127 },
        { "submit", "test \"$($SLUICE submit -q true)\" = L7", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int got = shell_status(rows[i].script);
        if (got != rows[i].want)
            fail_msg("%s: %d instead of %d", rows[i].label, got, rows[i].want);
    }
}

static void no_room(void **state)
{
    static const char answer[] =
        "HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\n"
        "Connection: close\r\n\r\n"
        "{\"type\":\"about:blank\",\"title\":\"no\",\"status\":409,\"code\":\"no-"
        "capacity\","
        "\"detail\":\"nothing has 512MiB free\",\"alternatives\":[\"256MiB fit at once\"],"
        "\"who\":\"wait\"}";
    fake_stop(&agent);
    fake_start(&agent, answer);
    setenv("SLUICE_RUN_DIR", agent.dir, 1);
    setenv("DIR", agent.dir, 1);
    assert_int_equal(shell_status("$SLUICE run --mem 512MiB true 2>$DIR/err"), 125);
    char *said = read_text("err");
    assert_non_null(strstr(said, "nothing has 512MiB free"));
    assert_non_null(strstr(said, "256MiB fit at once"));
}

static void lease_is_given_back_if_nothing_starts(void **state)
{
    /* The shim cannot be anchored: the agent that granted is gone a moment later. */
    assert_int_equal(shell_status("$SLUICE run -q nope 2>/dev/null"), 127);
    assert_false(fake_saw(&agent, "POST /v1/leases"));
    /* what only the kernel finds out */
    assert_int_equal(shell_status("printf '#!/no/such\\n' >$DIR/lost; chmod +x $DIR/lost;"
                                  "$SLUICE run -q $DIR/lost 2>/dev/null"),
                     126);
    assert_true(fake_saw(&agent, "/exit {\"exit_status\":126}"));
}

static void a_killed_run_leaves_its_job_alone(void **state)
{
    assert_int_equal(shell_status("$SLUICE run -q -- sh -c 'echo $$ >$DIR/pid; sleep 0.6; "
                                  "echo alive >$DIR/after; exit 5' & run=$!;"
                                  "while ! test -s $DIR/pid; do sleep 0.02; done;"
                                  "kill -9 $run; wait $run; test $? = 137"),
                     0);
    assert_true(fake_saw(&agent, "/exit {\"exit_status\":5}"));
    assert_string_equal(read_text("after"), "alive\n");
}

static void signals_to_run_reach_the_program(void **state)
{
    static const char *const names[] = { "TERM", "HUP",   "USR1", "USR2",
                                         "INT",  "WINCH", "CONT" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char script[1024];
        snprintf(
            script, sizeof script,
            "rm -f $DIR/up; env --default-signal=INT $SLUICE run -q -- bash -c 'n=0; trap "
            "\"n=\\$((n+1))\" %s; "
            ">$DIR/up; until test $n -gt 0; do sleep 0.02; done; sleep 0.1; exit $n' & "
            "run=$!; while ! test -e $DIR/up; do sleep 0.02; done; sleep 0.05;"
            "kill -%s $run; wait $run",
            names[i], names[i]);
        /* env, since a shell lets what it starts with & ignore SIGINT */
        int got = shell_status(script);
        if (got != 1)
            fail_msg("%s: the program saw it %d times", names[i], got);
    }
}

static void orphan_in_the_background(void **state)
{
    assert_int_equal(
        shell_status(
            "$SLUICE run -q -- sh -c '(sleep 0.3; echo late >$DIR/late) & exit 3'"),
        3);
    assert_string_equal(read_text("late"), "late\n");
}

static void ctrl_c_ends_the_program(void **state)
{
    term_type(&term, "$SLUICE run -q -- sleep 1000; echo \"status=$?\"\n");
    assert_true(fake_saw(&agent, "/anchor"));
    usleep(100000);
    term_type(&term, "\003");
    /* bash drops the rest of the line when its child died of SIGINT */
    term_type(&term, "echo \"status=$?\"\n");
    expect("status=130");
    assert_true(fake_saw(&agent, "/exit {\"exit_status\":130}"));
}

static void ctrl_c_comes_once(void **state)
{
    term_type(&term, "$SLUICE run -q -- bash -c 'trap \"echo got-it\" INT; echo u\"p\"; "
                     "for i in 1 2 3 4 5 6 "
                     "7 8 9 10; do sleep 0.05; done; echo the-\"end\"'\n");
    expect("up");
    usleep(60000);
    term_type(&term, "\003");
    expect("the-end");
    char *first = strstr(term.seen, "got-it");
    assert_non_null(first);
    assert_null(strstr(first + 1, "got-it"));
}

static void ctrl_z_and_fg(void **state)
{
    term_type(&term, "$SLUICE run -q -- bash -c 'echo u\"p\"; read line; echo \"read "
                     "<$line>\"; exit 7'; "
                     "echo \"status=$?\"\n");
    expect("up");
    for (int i = 0; i < 3; i++) {
        usleep(100000);
        term_type(&term, "\032");
        expect("Stopped");
        term_type(&term, "jobs; echo shell-\"lives\"\n");
        expect("Stopped");
        expect("shell-lives");
        term_type(&term, "fg\n");
        expect("run -q");
    }
    usleep(100000);
    term_type(&term, "hello\n");
    expect("read <hello>");
    term_type(&term, "echo \"after=$?\"\n");
    expect("after=7");
}

static void bg_and_reading_in_the_background(void **state)
{
    term_type(&term, "$SLUICE run -q -- bash -c 'read line; echo \"read <$line>\"' &\n");
    assert_true(fake_saw(&agent, "/anchor"));
    usleep(200000);
    term_type(&term, "jobs; echo ask\"ed\"\n");
    expect("Stopped");
    expect("asked");
    term_type(&term, "fg\n");
    expect("run -q");
    usleep(100000);
    term_type(&term, "words\n");
    expect("read <words>");
}

static void ctrl_z_and_bg(void **state)
{
    term_type(&term, "$SLUICE run -q -- bash -c 'echo u\"p\"; sleep 0.5; echo do\"ne\"'\n");
    expect("up");
    term_type(&term, "\032");
    expect("Stopped");
    term_type(&term, "bg\n");
    expect("done");
    term_type(&term, "wait; echo \"status=$?\"\n");
    expect("status=0");
}

static void kill_percent(void **state)
{
    term_type(&term, "$SLUICE run -q -- bash -c 'trap \"echo term; exit 9\" TERM; echo "
                     "u\"p\"; while :; do "
                     "sleep 0.02; done' &\n");
    expect("up");
    term_type(&term, "kill %1; wait %1; echo \"status=$?\"\n");
    expect("status=9");
    char *first = strstr(term.seen, "term\r\n");
    assert_non_null(first);
    assert_null(strstr(first + 1, "term\r\n"));
}

static void window_size(void **state)
{
    term_type(
        &term,
        "$SLUICE run -q -- bash -c 'trap \"stty size; exit\" WINCH; echo u\"p\"; while :; "
        "do sleep 0.02; done'\n");
    expect("up");
    usleep(50000);
    term_resize(&term, 33, 99);
    expect("33 99");
}

static void terminal_in_a_pipeline(void **state)
{
    /* The last one reads the terminal: it must be in the foreground group. */
    term_type(&term, "$SLUICE run -q echo pi\"ped\" | $SLUICE run -q -- bash -c 'cat; read "
                     "line </dev/tty; "
                     "echo \"read <$line>\"'\n");
    expect("piped");
    term_type(&term, "typed\n");
    expect("read <typed>");
    term_type(&term, "$SLUICE run -q -- sleep 1000 | cat\n");
    usleep(300000);
    term_type(&term, "\003");
    term_type(&term, "echo back-\"again\"\n");
    expect("back-again");
}

static void a_shell_inside(void **state)
{
    term_type(&term, "$SLUICE run -q -- bash --norc --noprofile -i\n");
    usleep(300000);
    term_type(&term, "sleep 1000\n");
    usleep(300000);
    term_type(&term, "\032");
    expect("Stopped");
    /* bash leaves only when it has seen that the stopped job is gone */
    term_type(&term,
              "kill -9 %1; until [ -z \"$(jobs -s)\" ]; do sleep 0.1; done; exit 6\n");
    expect("exit");
    term_type(&term, "echo \"status=$?\"\n");
    expect("status=6");
}

static void lingering_is_ended_by_ctrl_c(void **state)
{
    term_type(&term, "$SLUICE run -- bash -c 'sleep 1000 & exit 3'; echo \"status=$?\"\n");
    expect("left behind");
    term_type(&term, "\003");
    expect("status=3");
}

/* No shell between: as with `ssh -t host sluice run …`. */
static void session_leader(void **state)
{
    char *argv[] = { getenv("SLUICE"),
                     (char *)"run",
                     (char *)"-q",
                     (char *)"bash",
                     (char *)"-c",
                     (char *)"trap 'echo got-it' INT; echo up; for i in 1 2 3 4 5 6 7 8 9 "
                             "10; do sleep 0.05; "
                             "done; echo end; read line; echo \"read <$line>\"",
                     NULL };
    term_open(&term, argv);
    expect("up");
    usleep(60000);
    term_type(&term, "\003");
    expect("got-it");
    term_type(&term, "\032");
    expect("end");
    assert_null(strstr(term.seen + term.from, "got-it"));
    term_type(&term, "line\n");
    expect("read <line>");
    term_close(&term);
}

int main(int argc, char **argv)
{
#define PLAIN(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define SHELL(name) cmocka_unit_test_setup_teardown(name, open_shell, close_shell)
    const struct CMUnitTest tests[] = {
        PLAIN(nothing_is_changed),
        PLAIN(statuses),
        PLAIN(no_room),
        PLAIN(lease_is_given_back_if_nothing_starts),
        PLAIN(a_killed_run_leaves_its_job_alone),
        PLAIN(signals_to_run_reach_the_program),
        PLAIN(orphan_in_the_background),
        PLAIN(session_leader),
        SHELL(ctrl_c_ends_the_program),
        SHELL(ctrl_c_comes_once),
        SHELL(ctrl_z_and_fg),
        SHELL(ctrl_z_and_bg),
        SHELL(bg_and_reading_in_the_background),
        SHELL(kill_percent),
        SHELL(window_size),
        SHELL(terminal_in_a_pipeline),
        SHELL(a_shell_inside),
        SHELL(lingering_is_ended_by_ctrl_c),
    };
    /* Whatever starts the tests, they begin like a fresh login. */
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    unsetenv("SLUICE_LEASE");
    unsetenv("SLUICE_BROKER");
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
