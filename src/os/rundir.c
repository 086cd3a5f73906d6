/* The run directory: choosing, making and checking it. */
#include "os/rundir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHOOSE "choose another with --run-dir or SLUICE_RUN_DIR"

static int take_path(struct rundir *r, const char *path, struct sl_err *err)
{
    char full[PATH_MAX + 1] = "";
    if (!*path)
        return sl_fail(err, SL_INVALID, "the run directory's name is empty");
    /* a daemon leaves its working directory, so the name must not depend on it */
    if (path[0] != '/') {
        char cwd[PATH_MAX];
        if (!getcwd(cwd, sizeof cwd))
            return sl_fail_sys(err, SL_IO, errno, "working directory");
        if (snprintf(full, sizeof full, "%s/%s", cwd, path) >= (int)sizeof full)
            return sl_fail(err, SL_INVALID, "run directory: name too long");
        path = full;
    }
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof r->path)
        return sl_fail(err, SL_INVALID,
                       "run directory %.60s… has %zu bytes, at most %zu leave room for a "
                       "socket's name: choose a shorter one with SLUICE_RUN_DIR",
                       path, len, sizeof r->path - 1);
    memcpy(r->path, path, len);
    r->path[len] = '\0';
    return 0;
}

int rundir_choose(struct rundir *r, const char *given, struct sl_err *err)
{
    char path[PATH_MAX];
    const char *set = getenv("SLUICE_RUN_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");

    if (given)
        return take_path(r, given, err);
    if (set && *set)
        return take_path(r, set, err);
    if (geteuid() == 0)
        return take_path(r, "/run/sluice", err);
    if (xdg && xdg[0] == '/')
        snprintf(path, sizeof path, "%s/sluice", xdg);
    else
        snprintf(path, sizeof path, "/tmp/sluice-%u", (unsigned)geteuid());
    return take_path(r, path, err);
}

/* mkdir() failed: with the directory above, with its file system, or with our rights. */
static int fail_make(const struct rundir *r, int sys, struct sl_err *err)
{
    char above[sizeof r->path];
    struct stat st;
    if (sys != ENOENT && sys != ENOTDIR) {
        enum sl_code code =
            sys == EACCES || sys == EPERM || sys == EROFS ? SL_DENIED : SL_IO;
        return sl_fail_sys(err, code, sys, "make run directory %s (" CHOOSE ")", r->path);
    }
    snprintf(above, sizeof above, "%s", r->path);
    char *slash = strrchr(above, '/');
    slash[slash == above] = '\0';
    const char *why = stat(above, &st) < 0   ? "does not exist"
                      : !S_ISDIR(st.st_mode) ? "is not a directory"
                                             : "lets nobody make a directory in it";
    return sl_fail(err, SL_INVALID, "run directory %s cannot be made: %s %s; " CHOOSE,
                   r->path, above, why);
}

int rundir_prepare(const struct rundir *r, struct sl_err *err)
{
    mode_t mode = geteuid() == 0 ? 0711 : 0700;
    if (mkdir(r->path, mode) == 0) {
        if (chmod(r->path, mode) < 0)
            return sl_fail_sys(err, SL_IO, errno, "chmod %s", r->path);
        return 0;
    }
    return errno == EEXIST ? rundir_check(r, err) : fail_make(r, errno, err);
}

int rundir_check(const struct rundir *r, struct sl_err *err)
{
    struct stat st;
    if (lstat(r->path, &st) < 0 && errno == ENOENT)
        return 0;
    if (lstat(r->path, &st) < 0)
        return sl_fail_sys(err, SL_IO, errno, "stat %s", r->path);
    if (!S_ISDIR(st.st_mode))
        return sl_fail(err, SL_CONFLICT,
                       "run directory %s is not a directory: remove it or " CHOOSE,
                       r->path);
    if (st.st_uid != geteuid())
        return sl_fail(err, SL_DENIED,
                       "run directory %s belongs to uid %u, not to uid %u: " CHOOSE,
                       r->path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 022)
        return sl_fail(err, SL_DENIED,
                       "run directory %s is writable by others (mode %04o): chmod go-w %s",
                       r->path, (unsigned)(st.st_mode & 07777), r->path);
    return 0;
}

int rundir_path(const struct rundir *r, const char *name, char *out, size_t size,
                struct sl_err *err)
{
    size_t need = strlen(r->path) + 1 + strlen(name) + 1;
    if (need > size)
        return sl_fail(err, SL_INVALID, "%s/%s has %zu bytes, %zu fit", r->path, name,
                       need - 1, size - 1);
    snprintf(out, size, "%s/%s", r->path, name);
    return 0;
}
