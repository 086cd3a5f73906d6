/* Owns the journal file: its line format, its recovery, and the moment at which a record is
 * durable. */
#include "journal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "core/macros.h"
#include "os/fault.h"
#include "os/file.h"

#define JOURNAL_MAX_BYTES   (256u << 20) /* one that is longer is not read */
#define JOURNAL_SMALL_BYTES (64u << 10)  /* not worth compacting */
#define JOURNAL_GROWTH      (16u << 20)  /* with jobs in it, records can be large */
#define JOURNAL_ROOM        (256u << 10) /* of blocks kept beyond the end */

struct journal {
    int fd;
    char path[256];
    uint64_t bytes, records;
    uint64_t compact_bytes; /* after the last compaction; 0: none yet */
    uint64_t room_end;      /* up to here the file has its blocks */
    bool dirty_tail;        /* a failed append could not be taken back yet */
};

/* CRC-32 as in ISO-HDLC (zlib's), bit by bit: most records are some hundred bytes, and one
 * with a job, a megabyte at most, takes some milliseconds. */
static uint32_t checksum(const char *p, size_t len)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

static int format_record(const json_t *record, struct buf *out, struct sl_err *err)
{
    AUTO_FREE char *text = json_dumps(record, JSON_COMPACT);
    if (!text)
        return sl_fail(err, SL_INTERNAL, "journal: the record is not valid JSON");
    size_t len = strlen(text);
    buf_addf(out, "%08" PRIx32 " %zu ", checksum(text, len), len);
    buf_add_bytes(out, text, len);
    buf_add(out, "\n");
    return buf_failed(out) ? sl_fail(err, SL_INTERNAL, "journal: out of memory") : 0;
}

/* The record of one line (without its newline), or NULL if the line is not whole. */
static json_t *parse_line(const char *line, size_t len)
{
    unsigned crc;
    size_t json_len;
    int at = 0;
    char head[40];
    snprintf(head, sizeof head, "%.*s", (int)(len < 39 ? len : 39), line);
    if (sscanf(head, "%8x %zu %n", &crc, &json_len, &at) != 2 || at < 11)
        return NULL;
    if (json_len != len - (size_t)at || checksum(line + at, json_len) != crc)
        return NULL;
    return json_parse(line + at, json_len, NULL);
}

/* At any byte, not only behind a newline: that byte may be the damaged one. */
static bool any_record_after(const char *text, size_t len)
{
    for (size_t at = 0; at + 10 < len; at++) {
        if (text[at + 8] != ' ' || !isxdigit((unsigned char)text[at]))
            continue;
        const char *end = memchr(text + at, '\n', len - at);
        json_t *record = end ? parse_line(text + at, (size_t)(end - text) - at) : NULL;
        if (record) {
            json_decref(record);
            return true;
        }
    }
    return false;
}

static int cut_tail(struct journal *j, const char *tail, size_t len, struct sl_err *err)
{
    char path[272];
    snprintf(path, sizeof path, "%s.cut", j->path);
    file_write_atomic(path, tail, len, 0600, NULL); /* for a person to look at; may fail */
    if (ftruncate(j->fd, (off_t)j->bytes) != 0 || fdatasync(j->fd) != 0)
        return sl_fail_sys(err, SL_IO, errno, "cannot cut the torn end of %s", j->path);
    return 0;
}

static int replay_all(struct journal *j, journal_replay_fn *replay, void *ctx,
                      uint64_t *cut, struct sl_err *err)
{
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    int rc = file_read(j->path, JOURNAL_MAX_BYTES, &text, &len, err);
    if (rc < 0)
        return rc;
    *cut = 0;
    while (j->bytes < len) {
        const char *line = text + j->bytes, *end = memchr(line, '\n', len - j->bytes);
        AUTO_JSON json_t *record = end ? parse_line(line, (size_t)(end - line)) : NULL;
        if (!record) {
            if (any_record_after(line + 1, len - j->bytes - 1))
                return sl_fail(
                    err, SL_IO,
                    "%s is damaged at byte %" PRIu64 " (record %" PRIu64
                    ") and goes on after it; move it away and start again: running "
                    "leases are then unknown to the agent",
                    j->path, j->bytes, j->records + 1);
            *cut = len - j->bytes;
            return cut_tail(j, line, len - j->bytes, err);
        }
        struct sl_err why = { 0 };
        if (replay(ctx, record, &why) < 0) /* whatever it is, no caller can mend it */
            return sl_fail(err, SL_IO, "%s: record %" PRIu64 ": %s", j->path,
                           j->records + 1, why.msg);
        j->bytes = (uint64_t)(end + 1 - text);
        j->records++;
    }
    return 0;
}

/* Blocks beyond the end: with them a full disk keeps nobody from ending or granting leases.
 * Where the file system cannot, or is full already, it goes on without. */
static void keep_room(struct journal *j)
{
    if (j->room_end >= j->bytes + JOURNAL_ROOM / 2)
        return;
    if (fallocate(j->fd, FALLOC_FL_KEEP_SIZE, (off_t)j->bytes, JOURNAL_ROOM) == 0)
        j->room_end = j->bytes + JOURNAL_ROOM;
}

/* All behind the last whole record, that room included. */
static int cut_behind(struct journal *j)
{
    j->room_end = 0;
    return ftruncate(j->fd, (off_t)j->bytes);
}

int journal_open(const char *path, journal_replay_fn *replay, void *ctx,
                 struct journal **out, uint64_t *cut, struct sl_err *err)
{
    struct journal *j = calloc(1, sizeof *j);
    if (!j)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    snprintf(j->path, sizeof j->path, "%s", path);
    j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int rc = j->fd < 0 ? sl_fail_sys(err, SL_IO, errno, "cannot open %s", path) : 0;
    uint64_t cut_bytes = 0;
    if (rc == 0)
        rc = replay_all(j, replay, ctx, &cut_bytes, err);
    if (rc < 0) {
        journal_close(j);
        return rc;
    }
    keep_room(j);
    if (cut)
        *cut = cut_bytes;
    *out = j;
    return 0;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    free(j);
}

static int write_record(struct journal *j, const char *text, size_t len, struct sl_err *err)
{
    int fault = fault_point("journal.before-write");
    if (fault)
        return sl_fail_sys(err, SL_IO, fault, "%s", j->path);
    int rc = file_write_all(j->fd, text, len, err);
    if (rc < 0)
        return sl_prefix(err, "%s", j->path);
    fault = fault_point("journal.after-write");
    if (fault || fdatasync(j->fd) != 0)
        return sl_fail_sys(err, SL_IO, fault ? fault : errno, "%s: sync", j->path);
    fault = fault_point("journal.after-sync");
    return fault ? sl_fail_sys(err, SL_IO, fault, "%s", j->path) : 0;
}

/* Half a record in the middle would be damage: take it back before anything else.  After a
 * compaction whose last step failed, find the new file. */
static bool restore_tail(struct journal *j)
{
    if (j->fd < 0 && (j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC)) < 0)
        return false;
    if (j->dirty_tail)
        j->dirty_tail = cut_behind(j) != 0;
    keep_room(j);
    return !j->dirty_tail;
}

int journal_append(struct journal *j, const json_t *record, struct sl_err *err)
{
    if (!restore_tail(j))
        return sl_fail_sys(err, SL_IO, errno, "%s: cannot undo a failed write", j->path);
    AUTO_BUF struct buf line = { 0 };
    int rc = format_record(record, &line, err);
    if (rc < 0)
        return rc;
    if (j->bytes + line.len > JOURNAL_MAX_BYTES)
        return sl_fail(err, SL_IO, "journal: it would be too long to be read");
    rc = write_record(j, line.text, line.len, err);
    if (rc < 0) {
        j->dirty_tail = true;
        restore_tail(j);
        return rc;
    }
    j->bytes += line.len;
    j->records++;
    return 0;
}

bool journal_wants_compaction(const struct journal *j, uint64_t live)
{
    uint64_t most = min_u64(2 * j->compact_bytes + JOURNAL_GROWTH, JOURNAL_MAX_BYTES / 2);
    return (j->bytes > JOURNAL_SMALL_BYTES && j->records > 4 * (live + 1)) ||
           j->bytes > most;
}

static int replace_file(struct journal *j, const char *text, size_t len, struct sl_err *err)
{
    int rc = file_write_atomic(j->path, text, len, 0600, err);
    if (rc != -SL_IO || j->fd < 0 || cut_behind(j) != 0)
        return rc;
    rc = file_write_atomic(j->path, text, len, 0600, err); /* in the room that was kept */
    if (rc < 0)
        keep_room(j);
    return rc;
}

int journal_compact(struct journal *j, const json_t *records, struct sl_err *err)
{
    AUTO_BUF struct buf text = { 0 };
    size_t i;
    const json_t *record;
    json_array_foreach((json_t *)records, i, record) {
        int rc = format_record(record, &text, err);
        if (rc < 0)
            return rc;
    }
    int rc = replace_file(j, text.text ? text.text : "", text.len, err);
    if (rc < 0)
        return sl_prefix(err, "journal: compaction");
    if (j->fd >= 0)
        close(j->fd); /* the old file: it has no name any more */
    j->bytes = j->compact_bytes = text.len;
    j->records = json_array_size(records);
    j->room_end = 0;
    j->dirty_tail = false;
    j->fd = -1;
    return restore_tail(j)
               ? 0
               : sl_fail_sys(err, SL_IO, errno, "cannot open the new %s", j->path);
}
