/*
 * The simulated node of sim.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sim.h"

#define CALLBACK_NS (5 * NS_PER_US) /* from a command's end to the front's knowing */
#define JITTER_NS   (20 * NS_PER_US)

struct command {
    struct command *next; /* in the device's queue */
    struct command *peer; /* collective: ring of the commands that run together */
    struct sim_process *process;
    uint32_t slot, grants;
    uint64_t cost_ns, begin_ns;
    bool running, done;
};

struct sim_process {
    struct sim_program program;
    struct proto_page page;
    uint64_t lease;
    uint32_t client, slot_count;
    bool alive, stopped, suspect, ready; /* ready: the program has something to submit */
    bool woken;                          /* while stopped */
    uint32_t in_batch;                   /* submitted of the present batch */
    uint32_t flight[PROTO_MAX_SLOTS];    /* all commands, of whatever turn */
    uint64_t flight_ns[PROTO_MAX_SLOTS];
    bool asked[PROTO_MAX_SLOTS];
    uint32_t asked_grants[PROTO_MAX_SLOTS]; /* a turn may come and go before we see it */
    bool has[PROTO_MAX_SLOTS];              /* collective: this slot's part is submitted */
    struct command *ring[PROTO_MAX_SLOTS];
    struct command *hung;
    uint64_t asked_ns[PROTO_MAX_SLOTS], longest_wait_ns;
    uint64_t submitted, completed, busy_ns, messages, awake_ns;
};

struct sim_dev {
    uint32_t index;
    bool concurrent;
    struct command *head, *tail;
};

enum kind {
    EV_DONE,
    EV_CALLBACK,
    EV_WANT,
    EV_RELEASE,
    EV_RELEASE_MORE,
    EV_WAKE,
    EV_READY,
    EV_TIMER
};

struct event {
    uint64_t at_ns, order;
    enum kind kind;
    uint32_t slot;
    void *object;
};

struct sim {
    struct ledger *ledger;
    uint64_t now_ns, order, timer_ns, random, last_check_ns;
    uint64_t message_ns, wake_ns, late_ns;
    struct event *heap;
    uint32_t heap_count, heap_size;
    struct sim_dev dev[PROTO_MAX_DEVICES];
    struct sim_process *process[SIM_MAX_PROCS];
    uint32_t process_count;
    struct command *free_commands;
    struct {
        uint64_t number;
        uint32_t device[PROTO_MAX_SLOTS], count;
    } lease[SIM_MAX_LEASES];
    uint32_t lease_count;
};

/* ---- events -------------------------------------------------------------- */

static uint64_t sim_random(struct sim *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

static uint64_t jitter(struct sim *s)
{
    return sim_random(s) % JITTER_NS;
}

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void post(struct sim *s, uint64_t at_ns, enum kind kind, void *object, uint32_t slot)
{
    if (s->heap_count == s->heap_size) {
        s->heap_size = s->heap_size ? s->heap_size * 2 : 1024;
        s->heap = realloc(s->heap, s->heap_size * sizeof(*s->heap));
    }
    struct event e = { at_ns, s->order++, kind, slot, object };
    uint32_t i = s->heap_count++;
    while (i > 0 && earlier(&e, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = e;
}

static struct event take_event(struct sim *s)
{
    struct event first = s->heap[0], last = s->heap[--s->heap_count];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= s->heap_count)
            break;
        if (child + 1 < s->heap_count && earlier(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!earlier(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return first;
}

/* ---- devices --------------------------------------------------------------- */

static struct command *command_new(struct sim *s)
{
    struct command *c = s->free_commands;
    if (c)
        s->free_commands = c->next;
    else
        c = malloc(sizeof(*c));
    memset(c, 0, sizeof(*c));
    return c;
}

static struct sim_dev *dev_of(struct sim *s, const struct sim_process *p, uint32_t slot)
{
    for (uint32_t i = 0; i < s->lease_count; i++)
        if (s->lease[i].number == p->lease)
            return &s->dev[s->lease[i].device[slot]];
    abort();
}

/* Run what stands first; a collective one only where all its peers stand first. */
static void dev_kick(struct sim *s, struct sim_dev *d)
{
    struct command *c = d->head;
    if (!c || c->running)
        return;
    c->running = true;
    c->begin_ns = s->now_ns;
    if (c->process->program.collective) {
        if (!c->peer)
            return; /* not all submitted yet */
        for (struct command *o = c->peer; o != c; o = o->peer)
            if (!o->running)
                return;
        for (struct command *o = c->peer; o != c; o = o->peer)
            post(s, s->now_ns + o->cost_ns, EV_DONE, o, 0);
    }
    post(s, s->now_ns + c->cost_ns, EV_DONE, c, 0);
}

static void dev_submit(struct sim *s, struct sim_dev *d, struct command *c)
{
    if (c->cost_ns >= SIM_HANGS) { /* spins on its own; what others do is still seen */
        c->next = c->process->hung;
        c->process->hung = c;
        return;
    }
    c->next = NULL;
    if (d->head)
        d->tail->next = c;
    else
        d->head = c;
    d->tail = c;
    dev_kick(s, d);
}

static void dev_done(struct sim *s, struct command *c)
{
    struct sim_process *p = c->process;
    struct sim_dev *d = dev_of(s, p, c->slot);
    d->head = c->next;
    p->busy_ns += s->now_ns - c->begin_ns;
    post(s, s->now_ns + CALLBACK_NS, EV_CALLBACK, c, c->slot);
    dev_kick(s, d);
}

/* ---- the front --------------------------------------------------------------- */

static void send(struct sim *s, struct sim_process *p, uint32_t slot, enum kind kind)
{
    if (p->suspect)
        return;
    p->messages++;
    post(s, s->now_ns + s->message_ns + jitter(s), kind, p, slot);
}

static bool gives_back(struct sim *s, struct sim_process *p, uint32_t slot)
{
    struct proto_slot *page = &p->page.slot[slot];
    uint32_t expected = SLOT_HELD;
    if (p->program.liar ||
        !atomic_compare_exchange_strong(&page->state, &expected, SLOT_NONE))
        return false;
    return true;
}

static void note_asked(struct sim *s, struct sim_process *p, uint32_t slot)
{
    p->asked[slot] = true;
    p->asked_ns[slot] = s->now_ns;
    p->asked_grants[slot] = atomic_load(&p->page.slot[slot].grants);
}

/* May this slot take one more command now?  Asks, gives back or waits if not. */
static bool gate(struct sim *s, struct sim_process *p, uint32_t slot)
{
    struct proto_slot *page = &p->page.slot[slot];
    uint32_t state = atomic_load(&page->state);

    if (!(state & SLOT_HELD)) {
        bool again = p->asked[slot] && p->asked_grants[slot] != atomic_load(&page->grants);
        if (!p->asked[slot])
            note_asked(s, p, slot);
        else if (!again)
            return false;
        p->asked_grants[slot] = atomic_load(&page->grants);
        send(s, p, slot, EV_WANT);
        return false;
    }
    if (p->asked[slot]) {
        p->asked[slot] = false;
        p->longest_wait_ns = max_u64(p->longest_wait_ns, s->now_ns - p->asked_ns[slot]);
    }
    if (s->now_ns >= atomic_load(&page->deadline_ns) && !p->program.liar) {
        if (SLOT_FLIGHT(state) == 0 && gives_back(s, p, slot)) {
            note_asked(s, p, slot);
            send(s, p, slot, EV_RELEASE_MORE);
        }
        return false;
    }
    if (p->flight[slot] >= atomic_load(&page->flight_bound_items) &&
        p->flight_ns[slot] + p->program.kernel_ns > atomic_load(&page->flight_bound_ns))
        return false;
    return atomic_compare_exchange_strong(&page->state, &state, state + 1);
}

static struct command *submit(struct sim *s, struct sim_process *p, uint32_t slot)
{
    struct proto_slot *page = &p->page.slot[slot];
    struct command *c = command_new(s);
    c->process = p;
    c->slot = slot;
    c->grants = atomic_load(&page->grants);
    c->cost_ns = p->program.kernel_ns;
    p->flight[slot]++;
    p->flight_ns[slot] += c->cost_ns;
    atomic_fetch_add(&page->submitted, 1);
    atomic_fetch_add(&page->kernels, 1);
    uint64_t end = max_u64(s->now_ns, atomic_load(&page->predicted_end_ns)) + c->cost_ns;
    if (p->program.liar)
        atomic_store(&page->predicted_end_ns, UINT64_MAX);
    else if (c->cost_ns < NS_PER_S) /* else nobody predicted it */
        atomic_store(&page->predicted_end_ns, end);
    return c;
}

static void submit_collective(struct sim *s, struct sim_process *p)
{
    for (uint32_t i = 0; i < p->slot_count; i++) {
        if (p->has[i])
            continue;
        if (!gate(s, p, i))
            return; /* the thread blocks in this call */
        p->has[i] = true;
        p->ring[i] = submit(s, p, i);
        if (i + 1 == p->slot_count)
            for (uint32_t j = 0; j < p->slot_count; j++)
                p->ring[j]->peer = p->ring[(j + 1) % p->slot_count];
        dev_submit(s, dev_of(s, p, i), p->ring[i]);
    }
    memset(p->has, 0, sizeof(p->has));
    p->submitted++;
    p->ready = false;
}

static void work(struct sim *s, struct sim_process *p)
{
    if (!p->alive || p->stopped)
        return;
    if (p->program.collective && p->ready) {
        submit_collective(s, p);
        return;
    }
    while (p->ready && gate(s, p, 0)) {
        dev_submit(s, dev_of(s, p, 0), submit(s, p, 0));
        p->submitted++;
        if (p->program.count && p->submitted >= p->program.count)
            p->ready = false;
        if (p->program.batch && ++p->in_batch == p->program.batch)
            p->ready = false;
    }
}

/* The batch is complete: compute, then go on. */
static void next_batch(struct sim *s, struct sim_process *p)
{
    uint64_t pause = p->program.host_ns;
    p->in_batch = 0;
    if (p->program.idle_every_ns && s->now_ns - p->awake_ns >= p->program.idle_every_ns) {
        pause += p->program.idle_ns;
        p->awake_ns = s->now_ns + pause;
    }
    post(s, s->now_ns + pause, EV_READY, p, 0);
}

static void completed(struct sim *s, struct command *c)
{
    struct sim_process *p = c->process;
    uint32_t slot = c->slot;
    if (p->stopped && p->alive) { /* its threads do not run */
        post(s, s->now_ns + NS_PER_MS, EV_CALLBACK, c, slot);
        return;
    }
    struct proto_slot *page = &p->page.slot[slot];
    uint32_t state = atomic_load(&page->state);
    bool mine = c->grants == atomic_load(&page->grants);

    p->flight[slot]--;
    p->flight_ns[slot] -= c->cost_ns;
    p->completed++;
    c->next = s->free_commands;
    s->free_commands = c;
    if (!p->alive)
        return;
    if (p->program.liar) {
        atomic_store(&page->idle_since_ns, 0);
        atomic_store(&page->completed, atomic_load(&page->submitted));
        work(s, p);
        return;
    }
    atomic_fetch_add(&page->completed, 1);
    if (mine && (state & SLOT_HELD) && SLOT_FLIGHT(state) > 0) {
        if (SLOT_FLIGHT(state) == 1)
            atomic_store(&page->idle_since_ns, s->now_ns);
        atomic_compare_exchange_strong(&page->state, &state, state - 1);
        if (state == (SLOT_HELD | 1) && s->now_ns >= atomic_load(&page->deadline_ns) &&
            gives_back(s, p, slot)) {
            send(s, p, slot, p->program.count && !p->ready ? EV_RELEASE : EV_RELEASE_MORE);
            if (p->ready)
                note_asked(s, p, slot);
        }
    }
    uint32_t in_flight = 0;
    for (uint32_t i = 0; i < p->slot_count; i++)
        in_flight += p->flight[i];
    bool over =
        p->program.collective || (p->program.batch && p->in_batch == p->program.batch);
    if (!p->ready && over && in_flight == 0 &&
        !(p->program.count && p->submitted >= p->program.count))
        next_batch(s, p);
    work(s, p);
}

/* ---- the broker ------------------------------------------------------------- */

static void broker_turn(struct sim *s)
{
    uint64_t next = ledger_run(s->ledger, s->now_ns);
    uint32_t client;
    while ((client = ledger_take_wake(s->ledger)) != UINT32_MAX) {
        struct sim_process *p = s->process[client];
        for (uint32_t i = 0; i < p->slot_count; i++)
            post(s, s->now_ns + s->wake_ns + jitter(s), EV_WAKE, p, i);
    }
    if (next != UINT64_MAX && (next < s->timer_ns || s->timer_ns <= s->now_ns)) {
        s->timer_ns = max_u64(next, s->now_ns) + s->late_ns + jitter(s);
        post(s, s->timer_ns, EV_TIMER, NULL, 0);
    }
    if (s->now_ns - s->last_check_ns > 5 * NS_PER_MS) {
        s->last_check_ns = s->now_ns;
        ledger_check(s->ledger);
    }
}

static void handle(struct sim *s, struct event *e)
{
    struct sim_process *p = e->object;
    switch (e->kind) {
    case EV_DONE:
        dev_done(s, e->object);
        return;
    case EV_CALLBACK:
        completed(s, e->object);
        return;
    case EV_READY:
        p->ready = true;
        work(s, p);
        return;
    case EV_WAKE:
        work(s, p);
        return;
    case EV_WANT:
        if (p->alive)
            ledger_want(s->ledger, p->client, e->slot, s->now_ns);
        break;
    case EV_RELEASE:
    case EV_RELEASE_MORE:
        if (p->alive)
            ledger_release(s->ledger, p->client, e->slot, e->kind == EV_RELEASE_MORE,
                           s->now_ns);
        break;
    case EV_TIMER:
        if (e->at_ns != s->timer_ns)
            return; /* another one was set since */
        break;
    }
    broker_turn(s);
}

void sim_run(struct sim *s, uint64_t until_ns)
{
    broker_turn(s);
    while (s->heap_count && s->heap[0].at_ns <= until_ns) {
        struct event e = take_event(s);
        s->now_ns = e.at_ns;
        handle(s, &e);
    }
    s->now_ns = until_ns;
}

/* ---- setting up ---------------------------------------------------------------- */

struct sim *sim_create(uint32_t seed)
{
    struct sim *s = calloc(1, sizeof(*s));
    s->ledger = ledger_init(calloc(1, ledger_size()));
    s->random = seed * 2654435761u + 88172645463325252u;
    s->now_ns = 1000 * NS_PER_S;
    sim_set_delays(s, 30 * NS_PER_US, 30 * NS_PER_US, 50 * NS_PER_US);
    return s;
}

void sim_destroy(struct sim *s)
{
    while (s->heap_count) {
        struct event e = take_event(s);
        if (e.kind == EV_CALLBACK)
            free(e.object);
    }
    for (uint32_t i = 0; i < PROTO_MAX_DEVICES; i++) {
        for (struct command *c = s->dev[i].head, *next; c; c = next) {
            next = c->next;
            free(c);
        }
    }
    for (struct command *c = s->free_commands, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    for (uint32_t i = 0; i < s->process_count; i++) {
        for (struct command *c = s->process[i]->hung, *next; c; c = next) {
            next = c->next;
            free(c);
        }
        free(s->process[i]);
    }
    free(s->ledger);
    free(s->heap);
    free(s);
}

void sim_set_delays(struct sim *s, uint64_t message_ns, uint64_t wake_ns, uint64_t timer_ns)
{
    s->message_ns = message_ns;
    s->wake_ns = wake_ns;
    s->late_ns = timer_ns;
}

struct ledger *sim_ledger(struct sim *s)
{
    return s->ledger;
}
uint64_t sim_now(const struct sim *s)
{
    return s->now_ns;
}

void sim_device(struct sim *s, uint32_t index, bool concurrent)
{
    struct ledger_device d = { 64ull << 30, 1ull << 30, concurrent };
    s->dev[index].index = index;
    s->dev[index].concurrent = concurrent;
    ledger_set_device(s->ledger, index, &d, s->now_ns);
}

static uint64_t epoch_of(struct sim *s, uint64_t number)
{
    return ledger_lease_epoch(s->ledger, number) + 1;
}

int sim_lease_on(struct sim *s, uint64_t number, enum proto_mode mode, uint32_t request,
                 uint32_t limit, uint32_t priority, const uint32_t *devices, uint32_t count)
{
    struct ledger_lease lease = { .number = number,
                                  .epoch = epoch_of(s, number),
                                  .mode = mode,
                                  .priority = priority,
                                  .slice_count = count };
    for (uint32_t i = 0; i < count; i++)
        lease.slice[i] =
            (struct proto_slice){ devices[i], request, limit, 1ull << 30, 1ull << 30 };
    int rc = ledger_set_lease(s->ledger, &lease, NULL, s->now_ns);
    if (rc || lease.epoch > 1)
        return rc;
    s->lease[s->lease_count].number = number;
    s->lease[s->lease_count].count = count;
    memcpy(s->lease[s->lease_count].device, devices, count * sizeof(*devices));
    s->lease_count++;
    return 0;
}

int sim_lease(struct sim *s, uint64_t number, enum proto_mode mode, uint32_t request,
              uint32_t limit, uint32_t priority)
{
    return sim_lease_on(s, number, mode, request, limit, priority, &(uint32_t){ 0 }, 1);
}

uint32_t sim_process(struct sim *s, uint64_t lease, const struct sim_program *program)
{
    struct sim_process *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
    memset(p, 0, sizeof(*p));
    p->program = *program;
    p->lease = lease;
    p->client = s->process_count;
    p->alive = true;
    for (uint32_t i = 0; i < s->lease_count; i++)
        if (s->lease[i].number == lease)
            p->slot_count = s->lease[i].count;
    s->process[s->process_count++] = p;
    if (ledger_join(s->ledger, p->client, lease, &p->page, s->now_ns))
        abort();
    p->awake_ns = s->now_ns + program->start_ns;
    post(s, p->awake_ns + jitter(s), EV_READY, p, 0);
    return p->client;
}

/* ---- what happens to processes ---------------------------------------------------- */

void sim_kill(struct sim *s, uint32_t client)
{
    struct sim_process *p = s->process[client];
    p->alive = false;
    /* the driver tears down what is queued and not running */
    for (uint32_t i = 0; i < p->slot_count; i++) {
        struct sim_dev *d = dev_of(s, p, i);
        for (struct command *c = d->head; c; c = c->next)
            if (c->process == p && !c->running)
                c->cost_ns = 0;
    }
    ledger_leave(s->ledger, client, s->now_ns);
    ledger_check(s->ledger);
    broker_turn(s);
}

void sim_stop(struct sim *s, uint32_t client)
{
    s->process[client]->stopped = true;
}

void sim_continue(struct sim *s, uint32_t client)
{
    struct sim_process *p = s->process[client];
    p->stopped = false;
    work(s, p);
}

void sim_suspect(struct sim *s, uint32_t client)
{
    s->process[client]->suspect = true;
    ledger_suspect(s->ledger, client, s->now_ns);
    broker_turn(s);
}

/* ---- what came of it ---------------------------------------------------------------- */

struct proto_slice_stat sim_slice(struct sim *s, uint64_t lease, uint32_t slice)
{
    struct proto_ctl m = { 0 };
    if (ledger_stat_lease(s->ledger, lease, &m, s->now_ns) || m.lease_stat.number != lease)
        abort();
    return m.lease_stat.slice[slice];
}

uint64_t sim_held(struct sim *s, uint64_t lease)
{
    return sim_slice(s, lease, 0).held_ns;
}

uint64_t sim_deliverable(struct sim *s, uint32_t device)
{
    struct proto_ctl m = { 0 };
    if (ledger_stat_device(s->ledger, device, &m, s->now_ns))
        abort();
    return m.device_stat.deliverable_ns;
}

#define SUM_OF(field)                               \
    uint64_t sum = 0;                               \
    for (uint32_t i = 0; i < s->process_count; i++) \
        if (s->process[i]->lease == lease)          \
            sum += s->process[i]->field;            \
    return sum

uint64_t sim_completed(const struct sim *s, uint64_t lease)
{
    SUM_OF(completed);
}
uint64_t sim_busy(const struct sim *s, uint64_t lease)
{
    SUM_OF(busy_ns);
}
uint64_t sim_messages(const struct sim *s, uint64_t lease)
{
    SUM_OF(messages);
}

uint64_t sim_take_longest_wait(struct sim *s, uint64_t lease)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < s->process_count; i++) {
        struct sim_process *p = s->process[i];
        if (p->lease != lease)
            continue;
        longest = max_u64(longest, p->longest_wait_ns);
        for (uint32_t j = 0; j < p->slot_count; j++)
            if (p->asked[j] && p->alive && !p->stopped)
                longest = max_u64(longest, s->now_ns - p->asked_ns[j]);
        p->longest_wait_ns = 0;
    }
    return longest;
}

struct proto_slot *sim_slot(struct sim *s, uint32_t client, uint32_t slot)
{
    return &s->process[client]->page.slot[slot];
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* |error| in permille over all windows of `width` samples; sorted. */
static uint32_t window_errors(const uint64_t *held, const uint64_t *all, uint32_t count,
                              uint32_t width, double promise, double *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i + width < count; i++)
        out[n++] = fabs((double)(held[i + width] - held[i]) * 1000 /
                            (double)(all[i + width] - all[i]) -
                        promise);
    qsort(out, n, sizeof(*out), by_size);
    return n;
}

void sim_measure(struct sim *s, uint32_t seconds, const uint64_t *leases,
                 const double *promise, uint32_t count, struct sim_error *out)
{
    static uint64_t held[SIM_MAX_LEASES][SIM_MAX_SAMPLES], all[SIM_MAX_SAMPLES];
    static double errors[SIM_MAX_SAMPLES];
    for (uint32_t t = 0; t <= seconds; t++) {
        if (t > 0)
            sim_run(s, s->now_ns + NS_PER_S);
        all[t] = sim_deliverable(s, 0);
        for (uint32_t i = 0; i < count; i++)
            held[i][t] = sim_held(s, leases[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = window_errors(held[i], all, seconds + 1, 1, promise[i], errors);
        out[i].max_1s = errors[n - 1];
        n = window_errors(held[i], all, seconds + 1, 10, promise[i], errors);
        out[i].p95_10s = errors[n * 95 / 100];
        out[i].max_10s = errors[n - 1];
        out[i].windows_10s = n;
        out[i].disjoint_10s = seconds / 10;
        n = window_errors(held[i], all, seconds + 1, 60, promise[i], errors);
        out[i].p95_60s = n ? errors[n * 95 / 100] : 0;
        out[i].max_60s = n ? errors[n - 1] : 0;
        out[i].mean = (double)(held[i][seconds] - held[i][0]) * 1000 /
                      (double)(all[seconds] - all[0]);
    }
}
