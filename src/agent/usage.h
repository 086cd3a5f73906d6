/*
 * What a slice used since its grant, over all brokers that its lease has had: a
 * broker counts from its own start, and what earlier ones counted is the base.
 * What is shown never goes back.  Pure.
 */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/lease.h"
#include "proto/ctl.h"

#define USAGE_COUNTERS 8

struct usage_base {
    uint64_t count[USAGE_COUNTERS];
};

/* Show the base and what this broker counted. */
void usage_take(const struct usage_base *base, const struct proto_slice_stat *told,
                struct lease_slice *shown);

/* A new broker counts from zero: what is shown is the base.  False: all of it is zero. */
bool usage_rebase(struct usage_base *base, const struct lease_slice *shown);

/* A list of lists of numbers, as the journal keeps it. */
json_t *usage_to_json(const struct usage_base *base, uint32_t slices);
/* What is missing is zero. */
void usage_from_json(const json_t *j, struct usage_base base[LEASE_MAX_SLICES]);

#endif
