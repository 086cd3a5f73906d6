/*
 * The mix that bench-sched asks of the scheduler: a file of figures (full-mix.json),
 * and from it nodes, tenants with quotas, and an endless, reproducible row of requests.
 */
#ifndef BENCH_SCHED_MIX_H
#define BENCH_SCHED_MIX_H

#include <jansson.h>

#include "sched/sched.h"

struct mix;

/* Exits with a message where the file cannot be read or lacks a figure. */
struct mix *mix_open(const char *path);
void mix_close(struct mix *m);

/* The file's content, and a figure of it at the top level. */
json_t *mix_json(const struct mix *m);
uint64_t mix_number(const struct mix *m, const char *key);

/* The i-th of `nodes` nodes that have `devices` in all: each 8, 4 or 2, so that it adds up. */
struct pool_node mix_node(struct mix *m, uint32_t i, uint32_t nodes, uint32_t devices);

/* Tenants and their quotas, once all nodes are known: of what a tenant would use if
 * it got its part of the allocated devices, `percent` of the quota of the mix. */
uint32_t mix_tenant_count(const struct mix *m);
struct sched_tenant mix_tenant(const struct mix *m, uint32_t i);
uint32_t mix_model_count(const struct mix *m);
struct sched_quota mix_quota(const struct mix *m, uint32_t i, uint32_t model,
                             uint32_t percent);

/* The next request; `id` is the caller's to set, the options are lent until the next call. */
struct sched_request mix_request(struct mix *m);

/* One ask out of the mix, and a node's worth of whole devices. */
struct pool_ask mix_ask(struct mix *m);
uint32_t mix_below(struct mix *m, uint32_t n);

#endif
