/* Unix sockets with an address: listen, connect, and who is at the other end. */
#include "os/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096 /* a full one makes connect() block; the kernel caps it */

static int address_of(const char *path, struct sockaddr_un *out, struct sl_err *err)
{
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof out->sun_path)
        return sl_fail(err, SL_INVALID,
                       "socket path has %zu bytes, at most %zu fit: choose a shorter run "
                       "directory (%.60s…)",
                       len, sizeof out->sun_path - 1, path);
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(out->sun_path, path, len + 1);
    return 0;
}

/* What a dead owner left, but nothing that is not a socket. */
static int remove_stale(const char *path, struct sl_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : sl_fail_sys(err, SL_IO, errno, "stat %s", path);
    if (!S_ISSOCK(st.st_mode))
        return sl_fail(err, SL_CONFLICT, "%s exists and is not a socket: move it away",
                       path);
    if (unlink(path) < 0 && errno != ENOENT)
        return sl_fail_sys(err, SL_IO, errno, "remove %s", path);
    return 0;
}

int sock_listen_unix(const char *path, int type, mode_t mode, struct sl_err *err)
{
    struct sockaddr_un at;
    int rc = address_of(path, &at, err);
    if (rc == 0)
        rc = remove_stale(path, err);
    if (rc < 0)
        return rc;

    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "socket");
    /* The mode of the descriptor is what bind() gives the file, less the umask: so the
     * file is never wider than asked, and chmod() brings back what the umask took. */
    if (fchmod(fd, mode) < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
        int sys = errno;
        close(fd);
        return sl_fail_sys(err, sys == EACCES ? SL_DENIED : SL_IO, sys, "listen on %s",
                           path);
    }
    return fd;
}

int sock_connect_unix(const char *path, int type, struct sl_err *err)
{
    struct sockaddr_un at;
    int rc = address_of(path, &at, err);
    if (rc < 0)
        return rc;
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "socket");
    while (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        int sys = errno;
        if (sys == EINTR)
            continue;
        close(fd);
        enum sl_code code = sys == EACCES || sys == EPERM ? SL_DENIED : SL_UNAVAILABLE;
        return sl_fail_sys(err, code, sys, "connect to %s", path);
    }
    return fd;
}

int sock_peer(int fd, struct ucred *out, struct sl_err *err)
{
    struct ucred who;
    socklen_t len = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return sl_fail_sys(err, SL_IO, errno, "SO_PEERCRED");
    *out = who;
    return 0;
}
