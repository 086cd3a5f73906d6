/*
 * Tables of text: rows of fields between separators, over a file in memory.
 *
 * Columns are found by the names in the header row, in any order; columns that
 * nobody asked for are skipped.  A row has as many fields as the header, ends in LF
 * or CRLF (the last one may lack it); blank lines are skipped, blanks around a
 * field are no part of it.  Fields in quotes are refused: none of the formats has them.
 *
 * The first error is kept, with file, line and column, and ends the rows: a reader
 * takes all fields of a row without looking, then asks for the next row, and
 * returns csv->rc at the end.
 *
 *     csv_begin(&csv, text, columns, COLUMN_COUNT, err);
 *     things = csv_array(&csv, sizeof *things);
 *     while (csv_next(&csv))
 *         things[count++].cpu_milli = csv_u64(&csv, COLUMN_CPU, 0, 1000000);
 *     return csv.rc;
 *
 * Getters return 0 after an error.
 */
#ifndef SIM_CSV_H
#define SIM_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "sim/names.h"
#include "sim/text.h"

#define CSV_MAX_COLUMNS 16 /* asked for; a file may have more */

struct csv_column {
    const char *name;
    bool optional;
};

struct csv_field {
    const char *text; /* NULL: the file has no such column */
    size_t len;
};

struct csv {
    const struct text *text; /* borrowed */
    const char *at, *end;    /* what is not read yet */
    char separator;
    const struct csv_column *columns;
    unsigned column_count;
    unsigned file_columns;           /* fields in a row */
    unsigned place[CSV_MAX_COLUMNS]; /* in the file, of each column asked for */
    struct csv_field field[CSV_MAX_COLUMNS];
    uint32_t line; /* of the row at hand, from 1 */
    uint32_t rows;
    int rc; /* 0 or the first error */
    struct sl_err *err;
};

/* A file with a header and commas. */
void csv_begin(struct csv *c, const struct text *text, const struct csv_column *columns,
               unsigned count, struct sl_err *err);

/* A file without a header: exactly these columns, in this order. */
void csv_begin_plain(struct csv *c, const struct text *text, char separator,
                     const struct csv_column *columns, unsigned count, struct sl_err *err);

/* False at the end and after an error.  A file without a row is an error. */
bool csv_next(struct csv *c);

/* Zeroed room for one item of every row that may still come (calloc); NULL and an
 * error when out of memory. */
void *csv_array(struct csv *c, size_t item_size);

/* Is there a value in this row? */
bool csv_has(const struct csv *c, unsigned column);

/* A whole number; "66.0" is one. */
uint64_t csv_u64(struct csv *c, unsigned column, uint64_t min, uint64_t max);
/* A decimal in units of 10^-places, which min and max are in too: exact, or
 * rounded to the nearest where the file has more digits than mean anything. */
uint64_t csv_fixed(struct csv *c, unsigned column, unsigned places, uint64_t min,
                   uint64_t max);
uint64_t csv_rounded(struct csv *c, unsigned column, unsigned places, uint64_t min,
                     uint64_t max);

/* Microseconds since 1970: "2022-01-31 10:00:00", a T between, a fraction behind,
 * +00:00 or Z at the end.  A time without a zone is taken for UTC. */
uint64_t csv_time_us(struct csv *c, unsigned column);

/* Which of the NULL-terminated choices. */
unsigned csv_choice(struct csv *c, unsigned column, const char *const *choices);

/* The number of a name, which must not be empty … */
uint32_t csv_name(struct csv *c, unsigned column, struct names *names);
/* … or may be: then NAMES_NONE … */
uint32_t csv_name_or_none(struct csv *c, unsigned column, struct names *names);
/* … or must not have been there before. */
uint32_t csv_id(struct csv *c, unsigned column, struct names *names);

/* A part of a field as a name; NAMES_NONE if empty. */
uint32_t csv_add_name(struct csv *c, struct csv_field part, struct names *names);

/* The error is in this field: "pods.csv:17: gpu_milli: '-5' " and the text. */
void csv_fail_field(struct csv *c, unsigned column, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* … or in the row: "pods.csv:17: " and the text. */
void csv_fail_row(struct csv *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
