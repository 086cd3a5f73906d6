/* Starts sluice-shim so that the program behind it inherits what we did. */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "os/file.h"

static void each_fd(void (*visit)(int fd, void *ctx), void *ctx)
{
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
            visit(atoi(e->d_name), ctx);
    if (dir)
        closedir(dir);
}

static void remember_fd(int fd, void *ctx)
{
    struct run_inherited *in = ctx;
    if (fd < RUN_MAX_FDS)
        in->open[fd / 8] |= (unsigned char)(1u << fd % 8);
}

void run_remember(struct run_inherited *in)
{
    memset(in, 0, sizeof *in);
    sigprocmask(SIG_BLOCK, NULL, &in->mask);
    each_fd(remember_fd, in);
}

/* Not inherited: what some library opened meanwhile without CLOEXEC. */
static void hide_fd(int fd, void *ctx)
{
    const struct run_inherited *in = ctx;
    if (fd < RUN_MAX_FDS && !(in->open[fd / 8] >> fd % 8 & 1))
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* The variables that locate front and lease; they carry no limit. */
static json_t *locating_variables(struct cli *cli, const char *lease)
{
    const char *run = cli->rundir.path;
    json_t *list = json_array();
    json_array_append_new(list, json_sprintf("SLUICE_BROKER=%s/broker.sock", run));
    json_array_append_new(list, json_sprintf("SLUICE_LEASE=%s", lease));
    json_array_append_new(list,
                          json_sprintf("OPENCL_LAYERS=%s/front/libsluice-opencl.so", run));
    if (json_array_size(list) == 3)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *build_spec(struct cli *cli, const struct run_plan *plan)
{
    char id[24];
    lease_format_id(plan->lease->number, id);
    bool mount = geteuid() == 0 || plan->userns;
    json_t *add = locating_variables(cli, id);
    json_t *spec =
        add ? json_pack("{s:s,s:s,s:s,s:b,s:b,s:b,s:i,s:o}", "lease", id, "run_dir",
                        cli->rundir.path, "placement", mount ? "mount" : "environment",
                        "fail_closed", plan->lease->fail_closed, "userns", plan->userns,
                        "detach", plan->detach, "pgid", plan->detach ? 0 : (int)getpgrp(),
                        "env_add", add)
            : NULL;
    if (spec && plan->detach)
        json_object_set_new(spec, "log",
                            json_sprintf("%s/jobs/%s/log", cli->rundir.path, id));
    if (spec && plan->cgroup)
        json_object_set_new(spec, "cgroup", json_string(plan->cgroup));
    return spec;
}

/* A pipe that holds the whole spec; the read end, CLOEXEC. */
static int spec_pipe(struct cli *cli, const struct run_plan *plan, struct sl_err *err)
{
    AUTO_JSON json_t *spec = build_spec(cli, plan);
    AUTO_FREE char *text = spec ? json_dumps(spec, JSON_COMPACT) : NULL;
    int fds[2];
    if (!text)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    if (pipe2(fds, O_CLOEXEC) < 0)
        return sl_fail_sys(err, SL_IO, errno, "pipe");
    /* Far below the 64 KiB that a pipe holds. */
    int rc = file_write_all(fds[1], text, strlen(text), err);
    close(fds[1]);
    if (rc < 0)
        close(fds[0]);
    return rc < 0 ? rc : fds[0];
}

static char **shim_argv(char *program, char *const *argv, int spec, int link)
{
    size_t count = 0;
    static char spec_text[16], link_text[16];
    while (argv[count])
        count++;
    char **out = calloc(count + 7, sizeof *out);
    if (!out)
        return NULL;
    snprintf(spec_text, sizeof spec_text, "%d", spec);
    snprintf(link_text, sizeof link_text, "%d", link);
    const char *own[] = { program, "--spec-fd", spec_text, "--notify-fd", link_text, "--" };
    memcpy(out, own, sizeof own);
    memcpy(out + 6, argv, count * sizeof *out);
    return out;
}

static void become_shim(const char *program, char **argv, int spec, int link,
                        const struct run_inherited *in) __attribute__((noreturn));
static void become_shim(const char *program, char **argv, int spec, int link,
                        const struct run_inherited *in)
{
    each_fd(hide_fd, (void *)in);
    fcntl(spec, F_SETFD, 0);
    fcntl(link, F_SETFD, 0);
    sigprocmask(SIG_SETMASK, &in->mask, NULL);
    execv(program, argv);
    char words[300];
    int len = snprintf(words, sizeof words, "failed %d %s: %s", errno == E2BIG ? 126 : 125,
                       program, strerror(errno));
    send(link, words, (size_t)len, MSG_NOSIGNAL);
    _exit(125);
}

int run_start_shim(struct cli *cli, const struct run_plan *plan,
                   const struct run_inherited *in, struct run_shim *out, struct sl_err *err)
{
    char program[4096];
    int link[2], rc = file_program_dir(program, sizeof program - 16, err);
    if (rc < 0)
        return rc;
    strcat(program, "/sluice-shim");
    AUTO_CLOSE int spec = spec_pipe(cli, plan, err);
    if (spec < 0)
        return spec;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
        return sl_fail_sys(err, SL_IO, errno, "socketpair");
    AUTO_CLOSE int theirs = link[1];
    AUTO_FREE char **argv = shim_argv(program, plan->argv, spec, theirs);
    fflush(NULL);

    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    pid_t pid = argv ? fork() : -1;
    if (pid == 0)
        become_shim(program, argv, spec, theirs, in);
    if (pid < 0) {
        close(link[0]);
        return sl_fail_sys(err, SL_IO, argv ? errno : ENOMEM, "start %s", program);
    }
    *out = (struct run_shim){ .pid = pid, .link = link[0], .group = getpgrp() };
    return 0;
}
