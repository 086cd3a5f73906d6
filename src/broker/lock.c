/* Takes the machine-wide lock of a device and says who holds it. */
#include "lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/err.h"

static socklen_t lock_address(struct sockaddr_un *a, const char *id)
{
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    /* sun_path[0] stays 0: the abstract name space */
    int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "sluice-device-%s", id);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void ask_holder(const struct sockaddr_un *a, socklen_t length, int32_t *pid,
                       uint32_t *uid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    *pid = 0;
    *uid = 0;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (!connect(fd, (const struct sockaddr *)a, length) &&
        !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        *pid = peer.pid;
        *uid = peer.uid;
    }
    close(fd);
}

int device_lock_take(const char *id, int32_t *holder_pid, uint32_t *holder_uid)
{
    struct sockaddr_un a;
    socklen_t length = lock_address(&a, id);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -SL_IO;
    if (!bind(fd, (struct sockaddr *)&a, length) && !listen(fd, 64))
        return fd;
    int why = errno;
    close(fd);
    if (why != EADDRINUSE)
        return -SL_IO;
    ask_holder(&a, length, holder_pid, holder_uid);
    return -SL_CONFLICT;
}

void device_lock_answer(int fd)
{
    for (int i = 0; i < 64; i++) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0)
            return;
        close(peer);
    }
}
