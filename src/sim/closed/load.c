/* What is asked in the closed loop: the departments, and how jobs are drawn. */
#include <math.h>

#include "closed_impl.h"
#include "core/macros.h"

#define GIB ((double)(1 << 30))

/* 25 nodes of 8; demand after the occupancy of virtual clusters in Helios' Earth. */
const struct part closed_parts[CLOSED_PARTS] = {
    { "V100 a", V100, 4, 90 },     { "V100 b", V100, 3, 67 },
    { "V100 c", V100, 2, 50 },     { "V100 d", V100, 1, 72 },
    { "A100 a", A100, 3, 91 },     { "A100 b", A100, 2, 73 },
    { "A100 c", A100, 3, 63 },     { "Ascend a", ASCEND, 3, 45 },
    { "Ascend b", ASCEND, 2, 87 }, { "Ascend c", ASCEND, 2, 41 },
};

uint64_t type_mem_bytes(enum card_type type)
{
    return (type == A100 ? 80ull : 32ull) << 30;
}

/* ---- distributions ---- */

static double uniform(struct random *r)
{
    return ((double)(random_next(r) >> 11) + 0.5) / 9007199254740992.0; /* 2^53 */
}

static double exponential(struct random *r)
{
    return -log(uniform(r));
}

/* Box and Muller; the second value is thrown away. */
static double normal(struct random *r)
{
    double radius = sqrt(-2 * log(uniform(r)));
    return radius * cos(2 * M_PI * uniform(r));
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. */
static double gamma_of(struct random *r, double shape)
{
    if (shape < 1) {
        double whole = gamma_of(r, shape + 1);
        return whole * pow(uniform(r), 1 / shape);
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(r), v = 1 + c * x, u = uniform(r);
        v = v * v * v;
        if (v > 0 && log(u) < x * x / 2 + d - d * v + d * log(v))
            return d * v;
    }
}

static double beta(struct random *r, double mean, double strength)
{
    double a = gamma_of(r, mean * strength), b = gamma_of(r, (1 - mean) * strength);
    return a / (a + b);
}

/* ---- jobs ---- */

/* Of the jobs on 2, 4 and 8 cards; the rest is on one. */
static uint32_t draw_cards(const struct closed *c, struct random *r)
{
    double u = uniform(r), heavy = c->setup.heavy_permille / 1000.0;
    if ((u -= 0.04 * heavy) < 0)
        return 8;
    if ((u -= 0.11 * heavy) < 0)
        return 4;
    return u < 0.12 * heavy ? 2 : 1;
}

static double mean_util(uint32_t cards)
{
    return cards == 8 ? 0.66 : cards == 4 ? 0.55 : cards == 2 ? 0.60 : 0.62;
}

static uint32_t draw_types(struct random *r, enum card_type type)
{
    double u = uniform(r);
    uint32_t any = 1u << V100 | 1u << A100 | 1u << ASCEND;
    if (type == ASCEND)
        return u < 0.5 ? 1u << ASCEND : any;
    return u < 0.8 ? 1u << V100 | 1u << A100 : any;
}

/* What a user would ask for who knows the job's utilisation: a little more, in steps of 5 %. */
static uint32_t share_of(double util)
{
    uint32_t permille = 50 * (uint32_t)ceil((util * 1.15 + 0.02) * 20);
    return permille < 100 ? 100 : (uint32_t)min_u64(permille, 1000);
}

void draw_job(const struct closed *c, struct job *j)
{
    struct random *r = &j->random;
    j->think_ms = (uint64_t)(exponential(r) * c->setup.think_s * 1000);
    double run_s = 1200 * exp(2 * normal(r));
    j->run_ms = (uint64_t)(fmin(fmax(run_s, 30), 48 * 3600) * 1000);
    j->cards = draw_cards(c, r);
    bool light = j->cards == 1 && uniform(r) < 0.2;
    double util = light ? beta(r, 0.12, 3) : beta(r, mean_util(j->cards), 4);
    j->util_permille = (uint32_t)lround(fmax(util, 0.001) * 1000);
    j->share_permille = share_of(util);
    double low = light ? 4 : 6, high = light ? 12 : uniform(r) < 0.75 ? 16 : 26;
    j->mem_bytes = (uint64_t)((low + (high - low) * uniform(r)) * GIB);
    j->types = draw_types(r, closed_parts[j->part].type);
}
