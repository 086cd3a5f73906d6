/*
 * The worth of a node's idle part: the inner loops of placement, one vector of
 * shapes at a time.  Compiled once per instruction set; WORTH_TABLE names the table
 * that this compilation makes.
 */
#include "worth.h"

#include <string.h>

/* 16 lanes.  Comparisons give 0 or -1 in each. */
typedef int16_t vec __attribute__((vector_size(32)));
typedef int32_t vec_sum __attribute__((vector_size(32)));
#define VEC_LANES 16

static inline vec load(const int16_t *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(int16_t *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

static inline vec all(int16_t x)
{
    return x - (vec){ 0 };
}

/* sum += a x b, pairs of lanes together. */
static inline vec_sum add_products(vec_sum sum, vec a, vec b)
{
    vec_sum wa, wb;
    memcpy(&wa, &a, sizeof wa);
    memcpy(&wb, &b, sizeof wb);
    /* odd lanes by shifting, even lanes by shifting twice: both sign-extended */
    return sum + (wa >> 16) * (wb >> 16) + ((wa << 16) >> 16) * ((wb << 16) >> 16);
}

static inline int32_t total(vec_sum sum)
{
    int32_t t = 0;
    for (int i = 0; i < 8; i++)
        t += sum[i];
    return t;
}

/* -1 where the lane's shape fits the device. */
static inline vec fits(const struct target *t, uint32_t at, uint32_t model,
                       int16_t permille, int16_t mem)
{
    return (load(t->frag.permille + at) <= permille) & (load(t->frag.mem + at) <= mem) &
           load(t->frag.model_ok[model] + at);
}

/* Idle compute that the lanes' shapes cannot use, times their weight. */
static inline vec_sum weigh(vec_sum sum, const struct target *t, uint32_t at, uint32_t kind,
                            vec fit, vec unfit, int16_t idle, int16_t cpu, int16_t host)
{
    vec can = (fit >= load(t->frag.devices + at)) & (load(t->frag.cpu + at) <= cpu) &
              (load(t->frag.host + at) <= host) & load(t->kind_frag[kind] + at);
    return add_products(sum, load(t->frag.weight + at), (unfit & can) | (all(idle) & ~can));
}

static void frag(const struct target *t, const struct class_state *s,
                 struct worth_frag *out)
{
    int16_t cpu = lane_down(s->cpu_milli, LANE_CPU_UNIT);
    int16_t host = lane_down(s->host_mem_bytes, LANE_HOST_UNIT);
    vec_sum sum = { 0 };
    for (uint32_t at = 0; at < TARGET_LANES; at += VEC_LANES) {
        vec fit = { 0 }, unfit = { 0 };
        for (uint32_t i = 0; i < s->device_count; i++) {
            const struct class_device *d = &s->device[i];
            int16_t permille = (int16_t)d->permille;
            vec ok =
                fits(t, at, d->model, permille, lane_down(d->mem_bytes, LANE_MEM_UNIT));
            fit -= ok;
            unfit += all(permille) & ~ok;
        }
        store(out->fit + at, fit);
        store(out->unfit_permille + at, unfit);
        sum = weigh(sum, t, at, s->kind, fit, unfit, (int16_t)s->idle_permille, cpu, host);
    }
    out->frag = total(sum);
}

static int32_t frag_after(const struct target *t, const struct class_state *s,
                          const struct worth_frag *w, uint32_t index,
                          const struct class_device *after, uint32_t cpu_milli,
                          uint64_t host_mem_bytes)
{
    int16_t cpu = lane_down(cpu_milli, LANE_CPU_UNIT);
    int16_t host = lane_down(host_mem_bytes, LANE_HOST_UNIT);
    int16_t idle = (int16_t)s->idle_permille, was = 0, is = 0, was_mem = 0, is_mem = 0;
    uint32_t model = 0;
    if (index != UINT32_MAX) {
        const struct class_device *before = &s->device[index];
        model = before->model;
        was = (int16_t)before->permille;
        is = (int16_t)after->permille;
        was_mem = lane_down(before->mem_bytes, LANE_MEM_UNIT);
        is_mem = lane_down(after->mem_bytes, LANE_MEM_UNIT);
        idle = (int16_t)(idle - was + is);
    }
    vec_sum sum = { 0 };
    for (uint32_t at = 0; at < TARGET_LANES; at += VEC_LANES) {
        vec fit = load(w->fit + at), unfit = load(w->unfit_permille + at);
        if (index != UINT32_MAX) {
            vec ok_was = fits(t, at, model, was, was_mem);
            vec ok_is = fits(t, at, model, is, is_mem);
            fit += ok_was - ok_is;
            unfit += (all(is) & ~ok_is) - (all(was) & ~ok_was);
        }
        sum = weigh(sum, t, at, s->kind, fit, unfit, idle, cpu, host);
    }
    return total(sum);
}

/* ---- waste ---- */

/* A node in each lane, being filled by that lane's sequence. */
struct filling {
    vec permille[POOL_MAX_DEVICES], mem[POOL_MAX_DEVICES];
    vec cpu, host;
    vec taken;
};

static inline vec select(vec mask, vec yes, vec no)
{
    return (yes & mask) | (no & ~mask);
}

/* One draw: where it fits, one slice goes to the fitting device with least
 * compute free, several to the first devices that fit. */
static inline void fill_draw(const struct target *t, const struct class_state *s,
                             uint32_t draw, uint32_t at, struct filling *f)
{
    vec permille = load(t->waste.permille[draw] + at), mem = load(t->waste.mem[draw] + at);
    vec devices = load(t->waste.devices[draw] + at);
    vec cpu = load(t->waste.cpu[draw] + at), host = load(t->waste.host[draw] + at);
    vec fit[POOL_MAX_DEVICES], count = { 0 }, least = all(LANE_MAX);
    for (uint32_t i = 0; i < s->device_count; i++) {
        fit[i] = (f->permille[i] >= permille) & (f->mem[i] >= mem) &
                 load(t->waste.model_ok[s->device[i].model][draw] + at);
        count -= fit[i];
        least = select(fit[i] & (f->permille[i] < least), f->permille[i], least);
    }
    vec can = (count >= devices) & (f->cpu >= cpu) & (f->host >= host) &
              load(t->kind_waste[s->kind][draw] + at);
    vec open = devices & can; /* devices still to take */
    for (uint32_t i = 0; i < s->device_count; i++) {
        vec here = fit[i] & (open > 0) & ((devices > 1) | (f->permille[i] == least));
        f->permille[i] -= permille & here;
        f->mem[i] -= mem & here;
        f->taken += permille & here;
        open += here;
    }
    f->cpu -= cpu & can;
    f->host -= host & can;
}

static int32_t waste(const struct target *t, const struct class_state *s)
{
    int32_t left = 0;
    for (uint32_t at = 0; at < WASTE_LANES; at += VEC_LANES) {
        struct filling f;
        f.cpu = all(lane_down(s->cpu_milli, LANE_CPU_UNIT));
        f.host = all(lane_down(s->host_mem_bytes, LANE_HOST_UNIT));
        f.taken = all(0);
        for (uint32_t i = 0; i < s->device_count; i++) {
            f.permille[i] = all((int16_t)s->device[i].permille);
            f.mem[i] = all(lane_down(s->device[i].mem_bytes, LANE_MEM_UNIT));
        }
        for (uint32_t d = 0; d < WASTE_DRAWS; d++)
            fill_draw(t, s, d, at, &f);
        left += VEC_LANES * (int32_t)s->idle_permille -
                total(add_products((vec_sum){ 0 }, f.taken, all(1)));
    }
    return left;
}

const struct worth_table WORTH_TABLE = { frag, frag_after, waste };
