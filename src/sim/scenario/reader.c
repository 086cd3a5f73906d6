/* What the readers of all statements share: names, sets of them, clauses. */
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void out_of_memory(struct reader *r)
{
    if (!r->w.rc)
        r->w.rc = sl_fail(r->w.err, SL_INTERNAL, "%s: out of memory", r->s->file);
}

/* ---- names ---- */

static bool is_name(const char *word)
{
    return word[0] &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "0123456789-_./=")] == '\0';
}

static uint32_t add_name(struct reader *r, struct names *names, const char *text)
{
    uint32_t n = names_add(names, text, strlen(text), r->w.line);
    if (n == NAMES_NONE)
        out_of_memory(r);
    return n;
}

/* A name; a new one, or one that must be there: "no node 'n7'". */
uint32_t read_name(struct reader *r, struct names *names, const char *kind, bool known)
{
    uint32_t n = NAMES_NONE;
    if (r->w.rc)
        return n;
    if (!is_name(r->w.word))
        words_fail(&r->w, "expected the name of a %s", kind);
    else if (known && (n = names_find(names, r->w.word)) == NAMES_NONE)
        words_fail(&r->w, "there is no %s '%s'", kind, r->w.word);
    else if (!known)
        n = add_name(r, names, r->w.word);
    words_next(&r->w);
    return n;
}

void add_index(struct reader *r, struct set *set, uint32_t n)
{
    struct scenario *s = r->s;
    if (r->w.rc)
        return;
    if (array_reserve(&s->index, &s->index_room, s->index_count + 1, sizeof *s->index)) {
        out_of_memory(r);
        return;
    }
    if (!set->count)
        set->first = s->index_count;
    s->index[s->index_count++] = n;
    set->count++;
}

/* "n9..n12" is n9, n10, n11 and n12. */
static bool split_range(char *word, char **to, unsigned *first, unsigned *last)
{
    char *dots = strstr(word, "..");
    if (!dots)
        return false;
    *dots = '\0';
    *to = dots + 2;
    size_t stem = strlen(word);
    while (stem && strchr("0123456789", word[stem - 1]))
        stem--;
    if (!word[stem] || strncmp(word, *to, stem) ||
        strspn(*to + stem, "0123456789") != strlen(*to + stem) || !(*to)[stem])
        return false;
    *first = (unsigned)strtoul(word + stem, NULL, 10);
    *last = (unsigned)strtoul(*to + stem, NULL, 10);
    word[stem] = '\0';
    return *first <= *last && *last - *first < RANGE_MOST;
}

struct set read_set(struct reader *r, struct names *names, const char *kind, bool known)
{
    struct set set = { 0 };
    char word[WORD_MAX + 1], name[WORD_MAX + 12], *to;
    unsigned first, last;
    if (!strstr(r->w.word, "..")) {
        add_index(r, &set, read_name(r, names, kind, known));
        return set;
    }
    memcpy(word, r->w.word, sizeof word);
    if (!split_range(word, &to, &first, &last)) {
        words_fail(&r->w, "a range of names is written like %s1..%s9", kind, kind);
        return set;
    }
    for (unsigned i = first; i <= last && !r->w.rc; i++) {
        snprintf(name, sizeof name, "%s%u", word, i);
        uint32_t n = known ? names_find(names, name) : add_name(r, names, name);
        if (n == NAMES_NONE)
            words_fail(&r->w, "there is no %s '%s'", kind, name);
        add_index(r, &set, n);
    }
    words_next(&r->w);
    return set;
}

uint32_t read_model(struct reader *r, bool known)
{
    uint32_t m = read_name(r, &r->s->models, "model", known);
    if (!r->w.rc && m >= POOL_MAX_MODELS)
        words_fail(&r->w, "more than %d models", POOL_MAX_MODELS);
    return r->w.rc ? 0 : m;
}

/* What is counted: a model, or "in all", at their prices. */
uint32_t read_counted(struct reader *r)
{
    if (!words_take(&r->w, "in"))
        return read_model(r, true);
    words_need(&r->w, "all");
    return SCHED_ALL_MODELS;
}

void read_label(struct reader *r, struct pool_labels *labels)
{
    uint32_t n = read_name(r, &r->s->labels, "label", false);
    if (!r->w.rc && n >= 64 * POOL_LABEL_WORDS)
        words_fail(&r->w, "more than %d labels", 64 * POOL_LABEL_WORDS);
    if (!r->w.rc)
        labels->bits[n / 64] |= 1ull << (n % 64);
}

void read_clause(struct reader *r, const struct clause *clauses, size_t count,
                 const char *what)
{
    const char *known[24];
    for (size_t i = 0; i < count; i++) {
        if (words_take(&r->w, clauses[i].word)) {
            clauses[i].read(r);
            return;
        }
        known[i] = clauses[i].word;
    }
    words_unknown(&r->w, what, known, count);
}

/* … between commas until the line ends. */
void read_clauses(struct reader *r, const struct clause *clauses, size_t count,
                  const char *what)
{
    do
        read_clause(r, clauses, count, what);
    while (words_take(&r->w, ","));
}
