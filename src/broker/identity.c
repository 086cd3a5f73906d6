/*
 * Finds out who is at the other end of a socket, and which lease that process
 * belongs to, by the kernel's word alone.
 *
 * Newer kernels hand out a pidfd of the peer (6.5) and its cgroup id (6.13);
 * where they lack that, or a switch says so, pidfd_open, the start time and
 * /proc do the same with a little more work.
 */
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/macros.h"
#include "internal.h"
#include "proc.h"

/* Debian 12's headers are older than these two. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct pidfd_info_v0 { /* linux/pidfd.h, struct pidfd_info, first 64 bytes */
    __u64 mask, cgroupid;
    __u32 pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    __s32 exit_code;
};
#define PIDFD_GET_INFO_V0   _IOWR(0xFF, 11, struct pidfd_info_v0)
#define PIDFD_INFO_CGROUPID (1ull << 2)

#define ANCESTRY_STEPS 64

const char *broker_identity_name(unsigned identity)
{
    static const char *const names[] = {
#define X(name, shown) [BROKER_IDENTITY_##name] = shown,
        BROKER_IDENTITIES(X)
#undef X
    };
    return identity < ARRAY_LEN(names) ? names[identity] : "?";
}

void identity_init(struct broker *b)
{
    char text[65536];
    ssize_t n = proc_read_file("/proc/self/mountinfo", text, sizeof text);
    if (n < 0 ||
        proc_parse_mountinfo(text, (size_t)n, b->cgroup_mount, sizeof b->cgroup_mount,
                             b->cgroup_root, sizeof b->cgroup_root))
        b->cgroup_mount[0] = 0;
}

int identity_peer(const struct broker *b, int fd, struct conn *out)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    /* pid 0: the peer is of a pid namespace that we cannot see into */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0)
        return -SL_DENIED;

    int pidfd = -1;
    size = sizeof pidfd;
    if (!b->options.peerpidfd || getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size))
        pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (pidfd < 0)
        return -SL_DENIED;

    /* The pidfd is older than this read: while it has not fired, pid and start
     * time name the same process. */
    struct proc_stat stat;
    if (proc_read_stat(peer.pid, &stat)) {
        close(pidfd);
        return -SL_DENIED;
    }
    out->pid = peer.pid;
    out->uid = peer.uid;
    out->start_ticks = stat.start_ticks;
    out->pidfd = pidfd;
    return 0;
}

static struct lease *lease_by_cgroup(struct broker *b, uint64_t id)
{
    for (uint32_t i = 0; id && i < b->lease_top; i++)
        if (b->leases[i].number && !b->leases[i].dropped && b->leases[i].cgroup_id == id)
            return &b->leases[i];
    return NULL;
}

static struct lease *lease_by_shim(struct broker *b, pid_t pid, uint64_t start_ticks)
{
    for (uint32_t i = 0; i < b->lease_top; i++) {
        struct lease *l = &b->leases[i];
        if (l->number && !l->dropped && l->shim_pid == pid &&
            l->shim_start_ticks == start_ticks)
            return l;
    }
    return NULL;
}

/* A process that a former broker knew: its record names the lease. */
static struct lease *by_record(struct broker *b, const struct conn *c)
{
    uint32_t client = process_find(b, c->pid, c->start_ticks);
    if (client == BROKER_NONE)
        return NULL;
    struct lease *l = grant_find(b, b->clients[client].lease);
    return l && !l->dropped ? l : NULL;
}

static struct lease *by_pidfd_cgroup(struct broker *b, const struct conn *c)
{
    struct pidfd_info_v0 info = { .mask = PIDFD_INFO_CGROUPID };
    if (!b->options.cgroup || !b->options.pidfd_info ||
        ioctl(c->pidfd, PIDFD_GET_INFO_V0, &info) || !(info.mask & PIDFD_INFO_CGROUPID))
        return NULL;
    return lease_by_cgroup(b, info.cgroupid);
}

/* The process may have made directories of its own below the lease's: each
 * directory upwards counts. */
static struct lease *by_proc_cgroup(struct broker *b, const struct conn *c)
{
    char path[4096], full[4096 + sizeof b->cgroup_mount];
    if (!b->options.cgroup || !b->cgroup_mount[0] ||
        proc_read_cgroup(c->pid, path, sizeof path))
        return NULL;
    size_t below = strcmp(b->cgroup_root, "/") ? strlen(b->cgroup_root) : 0;
    if (strncmp(path, b->cgroup_root, below))
        return NULL;
    int n = snprintf(full, sizeof full, "%s%s", b->cgroup_mount, path + below);
    size_t top = strlen(b->cgroup_mount);
    if (n < 0 || (size_t)n >= sizeof full || strstr(full, "/.."))
        return NULL;
    while (strlen(full) > top) {
        struct stat st;
        struct lease *l = stat(full, &st) ? NULL : lease_by_cgroup(b, st.st_ino);
        if (l)
            return l;
        *strrchr(full, '/') = 0;
    }
    return NULL;
}

/* Upwards to an anchored shim.  A parent must be no younger than its child and
 * must still be its parent after we have read both: else a pid was reused in
 * between, or a subreaper took over, and one more try sees the new parent. */
static struct lease *walk_parents(struct broker *b, pid_t pid, uint64_t start_ticks)
{
    for (int step = 0; step < ANCESTRY_STEPS && pid > 1; step++) {
        struct lease *l = lease_by_shim(b, pid, start_ticks);
        if (l)
            return l;
        struct proc_stat self, parent, again;
        if (proc_read_stat(pid, &self) || self.start_ticks != start_ticks ||
            self.ppid <= 0 || proc_read_stat(self.ppid, &parent) ||
            parent.start_ticks > start_ticks || proc_read_stat(pid, &again) ||
            again.ppid != self.ppid || again.start_ticks != start_ticks)
            return NULL;
        pid = self.ppid;
        start_ticks = parent.start_ticks;
    }
    return NULL;
}

static struct lease *by_ancestry(struct broker *b, const struct conn *c)
{
    if (!b->options.ancestry)
        return NULL;
    struct lease *l = walk_parents(b, c->pid, c->start_ticks);
    return l ? l : walk_parents(b, c->pid, c->start_ticks);
}

static const struct {
    enum broker_identity how;
    struct lease *(*find)(struct broker *b, const struct conn *c);
} sources[] = {
    { BROKER_IDENTITY_RECORD, by_record },
    { BROKER_IDENTITY_PIDFD_CGROUP, by_pidfd_cgroup },
    { BROKER_IDENTITY_PROC_CGROUP, by_proc_cgroup },
    { BROKER_IDENTITY_ANCESTRY, by_ancestry },
};

struct lease *identity_find_lease(struct broker *b, const struct conn *c,
                                  enum broker_identity *how)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        struct lease *l = sources[i].find(b, c);
        if (l) {
            *how = sources[i].how;
            return l;
        }
    }
    *how = BROKER_IDENTITY_NONE;
    return NULL;
}
