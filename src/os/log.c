/* The log: formats one event into one line and writes it with one write(). */
#include "os/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static const char *const level_names[] = { "error", "warn", "info", "debug" };

/* Set once at start, before any thread. */
static struct {
    const char *program;
    int fd;
    enum log_level level;
} log_to = { "sluice", STDERR_FILENO, LOG_INFO };

void log_init(const char *program, int fd, enum log_level level)
{
    log_to.program = program;
    log_to.fd = fd;
    log_to.level = level;
}

int log_level_parse(const char *text, enum log_level *out, struct sl_err *err)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (!strcmp(text, level_names[i])) {
            *out = i;
            return 0;
        }
    return sl_fail(err, SL_INVALID, "%.40s: a log level is error, warn, info or debug",
                   text);
}

/* "2026-05-20T10:00:00.123Z info agent lease-granted " */
static size_t format_head(char *line, size_t size, enum log_level level, const char *event)
{
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t len = strftime(line, size, "%Y-%m-%dT%H:%M:%S", &tm);
    int more = snprintf(line + len, size - len, ".%03ldZ %s %s %s ", ts.tv_nsec / 1000000,
                        level_names[level], log_to.program, event);
    return len + (more > 0 && (size_t)more < size - len ? (size_t)more : 0);
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    if (level > log_to.level || log_to.fd < 0)
        return;

    int kept = errno;
    char line[LINE_MAX_BYTES];
    size_t head = format_head(line, sizeof line - 1, level, event), len = head;
    va_list ap;
    va_start(ap, fmt);
    int more = vsnprintf(line + len, sizeof line - 1 - len, fmt, ap);
    va_end(ap);
    if (more > 0)
        len += (size_t)more < sizeof line - 1 - len ? (size_t)more : sizeof line - 2 - len;

    /* a tenant's text must not be able to begin a line of its own */
    for (size_t i = head; i < len; i++)
        if (iscntrl((unsigned char)line[i]))
            line[i] = '?';
    line[len++] = '\n';

    ssize_t put;
    do
        put = write(log_to.fd, line, len);
    while (put < 0 && errno == EINTR);
    errno = kept;
}
