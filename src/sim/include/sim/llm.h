/*
 * Requests to a language model, as the Azure LLM inference traces have them (Splitwise,
 * ISCA 2024): TIMESTAMP,ContextTokens,GeneratedTokens.
 */
#ifndef SIM_LLM_H
#define SIM_LLM_H

#include <stdint.h>

#include "core/err.h"
#include "sim/text.h"

struct llm_request {
    uint64_t arrival_us; /* since the first */
    uint32_t context_tokens, generated_tokens;
    uint32_t line;
};

/* In order of arrival, equal ones in the order of the file; at least one.  The caller
 * frees by _finish. */
struct llm_trace {
    struct llm_request *requests;
    uint32_t count;
    uint64_t begin_us; /* since 1970, UTC */
};

int llm_trace_read(const struct text *text, struct llm_trace *out, struct sl_err *err);
void llm_trace_finish(struct llm_trace *t);

#endif
