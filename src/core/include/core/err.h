/*
 * Errors: one table makes the code, the wire name, the HTTP status, the exit
 * status and who can act.
 *
 * Functions that can fail return 0 (or a count) on success and -SL_<CODE> on
 * failure.  Those that take a `struct sl_err *` also describe the failure
 * there; the caller allocates it and may pass NULL.  Expected answers (full,
 * not found) are codes and set no message.
 *
 * Nothing here allocates, logs or touches a global: it may run in anybody's
 * process and from any thread.
 */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include <stdarg.h>
#include <stddef.h>

/* clang-format off */
/*        name          wire             HTTP exit who can act */
#define SL_CODES(X)                                                       \
    X(INTERNAL,    "internal",        500, 1, "us: please report it")     \
    X(INVALID,     "invalid",         400, 2, "caller")                   \
    X(NOT_FOUND,   "not-found",       404, 3, "caller")                   \
    X(DENIED,      "denied",          403, 4, "operator")                 \
    X(QUOTA,       "quota",           403, 5, "tenant admin")             \
    X(NO_CAPACITY, "no-capacity",     409, 6, "wait or shrink")           \
    X(TIMEOUT,     "timeout",         504, 7, "retry or wait longer")     \
    X(CONFLICT,    "conflict",        409, 1, "caller: look again")       \
    X(STALE,       "stale-epoch",     409, 1, "caller: look again")       \
    X(TOO_LARGE,   "too-large",       413, 2, "caller")                   \
    X(UNAVAILABLE, "unavailable",     503, 1, "operator: see doctor")     \
    X(UNSUPPORTED, "unsupported",     501, 1, "operator")                 \
    X(PROTOCOL,    "protocol",        400, 1, "caller: version mismatch") \
    X(IO,          "io",              500, 1, "operator: disk or kernel")

enum sl_code {
    SL_OK = 0,
#define X(name, wire, http, exit, who) SL_##name,
    SL_CODES(X)
#undef X
    SL_CODE_COUNT
};
/* clang-format on */

struct sl_code_row {
    const char *wire; /* "no-capacity" */
    int http_status;
    int exit_status;
    const char *who; /* who can act on it */
};

struct sl_err {
    enum sl_code code;
    int sys;       /* errno or the driver's own code; 0 if none */
    char msg[240]; /* outermost context first: "lease L7: journal: disk full" */
};

/* The table's row; unknown codes give the row of SL_INTERNAL. */
const struct sl_code_row *sl_code_row(enum sl_code code);

/* The code of a wire name; SL_INTERNAL for an unknown one. */
enum sl_code sl_code_parse(const char *wire);

/* Describe a failure; returns -code so that `return sl_fail(…)` reads well.
 * sl_fail_sys() appends strerror(sys) and keeps sys. */
int sl_fail(struct sl_err *err, enum sl_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int sl_fail_sys(struct sl_err *err, enum sl_code code, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Put context in front of a message already set: "context: message".
 * Returns -err->code (or -SL_INTERNAL for NULL). */
int sl_prefix(struct sl_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
