/*
 * A string that grows.  `text` is NUL-terminated and not NULL after the first
 * append; one owner, any thread.  Start from `struct buf b = { 0 }`.
 *
 * Out of memory is remembered, not returned from each call: append freely,
 * then ask buf_failed() once.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *text;
    size_t len, room;
    bool failed;
};

void buf_add(struct buf *b, const char *text);
void buf_add_bytes(struct buf *b, const void *bytes, size_t len);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_finish(struct buf *b);
static inline bool buf_failed(const struct buf *b)
{
    return b->failed;
}

/* The text, owned by the caller (free); the buffer is empty afterwards.  NULL
 * if an append failed. */
char *buf_take(struct buf *b);

#define AUTO_BUF __attribute__((cleanup(buf_finish)))

#endif
