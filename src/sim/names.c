/* The table of names: one block of bytes and a hash of open addressing. */
#include "base/array.h"
#include "sim/names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a */
static uint32_t hash_of(const char *text, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

/* Where it is, or the free slot where it belongs.  Needs a free slot. */
static uint32_t *slot_of(const struct names *n, const char *text, size_t len, uint32_t hash)
{
    for (uint32_t i = hash;; i++) {
        uint32_t *slot = &n->slot[i & (n->slot_count - 1)];
        if (!*slot)
            return slot;
        const struct name *have = &n->name[*slot - 1];
        if (have->hash == hash && have->len == len &&
            !memcmp(n->bytes + have->offset, text, len))
            return slot;
    }
}

static bool grow_slots(struct names *n)
{
    if (n->count < n->slot_count / 2)
        return true;
    uint32_t count = n->slot_count ? n->slot_count * 2 : 64;
    uint32_t *slot = calloc(count, sizeof *slot);
    if (!slot)
        return false;
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t at = n->name[i].hash;
        while (slot[at & (count - 1)])
            at++;
        slot[at & (count - 1)] = i + 1;
    }
    free(n->slot);
    n->slot = slot;
    n->slot_count = count;
    return true;
}

static bool grow_bytes(struct names *n, size_t more)
{
    size_t room = n->room ? n->room : 256;
    while (room - n->len < more)
        room *= 2;
    if (room == n->room)
        return true;
    char *bytes = room <= UINT32_MAX ? realloc(n->bytes, room) : NULL;
    if (!bytes)
        return false;
    n->bytes = bytes;
    n->room = room;
    return true;
}

uint32_t names_add(struct names *n, const char *text, size_t len, uint32_t line)
{
    uint32_t hash = hash_of(text, len);
    if (!grow_slots(n))
        return NAMES_NONE;
    uint32_t *slot = slot_of(n, text, len, hash);
    if (*slot)
        return *slot - 1;
    if (array_reserve(&n->name, &n->name_room, n->count + 1, sizeof *n->name) ||
        !grow_bytes(n, len + 1))
        return NAMES_NONE;
    n->name[n->count] = (struct name){ (uint32_t)n->len, (uint32_t)len, hash, line };
    memcpy(n->bytes + n->len, text, len);
    n->bytes[n->len + len] = '\0';
    n->len += len + 1;
    *slot = ++n->count;
    return n->count - 1;
}

uint32_t names_find(const struct names *n, const char *text)
{
    size_t len = strlen(text);
    /* an empty slot gives 0 - 1 */
    return n->slot_count ? *slot_of(n, text, len, hash_of(text, len)) - 1 : NAMES_NONE;
}

const char *names_text(const struct names *n, uint32_t index)
{
    return index < n->count ? n->bytes + n->name[index].offset : "";
}

void names_finish(struct names *n)
{
    free(n->bytes);
    free(n->name);
    free(n->slot);
    *n = (struct names){ 0 };
}
