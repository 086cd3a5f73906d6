/*
 * What a command will take: predicted device nanoseconds by kernel and shape.
 *
 * A fixed table, filled by cost_find() and corrected by the gate from sensed
 * completions only.  A prediction comes from the exact entry (kernel, shape),
 * else from the kernel at the same number of work items, else from the
 * kernel's maximum, else it is unknown (0).
 *
 * Entries are never moved or dropped, so a front keeps the pointer with the
 * kernel object and looks up again only when the shape changes.  Any thread;
 * lookups take no lock and do not allocate.  A kernel object freed and its
 * pointer used again only means a wrong first guess.
 */
#ifndef FRONT_COST_H
#define FRONT_COST_H

#include <stdatomic.h>
#include <stdint.h>

#define COST_ENTRIES 4096u /* a power of two; 3/4 of it is used at most */
#define COST_MIN_NS  128u  /* no command counts for less */
#define COST_MAX_NS  (3600ull * 1000000000ull)

struct cost_entry {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t ns;  /* learned; 0: never seen complete */
    _Atomic uint32_t samples;
    _Atomic uint32_t doubts;
    _Atomic(struct cost_entry *) by_items;  /* same kernel and work items; may be NULL */
    _Atomic(struct cost_entry *) by_kernel; /* the kernel's maximum; may be NULL */
};

/* Zeroed memory is an empty table (static storage is fine). */
struct cost_table {
    _Alignas(64) struct cost_entry entry[COST_ENTRIES];
    _Atomic uint32_t used;
};

/* Mix two words into a key; for shapes: fold the sizes with it. */
static inline uint64_t cost_mix(uint64_t a, uint64_t b)
{
    a *= 0x9e3779b97f4a7c15ull;
    uint64_t x = ((a ^ (a >> 32)) + b) * 0xff51afd7ed558ccdull;
    return x ^ (x >> 32);
}

/*
 * The entry of (kernel, shape); made when new.  `kernel` identifies the kernel
 * (or the kind of copy), `shape` everything of its size that matters (global
 * and local size; bytes of a copy rounded to a power of two), `items` the
 * number of work items (or bytes).  A full table gives the kernel's maximum
 * entry, or NULL: the gate takes NULL as unknown.
 * About 5 ns for an entry that exists, 100 ns for a new one.
 */
struct cost_entry *cost_find(struct cost_table *t, uint64_t kernel, uint64_t shape,
                             uint64_t items);

/* Predicted nanoseconds, 0 when unknown.  NULL is unknown. */
uint64_t cost_predict(const struct cost_entry *e);

/* A command of this entry was seen to take `ns` (the gate calls it). */
void cost_learn(struct cost_entry *e, uint64_t ns);

/* The whole took `num / den` of what was predicted (the gate calls it for a
 * batch of several kernels: the time is divided by the predicted parts). */
void cost_scale(struct cost_entry *e, uint64_t num, uint64_t den);

/* The prediction looks wrong though nothing was sensed: have the next one
 * sensed, at most once in 16 calls. */
void cost_doubt(struct cost_entry *e);

#endif
