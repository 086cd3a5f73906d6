/* The growing string: doubling storage, and one flag that remembers failure. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and the NUL. */
static bool grow(struct buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more >= SIZE_MAX / 2 - b->len) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + more + 1;
    if (need <= b->room)
        return true;
    size_t room = b->room ? b->room : 64;
    while (room < need)
        room *= 2;
    char *text = realloc(b->text, room);
    if (!text) {
        b->failed = true;
        return false;
    }
    b->text = text;
    b->room = room;
    return true;
}

void buf_add_bytes(struct buf *b, const void *bytes, size_t len)
{
    if (!grow(b, len))
        return;
    if (len)
        memcpy(b->text + b->len, bytes, len);
    b->len += len;
    b->text[b->len] = '\0';
}

void buf_add(struct buf *b, const char *text)
{
    buf_add_bytes(b, text, strlen(text));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, ap);
    if (len < 0)
        b->failed = true;
    else if (grow(b, (size_t)len)) {
        vsnprintf(b->text + b->len, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end(again);
    va_end(ap);
}

void buf_finish(struct buf *b)
{
    free(b->text);
    *b = (struct buf){ 0 };
}

char *buf_take(struct buf *b)
{
    if (!b->failed && !b->text)
        buf_add(b, "");
    if (b->failed) {
        buf_finish(b);
        return NULL;
    }
    char *text = b->text;
    *b = (struct buf){ 0 };
    return text;
}
