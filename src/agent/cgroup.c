/* Owns the cgroup directories of leases: v2 for identity and ending, v2 or v1 for host
 * limits. */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/macros.h"

#define CPU_PERIOD_US 100000u

static int write_text(const char *dir, const char *file, const char *text)
{
    char path[CGROUP_PATH_SIZE + 40];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_number(const char *dir, const char *file, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    return write_text(dir, file, text);
}

static bool read_text(const char *dir, const char *file, char *out, size_t size)
{
    char path[CGROUP_PATH_SIZE + 40];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += len)
        if ((p == list || strchr(" ,\n", p[-1])) && (!p[len] || strchr(" ,\n", p[len])))
            return true;
    return false;
}

/* Our own directory in a hierarchy; false: we may not make it. */
static bool make_top(char *mount, size_t size)
{
    char top[CGROUP_PATH_SIZE];
    snprintf(top, sizeof top, "%s/sluice", mount);
    if (mkdir(top, 0755) == 0 || (errno == EEXIST && access(top, W_OK) == 0))
        return true;
    memset(mount, 0, size);
    return false;
}

static void find_mounts(struct cgroup_host *h)
{
    AUTO_FCLOSE FILE *f = fopen("/proc/self/mounts", "re");
    char line[1024], where[256], type[32], options[512];
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%*s %255s %31s %511s", where, type, options) != 3 ||
            strlen(where) >= sizeof h->v2)
            continue;
        if (strcmp(type, "cgroup2") == 0 && !h->v2[0])
            snprintf(h->v2, sizeof h->v2, "%s", where);
        if (strcmp(type, "cgroup") == 0 && has_word(options, "cpu"))
            snprintf(h->v1_cpu, sizeof h->v1_cpu, "%s", where);
        if (strcmp(type, "cgroup") == 0 && has_word(options, "memory"))
            snprintf(h->v1_memory, sizeof h->v1_memory, "%s", where);
    }
}

static bool give_controller(const struct cgroup_host *h, const char *name)
{
    char have[256], top[CGROUP_PATH_SIZE], word[16];
    if (!read_text(h->v2, "cgroup.controllers", have, sizeof have) || !has_word(have, name))
        return false;
    snprintf(word, sizeof word, "+%s", name);
    snprintf(top, sizeof top, "%s/sluice", h->v2);
    return write_text(h->v2, "cgroup.subtree_control", word) == 0 &&
           write_text(top, "cgroup.subtree_control", word) == 0;
}

void cgroup_host_find(struct cgroup_host *h, const char *run_dir)
{
    memset(h, 0, sizeof *h);
    uint32_t hash = 2166136261u;
    for (const char *p = run_dir; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    snprintf(h->suffix, sizeof h->suffix, "%08x", hash);
    if (geteuid() != 0)
        return;
    find_mounts(h);
    if (h->v2[0] && make_top(h->v2, sizeof h->v2)) {
        h->v2_cpu = give_controller(h, "cpu");
        h->v2_memory = give_controller(h, "memory");
    }
    if (h->v1_cpu[0])
        make_top(h->v1_cpu, sizeof h->v1_cpu);
    if (h->v1_memory[0])
        make_top(h->v1_memory, sizeof h->v1_memory);
}

static void lease_dir(const struct cgroup_host *h, const char *mount, uint64_t lease,
                      char out[CGROUP_PATH_SIZE])
{
    out[0] = '\0';
    if (mount[0])
        snprintf(out, CGROUP_PATH_SIZE, "%s/sluice/L%" PRIu64 "-%s", mount, lease,
                 h->suffix);
}

void cgroup_path(const struct cgroup_host *h, uint64_t lease, char out[CGROUP_PATH_SIZE])
{
    lease_dir(h, h->v2, lease, out);
}

/* One limit in one hierarchy; the name of what holds it, or NULL. */
static const char *limit_cpu(const struct cgroup_host *h, const char *v2, const char *v1,
                             uint32_t milli)
{
    char text[48];
    uint64_t quota = max_u64((uint64_t)milli * CPU_PERIOD_US / 1000, 1000);
    snprintf(text, sizeof text, "%" PRIu64 " %u", quota, CPU_PERIOD_US);
    if (h->v2_cpu && write_text(v2, "cpu.max", text) == 0)
        return "cgroup v2";
    if (v1[0] && write_number(v1, "cpu.cfs_period_us", CPU_PERIOD_US) == 0 &&
        write_number(v1, "cpu.cfs_quota_us", quota) == 0)
        return "cgroup v1";
    return NULL;
}

static const char *limit_memory(const struct cgroup_host *h, const char *v2, const char *v1,
                                uint64_t bytes)
{
    if (h->v2_memory && write_number(v2, "memory.max", bytes) == 0)
        return "cgroup v2";
    if (v1[0] && write_number(v1, "memory.limit_in_bytes", bytes) == 0)
        return "cgroup v1";
    return NULL;
}

static void make_dir(const char *dir)
{
    if (dir[0])
        mkdir(dir, 0755); /* what it lacks shows when it is used */
}

static void enter_v1(const char *dir, const char **holder, pid_t pid)
{
    if (*holder && strcmp(*holder, "cgroup v1") == 0 &&
        write_number(dir, "cgroup.procs", (uint64_t)pid) < 0)
        *holder = NULL;
}

void cgroup_make(const struct cgroup_host *h, uint64_t lease)
{
    char dir[CGROUP_PATH_SIZE];
    cgroup_path(h, lease, dir);
    make_dir(dir);
}

/* Moving it again would wait for the kernel's grace period again. */
static bool is_inside(const struct cgroup_host *h, uint64_t lease, pid_t pid)
{
    pid_t pids[64];
    uint32_t n = cgroup_pids(h, lease, pids, ARRAY_LEN(pids));
    while (n > 0 && pids[n - 1] != pid)
        n--;
    return n > 0;
}

int cgroup_enter(const struct cgroup_host *h, uint64_t lease,
                 const struct cgroup_limits *limits, pid_t pid, uint64_t *id, char *held,
                 size_t held_size, struct sl_err *err)
{
    char v2[CGROUP_PATH_SIZE], v1_cpu[CGROUP_PATH_SIZE], v1_memory[CGROUP_PATH_SIZE];
    const char *cpu = "", *memory = "";
    lease_dir(h, h->v2, lease, v2);
    lease_dir(h, h->v1_cpu, lease, v1_cpu);
    lease_dir(h, h->v1_memory, lease, v1_memory);
    make_dir(v2);
    if (limits->cpu_milli) {
        make_dir(v1_cpu);
        cpu = limit_cpu(h, v2, v1_cpu, limits->cpu_milli);
        enter_v1(v1_cpu, &cpu, pid);
    }
    if (limits->memory_bytes) {
        make_dir(v1_memory);
        memory = limit_memory(h, v2, v1_memory, limits->memory_bytes);
        enter_v1(v1_memory, &memory, pid);
    }
    held[0] = '\0';
    if (!cpu || !memory)
        snprintf(held, held_size, "none: no writable cgroup for %s",
                 !cpu && !memory ? "cpu and memory"
                 : !cpu          ? "cpu"
                                 : "memory");
    else if (limits->cpu_milli || limits->memory_bytes)
        snprintf(held, held_size, "%s", limits->cpu_milli ? cpu : memory);

    if (!v2[0])
        return sl_fail(err, SL_UNSUPPORTED, "no cgroup v2 directory that we may write");
    struct stat st;
    if (stat(v2, &st) != 0)
        return sl_fail_sys(err, SL_UNSUPPORTED, errno, "cannot make %s", v2);
    int rc = is_inside(h, lease, pid) ? 0 : write_number(v2, "cgroup.procs", (uint64_t)pid);
    if (rc < 0)
        return sl_fail_sys(err, SL_UNSUPPORTED, -rc, "cannot move pid %d into %s", pid, v2);
    *id = st.st_ino;
    return 0;
}

static uint64_t read_oom_kills(const char *dir, const char *file)
{
    char text[512];
    uint64_t n = 0;
    if (!dir[0] || !read_text(dir, file, text, sizeof text))
        return 0;
    const char *at = strstr(text, "oom_kill ");
    return at && sscanf(at, "oom_kill %" SCNu64, &n) == 1 ? n : 0;
}

uint64_t cgroup_oom_kills(const struct cgroup_host *h, uint64_t lease)
{
    char v2[CGROUP_PATH_SIZE], v1[CGROUP_PATH_SIZE];
    lease_dir(h, h->v2, lease, v2);
    lease_dir(h, h->v1_memory, lease, v1);
    return read_oom_kills(v2, "memory.events") + read_oom_kills(v1, "memory.oom_control");
}

bool cgroup_is_populated(const struct cgroup_host *h, uint64_t lease)
{
    char dir[CGROUP_PATH_SIZE], text[256];
    cgroup_path(h, lease, dir);
    return dir[0] && read_text(dir, "cgroup.events", text, sizeof text) &&
           strstr(text, "populated 1");
}

static uint32_t pids_of(const char *dir, pid_t *pids, uint32_t n, uint32_t room, int depth)
{
    char path[CGROUP_PATH_SIZE + 80];
    snprintf(path, sizeof path, "%.250s/cgroup.procs", dir);
    FILE *f = fopen(path, "re");
    int pid;
    while (f && n < room && fscanf(f, "%d", &pid) == 1)
        pids[n++] = pid;
    if (f)
        fclose(f);
    DIR *d = depth < 4 ? opendir(dir) : NULL;
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%.180s/%.80s", dir, e->d_name);
        n = pids_of(path, pids, n, room, depth + 1);
    }
    if (d)
        closedir(d);
    return n;
}

uint32_t cgroup_pids(const struct cgroup_host *h, uint64_t lease, pid_t *pids,
                     uint32_t room)
{
    char dir[CGROUP_PATH_SIZE];
    cgroup_path(h, lease, dir);
    return dir[0] ? pids_of(dir, pids, 0, room, 0) : 0;
}

void cgroup_kill(const struct cgroup_host *h, uint64_t lease)
{
    char dir[CGROUP_PATH_SIZE];
    cgroup_path(h, lease, dir);
    if (!dir[0] || write_text(dir, "cgroup.kill", "1") == 0)
        return;
    pid_t pids[256]; /* before Linux 5.14 there is no cgroup.kill */
    uint32_t n = cgroup_pids(h, lease, pids, ARRAY_LEN(pids));
    for (uint32_t i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
}

static void remove_tree(const char *dir, int depth)
{
    char path[CGROUP_PATH_SIZE + 80];
    DIR *d = depth < 4 ? opendir(dir) : NULL;
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%.180s/%.80s", dir, e->d_name);
        remove_tree(path, depth + 1);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

void cgroup_remove(const struct cgroup_host *h, uint64_t lease)
{
    const char *mounts[] = { h->v2, h->v1_cpu, h->v1_memory };
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        char dir[CGROUP_PATH_SIZE];
        lease_dir(h, mounts[i], lease, dir);
        if (dir[0])
            remove_tree(dir, 0);
    }
}

uint64_t cgroup_sweep(const struct cgroup_host *h)
{
    char top[CGROUP_PATH_SIZE], suffix[16];
    uint64_t highest = 0, number;
    snprintf(top, sizeof top, "%.180s/sluice", h->v2);
    DIR *d = h->v2[0] ? opendir(top) : NULL;
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        if (sscanf(e->d_name, "L%" SCNu64 "-%8s", &number, suffix) != 2 ||
            strcmp(suffix, h->suffix) != 0)
            continue;
        highest = max_u64(highest, number);
        if (!cgroup_is_populated(h, number))
            cgroup_remove(h, number); /* of a job whose agent did not see its end */
    }
    if (d)
        closedir(d);
    return highest;
}
