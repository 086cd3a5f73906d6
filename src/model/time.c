/* Wall-clock times as RFC 3339 with milliseconds, in UTC. */
#include <ctype.h>
#include <time.h>

#include "base/json.h"
#include "forms.h"

#define YEAR_10000_MS 253402300800000ull

json_t *form_time(uint64_t ms)
{
    struct tm tm;
    char text[40];
    time_t seconds = (time_t)(ms / 1000);
    if (ms == 0 || ms >= YEAR_10000_MS || !gmtime_r(&seconds, &tm))
        return json_null();
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, sizeof text - len, ".%03uZ", (unsigned)(ms % 1000));
    return json_string(text);
}

/* A 0 in the shape stands for any digit. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape; text++, shape++)
        if (*shape == '0' ? !isdigit((unsigned char)*text) : *text != *shape)
            return false;
    return *text == '\0';
}

int form_get_time(const json_t *obj, const char *key, uint64_t *ms, struct sl_err *err)
{
    const char *text = NULL;
    int rc = json_get_str(obj, key, &text, err);
    if (rc < 0 || !text)
        return rc;

    struct tm tm = { 0 };
    unsigned milli = 0;
    bool fits = has_shape(text, "0000-00-00T00:00:00.000Z");
    if (fits)
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &milli);
    if (!fits || tm.tm_year < 1970 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
        tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return sl_fail(err, SL_INVALID,
                       "\"%s\" is \"%.40s\"; a time is written 2026-05-20T10:00:00.123Z",
                       key, text);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ms = (uint64_t)timegm(&tm) * 1000 + milli;
    return 0;
}
