/*
 * Did you mean: the candidate nearest to a mistyped word.
 */
#ifndef BASE_SUGGEST_H
#define BASE_SUGGEST_H

#include <stddef.h>

/* The nearest of `count` candidates by edit distance (insert, delete, replace,
 * swap of neighbours), or NULL if none is near enough to be meant. */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t count);

#endif
