/*
 * A scheduler run in one line of text, for rows.
 *
 *   n 2 [MODEL [COUNT [RACK [ZONE]]]] [WAY[o]]
 *                          COUNT nodes of 2 devices (16 GiB each, 16 CPUs), shared by time, or
 *                          WAY: s in space, x not at all, p by profile (a model of 7 and 8 slots,
 *                          model 1 of 4 and 4: profiles_of()); o: half as much of it and of the
 *                          host again in the lower class
 *   w WAYS                 two tenants may meet on devices shared so, of t and s; -: on none.  The first
 *                          command; without it they may everywhere
 *   t 3 1 [WEIGHT]         tenant 3 below tenant 1
 *   q 3 0 2000 -           quota of tenant 3, model 0 (*: of all, at their prices): deserves 2000 milli, no limit
 *   p 1 2000               a device of model 1 counts as two
 *   s 7 3 50 ASK [f] [mN] [wN] [lN] [aN] [in=LEVEL] [near=LEVEL] [tag=N] [[?]with=N@LEVEL] [[?]apart=N@LEVEL]
 *                          request 7 of tenant 3, priority 50; f: never evicted; mN: not before N ms; wN: runs
 *                          for N ms, predicted; lN: at most N ms; aN: ran for N ms before;
 *                          in, near: all within a node, rack, zone: required, preferred;
 *                          with, apart: at a device, too; ?: preferred
 *                          ASK: 500 | 2x500 (two devices of one node) | 3*500 (a gang of three nodes)
 *                          | 3*2x500 (both) | 500:8 (and 8 GiB) | 500@ts (on devices shared so)
 *                          | l500, lc4000 (in the lower class) | c4000 (CPU only) | A+B (two groups)
 *                          | A&B (beside each other) | 8%2 (8 devices, 2 or more of a node) | A/B (either)
 *   r 7 3 50 ASK 0.1+2,1.0 [bN] […]
 *                          such a request runs already, on devices 1 and 2 of node 0 and 0 of node 1;
 *                          bN: since N ms; of a cut device 0.1~2~4: profile 2 from slot 4 on
 *   e 7                    request 7 is over
 *   u 7 60                 request 7 has priority 60 from now on
 *   c 0, o 0               close, open node 0
 *   @1000                  it is 1000 ms; the answer says so, too
 *   k                      tick
 *   ! 7                    the answer says by when 7 has ended: "7<60000"
 *   ~ 7                    … when it will start: "7>60000l", by limits (n: now, p: predictions,
 *                          u: unknown); "7>0-": no plan
 *   = 7                    … when it would start, if it were planned now
 *   ? 7                    the answer says on which nodes 7 has its places: "7=0,0,2"
 * Commands are separated by ';'.  The answer lists the decisions: "+7" granted,
 * "+7/1" by its second option, "-5p7" told to go by priority for 7, "-5r7" by reclaim, "-5s7" by service, "!7"
 * refused.
 */
#ifndef TESTS_SCHED_SCRIPT_H
#define TESTS_SCHED_SCRIPT_H

#include <ctype.h>
#include <stdio.h>

#include "pools.h"
#include "sched/sched.h"

struct script {
    struct sched *s;
    enum sched_order order;
    uint64_t now_ms;
    char answer[2048];
};

static inline void script_close(struct script *r)
{
    sched_destroy(r->s);
}

static inline void script_say(struct script *r, const struct sched_decision *d,
                              uint32_t count)
{
    size_t at = strlen(r->answer);
    for (; count--; d++) {
        const char *gap = at ? " " : "";
        char option[16] = "";
        if (d->kind == SCHED_GRANT && d->option)
            snprintf(option, sizeof option, "/%u", d->option);
        if (d->kind == SCHED_GRANT)
            at += (size_t)snprintf(r->answer + at, sizeof r->answer - at, "%s+%lu%s", gap,
                                   d->id, option);
        else
            at += (size_t)snprintf(r->answer + at, sizeof r->answer - at, "%s-%lu%c%lu",
                                   gap, d->id, "prs"[d->rule], d -> by);
    }
}

static inline int script_apply(struct script *r, struct sched_event *e)
{
    const struct sched_decision *d;
    uint32_t count;
    e->now_ms = r->now_ms;
    int rc = sched_apply(r->s, e, &d, &count, NULL);
    script_say(r, d, count);
    sched_check(r->s);
    return rc;
}

static inline void script_open_for(struct script *r, enum sched_order order,
                                   uint32_t tenancy)
{
    struct sched_policy policy;
    sched_policy_init(&policy);
    policy.order = order;
    policy.tenancy = tenancy;
    *r = (struct script){ .order = order };
    if (sched_create(&policy, &r->s, NULL))
        abort();
    for (uint32_t m = 0; m < 2; m++) {
        struct sched_event e = { .kind = SCHED_SET_PROFILES };
        e.profiles = (struct sched_profiles){ m, *profiles_of(m) };
        if (script_apply(r, &e))
            abort();
    }
}

static inline void script_open(struct script *r, enum sched_order order)
{
    script_open_for(r, order, POOL_ALL_SHARING);
}

/* Of "txsp", enum pool_sharing in its order. */
static inline uint8_t script_way(char letter)
{
    return (uint8_t)(strchr("txsp", letter) - "txsp");
}

static inline uint8_t script_ways(const char *letters)
{
    uint8_t ways = 0;
    for (; *letters && *letters != '-'; letters++)
        ways |= (uint8_t)(1u << script_way(*letters));
    return ways;
}

static inline void script_group(const char *text, struct sched_group *g)
{
    unsigned a = 0, b = 0, c = 0, gib = 0;
    *g = (struct sched_group){ .count = 1, .ask = { .devices = 1 } };
    const char *mem = strchr(text, ':'), *way = strchr(text, '@');
    if (mem)
        gib = (unsigned)atoi(mem + 1);
    if (way)
        g->ask.sharing = script_ways(way + 1);
    g->ask.lower = text[0] == 'l';
    text += g->ask.lower;
    if (text[0] == 'c') {
        g->ask.devices = 0;
        g->ask.cpu_milli = (uint32_t)atoi(text + 1);
    } else if (sscanf(text, "%u*%ux%u", &a, &b, &c) == 3) {
        g->count = a;
        g->ask.devices = b;
        g->ask.permille = c;
    } else if (sscanf(text, "%u%%%u", &a, &b) == 2) {
        g->count = a;
        g->split_least = b;
        g->ask.permille = 1000;
    } else if (sscanf(text, "%ux%u", &a, &b) == 2) {
        g->ask.devices = a;
        g->ask.permille = b;
    } else if (sscanf(text, "%u*%u", &a, &b) == 2) {
        g->count = a;
        g->ask.permille = b;
    } else {
        g->ask.permille = (uint32_t)atoi(text);
    }
    g->ask.mem_bytes = gib * GIB;
}

static inline enum pool_level script_level(const char *name)
{
    static const char *const names[] = { "anywhere", "node", "rack", "zone", "device" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(name, names[i]))
            return (enum pool_level)i;
    abort();
}

static inline void script_tie(char *word, struct sched_ties *t)
{
    struct sched_tie tie = { .required = *word != '?' };
    word += !tie.required;
    char *at = strchr(word, '@');
    if (!strncmp(word, "tag=", 4))
        t->tag[t->tag_count++] = (uint32_t)atoi(word + 4);
    tie.apart = !strncmp(word, "apart=", 6);
    if (!tie.apart && strncmp(word, "with=", 5))
        return;
    tie.tag = (uint32_t)atoi(strchr(word, '=') + 1);
    tie.level = script_level(at + 1);
    t->tie[t->tie_count++] = tie;
}

static inline void script_ask(char *text, char **word, int words, struct sched_option *o)
{
    *o = (struct sched_option){ 0 };
    for (bool beside = false; text;) {
        size_t end = strcspn(text, "+&");
        char mark = text[end], *group = strsep(&text, "+&");
        script_group(group, &o->group[o->group_count]);
        o->group[o->group_count++].beside = beside;
        beside = mark == '&';
    }
    for (int i = 0; i < words; i++) {
        o->within_required |= !strncmp(word[i], "in=", 3);
        if (!strncmp(word[i], "in=", 3) || !strncmp(word[i], "near=", 5))
            o->within = script_level(strchr(word[i], '=') + 1);
    }
}

static inline void script_places(struct sched_restore *e, struct pool_place *place,
                                 char *text)
{
    char *one;
    for (; (one = strsep(&text, ",")) && e->place_count < 8; e->place_count++) {
        struct pool_place *p = &place[e->place_count];
        *p = (struct pool_place){ .node = (uint32_t)strtoul(one, &one, 10) };
        while (*one && p->device_count < POOL_MAX_DEVICES) {
            struct pool_cut *cut = &p->cut[p->device_count];
            p->device[p->device_count++] = (uint8_t)strtoul(one + 1, &one, 10);
            if (*one == '~')
                cut->profile = (uint8_t)strtoul(one + 1, &one, 10);
            if (*one == '~')
                cut->start = (uint8_t)strtoul(one + 1, &one, 10);
        }
    }
    e->place = place;
}

static inline void script_request(struct script *r, char **word, int words)
{
    struct sched_option option[2];
    struct pool_place place[8];
    bool runs = word[0][0] == 'r';
    struct sched_event e = { .kind = runs ? SCHED_RESTORE : SCHED_SUBMIT };
    struct sched_request *q = runs ? &e.restore.request : &e.submit;
    char *other = strchr(word[4], '/');
    *q = (struct sched_request){ .id = (uint64_t)atoll(word[1]),
                                 .tenant = (uint32_t)atoi(word[2]),
                                 .priority = (uint32_t)atoi(word[3]),
                                 .preemptible = true,
                                 .option_count = other ? 2 : 1,
                                 .option = option };
    if (runs) {
        e.restore.start_ms = r->now_ms;
        script_places(&e.restore, place, word[5]);
    }
    for (int i = runs ? 6 : 5; i < words; i++) {
        uint64_t n = (uint64_t)atoll(word[i] + 1);
        script_tie(word[i], &q->ties);
        q->preemptible &= word[i][0] != 'f';
        if (word[i][0] == 'm')
            q->min_run_ms = n;
        if (word[i][0] == 'w' && word[i][1] != 'i')
            q->work_ms = n;
        if (word[i][0] == 'l')
            q->limit_ms = n;
        if (word[i][0] == 'a' && word[i][1] != 'p')
            q->attained_ms = n;
        if (word[i][0] == 'b')
            e.restore.start_ms = n;
    }
    if (other)
        *other++ = 0;
    script_ask(word[4], word + 5, words - 5, &option[0]);
    if (other)
        script_ask(other, word + 5, words - 5, &option[1]);
    if (script_apply(r, &e))
        snprintf(r->answer + strlen(r->answer), sizeof r->answer - strlen(r->answer),
                 "%s!%lu", r->answer[0] ? " " : "", q->id);
}

static inline void script_where(struct script *r, uint64_t id)
{
    struct sched_view v;
    size_t at = strlen(r->answer);
    if (sched_find(r->s, id, &v))
        abort();
    at += (size_t)snprintf(r->answer + at, sizeof r->answer - at, "%s%lu=", at ? " " : "",
                           id);
    for (uint32_t i = 0; i < v.place_count; i++)
        at += (size_t)snprintf(r->answer + at, sizeof r->answer - at, "%s%u", i ? "," : "",
                               v.place[i].node);
}

static inline void script_start(struct script *r, uint64_t id)
{
    struct sched_view v;
    size_t at = strlen(r->answer);
    if (sched_find(r->s, id, &v))
        abort();
    snprintf(r->answer + at, sizeof r->answer - at, "%s%lu>%lu%c", at ? " " : "", id,
             v.start_ms, "-nlpu"[v.basis]);
}

static inline void script_estimate(struct script *r, uint64_t id)
{
    uint64_t start_ms;
    enum sched_basis basis;
    size_t at = strlen(r->answer);
    if (sched_estimate(r->s, id, &start_ms, &basis))
        abort();
    sched_check(r->s);
    snprintf(r->answer + at, sizeof r->answer - at, "%s%lu=%lu%c", at ? " " : "", id,
             start_ms, "-nlpu"[basis]);
}

static inline void script_until(struct script *r, uint64_t id)
{
    struct sched_view v;
    size_t at = strlen(r->answer);
    if (sched_find(r->s, id, &v))
        abort();
    snprintf(r->answer + at, sizeof r->answer - at, "%s%lu<%lu", at ? " " : "", id,
             v.end_ms);
}

static inline void script_over(struct pool_node *n)
{
    n->over_cpu_milli = n->cpu_milli / 2;
    n->over_host_mem_bytes = n->host_mem_bytes / 2;
    for (uint32_t i = 0; i < n->device_count; i++) {
        n->device[i].over_permille = 500;
        n->device[i].over_mem_bytes = n->device[i].mem_bytes / 2;
    }
}

static inline void script_command(struct script *r, char **word, int words)
{
    uint32_t n[6] = { 0 };
    for (int i = 1; i < words && i < 6; i++)
        n[i] = (uint32_t)strtoul(word[i], NULL, 10);
    struct sched_event e = { .kind = SCHED_TICK };
    switch (word[0][0]) {
    case 'n':
        e.kind = SCHED_ADD_NODE;
        e.node = node_of(n[1], n[2], 16, 16);
        e.node.rack = n[4];
        e.node.zone = n[5];
        for (uint32_t i = 0; isalpha(word[words - 1][0]) && i < n[1]; i++)
            e.node.device[i].sharing = script_way(word[words - 1][0]);
        if (isalpha(word[words - 1][0]) && word[words - 1][1] == 'o')
            script_over(&e.node);
        for (uint32_t i = 1; words > 3 && i < n[3]; i++)
            script_apply(r, &e);
        break;
    case 'w':
        script_close(r);
        script_open_for(r, r->order, script_ways(word[1]));
        return;
    case 't':
        e.kind = SCHED_SET_TENANT;
        e.tenant = (struct sched_tenant){ n[1], n[2], words > 3 ? n[3] : 1 };
        break;
    case 'q':
        e.kind = SCHED_SET_QUOTA;
        e.quota = (struct sched_quota){ n[1], word[2][0] == '*' ? SCHED_ALL_MODELS : n[2],
                                        n[3], word[4][0] == '-' ? SCHED_NO_LIMIT : n[4] };
        break;
    case 'u':
        e.kind = SCHED_SET_PRIORITY;
        e.priority = (struct sched_priority){ n[1], n[2] };
        break;
    case 'p':
        e.kind = SCHED_SET_PRICE;
        e.price = (struct sched_price){ n[1], n[2] };
        break;
    case '=':
        script_estimate(r, n[1]);
        return;
    case '~':
        script_start(r, n[1]);
        return;
    case '!':
        script_until(r, n[1]);
        return;
    case '?':
        script_where(r, n[1]);
        return;
    case 's':
    case 'r':
        script_request(r, word, words);
        return;
    case 'e':
        e.kind = SCHED_END;
        e.end = n[1];
        break;
    case 'c':
    case 'o':
        e.kind = SCHED_OPEN_NODE;
        e.open.node = n[1];
        e.open.open = word[0][0] == 'o';
        break;
    case '@':
        r->now_ms = strtoull(word[0] + 1, NULL, 10);
        snprintf(r->answer + strlen(r->answer), sizeof r->answer - strlen(r->answer),
                 "%s%s", r->answer[0] ? " " : "", word[0]);
        return;
    }
    if (script_apply(r, &e))
        abort();
}

static inline void script_run(struct script *r, const char *text)
{
    char line[1024], *at = line, *command;
    snprintf(line, sizeof line, "%s", text);
    while ((command = strsep(&at, ";"))) {
        char *word[12], *p;
        int words = 0;
        while ((p = strsep(&command, " ")))
            if (*p && words < 12)
                word[words++] = p;
        if (words)
            script_command(r, word, words);
    }
}

#endif
