/* The words of a scenario, line by line.  Private to the scenarios. */
#ifndef SCENARIO_WORDS_H
#define SCENARIO_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/text.h"

#define WORD_MAX 63

/*
 * Blanks, commas and colons part words; a comma or colon is a word itself; '#' ends the line.
 *
 * The first error is kept, with file, line and column, and ends everything: what is read
 * after it is 0, and words_line() is false.
 */
struct words {
    const struct text *text; /* borrowed */
    const char *next, *end;  /* what is not looked at yet */
    const char *line_begin;
    uint32_t line;           /* from 1 */
    char word[WORD_MAX + 1]; /* the one at hand; "" at the end of the line */
    uint32_t column;         /* of it, from 1 */
    int rc;
    struct sl_err *err;
};

void words_begin(struct words *w, const struct text *text, struct sl_err *err);
/* The next line that has a word; false at the end, and after an error. */
bool words_line(struct words *w);
void words_next(struct words *w);

bool words_at(const struct words *w, const char *word);
/* … and past it, if it is that. */
bool words_take(struct words *w, const char *word);
/* … or an error: "expected 'x', not 'y'". */
void words_need(struct words *w, const char *word);
/* Nothing more on this line? */
bool words_done(const struct words *w);

int words_fail(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "unknown WHAT 'x'; did you mean 'y'?" */
int words_unknown(struct words *w, const char *what, const char *const *known,
                  size_t count);

/* Each reads the word at hand and goes on to the next. */
uint64_t words_count(struct words *w, const char *what, uint64_t min, uint64_t max);
uint64_t words_milli(struct words *w, const char *what); /* "2.5" is 2500 */
uint64_t words_size(struct words *w);
uint32_t words_share(struct words *w); /* "12.5%" is 125 */
uint64_t words_duration(struct words *w);
/* Is the word at hand one of these? */
bool words_at_share(const struct words *w);
bool words_at_count(const struct words *w);
bool words_at_size(const struct words *w);

#endif
