/* Owns what is kept of ended leases: how many records, how much of their jobs' output, and
 * which goes first. */
#include "agent.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "os/file.h"
#include "os/log.h"
#include "os/room.h"

/* The files of one ended lease. */
struct kept {
    struct agent_lease *al;
    uint64_t bytes;
};

static void files_path(const struct agent *a, const struct agent_lease *al, char *out,
                       size_t size)
{
    char id[24], name[64];
    snprintf(name, sizeof name, "jobs/%s", lease_format_id(al->l.number, id));
    agent_path(a, name, out, size);
}

static void remove_files(const struct agent *a, const struct agent_lease *al)
{
    char path[160];
    files_path(a, al, path, sizeof path);
    file_remove_tree(path, NULL);
}

static uint64_t files_bytes(const struct agent *a, const struct agent_lease *al)
{
    char path[160];
    struct dirent *e;
    struct stat st;
    uint64_t bytes = 0;
    files_path(a, al, path, sizeof path);
    DIR *d = opendir(path);
    while (d && (e = readdir(d)) != NULL)
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_blocks * 512;
    if (d)
        closedir(d);
    return bytes;
}

/* Drop those that `goes` names from the table; how many. */
static uint32_t forget(struct agent *a,
                       bool (*goes)(void *ctx, const struct agent_lease *al), void *ctx)
{
    uint32_t kept = 0, forgotten = 0;
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        if (agent_lease_is_live(al) || !goes(ctx, al)) {
            a->lease[kept++] = al;
            continue;
        }
        forgotten++;
        remove_files(a, al);
        if (al->unsaved) { /* without its record it would live again */
            a->lease[kept++] = al;
            continue;
        }
        agent_unwatch(a, &al->shim);
        agent_unwatch(a, &al->caller);
        json_decref(al->job);
        free(al);
    }
    a->lease_count = kept;
    return forgotten;
}

/* The table is in the order of the grants. */
static bool is_beyond(void *ctx, const struct agent_lease *al)
{
    uint32_t *too_many = ctx;
    return !al->unsaved && *too_many > 0 && (*too_many)--;
}

static int newest_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return (x->al->l.released_ms < y->al->l.released_ms) -
           (x->al->l.released_ms > y->al->l.released_ms);
}

/* Every ended lease that has files, the newest first; the caller's to free. */
static struct kept *list_kept(const struct agent *a, uint32_t *count)
{
    struct kept *list = calloc(a->lease_count + 1, sizeof *list);
    *count = 0;
    for (uint32_t i = 0; list && i < a->lease_count; i++) {
        uint64_t bytes = agent_lease_is_live(a->lease[i]) ? 0 : files_bytes(a, a->lease[i]);
        if (bytes)
            list[(*count)++] = (struct kept){ a->lease[i], bytes };
    }
    if (list)
        qsort(list, *count, sizeof *list, newest_first);
    return list;
}

static uint64_t bytes_of(const struct kept *list, uint32_t count, uid_t uid)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].al->l.uid == uid)
            sum += list[i].bytes;
    return sum;
}

/* The user whose files take most pays first: its oldest. */
static uint32_t next_to_go(const struct kept *list, uint32_t count)
{
    uint32_t best = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = list[i].bytes ? bytes_of(list, count, list[i].al->l.uid) : 0;
        if (bytes && bytes >= most) {
            most = bytes;
            best = i;
        }
    }
    return best;
}

/* Remove files of ended jobs until what is left keeps to its bounds. */
static void bound_files(struct agent *a)
{
    struct room room;
    AUTO_CLOSE int dir = open(a->dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !room_look(dir, &room) ||
        (!a->ended_files_grew && !room_is_short(&room)))
        return;
    a->ended_files_grew = false;
    uint32_t count;
    AUTO_FREE struct kept *list = list_kept(a, &count);
    uint64_t all = 0, most = room_for_ended(&room);
    for (uint32_t i = 0; list && i < count; i++)
        all += list[i].bytes;
    while (all > 0) {
        struct kept *k = &list[next_to_go(list, count)];
        if (all <= most && bytes_of(list, count, k->al->l.uid) <= most / 2 &&
            !(room_look(dir, &room) && room_is_short(&room)))
            return;
        log_info("files-removed", "lease=L%" PRIu64 " bytes=%" PRIu64, k->al->l.number,
                 k->bytes);
        remove_files(a, k->al);
        all -= k->bytes;
        k->bytes = 0;
    }
}

void keep_tidy(struct agent *a)
{
    uint32_t released = a->lease_count - agent_live_count(a);
    if (released > AGENT_KEEP_RELEASED) {
        uint32_t too_many = released - AGENT_KEEP_RELEASED;
        forget(a, is_beyond, &too_many);
    }
    bound_files(a);
}

static bool is_job_of(void *ctx, const struct agent_lease *al)
{
    return al->l.command[0] && agent_may_change(al, ctx);
}

void keep_clear_op(void *ctx, struct api_request *r)
{
    struct agent *a = ctx;
    struct api_caller caller = api_request_caller(r);
    struct sl_err err = { 0 };
    uint32_t removed = forget(a, is_job_of, &caller);
    /* where that fails, the next agent knows them again, without their output */
    if (removed > 0 && agent_compact(a, &err) < 0)
        log_error("journal-compact", "error=\"%s\"", err.msg);
    log_info("jobs-cleared", "count=%u by_uid=%u", removed, caller.uid);
    api_answer(r, 200, json_pack("{s:i}", "removed", (int)removed));
}
