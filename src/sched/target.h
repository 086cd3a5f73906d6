/*
 * The target: what is expected to be asked, laid out for many shapes to be
 * tested at once.  Private to sched.
 *
 * A *lane* is one shape's place in a vector.  Amounts in lanes are 16 bits, in
 * units that round a shape up and a node down: what the lanes say fits, fits.
 * They only rank nodes; whether an ask fits is decided on exact amounts.
 */
#ifndef SCHED_TARGET_H
#define SCHED_TARGET_H

#include "pool_impl.h"
#include "sched/place.h"

#define TARGET_LANES          64  /* shapes that fragmentation counts, the most popular */
#define TARGET_COVER_PERMILLE 950 /* … as many as make up this part of the requests */
#define WASTE_LANES           32  /* sequences that fill a node */
#define WASTE_DRAWS           16  /* shapes in each */

#define LANE_MAX       32767
#define LANE_CPU_UNIT  8u             /* milli-cores: 262 cores at most */
#define LANE_MEM_UNIT  (8ull << 20)   /* of a device: 256 GiB at most */
#define LANE_HOST_UNIT (128ull << 20) /* 4 TiB at most */

#define LANE_WEIGHT_SUM \
    32767 /* popularities of the fragmentation lanes add up to about this */

struct target {
    /* a lane per shape: fragmentation */
    struct {
        int16_t permille[TARGET_LANES], mem[TARGET_LANES], devices[TARGET_LANES];
        int16_t cpu[TARGET_LANES], host[TARGET_LANES], weight[TARGET_LANES];
        int16_t model_ok[POOL_MAX_MODELS][TARGET_LANES]; /* 0 or -1 */
    } frag;
    /* a lane per sequence, draw after draw: waste */
    struct {
        int16_t permille[WASTE_DRAWS][WASTE_LANES], mem[WASTE_DRAWS][WASTE_LANES];
        int16_t devices[WASTE_DRAWS][WASTE_LANES];
        int16_t cpu[WASTE_DRAWS][WASTE_LANES], host[WASTE_DRAWS][WASTE_LANES];
        int16_t model_ok[POOL_MAX_MODELS][WASTE_DRAWS][WASTE_LANES];
    } waste;
    int32_t price_permille
        [POOL_MAX_MODELS]; /* of compute on a model that is wanted in particular */

    /* what the lanes were made of, for label sets that appear later */
    struct pool_ask shape[TARGET_LANES];
    struct pool_ask draw[WASTE_DRAWS][WASTE_LANES];
    /* by kind of node, 0 or -1 */
    int16_t (*kind_frag)[TARGET_LANES];
    int16_t (*kind_waste)[WASTE_DRAWS][WASTE_LANES];
    uint32_t kind_count;
};

/* The shapes as lanes.  -SL_INVALID where none wants a device. */
int target_create(const struct pool *p, const struct place_shape *shapes, uint32_t count,
                  struct target **out, struct sl_err *err);
void target_destroy(struct target *t);

/* Lanes for the label sets that the pool got since.  -SL_INTERNAL: no memory. */
int target_add_kinds(struct target *t, const struct pool *p);

static inline int16_t lane_down(uint64_t amount, uint64_t unit)
{
    uint64_t v = amount / unit;
    return v > LANE_MAX ? LANE_MAX : (int16_t)v;
}
static inline int16_t lane_up(uint64_t amount, uint64_t unit)
{
    uint64_t v = amount / unit + (amount % unit != 0);
    return v > LANE_MAX ? LANE_MAX : (int16_t)v;
}

#endif
