/* Owns the sum of what several brokers counted for one slice. */
#include "usage.h"

#include <stddef.h>
#include <string.h>

#include "core/macros.h"

static const struct {
    size_t shown, told;
} counters[] = {
#define COUNTER(name)                                                               \
    {                                                                               \
        offsetof(struct lease_slice, name), offsetof(struct proto_slice_stat, name) \
    }
    COUNTER(held_ns), COUNTER(turns),  COUNTER(wait_ns), COUNTER(overrun_ns),
    COUNTER(kernels), COUNTER(copies), COUNTER(ungated), COUNTER(refused),
};
_Static_assert(ARRAY_LEN(counters) == USAGE_COUNTERS, "one base a counter");

static uint64_t read_at(const void *record, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)record + offset, sizeof value);
    return value == UNKNOWN_U64 ? 0 : value;
}

void usage_take(const struct usage_base *base, const struct proto_slice_stat *told,
                struct lease_slice *shown)
{
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        /* less than before: a base was lost, with agent and broker killed at once */
        uint64_t value = max_u64(base->count[i] + read_at(told, counters[i].told),
                                 read_at(shown, counters[i].shown));
        memcpy((char *)shown + counters[i].shown, &value, sizeof value);
    }
}

bool usage_rebase(struct usage_base *base, const struct lease_slice *shown)
{
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        base->count[i] = read_at(shown, counters[i].shown);
        any |= base->count[i] != 0;
    }
    return any;
}

json_t *usage_to_json(const struct usage_base *base, uint32_t slices)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < slices; i++) {
        json_t *counts = json_array();
        for (size_t k = 0; k < USAGE_COUNTERS; k++)
            json_array_append_new(counts, json_integer((json_int_t)base[i].count[k]));
        json_array_append_new(list, counts);
    }
    return list;
}

void usage_from_json(const json_t *j, struct usage_base base[LEASE_MAX_SLICES])
{
    for (size_t i = 0; i < LEASE_MAX_SLICES; i++)
        for (size_t k = 0; k < USAGE_COUNTERS; k++)
            base[i].count[k] =
                (uint64_t)json_integer_value(json_array_get(json_array_get(j, i), k));
}
