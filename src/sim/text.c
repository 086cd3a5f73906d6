/* Text files: read whole, unpacked if gzip, refused if they are no text. */
#include "sim/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "core/macros.h"
#include "os/file.h"

#define WITH_GZIP_HEADER (16 + MAX_WBITS)

static bool is_gzip(const char *bytes, size_t len)
{
    return len >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

static void set_name(struct text *t, const char *path)
{
    size_t len = strlen(path);
    const char *last = strrchr(path, '/');
    snprintf(t->name, sizeof t->name, "%s",
             len >= sizeof t->name && last ? last + 1 : path);
}

/* Room for at least one more byte, up to TEXT_MAX_BYTES. */
static int grow(struct text *t, size_t *room, struct sl_err *err)
{
    if (t->len < *room)
        return 0;
    if (*room == TEXT_MAX_BYTES)
        return sl_fail(err, SL_TOO_LARGE, "%s: more than %zu MiB when unpacked", t->name,
                       TEXT_MAX_BYTES >> 20);
    size_t more = min_u64(*room * 2, TEXT_MAX_BYTES);
    char *bytes = realloc(t->bytes, more);
    if (!bytes)
        return sl_fail(err, SL_INTERNAL, "%s: out of memory", t->name);
    t->bytes = bytes;
    *room = more;
    return 0;
}

/* A gzip file may be several members one after the other (RFC 1952). */
static int inflate_all(z_stream *z, struct text *t, size_t room, struct sl_err *err)
{
    for (;;) {
        int rc = grow(t, &room, err);
        if (rc < 0)
            return rc;
        z->next_out = (Bytef *)t->bytes + t->len;
        z->avail_out = (uInt)(room - t->len);
        int code = inflate(z, Z_NO_FLUSH);
        t->len = room - z->avail_out;
        if (code == Z_STREAM_END && z->avail_in == 0)
            return 0;
        if (code == Z_STREAM_END)
            code = inflateReset(z);
        if (code == Z_BUF_ERROR || (code == Z_OK && z->avail_in == 0 && z->avail_out > 0))
            return sl_fail(err, SL_INVALID, "%s: the gzip data are cut off after %zu bytes",
                           t->name, t->len);
        if (code == Z_MEM_ERROR)
            return sl_fail(err, SL_INTERNAL, "%s: out of memory", t->name);
        if (code != Z_OK)
            return sl_fail(err, SL_INVALID, "%s: damaged gzip data: %s", t->name,
                           z->msg ? z->msg : zError(code));
    }
}

static int unpack(const char *packed, size_t len, struct text *t, struct sl_err *err)
{
    z_stream z = { .next_in = (Bytef *)packed, .avail_in = (uInt)len };
    size_t room = len * 6 + 64; /* about what CSV shrinks by */
    if (room > TEXT_MAX_BYTES)
        room = TEXT_MAX_BYTES;
    t->bytes = malloc(room);
    if (!t->bytes || inflateInit2(&z, WITH_GZIP_HEADER) != Z_OK)
        return sl_fail(err, SL_INTERNAL, "%s: out of memory", t->name);
    int rc = inflate_all(&z, t, room, err);
    inflateEnd(&z);
    return rc;
}

static int check(struct text *t, struct sl_err *err)
{
    if (t->len >= 3 && !memcmp(t->bytes, "\xef\xbb\xbf", 3)) {
        t->len -= 3;
        memmove(t->bytes, t->bytes + 3, t->len);
    }
    const char *zero = t->len ? memchr(t->bytes, '\0', t->len) : NULL;
    if (!zero)
        return 0;
    unsigned line = 1;
    for (const char *p = t->bytes; p < zero; p++)
        line += *p == '\n';
    return sl_fail(err, SL_INVALID, "%s:%u: a zero byte: this is no text file", t->name,
                   line);
}

int text_take(const char *name, char *bytes, size_t len, struct text *out,
              struct sl_err *err)
{
    struct text t = { 0 };
    int rc = 0;
    set_name(&t, name);
    if (len > TEXT_MAX_BYTES) {
        rc = sl_fail(err, SL_TOO_LARGE, "%s: more than %zu MiB", t.name,
                     TEXT_MAX_BYTES >> 20);
        free(bytes);
    } else if (is_gzip(bytes, len)) {
        rc = unpack(bytes, len, &t, err);
        free(bytes);
    } else {
        t.bytes = bytes;
        t.len = len;
    }
    if (rc == 0)
        rc = check(&t, err);
    if (rc < 0)
        text_finish(&t);
    else
        *out = t;
    return rc;
}

int text_copy(const char *name, const char *string, struct text *out, struct sl_err *err)
{
    char *bytes = strdup(string);
    if (!bytes)
        return sl_fail(err, SL_INTERNAL, "%s: out of memory", name);
    return text_take(name, bytes, strlen(string), out, err);
}

int text_open(const char *path, struct text *out, struct sl_err *err)
{
    char *bytes;
    size_t len;
    int rc = file_read(path, TEXT_MAX_BYTES, &bytes, &len, err);
    return rc < 0 ? rc : text_take(path, bytes, len, out, err);
}

void text_finish(struct text *t)
{
    free(t->bytes);
    *t = (struct text){ 0 };
}
