/*
 * Feeds the broker's message handlers with what a hostile client may do:
 * arbitrary messages on three connections of two leases, reconnects, a scribbled
 * page, control requests, time that jumps.  The ledger's invariants are checked
 * after each step.
 *
 * As a libFuzzer target by tests/fuzz/fuzz-broker; without it (`main` below) a
 * unit test that runs some hundred inputs made from seeds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CONNS 3

/* No such processes: at its hello each is its lease's own shim. */
static const pid_t pids[CONNS] = { 0x3ffffff1, 0x3ffffff2, 0x3ffffff3 };
static const uint64_t leases[CONNS] = { 1, 1, 2 };

struct world {
    struct broker *b;
    char dir[32];
    int peer[CONNS];
    uint64_t now_ns;
};

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *in, size_t n)
{
    uint64_t v = 0;
    for (; n && in->left; n--, in->left--)
        v = v << 8 | *in->at++;
    return v;
}

static void take_bytes(struct input *in, void *to, size_t n)
{
    if (n > in->left)
        n = in->left;
    memcpy(to, in->at, n);
    in->at += n;
    in->left -= n;
}

static void grant(struct world *w, uint64_t number, const pid_t *shim)
{
    struct proto_ctl m = { .version = PROTO_VERSION, .kind = PROTO_CTL_LEASE };
    m.lease.number = number;
    m.lease.epoch = 1;
    m.lease.slice_count = (uint32_t)number;
    for (uint32_t i = 0; i < number; i++) {
        m.lease.slice[i].device = i;
        m.lease.slice[i].request_permille = m.lease.slice[i].limit_permille = 400;
        m.lease.slice[i].mem_request_bytes = 500;
        m.lease.slice[i].mem_limit_bytes = 800;
    }
    control_message(w->b, &m, w->now_ns);
    m = (struct proto_ctl){ .version = PROTO_VERSION, .kind = PROTO_CTL_ANCHOR };
    m.anchor.number = number;
    m.anchor.epoch = 1;
    m.anchor.shim_pid = *shim;
    m.anchor.shim_start_ticks = 1;
    control_message(w->b, &m, w->now_ns);
}

/* The broker's end of a new pair, under the pid that this connection plays. */
static void reconnect(struct world *w, int which)
{
    int pair[2];
    if (w->peer[which] >= 0)
        close(w->peer[which]);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
        abort();
    w->peer[which] = pair[1];
    uint32_t index = w->b->free_conn;
    conn_admit(w->b, pair[0]);
    if (w->b->conns[index].fd != pair[0])
        abort();
    w->b->conns[index].pid = pids[which];
    w->b->conns[index].start_ticks = 1;
}

/* What the broker answered is thrown away, with the descriptors in it. */
static void drain(struct world *w, int which)
{
    struct proto_msg m;
    while (recv(w->peer[which], &m, sizeof m, MSG_DONTWAIT) > 0)
        ;
}

static uint32_t conn_of(const struct world *w, int which)
{
    for (uint32_t i = 0; i < BROKER_CONNS; i++)
        if (w->b->conns[i].fd >= 0 && w->b->conns[i].pid == pids[which])
            return i;
    return BROKER_NONE;
}

static void hello(struct world *w, int which)
{
    struct proto_msg m = { .version = PROTO_VERSION, .kind = PROTO_HELLO };
    uint32_t conn = conn_of(w, which);
    if (conn != BROKER_NONE)
        conn_message(w->b, conn, &m, sizeof m, pids[which], w->now_ns);
    drain(w, which);
}

static void set_up(struct world *w)
{
    log_init("fuzz", -1, LOG_ERROR);
    struct broker_options o = { .ancestry = true, .log_level = LOG_ERROR };
    memset(w, 0, sizeof *w);
    strcpy(w->dir, "/tmp/slf-XXXXXX");
    w->b = broker_create(&o);
    if (!w->b || !mkdtemp(w->dir))
        abort();
    w->now_ns = clock_now_ns();
    w->b->dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (runfile_open(&w->b->runfile, w->b->dir_fd, NULL))
        abort();
    for (uint32_t i = 0; i < 2; i++) {
        struct proto_ctl m = { .version = PROTO_VERSION, .kind = PROTO_CTL_DEVICE };
        m.device.index = i;
        m.device.flags = PROTO_DEVICE_EMULATED;
        m.device.capacity_bytes = 1000;
        m.device.id[0] = 'x';
        control_message(w->b, &m, w->now_ns);
    }
    for (int i = 0; i < CONNS; i++)
        w->peer[i] = -1;
    /* a client stays one when the anchor moves on to the next */
    for (int i = 0; i < CONNS; i++) {
        grant(w, leases[i], &pids[i]);
        reconnect(w, i);
        hello(w, i);
    }
}

static void tear_down(struct world *w)
{
    for (int i = 0; i < CONNS; i++)
        close(w->peer[i]);
    unlinkat(w->b->dir_fd, "ledger", 0);
    broker_destroy(w->b);
    rmdir(w->dir);
}

/* ---- steps ----------------------------------------------------------------------------
 */

static void step_message(struct world *w, struct input *in, bool well_formed)
{
    int which = (int)(take(in, 1) % CONNS);
    uint32_t conn = conn_of(w, which);
    struct proto_msg m = { 0 };
    size_t length = sizeof m;
    if (well_formed) {
        m.version = PROTO_VERSION;
        m.kind = (uint16_t)(take(in, 1) % (PROTO_KIND_COUNT + 1));
        m.device = (uint32_t)take(in, 1) % 3;
        m.mem.bytes = take(in, 2);
        m.mem.reservation = take(in, 1) << 32 | take(in, 1);
        if (m.kind == PROTO_RELEASE)
            m.turn.more = (uint32_t)take(in, 1) & 1;
    } else {
        length = take(in, 1);
        take_bytes(in, &m, sizeof m);
    }
    pid_t pid = take(in, 1) % 16 ? pids[which] : pids[(which + 1) % CONNS];
    if (conn != BROKER_NONE)
        conn_message(w->b, conn, &m, length, pid, w->now_ns);
    drain(w, which);
}

static void step_reconnect(struct world *w, struct input *in)
{
    int which = (int)(take(in, 1) % CONNS);
    uint32_t conn = conn_of(w, which);
    if (conn != BROKER_NONE)
        conn_close(w->b, conn);
    reconnect(w, which);
    if (take(in, 1) % 8)
        hello(w, which);
}

static void step_scribble(struct world *w, struct input *in)
{
    uint32_t client = (uint32_t)take(in, 1) % 4;
    uint64_t at = take(in, 2) % (sizeof(struct proto_page) / 8);
    uint64_t value = take(in, 1) & 1 ? take(in, 8) : SLOT_HELD | take(in, 1) % 3;
    if (w->b->clients[client].page)
        memcpy((char *)w->b->clients[client].page + at * 8, &value, 8);
}

static void step_control(struct world *w, struct input *in)
{
    struct proto_ctl m = { .version = PROTO_VERSION };
    m.kind = (uint16_t)(take(in, 1) % (PROTO_CTL_KIND_COUNT + 1));
    m.cursor = take(in, 1);
    if (m.kind == PROTO_CTL_LEASE || m.kind == PROTO_CTL_DROP) {
        m.lease.number = take(in, 1) % 4;
        m.lease.epoch = take(in, 1) % 4;
    }
    if (m.kind == PROTO_CTL_LEASE) {
        m.lease.mode = (uint32_t)take(in, 1) % 4;
        m.lease.slice_count = (uint32_t)take(in, 1) % 3;
        for (uint32_t i = 0; i < m.lease.slice_count; i++) {
            m.lease.slice[i].device = i;
            m.lease.slice[i].request_permille = (uint16_t)(take(in, 2) % 1100);
            m.lease.slice[i].limit_permille = (uint16_t)(take(in, 2) % 1100);
            m.lease.slice[i].mem_request_bytes = take(in, 2);
            m.lease.slice[i].mem_limit_bytes = take(in, 2);
        }
    } else if (m.kind == PROTO_CTL_DEVICE) {
        m.device.index = (uint32_t)take(in, 1) % 66;
        m.device.capacity_bytes = take(in, 2);
        m.device.reserve_bytes = take(in, 2);
        m.device.id[0] = (char)('x' + take(in, 1) % 2);
        m.device.flags = (uint32_t)take(in, 1) | PROTO_DEVICE_EMULATED;
    }
    control_message(w->b, &m, w->now_ns);
    if (m.kind == PROTO_CTL_DROP && m.code == 0)
        grant(w, leases[2], &pids[2]);
}

static void step_time(struct world *w, struct input *in)
{
    w->now_ns += take(in, 1) << take(in, 1) % 28;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w;
    struct input in = { data, size };
    set_up(&w);
    while (in.left) {
        switch (take(&in, 1) % 16) {
        case 0:
            step_reconnect(&w, &in);
            break;
        case 1:
            step_control(&w, &in);
            break;
        case 2:
        case 3:
            step_scribble(&w, &in);
            break;
        case 4:
        case 5:
            step_time(&w, &in);
            break;
        case 6:
            step_message(&w, &in, false);
            break;
        default:
            step_message(&w, &in, true);
        }
        ledger_run(w.b->ledger, w.now_ns);
        for (uint32_t i; (i = ledger_take_wake(w.b->ledger)) != BROKER_NONE;)
            process_wake(w.b, i);
        ledger_check(w.b->ledger);
    }
    tear_down(&w);
    return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 200;
    for (int round = 0; round < rounds; round++, seed++) {
        uint8_t data[2000];
        uint64_t x = seed * 0x9e3779b97f4a7c15ull;
        for (size_t i = 0; i < sizeof data; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            data[i] = (uint8_t)(x >> 32);
        }
        if (argc > 2)
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    return 0;
}
#endif
