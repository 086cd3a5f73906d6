/*
 * The sockets of fronts: takes connections, receives their messages in bounded
 * batches, ends those that talk nonsense.
 *
 * A connection is not a client: it becomes one by a hello from a process that
 * the kernel places in a lease (process.c).  Closing one never frees bytes.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "internal.h"
#include "os/fault.h"

#define ACCEPTS_A_TURN 16

/* ---- the list of those that have not said hello --------------------------- */

static void mute_add(struct broker *b, uint32_t index)
{
    struct conn *c = &b->conns[index];
    c->mute = true;
    c->next = BROKER_NONE;
    c->prev = b->mute_last;
    if (b->mute_last != BROKER_NONE)
        b->conns[b->mute_last].next = index;
    else
        b->mute_first = index;
    b->mute_last = index;
}

static void mute_remove(struct broker *b, uint32_t index)
{
    struct conn *c = &b->conns[index];
    if (!c->mute)
        return;
    c->mute = false;
    if (c->prev != BROKER_NONE)
        b->conns[c->prev].next = c->next;
    else
        b->mute_first = c->next;
    if (c->next != BROKER_NONE)
        b->conns[c->next].prev = c->prev;
    else
        b->mute_last = c->prev;
}

/* ---- open and close ---------------------------------------------------------- */

void conn_close(struct broker *b, uint32_t index)
{
    struct conn *c = &b->conns[index];
    if (c->fd < 0)
        return;
    uint32_t client = c->client;
    mute_remove(b, index);
    b->parked_count -= c->parked;
    c->parked = false;
    close(c->fd);
    if (c->pidfd >= 0)
        close(c->pidfd);
    c->fd = c->pidfd = -1;
    c->generation++;
    c->client = BROKER_NONE;
    c->next = b->free_conn;
    b->free_conn = index;
    b->conn_count--;
    if (client != BROKER_NONE) {
        b->clients[client].conn = BROKER_NONE;
        process_suspect(b, client, clock_now_ns());
    }
}

static void end_for_nonsense(struct broker *b, uint32_t index, const char *why)
{
    struct conn *c = &b->conns[index];
    b->nonsense_messages++;
    log_client(b, LOG_WARN, "nonsense", "pid=%d why=%s", (int)c->pid, why);
    conn_close(b, index);
}

/* Full: the connection that has been silent for longest makes room. */
static bool make_room(struct broker *b)
{
    if (b->conn_count < b->conn_limit)
        return true;
    if (b->mute_first == BROKER_NONE)
        return false;
    conn_close(b, b->mute_first);
    b->refused_clients++;
    return true;
}

void conn_admit(struct broker *b, int fd)
{
    struct conn who = { .pidfd = -1 };
    if (!make_room(b) || identity_peer(b, fd, &who)) {
        b->refused_clients++;
        close(fd);
        return;
    }
    uint32_t index = b->free_conn;
    struct conn *c = &b->conns[index];
    if (broker_watch(b, fd, EVENT_CONN, index, c->generation)) {
        close(who.pidfd);
        close(fd);
        return;
    }
    b->free_conn = c->next;
    b->conn_count++;
    who.generation = c->generation;
    who.fd = fd;
    who.client = BROKER_NONE;
    who.since_ns = clock_now_ns();
    *c = who;
    mute_add(b, index);
}

void conn_accept(struct broker *b)
{
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE)
                log_client(b, LOG_ERROR, "accept-failed", "errno=%d", errno);
            return;
        }
        conn_admit(b, fd);
    }
}

void conn_expire(struct broker *b, uint64_t now_ns)
{
    while (b->mute_first != BROKER_NONE &&
           b->conns[b->mute_first].since_ns + BROKER_HELLO_NS <= now_ns)
        conn_close(b, b->mute_first);
}

/* ---- send -------------------------------------------------------------------- */

void conn_send(struct broker *b, uint32_t index, const struct proto_msg *m, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { (void *)m, sizeof *m };
    struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
        h.msg_control = &control;
        h.msg_controllen = sizeof control;
    }
    if (sendmsg(b->conns[index].fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof *m)
        return;
    /* it went away, or it sends without reading: the broker waits for nobody */
    if (errno == EAGAIN)
        end_for_nonsense(b, index, "does-not-read");
    else
        conn_close(b, index);
}

static void refuse(struct broker *b, uint32_t index, uint32_t seq, int code)
{
    struct proto_msg m = {
        .version = PROTO_VERSION, .kind = PROTO_REFUSED, .seq = seq, .code = code
    };
    uint32_t generation = b->conns[index].generation;
    b->refused_clients++;
    log_client(b, LOG_INFO, "refused", "pid=%d uid=%u code=%s", (int)b->conns[index].pid,
               b->conns[index].uid, sl_code_row((enum sl_code) - code)->wire);
    conn_send(b, index, &m, -1);
    if (b->conns[index].generation == generation)
        conn_close(b, index);
}

/* ---- hello ------------------------------------------------------------------- */

/* Just after a restart the agent may not have said its leases again: a hello
 * that cannot be placed waits for that, at most the grace time. */
static bool park(struct broker *b, struct conn *c, const struct proto_msg *m,
                 uint64_t now_ns)
{
    if (now_ns >= b->grace_until_ns)
        return false;
    if (!c->parked) {
        c->parked = true;
        c->hello = *m;
        b->parked_count++;
    }
    return true;
}

static void hello(struct broker *b, uint32_t index, const struct proto_msg *m,
                  uint64_t now_ns)
{
    struct conn *c = &b->conns[index];
    enum broker_identity how;
    struct lease *lease = identity_find_lease(b, c, &how);
    if (!lease) {
        if (!park(b, c, m, now_ns))
            refuse(b, index, m->seq, -SL_DENIED);
        return;
    }
    b->parked_count -= c->parked;
    c->parked = false;
    uint32_t seq = m->seq, generation = c->generation;
    mute_remove(b, index);
    int rc = process_join(b, index, lease, how, m, now_ns);
    if (rc && c->generation == generation)
        refuse(b, index, seq, rc);
}

void conn_retry_parked(struct broker *b, uint64_t now_ns)
{
    for (uint32_t i = b->mute_first, next; b->parked_count && i != BROKER_NONE; i = next) {
        next = b->conns[i].next;
        if (b->conns[i].parked) {
            struct proto_msg m = b->conns[i].hello;
            hello(b, i, &m, now_ns);
        }
    }
}

/* ---- messages of clients --------------------------------------------------------- */

struct request {
    struct broker *b;
    uint32_t conn, client;
    const struct proto_msg *m;
    uint64_t now_ns;
};

static void on_reserve(const struct request *r)
{
    struct proto_msg a = { .version = PROTO_VERSION,
                           .seq = r->m->seq,
                           .device = r->m->device };
    uint64_t reservation = 0, free_bytes = 0;
    int rc = ledger_reserve(r->b->ledger, r->client, r->m->device, r->m->mem.bytes,
                            &reservation, &free_bytes);
    a.kind = rc ? PROTO_REFUSED : PROTO_RESERVED;
    a.code = rc;
    a.mem.bytes = r->m->mem.bytes;
    a.mem.reservation = reservation;
    a.mem.free_bytes = free_bytes;
    conn_send(r->b, r->conn, &a, -1);
}

/* A refused commit, abort or free is a front that counts wrongly, or a liar:
 * the ledger has cut it to what is true; that it happened is counted. */
static void tally(const struct request *r, int rc, const char *what)
{
    if (!rc)
        return;
    r->b->nonsense_messages++;
    log_client(r->b, LOG_WARN, "cut", "what=%s client=%u pid=%d lease=L%llu code=%s", what,
               r->client, (int)r->b->clients[r->client].pid,
               (unsigned long long)r->b->clients[r->client].lease,
               sl_code_row((enum sl_code) - rc)->wire);
}

static void on_commit(const struct request *r)
{
    tally(r, ledger_commit(r->b->ledger, r->client, r->m->mem.reservation, r->m->mem.bytes),
          "commit");
    fault_point("broker.commit");
    process_record(r->b, r->client);
}

static void on_abort(const struct request *r)
{
    tally(r, ledger_abort(r->b->ledger, r->client, r->m->mem.reservation), "abort");
}

static void on_free(const struct request *r)
{
    tally(r, ledger_free(r->b->ledger, r->client, r->m->device, r->m->mem.bytes), "free");
    fault_point("broker.free");
    process_record(r->b, r->client);
}

static void on_want(const struct request *r)
{
    ledger_want(r->b->ledger, r->client, r->m->device, r->now_ns);
}

static void on_release(const struct request *r)
{
    ledger_release(r->b->ledger, r->client, r->m->device, r->m->turn.more != 0, r->now_ns);
}

static void on_ping(const struct request *r)
{
    struct proto_msg a = { .version = PROTO_VERSION, .kind = PROTO_PONG, .seq = r->m->seq };
    conn_send(r->b, r->conn, &a, -1);
}

static const struct {
    void (*handle)(const struct request *r);
    bool slot; /* `device` must be a slot of the lease */
} requests[PROTO_KIND_COUNT] = {
    [PROTO_RESERVE] = { on_reserve, true }, [PROTO_COMMIT] = { on_commit, false },
    [PROTO_ABORT] = { on_abort, false },    [PROTO_FREE] = { on_free, true },
    [PROTO_WANT] = { on_want, true },       [PROTO_RELEASE] = { on_release, true },
    [PROTO_PING] = { on_ping, false },
};

static const char *what_is_wrong(const struct broker *b, const struct conn *c,
                                 const struct proto_msg *m, size_t length)
{
    if (length != sizeof *m)
        return "size";
    if (m->version != PROTO_VERSION)
        return "version";
    if (c->client == BROKER_NONE)
        return m->kind == PROTO_HELLO && !c->parked ? NULL : "no-hello";
    if (m->kind >= PROTO_KIND_COUNT || !requests[m->kind].handle)
        return "kind";
    if (requests[m->kind].slot && m->device >= b->clients[c->client].slot_count)
        return "slot";
    return NULL;
}

bool conn_message(struct broker *b, uint32_t index, const struct proto_msg *m,
                  size_t length, pid_t pid, uint64_t now_ns)
{
    struct conn *c = &b->conns[index];
    if (pid != c->pid) {
        /* a forked child with the socket of its parent; it may say its own
         * hello on its own connection */
        b->nonsense_messages++;
        return true;
    }
    const char *wrong = what_is_wrong(b, c, m, length);
    if (wrong) {
        /* a front of another version learns why */
        if (length >= 8 && c->client == BROKER_NONE && m->version != PROTO_VERSION)
            refuse(b, index, m->seq, -SL_PROTOCOL);
        else
            end_for_nonsense(b, index, wrong);
        return false;
    }
    uint32_t generation = c->generation;
    if (c->client == BROKER_NONE) {
        hello(b, index, m, now_ns);
    } else {
        struct request r = { b, index, c->client, m, now_ns };
        requests[m->kind].handle(&r);
    }
    return c->generation == generation;
}

/* ---- receive --------------------------------------------------------------------- */

struct inbox {
    struct mmsghdr header[BROKER_BATCH];
    struct iovec iov[BROKER_BATCH];
    struct proto_msg message[BROKER_BATCH];
    /* Exactly the credentials: descriptors that a client sends find no room
     * and are dropped by the kernel. */
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control[BROKER_BATCH];
};

static void inbox_prepare(struct inbox *in)
{
    memset(in->header, 0, sizeof in->header);
    for (int i = 0; i < BROKER_BATCH; i++) {
        in->iov[i] = (struct iovec){ &in->message[i], sizeof in->message[i] };
        in->header[i].msg_hdr.msg_iov = &in->iov[i];
        in->header[i].msg_hdr.msg_iovlen = 1;
        in->header[i].msg_hdr.msg_control = &in->control[i];
        in->header[i].msg_hdr.msg_controllen = sizeof in->control[i];
    }
}

static pid_t sender(struct msghdr *h)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(h);
    struct ucred who;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
        c->cmsg_len < CMSG_LEN(sizeof who))
        return 0;
    memcpy(&who, CMSG_DATA(c), sizeof who);
    return who.pid;
}

/* One batch, then the others' turn: epoll puts a socket that is still readable
 * at the end of its list. */
void conn_readable(struct broker *b, uint32_t index)
{
    struct inbox in;
    inbox_prepare(&in);
    int n = recvmmsg(b->conns[index].fd, in.header, BROKER_BATCH, MSG_DONTWAIT, NULL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            conn_close(b, index);
        return;
    }
    uint64_t now_ns = clock_now_ns();
    for (int i = 0; i < n; i++) {
        struct msghdr *h = &in.header[i].msg_hdr;
        size_t length = in.header[i].msg_len;
        if (length == 0) {
            conn_close(b, index);
            return;
        }
        if (h->msg_flags & MSG_TRUNC)
            length = SIZE_MAX;
        if (!conn_message(b, index, &in.message[i], length, sender(h), now_ns))
            return;
    }
}
