/* The words of a scenario: cut, compared, and read as numbers. */
#include "words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "model/units.h"
#include "sim/number.h"

void words_begin(struct words *w, const struct text *text, struct sl_err *err)
{
    *w = (struct words){ .text = text,
                         .next = text->bytes,
                         .end = text->bytes + text->len,
                         .line_begin = text->bytes,
                         .err = err };
}

int words_fail(struct words *w, const char *fmt, ...)
{
    char what[160];
    va_list args;
    if (w->rc)
        return w->rc;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    w->rc = sl_fail(w->err, SL_INVALID, "%s:%u:%u: %s", w->text->name, w->line, w->column,
                    what);
    w->word[0] = '\0';
    return w->rc;
}

int words_unknown(struct words *w, const char *what, const char *const *known, size_t count)
{
    if (!w->word[0])
        return words_fail(w, "expected %s", what);
    const char *near = suggest_nearest(w->word, known, count);
    return words_fail(w, "unknown %s '%s'%s%s%s", what, w->word,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static bool is_mark(char c)
{
    return c == ',' || c == ':';
}

void words_next(struct words *w)
{
    size_t len = 0;
    w->word[0] = '\0';
    if (w->rc)
        return;
    while (w->next < w->end && strchr(" \t\r", *w->next))
        w->next++;
    w->column = (uint32_t)(w->next - w->line_begin) + 1;
    if (w->next < w->end && is_mark(*w->next)) {
        w->word[len++] = *w->next++;
    } else {
        while (w->next < w->end && !strchr(" \t\r\n,:#", *w->next)) {
            if (len == WORD_MAX) {
                words_fail(w, "a word longer than %d letters", WORD_MAX);
                return;
            }
            w->word[len++] = *w->next++;
        }
    }
    w->word[len] = '\0';
}

static void end_line(struct words *w)
{
    const char *line_end =
        w->next < w->end ? memchr(w->next, '\n', (size_t)(w->end - w->next)) : NULL;
    w->next = line_end ? line_end + 1 : w->end;
    w->line_begin = w->next;
}

bool words_line(struct words *w)
{
    while (!w->rc && (w->line == 0 || w->next < w->end)) {
        if (w->line)
            end_line(w);
        w->line++;
        words_next(w);
        if (w->word[0])
            return true;
        if (w->next == w->end)
            break;
    }
    return false;
}

bool words_at(const struct words *w, const char *word)
{
    return !w->rc && !strcmp(w->word, word);
}

bool words_take(struct words *w, const char *word)
{
    if (!words_at(w, word))
        return false;
    words_next(w);
    return true;
}

void words_need(struct words *w, const char *word)
{
    if (words_take(w, word))
        return;
    if (w->word[0])
        words_fail(w, "expected '%s', not '%s'", word, w->word);
    else
        words_fail(w, "expected '%s', not the end of the line", word);
}

bool words_done(const struct words *w)
{
    return !w->word[0];
}

/* ---- numbers ---- */

static uint64_t decimal(struct words *w, const char *what, unsigned places)
{
    uint64_t value = 0;
    if (number_parse(w->word, strlen(w->word), places, &value) != NUMBER_OK)
        words_fail(w, "expected %s, not '%s'", what, w->word);
    return w->rc ? 0 : value;
}

uint64_t words_count(struct words *w, const char *what, uint64_t min, uint64_t max)
{
    uint64_t n = decimal(w, what, 0);
    if (!w->rc && (n < min || n > max))
        words_fail(w, "%s: between %lu and %lu, not %s", what, min, max, w->word);
    words_next(w);
    return w->rc ? 0 : n;
}

uint64_t words_milli(struct words *w, const char *what)
{
    uint64_t n = decimal(w, what, 3);
    if (n > UINT32_MAX)
        words_fail(w, "%s: %s is too many", what, w->word);
    words_next(w);
    return w->rc ? 0 : n;
}

uint64_t words_size(struct words *w)
{
    uint64_t bytes = 0;
    struct sl_err err = { 0 };
    if (!w->rc && units_parse_size(w->word, &bytes, &err))
        words_fail(w, "%s", err.msg);
    words_next(w);
    return bytes;
}

uint32_t words_share(struct words *w)
{
    struct units_share share = { 0 };
    struct sl_err err = { 0 };
    if (!w->rc && units_parse_share(w->word, &share, &err))
        words_fail(w, "%s", err.msg);
    else if (share.is_range)
        words_fail(w, "the scheduler lends what is requested: a share such as 30%%");
    words_next(w);
    return share.request_permille;
}

uint64_t words_duration(struct words *w)
{
    uint64_t ms = 0;
    struct sl_err err = { 0 };
    if (!w->rc && units_parse_duration(w->word, &ms, &err))
        words_fail(w, "%s", err.msg);
    words_next(w);
    return ms;
}

bool words_at_share(const struct words *w)
{
    size_t len = strlen(w->word);
    return len > 1 && isdigit((unsigned char)w->word[0]) && w->word[len - 1] == '%';
}

bool words_at_count(const struct words *w)
{
    return w->word[0] && !w->word[strspn(w->word, "0123456789")];
}

bool words_at_size(const struct words *w)
{
    return isdigit((unsigned char)w->word[0]) && !words_at_share(w) && !words_at_count(w);
}
