/* Starting sluice-agent so that it keeps nothing of its caller. */
#include "cli/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/macros.h"
#include "os/file.h"
#include "os/sock.h"

#define READY_MS        30000 /* a cold probe of a device takes about a second */
#define LEAST_FILES     64
#define LEAST_FILE_SIZE (1 << 20)
#define LOG_TAIL        600 /* how much of the agent's last words an error quotes */

/* How the process between us and the agent ends. */
enum outcome {
    OUTCOME_READY,
    OUTCOME_LOST_RACE,
    OUTCOME_FAILED,
    OUTCOME_USAGE, /* it does not take what it was given */
    OUTCOME_SILENT,
};

bool agent_is_running(const struct rundir *r)
{
    char path[108];
    if (rundir_path(r, "agent.sock", path, sizeof path, NULL) < 0)
        return false;
    AUTO_CLOSE int fd = sock_connect_unix(path, SOCK_STREAM, NULL);
    return fd >= 0;
}

static bool may_exist(const struct rundir *r, const char *name)
{
    char path[108];
    struct stat st;
    return rundir_path(r, name, path, sizeof path, NULL) < 0 || lstat(path, &st) == 0 ||
           errno != ENOENT;
}

bool agent_left_traces(const struct rundir *r)
{
    return may_exist(r, "agent.sock") || may_exist(r, "control.sock");
}

int agent_fail_missing(const struct rundir *r, struct sl_err *err)
{
    char path[108];
    struct sl_err why = { 0 };
    int fd = rundir_path(r, "agent.sock", path, sizeof path, &why);
    if (fd == 0)
        fd = sock_connect_unix(path, SOCK_STREAM, &why);
    if (fd >= 0) {
        close(fd); /* one came up meanwhile; the next try finds it */
    } else if (why.sys != ENOENT && why.sys != ECONNREFUSED) {
        *err = why;
        return fd;
    }
    if (may_exist(r, "agent.sock"))
        return sl_fail(
            err, SL_UNAVAILABLE,
            "the agent in %s does not answer and did not end in order; sluice up "
            "starts it again, and running programs keep their leases",
            r->path);
    if (may_exist(r, "control.sock"))
        return sl_fail(err, SL_UNAVAILABLE,
                       "no agent answers in %s, but its broker runs on: leases may live; "
                       "sluice up starts one",
                       r->path);
    return sl_fail(err, SL_UNAVAILABLE,
                   "no agent runs in %s; sluice run or sluice up starts one", r->path);
}

static int find_agent(char *out, size_t size, struct sl_err *err)
{
    char dir[4096 - 32];
    int rc = file_program_dir(dir, sizeof dir, err);
    if (rc < 0)
        return rc;
    if ((size_t)snprintf(out, size, "%s/sluice-agent", dir) >= size)
        return sl_fail(err, SL_INVALID, "the path of the program is too long: %s", dir);
    if (access(out, X_OK))
        return sl_fail_sys(err, SL_UNAVAILABLE, errno,
                           "the agent's program must lie beside this one: %s", out);
    return 0;
}

/* Fill argv (room for 20).  The agent leaves the caller's directory, so that a file
 * is named from the root; `file` has room for PATH_MAX. */
static void build_argv(const char **argv, const char *program, const struct rundir *r,
                       const struct start_options *o, bool ready, char *file)
{
    int n = 0;
    argv[n++] = program;
    argv[n++] = "--run-dir";
    argv[n++] = r->path;
    if (o->embedded)
        argv[n++] = "--embedded";
    if (o->share_tenants)
        argv[n++] = "--share-tenants";
    if (o->emulate) {
        argv[n++] = "--emulate";
        argv[n++] = realpath(o->emulate, file) ? file : o->emulate;
    }
    if (o->mem_overcommit) {
        argv[n++] = "--mem-overcommit";
        argv[n++] = o->mem_overcommit;
    }
    if (o->turn) {
        argv[n++] = "--turn";
        argv[n++] = o->turn;
    }
    if (o->reserve) {
        argv[n++] = "--reserve";
        argv[n++] = o->reserve;
    }
    if (ready) {
        argv[n++] = "--ready-fd";
        argv[n++] = "3";
    } else {
        argv[n++] = "--foreground";
    }
    argv[n] = NULL;
}

/*
 * The caller's environment is not the agent's: a driver variable of one user
 * must not decide what the inventory finds for all.  What locates things stays.
 */
static void build_env(char **env, size_t room)
{
    static const char *const kept[] = {
        "PATH=",
        "HOME=",
        "USER=",
        "LOGNAME=",
        "LANG=",
        "LC_ALL=",
        "TMPDIR=",
        "TZ=",
        "XDG_RUNTIME_DIR=",
        "XDG_CACHE_HOME=",
        "OCL_ICD_VENDORS=",
        "OPENCL_VENDOR_PATH=",
        "ASAN_OPTIONS=",
        "UBSAN_OPTIONS=",
        "TSAN_OPTIONS=",
        "LSAN_OPTIONS=",
    };
    extern char **environ;
    size_t n = 0;
    for (char **e = environ; *e && n + 1 < room; e++) {
        bool keep = !strncmp(*e, "SLUICE_", 7) && strncmp(*e, "SLUICE_LEASE=", 13) &&
                    strncmp(*e, "SLUICE_BROKER=", 14);
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
            keep |= !strncmp(*e, kept[i], strlen(kept[i]));
        if (keep)
            env[n++] = *e;
    }
    env[n] = NULL;
}

/* Soft limits to what the hard ones allow, and further where that is permitted. */
static void reset_limits(void)
{
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit now, wide = { RLIM_INFINITY, RLIM_INFINITY };
        if (getrlimit(which, &now))
            continue;
        if (which == RLIMIT_CORE)
            wide = (struct rlimit){ 0, now.rlim_max };
        else if (which == RLIMIT_NOFILE)
            wide = (struct rlimit){ 65536, 65536 };
        else if (which == RLIMIT_STACK)
            wide.rlim_cur = 8 << 20;
        if (setrlimit(which, &wide)) {
            now.rlim_cur = wide.rlim_cur < now.rlim_max ? wide.rlim_cur : now.rlim_max;
            setrlimit(which, &now);
        }
    }
}

static void reset_signals(void)
{
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors: /dev/null, /dev/null, the log, and `ready` as 3; nothing else. */
static int keep_descriptors(const char *log, int ready)
{
    int null = open("/dev/null", O_RDWR);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (null < 0)
        return -1;
    if (out < 0)
        out = null;
    /* above 3, so that none of the four is overwritten before it is used */
    null = fcntl(null, F_DUPFD, 10);
    out = fcntl(out, F_DUPFD, 10);
    ready = fcntl(ready, F_DUPFD, 10);
    if (null < 0 || out < 0 || ready < 0)
        return -1;
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(out, 2) < 0 || dup2(ready, 3) < 0)
        return -1;
    return close_range(4, ~0u, 0);
}

/* The process between: starts the agent in a new session, waits until it is ready
 * or has ended, and says which by its own exit status; why it failed goes to `said`. */
static void middle(const char **argv, char **env, const char *log, int said)
{
    int pipe_fd[2];
    if (setsid() < 0 || chdir("/") || pipe(pipe_fd))
        _exit(OUTCOME_FAILED);
    umask(022);
    reset_signals();
    reset_limits();
    pid_t agent = fork();
    if (agent < 0)
        _exit(OUTCOME_FAILED);
    if (agent == 0) {
        if (keep_descriptors(log, pipe_fd[1]) == 0)
            execve(argv[0], (char *const *)argv, env);
        _exit(127);
    }
    dup2(pipe_fd[0], 0);
    dup2(said, 1);
    close_range(2, ~0u, 0); /* or a caller that reads our output waits for us */
    struct pollfd p = { .fd = 0, .events = POLLIN };
    if (poll(&p, 1, READY_MS) <= 0)
        _exit(OUTCOME_SILENT);
    char word[LOG_TAIL] = "";
    ssize_t len = read(0, word, sizeof word);
    if (len > 0 && word[0] != '-')
        _exit(word[0] == '=' ? OUTCOME_LOST_RACE : OUTCOME_READY);
    if (len > 1 && write(1, word + 1, (size_t)len - 1) < 0)
        _exit(OUTCOME_FAILED);
    int status;
    if (waitpid(agent, &status, 0) != agent)
        _exit(OUTCOME_FAILED);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (code == 0 && word[0] != '-')
        _exit(OUTCOME_LOST_RACE);
    _exit(code == 2 ? OUTCOME_USAGE : OUTCOME_FAILED);
}

/* The last line of the log from `from` on, if it is no event of its ordinary life: of an agent
 * that ended before it could say why. */
static void quote_log(const char *log, off_t from, char *out, size_t size)
{
    AUTO_CLOSE int fd = open(log, O_RDONLY | O_CLOEXEC);
    struct stat st;
    out[0] = 0;
    if (fd < 0 || fstat(fd, &st) || st.st_size <= from)
        return;
    off_t start = st.st_size - from >= (off_t)size ? st.st_size - (off_t)size + 1 : from;
    ssize_t n = pread(fd, out, size - 1, start);
    out[n > 0 ? n : 0] = 0;
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
        out[--n] = 0;
    char *line = strrchr(out, '\n');
    if (line)
        memmove(out, line + 1, strlen(line + 1) + 1);
    if (strstr(out, " info agent "))
        out[0] = 0;
}

static bool wait_for_socket(const struct rundir *r)
{
    for (int ms = 0; ms < READY_MS; ms += 20) {
        if (agent_is_running(r))
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
    }
    return false;
}

/* A hard limit of the caller's that an agent cannot live with: it dies without a word. */
static int name_tight_limit(struct sl_err *err)
{
    struct rlimit files = { 0 }, size = { 0 };
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_FSIZE, &size);
    if (files.rlim_max < LEAST_FILES)
        return sl_fail(
            err, SL_UNAVAILABLE,
            "the agent did not start: this shell's hard limit of %llu open files "
            "(ulimit -Hn) is too small; run `sluice up` in another",
            (unsigned long long)files.rlim_max);
    if (size.rlim_max < LEAST_FILE_SIZE)
        return sl_fail(err, SL_UNAVAILABLE,
                       "the agent did not start: this shell's hard limit on the size of "
                       "files (ulimit -Hf) is too small; run `sluice up` in another");
    return 0;
}

static int fail_start(const char *log, off_t from, enum outcome how, char said[LOG_TAIL],
                      struct sl_err *err)
{
    if (!said[0])
        quote_log(log, from, said, LOG_TAIL);
    const char *prefix = "sluice-agent: ";
    if (!strncmp(said, prefix, strlen(prefix)))
        memmove(said, said + strlen(prefix), strlen(said + strlen(prefix)) + 1);
    if (said[0] && how == OUTCOME_USAGE)
        return sl_fail(err, SL_INVALID, "%s", said);
    if (said[0])
        return sl_fail(err, SL_UNAVAILABLE, "the agent did not start: %s", said);
    if (name_tight_limit(err) < 0)
        return -SL_UNAVAILABLE;
    return sl_fail(err, SL_UNAVAILABLE, "the agent did not start; its log: %s", log);
}

/* Reap exactly the process between; the caller's other children are not ours. */
static enum outcome run_middle(const char **argv, char **env, const char *log,
                               char said[LOG_TAIL])
{
    int ends[2], status;
    said[0] = 0;
    if (pipe2(ends, O_CLOEXEC))
        return OUTCOME_FAILED;
    AUTO_CLOSE int from = ends[0];
    pid_t pid = fork();
    if (pid == 0)
        middle(argv, env, log, ends[1]);
    close(ends[1]);
    if (pid < 0)
        return OUTCOME_FAILED;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return OUTCOME_FAILED;
    ssize_t len = read(from, said, LOG_TAIL - 1);
    said[len > 0 ? len : 0] = 0;
    return WIFEXITED(status) ? (enum outcome)WEXITSTATUS(status) : OUTCOME_FAILED;
}

int agent_start(const struct rundir *r, const struct start_options *o, struct sl_err *err)
{
    const char *argv[20];
    char program[4096], file[PATH_MAX], log[108], said[LOG_TAIL], *env[256];
    struct stat st;

    if (agent_is_running(r))
        return 1;
    int rc = rundir_prepare(r, err);
    if (rc < 0)
        return rc;
    if ((rc = find_agent(program, sizeof program, err)) < 0)
        return rc;
    if ((rc = rundir_path(r, "agent.log", log, sizeof log, err)) < 0)
        return rc;
    off_t from = stat(log, &st) ? 0 : st.st_size;
    build_argv(argv, program, r, o, true, file);
    build_env(env, ARRAY_LEN(env));

    enum outcome how = run_middle(argv, env, log, said);
    if (how == OUTCOME_READY)
        return 0;
    /* another caller's agent has the lock and is on its way up */
    if (how == OUTCOME_LOST_RACE && wait_for_socket(r))
        return 1;
    if (how == OUTCOME_SILENT)
        return sl_fail(err, SL_TIMEOUT, "the agent is not ready after %d s; its log: %s",
                       READY_MS / 1000, log);
    return fail_start(log, from, how, said, err);
}

int agent_exec(const struct rundir *r, const struct start_options *o, struct sl_err *err)
{
    const char *argv[20];
    char program[4096], file[PATH_MAX];

    int rc = rundir_prepare(r, err);
    if (rc < 0)
        return rc;
    if ((rc = find_agent(program, sizeof program, err)) < 0)
        return rc;
    build_argv(argv, program, r, o, false, file);
    execv(program, (char *const *)argv);
    return sl_fail_sys(err, SL_UNAVAILABLE, errno, "cannot execute %s", program);
}
