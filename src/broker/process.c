/*
 * Processes of leases: how they join, become suspect, and leave.
 *
 * A client is a pid with its start time.  It holds at most three descriptors
 * here: its socket, its pidfd, and /proc/PID/maps as opened at the hello.  The
 * last one answers whether that address space still exists: reading it gives
 * nothing once the process has exec'ed, and unlike argument or stack addresses
 * no process can forge that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/futex.h"
#include "core/macros.h"
#include "internal.h"
#include "os/fault.h"
#include "proc.h"

/* ---- the table --------------------------------------------------------------- */

static uint32_t *bucket_of(struct broker *b, pid_t pid)
{
    return &b->bucket[(uint32_t)pid % BROKER_BUCKETS];
}

uint32_t process_find(const struct broker *b, pid_t pid, uint64_t start_ticks)
{
    uint32_t i = b->bucket[(uint32_t)pid % BROKER_BUCKETS];
    while (i != BROKER_NONE &&
           (b->clients[i].pid != pid || b->clients[i].start_ticks != start_ticks))
        i = b->clients[i].next;
    return i;
}

void process_link(struct broker *b, uint32_t index)
{
    struct client *c = &b->clients[index];
    struct lease *lease = grant_find(b, c->lease);
    uint32_t *head = bucket_of(b, c->pid);
    c->next = *head;
    *head = index;
    b->client_count++;
    if (lease)
        lease->clients++;
}

static void unlink_client(struct broker *b, uint32_t index)
{
    uint32_t *at = bucket_of(b, b->clients[index].pid);
    while (*at != index)
        at = &b->clients[*at].next;
    *at = b->clients[index].next;
    b->client_count--;
}

int process_open_maps(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* It lives, but not in the address space of its hello.  False also where we may
 * not look (then only death frees), and for one that is dying: its memory is
 * gone, but its pidfd has the word. */
static bool has_execed(const struct client *c)
{
    char byte;
    struct proc_stat s;
    return c->maps_fd >= 0 && pread(c->maps_fd, &byte, 1, 0) == 0 &&
           !proc_read_stat(c->pid, &s) && s.start_ticks == c->start_ticks && !s.exiting;
}

/* ---- the page ------------------------------------------------------------------ */

static void fill_slot(struct proto_slot *s, const struct device *d, uint32_t mode)
{
    memcpy(s->platform, d->platform, sizeof s->platform);
    memcpy(s->name, d->name, sizeof s->name);
    memcpy(s->driver, d->driver, sizeof s->driver);
    s->ordinal = d->ordinal;
    s->mode = mode;
}

/* The mapping, and its descriptor to send; NULL when the kernel has no more. */
static struct proto_page *make_page(struct broker *b, const struct lease *lease,
                                    int *fd_out)
{
    int fd = memfd_create("sluice-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return NULL;
    struct proto_page *p = MAP_FAILED;
    /* sealed, or a client that shrinks it makes our next store a SIGBUS */
    if (!ftruncate(fd, sizeof *p) &&
        !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    p->magic = PROTO_PAGE_MAGIC;
    p->version = PROTO_VERSION;
    p->slot_count = lease->slice_count;
    p->flags = lease->flags;
    p->lease = lease->number;
    p->epoch = lease->epoch;
    for (uint32_t i = 0; i < lease->slice_count; i++)
        fill_slot(&p->slot[i], &b->devices[lease->device[i]], lease->mode);
    *fd_out = fd;
    return p;
}

void process_wake(struct broker *b, uint32_t index)
{
    struct proto_page *p = b->clients[index].page;
    if (p)
        futex_wake_all(&p->bell);
}

void process_record(struct broker *b, uint32_t index)
{
    const struct client *c = &b->clients[index];
    struct runfile_record r = { .pid = c->pid,
                                .uid = c->uid,
                                .start_ticks = c->start_ticks,
                                .lease = c->lease,
                                .epoch = ledger_lease_epoch(b->ledger, c->lease) };
    for (uint32_t i = 0; i < c->slot_count; i++)
        r.bytes[i] = ledger_client_bytes(b->ledger, index, i);
    runfile_write(&b->runfile, index, &r);
}

/* ---- joining --------------------------------------------------------------------- */

/* The index of a new client of this connection; BROKER_NONE when full. */
static uint32_t add_client(struct broker *b, struct conn *c, const struct lease *lease)
{
    uint32_t index = b->free_client;
    if (index == BROKER_NONE || lease->clients >= BROKER_CLIENTS_A_LEASE)
        return BROKER_NONE;
    struct client *n = &b->clients[index];
    if (broker_watch(b, c->pidfd, EVENT_PIDFD, index, n->generation))
        return BROKER_NONE;
    b->free_client = n->next;
    *n = (struct client){ .pid = c->pid,
                          .uid = c->uid,
                          .start_ticks = c->start_ticks,
                          .lease = lease->number,
                          .pidfd = c->pidfd,
                          .conn = BROKER_NONE,
                          .maps_fd = process_open_maps(c->pid),
                          .generation = n->generation };
    c->pidfd = -1;
    process_link(b, index);
    return index;
}

/* Charge `bytes` more, or what is left of the limit. */
static int charge(struct broker *b, uint32_t index, uint32_t slot, uint64_t bytes)
{
    uint64_t reservation, room = 0;
    int rc = ledger_reserve(b->ledger, index, slot, bytes, &reservation, &room), got = rc;
    if (rc == -SL_NO_CAPACITY && room) {
        bytes = room;
        got = ledger_reserve(b->ledger, index, slot, bytes, &reservation, &room);
    }
    if (!got)
        ledger_commit(b->ledger, index, reservation, bytes);
    return rc;
}

/* What a returning front says it was charged is compared with what it is
 * charged.  They differ by the messages that were sent and not read when the
 * connection ended; they are made up for as those messages would have been
 * taken, within the same limits: a front can say no more here than by FREE, or
 * by RESERVE and COMMIT. */
static void settle_declared(struct broker *b, uint32_t index, const struct proto_msg *m)
{
    if (!m->hello.resume)
        return;
    for (uint32_t i = 0; i < min_u64(m->hello.slot_count, b->clients[index].slot_count);
         i++) {
        uint64_t have = ledger_client_bytes(b->ledger, index, i);
        uint64_t said = m->hello.declared_bytes[i];
        if (have == said)
            continue;
        int rc = said < have ? ledger_free(b->ledger, index, i, have - said)
                             : charge(b, index, i, said - have);
        log_client(b, LOG_WARN, "declared-differs",
                   "client=%u pid=%d lease=L%llu slot=%u "
                   "declared=%llu recorded=%llu code=%s",
                   index, (int)b->clients[index].pid,
                   (unsigned long long)b->clients[index].lease, i, (unsigned long long)said,
                   (unsigned long long)have, sl_code_row((enum sl_code) - rc)->wire);
    }
}

static void detach_conn(struct broker *b, uint32_t index)
{
    uint32_t old = b->clients[index].conn;
    if (old != BROKER_NONE)
        conn_close(b, old);
}

static void welcome(struct broker *b, uint32_t conn, uint32_t seq, int page_fd)
{
    struct proto_msg m = { .version = PROTO_VERSION, .kind = PROTO_WELCOME, .seq = seq };
    conn_send(b, conn, &m, page_fd);
}

int process_join(struct broker *b, uint32_t conn, struct lease *lease,
                 enum broker_identity how, const struct proto_msg *m, uint64_t now_ns)
{
    struct conn *c = &b->conns[conn];
    uint32_t index = process_find(b, c->pid, c->start_ticks);
    if (index != BROKER_NONE) {
        detach_conn(b, index);
        /* the same process after an exec: what its former image held is gone */
        if (b->clients[index].pid && has_execed(&b->clients[index]))
            process_leave(b, index, now_ns);
        index = process_find(b, c->pid, c->start_ticks);
    }
    bool fresh = index == BROKER_NONE;
    if (fresh && (index = add_client(b, c, lease)) == BROKER_NONE)
        return -SL_NO_CAPACITY;

    struct client *n = &b->clients[index];
    int page_fd, rc = -SL_UNAVAILABLE;
    struct proto_page *page = make_page(b, lease, &page_fd);
    if (page)
        rc = ledger_join(b->ledger, index, lease->number, page, now_ns);
    if (rc) {
        if (page) {
            close(page_fd);
            munmap(page, sizeof *page);
        }
        if (fresh)
            process_leave(b, index, now_ns);
        return rc;
    }
    if (n->page)
        munmap(n->page, sizeof *n->page);
    b->detached_count -= n->state != CLIENT_CONNECTED;
    n->page = page;
    n->slot_count = lease->slice_count;
    n->state = CLIENT_CONNECTED;
    n->in_ledger = true;
    n->conn = conn;
    if (how != BROKER_IDENTITY_RECORD || fresh)
        n->identity = how;
    c->client = index;
    if (c->pidfd >= 0)
        close(c->pidfd); /* the client has one already */
    c->pidfd = -1;
    settle_declared(b, index, m);
    fault_point("broker.join");
    process_record(b, index);
    fault_point("broker.welcome");
    log_client(b, LOG_INFO, "hello", "client=%u pid=%d uid=%u lease=L%llu identity=%s",
               index, (int)n->pid, n->uid, (unsigned long long)n->lease,
               broker_identity_name(how));
    welcome(b, conn, m->seq, page_fd);
    close(page_fd);
    return 0;
}

/* ---- going away -------------------------------------------------------------------- */

void process_suspect(struct broker *b, uint32_t index, uint64_t now_ns)
{
    struct client *c = &b->clients[index];
    if (c->state == CLIENT_CONNECTED) {
        c->state = CLIENT_SUSPECT;
        b->detached_count++;
    }
    if (has_execed(c)) {
        log_client(b, LOG_INFO, "exec", "client=%u pid=%d lease=L%llu", index, (int)c->pid,
                   (unsigned long long)c->lease);
        process_leave(b, index, now_ns);
        return;
    }
    log_client(b, LOG_INFO, "suspect", "client=%u pid=%d lease=L%llu", index, (int)c->pid,
               (unsigned long long)c->lease);
    ledger_suspect(b->ledger, index, now_ns);
}

void process_leave(struct broker *b, uint32_t index, uint64_t now_ns)
{
    struct client *c = &b->clients[index];
    struct lease *lease = grant_find(b, c->lease);
    uint32_t conn = c->conn;
    if (c->in_ledger)
        ledger_leave(b->ledger, index, now_ns);
    fault_point("broker.leave");
    runfile_clear(&b->runfile, index);
    if (conn != BROKER_NONE) {
        /* closing it must not make a suspect of a client that is gone */
        b->conns[conn].client = BROKER_NONE;
    }
    if (c->page)
        munmap(c->page, sizeof *c->page);
    if (c->maps_fd >= 0)
        close(c->maps_fd);
    close(c->pidfd);
    b->detached_count -= c->state != CLIENT_CONNECTED;
    unlink_client(b, index);
    uint32_t generation = c->generation + 1;
    *c = (struct client){ .generation = generation,
                          .next = b->free_client,
                          .pidfd = -1,
                          .maps_fd = -1,
                          .conn = BROKER_NONE };
    b->free_client = index;
    if (lease)
        grant_put(b, lease);
}

void process_died(struct broker *b, uint32_t index, uint64_t now_ns)
{
    struct client *c = &b->clients[index];
    pid_t pid = c->pid;
    uint64_t lease = c->lease;
    uint32_t conn = c->conn;
    process_leave(b, index, now_ns);
    uint64_t took = clock_now_ns() - now_ns;
    b->death_to_free_ns_max = max_u64(b->death_to_free_ns_max, took);
    b->deaths++;
    if (conn != BROKER_NONE)
        conn_close(b, conn);
    log_client(b, LOG_INFO, "death", "client=%u pid=%d lease=L%llu freed_in_ns=%llu", index,
               (int)pid, (unsigned long long)lease, (unsigned long long)took);
}

void process_recheck_suspects(struct broker *b, uint64_t now_ns)
{
    uint32_t left = b->detached_count;
    for (uint32_t i = 0; left && i < LEDGER_MAX_CLIENTS; i++) {
        struct client *c = &b->clients[i];
        if (!c->pid || c->state == CLIENT_CONNECTED)
            continue;
        left--;
        if (has_execed(c)) {
            log_client(b, LOG_INFO, "exec", "client=%u pid=%d lease=L%llu", i, (int)c->pid,
                       (unsigned long long)c->lease);
            process_leave(b, i, now_ns);
        }
    }
}
