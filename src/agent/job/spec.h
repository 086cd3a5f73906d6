/*
 * What a shim shall start, as JSON on --spec-fd.
 *
 *   {"lease":"L7","run_dir":"/run/sluice",       required
 *    "argv":["prog","…"]        else what follows "--" on the shim's command line
 *    "cwd":"/home/a"            else inherited
 *    "env":["A=1",…]            the whole environment, else inherited
 *    "env_add":["SLUICE_LEASE=L7",…]  put over it: replaced in place, else appended
 *    "placement":"mount"        or "environment" (default): how the front gets in
 *    "fail_closed":false        a placement that fails ends the start
 *    "userns":false             with "mount": in a user namespace of its own
 *    "cgroup":"/sys/fs/…/L7"    the program starts in it, where the kernel lets us
 *    "detach":false             own session, input from /dev/null
 *    "pgid":123                 process group that the program joins; 0: its own
 *    "grace_ms":5000            for orphans, and between SIGTERM and SIGKILL
 *    "log":"…/jobs/L7/log","log_max_bytes":67108864     output goes there
 *    "uid":1000,"gid":1000,"groups":[…],"umask":18      else inherited
 *    "rlimits":{"nofile":[1024,4096],"core":[0,null]}}  soft, hard; null: no bound
 *
 * `sluice run` gives the program by the command line and lets everything be
 * inherited, so that bytes which are not UTF-8 arrive unchanged.
 */
#ifndef AGENT_JOB_SPEC_H
#define AGENT_JOB_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/err.h"
#include "os/rundir.h"

#define JOB_GRACE_MS       5000
#define JOB_LOG_MAX_BYTES  (64ull << 20)
#define JOB_SPEC_MAX_BYTES (8u << 20)
#define JOB_MAX_GROUPS     256

struct job_limit {
    int resource;
    struct rlimit value;
};

/* Strings and lists belong to the spec; lists end with NULL. */
struct job_spec {
    char lease[24];
    struct rundir run;
    char **argv, **env, **env_add;
    char *cwd, *log, *cgroup;
    uint64_t log_max_bytes, grace_ms;
    bool mount, fail_closed, userns, detach;
    pid_t pgid;
    bool has_uid; /* uid, gid and groups are set together */
    uid_t uid;
    gid_t gid;
    gid_t groups[JOB_MAX_GROUPS];
    uint32_t group_count;
    int32_t umask; /* -1: inherited */
    struct job_limit limits[16];
    uint32_t limit_count;
};

/* On failure *out is empty and needs no finish. */
int job_spec_parse(const char *text, size_t len, struct job_spec *out, struct sl_err *err);
void job_spec_finish(struct job_spec *s);

/* `base` with each NAME=value of `add` in the place of the variable it replaces,
 * else at the end.  The list is the caller's (free), its strings are borrowed;
 * NULL when out of memory. */
char **job_env_merge(char *const *base, char *const *add);

#endif
