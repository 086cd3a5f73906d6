/* Puts the front in place in a private mount namespace. */
#include "sandbox.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/macros.h"

#define MAX_LOADERS 32
#define MAX_DIRS    64

/* Where linkers look without a configuration, multiarch folders first as Debian does. */
static const char *const default_dirs[] = {
#if defined(__x86_64__)
    "/usr/local/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "/usr/local/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
#endif
    "/lib64",
    "/usr/lib64",
    "/usr/local/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
};

struct dirs {
    char path[MAX_DIRS][256];
    int count;
};

/* By its real name, once: /lib is /usr/lib on most machines, and is read at every start. */
static void add_dir(struct dirs *d, const char *path)
{
    char real[PATH_MAX];
    if (d->count == MAX_DIRS || !realpath(path, real) || strlen(real) >= sizeof d->path[0])
        return;
    for (int i = 0; i < d->count; i++)
        if (!strcmp(d->path[i], real))
            return;
    strcpy(d->path[d->count++], real);
}

/* ld.so.conf: one folder a line, "include" with a pattern. */
static void read_conf(struct dirs *d, const char *path, int depth)
{
    AUTO_FCLOSE FILE *f = fopen(path, "re");
    char line[512], word[512];
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\n")] = 0;
        if (sscanf(line, " include %511s", word) == 1 && depth < 4) {
            glob_t found = { 0 };
            if (glob(word, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++)
                    read_conf(d, found.gl_pathv[i], depth + 1);
            globfree(&found);
        } else if (sscanf(line, " %511s", word) == 1 && word[0] == '/') {
            add_dir(d, word);
        }
    }
}

/* A library for the same machine as ourselves: a 64-bit forwarder over a 32-bit
 * loader would only break 32-bit programs. */
static bool is_our_kind(const char *path)
{
    Elf64_Ehdr self, other;
    AUTO_CLOSE int a = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    AUTO_CLOSE int b = open(path, O_RDONLY | O_CLOEXEC);
    return a >= 0 && b >= 0 && read(a, &self, sizeof self) == sizeof self &&
           read(b, &other, sizeof other) == sizeof other &&
           memcmp(other.e_ident, ELFMAG, SELFMAG) == 0 &&
           self.e_ident[EI_CLASS] == other.e_ident[EI_CLASS] &&
           self.e_machine == other.e_machine;
}

static int add_loader(char (*out)[256], int count, int max, const char *path)
{
    char real[PATH_MAX];
    if (count == max || !realpath(path, real) || strlen(real) >= sizeof out[0])
        return count;
    for (int i = 0; i < count; i++)
        if (!strcmp(out[i], real))
            return count;
    if (!is_our_kind(real))
        return count;
    strcpy(out[count], real);
    return count + 1;
}

int sandbox_find_loaders(char (*out)[256], int max)
{
    AUTO_FREE struct dirs *d = calloc(1, sizeof *d);
    int count = 0;
    if (!d)
        return 0;
    read_conf(d, "/etc/ld.so.conf", 0);
    for (size_t i = 0; i < ARRAY_LEN(default_dirs); i++)
        add_dir(d, default_dirs[i]);
    for (int i = 0; i < d->count; i++) {
        char pattern[300];
        glob_t found = { 0 };
        snprintf(pattern, sizeof pattern, "%s/libOpenCL.so.1*", d->path[i]);
        if (glob(pattern, 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                count = add_loader(out, count, max, found.gl_pathv[k]);
        globfree(&found);
    }
    return count;
}

static int write_file(const char *path, const char *text, struct sl_err *err)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return sl_fail_sys(err, SL_DENIED, errno, "%s", path);
    return 0;
}

/* A user namespace in which everybody is who they were. */
static int enter_userns(struct sl_err *err)
{
    char uids[64], gids[64];
    snprintf(uids, sizeof uids, "%u %u 1\n", geteuid(), geteuid());
    snprintf(gids, sizeof gids, "%u %u 1\n", getegid(), getegid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return sl_fail_sys(err, SL_DENIED, errno,
                           "this machine allows no user namespace to uid %u", geteuid());
    int rc;
    if ((rc = write_file("/proc/self/setgroups", "deny", err)) < 0 ||
        (rc = write_file("/proc/self/uid_map", uids, err)) < 0 ||
        (rc = write_file("/proc/self/gid_map", gids, err)) < 0)
        return rc;
    return 0;
}

static int enter_namespace(const struct job_spec *spec, struct sl_err *err)
{
    if (spec->userns) {
        int rc = enter_userns(err);
        if (rc < 0)
            return rc;
    } else if (unshare(CLONE_NEWNS) < 0) {
        return sl_fail_sys(err, SL_DENIED, errno, "a private mount namespace");
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return sl_fail_sys(err, SL_DENIED, errno, "mount propagation");
    return 0;
}

static int bind_over(const char *from, const char *to, struct sl_err *err)
{
    if (mount(from, to, NULL, MS_BIND, NULL) < 0)
        return sl_fail_sys(err, SL_DENIED, errno, "bind %s over %s", from, to);
    return 0;
}

/* The real loader stays reachable at <run>/front/real: in a small file system of
 * this namespace's own, so that nothing is written where others look. */
static int keep_real(const struct job_spec *spec, const char *loader, struct sl_err *err)
{
    char dir[128], file[160];
    int rc = rundir_path(&spec->run, "front/real", dir, sizeof dir, err);
    if (rc < 0)
        return rc;
    snprintf(file, sizeof file, "%s/libOpenCL.so.1", dir);
    if (mount("sluice-real", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") < 0)
        return sl_fail_sys(err, SL_DENIED, errno, "mount %s", dir);
    AUTO_CLOSE int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    if (fd < 0)
        return sl_fail_sys(err, SL_DENIED, errno, "%s", file);
    return bind_over(loader, file, err);
}

static int place_front(const struct job_spec *spec, struct sl_err *err)
{
    char loaders[MAX_LOADERS][256], forward[128];
    int rc = rundir_path(&spec->run, "front/libOpenCL.so.1", forward, sizeof forward, err);
    if (rc < 0)
        return rc;
    if (access(forward, R_OK) < 0)
        return sl_fail_sys(err, SL_UNSUPPORTED, errno, "%s", forward);
    int count = sandbox_find_loaders(loaders, MAX_LOADERS);
    if (count == 0)
        return sl_fail(err, SL_UNSUPPORTED, "this machine has no libOpenCL.so.1");
    if ((rc = keep_real(spec, loaders[0], err)) < 0)
        return rc;
    for (int i = 0; i < count; i++)
        if ((rc = bind_over(forward, loaders[i], err)) < 0)
            return rc;
    return 0;
}

/* The flags that a remount must repeat, or it would drop them. */
static unsigned long kept_flags(const char *path)
{
    static const struct {
        unsigned long statvfs, mount;
    } flags[] = {
        { ST_NOSUID, MS_NOSUID },     { ST_NODEV, MS_NODEV },
        { ST_NOEXEC, MS_NOEXEC },     { ST_NOATIME, MS_NOATIME },
        { ST_RELATIME, MS_RELATIME }, { ST_NODIRATIME, MS_NODIRATIME },
    };
    struct statvfs st;
    unsigned long out = 0;
    if (statvfs(path, &st) == 0)
        for (size_t i = 0; i < ARRAY_LEN(flags); i++)
            out |= st.f_flag & flags[i].statvfs ? flags[i].mount : 0;
    return out;
}

/* A per-mount flag of this namespace's copy: the machine's own mount stays as it is. */
static int lock_cgroups(struct sl_err *err)
{
    AUTO_FCLOSE FILE *f = fopen("/proc/self/mountinfo", "re");
    AUTO_FREE char *line = NULL;
    size_t room = 0;
    if (!f)
        return sl_fail_sys(err, SL_IO, errno, "/proc/self/mountinfo");
    while (getline(&line, &room, f) > 0) {
        char point[512], type[32];
        const char *dash = strstr(line, " - ");
        if (!dash || sscanf(line, "%*d %*d %*s %*s %511s", point) != 1 ||
            sscanf(dash, " - %31s", type) != 1 || strncmp(type, "cgroup", 6) != 0)
            continue;
        if (mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | kept_flags(point),
                  NULL) < 0)
            return sl_fail_sys(err, SL_DENIED, errno, "make %s read-only", point);
    }
    return 0;
}

int sandbox_enter(const struct job_spec *spec, struct sl_err *err)
{
    int rc;
    if ((rc = enter_namespace(spec, err)) < 0 || (rc = place_front(spec, err)) < 0)
        return rc;
    return spec->userns ? 0 : lock_cgroups(err);
}
