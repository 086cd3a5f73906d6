/*
 * Takes over from a broker that was killed: who lived then and still lives is
 * charged what the run file says, until it comes back or dies.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "internal.h"
#include "proc.h"

/* A pidfd of the very process of the record, or -1: its start time is compared
 * after the pidfd exists, so that a reused pid cannot slip in between. */
static int open_process(const struct runfile_record *r)
{
    int pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    struct proc_stat stat;
    if (pidfd >= 0 &&
        (proc_read_stat(r->pid, &stat) || stat.start_ticks != r->start_ticks ||
         stat.state == 'Z' || stat.state == 'X')) {
        close(pidfd);
        pidfd = -1;
    }
    return pidfd;
}

static bool recover_client(struct broker *b, uint32_t index, const struct runfile_record *r)
{
    struct client *c = &b->clients[index];
    int pidfd = open_process(r);
    if (pidfd < 0)
        return false;
    if (broker_watch(b, pidfd, EVENT_PIDFD, index, c->generation)) {
        close(pidfd);
        return false;
    }
    *c = (struct client){ .pid = r->pid,
                          .uid = r->uid,
                          .start_ticks = r->start_ticks,
                          .lease = r->lease,
                          .pidfd = pidfd,
                          .maps_fd = process_open_maps(r->pid),
                          .conn = BROKER_NONE,
                          .state = CLIENT_RECOVERING,
                          .identity = BROKER_IDENTITY_RECORD,
                          .generation = c->generation };
    for (int i = 0; i < PROTO_MAX_SLOTS; i++)
        c->recovered_bytes[i] = r->bytes[i];
    process_link(b, index);
    b->detached_count++;
    b->recovered_clients++;
    log_event(LOG_INFO, "recovered", "client=%u pid=%d lease=L%llu", index, (int)r->pid,
              (unsigned long long)r->lease);
    return true;
}

void recover_read(struct broker *b)
{
    b->free_client = BROKER_NONE;
    for (uint32_t i = LEDGER_MAX_CLIENTS; i-- > 0;) {
        struct runfile_record r;
        bool torn = false;
        bool found = b->runfile.found && runfile_read(&b->runfile, i, &r, &torn);
        if (torn)
            log_event(LOG_ERROR, "record-lost", "client=%u", i);
        if (found && recover_client(b, i, &r))
            continue;
        if (found || torn)
            runfile_clear(&b->runfile, i);
        b->clients[i].next = b->free_client;
        b->free_client = i;
    }
    if (b->runfile.found)
        b->grace_until_ns = b->started_ns + BROKER_GRACE_NS;
}

void recover_lease(struct broker *b, const struct lease *lease)
{
    for (uint32_t i = 0; b->detached_count && i < LEDGER_MAX_CLIENTS; i++) {
        struct client *c = &b->clients[i];
        if (!c->pid || c->in_ledger || c->lease != lease->number)
            continue;
        int rc = ledger_recover(b->ledger, i, lease->number, c->recovered_bytes);
        if (rc) {
            log_event(LOG_ERROR, "recover-failed", "client=%u pid=%d lease=L%llu code=%s",
                      i, (int)c->pid, (unsigned long long)lease->number,
                      sl_code_row((enum sl_code) - rc)->wire);
            continue;
        }
        c->in_ledger = true;
        c->slot_count = lease->slice_count;
    }
}
