/* Traces of requests to a language model. */
#include "sim/llm.h"

#include <stdlib.h>

#include "core/macros.h"
#include "sim/csv.h"

#define MAX_TOKENS 1000000000u

enum { TIMESTAMP, CONTEXT_TOKENS, GENERATED_TOKENS };

static const struct csv_column columns[] = {
    [TIMESTAMP] = { "TIMESTAMP" },
    [CONTEXT_TOKENS] = { "ContextTokens" },
    [GENERATED_TOKENS] = { "GeneratedTokens" },
};

static void read_request(struct csv *c, struct llm_trace *t)
{
    struct llm_request *r = &t->requests[t->count++];
    r->arrival_us = csv_time_us(c, TIMESTAMP);
    r->context_tokens = (uint32_t)csv_u64(c, CONTEXT_TOKENS, 0, MAX_TOKENS);
    r->generated_tokens = (uint32_t)csv_u64(c, GENERATED_TOKENS, 0, MAX_TOKENS);
    r->line = c->line;
}

static int by_arrival(const void *left, const void *right)
{
    const struct llm_request *a = left, *b = right;
    if (a->arrival_us != b->arrival_us)
        return a->arrival_us < b->arrival_us ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

int llm_trace_read(const struct text *text, struct llm_trace *out, struct sl_err *err)
{
    struct csv csv;
    struct llm_trace t = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    t.requests = csv_array(&csv, sizeof *t.requests);
    while (csv_next(&csv))
        read_request(&csv, &t);
    if (csv.rc < 0) {
        llm_trace_finish(&t);
        return csv.rc;
    }
    qsort(t.requests, t.count, sizeof *t.requests, by_arrival);
    t.begin_us = t.requests[0].arrival_us;
    for (uint32_t i = 0; i < t.count; i++)
        t.requests[i].arrival_us -= t.begin_us;
    *out = t;
    return 0;
}

void llm_trace_finish(struct llm_trace *t)
{
    free(t->requests);
    *t = (struct llm_trace){ 0 };
}
