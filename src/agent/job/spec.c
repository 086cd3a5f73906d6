/* Reads what a shim shall start and makes the program's environment from it. */
#include "spec.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/macros.h"

static const char *const keys[] = {
    "lease",       "run_dir", "argv",   "cwd",   "env",      "env_add", "placement",
    "fail_closed", "userns",  "detach", "pgid",  "grace_ms", "log",     "log_max_bytes",
    "uid",         "gid",     "groups", "umask", "rlimits",  "cgroup",  NULL,
};

static const struct {
    const char *name;
    int resource;
} resources[] = {
    { "as", RLIMIT_AS },
    { "core", RLIMIT_CORE },
    { "cpu", RLIMIT_CPU },
    { "data", RLIMIT_DATA },
    { "fsize", RLIMIT_FSIZE },
    { "memlock", RLIMIT_MEMLOCK },
    { "nofile", RLIMIT_NOFILE },
    { "nproc", RLIMIT_NPROC },
    { "stack", RLIMIT_STACK },
    { "nice", RLIMIT_NICE },
    { "rtprio", RLIMIT_RTPRIO },
    { "msgqueue", RLIMIT_MSGQUEUE },
    { "sigpending", RLIMIT_SIGPENDING },
};

static void free_list(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

void job_spec_finish(struct job_spec *s)
{
    free_list(s->argv);
    free_list(s->env);
    free_list(s->env_add);
    free(s->cwd);
    free(s->log);
    free(s->cgroup);
    memset(s, 0, sizeof *s);
}

/* A list of strings; with `assignments` each must read NAME=value. */
static int get_list(const json_t *obj, const char *key, bool assignments, char ***out,
                    struct sl_err *err)
{
    const json_t *list = json_object_get(obj, key);
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return sl_fail(err, SL_INVALID, "%s: a list of strings is expected", key);
    size_t count = json_array_size(list);
    char **strings = calloc(count + 1, sizeof *strings);
    if (!strings)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || (assignments && (!strchr(text, '=') || text[0] == '='))) {
            free_list(strings);
            return sl_fail(err, SL_INVALID, "%s[%zu]: %s is expected", key, i,
                           assignments ? "NAME=value" : "a string");
        }
        strings[i] = strdup(text);
        if (!strings[i]) {
            free_list(strings);
            return sl_fail(err, SL_INTERNAL, "out of memory");
        }
    }
    *out = strings;
    return 0;
}

static int get_string(const json_t *obj, const char *key, char **out, struct sl_err *err)
{
    const char *text = NULL;
    int rc = json_get_str(obj, key, &text, err);
    if (rc < 0 || !text)
        return rc;
    if (text[0] != '/')
        return sl_fail(err, SL_INVALID, "%s: an absolute path is expected, not '%s'", key,
                       text);
    *out = strdup(text);
    return *out ? 0 : sl_fail(err, SL_INTERNAL, "out of memory");
}

static int get_identity(const json_t *obj, struct job_spec *s, struct sl_err *err)
{
    uint32_t uid = UINT32_MAX, gid = UINT32_MAX, mask = UINT32_MAX;
    int rc;
    if ((rc = json_get_u32(obj, "uid", &uid, err)) < 0 ||
        (rc = json_get_u32(obj, "gid", &gid, err)) < 0 ||
        (rc = json_get_u32(obj, "umask", &mask, err)) < 0)
        return rc;
    s->has_uid = uid != UINT32_MAX;
    s->uid = uid;
    s->gid = gid;
    s->umask = mask == UINT32_MAX ? -1 : (int32_t)(mask & 0777);
    if ((gid != UINT32_MAX) != s->has_uid)
        return sl_fail(err, SL_INVALID, "uid and gid belong together");
    const json_t *groups = json_object_get(obj, "groups");
    if (!groups || json_is_null(groups))
        return 0;
    if (!json_is_array(groups) || !s->has_uid || json_array_size(groups) > JOB_MAX_GROUPS)
        return sl_fail(err, SL_INVALID,
                       "groups: up to %d group ids beside uid are expected",
                       JOB_MAX_GROUPS);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *g = json_array_get(groups, i);
        if (!json_is_integer(g) || json_integer_value(g) < 0 ||
            json_integer_value(g) >= UINT32_MAX)
            return sl_fail(err, SL_INVALID, "groups[%zu]: a group id is expected", i);
        s->groups[s->group_count++] = (gid_t)json_integer_value(g);
    }
    return 0;
}

static bool read_limit(const json_t *j, rlim_t *out)
{
    if (json_is_null(j)) {
        *out = RLIM_INFINITY;
        return true;
    }
    *out = json_is_integer(j) ? (rlim_t)json_integer_value(j) : 0;
    return json_is_integer(j) && json_integer_value(j) >= 0;
}

static int get_limits(const json_t *obj, struct job_spec *s, struct sl_err *err)
{
    json_t *limits = json_object_get(obj, "rlimits");
    if (!limits || json_is_null(limits))
        return 0;
    if (!json_is_object(limits))
        return sl_fail(err, SL_INVALID, "rlimits: an object is expected");
    const char *name;
    json_t *pair;
    json_object_foreach(limits, name, pair) {
        struct job_limit limit = { .resource = -1 };
        for (size_t i = 0; i < ARRAY_LEN(resources); i++)
            if (!strcmp(resources[i].name, name))
                limit.resource = resources[i].resource;
        if (limit.resource < 0)
            return sl_fail(err, SL_INVALID, "rlimits: there is no limit called '%s'", name);
        if (!json_is_array(pair) || json_array_size(pair) != 2 ||
            !read_limit(json_array_get(pair, 0), &limit.value.rlim_cur) ||
            !read_limit(json_array_get(pair, 1), &limit.value.rlim_max))
            return sl_fail(err, SL_INVALID, "rlimits.%s: [soft, hard] is expected", name);
        s->limits[s->limit_count++] = limit;
    }
    return 0;
}

static int get_placement(const json_t *obj, struct job_spec *s, struct sl_err *err)
{
    const char *placement = "environment";
    int rc = json_get_str(obj, "placement", &placement, err);
    if (rc < 0)
        return rc;
    s->mount = !strcmp(placement, "mount");
    if (!s->mount && strcmp(placement, "environment") != 0)
        return sl_fail(err, SL_INVALID,
                       "placement: 'mount' or 'environment' is expected, not '%s'",
                       placement);
    return 0;
}

static int get_rest(const json_t *obj, struct job_spec *s, struct sl_err *err)
{
    uint32_t pgid = 0;
    int rc;
    if ((rc = json_only_keys(obj, keys, err)) < 0 ||
        (rc = json_copy_str(obj, "lease", s->lease, sizeof s->lease, err)) < 0 ||
        (rc = json_copy_str(obj, "run_dir", s->run.path, sizeof s->run.path, err)) < 0 ||
        (rc = get_list(obj, "argv", false, &s->argv, err)) < 0 ||
        (rc = get_list(obj, "env", true, &s->env, err)) < 0 ||
        (rc = get_list(obj, "env_add", true, &s->env_add, err)) < 0 ||
        (rc = get_string(obj, "cwd", &s->cwd, err)) < 0 ||
        (rc = get_string(obj, "log", &s->log, err)) < 0 ||
        (rc = get_string(obj, "cgroup", &s->cgroup, err)) < 0 ||
        (rc = json_get_u64(obj, "log_max_bytes", &s->log_max_bytes, err)) < 0 ||
        (rc = json_get_u64(obj, "grace_ms", &s->grace_ms, err)) < 0 ||
        (rc = json_get_u32(obj, "pgid", &pgid, err)) < 0 ||
        (rc = json_get_bool(obj, "fail_closed", &s->fail_closed, err)) < 0 ||
        (rc = json_get_bool(obj, "userns", &s->userns, err)) < 0 ||
        (rc = json_get_bool(obj, "detach", &s->detach, err)) < 0 ||
        (rc = get_placement(obj, s, err)) < 0 || (rc = get_identity(obj, s, err)) < 0 ||
        (rc = get_limits(obj, s, err)) < 0)
        return rc;
    if (pgid > INT32_MAX)
        return sl_fail(err, SL_INVALID, "pgid: a process group is expected");
    s->pgid = (pid_t)pgid;
    if (s->lease[0] != 'L')
        return sl_fail(err, SL_INVALID, "lease: an id such as L7 is expected");
    if (s->run.path[0] != '/')
        return sl_fail(err, SL_INVALID, "run_dir: an absolute path is expected");
    if (s->argv && !s->argv[0])
        return sl_fail(err, SL_INVALID, "argv: a program is expected");
    return 0;
}

int job_spec_parse(const char *text, size_t len, struct job_spec *out, struct sl_err *err)
{
    memset(out, 0, sizeof *out);
    out->grace_ms = JOB_GRACE_MS;
    out->log_max_bytes = JOB_LOG_MAX_BYTES;
    AUTO_JSON json_t *obj = json_parse(text, len, err);
    int rc = obj ? 0 : sl_prefix(err, "job spec");
    if (obj && !json_is_object(obj))
        rc = sl_fail(err, SL_INVALID, "job spec: an object is expected");
    else if (obj && get_rest(obj, out, err) < 0)
        rc = sl_prefix(err, "job spec");
    if (rc < 0)
        job_spec_finish(out);
    return rc;
}

char **job_env_merge(char *const *base, char *const *add)
{
    static char *const none[] = { NULL };
    base = base ? base : none;
    add = add ? add : none;
    size_t count = 0, more = 0;
    while (base[count])
        count++;
    while (add[more])
        more++;
    char **out = calloc(count + more + 1, sizeof *out);
    if (!out)
        return NULL;
    memcpy(out, base, count * sizeof *out);
    for (; *add; add++) {
        size_t name = strcspn(*add, "=") + 1, at = 0;
        while (at < count && strncmp(out[at], *add, name) != 0)
            at++;
        out[at] = *add;
        count += at == count;
    }
    return out;
}
