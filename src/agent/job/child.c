/* Turns a forked process into the program. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/library.h"
#include "sandbox.h"

extern char **environ;

static void report(const struct child_plan *plan, const struct child_report *r)
{
    ssize_t n = write(plan->report_fd, r, sizeof *r);
    (void)n; /* the shim is gone: nobody is left to tell */
}

static void give_up(const struct child_plan *plan, int status, const char *why)
    __attribute__((noreturn));
static void give_up(const struct child_plan *plan, int status, const char *why)
{
    struct child_report r = { .status = status };
    snprintf(r.why, sizeof r.why, "%s", why);
    report(plan, &r);
    _exit(status);
}

static void give_up_sys(const struct child_plan *plan, const char *what)
    __attribute__((noreturn));
static void give_up_sys(const struct child_plan *plan, const char *what)
{
    char why[300];
    snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
    give_up(plan, 125, why);
}

/* The interpreter that the first line of a script names; empty if it names none. */
static void read_interpreter(const char *path, char *out, size_t size)
{
    char head[256] = "";
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, head, sizeof head - 1);
    close(fd);
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return;
    head[n] = 0;
    const char *from = head + 2 + strspn(head + 2, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(from, " \t\n"), from);
}

int child_explain(const char *path, int sys, char *why, size_t size)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    char interpreter[256];
    if (sys == ENOENT && !exists) {
        snprintf(why, size, "%s: there is no such program", path);
        return 127;
    }
    if (sys == ENOENT) {
        read_interpreter(path, interpreter, sizeof interpreter);
        if (interpreter[0])
            snprintf(why, size, "%s: its first line names %s, which does not exist", path,
                     interpreter);
        else
            snprintf(why, size, "%s: the loader that it needs does not exist here", path);
    } else if (sys == ENOEXEC) {
        snprintf(
            why, size,
            "%s: not something that the kernel can execute; a script needs a first line"
            " such as #!/bin/sh",
            path);
    } else if (exists && S_ISDIR(st.st_mode)) {
        snprintf(why, size, "%s: is a directory", path);
    } else if (sys == EACCES && exists && !(st.st_mode & 0111)) {
        snprintf(why, size, "%s: is not executable; try: chmod +x %s", path, path);
    } else {
        snprintf(why, size, "%s: %s", path, strerror(sys));
    }
    return 126;
}

/* As execvpe(), but a file that the kernel refuses is not handed to /bin/sh, and
 * the failure of the file that was meant is the one that is told. */
static void exec_program(const struct child_plan *plan, char **env)
    __attribute__((noreturn));
static void exec_program(const struct child_plan *plan, char **env)
{
    char why[400], path[4096], meant[4096] = "";
    const char *name = plan->argv[0];
    int sys = ENOENT;
    environ = env;
    if (strchr(name, '/') || !name[0]) {
        execve(name, plan->argv, env);
        give_up(plan, child_explain(name, errno, why, sizeof why), why);
    }
    const char *dirs = getenv("PATH");
    for (const char *d = dirs ? dirs : "/bin:/usr/bin";; d++) {
        size_t len = strcspn(d, ":");
        snprintf(path, sizeof path, "%.*s%s%s", (int)len, d, len ? "/" : "", name);
        execve(path, plan->argv, env);
        if (errno != ENOENT && errno != ENOTDIR) {
            sys = errno;
            snprintf(meant, sizeof meant, "%s", path);
            if (sys != EACCES)
                break;
        } else if (access(path, F_OK) == 0) {
            snprintf(meant, sizeof meant, "%s", path);
            break;
        }
        d += len;
        if (!*d)
            break;
    }
    give_up(plan, child_explain(meant[0] ? meant : name, sys, why, sizeof why), why);
}

/* For jobs that the agent starts: who the caller is, before anything is opened in
 * its name. */
static void become_caller(const struct child_plan *plan)
{
    const struct job_spec *s = plan->spec;
    for (uint32_t i = 0; i < s->limit_count; i++)
        if (setrlimit(s->limits[i].resource, &s->limits[i].value) < 0)
            give_up_sys(plan, "resource limit");
    if (s->has_uid && (s->uid != getuid() || geteuid() != getuid())) {
        if (setgroups(s->group_count, s->groups) < 0 ||
            setresgid(s->gid, s->gid, s->gid) < 0 || setresuid(s->uid, s->uid, s->uid) < 0)
            give_up_sys(plan, "become the caller");
    }
    if (s->umask >= 0)
        umask((mode_t)s->umask);
    if (s->cwd && chdir(s->cwd) < 0) {
        char what[300];
        snprintf(what, sizeof what, "working directory %.250s", s->cwd);
        give_up_sys(plan, what);
    }
}

static void set_files(const struct child_plan *plan)
{
    if (plan->spec->detach) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, 0) < 0)
            give_up_sys(plan, "/dev/null");
        /* dup2 onto itself keeps CLOEXEC */
        if (null == 0)
            fcntl(0, F_SETFD, 0);
    }
    if (plan->output_fd >= 0 &&
        (dup2(plan->output_fd, 1) < 0 || dup2(plan->output_fd, 2) < 0))
        give_up_sys(plan, "output");
}

static void join_group(const struct child_plan *plan)
{
    /* The caller's group may have ended meanwhile: then the program has its own. */
    if (setpgid(0, plan->spec->detach ? 0 : plan->spec->pgid) < 0)
        setpgid(0, 0);
}

/* A loader drops a layer that it cannot open without a word, and the program would run
 * outside its slice.  Asked here, in the job's own view of the files. */
static void check_layer(const struct child_plan *plan)
{
    static const char name[] = "OPENCL_LAYERS=";
    struct sl_err err;
    char why[400];
    for (char **add = plan->spec->env_add; add && *add; add++) {
        if (strncmp(*add, name, sizeof name - 1) ||
            library_check(*add + sizeof name - 1, "clInitLayer", &err) == 0)
            continue;
        snprintf(why, sizeof why, "the front cannot be loaded, so nothing is run: %.300s",
                 err.msg);
        give_up(plan, 125, why);
    }
}

static void stand_and_wait(const struct child_plan *plan)
{
    struct child_report r = { 0 };
    struct sl_err err;
    char go;
    if (plan->spec->mount && sandbox_enter(plan->spec, &err) < 0) {
        if (plan->spec->fail_closed || plan->spec->userns)
            give_up(plan, 125, err.msg);
        snprintf(r.why, sizeof r.why, "%s", err.msg);
    } else {
        r.mounted = plan->spec->mount;
    }
    check_layer(plan);
    report(plan, &r);
    if (read(plan->gate_fd, &go, 1) != 1)
        _exit(125);
}

void child_run(const struct child_plan *plan)
{
    join_group(plan);
    stand_and_wait(plan);
    become_caller(plan);
    set_files(plan);
    char **env =
        job_env_merge(plan->spec->env ? plan->spec->env : environ, plan->spec->env_add);
    if (!env)
        give_up(plan, 125, "out of memory");
    /* Last: a signal that came meanwhile meets the program's own dispositions. */
    sigaction(SIGCHLD, &plan->signals.on_child, NULL);
    sigprocmask(SIG_SETMASK, &plan->signals.mask, NULL);
    exec_program(plan, env);
}
