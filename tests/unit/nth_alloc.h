/*
 * The Nth allocation fails, for each N: an error or success, never a crash, never half
 * an answer.  One test program includes this, linked with nth_alloc_link_args.
 */
#ifndef TESTS_UNIT_NTH_ALLOC_H
#define TESTS_UNIT_NTH_ALLOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

/* Our libraries' calls come here by the linker's --wrap, jansson's by its own hook. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static unsigned long calls, fail_at;
static bool fail_after; /* all from fail_at on, not only that one */

static bool must_fail(void)
{
    calls++;
    return fail_at && (fail_after ? calls >= fail_at : calls == fail_at);
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : __real_realloc(p, size);
}

struct nth_alloc_row {
    const char *label;
    bool (*body)(void); /* true: it succeeded */
};

static void nth_alloc_row(const struct nth_alloc_row *row)
{
    fail_at = 0;
    calls = 0;
    ROW(row->label, row->body());
    unsigned long all = calls;
    ROW(row->label, all > 0);
    for (int after = 0; after < 2; after++)
        for (unsigned long n = 1; n <= all; n++) {
            calls = 0;
            fail_at = n;
            fail_after = after;
            bool ok = row->body();
            fail_at = 0;
            if (after && ok && calls >= n && n == 1)
                fail_msg("row \"%s\": succeeds without memory", row->label);
        }
    calls = 0;
    ROW(row->label, row->body());
}

static void nth_alloc_rows(const struct nth_alloc_row *rows, size_t count)
{
    json_set_alloc_funcs(__wrap_malloc, free);
    for (size_t i = 0; i < count; i++)
        nth_alloc_row(&rows[i]);
    json_set_alloc_funcs(malloc, free);
}

#endif
