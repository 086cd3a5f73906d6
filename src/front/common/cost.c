/* The table of predicted costs: lookup, fallback and learning. */
#include "front/cost.h"

#include <stdbool.h>
#include <stddef.h>

#include "core/macros.h"

#define PROBES 64u /* then the table counts as full for this key */

/* Salts that keep the three kinds of keys apart. */
enum { KEY_EXACT = 1, KEY_ITEMS = 2, KEY_KERNEL = 3 };

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t key_of(uint64_t kernel, uint64_t what, uint64_t kind)
{
    uint64_t key = cost_mix(cost_mix(kernel, what), kind);
    return key ? key : 1;
}

/* The entry of a key, claimed when `make` and there is room; else NULL.
 * Two threads that claim one key at once both end at the same entry, because
 * both walk the same probes and a claimed entry never changes its key. */
static struct cost_entry *find_key(struct cost_table *t, uint64_t key, bool make,
                                   bool *made)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct cost_entry *e = &t->entry[(key + i) & (COST_ENTRIES - 1)];
        uint64_t have = atomic_load_explicit(&e->key, memory_order_acquire);
        if (have == key)
            return e;
        if (have != 0)
            continue;
        if (!make ||
            atomic_load_explicit(&t->used, memory_order_relaxed) >= COST_ENTRIES / 4 * 3)
            return NULL;
        if (atomic_compare_exchange_strong(&e->key, &have, key)) {
            atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
            *made = true;
            return e;
        }
        if (have == key)
            return e;
    }
    return NULL;
}

struct cost_entry *cost_find(struct cost_table *t, uint64_t kernel, uint64_t shape,
                             uint64_t items)
{
    bool made = false;
    struct cost_entry *e = find_key(t, key_of(kernel, shape, KEY_EXACT), true, &made);
    if (e && !made)
        return e;

    bool unused;
    struct cost_entry *top = find_key(t, key_of(kernel, 0, KEY_KERNEL), true, &unused);
    if (!e)
        return top;
    atomic_store_explicit(&e->by_kernel, top, memory_order_relaxed);
    atomic_store_explicit(&e->by_items,
                          find_key(t, key_of(kernel, items, KEY_ITEMS), true, &unused),
                          memory_order_relaxed);
    return e;
}

uint64_t cost_predict(const struct cost_entry *e)
{
    if (!e)
        return 0;
    uint64_t ns = load(&e->ns);
    const struct cost_entry *items =
        atomic_load_explicit(&e->by_items, memory_order_relaxed);
    if (!ns && items)
        ns = load(&items->ns);
    const struct cost_entry *top =
        atomic_load_explicit(&e->by_kernel, memory_order_relaxed);
    if (!ns && top)
        ns = load(&top->ns);
    return ns;
}

/* A first sample may carry a compilation (PoCL: 50 ms for a new local size),
 * so a smaller second one replaces it.  Then steps of a quarter, alike in both
 * directions because a late callback makes one sample longer and the next one
 * shorter; never to more than double: a driver thread that was preempted once
 * is no reason to expect it again. */
static void learn_one(struct cost_entry *e, uint64_t ns)
{
    uint64_t old = load(&e->ns);
    uint32_t samples = atomic_load_explicit(&e->samples, memory_order_relaxed);
    if (old && ns > old)
        ns = old + min_u64((ns - old + 3) / 4, old);
    else if (old && samples > 1)
        ns = old - (old - ns) / 4;
    atomic_store_explicit(&e->ns, min_u64(max_u64(ns, COST_MIN_NS), COST_MAX_NS),
                          memory_order_relaxed);
    if (samples < 2)
        atomic_store_explicit(&e->samples, samples + 1, memory_order_relaxed);
}

/* The kernel's maximum forgets slowly, or one compilation would stay for ever. */
static void learn_top(struct cost_entry *e, uint64_t ns)
{
    uint64_t old = load(&e->ns);
    atomic_store_explicit(&e->ns, ns >= old ? ns : old - (old - ns) / 16,
                          memory_order_relaxed);
}

void cost_learn(struct cost_entry *e, uint64_t ns)
{
    if (!e)
        return;
    learn_one(e, ns);
    bool compiled = atomic_load_explicit(&e->samples, memory_order_relaxed) < 2;
    struct cost_entry *items = atomic_load_explicit(&e->by_items, memory_order_relaxed);
    struct cost_entry *top = atomic_load_explicit(&e->by_kernel, memory_order_relaxed);
    if (items && !(compiled && load(&items->ns)))
        learn_one(items, load(&e->ns));
    if (top && !(compiled && load(&top->ns)))
        learn_top(top, load(&e->ns));
}

void cost_scale(struct cost_entry *e, uint64_t num, uint64_t den)
{
    uint64_t old = e ? load(&e->ns) : 0;
    if (!old || !den)
        return;
    num = min_u64(max_u64(num, den / 8), den * 8);
    cost_learn(e, (uint64_t)((unsigned __int128)old * num / den));
}

void cost_doubt(struct cost_entry *e)
{
    if (!e || atomic_fetch_add_explicit(&e->doubts, 1, memory_order_relaxed) % 16 != 0)
        return;
    atomic_store_explicit(&e->ns, 0, memory_order_relaxed);
    atomic_store_explicit(&e->samples, 0, memory_order_relaxed);
}
