/* What is expected. */
#include "reader.h"

#include "core/macros.h"

/* ---- expect … ---- */

static struct expectation *expected(struct reader *r)
{
    return &r->st->expect;
}

static void read_on_node(struct reader *r)
{
    if (words_take(&r->w, "on"))
        expected(r)->other = read_name(r, &r->s->nodes, "node", true);
}

static void read_reason(struct reader *r)
{
    static const char *const reasons[] = { "room", "quota", "others", "nothing" };
    static const int verdicts[] = { SCHED_NO_ROOM, SCHED_OVER_LIMIT, SCHED_BEING_MADE,
                                    SCHED_IMPOSSIBLE };
    if (!words_take(&r->w, "for"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (words_take(&r->w, reasons[i])) {
            expected(r)->verdict = verdicts[i];
            return;
        }
    words_unknown(&r->w, "reason to wait", reasons, ARRAY_LEN(reasons));
}

static void read_told(struct reader *r)
{
    static const char *const rules[] = { "priority", "reclaim", "service" };
    words_need(&r->w, "told");
    words_need(&r->w, "to");
    words_need(&r->w, "go");
    if (words_take(&r->w, "for"))
        expected(r)->other = read_name(r, &r->s->jobs, "job", true);
    if (!words_take(&r->w, "by"))
        return;
    for (int i = 0; i < (int)ARRAY_LEN(rules); i++)
        if (words_take(&r->w, rules[i])) {
            expected(r)->rule = i;
            return;
        }
    words_unknown(&r->w, "rule", rules, ARRAY_LEN(rules));
}

static void read_state(struct reader *r)
{
    static const char *const states[] = { "leaving", "over", "refused" };
    static const enum expected what[] = { EX_LEAVES, EX_OVER, EX_REFUSED };
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (words_take(&r->w, states[i])) {
            expected(r)->what = what[i];
            return;
        }
    words_unknown(&r->w, "state", states, ARRAY_LEN(states));
}

static void read_waited(struct reader *r)
{
    expected(r)->what = EX_WAITED;
    expected(r)->more = words_take(&r->w, "more");
    if (!expected(r)->more)
        words_need(&r->w, "less");
    words_need(&r->w, "than");
    expected(r)->amount = words_duration(&r->w);
}

static void read_verb(struct reader *r)
{
    static const char *const verbs[] = { "runs", "waits", "is", "was", "waited" };
    struct words *w = &r->w;
    if (words_take(w, "runs") || words_take(w, "run")) {
        expected(r)->what = EX_RUNS;
        read_on_node(r);
    } else if (words_take(w, "waits") || words_take(w, "wait")) {
        expected(r)->what = EX_WAITS;
        read_reason(r);
    } else if (words_take(w, "is") || words_take(w, "are")) {
        expected(r)->negated = words_take(w, "not");
        read_state(r);
    } else if (words_take(w, "was") || words_take(w, "were")) {
        expected(r)->what = EX_EVICTED;
        expected(r)->negated = words_take(w, "not");
        read_told(r);
    } else if (words_take(w, "waited")) {
        read_waited(r);
    } else {
        words_unknown(w, "verb", verbs, ARRAY_LEN(verbs));
    }
    if (words_take(w, "within"))
        expected(r)->within_ms = words_duration(w);
}

static void read_holds(struct reader *r)
{
    expected(r)->what = EX_HOLDS;
    add_index(r, &r->st->who, read_name(r, &r->s->tenants, "tenant", true));
    words_need(&r->w, "holds");
    expected(r)->amount = words_milli(&r->w, "how many devices");
    expected(r)->model = read_counted(r);
}

void read_expect(struct reader *r)
{
    r->st->kind = ST_EXPECT;
    *expected(r) = (struct expectation){ .other = NAMES_NONE, .rule = -1, .verdict = -1 };
    if (words_take(&r->w, "tenant")) {
        read_holds(r);
        return;
    }
    expected(r)->exactly = true;
    if (words_take(&r->w, "at")) {
        words_need(&r->w, "least");
        expected(r)->exactly = false;
    }
    if (words_at_count(&r->w)) {
        expected(r)->counted = true;
        expected(r)->count = (uint32_t)words_count(&r->w, "how many", 0, RANGE_MOST);
        words_need(&r->w, "of");
    }
    r->st->who = read_set(r, &r->s->jobs, "job", true);
    read_verb(r);
}
