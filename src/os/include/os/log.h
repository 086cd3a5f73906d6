/*
 * The log: one line an event, `key=value`, to stderr or a file.
 *
 *   log_info("lease-granted", "lease=L7 device=%s", id);
 *   -> 2026-05-20T10:00:00.123Z info agent lease-granted lease=L7 device=…
 *
 * Any thread; a line is one write().  Whoever finally handles an error logs it,
 * once.
 */
#ifndef OS_LOG_H
#define OS_LOG_H

#include "core/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* `program` is borrowed for ever; fd is kept, not closed. */
void log_init(const char *program, int fd, enum log_level level);
int log_level_parse(const char *text, enum log_level *out, struct sl_err *err);
void log_event(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(...) log_event(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)

#endif
