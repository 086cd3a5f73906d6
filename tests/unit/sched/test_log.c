/* The log: what is written is read, what is damaged is refused, and nothing is forgotten. */
#include "../rows.h"

#include "sched/log.h"
#include "script.h"

/* Every byte of the event is 1, its counts are as high as they go. */
static void fill(struct sched_event *e, enum sched_event_kind kind,
                 struct sched_option *option)
{
    static const struct pool_place place[] = {
        { .node = 7, .device_count = 2, .device = { 0, 3 }, .cut = { { 1, 2 }, { 5, 6 } } },
        { .node = 8, .device_count = 1, .device = { 9 } },
    };
    struct sched_request *q = kind == SCHED_SUBMIT    ? &e->submit
                              : kind == SCHED_RESTORE ? &e->restore.request
                                                      : NULL;
    memset(e, 1, sizeof *e);
    memset(option, 1, SCHED_MAX_OPTIONS * sizeof *option);
    e->kind = kind;
    if (kind == SCHED_ADD_NODE)
        e->node.device_count = POOL_MAX_DEVICES;
    if (kind == SCHED_SET_PROFILES)
        e->profiles.profiles.count = POOL_MAX_PROFILES;
    if (kind == SCHED_RESTORE) {
        e->restore.place = place;
        e->restore.place_count = ARRAY_LEN(place);
    }
    if (!q)
        return;
    q->option = option;
    q->option_count = SCHED_MAX_OPTIONS;
    q->ties.tag_count = SCHED_MAX_TAGS;
    q->ties.tie_count = SCHED_MAX_TIES;
    for (uint32_t i = 0; i < SCHED_MAX_OPTIONS; i++)
        option[i].group_count = SCHED_MAX_GROUPS;
}

static uint32_t differ(const void *a, const void *b, size_t size)
{
    const uint8_t *x = a, *y = b;
    uint32_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += x[i] != y[i];
    return n;
}

/*
 * What comes back differs from what was written only in the holes between fields, and in what
 * other kinds of event have: a field that log.c does not know comes back 0.
 */
static void every_field_comes_back(void **state)
{
    static const struct {
        const char *label;
        enum sched_event_kind kind;
        size_t size;    /* of the event's own struct */
        uint32_t holes; /* bytes in it that are no field's */
    } rows[] = {
        { "a node", SCHED_ADD_NODE, sizeof(struct pool_node), 4 + 16 * 1 },
        { "open", SCHED_OPEN_NODE, 8, 3 },
        { "a tenant", SCHED_SET_TENANT, sizeof(struct sched_tenant), 0 },
        { "a quota", SCHED_SET_QUOTA, sizeof(struct sched_quota), 0 },
        { "a price", SCHED_SET_PRICE, sizeof(struct sched_price), 0 },
        { "a request", SCHED_SUBMIT, sizeof(struct sched_request), 7 + 4 + 4 * 2 },
        { "an end", SCHED_END, 8, 0 },
        { "a tick", SCHED_TICK, 0, 0 },
        { "a restored one", SCHED_RESTORE, sizeof(struct sched_restore),
          7 + 4 + 4 + 4 + 4 * 2 },
        { "profiles", SCHED_SET_PROFILES, sizeof(struct sched_profiles), 1 },
        { "a priority", SCHED_SET_PRIORITY, sizeof(struct sched_priority), 4 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sched_option option[SCHED_MAX_OPTIONS];
        struct sched_event e;
        struct sched_policy policy = { 0 };
        struct sched_log_reader r;
        struct sched_log_record record;
        AUTO_BUF struct buf log = { 0 };
        fill(&e, rows[i].kind, option);
        sched_log_begin(&log, &policy);
        sched_log_event(&log, &e);
        ROW(rows[i].label, !sched_log_open(&r, log.text, log.len, &policy, NULL));
        ROW(rows[i].label, !sched_log_next(&r, &record, NULL));
        ROW(rows[i].label, record.kind == SCHED_LOG_EVENT);
        ROW(rows[i].label, record.event.kind == e.kind && record.event.now_ms == e.now_ms);
        if (e.kind == SCHED_SUBMIT)
            record.event.submit.option = option;
        if (e.kind == SCHED_RESTORE) {
            ROW("the places", !memcmp(record.event.restore.place, e.restore.place,
                                      e.restore.place_count * sizeof *e.restore.place));
            record.event.restore.request.option = option;
            record.event.restore.place = e.restore.place;
        }
        ROW(rows[i].label,
            differ(&record.event.node, &e.node, rows[i].size) == rows[i].holes);
        if (e.kind == SCHED_SUBMIT ||
            e.kind ==
                SCHED_RESTORE) /* of each option 4 and 3, of each group 4, 2, 3 and 4 */
            ROW("the options", differ(r.option, option, sizeof option) ==
                                   SCHED_MAX_OPTIONS * (4 + 3 + SCHED_MAX_GROUPS * 13));
        sched_log_close(&r);
    }
    struct sched_option option[SCHED_MAX_OPTIONS];
    struct sched_event e;
    AUTO_BUF struct buf log = { 0 };
    fill(&e, ARRAY_LEN(rows), option);
    sched_log_event(&log, &e);
    ROW("every kind has its row: one more is none", log.len < 20);
}

static void decisions_come_back(void **state)
{
    static const struct pool_place place[] = {
        { .node = 3, .device_count = 2, .device = { 0, 7 } }, { .node = 4000000 }
    };
    static const struct sched_decision d[] = {
        { .kind = SCHED_GRANT, .id = 7, .option = 1, .place_count = 2, .place = place },
        { .kind = SCHED_EVICT, .id = UINT64_MAX, .by = 7, .rule = SCHED_BY_RECLAIM },
        { .kind = SCHED_GRANT, .id = 8, .place_count = 1, .place = place },
    };
    static const char *const words[] = {
        "grant 7: option 1, node 3 devices 0,7, node 4000000",
        "evict 18446744073709551615: for 7 by reclaim",
        "grant 8: option 0, node 3 devices 0,7",
    };
    AUTO_BUF struct buf log = { 0 }, again = { 0 };
    struct sched_policy policy;
    struct sched_log_reader r;
    struct sched_log_record record;
    sched_policy_init(&policy);
    policy.order = SCHED_BY_REMAINING;
    sched_log_begin(&log, &policy);
    sched_log_outcome(&log, -SL_CONFLICT, d, 3);
    policy.order = 0;
    ROW("it is a log", !sched_log_open(&r, log.text, log.len, &policy, NULL));
    ROW("the policy",
        policy.order == SCHED_BY_REMAINING && policy.half_life_ms == 604800000);
    ROW("the record", !sched_log_next(&r, &record, NULL));
    ROW("the answer", record.kind == SCHED_LOG_OUTCOME && record.rc == -SL_CONFLICT);
    ROW("all of them", record.count == 3);
    for (int i = 0; i < 3; i++) {
        AUTO_BUF struct buf text = { 0 };
        sched_decision_text(&text, &record.decision[i]);
        ROW_STR("in words", text.text, words[i]);
    }
    sched_log_outcome_body(&again, record.rc, record.decision, record.count);
    ROW("the same bytes",
        again.len == record.body_size && !memcmp(again.text, record.body, again.len));
    ROW("then nothing", !sched_log_next(&r, &record, NULL) && record.kind == SCHED_LOG_END);
    sched_log_close(&r);
}

/* ---- damage ---- */

/* How reading ends: records read, then how. */
static const char *read_all(const char *bytes, size_t size)
{
    static char text[300];
    struct sched_policy policy;
    struct sched_log_reader r;
    struct sched_log_record record = { 0 };
    struct sl_err err = { 0 };
    int count = 0;
    if (sched_log_open(&r, bytes, size, &policy, &err))
        return strcpy(text, err.msg);
    while (!sched_log_next(&r, &record, &err) && record.kind < SCHED_LOG_END)
        count++;
    if (err.msg[0])
        snprintf(text, sizeof text, "%d, then %s", count, err.msg);
    else
        snprintf(text, sizeof text, "%d, then %s at %zu", count,
                 record.kind == SCHED_LOG_TORN ? "torn" : "the end", record.at);
    sched_log_close(&r);
    return text;
}

static void damage_is_said(void **state)
{
    AUTO_BUF struct buf log = { 0 };
    struct sched_policy policy;
    struct sched_event e = { .kind = SCHED_TICK, .now_ms = 5 };
    char want[100];
    sched_policy_init(&policy);
    sched_log_begin(&log, &policy);
    size_t head = log.len;
    sched_log_event(&log, &e);
    size_t one = log.len - head;
    sched_log_event(&log, &e);
    snprintf(want, sizeof want, "2, then the end at %zu", log.len);
    ROW_STR("whole", read_all(log.text, log.len), want);
    for (size_t cut = 1; cut < one; cut++) {
        snprintf(want, sizeof want, "1, then torn at %zu", head + one);
        ROW_STR("cut in the last record", read_all(log.text, log.len - cut), want);
    }
    ROW_STR("cut in the header", read_all(log.text, head - 1),
            "the log ends in its header: nothing is in it");
    ROW_STR("empty", read_all("", 0), "this is no log of a scheduler core");
    ROW_STR("something else", read_all("{\"a\": 1, \"b\": 2, \"c\": 3}", 24),
            "this is no log of a scheduler core");
    for (size_t i = 0; i < one; i++) {
        log.text[head + i] ^= 4;
        const char *have = read_all(log.text, log.len);
        /* a size that is wrong may point behind the end */
        snprintf(want, sizeof want, "0, then the log is damaged: the record at byte %zu",
                 head);
        if (i)
            ROW_STR("a bit is wrong", have, want);
        else
            ROW("a bit of the size is wrong", !strncmp(have, "0, then ", 8));
        log.text[head + i] ^= 4;
    }
    static const char zeros[100];
    snprintf(want, sizeof want, "2, then torn at %zu", log.len);
    buf_add_bytes(&log, zeros, sizeof zeros);
    ROW_STR("zeros behind, as a crash leaves them", read_all(log.text, log.len), want);
}

static void another_build_is_told(void **state)
{
    AUTO_BUF struct buf log = { 0 };
    struct sched_policy policy = { 0 };
    sched_log_begin(&log, &policy);
    size_t start = strcspn(log.text, "\n") + 1;
    log.text[start + 2]++; /* the version */
    uint32_t crc = sched_log_checksum(log.text + start, log.len - start - 4);
    for (int i = 0; i < 4; i++)
        log.text[log.len - 4 + (size_t)i] = (char)(crc >> 8 * i);
    ROW("its version", strstr(read_all(log.text, log.len), "another build"));
}

static void the_checksum_is_the_usual_one(void **state)
{
    ROW("the check value of CRC-32", sched_log_checksum("123456789", 9) == 0xcbf43926);
}

static void events_in_words(void **state)
{
    static const struct {
        const char *want;
        struct sched_event e;
    } rows[] = {
        { "close node 3", { .kind = SCHED_OPEN_NODE, .open = { 3, false } } },
        { "tenant 3 below 1, weight 2",
          { .kind = SCHED_SET_TENANT, .tenant = { 3, 1, 2 } } },
        { "quota of tenant 3, model 0: deserves 1000, limit none",
          { .kind = SCHED_SET_QUOTA, .quota = { 3, 0, 1000, SCHED_NO_LIMIT } } },
        { "price of model 1: 500 permille",
          { .kind = SCHED_SET_PRICE, .price = { 1, 500 } } },
        { "end 7", { .kind = SCHED_END, .end = 7 } },
        { "priority of 7: 60", { .kind = SCHED_SET_PRIORITY, .priority = { 7, 60 } } },
        { "tick", { .kind = SCHED_TICK } },
        { "2 profiles of model 3",
          { .kind = SCHED_SET_PROFILES, .profiles = { 3, { .count = 2 } } } },
        { "add a node of 2 devices",
          { .kind = SCHED_ADD_NODE, .node = { .device_count = 2 } } },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf text = { 0 };
        sched_event_text(&text, &rows[i].e);
        ROW_STR("in words", text.text, rows[i].want);
    }
    struct sched_option option[2] = {
        { .group_count = 2,
          .group = { { { .devices = 2, .permille = 500, .mem_bytes = 7 }, 3 },
                     { { .cpu_milli = 100, .host_mem_bytes = 9 }, 1 } } },
        { .group_count = 1,
          .group = { { { .devices = 1, .permille = 9, .models = 5 }, 1 } } },
    };
    struct sched_event e = { .kind = SCHED_SUBMIT,
                             .submit = { .id = 7,
                                         .tenant = 1,
                                         .priority = 50,
                                         .option_count = 2,
                                         .option = option } };
    AUTO_BUF struct buf text = { 0 };
    sched_event_text(&text, &e);
    ROW_STR(
        "a request", text.text,
        "submit 7: tenant 1, priority 50, 3 nodes of 2 x 500 permille 7 bytes + no device"
        " 100 milli-CPU 9 host bytes or 1 x 9 permille models 5");
    static const struct pool_place place[] = {
        { .node = 3, .device_count = 1, .device = { 1 }, .cut = { { 2, 4 } } }
    };
    struct sched_event r = { .kind = SCHED_RESTORE };
    r.restore = (struct sched_restore){ e.submit, 1, 99, 1, place };
    r.restore.request.option_count = 1;
    r.restore.request.option++;
    AUTO_BUF struct buf runs = { 0 };
    sched_event_text(&runs, &r);
    ROW_STR("what runs", runs.text,
            "restore 7: tenant 1, priority 50, 1 x 9 permille models 5: option 1 since 99,"
            " node 3 devices 1 (profile 2 from slot 4)");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_field_comes_back),
    cmocka_unit_test(decisions_come_back),
    cmocka_unit_test(damage_is_said),
    cmocka_unit_test(another_build_is_told),
    cmocka_unit_test(events_in_words),
    cmocka_unit_test(the_checksum_is_the_usual_one),
};
ROWS_MAIN(tests)
