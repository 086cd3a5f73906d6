/*
 * A table of text cells: columns as wide as their widest cell, as few lines as
 * rows.  Fill it cell by cell; one owner, one thread.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_WARN, STYLE_BAD };

struct table_column {
    const char *title;
    bool right; /* numbers */
};

struct table {
    const struct table_column *columns; /* borrowed */
    int column_count;
    char **cells; /* row by row */
    enum style *styles;
    size_t count, room;
    bool failed; /* out of memory; printing then says so */
};

void table_init(struct table *t, const struct table_column *columns, int column_count);
void table_finish(struct table *t);

/* The next cell, left to right, tamed; an empty text is printed as "-". */
void table_add(struct table *t, enum style style, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void table_print(const struct table *t, FILE *out, bool colour);

/* Make a text of somebody else's harmless on a terminal: control characters, but for those
 * in `keep`, become "?". */
void text_tame(char *text, const char *keep);

/* Columns that a text takes on a terminal (UTF-8 in a UTF-8 locale). */
int text_width(const char *text);

/* The escape sequences of a style; "" without colour. */
const char *style_begin(enum style style, bool colour);
const char *style_end(enum style style, bool colour);

#endif
