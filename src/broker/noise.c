/* Bounds the log lines that clients can cause: else one tenant fills the disk. */
#include <stdarg.h>
#include <stdio.h>

#include "core/clock.h"
#include "internal.h"

#define LINES_A_SECOND 50

void log_client(struct broker *b, enum log_level level, const char *event, const char *fmt,
                ...)
{
    struct noise *n = &b->noise;
    if (level > b->options.log_level)
        return;
    uint64_t now_ns = clock_now_ns();
    if (now_ns - n->window_ns >= NS_PER_S) {
        if (n->suppressed)
            log_warn("lines-suppressed", "count=%u", n->suppressed);
        *n = (struct noise){ .window_ns = now_ns };
    }
    if (n->lines >= LINES_A_SECOND) {
        n->suppressed++;
        return;
    }
    n->lines++;
    char text[384];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    log_event(level, event, "%s", text);
}
