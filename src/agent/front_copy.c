/* Owns the copies of the fronts in the run directory, which every job can read. */
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/macros.h"
#include "os/file.h"
#include "os/log.h"

#define FRONT_MAX_BYTES (64u << 20)

/* Beside the programs in a build, in ../lib/sluice when installed. */
static bool find_library(const struct agent *a, const char *name, char *out, size_t size)
{
    static const char *const places[] = { "%s/%s", "%s/../lib/sluice/%s", "%s/../lib/%s" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(out, size, places[i], a->program_dir, name);
        if (access(out, R_OK) == 0)
            return true;
    }
    return false;
}

static bool are_equal(const char *a, const char *b)
{
    AUTO_FREE char *x = NULL, *y = NULL;
    size_t x_len = 0, y_len = 0;
    return file_read(a, FRONT_MAX_BYTES, &x, &x_len, NULL) == 0 &&
           file_read(b, FRONT_MAX_BYTES, &y, &y_len, NULL) == 0 && x_len == y_len &&
           memcmp(x, y, x_len) == 0;
}

/* By rename: a running job has the old one mapped.  One that is right stays: the disk may be
 * full. */
static int copy_in(const struct agent *a, const char *name, struct sl_err *err)
{
    char from[320], to[160], fresh[176], relative[64];
    if (!find_library(a, name, from, sizeof from))
        return sl_fail(err, SL_NOT_FOUND, "%s is not beside the programs in %s", name,
                       a->program_dir);
    snprintf(relative, sizeof relative, "front/%s", name);
    agent_path(a, relative, to, sizeof to);
    if (are_equal(from, to))
        return chmod(to, 0644) == 0
                   ? 0
                   : sl_fail_sys(err, SL_IO, errno, "cannot put %s in place", to);
    snprintf(fresh, sizeof fresh, "%s.new", to);
    unlink(fresh);
    int rc = file_copy(from, fresh, 0644, err);
    if (rc == 0 && (chmod(fresh, 0644) != 0 || rename(fresh, to) != 0))
        rc = sl_fail_sys(err, SL_IO, errno, "cannot put %s in place", to);
    return rc;
}

/* Debian mounts /run noexec: from there nobody can map a library, and a loader drops a layer
 * that it cannot open silently.  Root binds the folder onto itself without that flag. */
static int make_executable(const char *dir, struct sl_err *err)
{
    struct statvfs fs;
    if (statvfs(dir, &fs) != 0 || !(fs.f_flag & ST_NOEXEC))
        return 0;
    if (mount(dir, dir, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, NULL) != 0)
        return sl_fail_sys(
            err, SL_UNSUPPORTED, errno,
            "%s is mounted noexec, programs cannot load the front from there; "
            "choose another run directory with SLUICE_RUN_DIR",
            dir);
    return 0;
}

void front_remove(const struct agent *a)
{
    char dir[160];
    agent_path(a, "front", dir, sizeof dir);
    umount2(dir, MNT_DETACH); /* fails, rightly, where it is no mount of ours */
}

void front_copy(struct agent *a)
{
    struct sl_err err = { 0 };
    char dir[160];
    bool loader;
    agent_path(a, "front", dir, sizeof dir);
    if (access(dir, F_OK) != 0)
        file_make_dir(dir, 0755, NULL);
    chmod(dir, 0755);
    int rc = make_executable(dir, &err);
    agent_path(a, "front/real", dir, sizeof dir);
    if (access(dir, F_OK) != 0)
        file_make_dir(dir, 0755, NULL);
    chmod(dir, 0755);

    a->front_ready = rc == 0 && copy_in(a, "libsluice-opencl.so", &err) == 0;
    if (!a->front_ready)
        log_error("front-copy", "error=\"%s\"", err.msg);
    loader = a->front_ready && copy_in(a, "libOpenCL.so.1", &err) == 0;
    if (a->front_ready && !loader)
        log_error("front-copy", "error=\"%s\"", err.msg);
    snprintf(a->placement, sizeof a->placement, "%s",
             !a->front_ready            ? "none"
             : loader && geteuid() == 0 ? "mount"
                                        : "environment");
}
