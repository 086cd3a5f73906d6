/* The control socket: the agent's requests, one answer each. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "internal.h"
#include "grant.h"

static void control_close(struct broker *b, uint32_t index)
{
    close(b->controls[index].fd);
    b->controls[index].fd = -1;
    b->controls[index].generation++;
}

static bool may_control(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void admit(struct broker *b, int fd)
{
    for (uint32_t i = 0; i < BROKER_CONTROLS && may_control(fd); i++) {
        struct control *c = &b->controls[i];
        if (c->fd >= 0)
            continue;
        if (broker_watch(b, fd, EVENT_CONTROL, i, c->generation))
            break;
        c->fd = fd;
        return;
    }
    log_client(b, LOG_WARN, "control-refused", "uid or number");
    close(fd);
}

void control_accept(struct broker *b)
{
    for (int i = 0; i < BROKER_CONTROLS; i++) {
        int fd = accept4(b->control_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        admit(b, fd);
    }
}

/* ---- requests --------------------------------------------------------------- */

static int on_device(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    return device_set(b, m, now_ns);
}

static int on_lease(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    return grant_set(b, m, now_ns);
}

static int on_anchor(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    return grant_anchor(b, m, now_ns);
}

static int on_drop(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    return grant_drop(b, m, now_ns);
}

static int on_stat_device(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    return ledger_stat_device(b->ledger, m->cursor, m, now_ns);
}

static int on_stat_lease(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    return ledger_stat_lease(b->ledger, m->cursor, m, now_ns);
}

static int on_stat_client(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    uint64_t i = m->cursor;
    while (i < LEDGER_MAX_CLIENTS && !b->clients[i].pid)
        i++;
    if (i >= LEDGER_MAX_CLIENTS)
        return -SL_NOT_FOUND;
    const struct client *c = &b->clients[i];
    memset(m->pad, 0, sizeof m->pad);
    m->client_stat.lease = c->lease;
    m->client_stat.pid = c->pid;
    m->client_stat.uid = c->uid;
    m->client_stat.start_ticks = c->start_ticks;
    m->client_stat.state = c->state;
    m->client_stat.identity = c->identity;
    for (uint32_t s = 0; s < PROTO_MAX_SLOTS; s++)
        m->client_stat.bytes += !c->in_ledger ? c->recovered_bytes[s]
                                : s < c->slot_count
                                    ? ledger_client_bytes(b->ledger, (uint32_t)i, s)
                                    : 0;
    m->cursor = i + 1;
    while (++i < LEDGER_MAX_CLIENTS && !b->clients[i].pid)
        ;
    m->more = i < LEDGER_MAX_CLIENTS;
    return 0;
}

static int on_info(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    memset(m->pad, 0, sizeof m->pad);
    m->info.pid = getpid();
    m->info.clients = b->client_count;
    m->info.leases = b->lease_count;
    m->info.devices = b->device_count;
    m->info.started_ns = b->started_ns;
    m->info.now_ns = now_ns;
    m->info.recovered_clients = b->recovered_clients;
    m->info.refused_clients = b->refused_clients;
    m->info.nonsense_messages = b->nonsense_messages;
    m->info.deaths = b->deaths;
    m->info.death_to_free_ns_max = b->death_to_free_ns_max;
    memcpy(m->info.version, SLUICE_VERSION, sizeof SLUICE_VERSION);
    return 0;
}

static int on_quit(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    if (b->client_count && !m->info.force)
        return -SL_CONFLICT;
    b->end = true;
    return 0;
}

static int (*const requests[PROTO_CTL_KIND_COUNT])(struct broker *, struct proto_ctl *,
                                                   uint64_t) = {
    [PROTO_CTL_DEVICE] = on_device,
    [PROTO_CTL_LEASE] = on_lease,
    [PROTO_CTL_ANCHOR] = on_anchor,
    [PROTO_CTL_DROP] = on_drop,
    [PROTO_CTL_STAT_DEVICE] = on_stat_device,
    [PROTO_CTL_STAT_LEASE] = on_stat_lease,
    [PROTO_CTL_STAT_CLIENT] = on_stat_client,
    [PROTO_CTL_INFO] = on_info,
    [PROTO_CTL_QUIT] = on_quit,
};

void control_message(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    m->more = 0;
    if (m->version != PROTO_VERSION) {
        m->code = -SL_PROTOCOL;
        m->version = PROTO_VERSION;
    } else if (m->kind >= PROTO_CTL_KIND_COUNT || !requests[m->kind]) {
        m->code = -SL_UNSUPPORTED;
    } else {
        m->code = requests[m->kind](b, m, now_ns);
    }
}

void control_readable(struct broker *b, uint32_t index)
{
    int fd = b->controls[index].fd;
    struct proto_ctl m;
    for (int i = 0; i < BROKER_BATCH; i++) {
        memset(&m, 0, sizeof m);
        ssize_t n = recv(fd, &m, sizeof m, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n > 0 && n != sizeof m)
            log_client(b, LOG_WARN, "control-nonsense", "size=%zd", n);
        if (n != sizeof m)
            break;
        control_message(b, &m, clock_now_ns());
        if (send(fd, &m, sizeof m, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof m)
            break;
        if (i == BROKER_BATCH - 1)
            return;
    }
    control_close(b, index);
}
