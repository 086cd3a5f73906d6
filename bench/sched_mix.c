/* The mix of bench-sched: from its file to nodes, tenants and requests. */
#include "sched_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB        ((uint64_t)1 << 30)
#define MAX_PARTS  64
#define FEATURE_AT 64 /* the first label that is no rack */

struct parts {
    uint32_t part[MAX_PARTS], count, sum;
};

struct mix {
    json_t *json;
    struct parts shapes, models, priorities, sharings, ties;
    struct pool_ask ask[MAX_PARTS];
    uint64_t device_mem[MAX_PARTS];
    uint64_t devices_of[MAX_PARTS]; /* of a model, in the nodes given out */
    uint32_t given;                 /* devices */
    uint8_t sharing[MAX_PARTS];
    struct sched_tie tie[MAX_PARTS];
    uint64_t random;
    struct sched_option option[2];
};

static _Noreturn void lacks(const char *key)
{
    fprintf(stderr, "bench-sched: the mix lacks \"%s\"\n", key);
    exit(2);
}

static uint64_t number_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        lacks(key);
    return (uint64_t)json_integer_value(v);
}

/* As the enums number them. */
static const char *const ways[] = { "time", "exclusive", "spatial" };
static const char *const levels[] = { "anywhere", "node", "rack", "zone", "device" };

static uint32_t word_of(const json_t *o, const char *key, const char *const *words,
                        uint32_t count)
{
    const char *v = json_string_value(json_object_get(o, key));
    uint32_t i = 0;
    while (v && i < count && strcmp(v, words[i]) != 0)
        i++;
    if (!v || i == count)
        lacks(key);
    return i;
}

uint64_t mix_number(const struct mix *m, const char *key)
{
    return number_of(m->json, key);
}

json_t *mix_json(const struct mix *m)
{
    return m->json;
}

/* splitmix64, public domain */
uint32_t mix_below(struct mix *m, uint32_t n)
{
    uint64_t z = m->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static uint64_t of_list(struct mix *m, const char *key)
{
    const json_t *list = json_object_get(m->json, key);
    size_t n = json_array_size(list);
    if (!n)
        lacks(key);
    return (uint64_t)json_integer_value(json_array_get(list, mix_below(m, (uint32_t)n)));
}

static const json_t *parts_of(const struct mix *m, const char *key, struct parts *out)
{
    const json_t *list = json_object_get(m->json, key);
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row) {
        if (i == MAX_PARTS)
            break;
        out->part[i] = (uint32_t)number_of(row, "part");
        out->sum += out->part[i];
        out->count++;
    }
    if (!out->sum)
        lacks(key);
    return list;
}

static uint32_t pick(struct mix *m, const struct parts *p)
{
    uint32_t at = mix_below(m, p->sum), i = 0;
    while (at >= p->part[i])
        at -= p->part[i++];
    return i;
}

struct mix *mix_open(const char *path)
{
    json_error_t e;
    struct mix *m = calloc(1, sizeof *m);
    if (!m || !(m->json = json_load_file(path, 0, &e))) {
        fprintf(stderr, "bench-sched: %s: %s\n", path, m ? e.text : "out of memory");
        exit(2);
    }
    const json_t *list = parts_of(m, "shapes", &m->shapes);
    for (uint32_t i = 0; i < m->shapes.count; i++) {
        const json_t *row = json_array_get(list, i);
        m->ask[i] = (struct pool_ask){ .devices = (uint32_t)number_of(row, "devices"),
                                       .permille = (uint32_t)number_of(row, "permille"),
                                       .mem_bytes = number_of(row, "mem_gib") * GIB,
                                       .cpu_milli = (uint32_t)number_of(row, "cpu_milli"),
                                       .host_mem_bytes = number_of(row, "host_gib") * GIB };
    }
    list = parts_of(m, "models", &m->models);
    for (uint32_t i = 0; i < m->models.count; i++)
        m->device_mem[i] = number_of(json_array_get(list, i), "mem_gib") * GIB;
    parts_of(m, "priorities", &m->priorities);
    list = parts_of(m, "sharing", &m->sharings);
    for (uint32_t i = 0; i < m->sharings.count; i++)
        m->sharing[i] = (uint8_t)word_of(json_array_get(list, i), "way", ways, 3);
    list = parts_of(m, "ties", &m->ties);
    for (uint32_t i = 0; i < m->ties.count; i++) {
        const json_t *row = json_array_get(list, i);
        m->tie[i] =
            (struct sched_tie){ .level = (enum pool_level)word_of(row, "level", levels, 5),
                                .apart = json_is_true(json_object_get(row, "apart")),
                                .required =
                                    json_is_true(json_object_get(row, "required")) };
    }
    return m;
}

void mix_close(struct mix *m)
{
    json_decref(m->json);
    free(m);
}

/* ---- nodes ---- */

/* What more is lent of a node and its devices in the lower class; an exclusive device has
 * nothing for others. */
static void over_commit(const struct mix *m, struct pool_node *n, uint8_t sharing)
{
    uint64_t over = sharing == POOL_EXCLUSIVE ? 0 : mix_number(m, "over_permille");
    n->over_cpu_milli = (uint32_t)(n->cpu_milli * over / 1000);
    n->over_host_mem_bytes = n->host_mem_bytes / 1000 * over;
    for (uint32_t k = 0; k < n->device_count; k++) {
        n->device[k].over_permille = (uint16_t)over;
        n->device[k].over_mem_bytes = n->device[k].mem_bytes / 1000 * over;
    }
}

struct pool_node mix_node(struct mix *m, uint32_t i, uint32_t nodes, uint32_t devices)
{
    uint32_t model = pick(m, &m->models),
             set = mix_below(m, (uint32_t)mix_number(m, "label_sets"));
    uint32_t racks = (uint32_t)mix_number(m, "racks");
    int64_t owed = (int64_t)((uint64_t)devices * (i + 1) / nodes) - m->given;
    uint32_t count = owed > 6 ? 8 : owed > 3 ? 4 : 2;
    if (i + 1 == nodes)
        count = owed < 0 ? 0 : owed > POOL_MAX_DEVICES ? POOL_MAX_DEVICES : (uint32_t)owed;
    uint32_t size = count ? count : 1;
    struct pool_node n = { .cpu_milli = (uint32_t)of_list(m, "cpu_milli_per_device") * size,
                           .host_mem_bytes = of_list(m, "host_gib_per_device") * size * GIB,
                           .device_count = count,
                           .rack = set % racks + 1,
                           .zone = set % racks % (uint32_t)mix_number(m, "zones") + 1 };
    uint8_t sharing = m->sharing[pick(m, &m->sharings)];
    for (uint32_t k = 0; k < count; k++)
        n.device[k] = (struct pool_device){ .model = model,
                                            .sharing = sharing,
                                            .mem_bytes = m->device_mem[model] };
    over_commit(m, &n, sharing);
    n.labels.bits[0] = 1ull << set % racks;
    n.labels.bits[FEATURE_AT / 64] = set / racks; /* a set of features, as bits */
    m->given += count;
    m->devices_of[model] += count;
    return n;
}

/* ---- tenants: divisions first, then their teams ---- */

uint32_t mix_tenant_count(const struct mix *m)
{
    uint64_t divisions = mix_number(m, "divisions");
    return (uint32_t)(divisions + divisions * mix_number(m, "teams_per_division"));
}

uint32_t mix_model_count(const struct mix *m)
{
    return m->models.count;
}

/* Some want more than others. */
static uint32_t team_part(uint32_t team)
{
    return 1 + team % 9;
}

struct sched_tenant mix_tenant(const struct mix *m, uint32_t i)
{
    uint32_t divisions = (uint32_t)mix_number(m, "divisions");
    return (struct sched_tenant){ .tenant = i + 1,
                                  .parent = i < divisions ? SCHED_ROOT
                                                          : (i - divisions) % divisions + 1,
                                  .weight = i < divisions ? 1 : team_part(i - divisions) };
}

struct sched_quota mix_quota(const struct mix *m, uint32_t i, uint32_t model,
                             uint32_t percent)
{
    uint32_t divisions = (uint32_t)mix_number(m, "divisions");
    uint32_t teams = mix_tenant_count(m) - divisions;
    const json_t *range = json_object_get(m->json, "quota_percent_of_use");
    uint64_t low = (uint64_t)json_integer_value(json_array_get(range, 0));
    uint64_t high = (uint64_t)json_integer_value(json_array_get(range, 1));
    uint64_t of =
        low + (high - low) * (i * 7 % 11) / 10; /* each its own place in the range */
    uint64_t all = 0, part = 0;
    for (uint32_t t = 0; t < teams; t++) {
        all += team_part(t);
        if (i < divisions ? t % divisions == i : t == i - divisions)
            part += team_part(t);
    }
    uint64_t use =
        m->devices_of[model] * 1000 * mix_number(m, "allocated_percent") / 100 * part / all;
    uint64_t quota = use * of / 100;
    return (struct sched_quota){
        .tenant = i + 1,
        .model = model,
        .deserved_milli = quota * percent / 100,
        .limit_milli = quota * mix_number(m, "limit_percent_of_quota") / 100
    };
}

/* ---- requests ---- */

static bool chance(struct mix *m, const char *key)
{
    return mix_below(m, 100) < mix_number(m, key);
}

/* A part of a device is asked by turns, side by side, or either way; a whole one anyhow. */
static uint8_t sharing_of(struct mix *m, const struct pool_ask *a)
{
    uint8_t any = 1u << POOL_TIME | 1u << POOL_SPATIAL;
    if (!a->devices || a->permille == 1000)
        return 0;
    return chance(m, "one_way_percent")
               ? mix_below(m, 2) ? 1u << POOL_TIME : 1u << POOL_SPATIAL
               : any;
}

struct pool_ask mix_ask(struct mix *m)
{
    struct pool_ask a = m->ask[pick(m, &m->shapes)];
    a.sharing = sharing_of(m, &a);
    a.lower = a.devices <= 1 && chance(m, "lower_percent");
    if (!chance(m, "need_percent"))
        return a;
    uint32_t racks = (uint32_t)mix_number(m, "racks");
    if (mix_below(m, 2))
        a.need.bits[0] = 1ull << mix_below(m, racks);
    else
        a.need.bits[FEATURE_AT / 64] = 1ull << mix_below(m, 3);
    return a;
}

/* Log-uniform in the range of the mix. */
static uint32_t gang_size(struct mix *m)
{
    const json_t *range = json_object_get(m->json, "gang");
    uint32_t low = (uint32_t)json_integer_value(json_array_get(range, 0));
    uint32_t high = (uint32_t)json_integer_value(json_array_get(range, 1));
    uint32_t doublings = 0;
    while (low << (doublings + 1) <= high)
        doublings++;
    uint32_t base = low << mix_below(m, doublings + 1);
    uint32_t size = base + mix_below(m, base);
    return size > high ? high : size;
}

/* The members of a service carry its tag, and are near to each other or apart. */
static struct sched_ties ties_of(struct mix *m)
{
    struct sched_ties t = { .tag_count = 1, .tie_count = 1 };
    t.tag[0] = mix_below(m, (uint32_t)mix_number(m, "tags"));
    t.tie[0] = m->tie[pick(m, &m->ties)];
    t.tie[0].tag = t.tag[0];
    return t;
}

struct sched_request mix_request(struct mix *m)
{
    static const uint64_t small = 34 * GIB, large = 70 * GIB;
    uint32_t divisions = (uint32_t)mix_number(m, "divisions");
    uint32_t teams = mix_tenant_count(m) - divisions, team;
    do /* as often as it wants */
        team = mix_below(m, teams);
    while (mix_below(m, 9) >= team_part(team));
    const json_t *row =
        json_array_get(json_object_get(m->json, "priorities"), pick(m, &m->priorities));
    struct sched_request r = { .tenant = divisions + team + 1,
                               .priority = (uint32_t)number_of(row, "priority"),
                               .preemptible = chance(m, "preemptible_percent"),
                               .min_run_ms = mix_number(m, "min_run_ms"),
                               .option_count = 1,
                               .option = m->option };
    for (int i = 0; i < 2; i++)
        m->option[i] = (struct sched_option){ .group_count = 1 };
    m->option[0].group[0] = (struct sched_group){ mix_ask(m), 1 };
    if (chance(m, "gang_percent")) {
        m->option[0].group[0].count = gang_size(m);
        m->option[0].within = POOL_RACK; /* if one has room */
    } else if (chance(m, "alternative_percent")) {
        r.option_count = 2; /* two large devices or four of half the memory */
        m->option[0].group[0].ask = (struct pool_ask){ .devices = 2,
                                                       .permille = 1000,
                                                       .mem_bytes = large,
                                                       .cpu_milli = 16000,
                                                       .host_mem_bytes = 128 * GIB };
        m->option[1].group[0] = (struct sched_group){ { .devices = 4,
                                                        .permille = 1000,
                                                        .mem_bytes = small,
                                                        .cpu_milli = 28000,
                                                        .host_mem_bytes = 200 * GIB },
                                                      1 };
    } else if (chance(m, "topology_percent_of_others")) {
        m->option[0].within = POOL_RACK;
    }
    if (chance(m, "tied_percent"))
        r.ties = ties_of(m);
    return r;
}
