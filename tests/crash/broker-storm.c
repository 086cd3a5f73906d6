/*
 * A storm: for some hundred rounds, processes of three leases take and give
 * bytes, and one of them or the broker is killed, execs, or loses its socket.
 * After each round what the broker charges each process is what that process
 * was told; at the end nothing is left.
 *
 *   broker-storm [rounds] [seed]
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/err.h"
#include "core/macros.h"
#include "live.h"

#define LEASES 3
#define ACTORS 4 /* of each lease */
#define LIMIT  300

static int rounds = 150;
static unsigned seed = 1;

struct player {
    struct actor actor;
    uint64_t lease, held;
};

static struct player players[LEASES * ACTORS];

/* Each actor is the anchor of its lease while it says hello; it stays a client when
 * the anchor moves on. */
static void join(struct live *l, struct player *p)
{
    p->actor = actor_start(l);
    p->held = 0;
    assert_int_equal(live_anchor(l, p->lease, p->actor.pid, 0), 0);
    assert_int_equal(actor_do(&p->actor, ORDER_HELLO, 0, 0).code, 0);
}

static void restart(struct live *l)
{
    /* what was sent and not read dies with the broker: let it read */
    for (size_t i = 0; i < ARRAY_LEN(players); i++)
        assert_int_equal(actor_do(&players[i].actor, ORDER_PING, 0, 0).code, 0);
    live_kill(l, SIGKILL);
    live_start(l);
    assert_int_equal(live_device(l, 0, (1 << 20) + LEASES * LIMIT), 0);
    for (uint64_t lease = 1; lease <= LEASES; lease++)
        assert_int_equal(live_lease(l, lease, LIMIT, 0), 0);
    for (size_t i = 0; i < ARRAY_LEN(players); i++)
        assert_int_equal(actor_do(&players[i].actor, ORDER_HELLO, 1, players[i].held).code,
                         0);
}

static void take(struct player *p, uint64_t bytes)
{
    struct reply r = actor_do(&p->actor, ORDER_RESERVE, bytes, 0);
    if (r.code) {
        assert_int_equal(r.code, -SL_NO_CAPACITY);
        assert_true(r.value < bytes);
        return;
    }
    actor_do(&p->actor, ORDER_COMMIT, bytes, r.value);
    p->held += bytes;
}

static void give(struct player *p, uint64_t bytes)
{
    actor_do(&p->actor, ORDER_FREE, min_u64(bytes, p->held), 0);
    p->held -= min_u64(bytes, p->held);
}

static void strike(struct live *l, struct player *p, unsigned how)
{
    switch (how) {
    case 0:
        restart(l);
        break;
    case 1: /* dies between reserve and commit */
        actor_do(&p->actor, ORDER_RESERVE, 1, 0);
        actor_kill(&p->actor);
        join(l, p);
        break;
    case 2:
        actor_begin(&p->actor, ORDER_EXEC, 0, 0);
        LIVE_UNTIL(live_client(l, p->actor.pid).code);
        actor_kill(&p->actor);
        join(l, p);
        break;
    case 3:
        actor_do(&p->actor, ORDER_CLOSE, 0, 0);
        assert_int_equal(actor_do(&p->actor, ORDER_HELLO, 1, p->held).code, 0);
        break;
    case 4:
        actor_do(&p->actor, ORDER_RAW, 50, how);
        assert_int_equal(actor_do(&p->actor, ORDER_HELLO, 1, p->held).code, 0);
        break;
    default:
        actor_kill(&p->actor);
        join(l, p);
    }
}

static void audit(struct live *l)
{
    uint64_t sum[LEASES + 1] = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(players); i++) {
        struct player *p = &players[i];
        assert_int_equal(actor_do(&p->actor, ORDER_PING, 0, 0).code, 0);
        struct proto_ctl c = live_client(l, p->actor.pid);
        assert_int_equal(c.code, 0);
        assert_int_equal(c.client_stat.lease, p->lease);
        assert_int_equal(c.client_stat.bytes, p->held);
        sum[p->lease] += p->held;
    }
    for (uint64_t lease = 1; lease <= LEASES; lease++) {
        LIVE_UNTIL(live_used(l, lease) == sum[lease]);
        assert_true(sum[lease] <= LIMIT);
    }
}

static void test_storm(void **state)
{
    struct live *l = *state;
    assert_int_equal(live_device(l, 0, (1 << 20) + LEASES * LIMIT), 0);
    for (uint64_t lease = 1; lease <= LEASES; lease++)
        assert_int_equal(live_lease(l, lease, LIMIT, 0), 0);
    unsigned before = live_descriptors(l);
    for (size_t i = 0; i < ARRAY_LEN(players); i++) {
        players[i].lease = 1 + i % LEASES;
        join(l, &players[i]);
    }
    srand(seed);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 5; i++) {
            struct player *p = &players[(unsigned)rand() % ARRAY_LEN(players)];
            if (rand() % 2)
                take(p, 1 + (uint64_t)rand() % 100);
            else
                give(p, 1 + (uint64_t)rand() % 100);
        }
        strike(l, &players[(unsigned)rand() % ARRAY_LEN(players)], (unsigned)rand() % 7);
        audit(l);
    }
    for (size_t i = 0; i < ARRAY_LEN(players); i++)
        actor_kill(&players[i].actor);
    LIVE_UNTIL(live_info(l).info.clients == 0);
    for (uint64_t lease = 1; lease <= LEASES; lease++)
        assert_int_equal(live_used(l, lease), 0);
    LIVE_UNTIL(live_descriptors(l) == before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_storm, live_setup, live_teardown),
    };
    if (argc > 1)
        rounds = atoi(argv[1]);
    if (argc > 2)
        seed = (unsigned)atoi(argv[2]);
    return cmocka_run_group_tests_name("broker-storm", tests, NULL, NULL);
}
