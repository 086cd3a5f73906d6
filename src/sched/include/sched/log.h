/*
 * The log of a scheduler core: its policy, then every event and what was decided.  A core
 * that is fed the events of a log decides the same, byte for byte: a log is enough to
 * replay a run, to explain a decision long after, and to ask what would have been.
 *
 * Bytes:
 *     "sluice-sched-log\n"  record  record ...
 *     record = size of the body (varint) | body | CRC-32 of both (4 bytes, little-endian)
 *     body   = kind: one byte, then its fields in the order of log.c, numbers as varints
 *              (7 bits a byte, lowest first, the shortest form)
 * The first record is the header: version, a fingerprint of the names of all fields in
 * their order, and the policy.  A build whose events have other fields refuses the log.
 * An event is followed by its outcome; one without (the last before a crash, or one of those
 * that rebuild a state) is applied and compared with nothing.
 *
 * Pure: bytes in memory; no I/O.  Readers trust nothing.
 */
#ifndef SCHED_LOG_H
#define SCHED_LOG_H

#include "base/buf.h"
#include "sched/sched.h"

#define SCHED_LOG_MAX_BODY (16u << 20)

/* ---- writing: appended to a buffer; ask buf_failed() ---- */

void sched_log_begin(struct buf *to, const struct sched_policy *policy);
/* Before the event is applied, … */
void sched_log_event(struct buf *to, const struct sched_event *e);
/* … and what sched_apply() then returned and decided. */
void sched_log_outcome(struct buf *to, int rc, const struct sched_decision *d,
                       uint32_t count);

/* ---- reading ---- */

enum sched_log_kind {
    SCHED_LOG_EVENT,
    SCHED_LOG_OUTCOME,
    SCHED_LOG_END,
    /* The last record is incomplete, as after a crash or a full disk: `at` is where it
     * begins.  What is before it is whole. */
    SCHED_LOG_TORN,
};

/* One record; what it points to is lent until the next, or the reader's end. */
struct sched_log_record {
    enum sched_log_kind kind;
    size_t at; /* its first byte */
    struct sched_event event;
    /* of an outcome */
    int rc;
    uint32_t count;
    const struct sched_decision *decision;
    const uint8_t *body; /* to compare with that of sched_log_outcome_body() */
    size_t body_size;
};

struct sched_log_reader {
    const uint8_t *bytes;
    size_t size, at;
    struct sched_option option[SCHED_MAX_OPTIONS];
    struct sched_decision *decision;
    struct pool_place *place;
    uint32_t decision_room, place_room;
};

/* The bytes are borrowed.  -SL_INVALID for what is no log, is damaged, or is of another
 * version; then there is nothing to finish. */
int sched_log_open(struct sched_log_reader *r, const void *bytes, size_t size,
                   struct sched_policy *policy, struct sl_err *err);
/* -SL_INVALID, with the byte: the record is damaged. */
int sched_log_next(struct sched_log_reader *r, struct sched_log_record *out,
                   struct sl_err *err);
void sched_log_close(struct sched_log_reader *r);

/* An outcome's body, without the record around it: two that are equal are the same
 * decisions. */
void sched_log_outcome_body(struct buf *to, int rc, const struct sched_decision *d,
                            uint32_t count);

/* CRC-32 of ISO 3309, as in zlib. */
uint32_t sched_log_checksum(const void *bytes, size_t size);

/* ---- in words, one line each, without an end of line ---- */

/* "submit 7: tenant 3, priority 50, 2 x 500 permille 8589934592 bytes" */
void sched_event_text(struct buf *to, const struct sched_event *e);
/* "grant 7: option 0, node 3 devices 0,1" | "evict 5: for 7 by priority" */
void sched_decision_text(struct buf *to, const struct sched_decision *d);

#endif
