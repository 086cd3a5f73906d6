/* The FAKE broker's thread; see broker.h. */
#include "broker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/futex.h"

static void ring(struct fake_broker *b)
{
    struct proto_page *p = atomic_load(&b->page);
    atomic_fetch_add(&p->bell, 1);
    futex_wake_all(&p->bell);
}

struct proto_slot *fake_slot(struct fake_broker *b, uint32_t slot)
{
    return &atomic_load(&b->page)->slot[slot];
}

static void set_terms(struct proto_slot *s, uint64_t deadline_ns)
{
    atomic_store(&s->contended, deadline_ns != SLOT_OPEN);
    atomic_store(&s->deadline_ns, deadline_ns);
}

void fake_grant(struct fake_broker *b, uint32_t slot, uint64_t deadline_ns)
{
    struct proto_slot *s = fake_slot(b, slot);
    if (atomic_load(&s->state) & SLOT_HELD)
        return;
    set_terms(s, deadline_ns);
    atomic_fetch_add(&s->grants, 1);
    atomic_store(&s->state, SLOT_HELD);
    ring(b);
}

void fake_set_deadline(struct fake_broker *b, uint32_t slot, uint64_t deadline_ns)
{
    set_terms(fake_slot(b, slot), deadline_ns);
    ring(b);
}

bool fake_take_idle(struct fake_broker *b, uint32_t slot)
{
    uint32_t idle = SLOT_HELD;
    bool taken =
        atomic_compare_exchange_strong(&fake_slot(b, slot)->state, &idle, SLOT_NONE);
    ring(b);
    return taken;
}

void fake_pass_over(struct fake_broker *b, uint32_t slot)
{
    atomic_store(&fake_slot(b, slot)->state, SLOT_NONE);
    ring(b);
}

/* ---- messages ---------------------------------------------------------- */

static void answer(struct fake_broker *b, int fd, struct proto_msg *m, int pass_fd)
{
    uint32_t version = atomic_load(&b->version);
    char control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec iov = { m, sizeof *m };
    struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
    m->version = version ? version : PROTO_VERSION;
    if (pass_fd >= 0) {
        h.msg_control = control;
        h.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
    }
    sendmsg(fd, &h, MSG_NOSIGNAL);
}

static void hello(struct fake_broker *b, int fd, struct proto_msg *m)
{
    b->last_hello = *m;
    atomic_fetch_add(&b->hellos, 1);
    if (atomic_load(&b->hello_code)) {
        m->kind = PROTO_REFUSED;
        m->code = atomic_load(&b->hello_code);
        answer(b, fd, m, -1);
        return;
    }
    int memfd = memfd_create("fake-page", MFD_CLOEXEC);
    assert(memfd >= 0 && ftruncate(memfd, sizeof(struct proto_page)) == 0);
    struct proto_page *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    assert(p != MAP_FAILED);
    p->magic = PROTO_PAGE_MAGIC;
    p->version = PROTO_VERSION;
    p->flags = b->flags;
    p->slot_count = 2;
    p->lease = 7;
    for (int i = 0; i < 2; i++) {
        struct proto_slot *s = &p->slot[i];
        s->mode = b->mode;
        s->ordinal = (uint32_t)i;
        strcpy(s->platform, b->platform);
        strcpy(s->name, b->name);
        strcpy(s->driver, b->driver);
        atomic_store(&s->mem_limit_bytes, atomic_load(&b->limit_bytes));
        atomic_store(&s->request_permille, b->request_permille);
        atomic_store(&s->limit_permille, b->limit_permille);
        atomic_store(&s->flight_bound_ns, 2 * NS_PER_MS);
        atomic_store(&s->flight_bound_items, 2);
    }
    atomic_store(&b->page, p); /* never unmapped: tests end soon */
    m->kind = PROTO_WELCOME;
    answer(b, fd, m, memfd);
    close(memfd);
}

static void reserve(struct fake_broker *b, int fd, struct proto_msg *m)
{
    uint64_t used = atomic_load(&b->used_bytes), limit = atomic_load(&b->limit_bytes);
    m->mem.free_bytes = limit - used;
    if (m->mem.bytes > limit - used) {
        m->kind = PROTO_REFUSED;
        m->code = -SL_NO_CAPACITY;
    } else {
        m->kind = PROTO_RESERVED;
        m->mem.reservation = ++b->next_reservation;
        b->reserved_bytes[m->mem.reservation % 64] = m->mem.bytes;
        atomic_fetch_add(&b->used_bytes, m->mem.bytes);
    }
    answer(b, fd, m, -1);
}

static void auto_grant(struct fake_broker *b, uint32_t slot)
{
    uint64_t turn = atomic_load(&b->turn_ns);
    if (atomic_load(&b->auto_grant))
        fake_grant(b, slot, turn ? clock_now_ns() + turn : SLOT_OPEN);
}

static void handle(struct fake_broker *b, int fd, struct proto_msg *m)
{
    uint64_t *reserved = &b->reserved_bytes[m->mem.reservation % 64];
    switch (m->kind) {
    case PROTO_HELLO:
        hello(b, fd, m);
        break;
    case PROTO_RESERVE:
        reserve(b, fd, m);
        break;
    case PROTO_COMMIT:
        atomic_fetch_sub(&b->used_bytes, *reserved - m->mem.bytes);
        break;
    case PROTO_ABORT:
        atomic_fetch_sub(&b->used_bytes, *reserved);
        atomic_fetch_add(&b->aborts, 1);
        break;
    case PROTO_FREE:
        atomic_fetch_sub(&b->used_bytes, m->mem.bytes);
        atomic_fetch_add(&b->freed_bytes, m->mem.bytes);
        break;
    case PROTO_WANT:
        atomic_fetch_add(&b->wants, 1);
        auto_grant(b, m->device);
        break;
    case PROTO_RELEASE:
        atomic_fetch_add(&b->releases, 1);
        atomic_fetch_add(&b->releases_more, m->turn.more);
        if (m->turn.more)
            auto_grant(b, m->device);
        break;
    default:
        break;
    }
}

/* ---- the thread -------------------------------------------------------- */

static void adopt(struct fake_broker *b, int fd)
{
    for (int i = 0; i < FAKE_CONNS; i++)
        if (b->conns[i] < 0) {
            b->conns[i] = fd;
            return;
        }
    close(fd);
}

static void serve(struct fake_broker *b, int i)
{
    struct proto_msg m;
    ssize_t n = recv(b->conns[i], &m, sizeof m, MSG_DONTWAIT);
    if (n == sizeof m) {
        handle(b, b->conns[i], &m);
    } else if (n >= 0 || errno != EAGAIN) {
        close(b->conns[i]);
        b->conns[i] = -1;
    }
}

static void *run(void *arg)
{
    struct fake_broker *b = arg;
    atomic_store(&b->running, 1);
    futex_wake_all(&b->running);
    while (!atomic_load(&b->stop)) {
        struct pollfd p[FAKE_CONNS + 1] = { { .fd = b->listener, .events = POLLIN } };
        for (int i = 0; i < FAKE_CONNS; i++)
            p[i + 1] = (struct pollfd){ .fd = b->conns[i], .events = POLLIN };
        poll(p, FAKE_CONNS + 1, 5);
        for (int i = 0; i < FAKE_CONNS; i++)
            if (p[i + 1].revents)
                serve(b, i);
        if (p[0].revents)
            adopt(b, accept4(b->listener, NULL, NULL, SOCK_CLOEXEC));
    }
    return NULL;
}

void fake_start(struct fake_broker *b)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    if (!b->path[0]) {
        strcpy(b->dir, "/tmp/slfXXXXXX");
        assert(mkdtemp(b->dir));
        snprintf(b->path, sizeof b->path, "%s/broker.sock", b->dir);
    }
    unlink(b->path);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", b->path);
    for (int i = 0; i < FAKE_CONNS; i++)
        b->conns[i] = -1;
    b->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert(bind(b->listener, (struct sockaddr *)&addr, sizeof addr) == 0);
    assert(listen(b->listener, 64) == 0);
    atomic_store(&b->stop, 0);
    atomic_store(&b->running, 0);
    assert(pthread_create(&b->thread, NULL, run, b) == 0);
    while (!atomic_load(&b->running))
        futex_wait(&b->running, 0, UINT64_MAX);
}

void fake_kill(struct fake_broker *b)
{
    atomic_store(&b->stop, 1);
    pthread_join(b->thread, NULL);
    close(b->listener);
    for (int i = 0; i < FAKE_CONNS; i++)
        if (b->conns[i] >= 0)
            close(b->conns[i]);
}

void fake_end(struct fake_broker *b)
{
    fake_kill(b);
    unlink(b->path);
    rmdir(b->dir);
}
