/* Explanations: rows in words; and, for random states, that each change that is said to do
 * does, and that one unit less of it does not – tried on a second core fed by the log. */
#include "../rows.h"

#include "sched/explain.h"
#include "sched/log.h"
#include "script.h"

static void explained(struct script *r, uint64_t id, struct buf *text)
{
    struct sched_explanation x;
    if (sched_explain(r->s, id, &x))
        buf_add(text, "unknown");
    else
        sched_explanation_text(text, &x);
    sched_check(r->s);
}

static void in_words(void **state)
{
    static const struct {
        const char *label, *script;
        uint64_t id;
        const char *want;
    } rows[] = {
        { "nobody", "n 1", 7, "unknown" },
        { "running", "n 1; @1500; s 1 0 50 500", 1, "1 runs since 1.500 s.\n" },
        { "compute", "n 1; s 1 0 50 600 f; s 2 0 50 600 f", 2,
          "2 waits for room for 600 permille of a device.\n"
          "  1 node: compute (at most 400 permille free)\n"
          "It would start now with\n  400 permille of each device instead of 600\n"
          "  or the end of 1 lease, such as 1\n" },
        { "when it will start, by limits",
          "n 1; s 1 0 50 600 f l60000; @1000; s 2 0 50 600 f", 2,
          "2 waits for room for 600 permille of a device.\n"
          "  1 node: compute (at most 400 permille free)\n"
          "It is expected to start in 59.000 s, by the limits of what runs at the latest.\n"
          "It would start now with\n  400 permille of each device instead of 600\n"
          "  or the end of 1 lease, such as 1\n" },
        { "… by predictions", "n 1; s 1 0 50 600 f w90000; s 2 0 50 600 f", 2,
          "2 waits for room for 600 permille of a device.\n"
          "  1 node: compute (at most 400 permille free)\n"
          "It is expected to start in 90.000 s, if the others run as long as predicted.\n"
          "It would start now with\n  400 permille of each device instead of 600\n"
          "  or the end of 1 lease, such as 1\n" },
        { "memory, and nodes of another model",
          "n 1; n 1 1 3; s 1 0 50 100:5 f; s 2 0 50 1000 f; s 3 0 50 1000 f; s 4 0 50 1000 "
          "f;"
          " s 5 0 50 100:12",
          5,
          "5 waits for room for 100 permille of a device with 12GiB.\n"
          "  1 node: memory (at most 11GiB free)\n"
          "  3 nodes: compute (at most 0 permille free)\n"
          "It would start now with\n  11GiB of memory on each device instead of 12GiB\n"
          "  or the end of one of 4 leases, such as 1\n" },
        { "never", "n 1 0 2; s 1 0 50 2x500:32", 1,
          "1 can never run here: no node, were it empty, has room for 500 permille of each "
          "of 2"
          " devices with 32GiB.\n"
          "  2 nodes: too few devices of the model (at most 1)\n"
          "No single change would start it now.\n" },
        { "too few on a node", "n 1 0 2; s 1 0 50 2x500", 1,
          "1 can never run here: no node, were it empty, has room for 500 permille of each "
          "of 2"
          " devices.\n"
          "  2 nodes: too few devices of the model (at most 1)\n"
          "It would start now with\n  1 devices on a node instead of 2\n" },
        { "a gang", "n 1 0 3; s 1 0 50 1000 f; s 2 0 50 3*1000", 2,
          "2 waits for room for 3 times 1000 permille of a device.\n"
          "  1 node: compute (at most 0 permille free)\n"
          "  2 nodes: room for one, not for all, or not as near or apart as asked\n"
          "It would start now with\n  500 permille of each device instead of 1000\n"
          "  or 2 members of the gang instead of 3\n"
          "  or the end of 1 lease, such as 1\n" },
        { "a limit", "n 4; t 1 0; q 1 0 0 1000; s 1 1 50 800; s 2 1 50 500", 2,
          "2 is blocked: a limit of tenant 1 is in the way: of model 0 it may have 1000"
          " milli-devices, 300 too few.\n"
          "It would start now with\n  200 permille of each device instead of 500\n"
          "  or tenant 1's limit of model 0 raised by 300 milli-devices to 1300\n"
          "  or the end of 1 lease, such as 1\n" },
        { "a limit of a tenant above, of all models",
          "n 4; t 1 0; t 2 1; q 1 * 0 700; s 1 2 50 1000 f", 1,
          "1 is blocked: a limit of tenant 1 is in the way: of all models it may have 700"
          " milli-devices, 300 too few.\n"
          "It would start now with\n  700 permille of each device instead of 1000\n"
          "  or tenant 1's limit of all models raised by 300 milli-devices to 1000\n" },
        { "host CPU", "n 1; s 1 0 50 c12000 f; s 2 0 50 c8000 f", 2,
          "2 waits for room for host work, 8000 milli-cores.\n"
          "  1 node: host CPU (at most 4000 milli-cores free)\n"
          "It would start now with\n  4000 milli-cores instead of 8000\n"
          "  or the end of 1 lease, such as 1\n" },
        { "closed and kept", "n 1 0 2; c 0; s 1 0 40 1000; s 2 0 50 1000; s 3 0 45 100", 3,
          "3 waits for room for 100 permille of a device.\n"
          "  1 node: closed\n  1 node: kept for another request\n"
          "No single change would start it now.\n" },
        { "a card that another lease spans", "n 2; s 1 0 50 2x300 f; s 2 0 50 2x300 f", 2,
          "2 waits for room for 300 permille of each of 2 devices.\n"
          "  1 node: devices that may not be shared with it\n"
          "It would start now with\n  1 devices on a node instead of 2\n"
          "  or the end of 1 lease, such as 1\n" },
        { "the second option is nearer", "n 2; s 1 0 50 2x800 f; s 2 0 50 4x1000/300", 2,
          "2 waits for room for 300 permille of a device.\n"
          "  1 node: compute (at most 200 permille free)\n"
          "It would start now with\n  200 permille of each device instead of 300 (option "
          "1)\n"
          "  or the end of 1 lease, such as 1\n" },
        { "near each other",
          "n 2 0 1 1; n 2 0 1 2; r 1 0 50 1000 0.0 f; r 2 0 50 1000 1.0 f; s 3 0 50 2*1000 "
          "in=rack",
          3,
          "3 waits for room for 2 times 1000 permille of a device.\n"
          "  2 nodes: room for one, not for all, or not as near or apart as asked\n"
          "It would start now with\n  500 permille of each device instead of 1000\n"
          "  or 1 members of the gang instead of 2\n"
          "  or places that need not lie together\n"
          "  or the end of one of 2 leases, such as 1\n" },
        { "who lie beside each other stay as many",
          "n 2; s 1 0 50 500 f; s 2 0 50 2*1000&2*300 f", 2,
          "2 waits for room for 2 times 1000 permille of a device.\n"
          "The search was long and gave up: there may be a place after all.\n"
          "  1 node: room for one, not for all, or not as near or apart as asked\n"
          "It would start now with\n  200 permille of each device instead of 1000\n" },
        { "a split stays one of whole devices", "n 2; s 1 0 50 500 f; s 2 0 50 2%1 f", 2,
          "2 waits for room for 2 times 1000 permille of a device.\n"
          "  1 node: room for one, not for all, or not as near or apart as asked\n"
          "It would start now with\n  1 members of the gang instead of 2\n"
          "  or the end of 1 lease, such as 1\n" },
        { "it is being made room for", "n 1; s 1 0 40 1000; s 2 0 50 1000", 2,
          "2 waits for others to go; its place is kept until then.\n" },
        { "who must go",
          "n 1 0 3; s 1 0 40 1000; s 2 0 30 1000; s 3 0 30 1000; s 4 0 50 1000", 3,
          "3 was told to go for 4, of the same tenant, with a higher priority.\n"
          "3 could have gone; it was number 1 in the order: no gang first, then the lowest"
          " priority, the last in its order, the tenant furthest above its share, the "
          "least work"
          " lost, the youngest. Those before it either went, too, or fit beside.\n" },
        { "who must give back",
          "n 2; t 1 0; t 2 0; q 1 0 1000 -; q 2 0 1000 -; s 1 1 50 1000; s 2 1 50 1000;"
          " s 3 2 50 1000",
          2,
          "2 was told to go for 3, of a tenant that holds less than it deserves, while this"
          " one's holds more.\n"
          "1 could have gone; it was number 1 in the order: no gang first, then the lowest"
          " priority, the last in its order, the tenant furthest above its share, the "
          "least work"
          " lost, the youngest. Those before it either went, too, or fit beside.\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct script r;
        AUTO_BUF struct buf text = { 0 };
        script_open(&r, SCHED_BY_AGE);
        script_run(&r, rows[i].script);
        explained(&r, rows[i].id, &text);
        ROW_STR(rows[i].label, text.text, rows[i].want);
        script_close(&r);
    }
}

/* ---- random states ---- */

#define TENANTS  4 /* 0; 1 2 below it; 3 below 1 */
#define MODELS   3
#define REQUESTS 120
#define OTHER    100000 /* the id of a request that is changed */

struct asked {
    struct sched_request q;
    struct sched_option option[2];
};

struct run {
    struct rng rng;
    struct sched *s;
    struct sched_policy policy;
    struct buf log;
    uint64_t now_ms;
    struct asked asked[REQUESTS + 1];
    uint32_t submitted;
    uint64_t deserved[TENANTS][MODELS];
    uint32_t tried[SCHED_CHANGES];
};

static void apply(struct run *r, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    e->now_ms = r->now_ms;
    sched_log_event(&r->log, e);
    int rc = sched_apply(r->s, e, &d, &count, NULL);
    sched_log_outcome(&r->log, rc, d, count);
}

/* A second core in the same state; what was explained on the first has changed nothing. */
static struct sched *copy(const struct run *r)
{
    struct sched *s;
    struct sched_policy policy;
    struct sched_log_reader reader;
    struct sched_log_record x;
    const struct sched_decision *d;
    uint32_t count;
    if (sched_log_open(&reader, r->log.text, r->log.len, &policy, NULL) ||
        sched_create(&policy, &s, NULL))
        abort();
    while (!sched_log_next(&reader, &x, NULL) && x.kind == SCHED_LOG_EVENT) {
        AUTO_BUF struct buf body = { 0 };
        int rc = sched_apply(s, &x.event, &d, &count, NULL);
        sched_log_outcome_body(&body, rc, d, count);
        ROW("an outcome", !sched_log_next(&reader, &x, NULL));
        ROW("explaining changes no decision",
            body.len == x.body_size && !memcmp(body.text, x.body, body.len));
    }
    sched_log_close(&reader);
    return s;
}

/* Is `id` granted at once by this? */
static bool grants(struct sched *s, const struct run *r, struct sched_event *e, uint64_t id)
{
    const struct sched_decision *d;
    uint32_t count;
    bool granted = false;
    e->now_ms = r->now_ms;
    ROW("it is accepted", !sched_apply(s, e, &d, &count, NULL));
    for (uint32_t i = 0; i < count; i++)
        granted |= d[i].kind == SCHED_GRANT && d[i].id == id;
    return granted;
}

/* Nobody else waits, so that nobody else gets what the change gives. */
static void alone(struct sched *s, const struct run *r, uint64_t but)
{
    for (uint32_t id = 1; id <= r->submitted; id++) {
        struct sched_event e = { .kind = SCHED_END, .end = id };
        struct sched_view v;
        if (id != but && !sched_find(s, id, &v) && v.state == SCHED_PENDING)
            grants(s, r, &e, 0);
    }
}

/* The request as the change has it, instead of itself. */
static bool other_grants(const struct run *r, const struct asked *a,
                         enum sched_change_kind kind, const struct sched_change *c,
                         uint64_t to)
{
    struct sched_option o = a->option[c->option];
    struct pool_ask *ask = &o.group[c->group].ask;
    struct sched_event end = { .kind = SCHED_END, .end = a->q.id };
    struct sched_event e = { .kind = SCHED_SUBMIT, .submit = a->q };
    switch (kind) {
    case SCHED_LESS_MEMORY:
        ask->mem_bytes = to;
        break;
    case SCHED_LESS_COMPUTE:
        ask->permille = (uint32_t)to;
        break;
    case SCHED_FEWER_DEVICES:
        ask->devices = (uint32_t)to;
        break;
    case SCHED_SMALLER_GANG:
        o.group[c->group].count = (uint32_t)to;
        break;
    case SCHED_LESS_CPU:
        ask->cpu_milli = (uint32_t)to;
        break;
    case SCHED_LESS_HOST_MEMORY:
        ask->host_mem_bytes = to;
        break;
    case SCHED_OTHER_MODEL:
        ask->models |= 1ull << c->model;
        break;
    case SCHED_WITHOUT_LABEL:
        ask->need.bits[c->label / 64] &= ~(1ull << c->label % 64);
        ask->avoid.bits[c->label / 64] &= ~(1ull << c->label % 64);
        break;
    case SCHED_LESS_NEAR:
        o.within_required = false;
        break;
    case SCHED_LESS_TIED:
        for (uint32_t i = 0; i < e.submit.ties.tie_count; i++)
            if (e.submit.ties.tie[i].tag == c->tag)
                e.submit.ties.tie[i].required = false;
        break;
    default:
        abort();
    }
    e.submit.id = OTHER;
    e.submit.option_count = 1;
    e.submit.option = &o;
    struct sched *s = copy(r);
    grants(s, r, &end, 0);
    bool granted = grants(s, r, &e, OTHER);
    sched_check(s);
    sched_destroy(s);
    return granted;
}

static bool limit_grants(const struct run *r, const struct asked *a,
                         const struct sched_change *c, uint64_t to)
{
    struct sched *s = copy(r);
    struct sched_event e = { .kind = SCHED_SET_QUOTA,
                             .quota = { c->tenant, c->model,
                                        r->deserved[c->tenant][c->model], to } };
    alone(s, r, a->q.id);
    bool granted = grants(s, r, &e, a->q.id);
    sched_destroy(s);
    return granted;
}

static void check_change(struct run *r, const struct asked *a, enum sched_change_kind kind,
                         const struct sched_change *c)
{
    uint64_t step =
        kind == SCHED_LESS_MEMORY || kind == SCHED_LESS_HOST_MEMORY ? 1 << 20 : 1;
    r->tried[kind]++;
    if (kind == SCHED_HIGHER_LIMIT) {
        ROW("a higher limit does", limit_grants(r, a, c, c->to));
        ROW("one a little lower does not",
            c->to - 1 == c->from || !limit_grants(r, a, c, c->to - 1));
    } else if (kind == SCHED_A_LEASE_ENDS) {
        struct sched *s = copy(r);
        struct sched_event e = { .kind = SCHED_END, .end = c->lease };
        alone(s, r, a->q.id);
        ROW("the end of that lease does", grants(s, r, &e, a->q.id));
        sched_destroy(s);
    } else {
        ROW("the change does", other_grants(r, a, kind, c, c->to));
        if (c->from > c->to + step)
            ROW("a smaller one does not", !other_grants(r, a, kind, c, c->to + step));
    }
}

static void explain_one(struct run *r)
{
    uint32_t from = rng_below(&r->rng, r->submitted);
    for (uint32_t i = 0; i < r->submitted; i++) {
        const struct asked *a = &r->asked[1 + (from + i) % r->submitted];
        struct sched_explanation x;
        AUTO_BUF struct buf text = { 0 };
        uint32_t nodes = 0;
        if (sched_explain(r->s, a->q.id, &x) || x.view.state != SCHED_PENDING)
            continue;
        sched_check(r->s);
        for (int k = 0; k < SCHED_LACKS; k++)
            nodes += x.lacking[k].nodes;
        ROW("every node is accounted for", nodes == pool_node_count(sched_pool(r->s)));
        bool single = x.count == 1 && !a->q.ties.tie_count && !a->q.ties.tag_count &&
                      a->option[0].group_count == 1 && a->option[1].group_count <= 1;
        ROW("what has room on a node, and is all, does not wait",
            !single || !x.lacking[SCHED_LACKS_NOTHING].nodes);
        for (int k = 0; k < SCHED_CHANGES; k++)
            if (x.change[k].admits)
                check_change(r, a, k, &x.change[k]);
        sched_explanation_text(&text, &x);
        ROW("it is said", text.len > 20);
        return;
    }
}

static void submit(struct run *r)
{
    struct asked *a = &r->asked[++r->submitted];
    struct sched_event e = { .kind = SCHED_SUBMIT };
    a->q = (struct sched_request){ .id = r->submitted,
                                   .tenant = rng_below(&r->rng, TENANTS),
                                   .priority = 10 * rng_below(&r->rng, 3),
                                   .preemptible = rng_below(&r->rng, 3) == 0,
                                   .option_count = 1 + (rng_below(&r->rng, 6) == 0),
                                   .option = a->option };
    /* a tag, and one tie */
    a->q.ties.tag_count = rng_below(&r->rng, 3) == 0;
    a->q.ties.tag[0] = rng_below(&r->rng, 2);
    a->q.ties.tie_count = rng_below(&r->rng, 6) == 0;
    a->q.ties.tie[0] =
        (struct sched_tie){ rng_below(&r->rng, 2), POOL_NODE + rng_below(&r->rng, 3),
                            rng_below(&r->rng, 3) != 0, true };
    for (uint32_t i = 0; i < a->q.option_count; i++) {
        struct sched_option *o = &a->option[i];
        o->group_count = 1 + (rng_below(&r->rng, 8) == 0);
        o->within =
            rng_below(&r->rng, 3) ? POOL_ANYWHERE : POOL_NODE + rng_below(&r->rng, 3);
        o->within_required = o->within != POOL_ANYWHERE;
        for (uint32_t g = 0; g < o->group_count; g++) {
            o->group[g].ask = random_ask(&r->rng);
            o->group[g].count = 1 + (rng_below(&r->rng, 2) == 0) * rng_below(&r->rng, 4);
        }
    }
    e.submit = a->q;
    apply(r, &e);
}

static void set_limit(struct run *r)
{
    uint32_t t = rng_below(&r->rng, TENANTS), m = rng_below(&r->rng, MODELS);
    r->deserved[t][m] = 100 * rng_below(&r->rng, 20);
    struct sched_event e = { .kind = SCHED_SET_QUOTA,
                             .quota = { t, m, r->deserved[t][m],
                                        r->deserved[t][m] +
                                            100 * rng_below(&r->rng, 40) } };
    apply(r, &e);
}

static void begin(struct run *r, uint64_t seed)
{
    *r = (struct run){ .rng = { seed } };
    sched_policy_init(&r->policy);
    sched_log_begin(&r->log, &r->policy);
    if (sched_create(&r->policy, &r->s, NULL))
        abort();
    for (uint32_t i = 2 + rng_below(&r->rng, 6); i--;) {
        struct sched_event e = { .kind = SCHED_ADD_NODE };
        e.node = node_of(1u << rng_below(&r->rng, 4), rng_below(&r->rng, MODELS), 16, 16);
        e.node.rack = 1 + i % 3;
        e.node.labels.bits[rng_below(&r->rng, POOL_LABEL_WORDS)] = 1ull
                                                                   << rng_below(&r->rng, 3);
        apply(r, &e);
    }
    for (uint32_t t = 1; t < TENANTS; t++) {
        struct sched_event e = { .kind = SCHED_SET_TENANT, .tenant = { t, t == 3, 1 } };
        apply(r, &e);
    }
    for (int i = 0; i < 3; i++)
        set_limit(r);
}

static void one_event(struct run *r)
{
    uint32_t dice = rng_below(&r->rng, 100);
    struct sched_event e = { .kind = SCHED_TICK };
    r->now_ms += rng_below(&r->rng, 500);
    if (dice < 65 && r->submitted < REQUESTS)
        return submit(r);
    if (dice < 90 && r->submitted) {
        e.kind = SCHED_END;
        e.end = 1 + rng_below(&r->rng, r->submitted);
    } else if (dice < 94) {
        e.kind = SCHED_OPEN_NODE;
        e.open.node = rng_below(&r->rng, pool_node_count(sched_pool(r->s)));
        e.open.open = rng_below(&r->rng, 3) != 0;
    } else if (dice < 98) {
        return set_limit(r);
    }
    apply(r, &e);
}

static void each_change_does_and_less_does_not(void **state)
{
    const char *more = getenv("SLUICE_SEQUENCES");
    int rounds = more ? atoi(more) : 60;
    uint32_t tried[SCHED_CHANGES] = { 0 };
    static struct run r;
    for (int i = 0; i < rounds; i++) {
        begin(&r, 900 + (uint64_t)i);
        for (int k = 0; k < 100; k++) {
            one_event(&r);
            if (k % 6 == 5 && r.submitted)
                explain_one(&r);
        }
        for (int k = 0; k < SCHED_CHANGES; k++)
            tried[k] += r.tried[k];
        sched_destroy(r.s);
        buf_finish(&r.log);
    }
    for (int k = 0; k < SCHED_CHANGES; k++) {
        print_message("change %d: %u tried\n", k, tried[k]);
        ROW("each kind of change is among them", tried[k]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(in_words),
    cmocka_unit_test(each_change_does_and_less_does_not),
};
ROWS_MAIN(tests)
