/*
 * A map from handles of the driver to a word of ours: a mutex and chains.
 *
 * For what is off the hot path (shared memory, unset events, command buffers).
 * Zeroed memory is an empty map.  Any thread.
 */
#ifndef OPENCL_PTRMAP_H
#define OPENCL_PTRMAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PTRMAP_CHAINS 1024u

struct ptrmap_node;

struct ptrmap {
    pthread_mutex_t lock;
    _Atomic uint32_t count; /* read without the lock: "is there any?" */
    struct ptrmap_node *chain[PTRMAP_CHAINS];
};

#define PTRMAP_INIT                       \
    {                                     \
        .lock = PTHREAD_MUTEX_INITIALIZER \
    }

/* False without memory.  A key that is there already is replaced. */
bool ptrmap_put(struct ptrmap *m, const void *key, uint64_t a, uint64_t b);
bool ptrmap_find(struct ptrmap *m, const void *key, uint64_t *a, uint64_t *b);
/* Finds and removes. */
bool ptrmap_take(struct ptrmap *m, const void *key, uint64_t *a, uint64_t *b);

#endif
