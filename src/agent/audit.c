/* Owns the auditor: which processes of a lease use a vendor's library without the broker
 * knowing. */
#include "agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/macros.h"
#include "os/log.h"

/*
 * What cannot be held from inside the program is found from outside.  The
 * loader alone (libOpenCL) is no use of a device: many programs are linked with it and
 * never call it.  A process that maps our front speaks to the broker when it first uses a
 * device, and a child forked from a client maps both and is innocent until then.
 */
static const char *const vendor_libraries[] = {
    "/libpocl",     "/libcuda.so", "/libnvidia-opencl", "/libamdocl", "/libigdrcl",
    "/libintelocl", "/libmali",    "/libascendcl",      "/libcndrv",
};
static const char front_library[] = "/libsluice-";

#define AUDIT_MAX_PIDS 256

static bool maps_vendor_without_front(pid_t pid)
{
    char path[32], line[512];
    bool vendor = false, front = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!front && fgets(line, sizeof line, f)) {
        front |= strstr(line, front_library) != NULL;
        for (size_t i = 0; !vendor && i < ARRAY_LEN(vendor_libraries); i++)
            vendor |= strstr(line, vendor_libraries[i]) != NULL;
    }
    fclose(f);
    return vendor && !front;
}

static bool is_client(const struct agent *a, pid_t pid)
{
    for (uint32_t i = 0; i < a->client_count; i++)
        if (a->client[i].id.pid == pid)
            return true;
    return false;
}

static struct suspect_process *find_suspect(struct agent_lease *al,
                                            const struct proc_id *id)
{
    for (uint32_t i = 0; i < al->suspect_count; i++)
        if (al->suspect[i].id.pid == id->pid &&
            al->suspect[i].id.start_ticks == id->start_ticks)
            return &al->suspect[i];
    return NULL;
}

static struct suspect_process *add_suspect(struct agent_lease *al, const struct proc_id *id,
                                           uint64_t now_ns)
{
    if (al->suspect_count == AUDIT_MAX_SUSPECTS) {
        uint32_t kept = 0; /* those that ended make room */
        for (uint32_t i = 0; i < al->suspect_count; i++)
            if (proc_is_alive(&al->suspect[i].id))
                al->suspect[kept++] = al->suspect[i];
        al->suspect_count = kept;
        if (kept == AUDIT_MAX_SUSPECTS)
            return NULL;
    }
    struct suspect_process *s = &al->suspect[al->suspect_count++];
    *s = (struct suspect_process){ .id = *id, .since_ns = now_ns };
    return s;
}

static void look_at(struct agent *a, struct agent_lease *al, pid_t pid, uint64_t now_ns)
{
    struct proc_id id;
    if (is_client(a, pid) || proc_identify(pid, &id, NULL) < 0)
        return;
    struct suspect_process *s = find_suspect(al, &id);
    if (s && s->reported)
        return;
    if (!maps_vendor_without_front(pid))
        return;
    if (!s && !(s = add_suspect(al, &id, now_ns)))
        return;
    if (now_ns - s->since_ns < NS_PER_S)
        return;
    s->reported = true;
    al->ungated_processes++;
    log_warn("ungated-process",
             "lease=L%" PRIu64 " pid=%d what=\"maps a vendor library and has "
             "not said hello\"",
             al->l.number, pid);
    if (al->l.fail_closed)
        drain_start(a, al, "fail-closed: a process used the device past the front");
}

void audit_run(struct agent *a, uint64_t now_ns)
{
    for (uint32_t i = 0; i < a->lease_count; i++) {
        struct agent_lease *al = a->lease[i];
        pid_t pids[AUDIT_MAX_PIDS];
        if (al->l.state != LEASE_ACTIVE || !al->l.shim_pid)
            continue;
        uint32_t n = drain_pids(a, al, pids, AUDIT_MAX_PIDS);
        for (uint32_t k = 0; k < n && al->l.state == LEASE_ACTIVE; k++)
            look_at(a, al, pids[k], now_ns);
    }
}
