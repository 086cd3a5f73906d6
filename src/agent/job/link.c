/* Sends and takes the packets between a shim and its starter. */
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

void link_close(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void link_say(struct link *l, const char *fmt, ...)
{
    char words[LINK_WORDS_SIZE];
    va_list ap;
    if (l->fd < 0)
        return;
    va_start(ap, fmt);
    int len = vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    if (len >= (int)sizeof words)
        len = sizeof words - 1;
    /* Not waiting: a starter that is stopped must not stop the shim. */
    ssize_t n = send(l->fd, words, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == ENOTSOCK)
        n = write(l->fd, words, (size_t)len);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        link_close(l);
}

bool link_hear(struct link *l, char words[LINK_WORDS_SIZE])
{
    if (l->fd < 0)
        return false;
    ssize_t n = recv(l->fd, words, LINK_WORDS_SIZE - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        link_close(l);
        return false;
    }
    words[n] = 0;
    return true;
}

bool link_is_gone(struct link *l)
{
    struct pollfd p = { .fd = l->fd };
    if (l->fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)))
        link_close(l);
    return l->fd < 0;
}
