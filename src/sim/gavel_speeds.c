/* Gavel's throughputs: GPU -> job -> { "null": alone, other job: [mine, theirs] }. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "sim/gavel.h"

#define MAX_PER_SECOND 1e9
#define ALONE          "null"

struct reader {
    const char *name;
    const char *gpu, *job, *other; /* at hand, for messages */
    struct gavel_speeds *out;
    struct sl_err *err;
};

static int fail(struct reader *r, const char *what)
{
    return sl_fail(r->err, SL_INVALID, "%s: %.30s%s%.50s%s%.50s: %s", r->name, r->gpu,
                   r->job ? ": " : "", r->job ? r->job : "", r->other ? ": " : "",
                   r->other ? r->other : "", what);
}

static int fail_memory(struct reader *r)
{
    return sl_fail(r->err, SL_INTERNAL, "%s: out of memory", r->name);
}

/* "('ResNet-18 (batch size 16)', 2)" to its model and number of GPUs. */
static bool split_key(const char *key, size_t *model_len, uint32_t *gpus)
{
    const char *comma = strrchr(key, ',');
    char *end;
    if (strncmp(key, "('", 2) || !comma || comma < key + 4 || comma[-1] != '\'' ||
        comma[1] != ' ' || comma[2] < '1' || comma[2] > '9')
        return false;
    unsigned long count = strtoul(comma + 2, &end, 10);
    *model_len = (size_t)(comma - key) - 3;
    *gpus = (uint32_t)count;
    return count <= 1000000 && !strcmp(end, ")");
}

/* The number of a job's key, or an error; jobs has room for all keys of the file. */
static int add_job(struct reader *r, const char *key)
{
    struct gavel_speeds *s = r->out;
    size_t model_len;
    uint32_t gpus, known = s->keys.count;
    if (!split_key(key, &model_len, &gpus))
        return fail(r, "a job's key is written ('model', GPUs)");
    uint32_t job = names_add(&s->keys, key, strlen(key), 0);
    if (job == NAMES_NONE)
        return fail_memory(r);
    if (job < known)
        return (int)job;
    if (job >= GAVEL_MAX_JOBS)
        return fail(r, "too many kinds of job");
    uint32_t model = names_add(&s->models, key + 2, model_len, 0);
    if (model == NAMES_NONE)
        return fail_memory(r);
    s->jobs[job] = (struct gavel_job){ model, gpus };
    s->job_count = s->keys.count;
    return (int)job;
}

static int get_micro(struct reader *r, const json_t *value, uint64_t *out)
{
    double per_second = json_number_value(value);
    if (!json_is_number(value) || !(per_second >= 0) || per_second > MAX_PER_SECOND)
        return fail(r, "is no number of iterations a second");
    *out = (uint64_t)llround(per_second * 1e6);
    return 0;
}

static int read_pair(struct reader *r, uint32_t gpu, uint32_t job, const json_t *speeds)
{
    struct gavel_pair pair = { .gpu = gpu, .job = job };
    int rc = add_job(r, r->other);
    if (rc < 0)
        return rc;
    pair.other = (uint32_t)rc;
    if (json_array_size(speeds) != 2)
        return fail(r, "two numbers are expected: mine and theirs");
    rc = get_micro(r, json_array_get(speeds, 0), &pair.job_micro);
    if (rc == 0)
        rc = get_micro(r, json_array_get(speeds, 1), &pair.other_micro);
    if (rc == 0)
        r->out->pairs[r->out->pair_count++] = pair;
    return rc;
}

/* One job on one GPU: with each other job, and alone. */
static int read_job(struct reader *r, uint32_t gpu, json_t *speeds, uint64_t *alone)
{
    const char *other;
    json_t *value;
    int job = add_job(r, r->job);
    if (job < 0)
        return job;
    if (!json_is_object(speeds))
        return fail(r, "an object is expected");
    json_object_foreach(speeds, other, value) {
        r->other = other;
        int rc = strcmp(other, ALONE) ? read_pair(r, gpu, (uint32_t)job, value)
                                      : get_micro(r, value, &alone[job]);
        if (rc < 0)
            return rc;
    }
    r->other = NULL;
    return 0;
}

/* `alone` has room for GAVEL_MAX_JOBS numbers of each GPU. */
static int read_gpus(struct reader *r, json_t *root, uint64_t *alone)
{
    const char *gpu, *job;
    json_t *jobs, *speeds;
    json_object_foreach(root, gpu, jobs) {
        r->gpu = gpu;
        uint32_t index = names_add(&r->out->gpus, gpu, strlen(gpu), 0);
        if (index == NAMES_NONE)
            return fail_memory(r);
        if (!json_is_object(jobs))
            return fail(r, "an object is expected");
        json_object_foreach(jobs, job, speeds) {
            r->job = job;
            int rc = read_job(r, index, speeds, alone + (size_t)index * GAVEL_MAX_JOBS);
            if (rc < 0)
                return rc;
        }
        r->job = NULL;
    }
    return 0;
}

static int by_place(const void *left, const void *right)
{
    const struct gavel_pair *a = left, *b = right;
    if (a->gpu != b->gpu)
        return a->gpu < b->gpu ? -1 : 1;
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    return a->other < b->other ? -1 : a->other > b->other;
}

/* Keys in the whole file: as many jobs and pairs at most. */
static size_t count_keys(json_t *root)
{
    const char *gpu, *job; /* jansson's loop goes on from its key */
    json_t *jobs, *speeds;
    size_t count = 1;
    json_object_foreach(root, gpu, jobs) {
        count += json_object_size(jobs);
        json_object_foreach(jobs, job, speeds) {
            count += json_object_size(speeds);
        }
    }
    return count;
}

/* From rows of GAVEL_MAX_JOBS to rows of job_count. */
static void pack_alone(struct gavel_speeds *s, const uint64_t *alone)
{
    for (uint32_t g = 0; g < s->gpus.count; g++)
        memcpy(s->alone_micro + (size_t)g * s->job_count,
               alone + (size_t)g * GAVEL_MAX_JOBS, s->job_count * sizeof *alone);
}

static int read_root(struct reader *r, json_t *root)
{
    struct gavel_speeds *s = r->out;
    size_t keys = count_keys(root), gpus = json_object_size(root);
    if (gpus == 0 || gpus > GAVEL_MAX_GPUS)
        return sl_fail(r->err, SL_INVALID,
                       "%s: an object of 1..%u kinds of GPU is expected", r->name,
                       GAVEL_MAX_GPUS);
    AUTO_FREE uint64_t *alone = malloc(gpus * GAVEL_MAX_JOBS * sizeof *alone);
    s->jobs = calloc(keys, sizeof *s->jobs);
    s->pairs = calloc(keys, sizeof *s->pairs);
    if (!alone || !s->jobs || !s->pairs)
        return fail_memory(r);
    memset(alone, 0xff, gpus * GAVEL_MAX_JOBS * sizeof *alone); /* GAVEL_UNKNOWN */
    int rc = read_gpus(r, root, alone);
    if (rc < 0)
        return rc;
    s->alone_micro = calloc(gpus * s->job_count + 1, sizeof *s->alone_micro);
    if (!s->alone_micro)
        return fail_memory(r);
    pack_alone(s, alone);
    qsort(s->pairs, s->pair_count, sizeof *s->pairs, by_place);
    return 0;
}

int gavel_speeds_read(const struct text *text, struct gavel_speeds *out, struct sl_err *err)
{
    struct gavel_speeds s = { 0 };
    struct reader r = { .name = text->name, .gpu = "", .out = &s, .err = err };
    AUTO_JSON json_t *root = json_parse(text->bytes, text->len, err);
    if (!root)
        return sl_prefix(err, "%s", text->name);
    int rc = read_root(&r, root);
    if (rc < 0)
        gavel_speeds_finish(&s);
    else
        *out = s;
    return rc;
}

void gavel_speeds_finish(struct gavel_speeds *s)
{
    names_finish(&s->gpus);
    names_finish(&s->models);
    names_finish(&s->keys);
    free(s->jobs);
    free(s->alone_micro);
    free(s->pairs);
    *s = (struct gavel_speeds){ 0 };
}

uint32_t gavel_find_job(const struct gavel_speeds *s, const char *model, uint32_t gpus)
{
    uint32_t m = names_find(&s->models, model);
    for (uint32_t j = 0; m != NAMES_NONE && j < s->job_count; j++)
        if (s->jobs[j].model == m && s->jobs[j].gpus == gpus)
            return j;
    return GAVEL_NONE;
}

const struct gavel_pair *gavel_find_pair(const struct gavel_speeds *s, uint32_t gpu,
                                         uint32_t job, uint32_t other)
{
    struct gavel_pair want = { .gpu = gpu, .job = job, .other = other };
    return bsearch(&want, s->pairs, s->pair_count, sizeof want, by_place);
}
