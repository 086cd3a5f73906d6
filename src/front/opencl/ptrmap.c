/* A small locked hash map from pointers to two words. */
#include <stdlib.h>

#include "ptrmap.h"

struct ptrmap_node {
    struct ptrmap_node *next;
    const void *key;
    uint64_t a, b;
};

static struct ptrmap_node **place(struct ptrmap *m, const void *key)
{
    uint64_t x = (uintptr_t)key * 0x9e3779b97f4a7c15ull;
    struct ptrmap_node **p = &m->chain[(x >> 40) % PTRMAP_CHAINS];
    while (*p && (*p)->key != key)
        p = &(*p)->next;
    return p;
}

bool ptrmap_put(struct ptrmap *m, const void *key, uint64_t a, uint64_t b)
{
    pthread_mutex_lock(&m->lock);
    struct ptrmap_node **p = place(m, key);
    if (!*p && (*p = calloc(1, sizeof(**p)))) {
        (*p)->key = key;
        atomic_fetch_add(&m->count, 1);
    }
    bool ok = *p != NULL;
    if (ok) {
        (*p)->a = a;
        (*p)->b = b;
    }
    pthread_mutex_unlock(&m->lock);
    return ok;
}

static bool look(struct ptrmap *m, const void *key, uint64_t *a, uint64_t *b, bool take)
{
    pthread_mutex_lock(&m->lock);
    struct ptrmap_node **p = place(m, key), *found = *p;
    if (found) {
        if (a)
            *a = found->a;
        if (b)
            *b = found->b;
    }
    if (found && take) {
        *p = found->next;
        atomic_fetch_sub(&m->count, 1);
    }
    pthread_mutex_unlock(&m->lock);
    if (found && take)
        free(found);
    return found != NULL;
}

bool ptrmap_find(struct ptrmap *m, const void *key, uint64_t *a, uint64_t *b)
{
    return look(m, key, a, b, false);
}

bool ptrmap_take(struct ptrmap *m, const void *key, uint64_t *a, uint64_t *b)
{
    return look(m, key, a, b, true);
}
