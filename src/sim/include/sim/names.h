/*
 * Names: each different string once, numbered 0, 1, 2 … in order of appearance.
 * The strings lie in one block; nothing is allocated per string.
 *
 * Start from `struct names n = { 0 }`; one owner.
 */
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAMES_NONE UINT32_MAX

struct name {
    uint32_t offset; /* in bytes */
    uint32_t len;
    uint32_t hash;
    uint32_t line; /* of the file, where it stood first */
};

struct names {
    char *bytes;
    size_t len, room;
    struct name *name;
    uint32_t count, name_room;
    uint32_t *slot; /* open addressing: index + 1; 0 is free */
    uint32_t slot_count;
};

/* The number of this string, a new one if it was not there (then count grows by
 * one and `line` is kept); NAMES_NONE when out of memory. */
uint32_t names_add(struct names *n, const char *text, size_t len, uint32_t line);

/* NAMES_NONE if it is not there. */
uint32_t names_find(const struct names *n, const char *text);

/* NUL-terminated; valid until the next names_add.  "" for NAMES_NONE. */
const char *names_text(const struct names *n, uint32_t index);

void names_finish(struct names *n);

#endif
