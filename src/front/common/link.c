/* The connection to the broker: connect, hello, page, loss and return. */
#include "link_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/futex.h"
#include "core/macros.h"

#define FD_FLOOR        1000 /* programs close and dup2 low numbers */
#define HELLO_MS        5000
#define RESUME_MS       1000 /* somebody's call waits for it */
#define RETRY_NS        (100 * NS_PER_MS)
#define RETRY_DENIED_NS NS_PER_S

/* ---- forked children --------------------------------------------------- */

#define MAX_LINKS 8

static _Atomic(struct link *) links[MAX_LINKS];
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t fork_count;

/* Runs in the child alone, before anything else of it: only stores and close. */
static void forget_links(void)
{
    atomic_fetch_add(&fork_count, 1);
    for (int i = 0; i < MAX_LINKS; i++) {
        struct link *l = atomic_exchange(&links[i], NULL);
        if (!l)
            continue;
        if (link_fd_is_ours(l))
            close(atomic_load(&l->fd));
        atomic_store(&l->fd, -1);
        atomic_store(&l->state, LINK_FORKED);
    }
}

uint32_t link_fork_count(void)
{
    return atomic_load_explicit(&fork_count, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_links);
}

static bool remember_link(struct link *l)
{
    pthread_once(&fork_once, watch_forks);
    for (int i = 0; i < MAX_LINKS; i++) {
        struct link *none = NULL;
        if (atomic_compare_exchange_strong(&links[i], &none, l))
            return true;
    }
    return false;
}

static void forget_link(struct link *l)
{
    for (int i = 0; i < MAX_LINKS; i++) {
        struct link *have = l;
        atomic_compare_exchange_strong(&links[i], &have, NULL);
    }
}

/* ---- the descriptor ---------------------------------------------------- */

bool link_fd_is_ours(struct link *l)
{
    struct stat st;
    int fd = atomic_load(&l->fd);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
           st.st_ino == atomic_load(&l->fd_ino) && st.st_dev == atomic_load(&l->fd_dev);
}

/* Move to a number that programs do not close by habit; takes `fd`. */
static int move_high(int fd)
{
    struct rlimit lim;
    int floor = FD_FLOOR;
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur <= FD_FLOOR)
        floor = lim.rlim_cur > 16 ? (int)lim.rlim_cur - 8 : 3;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, floor);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static void set_timeout(int fd, int ms)
{
    struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
}

static int connect_to(const char *path, int timeout_ms, struct sl_err *err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    memcpy(addr.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return sl_fail_sys(err, SL_UNAVAILABLE, errno, "socket");
    fd = move_high(fd);
    set_timeout(fd, timeout_ms);
    int rc;
    do
        rc = connect(fd, (struct sockaddr *)&addr, sizeof addr);
    while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        int sys = errno;
        close(fd);
        return sl_fail_sys(err, sys == EAGAIN ? SL_TIMEOUT : SL_UNAVAILABLE, sys,
                           "no broker at %s", path);
    }
    return fd;
}

/* ---- hello ------------------------------------------------------------- */

ssize_t link_receive(int fd, struct proto_msg *m, int *passed)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { m, sizeof *m };
    struct msghdr h = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes };
    ssize_t n;
    do
        n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    int got = -1;
    if (n >= 0)
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                memcpy(&got, CMSG_DATA(c), sizeof got);
    if (passed)
        *passed = got;
    else if (got >= 0)
        close(got);
    return n;
}

/* Map the page that came with WELCOME; takes `memfd`. */
static struct proto_page *map_page(int memfd, struct sl_err *err)
{
    struct stat st;
    struct proto_page *page = MAP_FAILED;
    if (memfd >= 0 && fstat(memfd, &st) == 0 && st.st_size >= (off_t)sizeof *page)
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (memfd >= 0)
        close(memfd);
    if (page == MAP_FAILED) {
        sl_fail(err, SL_PROTOCOL, "the broker's welcome carries no page");
        return NULL;
    }
    if (page->magic != PROTO_PAGE_MAGIC || page->version != PROTO_VERSION ||
        page->slot_count > PROTO_MAX_SLOTS) {
        sl_fail(err, SL_PROTOCOL, "the broker's page has version %u, not %u", page->version,
                PROTO_VERSION);
        munmap(page, sizeof *page);
        return NULL;
    }
    return page;
}

/* Say hello on a fresh connection and wait for the page. */
static struct proto_page *say_hello(struct link *l, int fd, bool resume, struct sl_err *err)
{
    struct proto_msg m = { .version = PROTO_VERSION,
                           .kind = PROTO_HELLO,
                           .seq = atomic_fetch_add(&l->seq, 1) + 1 };
    if (resume) {
        m.hello.resume = 1;
        m.hello.slot_count = PROTO_MAX_SLOTS;
        memcpy(m.hello.declared_bytes, l->told_bytes, sizeof l->told_bytes);
    }
    int memfd = -1;
    ssize_t n = send(fd, &m, sizeof m, MSG_NOSIGNAL);
    if (n == sizeof m)
        n = link_receive(fd, &m, &memfd);
    if (n < 0) {
        int sys = errno;
        sl_fail_sys(err, sys == EAGAIN ? SL_TIMEOUT : SL_UNAVAILABLE, sys,
                    "hello to the broker");
        return NULL;
    }
    if (n == sizeof m && m.version == PROTO_VERSION && m.kind == PROTO_WELCOME)
        return map_page(memfd, err);
    if (memfd >= 0)
        close(memfd);
    if (n == 0)
        sl_fail(err, SL_UNAVAILABLE, "the broker went away at hello");
    else if (n == sizeof m && m.version == PROTO_VERSION && m.kind == PROTO_REFUSED)
        sl_fail(err,
                m.code < 0 && -m.code < SL_CODE_COUNT ? (enum sl_code) - m.code : SL_DENIED,
                "the broker refused this process");
    else
        sl_fail(err, SL_PROTOCOL, "the broker speaks version %u, not %u", m.version,
                PROTO_VERSION);
    return NULL;
}

/* Who sleeps on this page shall look again: the broker will not ring it any more. */
static void ring(struct proto_page *page)
{
    if (!page)
        return;
    atomic_fetch_add(&page->bell, 1);
    futex_wake_all(&page->bell);
}

/* Connect and adopt what the broker sends.  Under the mutex (or in link_open). */
static int establish(struct link *l, bool resume, struct sl_err *err)
{
    int timeout_ms = resume ? RESUME_MS : HELLO_MS;
    int fd = connect_to(l->path, timeout_ms, err);
    if (fd < 0)
        return fd;
    struct stat st;
    struct proto_page *page = NULL;
    if (fstat(fd, &st) == 0)
        page = say_hello(l, fd, resume, err);
    else
        sl_fail_sys(err, SL_INTERNAL, errno, "fstat");
    if (!page) {
        close(fd);
        return -(int)err->code;
    }
    set_timeout(fd, HELLO_MS);

    if (link_fd_is_ours(l))
        close(atomic_load(&l->fd));
    atomic_store(&l->fd, fd);
    atomic_store(&l->fd_ino, st.st_ino);
    atomic_store(&l->fd_dev, st.st_dev);
    struct proto_page *old = link_page(l);
    atomic_store_explicit(&l->page, page, memory_order_release);
    atomic_fetch_add(&l->generation, 1);
    atomic_store(&l->state, LINK_UP);
    ring(old);
    return 0;
}

void link_pause(uint64_t *ns)
{
    *ns = *ns ? min_u64(2 * *ns, 100 * NS_PER_MS) : 5 * NS_PER_MS;
    nanosleep(&(struct timespec){ .tv_nsec = (long)*ns }, NULL);
}

int link_open(struct link *l, const char *socket_path, struct sl_err *err)
{
    struct sl_err mine;
    if (!err)
        err = &mine;
    if (!socket_path || strlen(socket_path) >= sizeof l->path)
        return sl_fail(err, SL_INVALID, "the broker's socket path is missing or too long");
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->mutex, NULL);
    strcpy(l->path, socket_path);
    atomic_store(&l->fd, -1);
    uint64_t until = clock_now_ns() + LINK_RESTART_NS, pause = 0;
    int rc;
    while ((rc = establish(l, false, err)) == -SL_UNAVAILABLE && clock_now_ns() < until)
        link_pause(&pause);
    if (rc == 0 && !remember_link(l)) {
        link_close(l);
        return sl_fail(err, SL_INTERNAL, "too many links in one process");
    }
    return rc;
}

void link_close(struct link *l)
{
    forget_link(l);
    if (link_fd_is_ours(l))
        close(atomic_load(&l->fd));
    atomic_store(&l->fd, -1);
    atomic_store(&l->state, LINK_CLOSED);
}

/* ---- loss and return --------------------------------------------------- */

void link_lose(struct link *l)
{
    uint32_t up = LINK_UP;
    if (atomic_load(&l->state) != LINK_UP)
        return;
    atomic_store(&l->lost_ns, clock_now_ns()); /* before anybody sees it lost */
    atomic_store(&l->next_try_ns, 0);
    if (atomic_compare_exchange_strong(&l->state, &up, LINK_LOST))
        ring(link_page(l));
}

bool link_revive(struct link *l)
{
    if (atomic_load(&l->state) == LINK_UP && !link_fd_is_ours(l))
        link_lose(l);
    if (atomic_load(&l->state) != LINK_LOST)
        return atomic_load(&l->state) == LINK_UP;
    uint64_t now = clock_now_ns();
    if (now < atomic_load(&l->next_try_ns))
        return false;
    struct sl_err err = { 0 };
    if (establish(l, true, &err) < 0) {
        bool denied = err.code != SL_UNAVAILABLE && err.code != SL_TIMEOUT;
        atomic_store(&l->next_try_ns,
                     clock_now_ns() + (denied ? RETRY_DENIED_NS : RETRY_NS));
        return false;
    }
    link_settle(l);
    return atomic_load(&l->state) == LINK_UP;
}

bool link_check(struct link *l)
{
    uint32_t state = atomic_load(&l->state);
    if (state == LINK_UP) {
        struct pollfd p = { .fd = atomic_load(&l->fd) };
        if (link_fd_is_ours(l) && poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR)))
            return true;
        link_lose(l);
    } else if (state != LINK_LOST) {
        return false;
    }
    if (pthread_mutex_trylock(&l->mutex) != 0)
        return false;
    bool up = link_revive(l);
    pthread_mutex_unlock(&l->mutex);
    return up;
}

/* ---- one-way messages -------------------------------------------------- */

bool link_send(struct link *l, struct proto_msg *m, int flags)
{
    if (atomic_load(&l->state) != LINK_UP)
        return false;
    if (!link_fd_is_ours(l)) {
        link_lose(l);
        return false;
    }
    m->version = PROTO_VERSION;
    m->seq = atomic_fetch_add(&l->seq, 1) + 1;
    ssize_t n;
    do
        n = send(atomic_load(&l->fd), m, sizeof *m, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
        link_lose(l);
    return n == sizeof *m;
}

bool link_want(struct link *l, uint32_t slot)
{
    struct proto_msg m = { .kind = PROTO_WANT, .device = slot };
    return link_send(l, &m, MSG_DONTWAIT);
}

bool link_release(struct link *l, uint32_t slot, bool more)
{
    struct proto_msg m = { .kind = PROTO_RELEASE, .device = slot, .turn.more = more };
    return link_send(l, &m, MSG_DONTWAIT);
}
