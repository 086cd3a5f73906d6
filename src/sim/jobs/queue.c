/*
 * Policies with one queue and no pre-emption: the job with the smallest key is started
 * as soon as it fits, and who does not fit holds up all behind.  The key is fixed when
 * the job comes: its turn (fifo), its work (sjf), its predicted service (qssf).
 */
#include <stdlib.h>

#include "core/macros.h"
#include "history.h"
#include "policy.h"

struct waiting {
    uint64_t key;
    uint32_t job; /* of equal keys, the one that came first */
};

struct queue {
    struct waiting *heap;
    uint32_t count;
    struct history history; /* qssf alone */
};

typedef uint64_t key_of(struct jobsim *sim, struct queue *q, uint32_t job);

static bool before(const struct waiting *a, const struct waiting *b)
{
    return a->key != b->key ? a->key < b->key : a->job < b->job;
}

static int queue_create(struct jobsim *sim, void **state)
{
    struct queue *q = calloc(1, sizeof *q);
    *state = q;
    if (!q)
        return -1;
    q->heap = malloc(sim->job_count * sizeof *q->heap);
    return q->heap ? history_init(&q->history, sim->trace) : -1;
}

static void queue_destroy(void *state)
{
    struct queue *q = state;
    history_finish(&q->history);
    free(q->heap);
    free(q);
}

static void queue_submit(struct jobsim *sim, void *state, uint32_t job)
{
    struct queue *q = state;
    key_of *key = *(key_of *const *)sim->policy->config;
    struct waiting w = { key(sim, q, job), job };
    uint32_t at = q->count++;
    for (uint32_t up; at && before(&w, &q->heap[up = (at - 1) / 2]); at = up)
        q->heap[at] = q->heap[up];
    q->heap[at] = w;
}

static void drop_head(struct queue *q)
{
    struct waiting w = q->heap[--q->count];
    uint32_t at = 0;
    for (uint32_t down; (down = 2 * at + 1) < q->count; at = down) {
        if (down + 1 < q->count && before(&q->heap[down + 1], &q->heap[down]))
            down++;
        if (!before(&q->heap[down], &w))
            break;
        q->heap[at] = q->heap[down];
    }
    q->heap[at] = w;
}

static uint64_t queue_decide(struct jobsim *sim, void *state)
{
    struct queue *q = state;
    while (q->count && jobsim_try_start(sim, q->heap[0].job))
        drop_head(q);
    return JOBSIM_NEVER;
}

static void learn(struct jobsim *sim, void *state, uint32_t job)
{
    struct queue *q = state;
    history_add(&q->history, sim->jobs[job].trace, sim->jobs[job].work_us);
}

static uint64_t by_turn(struct jobsim *sim, struct queue *q, uint32_t job)
{
    return job;
}

static uint64_t by_work(struct jobsim *sim, struct queue *q, uint32_t job)
{
    return sim->jobs[job].work_us;
}

static uint64_t by_prediction(struct jobsim *sim, struct queue *q, uint32_t job)
{
    const struct trace_job *t = sim->jobs[job].trace;
    return device_time(history_predict_us(&q->history, t), t->devices);
}

static key_of *const turn = by_turn, *const work = by_work,
                     *const prediction = by_prediction;

#define QUEUE(key)                                                           \
    {                                                                        \
        queue_create, queue_submit, learn, queue_decide, queue_destroy, &key \
    }

const struct job_policy job_policy_fifo = QUEUE(turn);
const struct job_policy job_policy_sjf = QUEUE(work);
const struct job_policy job_policy_qssf = QUEUE(prediction);
