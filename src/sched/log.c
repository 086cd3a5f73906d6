/* The log's codec: events and decisions as bytes, and back. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sched/log.h"

#define MAGIC   "sluice-sched-log\n"
#define VERSION 1

/* The last of each enum: a kind that is not coded must not compile. */
#define LAST_EVENT    SCHED_SET_PROFILES
#define LAST_DECISION SCHED_EVICT
#define LAST_RULE     SCHED_BY_SERVICE
#define LAST_ORDER    SCHED_BY_REMAINING
#pragma GCC diagnostic error "-Wswitch"

enum body_kind { HEADER = 'H', EVENT = 'E', OUTCOME = 'O' };

/*
 * One routine per struct says its fields, in order; it writes them, reads them, or sums
 * up their names.  A new field is one line here.
 */
enum task { WRITE, READ, NAME };

struct coder {
    enum task task;
    struct buf *to;          /* WRITE */
    const uint8_t *at, *end; /* READ */
    bool bad;                /* READ: it is no such thing */
    uint64_t names;          /* NAME */
};

/* ---- numbers ---- */

static void write_number(struct buf *to, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    buf_add_bytes(to, bytes, n);
}

/* The shortest form only, so that equal things have equal bytes. */
static uint64_t read_number(struct coder *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        c->bad |= (!byte && shift) || (shift == 63 && byte > 1);
        return v;
    }
    c->bad = true;
    return 0;
}

static void sum_name(struct coder *c, const char *name)
{
    for (; *name; name++)
        c->names = (c->names ^ (uint8_t)*name) * 0x100000001b3ull; /* FNV-1a */
    c->names = (c->names ^ '\n') * 0x100000001b3ull;
}

static uint64_t code_number(struct coder *c, const char *name, uint64_t v)
{
    if (c->task == READ)
        return read_number(c);
    if (c->task == WRITE)
        write_number(c->to, v);
    else
        sum_name(c, name);
    return v;
}

/* A number that is at most `most`: a count, an enum, a bool.  What is written is only read,
 * so that events may be constant. */
#define UP_TO(c, field, most)                                    \
    do {                                                         \
        uint64_t v_ = code_number(c, #field, (uint64_t)(field)); \
        if ((c)->task == READ) {                                 \
            (c)->bad |= v_ > (uint64_t)(most);                   \
            (field) = (c)->bad ? 0 : (__typeof__(field))v_;      \
        }                                                        \
    } while (0)
#define FIELD(c, field) UP_TO(c, field, (__typeof__(field))-1)

/* ---- the structs ---- */

/* A struct that grows must get its line below; then this number.  (What fits into a hole is
 * found by tests/unit/sched/test_log.c.) */
#define IS_SIZE(type, size)                       \
    _Static_assert(sizeof(struct type) == (size), \
                   "sched/log.c: code the new field of " #type)
IS_SIZE(pool_node, 456);
IS_SIZE(sched_tenant, 12);
IS_SIZE(sched_quota, 24);
IS_SIZE(sched_price, 8);
IS_SIZE(sched_profiles, 40);
IS_SIZE(sched_request, 144);
IS_SIZE(sched_option, 1040);
IS_SIZE(sched_restore, 176);
IS_SIZE(sched_event, 472);
IS_SIZE(sched_priority, 16);
IS_SIZE(sched_decision, 48);
IS_SIZE(sched_policy, 40);

static void code_policy(struct coder *c, struct sched_policy *p)
{
    UP_TO(c, p->place.rule, PLACE_SPREAD);
    FIELD(c, p->place.bucket_permille);
    FIELD(c, p->place.scarcity_permille);
    UP_TO(c, p->order, LAST_ORDER);
    FIELD(c, p->half_life_ms);
    UP_TO(c, p->tenancy, POOL_ALL_SHARING);
    FIELD(c, p->protect);
    FIELD(c, p->patience_ms);
}

static void code_labels(struct coder *c, struct pool_labels *l)
{
    for (uint32_t i = 0; i < POOL_LABEL_WORDS; i++)
        FIELD(c, l->bits[i]);
}

static void code_node(struct coder *c, struct pool_node *n)
{
    FIELD(c, n->cpu_milli);
    FIELD(c, n->over_cpu_milli);
    FIELD(c, n->over_host_mem_bytes);
    FIELD(c, n->host_mem_bytes);
    UP_TO(c, n->device_count, POOL_MAX_DEVICES);
    for (uint32_t i = 0; i < n->device_count; i++) {
        FIELD(c, n->device[i].model);
        FIELD(c, n->device[i].sharing);
        FIELD(c, n->device[i].over_permille);
        FIELD(c, n->device[i].over_mem_bytes);
        FIELD(c, n->device[i].mem_bytes);
    }
    code_labels(c, &n->labels);
    FIELD(c, n->rack);
    FIELD(c, n->zone);
}

static void code_ask(struct coder *c, struct pool_ask *a)
{
    FIELD(c, a->devices);
    FIELD(c, a->permille);
    FIELD(c, a->mem_bytes);
    FIELD(c, a->cpu_milli);
    FIELD(c, a->host_mem_bytes);
    FIELD(c, a->models);
    code_labels(c, &a->need);
    code_labels(c, &a->avoid);
    FIELD(c, a->owner);
    FIELD(c, a->sharing);
    UP_TO(c, a->lower, 1);
}

static void code_option(struct coder *c, struct sched_option *o)
{
    UP_TO(c, o->group_count, SCHED_MAX_GROUPS);
    for (uint32_t g = 0; g < o->group_count; g++) {
        code_ask(c, &o->group[g].ask);
        FIELD(c, o->group[g].count);
        UP_TO(c, o->group[g].beside, 1);
        FIELD(c, o->group[g].split_least);
    }
    FIELD(c, o->within);
    UP_TO(c, o->within_required, 1);
}

static void code_ties(struct coder *c, struct sched_ties *t)
{
    UP_TO(c, t->tag_count, SCHED_MAX_TAGS);
    for (uint32_t i = 0; i < t->tag_count; i++)
        FIELD(c, t->tag[i]);
    UP_TO(c, t->tie_count, SCHED_MAX_TIES);
    for (uint32_t i = 0; i < t->tie_count; i++) {
        FIELD(c, t->tie[i].tag);
        FIELD(c, t->tie[i].level);
        UP_TO(c, t->tie[i].apart, 1);
        UP_TO(c, t->tie[i].required, 1);
    }
}

/* The options are read into `option`. */
static void code_request(struct coder *c, struct sched_request *q,
                         struct sched_option *option)
{
    FIELD(c, q->id);
    FIELD(c, q->tenant);
    FIELD(c, q->priority);
    UP_TO(c, q->preemptible, 1);
    FIELD(c, q->min_run_ms);
    FIELD(c, q->work_ms);
    FIELD(c, q->attained_ms);
    FIELD(c, q->limit_ms);
    UP_TO(c, q->option_count, SCHED_MAX_OPTIONS);
    for (uint32_t i = 0; i < q->option_count; i++)
        code_option(c, &option[i]);
    code_ties(c, &q->ties);
    if (c->task == READ)
        q->option = option;
}

/* All but its places. */
static void code_restore(struct coder *c, struct sched_restore *e,
                         struct sched_option *option)
{
    code_request(c, &e->request, option);
    FIELD(c, e->option);
    FIELD(c, e->start_ms);
    UP_TO(c, e->place_count, SCHED_MAX_GANG);
}

static void code_tenant(struct coder *c, struct sched_tenant *t)
{
    FIELD(c, t->tenant);
    FIELD(c, t->parent);
    FIELD(c, t->weight);
}

static void code_quota(struct coder *c, struct sched_quota *q)
{
    FIELD(c, q->tenant);
    FIELD(c, q->model);
    FIELD(c, q->deserved_milli);
    FIELD(c, q->limit_milli);
}

static void code_profiles(struct coder *c, struct sched_profiles *p)
{
    struct pool_profiles *t = &p->profiles;
    FIELD(c, p->model);
    FIELD(c, t->compute_slots);
    FIELD(c, t->mem_slots);
    UP_TO(c, t->count, POOL_MAX_PROFILES);
    for (uint32_t i = 0; i < t->count; i++) {
        FIELD(c, t->profile[i].compute_slots);
        FIELD(c, t->profile[i].mem_slots);
        FIELD(c, t->profile[i].starts);
        FIELD(c, t->profile[i].most);
    }
}

static void code_event(struct coder *c, struct sched_event *e, struct sched_option *option)
{
    UP_TO(c, e->kind, LAST_EVENT);
    FIELD(c, e->now_ms);
    switch (e->kind) {
    case SCHED_ADD_NODE:
        code_node(c, &e->node);
        break;
    case SCHED_OPEN_NODE:
        FIELD(c, e->open.node);
        UP_TO(c, e->open.open, 1);
        break;
    case SCHED_SET_TENANT:
        code_tenant(c, &e->tenant);
        break;
    case SCHED_SET_QUOTA:
        code_quota(c, &e->quota);
        break;
    case SCHED_SET_PRICE:
        FIELD(c, e->price.model);
        FIELD(c, e->price.permille);
        break;
    case SCHED_SUBMIT:
        code_request(c, &e->submit, option);
        break;
    case SCHED_END:
        FIELD(c, e->end);
        break;
    case SCHED_TICK:
        break;
    case SCHED_RESTORE:
        code_restore(c, &e->restore, option);
        break;
    case SCHED_SET_PROFILES:
        code_profiles(c, &e->profiles);
        break;
    case SCHED_SET_PRIORITY:
        FIELD(c, e->priority.id);
        FIELD(c, e->priority.priority);
        break;
    }
}

static void code_place(struct coder *c, struct pool_place *p)
{
    FIELD(c, p->node);
    UP_TO(c, p->device_count, POOL_MAX_DEVICES);
    for (uint32_t i = 0; i < p->device_count; i++) {
        FIELD(c, p->device[i]);
        FIELD(c, p->cut[i].profile);
        FIELD(c, p->cut[i].start);
    }
}

/* All but its places. */
static void code_decision(struct coder *c, struct sched_decision *d)
{
    UP_TO(c, d->kind, LAST_DECISION);
    FIELD(c, d->id);
    FIELD(c, d->option);
    FIELD(c, d->by);
    UP_TO(c, d->rule, LAST_RULE);
    UP_TO(c, d->place_count, SCHED_MAX_GANG);
}

/* ---- writing ---- */

uint32_t sched_log_checksum(const void *bytes, size_t size)
{
    /* of the low half of a byte */
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = UINT32_MAX;
    for (const uint8_t *p = bytes; size--; p++) {
        crc ^= *p;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* The body that begins at `start` becomes a record. */
static void end_record(struct buf *to, size_t start)
{
    struct buf head = { 0 };
    size_t size = to->len - start;
    uint8_t sum[4];
    write_number(&head, size);
    buf_add_bytes(to, head.text, head.len); /* room for it */
    to->failed |= head.failed;
    if (buf_failed(to)) {
        buf_finish(&head);
        return;
    }
    memmove(to->text + start + head.len, to->text + start, size);
    memcpy(to->text + start, head.text, head.len);
    uint32_t crc = sched_log_checksum(to->text + start, head.len + size);
    for (int i = 0; i < 4; i++)
        sum[i] = (uint8_t)(crc >> 8 * i);
    buf_add_bytes(to, sum, sizeof sum);
    buf_finish(&head);
}

/* Of all that is coded: each kind of event once, with one of each array. */
static uint64_t fingerprint(void)
{
    struct coder c = { .task = NAME, .names = 0xcbf29ce484222325ull };
    struct sched_option option = { .group_count = 1 };
    struct sched_policy policy = { 0 };
    struct pool_place place = { .device_count = 1 };
    struct sched_decision decision = { 0 };
    code_policy(&c, &policy);
    for (uint32_t kind = 0; kind <= LAST_EVENT; kind++) {
        struct sched_event e = { .kind = kind };
        if (kind == SCHED_ADD_NODE)
            e.node.device_count = 1;
        if (kind == SCHED_SET_PROFILES)
            e.profiles.profiles.count = 1;
        if (kind == SCHED_SUBMIT)
            e.submit.option_count = e.submit.ties.tag_count = e.submit.ties.tie_count = 1;
        if (kind == SCHED_RESTORE)
            e.restore.request.option_count = 1;
        code_event(&c, &e, &option);
    }
    code_decision(&c, &decision);
    code_place(&c, &place);
    return c.names;
}

void sched_log_begin(struct buf *to, const struct sched_policy *policy)
{
    struct coder c = { .task = WRITE, .to = to };
    buf_add(to, MAGIC);
    size_t start = to->len;
    write_number(to, HEADER);
    write_number(to, VERSION);
    write_number(to, fingerprint());
    code_policy(&c, (struct sched_policy *)policy);
    end_record(to, start);
}

void sched_log_event(struct buf *to, const struct sched_event *e)
{
    struct coder c = { .task = WRITE, .to = to };
    const struct sched_option *option = e->kind == SCHED_SUBMIT ? e->submit.option
                                        : e->kind == SCHED_RESTORE
                                            ? e->restore.request.option
                                            : NULL;
    size_t start = to->len;
    write_number(to, EVENT);
    code_event(&c, (struct sched_event *)e, (struct sched_option *)option);
    for (uint32_t i = 0; e->kind == SCHED_RESTORE && i < e->restore.place_count; i++)
        code_place(&c, (struct pool_place *)&e->restore.place[i]);
    end_record(to, start);
}

void sched_log_outcome_body(struct buf *to, int rc, const struct sched_decision *d,
                            uint32_t count)
{
    struct coder c = { .task = WRITE, .to = to };
    write_number(to, OUTCOME);
    write_number(to, (uint64_t)-rc);
    write_number(to, count);
    for (uint32_t i = 0; i < count; i++) {
        code_decision(&c, (struct sched_decision *)&d[i]);
        for (uint32_t p = 0; p < d[i].place_count; p++)
            code_place(&c, (struct pool_place *)&d[i].place[p]);
    }
}

void sched_log_outcome(struct buf *to, int rc, const struct sched_decision *d,
                       uint32_t count)
{
    size_t start = to->len;
    sched_log_outcome_body(to, rc, d, count);
    end_record(to, start);
}

/* ---- reading ---- */

static int damaged(size_t at, struct sl_err *err)
{
    return sl_fail(err, SL_INVALID, "the log is damaged: the record at byte %zu", at);
}

/* Only zeros from here: what some file systems leave after a crash. */
static bool only_zeros(const uint8_t *at, const uint8_t *end)
{
    while (at < end && !*at)
        at++;
    return at == end;
}

enum frame { WHOLE, TORN, DAMAGED };

/* The body of the record at r->at; the reader moves behind it. */
static enum frame next_body(struct sched_log_reader *r, struct coder *body)
{
    const uint8_t *at = r->bytes + r->at, *end = r->bytes + r->size;
    struct coder c = { .task = READ, .at = at, .end = end };
    if (only_zeros(at, end))
        return TORN;
    uint64_t size = read_number(&c);
    if (c.bad)
        return c.at == end ? TORN : DAMAGED;
    if (!size || size > SCHED_LOG_MAX_BODY)
        return DAMAGED;
    if ((uint64_t)(end - c.at) < size + 4)
        return TORN;
    uint32_t sum = 0, crc = sched_log_checksum(at, (size_t)(c.at - at) + size);
    for (int i = 0; i < 4; i++)
        sum |= (uint32_t)c.at[size + i] << 8 * i;
    if (sum != crc)
        return DAMAGED;
    *body = (struct coder){ .task = READ, .at = c.at, .end = c.at + size };
    r->at = (size_t)(c.at + size + 4 - r->bytes);
    return WHOLE;
}

int sched_log_open(struct sched_log_reader *r, const void *bytes, size_t size,
                   struct sched_policy *policy, struct sl_err *err)
{
    struct coder c;
    struct sched_policy read = { 0 };
    *r = (struct sched_log_reader){ .bytes = bytes, .size = size, .at = sizeof MAGIC - 1 };
    if (size < sizeof MAGIC - 1 || memcmp(bytes, MAGIC, sizeof MAGIC - 1))
        return sl_fail(err, SL_INVALID, "this is no log of a scheduler core");
    enum frame frame = next_body(r, &c);
    if (frame == TORN)
        return sl_fail(err, SL_INVALID, "the log ends in its header: nothing is in it");
    if (frame == DAMAGED || read_number(&c) != HEADER)
        return damaged(sizeof MAGIC - 1, err);
    uint64_t version = read_number(&c), names = read_number(&c);
    if (version != VERSION || names != fingerprint())
        return sl_fail(err, SL_INVALID,
                       "the log was written by another build, whose events are different"
                       " (version %llu, fields %016llx; this: %d, %016llx)",
                       (unsigned long long)version, (unsigned long long)names, VERSION,
                       (unsigned long long)fingerprint());
    code_policy(&c, &read);
    if (c.bad || c.at != c.end)
        return damaged(sizeof MAGIC - 1, err);
    *policy = read;
    return 0;
}

void sched_log_close(struct sched_log_reader *r)
{
    free(r->decision);
    free(r->place);
    r->decision = NULL;
    r->place = NULL;
    r->decision_room = r->place_room = 0;
}

/* `count` places behind `have` others, which may move. */
static int read_places(struct sched_log_reader *r, struct coder *c, uint32_t have,
                       uint32_t count)
{
    if (array_reserve(&r->place, &r->place_room, have + count, sizeof *r->place))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < count && !c->bad; i++) {
        r->place[have + i] = (struct pool_place){ 0 };
        code_place(c, &r->place[have + i]);
    }
    return 0;
}

static int read_event(struct sched_log_reader *r, struct coder *c, struct sched_event *e)
{
    code_event(c, e, r->option);
    if (c->bad || e->kind != SCHED_RESTORE)
        return 0;
    int rc = read_places(r, c, 0, e->restore.place_count);
    e->restore.place = r->place;
    return rc;
}

/* Places move when their array grows: they are pointed to when all are read. */
static int read_decisions(struct sched_log_reader *r, struct coder *c, uint32_t count)
{
    uint32_t places = 0;
    if (count > (size_t)(c->end - c->at)) { /* a byte each, at least */
        c->bad = true;
        return 0;
    }
    if (array_reserve(&r->decision, &r->decision_room, count, sizeof *r->decision))
        return -SL_INTERNAL;
    for (uint32_t i = 0; i < count && !c->bad; i++) {
        struct sched_decision *d = &r->decision[i];
        *d = (struct sched_decision){ 0 };
        code_decision(c, d);
        if (read_places(r, c, places, d->place_count))
            return -SL_INTERNAL;
        places += d->place_count;
    }
    places = 0;
    for (uint32_t i = 0; i < count && !c->bad; i++) {
        r->decision[i].place = r->decision[i].place_count ? r->place + places : NULL;
        places += r->decision[i].place_count;
    }
    return 0;
}

static int read_outcome(struct sched_log_reader *r, struct coder *c,
                        struct sched_log_record *out)
{
    out->kind = SCHED_LOG_OUTCOME;
    uint64_t code = read_number(c), count = read_number(c);
    c->bad |= code >= SL_CODE_COUNT || count > UINT32_MAX;
    if (c->bad)
        return 0;
    out->rc = -(int)code;
    out->count = (uint32_t)count;
    int rc = read_decisions(r, c, out->count);
    out->decision = r->decision;
    return rc;
}

int sched_log_next(struct sched_log_reader *r, struct sched_log_record *out,
                   struct sl_err *err)
{
    struct coder c;
    struct sched_log_record record = { .at = r->at };
    int rc = 0;
    *out = (struct sched_log_record){ .kind = SCHED_LOG_END, .at = r->at };
    if (r->at == r->size)
        return 0;
    enum frame frame = next_body(r, &c);
    if (frame == DAMAGED)
        return damaged(r->at, err);
    if (frame == TORN) {
        out->kind = SCHED_LOG_TORN;
        return 0;
    }
    record.body = c.at;
    record.body_size = (size_t)(c.end - c.at);
    uint64_t kind = read_number(&c);
    if (kind == EVENT)
        rc = read_event(r, &c, &record.event);
    else if (kind == OUTCOME)
        rc = read_outcome(r, &c, &record);
    else
        c.bad = true;
    if (rc)
        return sl_fail(err, SL_INTERNAL, "the log: out of memory");
    if (c.bad || c.at != c.end)
        return damaged(record.at, err);
    *out = record;
    return 0;
}
