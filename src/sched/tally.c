/*
 * The tally: what the leases on each device add up to, by definition; what sched_check()
 * compares the pool with.
 */
#include <assert.h>
#include <stdlib.h>

#include "sched_impl.h"

struct tally {
    uint32_t leases, spanning;
    uint32_t permille, tenant; /* of one of them */
    uint64_t mem_bytes;
    uint32_t lower_leases, lower_permille;
    uint64_t lower_mem_bytes;
    uint32_t slots; /* of a device of profiles */
    bool several_tenants;
};

static void count(struct tally *t, const struct request *r, const struct pool_ask *a,
                  const struct pool_profile *cut, uint32_t start)
{
    if (a->lower) {
        t->lower_leases++;
        t->lower_permille += a->permille;
        t->lower_mem_bytes += a->mem_bytes;
        return;
    }
    t->several_tenants |= t->leases && t->tenant != r->tenant;
    t->tenant = r->tenant;
    t->leases++;
    t->spanning += a->devices > 1;
    t->permille += a->permille;
    t->mem_bytes += a->mem_bytes;
    for (uint32_t i = start; cut && i < start + cut->mem_slots; i++) {
        assert(!(t->slots >> i & 1));
        t->slots |= 1u << i;
    }
}

static void count_request(const struct pool *p, struct tally (*tally)[POOL_MAX_DEVICES],
                          const struct request *r)
{
    for (uint32_t i = 0; i < r->place_count; i++)
        for (uint32_t k = 0; r->taken[i] && k < r->place[i].device_count; k++) {
            const struct pool_place *at = &r->place[i];
            const struct pool_device *is = &p->node[at->node].is.device[at->device[k]];
            const struct pool_profile *cut =
                is->sharing == POOL_PROFILE
                    ? &p->profiles[is->model].profile[at->cut[k].profile]
                    : NULL;
            count(&tally[at->node][at->device[k]], r,
                  option_ask(&r->form->option[r->option], i), cut, at->cut[k].start);
        }
}

static void check_device(const struct sched *s, const struct tally *t,
                         const struct pool_device *is, const struct class_device *now)
{
    assert(t->lower_permille <= is->over_permille);
    assert(t->lower_mem_bytes <= is->over_mem_bytes);
    assert(!t->lower_leases || s->policy.tenancy >> is->sharing & 1);
    assert(!t->several_tenants || s->policy.tenancy >> is->sharing & 1);
    assert(t->spanning <= 1 || is->sharing != POOL_TIME);
    if (is->sharing == POOL_EXCLUSIVE) {
        assert(t->leases <= 1);
        return;
    }
    if (is->sharing == POOL_PROFILE) {
        assert(t->slots == now->cut.slots);
        assert(t->permille + now->permille <= 1000);
        assert(t->mem_bytes + now->mem_bytes <= is->mem_bytes);
        return;
    }
    assert(t->permille + now->permille == 1000);
    assert(t->mem_bytes + now->mem_bytes == is->mem_bytes);
    assert(t->lower_permille + now->lower.permille == is->over_permille);
    assert(t->lower_mem_bytes + now->lower.mem_bytes == is->over_mem_bytes);
}

void tally_check(const struct sched *s)
{
    const struct pool *p = s->pool;
    struct tally(*tally)[POOL_MAX_DEVICES] = calloc(p->node_count + 1, sizeof *tally);
    if (!tally) /* no memory to look with */
        return;
    for (uint32_t i = 0; i <= s->request_mask; i++)
        for (const struct request *r = s->request[i]; r; r = r->chain)
            count_request(p, tally, r);
    for (uint32_t n = 0; n < p->node_count; n++)
        for (uint32_t d = 0; d < p->node[n].is.device_count; d++) {
            assert(tally[n][d].leases == p->node[n].device[d].users);
            assert(tally[n][d].lower_leases == p->node[n].device[d].lower_users);
            check_device(s, &tally[n][d], &p->node[n].is.device[d],
                         &p->node[n].device[d].now);
        }
    free(tally);
}
