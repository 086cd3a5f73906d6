/*
 * A whole file of text in memory, as the readers take it; unpacked if it is gzip
 * (told by its first bytes, not by its name).
 *
 * Holds no zero byte and no byte order mark.  Owner: who opened it (text_finish);
 * what is read from it keeps nothing of it.
 */
#ifndef SIM_TEXT_H
#define SIM_TEXT_H

#include <stddef.h>

#include "core/err.h"

#define TEXT_MAX_BYTES ((size_t)512 << 20) /* unpacked */

struct text {
    char *bytes; /* not NUL-terminated */
    size_t len;
    char name[96]; /* for messages: the path, or its end if that is long */
};

/* -SL_NOT_FOUND, -SL_IO, …; -SL_TOO_LARGE; -SL_INVALID for a damaged gzip. */
int text_open(const char *path, struct text *out, struct sl_err *err);

/* The same from bytes in memory (malloc); takes them, also on failure. */
int text_take(const char *name, char *bytes, size_t len, struct text *out,
              struct sl_err *err);

/* A NUL-terminated string, copied. */
int text_copy(const char *name, const char *string, struct text *out, struct sl_err *err);

void text_finish(struct text *t);

#define AUTO_TEXT __attribute__((cleanup(text_finish)))

#endif
