/* Logs of a scheduler core as files. */
#include "sim/schedlog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "sched/log.h"

#define WRITE_BYTES (1u << 18)
#define READ_BYTES  (1u << 20)

struct schedlog {
    FILE *file;
    struct buf buf; /* not written yet */
    char path[200];
    int sys; /* the first failure, or 0 */
};

int schedlog_create(const char *path, struct schedlog **out, struct sl_err *err)
{
    struct schedlog *log = calloc(1, sizeof *log);
    if (!log)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    snprintf(log->path, sizeof log->path, "%s", path);
    log->file = fopen(path, "wb");
    if (!log->file) {
        free(log);
        return sl_fail_sys(err, SL_IO, errno, "%.150s", path);
    }
    *out = log;
    return 0;
}

static void write_out(struct schedlog *log)
{
    if (!log->sys && log->buf.len &&
        fwrite(log->buf.text, 1, log->buf.len, log->file) != log->buf.len)
        log->sys = errno ? errno : EIO;
    log->buf.len = 0;
}

void schedlog_begin(struct schedlog *log, const struct sched_policy *policy)
{
    sched_log_begin(&log->buf, policy);
}

int schedlog_apply(struct schedlog *log, struct sched *s, const struct sched_event *e,
                   const struct sched_decision **d, uint32_t *count, struct sl_err *err)
{
    if (!log)
        return sched_apply(s, e, d, count, err);
    sched_log_event(&log->buf, e);
    int rc = sched_apply(s, e, d, count, err);
    sched_log_outcome(&log->buf, rc, *d, *count);
    if (log->buf.len >= WRITE_BYTES)
        write_out(log);
    return rc;
}

int schedlog_close(struct schedlog *log, struct sl_err *err)
{
    int rc = 0;
    if (!log)
        return 0;
    write_out(log);
    if (fclose(log->file) && !log->sys)
        log->sys = errno;
    if (buf_failed(&log->buf))
        rc = sl_fail(err, SL_INTERNAL, "%s: out of memory", log->path);
    else if (log->sys)
        rc = sl_fail_sys(err, SL_IO, log->sys, "%.150s", log->path);
    buf_finish(&log->buf);
    free(log);
    return rc;
}

/* gzread() reads what is not packed as it is. */
int schedlog_read(const char *path, char **bytes, size_t *size, struct sl_err *err)
{
    AUTO_BUF struct buf all = { 0 };
    char *piece = malloc(READ_BYTES);
    errno = 0;
    gzFile file = gzopen(path, "rb");
    int n = 0, rc = 0;
    if (!file && errno)
        rc =
            sl_fail_sys(err, errno == ENOENT ? SL_NOT_FOUND : SL_IO, errno, "%.150s", path);
    else if (!file || !piece)
        rc = sl_fail(err, SL_INTERNAL, "%.150s: out of memory", path);
    while (!rc && (n = gzread(file, piece, READ_BYTES)) > 0)
        buf_add_bytes(&all, piece, (size_t)n);
    if (!rc && n < 0)
        rc = sl_fail(err, SL_IO, "%.150s: cannot be read: %s", path, gzerror(file, &n));
    if (!rc && buf_failed(&all))
        rc = sl_fail(err, SL_INTERNAL, "%.150s: out of memory", path);
    if (file)
        gzclose(file);
    free(piece);
    if (rc)
        return rc;
    buf_add_bytes(&all, "", 0); /* an empty file is not NULL */
    *size = all.len;
    *bytes = buf_take(&all);
    return *bytes ? 0 : sl_fail(err, SL_INTERNAL, "%.150s: out of memory", path);
}
