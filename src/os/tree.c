/* Removing a directory tree without following links or crossing into a mount. */
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 128

static int fail(struct sl_err *err, const char *what, const char *name)
{
    int sys = errno;
    return sl_fail_sys(err, sys == EACCES || sys == EPERM ? SL_DENIED : SL_IO, sys,
                       "%s %.80s", what, name);
}

static int empty_dir(int fd, dev_t dev, int depth, struct sl_err *err);

/* Remove one entry of a directory, with what is below it. */
static int remove_entry(int dir, const char *name, dev_t dev, int depth, struct sl_err *err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    /* EISDIR is Linux, EPERM what POSIX says for a directory */
    if (errno != EISDIR && errno != EPERM)
        return fail(err, "remove", name);
    if (depth >= DEPTH_MAX)
        return sl_fail(err, SL_IO, "remove %.80s: more than %d levels", name, DEPTH_MAX);

    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : fail(err, "open", name);
    int rc = empty_dir(fd, dev, depth + 1, err);
    if (rc < 0)
        return sl_prefix(err, "%.40s", name);
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return fail(err, "remove", name);
    return 0;
}

/* Takes fd. */
static int empty_dir(int fd, dev_t dev, int depth, struct sl_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_dev != dev) {
        close(fd);
        return sl_fail(err, SL_CONFLICT, "another file system is mounted here; unmount it");
    }
    DIR *d = fdopendir(fd);
    if (!d) {
        int rc = fail(err, "open", "directory");
        close(fd);
        return rc;
    }
    int rc = 0;
    struct dirent *e;
    while (rc == 0 && (errno = 0, e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            rc = remove_entry(dirfd(d), e->d_name, dev, depth, err);
    if (rc == 0 && errno)
        rc = fail(err, "read", "directory");
    closedir(d);
    return rc;
}

int file_remove_tree(const char *path, struct sl_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : fail(err, "stat", path);
    return remove_entry(AT_FDCWD, path, st.st_dev, 0, err);
}
