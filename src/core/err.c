/* The error table and the three ways to fill a struct sl_err. */
#include "core/err.h"

#include <stdio.h>
#include <string.h>

static const struct sl_code_row rows[SL_CODE_COUNT] = {
    [SL_OK] = { "ok", 200, 0, "nobody" },
#define X(name, wire, http, exit, who) [SL_##name] = { wire, http, exit, who },
    SL_CODES(X)
#undef X
};

const struct sl_code_row *sl_code_row(enum sl_code code)
{
    return (unsigned)code < SL_CODE_COUNT ? &rows[code] : &rows[SL_INTERNAL];
}

enum sl_code sl_code_parse(const char *wire)
{
    for (int code = 0; code < SL_CODE_COUNT; code++)
        if (wire && !strcmp(rows[code].wire, wire))
            return code;
    return SL_INTERNAL;
}

int sl_fail(struct sl_err *err, enum sl_code code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        err->code = code;
        err->sys = 0;
        vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
    }
    return -(int)code;
}

int sl_fail_sys(struct sl_err *err, enum sl_code code, int sys, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        va_start(ap, fmt);
        err->code = code;
        err->sys = sys;
        vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
        size_t used = strlen(err->msg);
        char why[80];
        snprintf(err->msg + used, sizeof err->msg - used, ": %s",
                 strerror_r(sys, why, sizeof why));
    }
    return -(int)code;
}

int sl_prefix(struct sl_err *err, const char *fmt, ...)
{
    if (!err)
        return -SL_INTERNAL;
    char inner[sizeof err->msg];
    memcpy(inner, err->msg, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    size_t used = strlen(err->msg);
    snprintf(err->msg + used, sizeof err->msg - used, ": %s", inner);
    return -(int)err->code;
}
