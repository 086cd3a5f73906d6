/* The closed loop: what happens when, the cards' books, and what a run comes to. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "closed_impl.h"
#include "core/macros.h"

#define HOUR_MS 3600000ull
#define DAY_MS  (24 * HOUR_MS)
#define SHARED_SLOW \
    1080u /* permille: a job on less than a whole card runs so much longer */
#define NO_JOB UINT32_MAX

/* Watts of a card that does nothing, and that is full: the constants of the PWR paper (V100,
 * A100); of the Ascend 910 the maximum of its data sheet, idle as a V100. */
static const uint32_t idle_w[CARD_TYPES] = { 30, 50, 30 };
static const uint32_t full_w[CARD_TYPES] = { 300, 400, 310 };

static const struct closed_system *const systems[] = {
    &closed_partitioned, &closed_strict, &closed_backfill,
    &closed_shared,      &closed_exact,  &closed_sluice,
};

void closed_setup_init(struct closed_setup *setup)
{
    *setup = (struct closed_setup){ .seed = 1,
                                    .sessions_permille = 1000,
                                    .think_s = 3600,
                                    .heavy_permille = 1000,
                                    .nodes_permille = 1000,
                                    .warm_days = 7,
                                    .days = 28 };
}

const char *closed_system_name(unsigned i)
{
    return i < ARRAY_LEN(systems) ? systems[i]->name : NULL;
}

const char *closed_system_about(unsigned i)
{
    return i < ARRAY_LEN(systems) ? systems[i]->about : NULL;
}

/* ---- moments ---- */

static int moment_add(struct closed *c, uint64_t at_ms, uint32_t job)
{
    struct agenda_item m = { .at_ms = at_ms, .id = job };
    if (job != NO_JOB)
        m.epoch = c->job[job].epoch;
    return agenda_add(&c->agenda, m) ? sl_fail(c->err, SL_INTERNAL, "out of memory") : 0;
}

/* ---- books ---- */

/* Up to now, as it was since the last time. */
static void settle(struct closed *c)
{
    struct books *b = &c->books;
    uint64_t from = max_u64(b->since_ms, c->begin_ms), to = min_u64(c->now_ms, c->end_ms);
    b->since_ms = c->now_ms;
    if (to <= from)
        return;
    b->allocated += c->lent_permille * (to - from);
    b->occupied += c->busy_cards * 1000ull * (to - from);
    b->waiting += c->waiting * (to - from);
    b->watt_ms += (c->idle_watt + c->busy_watt) * (double)(to - from);
}

static void card_remove(struct card *k, uint32_t job)
{
    uint32_t i = 0;
    while (k->job[i] != job)
        i++;
    k->job[i] = k->job[--k->jobs];
}

/* The job comes onto its cards (1) or leaves them (-1). */
static void cards_change(struct closed *c, uint32_t job, int sign)
{
    const struct job *j = &c->job[job];
    for (uint32_t i = 0; i < j->cards; i++) {
        struct card *k = &c->node[j->node].card[j->card[i]];
        c->busy_cards -= k->jobs != 0;
        if (sign > 0)
            k->job[k->jobs++] = job;
        else
            card_remove(k, job);
        c->busy_cards += k->jobs != 0;
        k->lent_permille += (uint32_t)sign * j->lent_permille;
        k->util_permille += (uint32_t)sign * j->util_permille;
        k->mem_bytes += (uint64_t)((int64_t)sign * (int64_t)j->mem_bytes);
        c->lent_permille += (uint32_t)sign * j->lent_permille;
    }
}

/* ---- speed ---- */

/* What a card gives the job of what it uses.  If all want more than there is, each has what
 * it is sure of, and what others leave is shared in proportion to that: weighted max-min. */
static double card_gives(const struct closed *c, const struct card *k, const struct job *j)
{
    double left = 1000, weight = 0, level = 0;
    bool full[CARD_JOBS] = { false };
    if (k->util_permille <= 1000)
        return 1;
    for (uint32_t i = 0; i < k->jobs; i++)
        weight += c->job[k->job[i]].lent_permille;
    for (bool again = true; again;) {
        again = false;
        level = left / weight;
        for (uint32_t i = 0; i < k->jobs; i++) {
            const struct job *x = &c->job[k->job[i]];
            if (full[i] || x->util_permille > level * x->lent_permille)
                continue;
            full[i] = again = true;
            left -= x->util_permille;
            weight -= x->lent_permille;
        }
    }
    return fmin(1, level * j->lent_permille / j->util_permille);
}

static void use_power(struct closed *c, const struct job *j, double sign)
{
    const struct node *n = &c->node[j->node];
    double used = sign * j->speed * j->cards * j->util_permille / 1000;
    c->working += used;
    c->busy_watt += used * (full_w[n->type] - idle_w[n->type]);
}

static void job_settle(struct closed *c, struct job *j)
{
    double dt = (double)(c->now_ms - j->since_ms);
    j->done_ms += dt * j->speed;
    j->ran_ms += c->now_ms - j->since_ms;
    j->since_ms = c->now_ms;
}

/* Its speed from now on, and so its end. */
static int set_speed(struct closed *c, uint32_t job)
{
    struct job *j = &c->job[job];
    double speed = 1;
    for (uint32_t i = 0; i < j->cards; i++)
        speed = fmin(speed, card_gives(c, &c->node[j->node].card[j->card[i]], j));
    if (speed == j->speed)
        return 0;
    job_settle(c, j);
    use_power(c, j, -1);
    j->speed = speed;
    use_power(c, j, 1);
    j->epoch++;
    return moment_add(
        c, c->now_ms + (uint64_t)ceil(fmax(0, j->need_ms - j->done_ms) / speed), job);
}

/* All that run on these cards. */
static int set_speeds(struct closed *c, const struct job *j)
{
    int rc = 0;
    for (uint32_t i = 0; i < j->cards && !rc; i++) {
        const struct card *k = &c->node[j->node].card[j->card[i]];
        for (uint32_t x = 0; x < k->jobs && !rc; x++)
            rc = set_speed(c, k->job[x]);
    }
    return rc;
}

/* ---- jobs ---- */

static int start_broken(struct closed *c, const char *what)
{
    return sl_fail(c->err, SL_INTERNAL, "%s at %llu ms: %s", c->system->name,
                   (unsigned long long)c->now_ms, what);
}

/* May it run there? */
static int check_start(struct closed *c, const struct job *j, const struct node *n)
{
    if (j->state != JOB_WAITS)
        return start_broken(c, "it started who does not wait");
    if (!(j->types >> n->type & 1))
        return start_broken(c, "a type of card that will not do");
    for (uint32_t i = 0; i < j->cards; i++) {
        const struct card *k = &n->card[j->card[i]];
        if (k->jobs == CARD_JOBS || k->lent_permille + j->lent_permille > 1000)
            return start_broken(c, "more of a card was lent than there is");
        if (k->mem_bytes + j->mem_bytes > type_mem_bytes(n->type))
            return start_broken(c, "more memory was lent than a card has");
    }
    return 0;
}

int closed_start(struct closed *c, uint32_t job, uint32_t node, const uint8_t *card,
                 uint32_t lent_permille)
{
    struct job *j = &c->job[job];
    j->lent_permille = lent_permille;
    j->node = node;
    memcpy(j->card, card, j->cards);
    int rc = check_start(c, j, &c->node[node]);
    if (rc)
        return rc;
    settle(c);
    cards_change(c, job, 1);
    if (j->need_ms == 0)
        j->need_ms =
            (double)j->run_ms *
            (j->share_permille < 1000 && lent_permille < 1000 ? SHARED_SLOW / 1000.0 : 1);
    j->state = JOB_RUNS;
    j->since_ms = c->now_ms;
    j->speed = 0;
    c->waiting--;
    return set_speeds(c, j);
}

static int leave_cards(struct closed *c, uint32_t job)
{
    struct job *j = &c->job[job];
    settle(c);
    job_settle(c, j);
    use_power(c, j, -1);
    j->speed = 0;
    j->epoch++;
    cards_change(c, job, -1);
    return set_speeds(c, j);
}

int closed_stop(struct closed *c, uint32_t job, uint64_t cost_ms)
{
    struct job *j = &c->job[job];
    int rc = leave_cards(c, job);
    j->need_ms += (double)cost_ms;
    j->state = JOB_WAITS;
    j->since_ms = c->now_ms;
    c->waiting++;
    if (c->now_ms >= c->begin_ms)
        c->result->evictions++;
    return rc;
}

static uint64_t waited_ms(const struct closed *c, const struct job *j)
{
    uint64_t running = j->state == JOB_RUNS ? c->now_ms - j->since_ms : 0;
    return c->now_ms - j->submit_ms - j->ran_ms - running;
}

static bool is_starved(const struct closed *c, const struct job *j)
{
    uint64_t waited = waited_ms(c, j);
    return waited > DAY_MS || waited > 20 * j->run_ms;
}

static int remember(struct closed *c, const struct job *j)
{
    struct closed_result *r = c->result;
    struct closed_part *p = &r->part[j->part];
    if (c->now_ms < c->begin_ms)
        return 0;
    if (array_reserve(&c->wait_s, &c->wait_room, r->finished + 1, sizeof *c->wait_s))
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    double wait_s = (double)waited_ms(c, j) / 1000;
    double work_ms = (double)j->run_ms * j->cards * j->util_permille / 1000;
    c->wait_s[r->finished++] = wait_s;
    r->starved += is_starved(c, j);
    c->think_sum_s += (double)j->think_ms / 1000;
    c->run_sum_s += (double)j->ran_ms / 1000;
    c->work_ms += work_ms;
    p->finished++;
    p->work_device_h += work_ms / HOUR_MS;
    p->wait_mean_s += wait_s;
    return 0;
}

/* The session thinks of its next job. */
static int think(struct closed *c, uint32_t job)
{
    struct job *j = &c->job[job];
    *j = (struct job){ .part = j->part, .random = j->random, .epoch = j->epoch + 1 };
    draw_job(c, j);
    j->state = JOB_THINKS;
    return moment_add(c, c->now_ms + j->think_ms, job);
}

static int submit(struct closed *c, uint32_t job)
{
    settle(c);
    c->job[job].state = JOB_WAITS;
    c->job[job].submit_ms = c->job[job].since_ms = c->now_ms;
    c->waiting++;
    return c->system->submit(c, job);
}

static int finish(struct closed *c, uint32_t job)
{
    struct job *j = &c->job[job];
    int rc = leave_cards(c, job);
    j->state = JOB_OVER;
    if (!rc)
        rc = remember(c, j);
    if (!rc)
        rc = c->system->finish(c, job);
    return rc || c->setup.open_permille ? rc : think(c, job);
}

/* ---- the open form ---- */

/* A number from the table of departments, by how much each wants. */
static uint32_t draw_part(struct random *r)
{
    uint32_t all = 0, part = 0;
    for (uint32_t p = 0; p < CLOSED_PARTS; p++)
        all += closed_parts[p].nodes * closed_parts[p].demand_pct;
    uint32_t at = random_below(r, all);
    while (at >= closed_parts[part].nodes * closed_parts[part].demand_pct)
        at -= closed_parts[part].nodes * closed_parts[part].demand_pct, part++;
    return part;
}

static int arrive(struct closed *c)
{
    double u = ((double)(random_next(&c->arrivals) >> 11) + 0.5) / 9007199254740992.0;
    if (array_reserve(&c->job, &c->job_room, c->job_count + 1, sizeof *c->job))
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    uint32_t job = c->job_count++;
    struct job *j = &c->job[job];
    *j = (struct job){ .part = draw_part(&c->arrivals),
                       .random = { random_seed(c->setup.seed, 1000000 + job) } };
    draw_job(c, j);
    j->think_ms = 0;
    int rc = submit(c, job);
    return rc ? rc
              : moment_add(c, c->now_ms + 1 + (uint64_t)(-log(u) * c->arrival_mean_ms),
                           NO_JOB);
}

/* Between arrivals, so that they offer the part of the cards' capacity that was asked for. */
static double arrival_mean_ms(const struct closed *c)
{
    double work_ms = 0;
    enum { DRAWN = 20000 };
    struct random r = { 77 };
    for (uint32_t i = 0; i < DRAWN; i++) {
        struct job j = { .part = draw_part(&r), .random = { random_seed(77, i) } };
        draw_job(c, &j);
        work_ms += (double)j.run_ms * j.cards * j.util_permille / 1000;
    }
    return work_ms / DRAWN / (c->node_count * NODE_CARDS * c->setup.open_permille / 1000.0);
}

/* ---- a run ---- */

/* The scenario's nodes up to here, as many as are wanted of them. */
static uint32_t nodes_until(const struct closed *c, uint32_t part)
{
    uint32_t nodes = 0;
    for (uint32_t p = 0; p < part; p++)
        nodes += closed_parts[p].nodes;
    return (nodes * c->setup.nodes_permille + 500) / 1000;
}

static int add_nodes(struct closed *c)
{
    for (uint32_t p = 0; p < CLOSED_PARTS; p++) {
        uint32_t nodes = nodes_until(c, p + 1) - nodes_until(c, p);
        for (uint32_t i = 0; i < max_u64(nodes, 1); i++) {
            if (c->node_count == CLOSED_MAX_NODES)
                return sl_fail(c->err, SL_INVALID, "more than %d nodes", CLOSED_MAX_NODES);
            c->node[c->node_count++] = (struct node){ p, closed_parts[p].type, { { 0 } } };
        }
        c->result->part[p].name = closed_parts[p].name;
        c->result->part[p].cards = (uint32_t)max_u64(nodes, 1) * NODE_CARDS;
    }
    for (uint32_t i = 0; i < c->node_count; i++)
        c->idle_watt += (double)NODE_CARDS * idle_w[c->node[i].type];
    c->result->cards = c->node_count * NODE_CARDS;
    return 0;
}

/* 1.8 sessions a card that a department wants: with an hour of thought that is what fits. */
static int add_sessions(struct closed *c)
{
    int rc = 0;
    for (uint32_t p = 0; p < CLOSED_PARTS && !rc; p++) {
        uint32_t cards = closed_parts[p].nodes * NODE_CARDS;
        uint64_t want =
            (uint64_t)cards * closed_parts[p].demand_pct * 18 * c->setup.sessions_permille;
        for (uint32_t i = 0; i < (want + 500000) / 1000000 && !rc; i++) {
            if (array_reserve(&c->job, &c->job_room, c->job_count + 1, sizeof *c->job))
                return sl_fail(c->err, SL_INTERNAL, "out of memory");
            uint32_t job = c->job_count++;
            c->job[job] =
                (struct job){ .part = p, .random = { random_seed(c->setup.seed, job) } };
            rc = think(c, job);
        }
    }
    c->sessions = c->job_count;
    c->result->sessions = c->sessions;
    return rc;
}

static void take_sample(struct closed *c, uint64_t at_ms)
{
    struct closed_result *r = c->result;
    double cards = r->cards * 1000.0;
    r->sample[r->sample_count] = (struct closed_sample){
        .hour = r->sample_count,
        .allocated_pct = (float)(100 * c->lent_permille / cards),
        .occupied_pct = (float)(100000 * c->busy_cards / cards),
        .working_pct = (float)(100000 * c->working / cards),
        .unusable_pct = c->waiting ? (float)(100 - 100 * c->lent_permille / cards) : 0,
        .waiting = c->waiting,
    };
    r->sample_count++;
}

/* Samples that are due before `at_ms`. */
static void sample_until(struct closed *c, uint64_t at_ms)
{
    while (c->begin_ms + c->result->sample_count * HOUR_MS < min_u64(at_ms, c->end_ms))
        take_sample(c, at_ms);
}

static int happen(struct closed *c, const struct agenda_item *m)
{
    if (m->id == NO_JOB)
        return arrive(c);
    struct job *j = &c->job[m->id];
    if (m->epoch != j->epoch)
        return 0;
    return j->state == JOB_THINKS ? submit(c, m->id) : finish(c, m->id);
}

static int loop(struct closed *c)
{
    uint64_t ask_ms = NEVER;
    int rc = 0;
    while (!rc) {
        uint64_t next = min_u64(agenda_next_ms(&c->agenda), ask_ms);
        if (next > c->end_ms)
            break;
        sample_until(c, next);
        c->now_ms = next;
        while (!rc && agenda_next_ms(&c->agenda) == next) {
            struct agenda_item m = agenda_take(&c->agenda);
            rc = happen(c, &m);
        }
        if (!rc)
            rc = c->system->decide(c, &ask_ms);
    }
    c->now_ms = c->end_ms;
    settle(c);
    sample_until(c, c->end_ms);
    return rc;
}

/* ---- what it comes to ---- */

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The part of them that is not above it; NAN where fewer than ten are beyond. */
static double quantile(const struct closed *c, double part)
{
    uint32_t n = c->result->finished, at = (uint32_t)(part * n);
    return n - at > 10 ? c->wait_s[at] : NAN;
}

static void sum_up(struct closed *c)
{
    struct closed_result *r = c->result;
    double n = r->finished, span_ms = (double)(c->end_ms - c->begin_ms);
    double capacity = span_ms * r->cards, sum = 0;
    for (uint32_t i = 0; i < c->job_count; i++)
        r->starved += c->job[i].state != JOB_OVER && c->job[i].state != JOB_THINKS &&
                      is_starved(c, &c->job[i]);
    for (uint32_t i = 0; i < r->finished; i++)
        sum += c->wait_s[i];
    if (r->finished)
        qsort(c->wait_s, r->finished, sizeof *c->wait_s, compare);
    for (uint32_t i = 0; i < CLOSED_CDF && r->finished; i++)
        r->wait_cdf_s[i] = c->wait_s[((uint64_t)r->finished * (i + 1) - 1) / CLOSED_CDF];
    for (uint32_t p = 0; p < CLOSED_PARTS; p++)
        r->part[p].wait_mean_s /= r->part[p].finished ? r->part[p].finished : NAN;
    r->effective_pct = 100 * c->work_ms / capacity;
    r->allocated_pct = (double)c->books.allocated / capacity / 10;
    r->occupied_pct = (double)c->books.occupied / capacity / 10;
    r->wait_mean_s = sum / n;
    r->wait_all_mean_s = (double)c->books.waiting / 1000 / n;
    r->wait_p50_s = quantile(c, 0.50);
    r->wait_p90_s = quantile(c, 0.90);
    r->wait_p99_s = quantile(c, 0.99);
    r->think_mean_s = c->think_sum_s / n;
    r->run_mean_s = c->run_sum_s / n;
    double cycle_s = r->wait_mean_s + r->think_mean_s + r->run_mean_s;
    r->little_error_pct = c->setup.open_permille
                              ? NAN
                              : 100 * (n / (span_ms / 1000) * cycle_s / c->sessions - 1);
    r->work_per_mj = c->work_ms / 1000 / (c->books.watt_ms / 1000 / 1e6);
}

static int prepare(struct closed *c)
{
    int rc = add_nodes(c);
    c->begin_ms = c->setup.warm_days * DAY_MS;
    c->end_ms = c->begin_ms + c->setup.days * DAY_MS;
    c->result->sample = calloc(c->setup.days * 24 + 1, sizeof *c->result->sample);
    if (!c->result->sample)
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    if (!rc)
        rc = c->system->create(c);
    if (!rc && !c->setup.open_permille)
        return add_sessions(c);
    c->arrivals.state = random_seed(c->setup.seed, 555);
    c->arrival_mean_ms = arrival_mean_ms(c);
    return rc ? rc : moment_add(c, 0, NO_JOB);
}

int closed_run(const char *system, const struct closed_setup *setup,
               struct closed_result *out, struct sl_err *err)
{
    struct closed_result result = { 0 };
    struct closed c = { .setup = *setup, .result = &result, .err = err };
    for (size_t i = 0; i < ARRAY_LEN(systems); i++)
        if (!strcmp(systems[i]->name, system))
            c.system = systems[i];
    if (!c.system)
        return sl_fail(err, SL_NOT_FOUND, "there is no system '%s'", system);
    int rc = prepare(&c);
    if (!rc)
        rc = loop(&c);
    if (!rc)
        sum_up(&c);
    if (c.state)
        c.system->destroy(&c);
    free(c.job);
    agenda_finish(&c.agenda);
    free(c.wait_s);
    if (rc)
        closed_result_finish(&result);
    else
        *out = result;
    return rc;
}

void closed_result_finish(struct closed_result *r)
{
    free(r->sample);
    *r = (struct closed_result){ 0 };
}
