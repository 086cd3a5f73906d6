/* Tables of text cells and the styles of text. */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define GAP 2 /* between two columns */

void table_init(struct table *t, const struct table_column *columns, int column_count)
{
    *t = (struct table){ .columns = columns, .column_count = column_count };
}

void table_finish(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->styles);
    *t = (struct table){ 0 };
}

static bool grow(struct table *t)
{
    size_t room = t->room ? t->room * 2 : 64;
    char **cells = realloc(t->cells, room * sizeof *cells);
    if (!cells)
        return false;
    t->cells = cells;
    enum style *styles = realloc(t->styles, room * sizeof *styles);
    if (!styles)
        return false;
    t->styles = styles;
    t->room = room;
    return true;
}

/* C1 controls (U+0080..U+009F) steer some terminals as escape sequences do. */
void text_tame(char *text, const char *keep)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;
        if (c1)
            p[1] = '?';
        if (c1 || ((*p < ' ' || *p == 0x7f) && !strchr(keep, *p)))
            *p = '?';
    }
}

void table_add(struct table *t, enum style style, const char *fmt, ...)
{
    char *text;
    va_list ap;

    if (t->count == t->room && !grow(t)) {
        t->failed = true;
        return;
    }
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0) {
        t->failed = true;
        text = NULL;
    }
    va_end(ap);
    if (text && !text[0]) {
        free(text);
        text = strdup("-");
    }
    if (text)
        text_tame(text, "");
    t->cells[t->count] = text;
    t->styles[t->count++] = style;
}

int text_width(const char *text)
{
    mbstate_t state = { 0 };
    int width = 0;
    for (size_t left = strlen(text); left;) {
        wchar_t wide;
        size_t n = mbrtowc(&wide, text, left, &state);
        if (n == 0 || n > left) { /* not a character here: a column a byte */
            n = 1;
            width++;
            state = (mbstate_t){ 0 };
        } else {
            int w = wcwidth(wide);
            width += w > 0 ? w : 0;
        }
        text += n;
        left -= n;
    }
    return width;
}

const char *style_begin(enum style style, bool colour)
{
    static const char *const begin[] = {
        [STYLE_PLAIN] = "",        [STYLE_BOLD] = "\033[1m",  [STYLE_DIM] = "\033[2m",
        [STYLE_GOOD] = "\033[32m", [STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[31m",
    };
    return colour ? begin[style] : "";
}

const char *style_end(enum style style, bool colour)
{
    return colour && style != STYLE_PLAIN ? "\033[0m" : "";
}

static void print_cell(FILE *out, const char *text, int width, bool right, bool last,
                       enum style style, bool colour)
{
    int pad = width - text_width(text);
    if (right)
        fprintf(out, "%*s", pad, "");
    fprintf(out, "%s%s%s", style_begin(style, colour), text, style_end(style, colour));
    if (!last)
        fprintf(out, "%*s", (right ? 0 : pad) + GAP, "");
}

void table_print(const struct table *t, FILE *out, bool colour)
{
    int widths[32] = { 0 };
    int columns = t->column_count;

    if (t->failed) {
        fputs("(out of memory)\n", out);
        return;
    }
    for (int c = 0; c < columns; c++)
        widths[c] = text_width(t->columns[c].title);
    for (size_t i = 0; i < t->count; i++) {
        int w = text_width(t->cells[i]), c = (int)(i % (size_t)columns);
        if (w > widths[c])
            widths[c] = w;
    }
    for (int c = 0; c < columns; c++)
        print_cell(out, t->columns[c].title, widths[c], t->columns[c].right,
                   c == columns - 1, STYLE_BOLD, colour);
    fputc('\n', out);
    for (size_t i = 0; i < t->count; i++) {
        int c = (int)(i % (size_t)columns);
        bool last = c == columns - 1;
        print_cell(out, t->cells[i], widths[c], t->columns[c].right, last, t->styles[i],
                   colour);
        if (last)
            fputc('\n', out);
    }
}
