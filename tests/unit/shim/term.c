/* A shell on a pseudo-terminal. */
#include "term.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

void term_open(struct term *t, char *const *argv)
{
    memset(t, 0, sizeof *t);
    t->pid = forkpty(&t->fd, NULL, NULL, &(struct winsize){ .ws_row = 24, .ws_col = 80 });
    if (t->pid == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
}

void term_type(struct term *t, const char *text)
{
    if (write(t->fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
}

bool term_wait(struct term *t, const char *text)
{
    for (int ms = 0; ms < 10000; ms += 50) {
        char *at = strstr(t->seen + t->from, text);
        if (at) {
            t->from = (size_t)(at - t->seen) + strlen(text);
            return true;
        }
        struct pollfd p = { .fd = t->fd, .events = POLLIN };
        if (poll(&p, 1, 50) != 1)
            continue;
        ssize_t n = read(t->fd, t->seen + t->len, sizeof t->seen - 1 - t->len);
        if (n > 0)
            t->len += (size_t)n;
        t->seen[t->len] = 0;
    }
    return false;
}

void term_resize(struct term *t, int rows, int columns)
{
    struct winsize size = { .ws_row = (unsigned short)rows,
                            .ws_col = (unsigned short)columns };
    ioctl(t->fd, TIOCSWINSZ, &size);
}

void term_close(struct term *t)
{
    kill(t->pid, SIGKILL);
    close(t->fd);
    waitpid(t->pid, NULL, 0);
}
