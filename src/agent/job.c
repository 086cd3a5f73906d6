/* Owns jobs that the agent starts itself: submit, their shims, and their logs. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "child.h"
#include "job/status.h"
#include "os/file.h"
#include "os/log.h"

#define LOG_ANSWER_MAX (16u << 20) /* the newest part of a longer one */

/* "python3 train.py --lr 3", cut: for people. */
static void join_command(const json_t *argv, char *out, size_t size)
{
    size_t i, at = 0;
    const json_t *word;
    out[0] = '\0';
    json_array_foreach((json_t *)argv, i, word)
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s", i ? " " : "",
                                   json_string_value(word));
}

static int check_list(const json_t *job, const char *key, bool required, struct sl_err *err)
{
    const json_t *list = json_object_get(job, key), *word;
    size_t i;
    if (!list || json_is_null(list))
        return required ? sl_fail(err, SL_INVALID, "\"%s\" is missing", key) : 0;
    if (!json_is_array(list) || (required && json_array_size(list) == 0))
        return sl_fail(err, SL_INVALID, "\"%s\" must be a list of strings", key);
    json_array_foreach((json_t *)list, i, word)
        if (!json_is_string(word))
            return sl_fail(err, SL_INVALID, "\"%s\" must be a list of strings", key);
    return 0;
}

void job_submit_op(void *ctx, struct api_request *r, const struct lease_request *q,
                   const json_t *job)
{
    struct api_caller caller = api_request_caller(r);
    struct sl_err err = { 0 };
    char command[160];
    const char *cwd = NULL;
    uint32_t mask = 022;
    if (check_list(job, "argv", true, &err) < 0 ||
        check_list(job, "env", false, &err) < 0 ||
        json_get_str(job, "cwd", &cwd, &err) < 0 ||
        json_get_u32(job, "umask", &mask, &err) < 0 ||
        (cwd && cwd[0] != '/' &&
         sl_fail(&err, SL_INVALID, "\"cwd\" must be absolute") < 0) ||
        (mask > 0777 && sl_fail(&err, SL_INVALID, "\"umask\" is at most 0777") < 0)) {
        api_fail(r, &err);
        return;
    }
    if (geteuid() != 0 && caller.uid != geteuid()) {
        sl_fail(&err, SL_DENIED, "this agent is uid %u's and cannot start a job as uid %u",
                geteuid(), caller.uid);
        api_fail(r, &err);
        return;
    }
    join_command(json_object_get(job, "argv"), command, sizeof command);
    json_t *copy = json_deep_copy(job);
    json_object_set_new(copy, "gid", json_integer(caller.gid));
    lease_ask(ctx, r, q, command, false, copy);
}

static json_t *list_groups(const struct passwd *pw, gid_t gid)
{
    gid_t groups[256];
    int n = 256;
    json_t *list = json_array();
    if (pw && getgrouplist(pw->pw_name, gid, groups, &n) >= 0)
        for (int i = 0; i < n; i++)
            json_array_append_new(list, json_integer(groups[i]));
    return list;
}

/* What locates front and lease; put over the caller's environment. */
static json_t *locating_variables(const struct agent *a, const char *id)
{
    return json_pack("[s+, s++, s++]", "SLUICE_LEASE=", id, "SLUICE_BROKER=", a->dir.path,
                     "/broker.sock", "OPENCL_LAYERS=", a->dir.path,
                     "/front/libsluice-opencl.so");
}

/* What the shim is told (job/spec.h). */
static json_t *make_spec(const struct agent *a, const struct agent_lease *al)
{
    char id[24], name[64], log[160];
    lease_format_id(al->l.number, id);
    snprintf(name, sizeof name, "jobs/%s/log", id);
    agent_path(a, name, log, sizeof log);
    gid_t gid = (gid_t)json_integer_value(json_object_get(al->job, "gid"));
    json_t *spec = json_pack(
        "{s:s, s:s, s:O, s:s, s:b, s:b, s:s, s:o}", "lease", id, "run_dir", a->dir.path,
        "argv", json_object_get(al->job, "argv"), "placement",
        strcmp(a->placement, "mount") ? "environment" : "mount", "fail_closed",
        al->l.fail_closed, "detach", 1, "log", log, "env_add", locating_variables(a, id));
    char cgroup[CGROUP_PATH_SIZE];
    cgroup_path(&a->cgroups, al->l.number, cgroup);
    if (spec && cgroup[0])
        json_object_set_new(spec, "cgroup", json_string(cgroup));
    const char *optional[] = { "cwd", "env", "umask" };
    for (size_t i = 0; spec && i < sizeof optional / sizeof *optional; i++) {
        json_t *value = json_object_get(al->job, optional[i]);
        if (value && !json_is_null(value))
            json_object_set(spec, optional[i], value);
    }
    if (spec && geteuid() == 0 && al->l.uid != 0) {
        json_object_set_new(spec, "uid", json_integer(al->l.uid));
        json_object_set_new(spec, "gid", json_integer(gid));
        json_object_set_new(spec, "groups", list_groups(getpwuid(al->l.uid), gid));
    }
    return spec;
}

/* jobs/L7.  `sluice run`'s shim is its caller's own process; a submitted job's is ours, and
 * no one else may put links in its way. */
int job_make_dir(const struct agent *a, const struct agent_lease *al, struct sl_err *err)
{
    char id[24], name[64], path[160];
    agent_path(a, "jobs", path, sizeof path);
    int rc = access(path, F_OK) == 0 ? 0 : file_make_dir(path, 0711, err);
    snprintf(name, sizeof name, "jobs/%s", lease_format_id(al->l.number, id));
    agent_path(a, name, path, sizeof path);
    if (rc == 0)
        rc = file_make_dir(path, 0700, err);
    if (rc == 0 && !al->job && geteuid() == 0 && al->l.uid != 0 &&
        chown(path, al->l.uid, (gid_t)-1) != 0)
        rc = sl_fail_sys(err, SL_IO, errno, "cannot give %s to uid %u", path, al->l.uid);
    return rc;
}

static int start_shim(struct agent *a, struct agent_lease *al, struct sl_err *err)
{
    /* the program is born there; of an earlier agent's grant it was swept */
    cgroup_make(&a->cgroups, al->l.number);
    AUTO_JSON json_t *spec = make_spec(a, al);
    AUTO_FREE char *text = spec ? json_dumps(spec, JSON_COMPACT) : NULL;
    if (!text)
        return sl_fail(err, SL_INTERNAL, "the job's specification is not valid JSON");
    AUTO_CLOSE int fd = memfd_create("sluice-job", MFD_CLOEXEC);
    if (fd < 0 || file_write_all(fd, text, strlen(text), err) < 0 ||
        lseek(fd, 0, SEEK_SET) != 0)
        return sl_fail_sys(err, SL_IO, errno, "cannot write the job's specification");
    char program[300], log[160];
    snprintf(program, sizeof program, "%s/sluice-shim", a->program_dir);
    agent_path(a, "agent.log", log, sizeof log);
    const char *const argv[] = { program, "--spec-fd", "0", NULL };
    struct child_daemon d = { .argv = argv, .log_path = log, .stdin_fd = fd, .umask = 022 };
    pid_t pid = 0;
    int rc = child_start_daemon(&d, &pid, err);
    if (rc < 0)
        return rc;
    log_info("job-started", "lease=L%" PRIu64 " shim=%d", al->l.number, pid);
    lease_watch_starter(a, al, pid);
    return 0;
}

int job_start(struct agent *a, struct agent_lease *al, struct sl_err *err)
{
    int rc = start_shim(a, al, err);
    if (rc < 0)
        drain_start(a, al, err->msg);
    return rc;
}

void job_list_op(void *ctx, struct api_request *r, bool all)
{
    struct agent *a = ctx;
    json_t *list = json_array();
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (a->lease[i]->l.command[0] && (all || agent_lease_is_live(a->lease[i])))
            json_array_append_new(list, agent_job_json(a, a->lease[i]));
    api_answer(r, 200, json_pack("{s:o}", "jobs", list));
}

/* Why there is none. */
static void fail_no_log(const struct agent *a, const struct lease *l, struct sl_err *err)
{
    char id[24], name[64], path[160];
    lease_format_id(l->number, id);
    snprintf(name, sizeof name, "jobs/%s", id);
    agent_path(a, name, path, sizeof path);
    if (l->state == LEASE_PENDING)
        sl_fail(err, SL_CONFLICT, "job %s has not started: it waits for room", id);
    else if (l->state == LEASE_ACTIVE && !l->shim_pid)
        sl_fail(err, SL_CONFLICT, "job %s is only being started", id);
    else if (!l->shim_pid)
        sl_fail(err, SL_CONFLICT, "job %s never ran: %.150s", id, l->why);
    else if (l->state == LEASE_RELEASED && access(path, F_OK) != 0)
        sl_fail(err, SL_CONFLICT, "the log of job %s was removed to make room", id);
    else
        sl_fail(err, SL_CONFLICT, "job %s has no log: its output went to its caller", id);
}

/* Has it ended, and could not keep what it printed?  On a full disk nobody could write that down
 * but in a status that had its block already. */
static bool output_is_lost(const struct agent *a, const struct lease *l)
{
    struct job_status s;
    char id[24];
    return l->exited &&
           (job_status_read(&a->dir, lease_format_id(l->number, id), &s, NULL) < 0 ||
            !s.exited || s.log_dropped_bytes > 0);
}

void job_log_op(void *ctx, struct api_request *r, const char *id)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct agent_lease *al = agent_find(a, id, caller.uid);
    struct sl_err err = { 0 };
    char name[64], path[160], number[24];
    if (!al)
        sl_fail(&err, SL_NOT_FOUND, "no job is called \"%.60s\"", id);
    else if (!agent_may_change(al, &caller))
        sl_fail(&err, SL_DENIED, "job L%" PRIu64 " belongs to uid %u", al->l.number,
                al->l.uid);
    if (err.code) {
        api_fail(r, &err);
        return;
    }
    snprintf(name, sizeof name, "jobs/%s/log", lease_format_id(al->l.number, number));
    agent_path(a, name, path, sizeof path);
    /* The directory is the job's user's: what lies there as "log" may be anything. */
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
        fail_no_log(a, &al->l, &err);
        api_fail(r, &err);
        return;
    }
    off_t from =
        st.st_size > (off_t)LOG_ANSWER_MAX ? st.st_size - (off_t)LOG_ANSWER_MAX : 0;
    size_t want = (size_t)(st.st_size - from), have = 0;
    AUTO_FREE char *text = malloc(want + 1);
    while (text && have < want) {
        ssize_t n = pread(fd, text + have, want - have, from + (off_t)have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    static const char lost[] =
        "[sluice: what it printed, if anything, was not kept: the run "
        "directory was full]\n";
    if (have == 0 && output_is_lost(a, &al->l))
        api_answer_text(r, lost, sizeof lost - 1);
    else
        api_answer_text(r, text ? text : "", text ? have : 0);
}
