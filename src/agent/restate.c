/* Owns what the broker is told: devices, leases and anchors, each at its change and all
 * when it is new. */
#include "agent.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <signal.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "os/log.h"

/* A broker's command line is "sluice-broker --run-dir DIR". */
static void name_holder(struct device *d)
{
    char path[32], words[512] = "";
    const char *dir = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", d->holder_pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, words, sizeof words - 1);
    for (const char *w = words; w < words + len; w += strlen(w) + 1)
        if (!strcmp(w, "--run-dir") && w + strlen(w) + 1 < words + len)
            dir = w + strlen(w) + 1;
    snprintf(d->why, sizeof d->why, "the broker with pid %d of uid %u has it%s%.70s",
             d->holder_pid, d->holder_uid, dir[0] ? ", in " : "", dir);
}

int restate_device(struct agent *a, struct device *d, struct sl_err *err)
{
    struct proto_ctl m = broker_link_message(PROTO_CTL_DEVICE);
    m.device.index = d->index;
    m.device.flags = (d->emulated ? PROTO_DEVICE_EMULATED : 0) |
                     (d->unified ? PROTO_DEVICE_UNIFIED : 0) |
                     (d->concurrent ? PROTO_DEVICE_CONCURRENT : 0);
    m.device.capacity_bytes = d->memory_bytes;
    m.device.reserve_bytes = d->reserve_bytes;
    m.device.turn_ns = a->o.turn_ms * NS_PER_MS;
    m.device.ordinal = d->ordinal;
    snprintf(m.device.id, sizeof m.device.id, "%s", d->id);
    snprintf(m.device.platform, sizeof m.device.platform, "%s", d->platform);
    snprintf(m.device.name, sizeof m.device.name, "%s", d->model);
    snprintf(m.device.driver, sizeof m.device.driver, "%s", d->driver);
    int rc = broker_link_call(&a->broker, &m, err);
    bool was_held = d->state == DEVICE_HELD;
    if (m.device.flags & PROTO_DEVICE_HELD && rc != -SL_UNAVAILABLE) {
        d->state = DEVICE_HELD;
        d->holder_pid = m.device.holder_pid;
        d->holder_uid = m.device.holder_uid;
        if (d->holder_pid > 0)
            name_holder(d);
        else
            snprintf(d->why, sizeof d->why, "another broker on this machine has it");
        if (!was_held)
            log_warn("device-held", "device=%s %s", d->id, d->why);
        return 0;
    }
    if (rc == 0 && was_held) {
        d->state = DEVICE_OK;
        d->why[0] = '\0';
        d->holder_pid = 0;
    }
    return rc;
}

int restate_lease(struct agent *a, struct agent_lease *al, uint64_t *over_bytes,
                  struct sl_err *err)
{
    struct lease *l = &al->l;
    struct proto_ctl m = broker_link_message(PROTO_CTL_LEASE);
    m.lease.number = l->number;
    m.lease.epoch = l->epoch;
    m.lease.mode = (uint32_t)l->mode;
    m.lease.priority = l->priority;
    m.lease.flags = (l->fail_closed ? PROTO_LEASE_FAIL_CLOSED : 0) |
                    (l->emulated ? PROTO_LEASE_EMULATED : 0);
    m.lease.slice_count = l->slice_count;
    m.lease.max_kernel_ns = l->max_kernel_ms * NS_PER_MS;
    for (uint32_t i = 0; i < l->slice_count; i++)
        m.lease.slice[i] = (struct proto_slice){
            .device = l->slice[i].device_index,
            .request_permille = (uint16_t)l->slice[i].compute_request_permille,
            .limit_permille = (uint16_t)l->slice[i].compute_limit_permille,
            .mem_request_bytes = l->slice[i].mem_request_bytes,
            .mem_limit_bytes = l->slice[i].mem_limit_bytes,
        };
    int rc = broker_link_call(&a->broker, &m, err);
    if (rc < 0)
        return sl_prefix(err, "lease L%" PRIu64, l->number);
    uint64_t over = 0;
    for (uint32_t i = 0; i < l->slice_count; i++) {
        l->slice[i].mem_over_bytes = m.lease.over_bytes[i];
        over += m.lease.over_bytes[i];
    }
    if (over_bytes)
        *over_bytes = over;
    return 0;
}

int restate_anchor(struct agent *a, struct agent_lease *al, struct sl_err *err)
{
    struct proto_ctl m = broker_link_message(PROTO_CTL_ANCHOR);
    m.anchor.number = al->l.number;
    m.anchor.epoch = al->l.epoch;
    m.anchor.shim_pid = al->l.shim_pid;
    m.anchor.shim_start_ticks = al->l.shim_start_ticks;
    m.anchor.cgroup_id = al->l.cgroup_id;
    return broker_link_call(&a->broker, &m, err);
}

void restate_drop(struct agent *a, const struct agent_lease *al)
{
    struct proto_ctl m = broker_link_message(PROTO_CTL_DROP);
    struct sl_err err = { 0 };
    m.drop.number = al->l.number;
    m.drop.epoch = al->l.epoch;
    int rc = broker_link_call(&a->broker, &m, &err);
    if (rc < 0 && rc != -SL_NOT_FOUND && rc != -SL_UNAVAILABLE)
        log_warn("broker-drop", "lease=L%" PRIu64 " error=\"%s\"", al->l.number, err.msg);
}

static void state_all(struct agent *a)
{
    struct sl_err err = { 0 };
    for (uint32_t i = 0; i < a->device_count; i++) {
        if (a->device[i].state == DEVICE_FAILED)
            continue;
        if (restate_device(a, &a->device[i], &err) < 0 && a->broker.fd >= 0) {
            a->device[i].state = DEVICE_FAILED;
            snprintf(a->device[i].why, sizeof a->device[i].why,
                     "the broker refuses it: %.90s", err.msg);
            log_error("broker-device", "device=%s error=\"%s\"", a->device[i].id, err.msg);
        }
    }
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        if (al->l.state != LEASE_ACTIVE && al->l.state != LEASE_DRAINING)
            continue;
        int rc = restate_lease(a, al, NULL, &err);
        if (rc == 0 && (al->l.shim_pid || al->l.cgroup_id))
            rc = restate_anchor(a, al, &err);
        if (rc < 0)
            log_error("broker-lease", "lease=L%" PRIu64 " error=\"%s\"", al->l.number,
                      err.msg);
    }
}

/* What an adopted broker still holds of leases that have ended here meanwhile. */
static void drop_strangers(struct agent *a)
{
    uint64_t cursor = 0;
    for (;;) {
        struct proto_ctl m = broker_link_message(PROTO_CTL_STAT_LEASE);
        m.cursor = cursor;
        if (broker_link_call(&a->broker, &m, NULL) < 0)
            return;
        cursor = m.cursor;
        uint64_t number = m.lease_stat.number, epoch = m.lease_stat.epoch;
        uint32_t more = m.more;
        struct agent_lease *al = agent_find_number(a, number);
        if (number >= a->next_number)
            a->next_number = number + 1;
        if (!al || !agent_lease_is_live(al)) {
            log_warn("stranger-dropped", "lease=L%" PRIu64, number);
            m = broker_link_message(PROTO_CTL_DROP);
            m.drop.number = number;
            m.drop.epoch = epoch;
            broker_link_call(&a->broker, &m, NULL);
        }
        if (!more)
            return;
    }
}

/* An idle broker of an earlier agent is replaced: its device table and its version are old.
 */
static bool retire_idle(struct agent *a)
{
    struct proto_ctl m = broker_link_message(PROTO_CTL_INFO);
    if (!a->broker.adopted || agent_held_count(a) > 0 ||
        broker_link_call(&a->broker, &m, NULL) < 0 || m.info.clients > 0)
        return false;
    pid_t pid = a->broker.pid;
    m = broker_link_message(PROTO_CTL_QUIT);
    if (broker_link_call(&a->broker, &m, NULL) < 0 && a->broker.fd >= 0)
        return false;
    broker_link_close(&a->broker);
    for (int i = 0; i < 400 && kill(pid, 0) == 0; i++)
        usleep(5000);
    return true;
}

static void broker_ready(struct agent *a, struct watch *w)
{
    /* every answer is read where it was asked for: what comes here is the end of the broker
     */
    if (w->fd == a->broker.fd)
        broker_link_close(&a->broker);
}

int restate_open(struct agent *a, struct sl_err *err)
{
    int rc = broker_link_open(&a->broker, err);
    if (rc == 0 && retire_idle(a))
        rc = broker_link_open(&a->broker, err);
    if (rc < 0)
        return rc;
    log_info("broker", "pid=%d adopted=%d version=%s", a->broker.pid, a->broker.adopted,
             a->broker.version);
    a->broker_watch =
        (struct watch){ .fd = a->broker.fd, .ready = broker_ready, .owner = a };
    rc = agent_watch(a, &a->broker_watch, err);
    if (rc < 0)
        return rc;
    if (!a->broker.adopted)
        telemetry_rebase(a);
    state_all(a);
    if (a->broker.adopted)
        drop_strangers(a);
    return 0;
}
