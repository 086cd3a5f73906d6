/* Scenarios: from words to statements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/macros.h"
#include "model/units.h"
#include "scenario_impl.h"
#include "words.h"

#define NODE_CPU_MILLI  64000u
#define NODE_MEM_BYTES  (512 * GIB)
#define MODEL_MEM_BYTES (80 * GIB)
#define TICK_MS         10000u
#define LEAST_TICK_MS   1000u
#define RANGE_MOST      100000u

struct reader {
    struct words w;
    struct scenario *s;
    struct statement *st; /* at hand */
};

static void out_of_memory(struct reader *r)
{
    if (!r->w.rc)
        r->w.rc = sl_fail(r->w.err, SL_INTERNAL, "%s: out of memory", r->s->file);
}

/* A clause: what may follow a statement's colon, by its first word. */
struct clause {
    const char *word;
    void (*read)(struct reader *r);
};

/* ---- names ---- */

static bool is_name(const char *word)
{
    return word[0] &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789-_./=")] == '\0';
}

static uint32_t add_name(struct reader *r, struct names *names, const char *text)
{
    uint32_t n = names_add(names, text, strlen(text), r->w.line);
    if (n == NAMES_NONE)
        out_of_memory(r);
    return n;
}

/* A name; a new one, or one that must be there: "no node 'n7'". */
static uint32_t read_name(struct reader *r, struct names *names, const char *kind,
                          bool known)
{
    uint32_t n = NAMES_NONE;
    if (r->w.rc)
        return n;
    if (!is_name(r->w.word))
        words_fail(&r->w, "expected the name of a %s", kind);
    else if (known && (n = names_find(names, r->w.word)) == NAMES_NONE)
        words_fail(&r->w, "there is no %s '%s'", kind, r->w.word);
    else if (!known)
        n = add_name(r, names, r->w.word);
    words_next(&r->w);
    return n;
}

static void add_index(struct reader *r, struct set *set, uint32_t n)
{
    struct scenario *s = r->s;
    if (r->w.rc)
        return;
    if (array_reserve(&s->index, &s->index_room, s->index_count + 1, sizeof *s->index)) {
        out_of_memory(r);
        return;
    }
    if (!set->count)
        set->first = s->index_count;
    s->index[s->index_count++] = n;
    set->count++;
}

/* "n9..n12" is n9, n10, n11 and n12. */
static bool split_range(char *word, char **to, unsigned *first, unsigned *last)
{
    char *dots = strstr(word, "..");
    if (!dots)
        return false;
    *dots = '\0';
    *to = dots + 2;
    size_t stem = strlen(word);
    while (stem && strchr("0123456789", word[stem - 1]))
        stem--;
    if (!word[stem] || strncmp(word, *to, stem) ||
        strspn(*to + stem, "0123456789") != strlen(*to + stem) || !(*to)[stem])
        return false;
    *first = (unsigned)strtoul(word + stem, NULL, 10);
    *last = (unsigned)strtoul(*to + stem, NULL, 10);
    word[stem] = '\0';
    return *first <= *last && *last - *first < RANGE_MOST;
}

static struct set read_set(struct reader *r, struct names *names, const char *kind,
                           bool known)
{
    struct set set = { 0 };
    char word[WORD_MAX + 1], name[WORD_MAX + 12], *to;
    unsigned first, last;
    if (!strstr(r->w.word, "..")) {
        add_index(r, &set, read_name(r, names, kind, known));
        return set;
    }
    memcpy(word, r->w.word, sizeof word);
    if (!split_range(word, &to, &first, &last)) {
        words_fail(&r->w, "a range of names is written like %s1..%s9", kind, kind);
        return set;
    }
    for (unsigned i = first; i <= last && !r->w.rc; i++) {
        snprintf(name, sizeof name, "%s%u", word, i);
        uint32_t n = known ? names_find(names, name) : add_name(r, names, name);
        if (n == NAMES_NONE)
            words_fail(&r->w, "there is no %s '%s'", kind, name);
        add_index(r, &set, n);
    }
    words_next(&r->w);
    return set;
}

static uint32_t read_model(struct reader *r, bool known)
{
    uint32_t m = read_name(r, &r->s->models, "model", known);
    if (!r->w.rc && m >= POOL_MAX_MODELS)
        words_fail(&r->w, "more than %d models", POOL_MAX_MODELS);
    return r->w.rc ? 0 : m;
}

/* What is counted: a model, or "in all", at their prices. */
static uint32_t read_counted(struct reader *r)
{
    if (!words_take(&r->w, "in"))
        return read_model(r, true);
    words_need(&r->w, "all");
    return SCHED_ALL_MODELS;
}

static void read_label(struct reader *r, struct pool_labels *labels)
{
    uint32_t n = read_name(r, &r->s->labels, "label", false);
    if (!r->w.rc && n >= 64 * POOL_LABEL_WORDS)
        words_fail(&r->w, "more than %d labels", 64 * POOL_LABEL_WORDS);
    if (!r->w.rc)
        labels->bits[n / 64] |= 1ull << (n % 64);
}

static void read_clause(struct reader *r, const struct clause *clauses, size_t count,
                        const char *what)
{
    const char *known[24];
    for (size_t i = 0; i < count; i++) {
        if (words_take(&r->w, clauses[i].word)) {
            clauses[i].read(r);
            return;
        }
        known[i] = clauses[i].word;
    }
    words_unknown(&r->w, what, known, count);
}

/* … between commas until the line ends. */
static void read_clauses(struct reader *r, const struct clause *clauses, size_t count,
                         const char *what)
{
    do
        read_clause(r, clauses, count, what);
    while (words_take(&r->w, ","));
}

/* ---- node n1: 8 x A100 80GiB, 64 cpus, 512GiB host, label gen=new ---- */

static void add_devices(struct reader *r, uint32_t count)
{
    struct pool_node *n = &r->st->node;
    words_need(&r->w, "x");
    uint32_t model = read_model(r, false);
    uint64_t mem = words_at_size(&r->w) ? words_size(&r->w) : MODEL_MEM_BYTES;
    if (!r->w.rc && n->device_count + count > POOL_MAX_DEVICES)
        words_fail(&r->w, "more than %d devices on a node", POOL_MAX_DEVICES);
    for (uint32_t i = 0; i < count && !r->w.rc; i++)
        n->device[n->device_count++] =
            (struct pool_device){ .model = model, .mem_bytes = mem };
}

static void read_label_clause(struct reader *r)
{
    read_label(r, &r->st->node.labels);
}

static void read_rack(struct reader *r)
{
    r->st->node.rack = 1 + read_name(r, &r->s->places, "rack", false);
}

static void read_zone(struct reader *r)
{
    r->st->node.zone = 1 + read_name(r, &r->s->places, "zone", false);
}

/* shared by time | in space | by nobody: all devices said so far */
static void read_shared(struct reader *r)
{
    enum pool_sharing sharing = POOL_TIME;
    if (words_take(&r->w, "in")) {
        words_need(&r->w, "space");
        sharing = POOL_SPATIAL;
    } else {
        words_need(&r->w, "by");
        if (words_take(&r->w, "nobody"))
            sharing = POOL_EXCLUSIVE;
        else
            words_need(&r->w, "time");
    }
    for (uint32_t i = 0; i < r->st->node.device_count; i++)
        r->st->node.device[i].sharing = (uint8_t)sharing;
}

/* over 50% 16GiB: so much more of each device in the lower class, and of the host */
static void read_over(struct reader *r)
{
    struct pool_node *n = &r->st->node;
    uint32_t permille = words_share(&r->w);
    uint64_t mem = words_at_size(&r->w) ? words_size(&r->w) : 0;
    for (uint32_t i = 0; i < n->device_count; i++) {
        n->device[i].over_permille = (uint16_t)permille;
        n->device[i].over_mem_bytes = mem;
    }
    n->over_cpu_milli = n->cpu_milli;
    n->over_host_mem_bytes = n->host_mem_bytes;
}

static const struct clause node_clauses[] = {
    { "label", read_label_clause }, { "rack", read_rack }, { "zone", read_zone },
    { "shared", read_shared },      { "over", read_over },
};

/* What begins with a number, or a clause by its word. */
static void read_node_part(struct reader *r)
{
    struct pool_node *n = &r->st->node;
    if (words_at_size(&r->w)) {
        n->host_mem_bytes = words_size(&r->w);
        words_need(&r->w, "host");
    } else if (words_at_count(&r->w)) {
        uint32_t count = (uint32_t)words_count(&r->w, "how many", 0, UINT32_MAX / 1000);
        if (words_take(&r->w, "cpus"))
            n->cpu_milli = count * 1000;
        else
            add_devices(r, count);
    } else {
        read_clause(r, node_clauses, ARRAY_LEN(node_clauses), "part of a node");
    }
}

static void read_node(struct reader *r)
{
    r->st->kind = ST_NODE;
    r->st->node.cpu_milli = NODE_CPU_MILLI;
    r->st->node.host_mem_bytes = NODE_MEM_BYTES;
    uint32_t had = r->s->nodes.count;
    r->st->who = read_set(r, &r->s->nodes, "node", false);
    if (!r->w.rc && r->s->nodes.count - had != r->st->who.count)
        words_fail(&r->w, "a node of this name is there already");
    words_need(&r->w, ":");
    do
        read_node_part(r);
    while (words_take(&r->w, ","));
}

/* ---- tenant vision in research: weight 2, deserves 4 A100, at most 8 A100 ---- */

static struct tenant_quota *quota_of(struct reader *r, uint32_t model)
{
    uint32_t i = 0;
    while (i < r->st->tenant.quota_count && r->st->tenant.quota[i].model != model)
        i++;
    if (i == SCENARIO_QUOTAS) {
        words_fail(&r->w, "more than %d models in one statement", SCENARIO_QUOTAS);
        i = 0;
    }
    if (i == r->st->tenant.quota_count)
        r->st->tenant.quota_count++;
    r->st->tenant.quota[i].model = model;
    return &r->st->tenant.quota[i];
}

static void read_weight(struct reader *r)
{
    r->st->tenant.has_weight = true;
    r->st->tenant.weight = (uint32_t)words_count(&r->w, "a weight", 0, UINT32_MAX);
}

static void read_deserves(struct reader *r)
{
    uint64_t milli = words_milli(&r->w, "how many devices");
    struct tenant_quota *q = quota_of(r, read_counted(r));
    q->deserves = true;
    q->deserved_milli = milli;
}

static void read_at_most(struct reader *r)
{
    words_need(&r->w, "most");
    uint64_t milli = words_milli(&r->w, "how many devices");
    struct tenant_quota *q = quota_of(r, read_counted(r));
    q->limits = true;
    q->limit_milli = milli;
}

static const struct clause tenant_clauses[] = {
    { "weight", read_weight },
    { "deserves", read_deserves },
    { "at", read_at_most },
};

static void read_tenant(struct reader *r)
{
    r->st->kind = ST_TENANT;
    uint32_t had = r->s->tenants.count;
    add_index(r, &r->st->who, read_name(r, &r->s->tenants, "tenant", false));
    if (words_take(&r->w, "in")) {
        if (r->s->tenants.count == had)
            words_fail(&r->w, "a tenant's parent cannot be changed");
        r->st->tenant.has_parent = true;
        if (!r->w.rc &&
            names_find(&r->s->tenants, r->w.word) == r->s->index[r->st->who.first])
            words_fail(&r->w, "a tenant is not below itself");
        r->st->tenant.parent = read_name(r, &r->s->tenants, "tenant", true);
    }
    if (words_take(&r->w, ":"))
        read_clauses(r, tenant_clauses, ARRAY_LEN(tenant_clauses), "clause of a tenant");
}

/* price A100 2.5 */
static void read_price(struct reader *r)
{
    r->st->kind = ST_PRICE;
    r->st->price.model = read_model(r, true);
    r->st->price.permille = (uint32_t)words_milli(&r->w, "a price");
}

/* ---- submit j1..j3 by vision: gang of 2 x 8 x 100% 40GiB on A100|H100 + 4 cpus, priority 60 ---- */

static struct submission *submission(struct reader *r)
{
    return r->st->submit;
}

static uint64_t read_models(struct reader *r)
{
    uint64_t models = 0;
    char word[WORD_MAX + 1], *at = word, *name;
    memcpy(word, r->w.word, sizeof word);
    while (!r->w.rc && (name = strsep(&at, "|"))) {
        uint32_t m = names_find(&r->s->models, name);
        if (m == NAMES_NONE)
            words_fail(&r->w, "there is no model '%s'", name);
        else
            models |= 1ull << m;
    }
    words_next(&r->w);
    return models;
}

/* … "with 4 cpus 8GiB host", or the latter alone */
static void read_host(struct reader *r, struct pool_ask *a)
{
    if (words_at_count(&r->w)) {
        a->cpu_milli = 1000 * (uint32_t)words_count(&r->w, "how many cpus", 1, 1000000);
        words_need(&r->w, "cpus");
    }
    if (words_at_size(&r->w)) {
        a->host_mem_bytes = words_size(&r->w);
        words_need(&r->w, "host");
    }
}

static void read_slice(struct reader *r, struct pool_ask *a)
{
    a->devices = 1;
    if (words_at_count(&r->w)) {
        a->devices = (uint32_t)words_count(&r->w, "devices", 1, POOL_MAX_DEVICES);
        words_need(&r->w, "x");
    }
    a->permille = words_share(&r->w);
    if (words_at_size(&r->w))
        a->mem_bytes = words_size(&r->w);
    if (words_take(&r->w, "on"))
        a->models = read_models(r);
    if (words_take(&r->w, "with"))
        read_host(r, a);
}

/* Is this "4 cpus …", and not "4 x …"? */
static bool at_cpus(const struct words *w)
{
    struct words ahead = *w;
    struct sl_err ignored;
    ahead.err = &ignored;
    if (!words_at_count(&ahead))
        return false;
    words_next(&ahead);
    return words_at(&ahead, "cpus");
}

static void read_group(struct reader *r, struct sched_option *o)
{
    if (o->group_count == SCHED_MAX_GROUPS) {
        words_fail(&r->w, "more than %d parts", SCHED_MAX_GROUPS);
        return;
    }
    struct sched_group *g = &o->group[o->group_count++];
    g->count = 1;
    if (words_take(&r->w, "gang")) {
        words_need(&r->w, "of");
        g->count = (uint32_t)words_count(&r->w, "a gang", 0, UINT32_MAX);
        words_need(&r->w, "x");
    }
    if (at_cpus(&r->w))
        read_host(r, &g->ask);
    else
        read_slice(r, &g->ask);
}

static void read_option(struct reader *r)
{
    struct sched_request *q = &submission(r)->request;
    if (q->option_count == SCHED_MAX_OPTIONS) {
        words_fail(&r->w, "more than %d alternatives", SCHED_MAX_OPTIONS);
        return;
    }
    struct sched_option *o = &submission(r)->option[q->option_count++];
    do
        read_group(r, o);
    while (words_take(&r->w, "+"));
}

/* For each part of each alternative. */
#define FOR_EACH_ASK(r, a)                                                    \
    for (uint32_t o_ = 0, g_; o_ < submission(r)->request.option_count; o_++) \
        for (g_ = 0; g_ < submission(r)->option[o_].group_count; g_++)        \
            for (struct pool_ask *a = &submission(r)->option[o_].group[g_].ask; a; a = NULL)

static void read_priority(struct reader *r)
{
    submission(r)->request.priority =
        (uint32_t)words_count(&r->w, "a priority", 0, UINT32_MAX);
}

static void read_never(struct reader *r)
{
    words_need(&r->w, "evicted");
    submission(r)->request.preemptible = false;
}

static void read_runs(struct reader *r)
{
    submission(r)->run_ms = words_duration(&r->w);
}

static void read_predicted(struct reader *r)
{
    submission(r)->request.work_ms = words_duration(&r->w);
}

static void read_limit(struct reader *r)
{
    submission(r)->request.limit_ms = words_duration(&r->w);
}

static void read_undisturbed(struct reader *r)
{
    words_need(&r->w, "for");
    submission(r)->request.min_run_ms = words_duration(&r->w);
}

static void read_leaves(struct reader *r)
{
    words_need(&r->w, "after");
    submission(r)->leave_ms = words_duration(&r->w);
}

static void read_requeued(struct reader *r)
{
    submission(r)->requeued = true;
}

static void read_every(struct reader *r)
{
    submission(r)->every_ms = words_duration(&r->w);
}

static void read_needs(struct reader *r)
{
    struct pool_labels labels = { 0 };
    read_label(r, &labels);
    FOR_EACH_ASK(r, a)
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        a->need.bits[i] |= labels.bits[i];
}

static void read_avoids(struct reader *r)
{
    struct pool_labels labels = { 0 };
    read_label(r, &labels);
    FOR_EACH_ASK(r, a)
    for (int i = 0; i < POOL_LABEL_WORDS; i++)
        a->avoid.bits[i] |= labels.bits[i];
}

static enum pool_level read_level(struct reader *r)
{
    static const char *const names[] = { "device", "node", "rack", "zone" };
    static const enum pool_level levels[] = { POOL_DEVICE, POOL_NODE, POOL_RACK,
                                              POOL_ZONE };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (words_take(&r->w, names[i]))
            return levels[i];
    words_unknown(&r->w, "level", names, ARRAY_LEN(names));
    return POOL_NODE;
}

static void set_within(struct reader *r, bool required)
{
    enum pool_level level = read_level(r);
    if (!r->w.rc && level == POOL_DEVICE)
        words_fail(&r->w, "all of it lies within a node, rack or zone");
    for (uint32_t i = 0; i < submission(r)->request.option_count; i++) {
        submission(r)->option[i].within = level;
        submission(r)->option[i].within_required = required;
    }
}

static void read_within(struct reader *r)
{
    set_within(r, true);
}

static uint32_t read_tag(struct reader *r)
{
    return read_name(r, &r->s->tags, "tag", false);
}

static void read_tagged(struct reader *r)
{
    struct sched_ties *t = &submission(r)->request.ties;
    uint32_t tag = read_tag(r);
    if (t->tag_count == SCHED_MAX_TAGS)
        words_fail(&r->w, "more than %d tags", SCHED_MAX_TAGS);
    else
        t->tag[t->tag_count++] = tag;
}

/* with TAG at rack */
static void add_tie(struct reader *r, bool apart, bool required)
{
    struct sched_ties *t = &submission(r)->request.ties;
    struct sched_tie tie = { .tag = read_tag(r), .apart = apart, .required = required };
    words_need(&r->w, "at");
    tie.level = read_level(r);
    if (t->tie_count == SCHED_MAX_TIES)
        words_fail(&r->w, "more than %d ties", SCHED_MAX_TIES);
    else
        t->tie[t->tie_count++] = tie;
}

static void read_with(struct reader *r)
{
    add_tie(r, false, true);
}

static void read_apart(struct reader *r)
{
    words_need(&r->w, "from");
    add_tie(r, true, true);
}

static void read_preferably(struct reader *r)
{
    if (words_take(&r->w, "within")) {
        set_within(r, false);
    } else if (words_take(&r->w, "with")) {
        add_tie(r, false, false);
    } else {
        words_need(&r->w, "apart");
        words_need(&r->w, "from");
        add_tie(r, true, false);
    }
}

static void read_above(struct reader *r)
{
    words_need(&r->w, "capacity");
    FOR_EACH_ASK(r, a)
    a->lower = true;
}

static const struct clause submit_clauses[] = {
    { "within", read_within },     { "preferably", read_preferably },
    { "tagged", read_tagged },     { "with", read_with },
    { "apart", read_apart },       { "above", read_above },
    { "priority", read_priority }, { "never", read_never },
    { "runs", read_runs },         { "predicted", read_predicted },
    { "limit", read_limit },       { "undisturbed", read_undisturbed },
    { "leaves", read_leaves },     { "requeued", read_requeued },
    { "every", read_every },       { "needs", read_needs },
    { "avoids", read_avoids },
};

static void read_submit(struct reader *r)
{
    r->st->kind = ST_SUBMIT;
    struct submission *sub = r->st->submit = calloc(1, sizeof *sub);
    if (!sub) {
        out_of_memory(r);
        return;
    }
    sub->request = (struct sched_request){ .priority = 50, .preemptible = true };
    r->st->who = read_set(r, &r->s->jobs, "job", false);
    if (words_take(&r->w, "by"))
        sub->request.tenant = 1 + read_name(r, &r->s->tenants, "tenant", true);
    words_need(&r->w, ":");
    do
        read_option(r);
    while (words_take(&r->w, "or"));
    if (words_take(&r->w, ","))
        read_clauses(r, submit_clauses, ARRAY_LEN(submit_clauses),
                     "clause of a submission");
}

/* ---- events ---- */

static void read_end(struct reader *r)
{
    r->st->kind = ST_END;
    r->st->who = read_set(r, &r->s->jobs, "job", true);
}

static void read_nodes(struct reader *r, enum statement_kind kind)
{
    r->st->kind = kind;
    r->st->who = read_set(r, &r->s->nodes, "node", true);
}

static void read_open(struct reader *r)
{
    read_nodes(r, ST_OPEN);
}

static void read_close(struct reader *r)
{
    read_nodes(r, ST_CLOSE);
}

static void read_fail(struct reader *r)
{
    read_nodes(r, ST_FAIL);
}

static void read_at(struct reader *r)
{
    r->st->kind = ST_AT;
    r->st->ms = words_duration(&r->w);
}

static void read_after(struct reader *r)
{
    r->st->kind = ST_AFTER;
    r->st->ms = words_duration(&r->w);
}

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

static void read_expect(struct reader *r)
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

/* ---- policy … ---- */

static void read_order(struct reader *r)
{
    static const char *const orders[] = { "age", "attained", "remaining" };
    words_need(&r->w, "by");
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        if (words_take(&r->w, orders[i])) {
            r->s->policy.order = (enum sched_order)i;
            return;
        }
    words_unknown(&r->w, "order", orders, ARRAY_LEN(orders));
}

static void read_place(struct reader *r)
{
    static const char *const rules[] = { "fill", "best-fit", "spread" };
    words_need(&r->w, "by");
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (words_take(&r->w, rules[i])) {
            r->s->policy.place.rule = (enum place_rule)i;
            return;
        }
    words_unknown(&r->w, "rule", rules, ARRAY_LEN(rules));
}

static void read_tick(struct reader *r)
{
    r->s->tick_ms = words_duration(&r->w);
    if (r->s->tick_ms < LEAST_TICK_MS)
        words_fail(&r->w, "a tick is at least 1s");
}

static void read_tenants(struct reader *r)
{
    words_need(&r->w, "apart");
    r->s->policy.tenancy = POOL_ISOLATED;
}

static void read_protect(struct reader *r)
{
    r->s->policy.protect = (uint32_t)words_count(&r->w, "how many", 0, SCHED_MAX_PROTECT);
}

static void read_patience(struct reader *r)
{
    r->s->policy.patience_ms = words_duration(&r->w);
}

static const struct clause policy_clauses[] = {
    { "order", read_order },     { "place", read_place },     { "tick", read_tick },
    { "tenants", read_tenants }, { "protect", read_protect }, { "patience", read_patience },
};

static void read_policy(struct reader *r)
{
    words_need(&r->w, ":");
    if (r->s->count)
        words_fail(&r->w, "the policy comes before everything else");
    read_clauses(r, policy_clauses, ARRAY_LEN(policy_clauses), "clause of the policy");
}

/* ---- the file ---- */

static const struct clause statements[] = {
    { "node", read_node },     { "nodes", read_node },    { "tenant", read_tenant },
    { "price", read_price },   { "submit", read_submit }, { "end", read_end },
    { "cancel", read_end },    { "open", read_open },     { "close", read_close },
    { "fail", read_fail },     { "at", read_at },         { "after", read_after },
    { "expect", read_expect },
};

static void read_statement(struct reader *r)
{
    struct scenario *s = r->s;
    const char *line = r->w.line_begin;
    if (words_take(&r->w, "policy")) {
        read_policy(r);
        return;
    }
    if (array_reserve(&s->statement, &s->room, s->count + 1, sizeof *s->statement)) {
        out_of_memory(r);
        return;
    }
    r->st = &s->statement[s->count++];
    *r->st = (struct statement){ .line = r->w.line };
    read_clause(r, statements, ARRAY_LEN(statements), "statement");
    if (r->st->kind == ST_EXPECT)
        snprintf(r->st->text, sizeof r->st->text, "%.*s", (int)(r->w.next - line), line);
}

int scenario_read(const struct text *text, struct scenario **out, struct sl_err *err)
{
    struct scenario *s = calloc(1, sizeof *s);
    struct reader r = { .s = s };
    if (!s)
        return sl_fail(err, SL_INTERNAL, "%s: out of memory", text->name);
    memcpy(s->file, text->name, sizeof s->file);
    sched_policy_init(&s->policy);
    s->policy.tenancy = POOL_ALL_SHARING; /* unless they are said to be apart */
    s->tick_ms = TICK_MS;
    words_begin(&r.w, text, err);
    while (words_line(&r.w)) {
        read_statement(&r);
        if (!words_done(&r.w))
            words_fail(&r.w, "'%s' is one word too many, or a comma is missing", r.w.word);
    }
    if (!r.w.rc && !s->count)
        words_fail(&r.w, "a scenario without a statement");
    if (r.w.rc) {
        scenario_destroy(s);
        return r.w.rc;
    }
    *out = s;
    return 0;
}

void scenario_destroy(struct scenario *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->statement[i].kind == ST_SUBMIT)
            free(s->statement[i].submit);
    names_finish(&s->jobs);
    names_finish(&s->nodes);
    names_finish(&s->tenants);
    names_finish(&s->models);
    names_finish(&s->labels);
    names_finish(&s->places);
    names_finish(&s->tags);
    free(s->statement);
    free(s->index);
    free(s);
}
