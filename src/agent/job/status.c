/* Writes and reads the status file of a job. */
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "os/file.h"

static int status_path(const struct rundir *run, const char *lease, const char *name,
                       char *out, size_t size, struct sl_err *err)
{
    char tail[64];
    snprintf(tail, sizeof tail, "jobs/%s%s", lease, name);
    return rundir_path(run, tail, out, size, err);
}

/* Over the one that is there, whose block it has: a full disk holds no second file.  Nobody
 * reads it before the shim has ended. */
static int write_over(const char *path, const char *text, struct sl_err *err)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t len = strlen(text);
    if (fd < 0 || file_write_all(fd, text, len, err) < 0 || ftruncate(fd, (off_t)len) != 0)
        return sl_fail_sys(err, SL_IO, errno, "write %s", path);
    return 0;
}

int job_status_write(const struct rundir *run, const struct job_status *s,
                     struct sl_err *err)
{
    char dir[128], path[144];
    int rc;
    if ((rc = status_path(run, s->lease, "", dir, sizeof dir, err)) < 0 ||
        (rc = status_path(run, s->lease, "/status.json", path, sizeof path, err)) < 0)
        return rc;
    struct stat st;
    if (stat(dir, &st) < 0) {
        char jobs[RUNDIR_SIZE + 8];
        snprintf(jobs, sizeof jobs, "%s/jobs", run->path);
        if (stat(jobs, &st) < 0 && (rc = file_make_dir(jobs, 0711, err)) < 0)
            return rc;
        if ((rc = file_make_dir(dir, 0700, err)) < 0)
            return rc;
    }
    AUTO_JSON json_t *j = json_pack(
        "{s:s, s:i, s:I, s:i, s:I, s:s, s:I, s:b, s:o, s:i, s:o, s:I}", "lease", s->lease,
        "shim_pid", (int)s->shim.pid, "shim_start_ticks", (json_int_t)s->shim.start_ticks,
        "child_pid", (int)s->child.pid, "child_start_ticks",
        (json_int_t)s->child.start_ticks, "placement", s->placement, "started_ms",
        (json_int_t)s->started_ms, "exited", (int)s->exited, "exit_status",
        s->exited ? json_integer(s->exit_status) : json_null(), "signal", (int)s->signal,
        "ended_ms", s->exited ? json_integer((json_int_t)s->ended_ms) : json_null(),
        "log_dropped_bytes", (json_int_t)s->log_dropped_bytes);
    AUTO_FREE char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    if (!text)
        return sl_fail(err, SL_INTERNAL, "status of %s: out of memory", s->lease);
    rc = file_write_atomic(path, text, strlen(text), 0644, err);
    return rc == -SL_IO ? write_over(path, text, err) : rc;
}

int job_status_read(const struct rundir *run, const char *lease, struct job_status *out,
                    struct sl_err *err)
{
    char path[144];
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    int rc;
    if ((rc = status_path(run, lease, "/status.json", path, sizeof path, err)) < 0 ||
        (rc = file_read(path, 65536, &text, &len, err)) < 0)
        return rc;
    AUTO_JSON json_t *j = json_parse(text, len, err);
    if (!j)
        return sl_prefix(err, "%s", path);
    struct job_status s = { 0 };
    uint32_t shim = 0, child = 0, exit_status = 0, signal = 0;
    if (json_copy_str(j, "lease", s.lease, sizeof s.lease, err) < 0 ||
        json_get_u32(j, "shim_pid", &shim, err) < 0 ||
        json_get_u64(j, "shim_start_ticks", &s.shim.start_ticks, err) < 0 ||
        json_get_u32(j, "child_pid", &child, err) < 0 ||
        json_get_u64(j, "child_start_ticks", &s.child.start_ticks, err) < 0 ||
        json_copy_str(j, "placement", s.placement, sizeof s.placement, err) < 0 ||
        json_get_u64(j, "started_ms", &s.started_ms, err) < 0 ||
        json_get_bool(j, "exited", &s.exited, err) < 0 ||
        json_get_u32(j, "exit_status", &exit_status, err) < 0 ||
        json_get_u32(j, "signal", &signal, err) < 0 ||
        json_get_u64(j, "ended_ms", &s.ended_ms, err) < 0 ||
        json_get_u64(j, "log_dropped_bytes", &s.log_dropped_bytes, err) < 0)
        return sl_prefix(err, "%s", path);
    s.shim.pid = (pid_t)shim;
    s.child.pid = (pid_t)child;
    s.exit_status = (int32_t)exit_status;
    s.signal = (int32_t)signal;
    *out = s;
    return 0;
}
