/* The tables that the agent fills: devices with their locks, leases with their anchors. */
#include "grant.h"

#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "lock.h"

struct lease *grant_find(struct broker *b, uint64_t number)
{
    for (uint32_t i = 0; number && i < b->lease_top; i++)
        if (b->leases[i].number == number)
            return &b->leases[i];
    return NULL;
}

static void forget(struct broker *b, struct lease *l)
{
    memset(l, 0, sizeof *l);
    b->lease_count--;
    while (b->lease_top && !b->leases[b->lease_top - 1].number)
        b->lease_top--;
}

void grant_put(struct broker *b, struct lease *l)
{
    if (--l->clients == 0 && l->dropped)
        forget(b, l);
}

/* ---- devices ------------------------------------------------------------------ */

static bool device_is_leased(const struct broker *b, uint32_t index)
{
    for (uint32_t i = 0; i < b->lease_top; i++)
        for (uint32_t s = 0; b->leases[i].number && s < b->leases[i].slice_count; s++)
            if (b->leases[i].device[s] == index)
                return true;
    return false;
}

static void release_device(struct broker *b, struct device *d)
{
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    memset(d, 0, sizeof *d);
    d->lock_fd = -1;
    b->device_count--;
}

/* Known under another index, where nothing is lent any more: its lock is ours to give up. */
static void release_elsewhere(struct broker *b, const char *id)
{
    for (uint32_t i = 0; i < PROTO_MAX_DEVICES; i++)
        if (b->devices[i].used && strcmp(b->devices[i].id, id) == 0 &&
            !device_is_leased(b, i))
            release_device(b, &b->devices[i]);
}

/* A new device: lock it first, machine-wide. */
static int claim_device(struct broker *b, struct proto_ctl *m)
{
    struct device *d = &b->devices[m->device.index];
    int fd = -1;
    release_elsewhere(b, m->device.id);
    if (!(m->device.flags & PROTO_DEVICE_EMULATED)) {
        fd = device_lock_take(m->device.id, &m->device.holder_pid, &m->device.holder_uid);
        if (fd == -SL_CONFLICT)
            m->device.flags |= PROTO_DEVICE_HELD;
        if (fd < 0)
            return fd;
        if (broker_watch(b, fd, EVENT_LOCK, m->device.index, 0)) {
            close(fd);
            return -SL_IO;
        }
    }
    memset(d, 0, sizeof *d);
    d->used = true;
    d->lock_fd = fd;
    memcpy(d->id, m->device.id, sizeof d->id);
    b->device_count++;
    return 0;
}

int device_set(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    if (m->device.index >= PROTO_MAX_DEVICES || !m->device.id[0] ||
        !memchr(m->device.id, 0, sizeof m->device.id))
        return -SL_INVALID;
    struct device *d = &b->devices[m->device.index];
    m->device.flags &= ~PROTO_DEVICE_HELD;

    bool same = d->used && !strcmp(d->id, m->device.id) &&
                !((d->flags ^ m->device.flags) & PROTO_DEVICE_EMULATED);
    bool fresh = !same;
    if (d->used && !same) {
        if (device_is_leased(b, m->device.index))
            return -SL_CONFLICT;
        release_device(b, d);
    }
    int rc = fresh ? claim_device(b, m) : 0;
    if (rc)
        return rc;

    struct ledger_device to = { .capacity_bytes = m->device.capacity_bytes,
                                .reserve_bytes = m->device.reserve_bytes,
                                .turn_ns = m->device.turn_ns,
                                .concurrent = m->device.flags & PROTO_DEVICE_CONCURRENT };
    rc = ledger_set_device(b->ledger, m->device.index, &to, now_ns);
    if (rc) {
        if (fresh)
            release_device(b, d);
        return rc;
    }
    d->flags = m->device.flags;
    d->ordinal = m->device.ordinal;
    memcpy(d->platform, m->device.platform, sizeof d->platform);
    memcpy(d->name, m->device.name, sizeof d->name);
    memcpy(d->driver, m->device.driver, sizeof d->driver);
    d->platform[sizeof d->platform - 1] = 0;
    d->name[sizeof d->name - 1] = 0;
    d->driver[sizeof d->driver - 1] = 0;
    if (fresh)
        log_event(LOG_INFO, "device", "index=%u id=%s", m->device.index, d->id);
    return 0;
}

/* ---- leases -------------------------------------------------------------------- */

static struct lease *free_lease(struct broker *b)
{
    for (uint32_t i = 0; i < LEDGER_MAX_LEASES; i++)
        if (!b->leases[i].number)
            return &b->leases[i];
    return NULL;
}

static int check_lease(const struct broker *b, const struct lease *have,
                       const struct proto_ctl *m)
{
    if (!m->lease.number || !m->lease.slice_count ||
        m->lease.slice_count > PROTO_MAX_SLOTS || m->lease.mode > PROTO_BESTEFFORT)
        return -SL_INVALID;
    for (uint32_t i = 0; i < m->lease.slice_count; i++)
        if (m->lease.slice[i].device >= PROTO_MAX_DEVICES ||
            !b->devices[m->lease.slice[i].device].used)
            return -SL_NOT_FOUND;
    if (!have || !have->clients)
        return 0;
    /* the pages of its clients say which slot is which device */
    bool moved = have->slice_count != m->lease.slice_count;
    for (uint32_t i = 0; !moved && i < have->slice_count; i++)
        moved = have->device[i] != m->lease.slice[i].device;
    return moved ? -SL_CONFLICT : 0;
}

int grant_set(struct broker *b, struct proto_ctl *m, uint64_t now_ns)
{
    struct lease *l = grant_find(b, m->lease.number);
    int rc = check_lease(b, l, m);
    if (rc)
        return rc;
    bool fresh = !l;
    if (fresh && !(l = free_lease(b)))
        return -SL_NO_CAPACITY;

    struct ledger_lease to = { .number = m->lease.number,
                               .epoch = m->lease.epoch,
                               .mode = (enum proto_mode)m->lease.mode,
                               .priority = m->lease.priority,
                               .max_kernel_ns = m->lease.max_kernel_ns,
                               .slice_count = m->lease.slice_count };
    memcpy(to.slice, m->lease.slice, sizeof to.slice);
    rc = ledger_set_lease(b->ledger, &to, m->lease.over_bytes, now_ns);
    if (rc)
        return rc;

    l->epoch = m->lease.epoch;
    l->flags = m->lease.flags;
    l->mode = m->lease.mode;
    l->slice_count = m->lease.slice_count;
    l->dropped = false;
    for (uint32_t i = 0; i < l->slice_count; i++)
        l->device[i] = m->lease.slice[i].device;
    if (fresh) {
        l->number = m->lease.number;
        b->lease_count++;
        b->lease_top = (uint32_t)max_u64(b->lease_top, (uint64_t)(l - b->leases) + 1);
        /* those of the run file that waited for it */
        for (uint32_t i = 0; b->client_count && i < LEDGER_MAX_CLIENTS; i++)
            l->clients += b->clients[i].pid && b->clients[i].lease == l->number;
    }
    log_event(LOG_INFO, "lease", "lease=L%llu epoch=%llu fresh=%d",
              (unsigned long long)l->number, (unsigned long long)l->epoch, fresh);
    recover_lease(b, l);
    conn_retry_parked(b, now_ns);
    return 0;
}

int grant_anchor(struct broker *b, const struct proto_ctl *m, uint64_t now_ns)
{
    struct lease *l = grant_find(b, m->anchor.number);
    if (!l || l->dropped)
        return -SL_NOT_FOUND;
    if (m->anchor.epoch < l->epoch)
        return -SL_STALE;
    l->shim_pid = m->anchor.shim_pid > 0 ? m->anchor.shim_pid : 0;
    l->shim_start_ticks = m->anchor.shim_start_ticks;
    l->cgroup_id = m->anchor.cgroup_id;
    log_event(LOG_INFO, "anchor", "lease=L%llu shim=%d cgroup=%llu",
              (unsigned long long)l->number, (int)l->shim_pid,
              (unsigned long long)l->cgroup_id);
    conn_retry_parked(b, now_ns);
    return 0;
}

int grant_drop(struct broker *b, const struct proto_ctl *m, uint64_t now_ns)
{
    struct lease *l = grant_find(b, m->drop.number);
    if (!l)
        return -SL_NOT_FOUND;
    int rc = ledger_drop_lease(b->ledger, m->drop.number, m->drop.epoch, now_ns);
    if (rc)
        return rc;
    log_event(LOG_INFO, "drop", "lease=L%llu clients=%u", (unsigned long long)l->number,
              l->clients);
    l->dropped = true;
    if (!l->clients)
        forget(b, l);
    return 0;
}
