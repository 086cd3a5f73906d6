/* Did you mean: edit distance with swaps of neighbours (optimal string alignment). */
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

#define WORD_MAX 63

static size_t min2(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int fold(char c)
{
    return tolower((unsigned char)c);
}

/* Both words at most WORD_MAX long. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t cost = fold(a[i - 1]) != fold(b[j - 1]);
            row[j] = min2(last[j - 1] + cost, min2(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]))
                row[j] = min2(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}

const char *suggest_nearest(const char *word, const char *const *candidates, size_t count)
{
    size_t len = strlen(word);
    if (len == 0 || len > WORD_MAX)
        return NULL;

    /* One slip in a short word, one in three letters of a long one. */
    size_t best = len <= 3 ? 1 : len / 3 + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other > WORD_MAX)
            continue;
        size_t d = distance(word, len, candidates[i], other);
        /* everything replaced is another word, not a slip */
        if (d >= other || d > best || (nearest && d == best))
            continue;
        best = d;
        nearest = candidates[i];
    }
    return nearest;
}
