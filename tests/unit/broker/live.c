/* Starts brokers and actors for the live tests and speaks the protocol for them. */
#include "live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/futex.h"
#include "core/macros.h"
#include "proc.h"

_Atomic int *live_holders;

void live_nap(void)
{
    usleep(2000);
}

static const char *broker_path(void)
{
    const char *path = getenv("SLUICE_BROKER_PROGRAM");
    return path ? path : BROKER_PROGRAM;
}

static int dial(const char *dir, const char *name)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s/%s", dir, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- brokers ------------------------------------------------------------------ */

void live_start(struct live *l)
{
    const char *argv[16] = { broker_path(), "--run-dir", l->dir };
    for (int i = 0; l->options[i]; i++)
        argv[3 + i] = l->options[i];
    l->broker = fork();
    if (l->broker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (l->fault)
            setenv("SLUICE_FAULT", l->fault, 1);
        execv(argv[0], (char **)(void *)argv);
        _exit(127);
    }
    for (int i = 0; (l->control = dial(l->dir, "control.sock")) < 0 && i < 5000; i++)
        live_nap();
    assert_true(l->control >= 0);
}

void live_kill(struct live *l, int signal)
{
    if (l->broker <= 0)
        return;
    kill(l->broker, signal);
    waitpid(l->broker, NULL, 0);
    close(l->control);
    l->broker = 0;
}

void live_forget(struct live *l)
{
    char path[64];
    snprintf(path, sizeof path, "%s/ledger", l->dir);
    unlink(path);
}

int live_setup(void **state)
{
    static struct live l;
    static void *shared;
    if (!shared)
        shared =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    live_holders = shared;
    signal(SIGPIPE, SIG_IGN);
    memset(&l, 0, sizeof l);
    strcpy(l.dir, "/tmp/slb-XXXXXX");
    if (!mkdtemp(l.dir))
        return -1;
    live_start(&l);
    *state = &l;
    return live_device(&l, 0, (1 << 20) + 1000);
}

int live_teardown(void **state)
{
    static const char *const names[] = { "broker.lock",  "broker.log", "broker.sock",
                                         "control.sock", "ledger",     "ledger.bad" };
    struct live *l = *state;
    bool died = l->broker > 0 && waitpid(l->broker, NULL, WNOHANG) != 0;
    live_kill(l, SIGKILL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", l->dir, names[i]);
        unlink(path);
    }
    return rmdir(l->dir) || died;
}

int live_try(const char *const *arguments, char *text, size_t size)
{
    int out[2], status;
    const char *argv[16] = { broker_path() };
    for (int i = 0; arguments[i]; i++)
        argv[1 + i] = arguments[i];
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        execv(argv[0], (char **)(void *)argv);
        _exit(127);
    }
    close(out[1]);
    size_t n = 0;
    for (ssize_t got; n < size - 1 && (got = read(out[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(out[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

unsigned live_descriptors(const struct live *l)
{
    char path[32];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)l->broker);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        count += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return count;
}

/* ---- the control socket ----------------------------------------------------------- */

int live_control(struct live *l, struct proto_ctl *m)
{
    static uint32_t seq;
    uint32_t want = ++seq;
    uint16_t kind = m->kind;
    m->version = PROTO_VERSION;
    m->seq = want;
    assert_int_equal(send(l->control, m, sizeof *m, MSG_NOSIGNAL), sizeof *m);
    assert_int_equal(recv(l->control, m, sizeof *m, 0), sizeof *m);
    assert_int_equal(m->seq, want);
    assert_int_equal(m->kind, kind);
    return m->code;
}

int live_device(struct live *l, uint32_t index, uint64_t bytes)
{
    struct proto_ctl m = { .kind = PROTO_CTL_DEVICE };
    m.device.index = index;
    m.device.flags = PROTO_DEVICE_EMULATED;
    m.device.capacity_bytes = bytes;
    m.device.reserve_bytes = 1 << 20;
    snprintf(m.device.id, sizeof m.device.id, "emulated-%u", index);
    strcpy(m.device.platform, "Emulated");
    strcpy(m.device.name, "Card");
    strcpy(m.device.driver, "1.0");
    return live_control(l, &m);
}

int live_anchor(struct live *l, uint64_t number, pid_t shim, uint64_t cgroup_id)
{
    struct proto_ctl m = { .kind = PROTO_CTL_ANCHOR };
    struct proc_stat s = { 0 };
    if (shim && proc_read_stat(shim, &s))
        return -SL_NOT_FOUND;
    m.anchor.number = number;
    m.anchor.epoch = 1;
    m.anchor.shim_pid = shim;
    m.anchor.shim_start_ticks = s.start_ticks;
    m.anchor.cgroup_id = cgroup_id;
    return live_control(l, &m);
}

int live_lease(struct live *l, uint64_t number, uint64_t bytes, pid_t shim)
{
    struct proto_ctl m = { .kind = PROTO_CTL_LEASE };
    m.lease.number = number;
    m.lease.epoch = 1;
    m.lease.mode = PROTO_HARD;
    m.lease.slice_count = 1;
    m.lease.slice[0].request_permille = 300;
    m.lease.slice[0].limit_permille = 300;
    m.lease.slice[0].mem_request_bytes = bytes;
    m.lease.slice[0].mem_limit_bytes = bytes;
    int rc = live_control(l, &m);
    return rc || !shim ? rc : live_anchor(l, number, shim, 0);
}

uint64_t live_used(struct live *l, uint64_t number)
{
    struct proto_ctl m = { .kind = PROTO_CTL_STAT_LEASE };
    m.cursor = number;
    if (live_control(l, &m) || m.lease_stat.number != number)
        return UINT64_MAX;
    return m.lease_stat.slice[0].committed_bytes + m.lease_stat.slice[0].reserved_bytes;
}

struct proto_ctl live_info(struct live *l)
{
    struct proto_ctl m = { .kind = PROTO_CTL_INFO };
    assert_int_equal(live_control(l, &m), 0);
    return m;
}

struct proto_ctl live_client(struct live *l, pid_t pid)
{
    struct proto_ctl m = { 0 };
    do {
        m.kind = PROTO_CTL_STAT_CLIENT;
        if (live_control(l, &m))
            return m;
    } while (m.client_stat.pid != pid);
    return m;
}

/* ---- what an actor does, in its own process ----------------------------------------- */

struct me {
    const char *dir;
    int fd;
    uint32_t seq;
    struct proto_page *page;
};

static int say(struct me *me, struct proto_msg *m)
{
    m->version = PROTO_VERSION;
    m->seq = ++me->seq;
    return send(me->fd, m, sizeof *m, MSG_NOSIGNAL) == sizeof *m ? 0 : -SL_IO;
}

static int hear(struct me *me, struct proto_msg *m)
{
    for (;;) {
        ssize_t n = recv(me->fd, m, sizeof *m, 0);
        if (n != sizeof *m)
            return -SL_IO;
        if (m->seq == me->seq)
            return m->kind == PROTO_REFUSED ? m->code : 0;
    }
}

static int ask(struct me *me, struct proto_msg *m)
{
    int rc = say(me, m);
    return rc ? rc : hear(me, m);
}

static int take_page(struct me *me, struct proto_msg *m)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { m, sizeof *m };
    struct msghdr h = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = sizeof control };
    int fd;
    if (recvmsg(me->fd, &h, MSG_CMSG_CLOEXEC) != sizeof *m)
        return -SL_IO;
    if (m->kind != PROTO_WELCOME || !CMSG_FIRSTHDR(&h))
        return m->code ? m->code : -SL_PROTOCOL;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof fd);
    me->page = mmap(NULL, sizeof *me->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    /* sealed: no client can make the broker's next store a SIGBUS */
    bool sealed = ftruncate(fd, 0) && ftruncate(fd, 1 << 20);
    close(fd);
    return !sealed || me->page == MAP_FAILED || me->page->magic != PROTO_PAGE_MAGIC ||
                   strcmp(me->page->slot[0].name, "Card")
               ? -SL_PROTOCOL
               : 0;
}

static struct reply do_hello(struct me *me, uint64_t resume, uint64_t declared)
{
    struct proto_msg m = { .kind = PROTO_HELLO };
    if (me->fd >= 0)
        close(me->fd);
    me->fd = dial(me->dir, "broker.sock");
    if (me->fd < 0)
        return (struct reply){ -SL_UNAVAILABLE, 0 };
    m.hello.resume = resume != 0;
    m.hello.slot_count = resume != 0;
    m.hello.declared_bytes[0] = declared;
    int rc = say(me, &m);
    if (!rc)
        rc = take_page(me, &m);
    return (struct reply){ rc, rc ? 0 : me->page->slot[0].mem_limit_bytes };
}

static struct reply do_memory(struct me *me, uint16_t kind, uint64_t bytes, uint64_t other)
{
    struct proto_msg m = { .kind = kind };
    m.mem.bytes = bytes;
    if (kind == PROTO_RESERVE || kind == PROTO_FREE)
        m.device = (uint32_t)other;
    else
        m.mem.reservation = other;
    if (kind != PROTO_RESERVE)
        return (struct reply){ say(me, &m), 0 };
    int rc = ask(me, &m);
    return (struct reply){ rc, rc ? m.mem.free_bytes : m.mem.reservation };
}

static struct reply do_ping(struct me *me)
{
    struct proto_msg m = { .kind = PROTO_PING };
    return (struct reply){ ask(me, &m), 0 };
}

static struct reply do_pass(struct me *me, uint64_t count)
{
    struct proto_msg m = { .version = PROTO_VERSION, .kind = PROTO_PING };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(16 * sizeof(int))];
    } control = { 0 };
    struct iovec iov = { &m, sizeof m };
    struct msghdr h = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = &control,
                        .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
    int fds[16] = { 0 };
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    m.seq = ++me->seq;
    if (sendmsg(me->fd, &h, MSG_NOSIGNAL) != sizeof m)
        return (struct reply){ -SL_IO, 0 };
    return (struct reply){ hear(me, &m), 0 };
}

static struct reply do_turn(struct me *me, uint64_t wait_ns)
{
    struct proto_slot *s = &me->page->slot[0];
    uint64_t end = clock_now_ns() + wait_ns;
    atomic_fetch_add(&s->waiting, 1);
    for (;;) {
        uint32_t bell = atomic_load(&me->page->bell);
        if ((atomic_load(&s->state) & SLOT_HELD) || clock_now_ns() >= end)
            break;
        futex_wait(&me->page->bell, bell, 10 * NS_PER_MS);
    }
    atomic_fetch_sub(&s->waiting, 1);
    bool held = atomic_load(&s->state) & SLOT_HELD;
    if (held)
        atomic_fetch_add(&s->state, 1); /* one batch in flight, never to end */
    return (struct reply){ held ? 0 : -SL_TIMEOUT, atomic_load(&s->grants) };
}

static struct reply do_raw(struct me *me, uint64_t length, uint64_t seed)
{
    char junk[4096];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] =
            (char)(seed = seed * 6364136223846793005ull + 1442695040888963407ull) >> 5;
    return (struct reply){ send(me->fd, junk, length, MSG_NOSIGNAL) < 0 ? -SL_IO : 0, 0 };
}

static struct reply do_flood(struct me *me, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (do_memory(me, PROTO_ABORT, 0, i).code)
            return (struct reply){ -SL_IO, i };
    return do_ping(me);
}

/* Whoever has the byte is alone: more than one holder is a byte too many. */
static struct reply do_race(struct me *me, uint64_t rounds)
{
    struct reply r = { 0, 0 };
    for (uint64_t i = 0; i < rounds && !r.code; i++) {
        struct reply got = do_memory(me, PROTO_RESERVE, 1, 0);
        if (got.code == -SL_NO_CAPACITY)
            continue;
        if (got.code)
            return got;
        r.value++;
        if (atomic_fetch_add(live_holders, 1) != 0)
            r.code = -SL_INTERNAL;
        bool commit = i & 1;
        if (commit)
            do_memory(me, PROTO_COMMIT, 1, got.value);
        atomic_fetch_sub(live_holders, 1);
        do_memory(me, commit ? PROTO_FREE : PROTO_ABORT, 1, commit ? 0 : got.value);
    }
    return r;
}

static struct reply do_child_free(struct me *me, uint64_t bytes)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct reply r = do_memory(me, PROTO_FREE, bytes, 0);
        _exit(r.code != 0);
    }
    int status;
    waitpid(pid, &status, 0);
    return (struct reply){ status ? -SL_IO : 0, 0 };
}

static struct reply do_spawn(struct me *me)
{
    int p[2];
    struct reply r = { -SL_IO, 0 };
    assert_int_equal(pipe(p), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct me child = { .dir = me->dir, .fd = -1 };
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        r = do_hello(&child, 0, 0);
        r.value = (uint64_t)getpid();
        ssize_t ignored = write(p[1], &r, sizeof r);
        (void)ignored;
        pause();
        _exit(0);
    }
    close(p[1]);
    ssize_t ignored = read(p[0], &r, sizeof r);
    (void)ignored;
    close(p[0]);
    return r;
}

struct command {
    enum order order;
    uint64_t x, y;
};

static struct reply obey(struct me *me, const struct command *c)
{
    struct proto_msg m = { .kind = (uint16_t)c->x, .device = (uint32_t)c->y };
    struct reply done = { 0, 0 };
    switch (c->order) {
    case ORDER_HELLO:
        return do_hello(me, c->x, c->y);
    case ORDER_RESERVE:
        return do_memory(me, PROTO_RESERVE, c->x, c->y);
    case ORDER_COMMIT:
        return do_memory(me, PROTO_COMMIT, c->x, c->y);
    case ORDER_ABORT:
        return do_memory(me, PROTO_ABORT, 0, c->y);
    case ORDER_FREE:
        return do_memory(me, PROTO_FREE, c->x, c->y);
    case ORDER_PING:
        return do_ping(me);
    case ORDER_WANT:
        m = (struct proto_msg){ .kind = PROTO_WANT };
        return (struct reply){ say(me, &m), 0 };
    case ORDER_TURN:
        return do_turn(me, c->x);
    case ORDER_RAW:
        return do_raw(me, c->x, c->y);
    case ORDER_SEND:
        return (struct reply){ say(me, &m), 0 };
    case ORDER_FLOOD:
        return do_flood(me, c->x);
    case ORDER_RACE:
        return do_race(me, c->x);
    case ORDER_CLOSE:
        close(me->fd);
        me->fd = -1;
        return done;
    case ORDER_CHILD_FREE:
        return do_child_free(me, c->x);
    case ORDER_EXEC:
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        return (struct reply){ -SL_IO, 0 };
    case ORDER_SPAWN:
        return do_spawn(me);
    case ORDER_PASS:
        return do_pass(me, c->x);
    case ORDER_SETSID:
        return (struct reply){ setsid() < 0 ? -SL_IO : 0, 0 };
    }
    return (struct reply){ -SL_INVALID, 0 };
}

/* ---- and from the test's side ------------------------------------------------------- */

struct actor actor_start(const struct live *l)
{
    int to[2], from[2];
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct me me = { .dir = l->dir, .fd = -1 };
        struct command c;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(to[1]);
        close(from[0]);
        while (read(to[0], &c, sizeof c) == sizeof c) {
            struct reply r = obey(&me, &c);
            if (write(from[1], &r, sizeof r) != sizeof r)
                break;
        }
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    return (struct actor){ pid, to[1], from[0] };
}

void actor_begin(struct actor *a, enum order order, uint64_t x, uint64_t y)
{
    struct command c = { order, x, y };
    assert_int_equal(write(a->to, &c, sizeof c), sizeof c);
}

struct reply actor_reply(struct actor *a)
{
    struct reply r = { -SL_IO, 0 };
    ssize_t ignored = read(a->from, &r, sizeof r);
    (void)ignored;
    return r;
}

struct reply actor_do(struct actor *a, enum order order, uint64_t x, uint64_t y)
{
    actor_begin(a, order, x, y);
    return actor_reply(a);
}

void actor_kill(struct actor *a)
{
    kill(a->pid, SIGKILL);
    waitpid(a->pid, NULL, 0);
    close(a->to);
    close(a->from);
}

void actor_hold(struct actor *a, uint64_t bytes)
{
    assert_int_equal(actor_do(a, ORDER_HELLO, 0, 0).code, 0);
    struct reply r = actor_do(a, ORDER_RESERVE, bytes, 0);
    assert_int_equal(r.code, 0);
    assert_int_equal(actor_do(a, ORDER_COMMIT, bytes, r.value).code, 0);
    assert_int_equal(actor_do(a, ORDER_PING, 0, 0).code, 0);
}
