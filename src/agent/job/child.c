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
#include "os/program.h"
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

static int execute(const char *path, void *ctx)
{
    const struct child_plan *plan = ctx;
    execve(path, plan->argv, environ);
    return errno;
}

static void exec_program(const struct child_plan *plan, char **env)
    __attribute__((noreturn));
static void exec_program(const struct child_plan *plan, char **env)
{
    char why[400];
    environ = env;
    int status = program_search(plan->argv[0], execute, (void *)plan, why, sizeof why);
    give_up(plan, status, why);
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
