/* A scheduler core fed by a log. */
#include "feed.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "sched/log.h"
#include "sim/schedlog.h"

#define PROGRESS_EVENTS 4096

static int remember(struct feed *f, const struct sched_event *e)
{
    if (e->kind != SCHED_SUBMIT && e->kind != SCHED_RESTORE)
        return 0;
    if (array_reserve(&f->id, &f->id_room, f->id_count + 1, sizeof *f->id))
        return -SL_INTERNAL;
    f->id[f->id_count++] = e->kind == SCHED_SUBMIT ? e->submit.id : e->restore.request.id;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_ids(struct feed *f)
{
    uint32_t kept = 0;
    if (f->id_count)
        if (f->id_count) /* nothing: no array */
            qsort(f->id, f->id_count, sizeof *f->id, compare_ids);
    for (uint32_t i = 0; i < f->id_count; i++)
        if (!i || f->id[i] != f->id[kept - 1])
            f->id[kept++] = f->id[i];
    f->id_count = kept;
}

static int feed_event(struct feed *f, const struct sched_event *e, struct sl_err *err)
{
    const struct sched_decision *d;
    uint32_t count;
    f->events++;
    f->now_ms = e->now_ms;
    /* what was refused then is refused now */
    if (sched_apply(f->sched, e, &d, &count, NULL) == -SL_INTERNAL || remember(f, e))
        return sl_fail(err, SL_INTERNAL, "out of memory");
    return 0;
}

static int feed_all(struct sim *sim, struct sched_log_reader *log, uint64_t upto,
                    struct feed *f, struct sl_err *err)
{
    struct sched_log_record x;
    while (f->events < upto) {
        int rc = sched_log_next(log, &x, err);
        if (!rc && (x.kind == SCHED_LOG_END || x.kind == SCHED_LOG_TORN))
            break;
        if (!rc && x.kind == SCHED_LOG_EVENT)
            rc = feed_event(f, &x.event, err);
        if (rc)
            return rc;
        if (f->events % PROGRESS_EVENTS == 0)
            sim_progress(sim, "the log", x.at, log->size);
    }
    sim_progress(sim, "the log", 1, 1);
    sort_ids(f);
    if (upto != UINT64_MAX && f->events < upto)
        return sl_fail(err, SL_NOT_FOUND, "it has %" PRIu64 " events only", f->events);
    return 0;
}

int feed_open(struct sim *sim, const char *path, uint64_t upto, struct feed *out,
              struct sl_err *err)
{
    AUTO_FREE char *bytes = NULL;
    size_t size;
    struct sched_policy policy;
    struct sched_log_reader log;
    *out = (struct feed){ 0 };
    int rc = schedlog_read(path, &bytes, &size, err);
    if (rc)
        return rc;
    rc = sched_log_open(&log, bytes, size, &policy, err);
    if (rc)
        return sl_prefix(err, "%.100s", path);
    rc = sched_create(&policy, &out->sched, err);
    if (!rc)
        rc = feed_all(sim, &log, upto, out, err);
    sched_log_close(&log);
    return rc ? sl_prefix(err, "%.100s", path) : 0;
}

void feed_finish(struct feed *f)
{
    sched_destroy(f->sched);
    free(f->id);
}

uint64_t feed_upto(const struct sim_args *args)
{
    return sim_has(args, "at") ? sim_count(args, "at", 0) : UINT64_MAX;
}

void feed_print_when(FILE *out, const struct feed *f)
{
    fprintf(out, "after event %" PRIu64 " at %" PRIu64 ".%03u s:\n", f->events,
            f->now_ms / 1000, (unsigned)(f->now_ms % 1000));
}
