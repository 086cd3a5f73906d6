/*
 * Logs of the scheduler core from any bytes.  The first byte says how: L, a log as it
 * is; else the rest, in pieces between line ends, are bodies of records whose frames are
 * right.  What is read is written to the same bytes, and a core can be fed with it.
 */
#include <string.h>

#include "fuzz.h"
#include "sched/log.h"

const char *const fuzz_seeds[] = {
    "Lsluice-sched-log\n\x05H\x01\x01\x01\x01\x01\x01\x01\x01",
    "bE\x07\x01\nE\x02\x01\x01\x01\x01",
    "bE\x06\x05\x07\nO\x01\x01",
    "bE\x04\x05\x07\x01\nE\x01\x01\x01\x01",
    "bO\x01\x01\x01\x09\x01\x01\x01\x02\x07\x02\x01\x02\x06\x01\x01",
    "bE\x08\x05\x07\x01\nE\x01\x01",
    NULL,
};

static void add_record(struct buf *log, const uint8_t *body, size_t size)
{
    size_t start = log->len;
    uint8_t head[2] = { (uint8_t)(size | 0x80), (uint8_t)(size >> 7) }, sum[4];
    if (!size || size >= 1 << 14)
        return;
    head[0] &= size < 0x80 ? 0x7f : 0xff;
    buf_add_bytes(log, head, size < 0x80 ? 1 : 2);
    buf_add_bytes(log, body, size);
    uint32_t crc = sched_log_checksum(log->text + start, log->len - start);
    for (int i = 0; i < 4; i++)
        sum[i] = (uint8_t)(crc >> 8 * i);
    buf_add_bytes(log, sum, sizeof sum);
}

/* Header, then the pieces. */
static void frame(struct buf *log, const uint8_t *data, size_t size)
{
    struct sched_policy policy;
    sched_policy_init(&policy);
    sched_log_begin(log, &policy);
    while (size) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t piece = end ? (size_t)(end - data) : size;
        add_record(log, data, piece);
        piece += end != NULL;
        data += piece;
        size -= piece;
    }
}

/* What was read says the same in bytes again. */
static void check_same(const struct sched_log_reader *r, const struct sched_log_record *x)
{
    struct buf again = { 0 };
    if (x->kind == SCHED_LOG_EVENT)
        sched_log_event(&again, &x->event);
    else
        sched_log_outcome(&again, x->rc, x->decision, x->count);
    FUZZ_CHECK(!buf_failed(&again) && again.len == r->at - x->at);
    FUZZ_CHECK(!memcmp(again.text, r->bytes + x->at, again.len));
    buf_finish(&again);
}

static void feed(struct sched *s, const struct sched_log_record *x)
{
    const struct sched_decision *d;
    struct buf text = { 0 };
    uint32_t count;
    if (x->kind == SCHED_LOG_EVENT) {
        sched_event_text(&text, &x->event);
        sched_apply(s, &x->event, &d, &count, NULL);
    }
    for (uint32_t i = 0; i < x->count; i++)
        sched_decision_text(&text, &x->decision[i]);
    buf_finish(&text);
}

static void read_log(const void *bytes, size_t size)
{
    struct sched_log_reader r;
    struct sched_policy policy;
    struct sched_log_record x;
    struct sl_err err = { 0 };
    struct sched *s;
    int rc = sched_log_open(&r, bytes, size, &policy, &err);
    FUZZ_CHECK(rc == 0 || (rc == -SL_INVALID && err.msg[0]));
    if (rc)
        return;
    FUZZ_CHECK(!sched_create(&policy, &s, NULL));
    do {
        rc = sched_log_next(&r, &x, &err);
        FUZZ_CHECK(rc == 0 || (rc == -SL_INVALID && err.msg[0]));
        FUZZ_CHECK(r.at <= size);
        if (rc || x.kind >= SCHED_LOG_END)
            break;
        check_same(&r, &x);
        feed(s, &x);
    } while (true);
    sched_check(s);
    sched_destroy(s);
    sched_log_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf log = { 0 };
    if (!size)
        return 0;
    if (data[0] == 'L')
        buf_add_bytes(&log, data + 1, size - 1);
    else
        frame(&log, data + 1, size - 1);
    read_log(log.len ? log.text : "", log.len);
    buf_finish(&log);
    return 0;
}
