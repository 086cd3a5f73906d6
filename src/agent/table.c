/* Owns the table of leases and their records in the journal. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "core/clock.h"
#include "options.h"
#include "os/file.h"
#include "os/log.h"

#define LOG_MAX_BYTES (16 << 20) /* then a new one is begun; one old one is kept */

bool agent_lease_is_live(const struct agent_lease *al)
{
    return al->l.state != LEASE_RELEASED;
}

uint32_t agent_live_count(const struct agent *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->lease_count; i++)
        n += agent_lease_is_live(a->lease[i]);
    return n;
}

uint32_t agent_held_count(const struct agent *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->lease_count; i++)
        n += agent_lease_is_live(a->lease[i]) && a->lease[i]->l.state != LEASE_PENDING;
    return n;
}

struct agent_lease *agent_add(struct agent *a, uint64_t number, struct sl_err *err)
{
    if (a->lease_count == a->lease_room) {
        uint32_t room = a->lease_room ? a->lease_room * 2 : 64;
        struct agent_lease **more = realloc(a->lease, room * sizeof *more);
        if (!more) {
            sl_fail(err, SL_INTERNAL, "out of memory");
            return NULL;
        }
        a->lease = more;
        a->lease_room = room;
    }
    struct agent_lease *al = calloc(1, sizeof *al);
    if (!al) {
        sl_fail(err, SL_INTERNAL, "out of memory");
        return NULL;
    }
    al->l.number = number;
    al->shim.fd = al->caller.fd = -1;
    al->shim.owner = al->caller.owner = al;
    a->lease[a->lease_count++] = al;
    if (number >= a->next_number)
        a->next_number = number + 1;
    return al;
}

struct agent_lease *agent_find_number(struct agent *a, uint64_t number)
{
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (a->lease[i]->l.number == number)
            return a->lease[i];
    return NULL;
}

struct agent_lease *agent_find(struct agent *a, const char *id, uid_t uid)
{
    uint64_t number;
    if (lease_parse_id(id, &number, NULL) == 0)
        return agent_find_number(a, number);
    struct agent_lease *best = NULL;
    int best_rank = -1;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        int rank = 2 * agent_lease_is_live(al) + (al->l.uid == uid);
        if (strcmp(al->l.name, id) == 0 && rank >= best_rank) {
            best = al;
            best_rank = rank;
        }
    }
    return best;
}

bool agent_may_change(const struct agent_lease *al, const struct api_caller *c)
{
    return c->uid == 0 || c->uid == al->l.uid;
}

json_t *agent_lease_json(const struct agent *a, const struct agent_lease *al)
{
    char cgroup[CGROUP_PATH_SIZE] = "";
    json_t *j = lease_to_json(&al->l);
    if (!j)
        return NULL;
    if (al->by_run)
        cgroup_path(&a->cgroups, al->l.number, cgroup);
    json_object_set_new(j, "ungated_processes", json_integer(al->ungated_processes));
    json_object_set_new(j, "cgroup", cgroup[0] ? json_string(cgroup) : json_null());
    return j;
}

json_t *agent_job_json(const struct agent *a, const struct agent_lease *al)
{
    char id[24], name[64], path[128];
    json_t *j = agent_lease_json(a, al);
    snprintf(name, sizeof name, "jobs/%s/log", lease_format_id(al->l.number, id));
    agent_path(a, name, path, sizeof path);
    if (j)
        json_object_set_new(j, "log",
                            access(path, F_OK) == 0 ? json_string(path) : json_null());
    return j;
}

/* ---- journal ---- */

/* A submitted job belongs to its lease, in memory and in its record, until its shim has
 * anchored it or it ends without: the next agent goes on waiting for room, or starts it. */
static bool keeps_job(const struct agent_lease *al)
{
    return al->job && !al->l.shim_pid &&
           (al->l.state == LEASE_PENDING || al->l.state == LEASE_ACTIVE);
}

void agent_set_job(struct agent_lease *al, json_t *job)
{
    json_decref(al->job);
    al->job = job;
    al->job_bytes = job ? json_dumpb(job, NULL, 0, JSON_COMPACT) : 0;
}

static json_t *lease_record(const struct agent_lease *al)
{
    json_t *record =
        json_pack("{s:s, s:o}", "kind", "lease", "lease", lease_to_json(&al->l));
    if (record)
        json_object_set_new(record, "usage_base",
                            usage_to_json(al->usage, al->l.slice_count));
    if (record && keeps_job(al) &&
        (json_object_set_new(record, "request", lease_request_to_json(&al->q)) != 0 ||
         json_object_set(record, "job", al->job) != 0)) {
        json_decref(record);
        return NULL;
    }
    return record;
}

static json_t *device_record(const struct device *d)
{
    return json_pack("{s:s, s:o}", "kind", "device", "device", device_to_json(d));
}

static json_t *options_record(const struct agent *a)
{
    return json_pack("{s:s, s:o}", "kind", "options", "options", options_to_json(&a->o));
}

int agent_save(struct agent *a, struct agent_lease *al, struct sl_err *err)
{
    AUTO_JSON json_t *record = lease_record(al);
    struct sl_err why = { 0 };
    int rc = record ? journal_append(a->journal, record, &why)
                    : sl_fail(&why, SL_INTERNAL, "journal: out of memory");
    if (rc < 0 && !al->unsaved)
        log_error("journal-write", "lease=L%" PRIu64 " error=\"%s\"", al->l.number,
                  why.msg);
    al->unsaved = rc < 0;
    if (rc < 0 && err)
        *err = why;
    if (rc == 0 && !keeps_job(al))
        agent_set_job(al, NULL);
    return rc;
}

int agent_save_options(struct agent *a, struct sl_err *err)
{
    AUTO_JSON json_t *record = options_record(a);
    return record ? journal_append(a->journal, record, err)
                  : sl_fail(err, SL_INTERNAL, "journal: out of memory");
}

int agent_save_device(struct agent *a, const struct device *d, struct sl_err *err)
{
    AUTO_JSON json_t *record = device_record(d);
    return record ? journal_append(a->journal, record, err)
                  : sl_fail(err, SL_INTERNAL, "journal: out of memory");
}

static int replay_device(struct agent *a, const json_t *j, struct sl_err *err)
{
    struct device d;
    int rc = device_from_json(json_object_get(j, "device"), &d, err);
    if (rc < 0)
        return rc;
    if (d.index >= AGENT_MAX_DEVICES)
        return sl_fail(err, SL_IO, "device index %u", d.index);
    inventory_replay(a, &d);
    return 0;
}

static int replay_lease(struct agent *a, const json_t *j, struct sl_err *err)
{
    struct lease l;
    struct lease_request q = { 0 };
    const json_t *job = json_object_get(j, "job");
    int rc = lease_from_json(json_object_get(j, "lease"), &l, err);
    if (rc == 0 && job)
        rc = lease_request_from_json(json_object_get(j, "request"), &q, err);
    if (rc < 0)
        return rc;
    struct agent_lease *al = agent_find_number(a, l.number);
    if (!al && !(al = agent_add(a, l.number, err)))
        return -SL_INTERNAL;
    agent_set_job(al, job ? json_deep_copy(job) : NULL);
    al->q = q;
    al->l = l;
    usage_from_json(json_object_get(j, "usage_base"), al->usage);
    return 0;
}

static int replay(void *ctx, const json_t *record, struct sl_err *err)
{
    struct agent *a = ctx;
    const char *kind = NULL;
    int rc = json_get_str(record, "kind", &kind, err);
    if (rc < 0)
        return rc;
    if (kind && strcmp(kind, "lease") == 0)
        return replay_lease(a, record, err);
    if (kind && strcmp(kind, "device") == 0)
        return replay_device(a, record, err);
    if (kind && strcmp(kind, "options") == 0) {
        json_decref(a->earlier);
        a->earlier = json_deep_copy(json_object_get(record, "options"));
        return 0;
    }
    if (kind && strcmp(kind, "next") == 0) {
        uint64_t number = 0;
        rc = json_get_u64(record, "number", &number, err);
        if (number > a->next_number)
            a->next_number = number;
        return rc;
    }
    return 0; /* a newer agent's record: what we know of still holds */
}

int agent_open_journal(struct agent *a, struct sl_err *err)
{
    char path[128];
    uint64_t cut = 0;
    a->next_number = 1;
    agent_path(a, "journal", path, sizeof path);
    int rc = journal_open(path, replay, a, &a->journal, &cut, err);
    if (rc < 0)
        return rc;
    if (cut)
        log_warn("journal-cut", "bytes=%" PRIu64 " kept=%s.cut", cut, path);

    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        al->by_run = al->l.command[0] != '\0';
        if (al->l.state != LEASE_PENDING || al->job)
            continue;
        /* who waited was connected to the agent that is gone */
        lease_end(a, al, "the agent was restarted while it waited", NULL);
    }
    return 0;
}

/* Both are written by appending, so what is cut off here is not written again. */
static void bound_log(const struct agent *a, const char *name)
{
    char path[128], old[136];
    struct stat st;
    agent_path(a, name, path, sizeof path);
    if (stat(path, &st) != 0 || st.st_size <= LOG_MAX_BYTES)
        return;
    snprintf(old, sizeof old, "%s.1", path);
    file_copy(path, old, 0600, NULL); /* on a full disk the room is worth more */
    if (truncate(path, 0) == 0)
        log_info("log-cut", "path=%s kept=%s", path, old);
}

/* NULL if one of them cannot be made: without it the file would forget what lives. */
static json_t *all_records(const struct agent *a)
{
    json_t *all = json_array();
    int failed = json_array_append_new(
        all, json_pack("{s:s, s:I}", "kind", "next", "number", (json_int_t)a->next_number));
    failed |= json_array_append_new(all, options_record(a));
    for (uint32_t i = 0; i < a->device_count; i++)
        failed |= json_array_append_new(all, device_record(&a->device[i]));
    for (uint32_t i = 0; i < a->lease_count; i++)
        failed |= json_array_append_new(all, lease_record(a->lease[i]));
    if (!failed)
        return all;
    json_decref(all);
    return NULL;
}

int agent_compact(struct agent *a, struct sl_err *err)
{
    AUTO_JSON json_t *all = all_records(a);
    return all ? journal_compact(a->journal, all, err)
               : sl_fail(err, SL_INTERNAL, "journal: compaction: out of memory");
}

void agent_tidy(struct agent *a)
{
    bound_log(a, "agent.log");
    bound_log(a, "broker.log");
    for (uint32_t i = 0; i < a->lease_count; i++)
        if (a->lease[i]->unsaved)
            agent_save(a, a->lease[i], NULL);
    keep_tidy(a);
    if (!journal_wants_compaction(a->journal, a->lease_count + a->device_count))
        return;
    struct sl_err err = { 0 };
    if (agent_compact(a, &err) < 0)
        log_error("journal-compact", "error=\"%s\"", err.msg);
}
