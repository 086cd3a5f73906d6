/* Files, processes, sockets, the run directory and the log, against a real kernel. */
#include "../rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/file.h"
#include "os/log.h"
#include "os/proc.h"
#include "os/rundir.h"
#include "os/sock.h"

static char top[64]; /* a fresh directory for each test */

static int make_top(void **state)
{
    strcpy(top, "/tmp/sluice-os-XXXXXX");
    return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
    return file_remove_tree(top, NULL);
}

static const char *in_top(const char *name)
{
    static char paths[8][160];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", top, name);
    return path;
}

static int count_entries(const char *path)
{
    DIR *d = opendir(path);
    int count = -2; /* . and .. */
    while (d && readdir(d))
        count++;
    closedir(d);
    return count;
}

/* ---- files ---- */

static void a_file_is_replaced_whole(void **state)
{
    struct sl_err err;
    AUTO_FREE char *text = NULL;
    size_t len;
    struct stat st;
    mode_t old = umask(077);
    assert_int_equal(file_write_atomic(in_top("f"), "one", 3, 0644, &err), 0);
    assert_int_equal(file_write_atomic(in_top("f"), "second", 6, 0640, &err), 0);
    umask(old);
    assert_int_equal(file_read(in_top("f"), 100, &text, &len, &err), 0);
    assert_int_equal(len, 6);
    assert_string_equal(text, "second");
    assert_int_equal(stat(in_top("f"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(count_entries(top), 1);
}

static void reading_is_bounded(void **state)
{
    struct sl_err err;
    char *text = NULL;
    static const struct {
        const char *label;
        size_t size, max;
        int want;
    } rows[] = {
        { "empty", 0, 10, 0 },
        { "exactly the bound", 10, 10, 0 },
        { "one over", 11, 10, -SL_TOO_LARGE },
        { "nothing may be there and is", 0, 0, 0 },
        { "nothing may be there, but is", 1, 0, -SL_TOO_LARGE },
        { "larger than a first guess", 300000, 1 << 20, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_FREE char *data = calloc(1, rows[i].size + 1);
        size_t len = 0;
        memset(data, 'x', rows[i].size);
        ROW(rows[i].label,
            file_write_atomic(in_top("f"), data, rows[i].size, 0600, &err) == 0);
        int rc = file_read(in_top("f"), rows[i].max, &text, &len, &err);
        ROW(rows[i].label, rc == rows[i].want);
        if (rc == 0) {
            ROW(rows[i].label, len == rows[i].size && strlen(text) == len);
            free(text);
        }
    }
    assert_int_equal(file_read(in_top("none"), 9, &text, NULL, &err), -SL_NOT_FOUND);
    assert_int_equal(file_read("/proc/self/stat", 4096, &text, NULL, &err), 0);
    free(text);
    assert_int_equal(file_read(top, 9, &text, NULL, &err), -SL_IO);
}

static void a_full_disk_is_an_error_that_says_so(void **state)
{
    struct sl_err err;
    AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(file_write_all(full, "x", 1, &err), -SL_IO);
    assert_int_equal(err.sys, ENOSPC);
    assert_string_equal(err.msg, "write: No space left on device");
}

/* A limit on file sizes gives a short write first, then EFBIG: as a disk that fills. */
static void a_disk_that_fills_keeps_the_old_file(void **state)
{
    struct sl_err err;
    struct rlimit old, small;
    static char data[8192];
    assert_int_equal(file_write_atomic(in_top("f"), "old", 3, 0600, &err), 0);

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 1000;
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = file_write_atomic(in_top("f"), data, sizeof data, 0600, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, -SL_IO);
    assert_int_equal(err.sys, EFBIG);

    AUTO_FREE char *text = NULL;
    assert_int_equal(file_read(in_top("f"), 100, &text, NULL, &err), 0);
    assert_string_equal(text, "old");
    assert_int_equal(count_entries(top), 1);
}

static void nothing(int sig) {}

/* A pipe that is read slowly, and a signal every millisecond without SA_RESTART. */
static void short_writes_and_signals_lose_nothing(void **state)
{
    enum { SIZE = 1 << 20 };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char block[5000];
        size_t sum = 0;
        ssize_t got;
        close(ends[1]);
        usleep(20000); /* the pipe is full by then, and write() is interrupted with nothing
                          written */
        while ((got = read(ends[0], block, sizeof block)) > 0) {
            sum += (size_t)got;
            if (sum % 3 == 0)
                usleep(100);
        }
        _exit(sum == SIZE ? 0 : 1);
    }
    close(ends[0]);
    struct sigaction act = { .sa_handler = nothing }, was;
    sigaction(SIGALRM, &act, &was);
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
    setitimer(ITIMER_REAL, &often, NULL);
    char *data = calloc(1, SIZE);
    struct sl_err err;
    int rc = file_write_all(ends[1], data, SIZE, &err);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &was, NULL);
    free(data);
    close(ends[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(rc, 0);
    assert_int_equal(status, 0);
}

static void a_copy_has_the_bytes_and_the_mode(void **state)
{
    struct sl_err err;
    static char data[200000];
    AUTO_FREE char *text = NULL;
    size_t len;
    struct stat st;
    memset(data, 'y', sizeof data);
    assert_int_equal(file_write_atomic(in_top("a"), data, sizeof data, 0600, &err), 0);
    assert_int_equal(file_copy(in_top("a"), in_top("b"), 0755, &err), 0);
    assert_int_equal(file_read(in_top("b"), 1 << 20, &text, &len, &err), 0);
    assert_int_equal(len, sizeof data);
    assert_memory_equal(text, data, len);
    stat(in_top("b"), &st);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(file_copy(in_top("none"), in_top("c"), 0600, &err), -SL_NOT_FOUND);
    assert_int_equal(file_copy(in_top("a"), in_top("none/c"), 0600, &err), -SL_NOT_FOUND);
}

static void a_tree_goes_but_not_what_its_links_name(void **state)
{
    struct sl_err err;
    assert_int_equal(file_make_dir(in_top("keep"), 0700, &err), 0);
    assert_int_equal(file_write_atomic(in_top("keep/f"), "x", 1, 0600, &err), 0);
    assert_int_equal(file_make_dir(in_top("t"), 0700, &err), 0);
    assert_int_equal(file_make_dir(in_top("t"), 0700, &err), 0);
    assert_int_equal(file_make_dir(in_top("t/d"), 0700, &err), 0);
    assert_int_equal(file_write_atomic(in_top("t/d/f"), "x", 1, 0600, &err), 0);
    assert_int_equal(symlink(in_top("keep"), in_top("t/link")), 0);
    assert_int_equal(symlink(in_top("keep"), in_top("toplink")), 0);

    assert_int_equal(file_remove_tree(in_top("t"), &err), 0);
    assert_int_equal(access(in_top("t"), F_OK), -1);
    assert_int_equal(file_remove_tree(in_top("toplink"), &err), 0);
    assert_int_equal(access(in_top("keep/f"), F_OK), 0);
    assert_int_equal(file_remove_tree(in_top("t"), &err), 0);
    assert_int_equal(file_make_dir(in_top("keep/f"), 0700, &err), -SL_IO);
}

static void the_programs_directory_is_known(void **state)
{
    char dir[200], tiny[2];
    struct sl_err err;
    assert_int_equal(file_program_dir(dir, sizeof dir, &err), 0);
    assert_non_null(strstr(dir, "/tests/unit/os"));
    assert_int_equal(file_program_dir(tiny, sizeof tiny, &err), -SL_INVALID);
}

/* ---- processes ---- */

static void a_process_is_its_pid_and_start_time(void **state)
{
    struct proc_id id, wrong;
    struct sl_err err;
    pid_t child = fork();
    if (child == 0) {
        /* a name with a parenthesis and spaces must not shift the fields */
        AUTO_CLOSE int fd = open("/proc/self/comm", O_WRONLY);
        if (write(fd, ") R 1 2", 7) != 7)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(proc_identify(child, &id, &err), 0);
    assert_true(id.pid == child && id.start_ticks > 0);
    assert_true(proc_is_alive(&id));
    wrong = id;
    wrong.start_ticks++;
    assert_false(proc_is_alive(&wrong));
    assert_int_equal(proc_open(&wrong, &err), -SL_NOT_FOUND);

    AUTO_CLOSE int fd = proc_open(&id, &err);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 0), 0);
    kill(child, SIGKILL);
    assert_int_equal(poll(&p, 1, 5000), 1);
    assert_false(proc_is_alive(&id)); /* a zombie */
    waitpid(child, &status, 0);
    assert_false(proc_is_alive(&id));
    assert_int_equal(proc_open(&id, &err), -SL_NOT_FOUND);
    assert_int_equal(proc_identify(child, &id, &err), -SL_NOT_FOUND);
}

static void pids_that_cannot_be_are_not_found(void **state)
{
    static const pid_t pids[] = { 0, -1, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        struct proc_id id = { .pid = pids[i] };
        assert_int_equal(proc_identify(pids[i], &id, NULL), -SL_NOT_FOUND);
        assert_int_equal(proc_open(&id, NULL), -SL_NOT_FOUND);
        assert_false(proc_is_alive(&id));
    }
}

/* ---- sockets ---- */

static void sockets_meet_and_know_their_peer(void **state)
{
    struct sl_err err;
    struct ucred who;
    struct stat st;
    static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        const char *path = in_top("s");
        mode_t old = umask(077);
        AUTO_CLOSE int at = sock_listen_unix(path, types[i], 0666, &err);
        umask(old);
        assert_true(at >= 0);
        stat(path, &st);
        assert_int_equal(st.st_mode & 0777, 0666);
        AUTO_CLOSE int here = sock_connect_unix(path, types[i], &err);
        assert_true(here >= 0);
        AUTO_CLOSE int there = accept(at, NULL, NULL);
        assert_int_equal(sock_peer(there, &who, &err), 0);
        assert_int_equal(who.pid, getpid());
        assert_int_equal(who.uid, getuid());
    }
}

static void sockets_that_cannot_be(void **state)
{
    struct sl_err err;
    char longest[200];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "/tmp/", 5);
    longest[150] = '\0';
    assert_int_equal(sock_listen_unix(longest, SOCK_STREAM, 0600, &err), -SL_INVALID);
    assert_non_null(strstr(err.msg, "socket path has 150 bytes, at most 107 fit"));
    assert_int_equal(sock_connect_unix("", SOCK_STREAM, &err), -SL_INVALID);
    assert_int_equal(sock_connect_unix(in_top("none"), SOCK_STREAM, &err), -SL_UNAVAILABLE);

    file_write_atomic(in_top("file"), "x", 1, 0600, NULL);
    assert_int_equal(sock_listen_unix(in_top("file"), SOCK_STREAM, 0600, &err),
                     -SL_CONFLICT);
    assert_int_equal(access(in_top("file"), F_OK), 0);

    /* a socket whose owner died: nobody listens, and the next owner replaces it */
    close(sock_listen_unix(in_top("dead"), SOCK_STREAM, 0600, &err));
    assert_int_equal(sock_connect_unix(in_top("dead"), SOCK_STREAM, &err), -SL_UNAVAILABLE);
    AUTO_CLOSE int again = sock_listen_unix(in_top("dead"), SOCK_STREAM, 0600, &err);
    assert_true(again >= 0);
}

/* ---- the run directory ---- */

static void the_run_directory_is_chosen(void **state)
{
    static const struct {
        const char *label, *given, *set, *xdg, *want; /* "…": the message holds it */
    } rows[] = {
        { "what is given wins", "/a", "/b", "/c", "/a" },
        { "then the variable", NULL, "/b", "/c", "/b" },
        { "slashes at the end go", "/a//", NULL, NULL, "/a" },
        { "an empty variable is none", "/a", "", NULL, "/a" },
        { "an empty name is refused", "", NULL, NULL, "…name is empty" },
        { "79 bytes fit",
          "/123456789/123456789/123456789/123456789/123456789/123456789/123456789/"
          "123456789",
          NULL, NULL, "…at most 79 leave room" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rundir r = { "" };
        struct sl_err err = { 0 };
        rows[i].set ? setenv("SLUICE_RUN_DIR", rows[i].set, 1) : unsetenv("SLUICE_RUN_DIR");
        rows[i].xdg ? setenv("XDG_RUNTIME_DIR", rows[i].xdg, 1)
                    : unsetenv("XDG_RUNTIME_DIR");
        int rc = rundir_choose(&r, rows[i].given, &err);
        if (!strncmp(rows[i].want, "…", strlen("…"))) {
            ROW(rows[i].label, rc == -SL_INVALID);
            ROW(rows[i].label, strstr(err.msg, rows[i].want + strlen("…")));
        } else {
            ROW(rows[i].label, rc == 0);
            ROW_STR(rows[i].label, r.path, rows[i].want);
        }
    }
    unsetenv("SLUICE_RUN_DIR");
}

static void the_run_directory_must_be_ours_alone(void **state)
{
    struct sl_err err;
    struct rundir r;
    struct stat st;
    char path[100], tiny[20];
    mode_t old = umask(0);
    assert_int_equal(rundir_choose(&r, in_top("run"), &err), 0);
    assert_int_equal(rundir_prepare(&r, &err), 0);
    assert_int_equal(rundir_prepare(&r, &err), 0);
    stat(r.path, &st);
    assert_int_equal(st.st_mode & 0777, geteuid() == 0 ? 0711 : 0700);
    umask(old);

    assert_int_equal(rundir_path(&r, "agent.sock", path, sizeof path, &err), 0);
    assert_non_null(strstr(path, "/run/agent.sock"));
    assert_int_equal(rundir_path(&r, "agent.sock", tiny, sizeof tiny, &err), -SL_INVALID);

    chmod(r.path, 0777);
    assert_int_equal(rundir_check(&r, &err), -SL_DENIED);
    assert_int_equal(rundir_prepare(&r, &err), -SL_DENIED);
    assert_non_null(strstr(err.msg, "writable by others (mode 0777): chmod go-w"));

    rundir_choose(&r, in_top("file"), &err);
    file_write_atomic(r.path, "x", 1, 0600, NULL);
    assert_int_equal(rundir_prepare(&r, &err), -SL_CONFLICT);

    assert_int_equal(symlink(in_top("run"), in_top("link")), 0);
    rundir_choose(&r, in_top("link"), &err);
    assert_int_equal(rundir_prepare(&r, &err), -SL_CONFLICT);

    rundir_choose(&r, in_top("no/such"), &err);
    assert_int_equal(rundir_check(&r, &err), 0);
    assert_int_equal(rundir_prepare(&r, &err), -SL_INVALID);
    assert_non_null(strstr(err.msg, "/no does not exist; choose another"));
    rundir_choose(&r, in_top("file/x"), &err);
    assert_int_equal(rundir_prepare(&r, &err), -SL_INVALID);
    assert_non_null(strstr(err.msg, "/file is not a directory; choose another"));
    rundir_choose(&r, "/proc/x", &err);
    assert_int_equal(rundir_prepare(&r, &err), -SL_INVALID);
    assert_non_null(strstr(err.msg, "/proc lets nobody make a directory in it"));

    if (geteuid() == 0) {
        rundir_choose(&r, in_top("other"), &err);
        mkdir(r.path, 0700);
        assert_int_equal(chown(r.path, 12345, 12345), 0);
        assert_int_equal(rundir_prepare(&r, &err), -SL_DENIED);
        assert_non_null(strstr(err.msg, "belongs to uid 12345"));
    }
}

/* ---- the log ---- */

static void an_event_is_one_line(void **state)
{
    AUTO_FREE char *text = NULL;
    AUTO_CLOSE int fd =
        open(in_top("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    enum log_level level;
    struct sl_err err;
    static char much[5000];
    memset(much, 'm', sizeof much - 1);

    assert_int_equal(log_level_parse("info", &level, &err), 0);
    assert_int_equal(log_level_parse("loud", &level, &err), -SL_INVALID);
    log_init("agent", fd, level);
    log_debug("quiet", "x=1");
    log_info("lease-granted", "lease=L7 name=%s", "a\nb\x1b[31m");
    log_error("long", "x=%s", much);
    log_init("test", STDERR_FILENO, LOG_ERROR);

    assert_int_equal(file_read(in_top("log"), 1 << 20, &text, NULL, &err), 0);
    char *second = strchr(text, '\n') + 1;
    assert_memory_equal(text + 23, "Z info agent lease-granted lease=L7 name=a?b?[31m\n",
                        50);
    assert_int_equal(text[10], 'T');
    assert_memory_equal(second + 23, "Z error agent long x=mmm", 24);
    assert_ptr_equal(strchr(second, '\n'), text + strlen(text) - 1);
    assert_true(strlen(second) < 2049);
}

static void a_full_disk_under_the_log_harms_nobody(void **state)
{
    AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    log_init("agent", full, LOG_INFO);
    errno = 7;
    log_info("x", "y=1");
    assert_int_equal(errno, 7);
    log_init("test", STDERR_FILENO, LOG_ERROR);
}

#define T(name) cmocka_unit_test_setup_teardown(name, make_top, remove_top)
static const struct CMUnitTest tests[] = {
    T(a_file_is_replaced_whole),
    T(reading_is_bounded),
    T(a_full_disk_is_an_error_that_says_so),
    T(a_disk_that_fills_keeps_the_old_file),
    T(short_writes_and_signals_lose_nothing),
    T(a_copy_has_the_bytes_and_the_mode),
    T(a_tree_goes_but_not_what_its_links_name),
    T(the_programs_directory_is_known),
    T(a_process_is_its_pid_and_start_time),
    T(pids_that_cannot_be_are_not_found),
    T(sockets_meet_and_know_their_peer),
    T(sockets_that_cannot_be),
    T(the_run_directory_is_chosen),
    T(the_run_directory_must_be_ours_alone),
    T(an_event_is_one_line),
    T(a_full_disk_under_the_log_harms_nobody),
};
ROWS_MAIN(tests)
