/* The readers of a scenario's statements, and what they share.  Private to the scenarios. */
#ifndef SCENARIO_READER_H
#define SCENARIO_READER_H

#include "scenario_impl.h"
#include "words.h"

#define RANGE_MOST 100000u /* names in one range */

struct reader {
    struct words w;
    struct scenario *s;
    struct statement *st; /* at hand */
};

/* A clause: what may follow, by its first word. */
struct clause {
    const char *word;
    void (*read)(struct reader *r);
};

void out_of_memory(struct reader *r);

/* A name; a new one, or one that must be there: "no node 'n7'". */
uint32_t read_name(struct reader *r, struct names *names, const char *kind, bool known);
/* One name, or a range of them. */
struct set read_set(struct reader *r, struct names *names, const char *kind, bool known);
void add_index(struct reader *r, struct set *set, uint32_t n);
uint32_t read_model(struct reader *r, bool known);
/* A model, or "in all", at their prices. */
uint32_t read_counted(struct reader *r);
void read_label(struct reader *r, struct pool_labels *labels);
void read_clause(struct reader *r, const struct clause *clauses, size_t count,
                 const char *what);
/* … between commas until the line ends. */
void read_clauses(struct reader *r, const struct clause *clauses, size_t count,
                  const char *what);

/* Each reads a statement whose first word is behind it. */
void read_node(struct reader *r);
void read_tenant(struct reader *r);
void read_price(struct reader *r);
void read_policy(struct reader *r);
void read_submit(struct reader *r);
void read_expect(struct reader *r);

#endif
