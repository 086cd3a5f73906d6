/* The scanner of tables: header, rows, typed fields, and errors that say where. */
#include "sim/csv.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/number.h"

#define ABSENT UINT32_MAX

/* ---- errors ---- */

/* Bytes of the file as a message may show them: short, without control characters. */
static const char *show(struct csv_field f, char out[48])
{
    size_t len = f.len < 44 ? f.len : 41;
    for (size_t i = 0; i < len; i++)
        out[i] = iscntrl((unsigned char)f.text[i]) ? '?' : f.text[i];
    strcpy(out + len, len < f.len ? "..." : "");
    return out;
}

static void keep(struct csv *c, int rc)
{
    if (c->rc == 0)
        c->rc = rc;
}

void csv_fail_row(struct csv *c, const char *fmt, ...)
{
    char text[160];
    va_list ap;
    if (c->rc < 0)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    keep(c, sl_fail(c->err, SL_INVALID, "%s:%u: %s", c->text->name, c->line, text));
}

void csv_fail_field(struct csv *c, unsigned column, const char *fmt, ...)
{
    char text[160], shown[48];
    va_list ap;
    if (c->rc < 0)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    csv_fail_row(c, "%s: '%s' %s", c->columns[column].name, show(c->field[column], shown),
                 text);
}

static void fail_memory(struct csv *c)
{
    if (c->rc == 0)
        keep(c, sl_fail(c->err, SL_INTERNAL, "%s: out of memory", c->text->name));
}

/* ---- lines and fields ---- */

/* The next line that is not blank, without its end; false at the end of the file. */
static bool next_line(struct csv *c, struct csv_field *line)
{
    while (c->at < c->end) {
        const char *stop = memchr(c->at, '\n', (size_t)(c->end - c->at));
        line->text = c->at;
        line->len = (size_t)((stop ? stop : c->end) - c->at);
        c->at = stop ? stop + 1 : c->end;
        c->line++;
        if (line->len && line->text[line->len - 1] == '\r')
            line->len--;
        if (line->len)
            return true;
    }
    return false;
}

/* Cut one field off the front of *line; *line.text is NULL after the last. */
static struct csv_field take_field(struct csv *c, struct csv_field *line)
{
    const char *stop = memchr(line->text, c->separator, line->len);
    struct csv_field f = { line->text, stop ? (size_t)(stop - line->text) : line->len };
    line->len -= f.len + (stop != NULL);
    line->text = stop ? stop + 1 : NULL;
    for (; f.len && *f.text == ' '; f.text++)
        f.len--;
    for (; f.len && f.text[f.len - 1] == ' ';)
        f.len--;
    if (f.len && *f.text == '"') {
        char shown[48];
        csv_fail_row(c, "%s is in quotes; plain fields are expected", show(f, shown));
    }
    return f;
}

static void begin(struct csv *c, const struct text *text, char separator,
                  const struct csv_column *columns, unsigned count, struct sl_err *err)
{
    *c = (struct csv){
        .text = text,
        .at = text->bytes,
        .end = text->bytes + text->len,
        .separator = separator,
        .columns = columns,
        .column_count = count,
        .err = err,
    };
    for (unsigned i = 0; i < count; i++)
        c->place[i] = ABSENT;
}

/* A name of the header stands in place `at` of each row. */
static void take_heading(struct csv *c, struct csv_field name, unsigned at)
{
    for (unsigned i = 0; i < c->column_count; i++) {
        if (strlen(c->columns[i].name) != name.len ||
            memcmp(c->columns[i].name, name.text, name.len))
            continue;
        if (c->place[i] != ABSENT)
            csv_fail_row(c, "column '%s' is there twice", c->columns[i].name);
        c->place[i] = at;
    }
}

void csv_begin(struct csv *c, const struct text *text, const struct csv_column *columns,
               unsigned count, struct sl_err *err)
{
    struct csv_field line, rest;
    char shown[48];
    begin(c, text, ',', columns, count, err);
    if (!next_line(c, &line)) {
        keep(c, sl_fail(err, SL_INVALID, "%s is empty; a header with '%s' is expected",
                        text->name, columns[0].name));
        return;
    }
    for (rest = line; rest.text; c->file_columns++)
        take_heading(c, take_field(c, &rest), c->file_columns);
    for (unsigned i = 0; i < count; i++)
        if (c->place[i] == ABSENT && !columns[i].optional)
            csv_fail_row(c, "no column '%s'; the header is '%s'", columns[i].name,
                         show(line, shown));
}

void csv_begin_plain(struct csv *c, const struct text *text, char separator,
                     const struct csv_column *columns, unsigned count, struct sl_err *err)
{
    begin(c, text, separator, columns, count, err);
    c->file_columns = count;
    for (unsigned i = 0; i < count; i++)
        c->place[i] = i;
}

bool csv_next(struct csv *c)
{
    struct csv_field line;
    unsigned at = 0;
    if (c->rc < 0)
        return false;
    if (!next_line(c, &line)) {
        if (c->rows == 0)
            keep(c, sl_fail(c->err, SL_INVALID, "%s has no rows", c->text->name));
        return false;
    }
    c->rows++;
    while (line.text) {
        struct csv_field f = take_field(c, &line);
        for (unsigned i = 0; i < c->column_count; i++)
            if (c->place[i] == at)
                c->field[i] = f;
        at++;
    }
    if (at != c->file_columns)
        csv_fail_row(c, "%u fields; %u are expected", at, c->file_columns);
    return c->rc == 0;
}

void *csv_array(struct csv *c, size_t item_size)
{
    if (c->rc < 0)
        return NULL;
    size_t rows = 1; /* the last may lack its newline */
    for (const char *p = c->at; (p = memchr(p, '\n', (size_t)(c->end - p))); p++)
        rows++;
    void *items = calloc(rows, item_size);
    if (!items)
        fail_memory(c);
    return items;
}

bool csv_has(const struct csv *c, unsigned column)
{
    return c->field[column].len > 0;
}

/* ---- numbers ---- */

static void fail_number(struct csv *c, unsigned column, unsigned places, uint64_t min,
                        uint64_t max, enum number_fault fault)
{
    char low[32], high[32];
    number_format(min, places, low);
    number_format(max, places, high);
    if (fault == NUMBER_NONE && !csv_has(c, column))
        csv_fail_field(c, column, "is empty; expected %s..%s", low, high);
    else if (fault == NUMBER_NONE)
        csv_fail_field(c, column, "is not a number; expected %s..%s", low, high);
    else if (fault == NUMBER_FINE && places == 0)
        csv_fail_field(c, column, "is not whole; expected %s..%s", low, high);
    else if (fault == NUMBER_FINE)
        csv_fail_field(c, column, "has more than %u digits behind the point", places);
    else if (fault == NUMBER_LARGE)
        csv_fail_field(c, column, "is above %s; expected %s..%s", high, low, high);
    else
        csv_fail_field(c, column, "is below %s; expected %s..%s", low, low, high);
}

static uint64_t get_number(struct csv *c, unsigned column, unsigned places, bool rounded,
                           uint64_t min, uint64_t max)
{
    uint64_t value = 0;
    struct csv_field f = c->field[column];
    if (c->rc < 0)
        return 0;
    enum number_fault fault = rounded ? number_parse_rounded(f.text, f.len, places, &value)
                                      : number_parse(f.text, f.len, places, &value);
    if (fault == NUMBER_OK && value < min)
        fault = NUMBER_NEGATIVE;
    if (fault == NUMBER_OK && value > max)
        fault = NUMBER_LARGE;
    if (fault == NUMBER_OK)
        return value;
    fail_number(c, column, places, min, max, fault);
    return 0;
}

uint64_t csv_u64(struct csv *c, unsigned column, uint64_t min, uint64_t max)
{
    return get_number(c, column, 0, false, min, max);
}

uint64_t csv_fixed(struct csv *c, unsigned column, unsigned places, uint64_t min,
                   uint64_t max)
{
    return get_number(c, column, places, false, min, max);
}

uint64_t csv_rounded(struct csv *c, unsigned column, unsigned places, uint64_t min,
                     uint64_t max)
{
    return get_number(c, column, places, true, min, max);
}

/* ---- times ---- */

/* A 0 in the shape stands for any digit. */
static bool has_shape(const char *text, const char *shape)
{
    for (; *shape; text++, shape++)
        if (*shape == '0' ? !isdigit((unsigned char)*text) : *text != *shape)
            return false;
    return true;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + text[1] - '0';
}

/* "2022-01-31 10:00:00" to seconds; -1 for what is no such time. */
static int64_t parse_seconds(const char *text)
{
    if (!has_shape(text, "0000-00-00 00:00:00") && !has_shape(text, "0000-00-00T00:00:00"))
        return -1;
    struct tm tm = {
        .tm_year = two_digits(text) * 100 + two_digits(text + 2) - 1900,
        .tm_mon = two_digits(text + 5) - 1,
        .tm_mday = two_digits(text + 8),
        .tm_hour = two_digits(text + 11),
        .tm_min = two_digits(text + 14),
        .tm_sec = two_digits(text + 17),
    };
    if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 59)
        return -1;
    struct tm again = tm;
    int64_t seconds = timegm(&again); /* turns February 30th into March 2nd */
    return again.tm_mon == tm.tm_mon && again.tm_mday == tm.tm_mday ? seconds : -1;
}

/* ".5" to microseconds; finer digits are dropped. */
static uint64_t take_fraction(const char **p)
{
    uint64_t us = 0, unit = 100000;
    if (**p != '.' || !isdigit((unsigned char)(*p)[1]))
        return 0;
    for ((*p)++; isdigit((unsigned char)**p); (*p)++, unit /= 10)
        us += (uint64_t)(**p - '0') * unit;
    return us;
}

uint64_t csv_time_us(struct csv *c, unsigned column)
{
    char text[40] = "";
    struct csv_field f = c->field[column];
    if (c->rc < 0)
        return 0;
    if (f.len && f.len < sizeof text)
        memcpy(text, f.text, f.len);
    const char *p = text + 19;
    int64_t seconds = parse_seconds(text);
    uint64_t us = seconds >= 0 ? take_fraction(&p) : 0;
    if (seconds < 0 || (*p && strcmp(p, "Z") && strcmp(p, "+00:00"))) {
        csv_fail_field(c, column, "is no time such as '2022-01-31 10:00:00' (UTC)");
        return 0;
    }
    return (uint64_t)seconds * 1000000 + us;
}

/* ---- words ---- */

unsigned csv_choice(struct csv *c, unsigned column, const char *const *choices)
{
    char list[120] = "";
    struct csv_field f = c->field[column];
    if (c->rc < 0)
        return 0;
    for (unsigned i = 0; choices[i]; i++) {
        if (strlen(choices[i]) == f.len && !memcmp(choices[i], f.text, f.len))
            return i;
        size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", choices[i]);
    }
    csv_fail_field(c, column, "is none of: %s", list);
    return 0;
}

uint32_t csv_add_name(struct csv *c, struct csv_field f, struct names *names)
{
    if (c->rc < 0 || f.len == 0)
        return NAMES_NONE;
    uint32_t index = names_add(names, f.text, f.len, c->line);
    if (index == NAMES_NONE)
        fail_memory(c);
    return index;
}

uint32_t csv_name_or_none(struct csv *c, unsigned column, struct names *names)
{
    return csv_add_name(c, c->field[column], names);
}

uint32_t csv_name(struct csv *c, unsigned column, struct names *names)
{
    if (!csv_has(c, column))
        csv_fail_field(c, column, "is empty; a name is expected");
    return csv_name_or_none(c, column, names);
}

uint32_t csv_id(struct csv *c, unsigned column, struct names *names)
{
    uint32_t known = names->count, index = csv_name(c, column, names);
    if (index < known)
        csv_fail_field(c, column, "is on line %u already", names->name[index].line);
    return index;
}
