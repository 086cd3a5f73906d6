/* The gate against a fake broker; the test is the driver and completes by hand. */
#include "front_test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "front/gate.h"

#define LATER (clock_now_ns() + 3600 * NS_PER_S)

static struct fake_broker b;
static struct link l;
static struct gates gs;
static struct gate *g = &gs.gate[0];
static struct gate_queue q, q2;
static struct cost_table costs;
static struct cost_entry *unseen;

/* Predicted to take so long, whatever the gate has learned meanwhile. */
static struct cost_entry *known(uint64_t kernel, uint64_t ns)
{
    struct cost_entry *e = cost_find(&costs, kernel, 1, 1);
    atomic_store(&e->ns, ns);
    return e;
}
#define US10 known(10, 10 * NS_PER_US)
#define MS1  known(1000, NS_PER_MS)

/* ---- the driver -------------------------------------------------------- */

static _Atomic(struct gate_batch *) marked, opened[16];
static _Atomic uint32_t marks, opens, complete_marks;

static bool on_mark(struct gate_queue *queue, struct gate_batch *token)
{
    atomic_store(&marked, token);
    atomic_fetch_add(&marks, 1);
    if (atomic_load(&complete_marks))
        gate_completed(token);
    return true;
}

static bool on_open(void *front, struct gate_batch *token)
{
    assert_ptr_equal(front, &opens);
    atomic_store(&opened[atomic_load(&opens) % 16], token);
    atomic_fetch_add(&opens, 1);
    return true;
}

static const struct gate_ops ops = { .mark = on_mark, .open = on_open };

static struct gate_batch *submit(struct gate_queue *queue, struct cost_entry *e)
{
    struct gate_batch *token = gate_enter(queue, e, GATE_KERNEL);
    gate_leave(queue);
    return token;
}

/* A submit on a thread of its own, because it waits. */
static __thread bool in_call;

struct call {
    pthread_t thread;
    struct gate_queue *queue;
    struct cost_entry *entry;
    struct gate_batch *token;
    _Atomic uint32_t done;
};

static void *run_call(void *arg)
{
    struct call *c = arg;
    in_call = true;
    c->token = submit(c->queue, c->entry);
    atomic_store(&c->done, 1);
    return NULL;
}

static void begin(struct call *c, struct gate_queue *queue, struct cost_entry *e)
{
    *c = (struct call){ .queue = queue, .entry = e };
    assert_int_equal(pthread_create(&c->thread, NULL, run_call, c), 0);
}

static struct gate_batch *finish(struct call *c)
{
    eventually(atomic_load(&c->done));
    pthread_join(c->thread, NULL);
    return c->token;
}

static uint32_t flight_waiters(void)
{
    pthread_mutex_lock(&g->lock);
    uint32_t n = g->flight_waiters;
    pthread_mutex_unlock(&g->lock);
    return n;
}

static uint32_t turn_word(void)
{
    return atomic_load(&fake_slot(&b, 0)->state);
}

static int setup_share(uint32_t permille)
{
    memset(&b, 0, sizeof b);
    memset(&costs, 0, sizeof costs);
    b.mode = PROTO_HARD;
    b.request_permille = b.limit_permille = permille;
    fake_start(&b);
    assert_int_equal(link_open(&l, b.path, NULL), 0);
    gates_init(&gs, &l, &ops);
    gate_queue_init(&q, g, NULL);
    gate_queue_init(&q2, g, NULL);
    unseen = cost_find(&costs, 5, 1, 1);
    atomic_store(&marks, 0);
    atomic_store(&opens, 0);
    atomic_store(&complete_marks, 0);
    return 0;
}

static int setup(void **state)
{
    return setup_share(500);
}

static int teardown(void **state)
{
    gates_finish(&gs);
    link_close(&l);
    fake_end(&b);
    return 0;
}

/* ---- rows -------------------------------------------------------------- */

/* What happens between asking for a turn and sleeping for it; and how often a call slept
 * until its time was up, which nothing but a lost wake explains. */
static _Atomic uint32_t flickers, timeouts;

bool __real_link_want(struct link *link, uint32_t slot);
bool __wrap_link_want(struct link *link, uint32_t slot);
bool __wrap_link_want(struct link *link, uint32_t slot)
{
    bool sent = __real_link_want(link, slot);
    if (atomic_exchange(&flickers, 0)) {
        fake_grant(&b, slot, SLOT_OPEN);
        assert_true(fake_take_idle(&b, slot));
    }
    return sent;
}

long __real_syscall(long number, long a, long b2, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b2, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b2, long c, long d, long e, long f)
{
    long code = __real_syscall(number, a, b2, c, d, e, f);
    if (in_call && number == SYS_futex && code < 0 && errno == ETIMEDOUT)
        atomic_fetch_add(&timeouts, 1);
    return code;
}

/* The front's thread may be anywhere when it is its turn. */
static void flickering_turn(void **state)
{
    struct call c;
    atomic_store(&timeouts, 0);
    atomic_store(&flickers, 1);
    begin(&c, &q, US10);
    eventually(atomic_load(&b.wants) == 2);
    assert_int_equal(atomic_load(&timeouts), 0);
    fake_grant(&b, 0, SLOT_OPEN);
    assert_null(finish(&c));
}

static void grant(void **state)
{
    struct call c;
    assert_int_equal(gs.count, 2);
    begin(&c, &q, US10);
    eventually(atomic_load(&b.wants) == 1);
    eventually(atomic_load(&fake_slot(&b, 0)->waiting) == 1);
    assert_int_equal(atomic_load(&c.done), 0);
    fake_grant(&b, 0, SLOT_OPEN);
    assert_null(finish(&c));
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->waiting), 0);
    assert_int_equal(atomic_load(&b.wants), 1);
}

/* `count` commands of 10 us fill a batch. */
static void fill_batch(uint64_t deadline_ns, uint64_t count)
{
    fake_grant(&b, 0, deadline_ns);
    for (uint64_t i = 0; i < count - 2; i++)
        assert_null(submit(&q, US10));
    assert_null(gate_enter(&q, US10, GATE_COPY));
    gate_leave(&q);
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    struct gate_batch *closing = submit(&q, US10);
    assert_non_null(closing);
    struct proto_slot *s = fake_slot(&b, 0);
    assert_true(atomic_load(&s->predicted_end_ns) > clock_now_ns());
    gate_completed(closing);
    assert_int_equal(turn_word(), SLOT_HELD);
    assert_true(atomic_load(&s->idle_since_ns) > 0);
    assert_int_equal(atomic_load(&s->submitted), count);
    assert_int_equal(atomic_load(&s->completed), count);
    assert_int_equal(atomic_load(&s->kernels), count - 1);
    assert_int_equal(atomic_load(&s->copies), 1);
    assert_int_equal(g->flight_ns, 0);
}

static void batch(void **state)
{
    fill_batch(clock_now_ns() + 100 * NS_PER_S, 20);
}

static void batch_open(void **state)
{
    fill_batch(SLOT_OPEN, 50);
}

static void sensed(void **state)
{
    fake_grant(&b, 0, SLOT_OPEN);
    struct gate_batch *one = submit(&q, MS1);
    assert_non_null(one);
    struct gate_batch *two = submit(&q, unseen);
    assert_non_null(two);
    assert_int_equal(turn_word(), SLOT_HELD | 2);
    gate_completed(one);
    gate_completed(two);
    gate_completed(two); /* a second call finds it dead */
    assert_true(cost_predict(unseen) > 0);
    assert_int_equal(turn_word(), SLOT_HELD);
    assert_null(submit(&q, US10));
    assert_non_null(submit(&q, MS1)); /* joins the open batch and closes it */
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    assert_null(submit(&q, NULL) ? NULL : &q); /* no entry is unknown */
}

static void deadline(void **state)
{
    struct call c;
    fake_grant(&b, 0, LATER);
    struct gate_batch *one = submit(&q, MS1);
    fake_set_deadline(&b, 0, clock_now_ns());
    begin(&c, &q, MS1);
    eventually(flight_waiters() == 1);
    assert_int_equal(atomic_load(&c.done), 0);
    pthread_mutex_lock(&g->lock);
    g->gap_ns = NS_PER_S; /* so that only the waiter counts */
    pthread_mutex_unlock(&g->lock);
    gate_completed(one);
    eventually(atomic_load(&b.releases) == 1);
    assert_int_equal(atomic_load(&b.releases_more), 1);
    assert_int_equal(turn_word(), SLOT_NONE);
    assert_int_equal(atomic_load(&b.wants), 0); /* the release is the request */
    fake_grant(&b, 0, LATER);
    gate_completed(finish(&c));
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void deadline_idle(void **state)
{
    fake_grant(&b, 0, LATER);
    gate_completed(submit(&q, MS1));
    usleep(20000); /* it pauses for longer than the broker keeps a turn */
    struct gate_batch *one = submit(&q, MS1);
    fake_set_deadline(&b, 0, clock_now_ns());
    gate_completed(one);
    eventually(atomic_load(&b.releases) == 1);
    assert_int_equal(atomic_load(&b.releases_more), 0);
    assert_int_equal(turn_word(), SLOT_NONE);
}

static void deadline_wait(void **state)
{
    fake_grant(&b, 0, LATER);
    struct gate_batch *one = submit(&q, MS1);
    fake_set_deadline(&b, 0, clock_now_ns());
    usleep(5000); /* a long kernel; the program waits for it */
    gate_completed(one);
    eventually(atomic_load(&b.releases) == 1);
    assert_int_equal(atomic_load(&b.releases_more), 1);
}

static void drain(void **state)
{
    fake_grant(&b, 0, LATER);
    assert_null(submit(&q, US10));
    uint64_t stale = gate_ticket(&q);
    assert_null(submit(&q, US10));
    gate_drained(&q, stale); /* more was submitted since */
    assert_int_equal(turn_word(), SLOT_HELD | 1);

    assert_null(gate_enter(&q, US10, GATE_KERNEL));
    gate_drained(&q, gate_ticket(&q)); /* somebody is about to submit */
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    gate_leave(&q);

    gate_drained(&q, gate_ticket(&q));
    assert_int_equal(turn_word(), SLOT_HELD);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->submitted), 3);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->completed), 3);
    assert_int_equal(g->flight_ns, 0);
    gate_drained(&q, gate_ticket(&q));
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void drained_past_deadline(void **state)
{
    fake_grant(&b, 0, LATER);
    assert_null(gate_enter(&q, US10, GATE_KERNEL));
    fake_set_deadline(&b, 0, clock_now_ns());
    gate_leave(&q);
    gate_drained(&q, gate_ticket(&q));
    /* either the drain or, if it looked first, the thread's marker ends it */
    if (atomic_load(&marks))
        gate_completed(atomic_load(&marked));
    eventually(atomic_load(&b.releases) == 1);
    assert_int_equal(turn_word(), SLOT_NONE);
}

/* Keep a WANT young, so that it is not repeated for its age. */
static void refresh_want(void)
{
    pthread_mutex_lock(&g->lock);
    g->wanted_ns = clock_now_ns();
    pthread_mutex_unlock(&g->lock);
}

static void revoked_idle(void **state)
{
    struct call c;
    fake_grant(&b, 0, LATER);
    gate_completed(submit(&q, MS1));
    assert_true(fake_take_idle(&b, 0));
    begin(&c, &q, MS1);
    eventually(atomic_load(&b.wants) == 1);
    /* granted and taken back before anybody looked: ask again */
    atomic_fetch_add(&fake_slot(&b, 0)->grants, 1);
    eventually((refresh_want(), atomic_load(&b.wants) == 2));
    fake_grant(&b, 0, LATER);
    gate_completed(finish(&c));
}

static void passed_over(void **state)
{
    fake_grant(&b, 0, LATER);
    struct gate_batch *late = submit(&q, MS1);
    fake_pass_over(&b, 0);
    gate_completed(late);
    assert_int_equal(turn_word(), SLOT_NONE);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->completed), 1);

    fake_grant(&b, 0, LATER);
    late = submit(&q, MS1);
    fake_pass_over(&b, 0);
    fake_grant(&b, 0, LATER);
    struct gate_batch *next = submit(&q, MS1);
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    gate_completed(late); /* of an older turn */
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    gate_completed(next);
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void passed_over_open(void **state)
{
    struct call c;
    fake_grant(&b, 0, LATER);
    assert_null(submit(&q, US10));
    fake_pass_over(&b, 0);
    begin(&c, &q, US10);
    eventually(atomic_load(&marks) == 1);
    eventually(atomic_load(&b.wants) == 1);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->completed), 0);
    gate_completed(atomic_load(&marked));
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->completed), 1);
    fake_grant(&b, 0, LATER);
    assert_null(finish(&c));
    assert_int_equal(turn_word(), SLOT_HELD | 1);
}

static void flight_bound(void **state)
{
    struct call c;
    fake_grant(&b, 0, SLOT_OPEN);
    struct gate_batch *one = submit(&q, MS1);
    struct gate_batch *two = submit(&q2, MS1);
    begin(&c, &q, MS1);
    eventually(flight_waiters() == 1);
    assert_int_equal(atomic_load(&c.done), 0);
    gate_completed(one);
    struct gate_batch *three = finish(&c);
    gate_completed(two);
    gate_completed(three);
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void bound_of_open_batches(void **state)
{
    static struct gate_queue many[12];
    struct call c;
    fake_grant(&b, 0, SLOT_OPEN);
    atomic_store(&complete_marks, 1);
    for (int i = 0; i < 12; i++) {
        gate_queue_init(&many[i], g, NULL);
        assert_null(submit(&many[i], US10)); /* reserves 200 us each */
    }
    assert_in_range(atomic_load(&marks), 2, 12);
    begin(&c, &q, MS1);
    gate_completed(finish(&c));
    for (int i = 0; i < 12; i++)
        gate_queue_finish(&many[i]);
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void unseen_alone(void **state)
{
    struct call c;
    fake_grant(&b, 0, LATER);
    struct gate_batch *one = submit(&q2, MS1);
    begin(&c, &q, unseen);
    eventually(flight_waiters() == 1);
    assert_int_equal(atomic_load(&c.done), 0);
    gate_completed(one);
    gate_completed(finish(&c));
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void tail(void **state)
{
    fake_grant(&b, 0, LATER);
    assert_null(submit(&q, US10));
    eventually(atomic_load(&marks) == 1);
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    gate_completed(atomic_load(&marked));
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void seldom(void **state)
{
    fake_grant(&b, 0, LATER);
    assert_null(submit(&q, US10));
    eventually(atomic_load(&marks) == 1);
    gate_completed(atomic_load(&marked));
    usleep(5000);
    for (int i = 0; i < 3; i++) {
        struct gate_batch *token = submit(&q, US10);
        assert_non_null(token);
        usleep(5000);
        gate_completed(token);
        assert_int_equal(turn_word(), SLOT_HELD);
    }
    fake_set_deadline(&b, 0, SLOT_OPEN); /* alone it does not matter */
    assert_null(submit(&q, US10));
}

static void tail_at_deadline(void **state)
{
    fake_grant(&b, 0, SLOT_OPEN);
    assert_null(gate_enter(&q, US10, GATE_KERNEL)); /* still submitting */
    fake_set_deadline(&b, 0, clock_now_ns());
    eventually(atomic_load(&marks) == 1);
    gate_leave(&q);
    gate_completed(atomic_load(&marked));
    eventually(atomic_load(&b.releases) == 1);
    assert_int_equal(turn_word(), SLOT_NONE);
}

static void unsensed(void **state)
{
    fake_grant(&b, 0, LATER);
    struct gate_batch *token = submit(&q, MS1);
    gate_unsensed(token);
    eventually(atomic_load(&marks) == 1);
    assert_ptr_equal(atomic_load(&marked), token);
    gate_completed(token);
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void deferred(void **state)
{
    fake_grant(&b, 0, SLOT_OPEN);
    assert_null(submit(&q, US10));
    struct gate_deferred *d = gate_defer(&q, US10, GATE_KERNEL, &opens);
    assert_int_equal(atomic_load(&marks), 1); /* before it, or it never completes */
    gate_completed(atomic_load(&marked));
    assert_true(fake_take_idle(&b, 0));
    gate_defer_cancel(gate_defer(&q, US10, GATE_KERNEL, &opens));

    assert_int_equal(atomic_load(&b.wants), 0);
    gate_defer_ready(d);
    eventually(atomic_load(&b.wants) == 1);
    assert_int_equal(atomic_load(&opens), 0);
    fake_grant(&b, 0, LATER);
    eventually(atomic_load(&opens) == 1);
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    gate_completed(atomic_load(&opened[0]));
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void many_deferred(void **state)
{
    struct gate_deferred *d[GATE_DEFERRED];
    fake_grant(&b, 0, LATER);
    atomic_store(&fake_slot(&b, 0)->flight_bound_ns, 0);
    for (uint32_t i = 0; i < GATE_DEFERRED; i++)
        assert_non_null(d[i] = gate_defer(&q, MS1, GATE_KERNEL, &opens));
    assert_null(gate_defer(&q, MS1, GATE_KERNEL, &opens));
    for (uint32_t i = 0; i < 10; i++)
        gate_defer_ready(d[i]);
    for (uint32_t i = 0; i < 10; i++) {
        eventually(atomic_load(&opens) > i);
        assert_true(atomic_load(&opens) <= i + 2); /* in flight at once */
        gate_completed(atomic_load(&opened[i]));
    }
    for (uint32_t i = 10; i < GATE_DEFERRED; i++)
        gate_defer_cancel(d[i]);
}

static void nowait(void **state)
{
    struct gate_batch *token = gate_enter_nowait(&q, US10, GATE_KERNEL);
    gate_leave(&q);
    assert_non_null(token);
    eventually(atomic_load(&b.wants) == 1);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->ungated), 1);
    gate_completed(token);
    fake_grant(&b, 0, clock_now_ns()); /* past the deadline it goes too */
    token = gate_enter_nowait(&q, MS1, GATE_KERNEL);
    gate_leave(&q);
    assert_int_equal(turn_word(), SLOT_HELD | 1);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->ungated), 1);
    gate_completed(token);
    assert_int_equal(turn_word(), SLOT_NONE);
    for (uint32_t i = 0; i < 2 * GATE_BATCHES; i++) { /* more than there are records */
        gate_enter_nowait(&q, MS1, GATE_KERNEL);
        gate_leave(&q);
    }
    assert_int_equal(g->flight_items, GATE_BATCHES);
    assert_false(atomic_load(&fake_slot(&b, 0)->ungated) == 1);
}

static void queue_end(void **state)
{
    fake_grant(&b, 0, SLOT_OPEN);
    assert_null(submit(&q, US10));
    struct gate_batch *closed = submit(&q, MS1);
    assert_null(submit(&q, US10));
    gate_queue_finish(&q);
    assert_int_equal(atomic_load(&marks), 1);
    memset(&q, 0xff, sizeof q); /* the front frees it */
    gate_completed(closed);
    gate_completed(atomic_load(&marked));
    assert_int_equal(turn_word(), SLOT_HELD);
}

static void broker_lost(void **state)
{
    struct call c;
    struct proto_page *old = link_page(&l);
    fake_grant(&b, 0, SLOT_OPEN);
    struct gate_batch *before = submit(&q, MS1);
    atomic_store(&old->slot[0].state, SLOT_NONE); /* taken, then the broker dies */
    fake_kill(&b);
    for (int i = 0; i < 5; i++)
        gate_completed(submit(&q, MS1)); /* at its own rate */
    gate_completed(before);
    fake_start(&b);
    eventually(link_check(&l));
    atomic_store(&b.auto_grant, 1);
    begin(&c, &q, MS1);
    gate_completed(finish(&c));
    assert_ptr_not_equal(link_page(&l), old);
    assert_int_equal(turn_word(), SLOT_HELD);
    assert_int_equal(atomic_load(&fake_slot(&b, 0)->submitted), 1);
}

static void lost_while_waiting(void **state)
{
    struct call c;
    begin(&c, &q, MS1);
    eventually(atomic_load(&b.wants) == 1);
    fake_kill(&b);
    gate_completed(finish(&c));
    fake_start(&b);
}

static int child(void)
{
    for (int i = 0; i < 100; i++)
        if (submit(&q, MS1) || submit(&q, US10))
            return 1;
    if (gate_enter_nowait(&q, MS1, GATE_KERNEL) || gate_defer(&q, MS1, GATE_KERNEL, NULL))
        return 2;
    gate_drained(&q, gate_ticket(&q));
    /* A link of its own, in the same memory, does not revive the parent's gates. */
    if (link_open(&l, b.path, NULL) != 0)
        return 3;
    for (int i = 0; i < 100; i++)
        if (submit(&q, MS1) || submit(&q2, US10))
            return 4;
    gate_queue_finish(&q);
    gates_finish(&gs);
    return 0;
}

static void forked(void **state)
{
    int status;
    struct proto_slot *parents = fake_slot(&b, 0);
    fake_grant(&b, 0, LATER);
    assert_null(submit(&q, US10));
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&parents->state), SLOT_HELD | 1); /* untouched */
    assert_int_equal(atomic_load(&parents->submitted), 1);
}

/* ---- many threads ------------------------------------------------------ */

static void *hammer(void *arg)
{
    struct gate_queue *queue = arg;
    for (int i = 0; i < 3000; i++) {
        struct cost_entry *e = i % 64 == 63 ? MS1 : US10;
        struct gate_batch *token = i % 100 == 99 ? gate_enter_nowait(queue, e, GATE_COPY)
                                                 : gate_enter(queue, e, GATE_KERNEL);
        gate_leave(queue);
        if (token && i % 500 == 0)
            gate_unsensed(token);
        else if (token)
            gate_completed(token);
        else if (i % 10 == 0)
            gate_drained(queue, gate_ticket(queue));
    }
    return NULL;
}

static void threads(void **state)
{
    pthread_t t[8];
    atomic_store(&complete_marks, 1);
    atomic_store(&b.auto_grant, 1);
    atomic_store(&b.turn_ns, 2 * NS_PER_MS);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, hammer, i % 2 ? &q : &q2);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    gate_queue_finish(&q);
    gate_queue_finish(&q2);
    struct proto_slot *s = fake_slot(&b, 0);
    eventually(SLOT_FLIGHT(turn_word()) == 0);
    assert_int_equal(g->flight_items, 0);
    assert_int_equal(g->flight_ns, 0);
    assert_int_equal(atomic_load(&s->submitted), atomic_load(&s->completed));
    assert_true(atomic_load(&s->kernels) + atomic_load(&s->copies) <= 8 * 3000);
    assert_true(atomic_load(&s->kernels) + atomic_load(&s->copies) +
                    atomic_load(&s->ungated) >=
                8 * 3000);
}

static _Atomic uint32_t enough;

static void *spend(void *spends)
{
    struct cost_entry *e = known(10, NS_PER_US);
    while (!atomic_load(&enough)) {
        struct gate_batch *token = gate_enter(&q, e, GATE_KERNEL);
        gate_leave(&q);
        if (token)
            gate_completed(token);
        if (++*(uint64_t *)spends % 4096 == 0)
            sched_yield();
    }
    return NULL;
}

/* A command that cannot run yet closes the batch before it, whatever the owner is at. */
static void closed_by_another(void **state)
{
    struct proto_slot *s = fake_slot(&b, 0);
    uint64_t spends = 0;
    pthread_t owner;
    atomic_store(&enough, 0);
    atomic_store(&complete_marks, 1);
    fake_grant(&b, 0, SLOT_OPEN);
    pthread_create(&owner, NULL, spend, &spends);
    while (atomic_load(&marks) < 400)
        gate_defer_cancel(gate_defer(&q, MS1, GATE_KERNEL, NULL));
    atomic_store(&enough, 1);
    pthread_join(owner, NULL);
    gate_queue_finish(&q);
    assert_int_equal(turn_word(), SLOT_HELD);
    assert_int_equal(g->flight_ns, 0);
    assert_int_equal(atomic_load(&s->kernels), spends);
    assert_int_equal(atomic_load(&s->submitted), atomic_load(&s->completed));
}

/* The owner's thread was interrupted between its look at the word and its store. */
static void spend_late(void)
{
    uint64_t command = ((uint64_t)NS_PER_US << GATE_SPENT_NS_SHIFT) + 1;
    atomic_store(&q.spent, atomic_load(&q.spent) + command);
    gate_leave(&q);
}

static void spent_late(void **state)
{
    struct proto_slot *s = fake_slot(&b, 0);
    fake_grant(&b, 0, LATER);
    assert_null(submit(&q, US10));
    assert_null(submit(&q, US10));
    gate_drained(&q, gate_ticket(&q));
    spend_late();
    assert_int_equal(atomic_load(&s->kernels), 2);
    assert_null(submit(&q, US10));
    gate_drained(&q, gate_ticket(&q));
    assert_int_equal(atomic_load(&s->kernels), 4);
    spend_late();
    gate_queue_finish(&q);
    assert_int_equal(atomic_load(&s->kernels), 5);
    assert_int_equal(turn_word(), SLOT_HELD);
    assert_int_equal(g->flight_ns, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest rows[] = {
        row("a submit asks for the turn, waits, and goes when it is granted", grant),
        row("a batch takes 200 us of predicted work; its last command is sensed", batch),
        row("in a turn without an end it takes 500 us", batch_open),
        row("long, unseen and unknown commands are sensed each", sensed),
        row("after the deadline the last completion releases, with more when one waits",
            deadline),
        row("a program that pauses long releases without more", deadline_idle),
        row("a program that waits for its kernel releases with more", deadline_wait),
        row("a drained queue gives the reserved rest back, unless more was submitted",
            drain),
        row("a drain after the deadline releases", drained_past_deadline),
        row("an idle turn taken away is asked for again", revoked_idle),
        row("a turn granted and taken before the asker sleeps is asked for again",
            flickering_turn),
        row("a completion after the broker passed over leaves the turn word alone",
            passed_over),
        row("an open batch passed over is marked before the next turn", passed_over_open),
        row("no more in flight than two milliseconds or two batches", flight_bound),
        row("open batches of many queues do not block each other", bound_of_open_batches),
        row("an unseen kernel goes alone while someone else waits", unseen_alone),
        row("a tail that nothing senses is marked by the thread", tail),
        row("who submits seldom is sensed each time, while the turn has an end", seldom),
        row("a batch open at the deadline is marked, even below a submit",
            tail_at_deadline),
        row("a command that could not be sensed is marked", unsensed),
        row("a deferred command is opened under a turn of its own", deferred),
        row("deferred commands respect the bound and their table its size", many_deferred),
        row("in a callback nothing waits: it is charged", nowait),
        row("a queue that ends leaves its batches to their completions", queue_end),
        row("without a broker it goes on at its last rate, then on the new page",
            broker_lost),
        row("who waits when the broker dies goes on", lost_while_waiting),
        row("a forked child passes everything and touches nothing", forked),
        row("eight threads on two queues leave nothing in flight", threads),
        row("what the owner spends while another thread closes its batches counts once",
            closed_by_another),
        row("what the owner spends just after its batch was closed counts in the next",
            spent_late),
    };
    return cmocka_run_group_tests(rows, NULL, NULL);
}
