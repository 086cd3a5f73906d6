/* What one submit pays at the gate: nanoseconds per gate_enter() + gate_leave().
 * The turn is held for the whole run (a fake broker), nothing is submitted. */
#include <stdio.h>
#include <string.h>

#include "broker.h"
#include "core/clock.h"
#include "front/gate.h"

#define ROUNDS   200
#define COMMANDS 2000

static struct fake_broker broker;
static struct link l;
static struct gates gs;
static struct cost_table costs;

static bool mark(struct gate_queue *q, struct gate_batch *token)
{
    return false;
}

static bool open_deferred(void *front, struct gate_batch *token)
{
    return false;
}

static const struct gate_ops ops = { .mark = mark, .open = open_deferred };

/* Nanoseconds per command of predicted cost `ns`; with `drain` each one is
 * followed by a wait for the empty queue. */
static double measure(struct gate_queue *q, uint64_t ns, bool drain)
{
    struct cost_entry *e = cost_find(&costs, ns, 1, 1);
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_now_ns();
        for (int i = 0; i < COMMANDS; i++) {
            atomic_store_explicit(&e->ns, ns, memory_order_relaxed);
            struct gate_batch *b = gate_enter(q, e, GATE_KERNEL);
            gate_leave(q);
            if (b)
                gate_completed(b);
            else if (drain)
                gate_drained(q, gate_ticket(q));
        }
        uint64_t took = clock_now_ns() - start;
        best = took < best ? took : best;
    }
    return (double)best / COMMANDS;
}

int main(void)
{
    static struct gate_queue q;
    struct sl_err err;
    broker.request_permille = broker.limit_permille = 1000;
    atomic_store(&broker.auto_grant, 1);
    fake_start(&broker);
    if (link_open(&l, broker.path, &err) != 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    gates_init(&gs, &l, &ops);
    gate_queue_init(&q, &gs.gate[0], NULL);

    static const struct {
        const char *label;
        uint64_t ns;
        bool drain;
    } rows[] = {
        { "inside an open batch (a batch of 1500)", 130, false },
        { "2 us commands, one in 100 sensed", 2000, false },
        { "launch, wait, launch", 2000, true },
        { "1 ms commands, each sensed", 1000000, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("%-42s %7.1f ns\n", rows[i].label, measure(&q, rows[i].ns, rows[i].drain));

    gate_queue_finish(&q);
    gates_finish(&gs);
    link_close(&l);
    fake_end(&broker);
    return 0;
}
