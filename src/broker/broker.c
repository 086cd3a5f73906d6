/* The loop: takes what epoll brings, lets the ledger act on it, sleeps until the next turn.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "internal.h"
#include "lock.h"

#define EVENTS_A_TURN 256
#define SETTLE_NS     (NS_PER_MS / 2)

/* ---- what an event belongs to: kind, generation and index in 64 bits ---------- */

static uint64_t event_data(enum event_kind kind, uint32_t index, uint32_t generation)
{
    return (uint64_t)kind << 56 | (uint64_t)(generation & 0xffffff) << 32 | index;
}

int broker_watch(struct broker *b, int fd, enum event_kind kind, uint32_t index,
                 uint32_t generation)
{
    struct epoll_event e = { .events = EPOLLIN,
                             .data.u64 = event_data(kind, index, generation) };
    return epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

/* ---- life -------------------------------------------------------------------- */

static void *map_zeroed(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void init_tables(struct broker *b)
{
    for (uint32_t i = 0; i < BROKER_CONNS; i++)
        b->conns[i] = (struct conn){ .fd = -1,
                                     .pidfd = -1,
                                     .client = BROKER_NONE,
                                     .next = i + 1 < BROKER_CONNS ? i + 1 : BROKER_NONE };
    for (uint32_t i = 0; i < LEDGER_MAX_CLIENTS; i++)
        b->clients[i] =
            (struct client){ .pidfd = -1,
                             .maps_fd = -1,
                             .conn = BROKER_NONE,
                             .next = i + 1 < LEDGER_MAX_CLIENTS ? i + 1 : BROKER_NONE };
    for (uint32_t i = 0; i < PROTO_MAX_DEVICES; i++)
        b->devices[i].lock_fd = -1;
    for (uint32_t i = 0; i < BROKER_CONTROLS; i++)
        b->controls[i].fd = -1;
    for (uint32_t i = 0; i < BROKER_BUCKETS; i++)
        b->bucket[i] = BROKER_NONE;
    b->mute_first = b->mute_last = BROKER_NONE;
    b->conn_limit = BROKER_CONNS;
}

struct broker *broker_create(const struct broker_options *options)
{
    struct broker *b = map_zeroed(sizeof *b);
    void *memory = map_zeroed(ledger_size());
    if (!b || !memory) {
        if (b)
            munmap(b, sizeof *b);
        return NULL;
    }
    b->options = *options;
    b->log_fd = b->dir_fd = b->lock_fd = b->epoll_fd = b->timer_fd = b->signal_fd = -1;
    b->listen_fd = b->control_fd = -1;
    b->started_ns = clock_now_ns();
    b->ledger = ledger_init(memory);
    init_tables(b);
    return b;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void broker_destroy(struct broker *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; i < BROKER_CONNS; i++) {
        close_fd(b->conns[i].fd);
        close_fd(b->conns[i].pidfd);
    }
    for (uint32_t i = 0; i < LEDGER_MAX_CLIENTS; i++) {
        close_fd(b->clients[i].pidfd);
        close_fd(b->clients[i].maps_fd);
        if (b->clients[i].page)
            munmap(b->clients[i].page, sizeof *b->clients[i].page);
    }
    for (uint32_t i = 0; i < PROTO_MAX_DEVICES; i++)
        close_fd(b->devices[i].lock_fd);
    for (uint32_t i = 0; i < BROKER_CONTROLS; i++)
        close_fd(b->controls[i].fd);
    runfile_close(&b->runfile);
    close_fd(b->listen_fd);
    close_fd(b->control_fd);
    close_fd(b->signal_fd);
    close_fd(b->timer_fd);
    close_fd(b->epoll_fd);
    close_fd(b->lock_fd);
    close_fd(b->dir_fd);
    close_fd(b->log_fd);
    munmap(b->ledger, ledger_size());
    munmap(b, sizeof *b);
}

/* ---- the timer ------------------------------------------------------------------ */

static uint64_t next_of_ours(const struct broker *b)
{
    uint64_t next = UINT64_MAX;
    if (b->detached_count)
        next = b->recheck_ns;
    if (b->mute_first != BROKER_NONE)
        next = min_u64(next, b->conns[b->mute_first].since_ns + BROKER_HELLO_NS);
    if (b->parked_count)
        next = min_u64(next, b->grace_until_ns);
    return next;
}

static void housekeeping(struct broker *b, uint64_t now_ns)
{
    if (b->detached_count && now_ns >= b->recheck_ns) {
        process_recheck_suspects(b, now_ns);
        b->recheck_ns = now_ns + BROKER_RECHECK_NS;
    }
    if (b->parked_count && now_ns >= b->grace_until_ns)
        conn_retry_parked(b, now_ns);
    conn_expire(b, now_ns);
}

void broker_settle(struct broker *b)
{
    uint64_t now_ns = clock_now_ns();
    b->settled_ns = now_ns;
    housekeeping(b, now_ns);
    uint64_t next = ledger_run(b->ledger, now_ns);
    for (uint32_t i; (i = ledger_take_wake(b->ledger)) != BROKER_NONE;)
        process_wake(b, i);
    next = min_u64(next, next_of_ours(b));
    if (next == b->armed_ns)
        return;
    /* a time that has passed fires at once; 0 would disarm it */
    uint64_t at = next == UINT64_MAX ? 0 : max_u64(next, 1);
    struct itimerspec when = { .it_value = { (time_t)(at / NS_PER_S),
                                             (long)(at % NS_PER_S) } };
    timerfd_settime(b->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    b->armed_ns = next;
}

static void on_timer(struct broker *b)
{
    uint64_t ticks;
    if (read(b->timer_fd, &ticks, sizeof ticks) == sizeof ticks)
        b->armed_ns = 0; /* spent: the same time again must arm it again */
}

/* ---- the loop ------------------------------------------------------------------- */

static void on_signal(struct broker *b)
{
    struct signalfd_siginfo s;
    if (read(b->signal_fd, &s, sizeof s) != sizeof s)
        return;
    log_event(LOG_INFO, "signal", "signal=%u from=%u", s.ssi_signo, s.ssi_pid);
    b->end = true;
}

static void dispatch(struct broker *b, uint64_t data)
{
    uint32_t index = (uint32_t)data, generation = (uint32_t)(data >> 32) & 0xffffff;
    switch ((enum event_kind)(data >> 56)) {
    case EVENT_LISTEN:
        conn_accept(b);
        break;
    case EVENT_CONTROL_LISTEN:
        control_accept(b);
        break;
    case EVENT_TIMER:
        on_timer(b);
        break;
    case EVENT_SIGNAL:
        on_signal(b);
        break;
    case EVENT_LOCK:
        if (b->devices[index].lock_fd >= 0)
            device_lock_answer(b->devices[index].lock_fd);
        break;
    case EVENT_CONN:
        if (b->conns[index].fd >= 0 &&
            (b->conns[index].generation & 0xffffff) == generation)
            conn_readable(b, index);
        break;
    case EVENT_PIDFD:
        if (b->clients[index].pid &&
            (b->clients[index].generation & 0xffffff) == generation)
            process_died(b, index, clock_now_ns());
        break;
    case EVENT_CONTROL:
        if (b->controls[index].fd >= 0 &&
            (b->controls[index].generation & 0xffffff) == generation)
            control_readable(b, index);
        break;
    }
}

int broker_run(struct broker *b)
{
    struct epoll_event events[EVENTS_A_TURN];
    while (!b->end) {
        broker_settle(b);
        int n = epoll_wait(b->epoll_fd, events, EVENTS_A_TURN, -1);
        if (n < 0 && errno != EINTR)
            return -SL_INTERNAL;
        /* deaths first: what they give back is there for those who ask in the
         * same batch, and their sockets' ends make no suspects */
        for (int i = 0; i < n; i++)
            if (events[i].data.u64 >> 56 == EVENT_PIDFD)
                dispatch(b, events[i].data.u64);
        for (int i = 0; i < n; i++) {
            if (events[i].data.u64 >> 56 == EVENT_PIDFD)
                continue;
            dispatch(b, events[i].data.u64);
            /* a crowd that says hello must not delay the turns of the others */
            if (clock_now_ns() - b->settled_ns > SETTLE_NS)
                broker_settle(b);
        }
    }
    return 0;
}
