/* Memory calls: reserve, commit, abort, free, and what a lost broker missed. */
#include "link_internal.h"

#include <errno.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"

#define ANSWER_NS (5 * NS_PER_S)

/* Wait for the answer to `seq`.  An answer to a request that timed out before
 * is dropped; bytes it brings are given back. */
static int await(struct link *l, uint32_t seq, struct proto_msg *m)
{
    uint64_t until = clock_now_ns() + ANSWER_NS;
    do {
        ssize_t n = link_receive(atomic_load(&l->fd), m, NULL);
        if (n < 0 && errno == EAGAIN)
            return -SL_TIMEOUT;
        if (n <= 0) {
            link_lose(l);
            return -SL_UNAVAILABLE;
        }
        if (n != sizeof *m || m->version != PROTO_VERSION)
            continue;
        if (m->seq == seq)
            return 0;
        if (m->kind == PROTO_RESERVED) {
            struct proto_msg back = { .kind = PROTO_ABORT,
                                      .device = m->device,
                                      .mem.reservation = m->mem.reservation };
            link_send(l, &back, 0);
        }
    } while (clock_now_ns() < until);
    return -SL_TIMEOUT;
}

/* RESERVE on a link that is up; under the mutex. */
static int reserve(struct link *l, uint32_t slot, uint64_t bytes,
                   struct link_reservation *r, uint64_t *free_bytes)
{
    struct proto_msg m = { .kind = PROTO_RESERVE, .device = slot, .mem.bytes = bytes };
    if (!link_send(l, &m, 0))
        return -SL_UNAVAILABLE;
    int rc = await(l, m.seq, &m);
    if (rc < 0)
        return rc;
    if (m.kind == PROTO_RESERVED) {
        *r = (struct link_reservation){ .id = m.mem.reservation,
                                        .bytes = bytes,
                                        .slot = slot,
                                        .generation = atomic_load(&l->generation) };
        return 0;
    }
    *free_bytes = m.mem.free_bytes;
    return m.code < 0 ? m.code : -SL_NO_CAPACITY;
}

static bool commit(struct link *l, const struct link_reservation *r, uint64_t bytes)
{
    struct proto_msg m = { .kind = PROTO_COMMIT,
                           .device = r->slot,
                           .mem = { .bytes = bytes, .reservation = r->id } };
    return link_send(l, &m, 0);
}

void link_settle(struct link *l)
{
    for (uint32_t slot = 0; slot < PROTO_MAX_SLOTS; slot++) {
        uint64_t have = atomic_load(&l->committed_bytes[slot]);
        uint64_t told = l->told_bytes[slot];
        struct proto_msg m = { .kind = PROTO_FREE,
                               .device = slot,
                               .mem.bytes = told - have };
        struct link_reservation r;
        uint64_t unused;
        if (have < told && link_send(l, &m, 0))
            l->told_bytes[slot] = have;
        else if (have > told && reserve(l, slot, have - told, &r, &unused) == 0 &&
                 commit(l, &r, have - told))
            l->told_bytes[slot] = have;
    }
}

static int try_reserve(struct link *l, uint32_t slot, uint64_t bytes,
                       struct link_reservation *r, uint64_t *free_bytes)
{
    pthread_mutex_lock(&l->mutex);
    int rc = -SL_UNAVAILABLE;
    /* Twice: the first send may be what finds out that the broker restarted. */
    for (int try = 0; try < 2 && rc == -SL_UNAVAILABLE && link_revive(l); try++) {
        link_settle(l);
        rc = reserve(l, slot, bytes, r, free_bytes);
    }
    pthread_mutex_unlock(&l->mutex);
    return rc;
}

int link_reserve(struct link *l, uint32_t slot, uint64_t bytes, struct link_reservation *r,
                 uint64_t *free_bytes)
{
    *free_bytes = 0;
    if (slot >= PROTO_MAX_SLOTS)
        return -SL_INVALID;
    uint64_t begin = clock_now_ns(), pause = 0;
    int rc = -SL_UNAVAILABLE;
    while (!link_forked(l)) {
        rc = try_reserve(l, slot, bytes, r, free_bytes);
        uint64_t now = clock_now_ns();
        if (rc != -SL_UNAVAILABLE || now - begin >= LINK_RESTART_NS ||
            now - atomic_load(&l->lost_ns) >= LINK_RESTART_NS)
            break;
        link_pause(&pause);
    }
    return rc;
}

void link_commit(struct link *l, const struct link_reservation *r, uint64_t bytes)
{
    if (link_forked(l))
        return;
    bytes = min_u64(bytes, r->bytes);
    pthread_mutex_lock(&l->mutex);
    atomic_fetch_add(&l->committed_bytes[r->slot], bytes);
    if (link_revive(l)) {
        /* A reservation of an older connection is void: settle asks anew. */
        if (r->generation == atomic_load(&l->generation) && commit(l, r, bytes))
            l->told_bytes[r->slot] += bytes;
        else
            link_settle(l);
    }
    pthread_mutex_unlock(&l->mutex);
}

void link_abort(struct link *l, const struct link_reservation *r)
{
    if (link_forked(l))
        return;
    struct proto_msg m = { .kind = PROTO_ABORT,
                           .device = r->slot,
                           .mem.reservation = r->id };
    pthread_mutex_lock(&l->mutex);
    if (link_revive(l) && r->generation == atomic_load(&l->generation))
        link_send(l, &m, 0);
    pthread_mutex_unlock(&l->mutex);
}

void link_free(struct link *l, uint32_t slot, uint64_t bytes)
{
    if (link_forked(l) || slot >= PROTO_MAX_SLOTS)
        return;
    pthread_mutex_lock(&l->mutex);
    uint64_t have = atomic_load(&l->committed_bytes[slot]);
    atomic_store(&l->committed_bytes[slot], sub_sat_u64(have, bytes));
    if (link_revive(l))
        link_settle(l);
    pthread_mutex_unlock(&l->mutex);
}

uint64_t link_committed_bytes(const struct link *l, uint32_t slot)
{
    return slot < PROTO_MAX_SLOTS ? atomic_load(&l->committed_bytes[slot]) : 0;
}
