/* Files: whole reads, writes over short writes and EINTR, replacement by rename. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/fault.h"

static enum sl_code code_of(int sys)
{
    switch (sys) {
    case ENOENT:
    case ENOTDIR:
        return SL_NOT_FOUND;
    case EACCES:
    case EPERM:
        return SL_DENIED;
    default:
        return SL_IO;
    }
}

static int fail(struct sl_err *err, const char *what, const char *path)
{
    int sys = errno;
    return sl_fail_sys(err, code_of(sys), sys, "%s %s", what, path);
}

/* Up to `size` bytes; fewer only at the end of the file.  -1 with errno. */
static ssize_t read_full(int fd, char *out, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = read(fd, out + len, size - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

int file_read(const char *path, size_t max, char **out, size_t *len, struct sl_err *err)
{
    /* Not waiting: a FIFO in a directory of somebody else's must not hold the reader. */
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(err, "open", path);

    /* /proc files say 0 bytes, so the size is only a first guess */
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fail(err, "stat", path);
    if (!S_ISREG(st.st_mode))
        return sl_fail(err, SL_IO, "%s is not a file", path);
    size_t room = st.st_size > 0 && (uintmax_t)st.st_size < max ? (size_t)st.st_size : 4096;
    AUTO_FREE char *text = NULL;
    size_t have = 0;
    for (;;) {
        char *more = realloc(text, room + 2);
        if (!more)
            return sl_fail(err, SL_INTERNAL, "read %s: out of memory", path);
        text = more;
        ssize_t got = read_full(fd, text + have, room + 1 - have);
        if (got < 0)
            return fail(err, "read", path);
        have += (size_t)got;
        if (have > max)
            return sl_fail(err, SL_TOO_LARGE, "%s has more than %zu bytes", path, max);
        if (have <= room)
            break;
        room *= 2;
    }
    text[have] = '\0';
    if (len)
        *len = have;
    *out = TAKE_PTR(text);
    return 0;
}

int file_write_all(int fd, const void *data, size_t len, struct sl_err *err)
{
    const char *p = data;
    while (len > 0) {
        ssize_t put = write(fd, p, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return sl_fail_sys(err, SL_IO, errno, "write");
        p += put;
        len -= (size_t)put;
    }
    return 0;
}

/* So that the rename itself is on the disk. */
static int sync_dir_of(const char *path, struct sl_err *err)
{
    AUTO_FREE char *copy = strdup(path);
    if (!copy)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    const char *dir = dirname(copy);
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(err, "open", dir);
    if (fsync(fd) < 0 && errno != EINVAL)
        return fail(err, "sync", dir);
    return 0;
}

/* A file being written under a temporary name beside its own. */
struct draft {
    char path[PATH_MAX];
    int fd;
};

static int draft_open(struct draft *d, const char *path, mode_t mode, struct sl_err *err)
{
    d->fd = -1;
    if (snprintf(d->path, sizeof d->path, "%s.XXXXXX", path) >= (int)sizeof d->path)
        return sl_fail(err, SL_INVALID, "path too long: %.60s…", path);
    d->fd = mkostemp(d->path, O_CLOEXEC);
    if (d->fd < 0)
        return fail(err, "create", d->path);
    if (fchmod(d->fd, mode) < 0) {
        int rc = fail(err, "chmod", d->path);
        close(d->fd);
        unlink(d->path);
        return rc;
    }
    return 0;
}

/* Sync and rename when all went well so far, else remove it. */
static int draft_close(struct draft *d, const char *path, int rc, struct sl_err *err)
{
    int sys;
    if (rc == 0 && (sys = fault_point("file.before-sync")))
        rc = sl_fail_sys(err, SL_IO, sys, "sync %s", path);
    if (rc == 0 && fsync(d->fd) < 0)
        rc = fail(err, "sync", path);
    if (close(d->fd) < 0 && rc == 0 && errno != EINTR)
        rc = fail(err, "close", path);
    if (rc == 0 && (sys = fault_point("file.before-rename")))
        rc = sl_fail_sys(err, SL_IO, sys, "rename to %s", path);
    if (rc == 0 && rename(d->path, path) < 0)
        rc = fail(err, "rename to", path);
    if (rc < 0) {
        unlink(d->path);
        return rc;
    }
    return sync_dir_of(path, err);
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode,
                      struct sl_err *err)
{
    struct draft d;
    int rc = draft_open(&d, path, mode, err);
    if (rc < 0)
        return rc;
    rc = file_write_all(d.fd, data, len, err);
    if (rc < 0)
        sl_prefix(err, "%s", path);
    return draft_close(&d, path, rc, err);
}

int file_make_dir(const char *path, mode_t mode, struct sl_err *err)
{
    if (mkdir(path, mode) < 0) {
        struct stat st;
        int sys = errno;
        if (sys == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return 0;
        errno = sys;
        return fail(err, "make directory", path);
    }
    /* the umask must not take what the caller meant */
    if (chmod(path, mode) < 0)
        return fail(err, "chmod", path);
    return 0;
}

static int copy_bytes(int from, int to, const char *path, struct sl_err *err)
{
    char block[64 * 1024];
    for (;;) {
        ssize_t got = read_full(from, block, sizeof block);
        if (got < 0)
            return fail(err, "read", path);
        if (got == 0)
            return 0;
        int rc = file_write_all(to, block, (size_t)got, err);
        if (rc < 0)
            return rc;
    }
}

int file_copy(const char *from, const char *to, mode_t mode, struct sl_err *err)
{
    AUTO_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(err, "open", from);
    struct draft d;
    int rc = draft_open(&d, to, mode, err);
    if (rc < 0)
        return rc;
    rc = copy_bytes(fd, d.fd, from, err);
    if (rc < 0)
        sl_prefix(err, "copy to %s", to);
    return draft_close(&d, to, rc, err);
}

int file_program_dir(char *out, size_t size, struct sl_err *err)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len < 0)
        return fail(err, "read", "/proc/self/exe");
    path[len] = '\0';
    const char *dir = dirname(path);
    if (strlen(dir) >= size)
        return sl_fail(err, SL_INVALID, "the program's directory is too long: %.60s…", dir);
    strcpy(out, dir);
    return 0;
}
