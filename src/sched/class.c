/* Capacity classes: a hash table of states, a tree of members each, a log of births. */
#include "class.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CLASS_MIN_ROOM 64u

/* The hash is part of the order among equals, so it must be the same in every
 * process: xorshift-multiply over the words of the state. */
uint64_t class_hash(const struct class_state *s)
{
    uint64_t words[sizeof *s / 8], h = 0x9e3779b97f4a7c15ull;
    static_assert(sizeof *s % 8 == 0, "a state is whole words, without padding");
    memcpy(words, s, sizeof *s);
    size_t used =
        (offsetof(struct class_state, device) + s->device_count * sizeof s->device[0]) / 8;
    for (size_t i = 0; i < used; i++) {
        h = (h ^ words[i]) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}

static uint32_t priority_of(uint32_t node)
{
    uint32_t h = (node + 1) * 0x9e3779b1u;
    return (h ^ h >> 15) * 0x85ebca77u;
}

void classes_init(struct classes *c)
{
    *c = (struct classes){ .unused = CLASS_NONE };
}

void classes_finish(struct classes *c)
{
    free(c->class);
    free(c->birth);
    free(c->member);
    free(c->bucket);
    free(c->log);
    classes_init(c);
}

static void chain_all(struct classes *c)
{
    memset(c->bucket, 0xff, ((size_t)c->bucket_mask + 1) * sizeof *c->bucket);
    for (uint32_t i = 0; i < c->room; i++) {
        if (!c->class[i].count)
            continue;
        uint32_t *head = &c->bucket[c->class[i].hash & c->bucket_mask];
        c->class[i].next = *head;
        *head = i;
    }
}

int classes_reserve(struct classes *c, uint32_t nodes)
{
    if (nodes < c->room)
        return 0;
    uint32_t room = c->room ? c->room : CLASS_MIN_ROOM;
    while (room <= nodes)
        room *= 2;
    struct class *class = realloc(c->class, room * sizeof *class);
    if (class)
        c->class = class;
    uint64_t *birth = realloc(c->birth, room * sizeof *birth);
    if (birth)
        c->birth = birth;
    struct class_member *member = realloc(c->member, room * sizeof *member);
    if (member)
        c->member = member;
    uint32_t *bucket = malloc(2 * (size_t)room * sizeof *bucket);
    uint32_t *log = malloc(4 * (size_t)room * sizeof *log);
    if (!class || !birth || !member || !bucket || !log) {
        free(bucket);
        free(log);
        return -SL_INTERNAL;
    }
    for (uint64_t i = c->births > c->log_mask ? c->births - c->log_mask - 1 : 0;
         i < c->births; i++)
        log[i & (4 * room - 1)] = c->log[i & c->log_mask];
    free(c->bucket);
    free(c->log);
    c->bucket = bucket;
    c->bucket_mask = 2 * room - 1;
    c->log = log;
    c->log_mask = 4 * room - 1;
    for (uint32_t i = room; i-- > c->room;) {
        c->class[i] = (struct class){ .next = c->unused };
        c->birth[i] = CLASS_UNBORN;
        c->unused = i;
    }
    c->room = room;
    chain_all(c);
    return 0;
}

/* ---- members ---- */

static uint32_t merge(struct class_member *m, uint32_t a, uint32_t b)
{
    if (a == CLASS_NONE || b == CLASS_NONE)
        return a == CLASS_NONE ? b : a;
    if (priority_of(a) > priority_of(b)) {
        m[a].right = merge(m, m[a].right, b);
        return a;
    }
    m[b].left = merge(m, a, m[b].left);
    return b;
}

/* Those below `node` go to *low, those above to *high. */
static void split(struct class_member *m, uint32_t root, uint32_t node, uint32_t *low,
                  uint32_t *high)
{
    if (root == CLASS_NONE) {
        *low = *high = CLASS_NONE;
    } else if (root < node) {
        *low = root;
        split(m, m[root].right, node, &m[root].right, high);
    } else {
        *high = root;
        split(m, m[root].left, node, low, &m[root].left);
    }
}

static void insert(struct class_member *m, uint32_t *root, uint32_t node)
{
    while (*root != CLASS_NONE && priority_of(*root) >= priority_of(node))
        root = *root < node ? &m[*root].right : &m[*root].left;
    split(m, *root, node, &m[node].left, &m[node].right);
    *root = node;
}

static void drop(struct class_member *m, uint32_t *root, uint32_t node)
{
    while (*root != node) {
        assert(*root != CLASS_NONE);
        root = *root < node ? &m[*root].right : &m[*root].left;
    }
    *root = merge(m, m[node].left, m[node].right);
}

static uint32_t first(const struct class_member *m, uint32_t root,
                      bool (*ok)(void *ctx, uint32_t node), void *ctx)
{
    if (root == CLASS_NONE)
        return CLASS_NONE;
    uint32_t found = first(m, m[root].left, ok, ctx);
    if (found != CLASS_NONE)
        return found;
    return !ok || ok(ctx, root) ? root : first(m, m[root].right, ok, ctx);
}

uint32_t classes_first(const struct classes *c, uint32_t number,
                       bool (*ok)(void *ctx, uint32_t node), void *ctx)
{
    return first(c->member, c->class[number].root, ok, ctx);
}

/* ---- birth and death ---- */

static uint32_t bear(struct classes *c, const struct class_state *s, uint64_t hash)
{
    uint32_t number = c->unused;
    assert(number != CLASS_NONE);
    struct class *k = &c->class[number];
    c->unused = k->next;
    uint32_t *head = &c->bucket[hash & c->bucket_mask];
    *k = (struct class){ .state = *s, .hash = hash, .root = CLASS_NONE, .next = *head };
    *head = number;
    c->birth[number] = c->births;
    c->log[c->births++ & c->log_mask] = number;
    c->live++;
    return number;
}

uint32_t classes_join(struct classes *c, const struct class_state *s, uint32_t node)
{
    uint64_t hash = class_hash(s);
    uint32_t number = c->bucket[hash & c->bucket_mask];
    while (number != CLASS_NONE &&
           (c->class[number].hash != hash || memcmp(&c->class[number].state, s, sizeof *s)))
        number = c->class[number].next;
    if (number == CLASS_NONE)
        number = bear(c, s, hash);
    insert(c->member, &c->class[number].root, node);
    c->class[number].count++;
    return number;
}

void classes_leave(struct classes *c, uint32_t number, uint32_t node)
{
    struct class *k = &c->class[number];
    drop(c->member, &k->root, node);
    if (--k->count)
        return;
    uint32_t *link = &c->bucket[k->hash & c->bucket_mask];
    while (*link != number)
        link = &c->class[*link].next;
    *link = k->next;
    c->birth[number] = CLASS_UNBORN;
    k->next = c->unused;
    c->unused = number;
    c->live--;
}
