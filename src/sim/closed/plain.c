/*
 * Systems to compare with: partitions or one pool, whole cards or shares of them, the first
 * in the queue holds up the rest or is passed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "closed_impl.h"

struct plain {
    bool partitioned, shared, passes;
    /* who waits, oldest first, one queue a department or one for all */
    uint32_t *queue[CLOSED_PARTS];
    uint32_t count[CLOSED_PARTS], room[CLOSED_PARTS];
};

static int create(struct closed *c, bool partitioned, bool shared, bool passes)
{
    struct plain *p = calloc(1, sizeof *p);
    if (!p)
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    *p = (struct plain){ .partitioned = partitioned, .shared = shared, .passes = passes };
    c->state = p;
    return 0;
}

static int create_partitioned(struct closed *c)
{
    return create(c, true, false, false);
}

static int create_strict(struct closed *c)
{
    return create(c, false, false, false);
}

static int create_backfill(struct closed *c)
{
    return create(c, false, false, true);
}

static int create_shared(struct closed *c)
{
    return create(c, false, true, true);
}

static void destroy(struct closed *c)
{
    struct plain *p = c->state;
    for (int i = 0; i < CLOSED_PARTS; i++)
        free(p->queue[i]);
    free(p);
}

static int submit(struct closed *c, uint32_t job)
{
    struct plain *p = c->state;
    uint32_t q = p->partitioned ? c->job[job].part : 0;
    if (array_reserve(&p->queue[q], &p->room[q], p->count[q] + 1, sizeof *p->queue[q]))
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    p->queue[q][p->count[q]++] = job;
    return 0;
}

static int finish(struct closed *c, uint32_t job)
{
    return 0;
}

static uint32_t wanted(const struct plain *p, const struct job *j)
{
    return p->shared ? j->share_permille : 1000;
}

/* The fullest cards of the node that fit; false: fewer than the job wants. */
static bool choose_cards(const struct node *n, const struct job *j, uint32_t permille,
                         uint8_t *card)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < j->cards; i++) {
        uint32_t best = NODE_CARDS;
        for (uint32_t k = 0; k < NODE_CARDS; k++)
            if (!(taken >> k & 1) && n->card[k].lent_permille + permille <= 1000 &&
                n->card[k].mem_bytes + j->mem_bytes <= type_mem_bytes(n->type) &&
                (best == NODE_CARDS ||
                 n->card[k].lent_permille > n->card[best].lent_permille))
                best = k;
        if (best == NODE_CARDS)
            return false;
        taken |= 1u << best;
        card[i] = (uint8_t)best;
    }
    return true;
}

static uint32_t lent_of(const struct node *n)
{
    uint32_t lent = 0;
    for (uint32_t k = 0; k < NODE_CARDS; k++)
        lent += n->card[k].lent_permille;
    return lent;
}

/* The fullest node that fits. */
static uint32_t choose_node(const struct closed *c, const struct job *j, uint8_t *card)
{
    const struct plain *p = c->state;
    uint8_t these[NODE_CARDS];
    uint32_t best = NO_NODE;
    for (uint32_t i = 0; i < c->node_count; i++) {
        const struct node *n = &c->node[i];
        if (p->partitioned ? n->part != j->part : !(j->types >> n->type & 1))
            continue;
        if (best != NO_NODE && lent_of(n) <= lent_of(&c->node[best]))
            continue;
        if (choose_cards(n, j, wanted(p, j), these)) {
            best = i;
            memcpy(card, these, sizeof these);
        }
    }
    return best;
}

static int serve(struct closed *c, uint32_t q)
{
    struct plain *p = c->state;
    uint32_t kept = 0;
    bool held_up = false;
    int rc = 0;
    for (uint32_t i = 0; i < p->count[q]; i++) {
        uint32_t job = p->queue[q][i], node = NO_NODE;
        uint8_t card[NODE_CARDS];
        if (!held_up && !rc)
            node = choose_node(c, &c->job[job], card);
        if (node == NO_NODE) {
            held_up |= !p->passes;
            p->queue[q][kept++] = job;
            continue;
        }
        rc = closed_start(c, job, node, card, wanted(p, &c->job[job]));
    }
    p->count[q] = kept;
    return rc;
}

static int decide(struct closed *c, uint64_t *ask_ms)
{
    int rc = 0;
    *ask_ms = NEVER;
    for (uint32_t q = 0; q < CLOSED_PARTS && !rc; q++)
        rc = serve(c, q);
    return rc;
}

#define PLAIN(name, about, create)                            \
    {                                                         \
        name, about, create, submit, finish, decide, destroy, \
    }

const struct closed_system closed_partitioned = PLAIN(
    "partitioned", "departments, whole cards, first come first served", create_partitioned);
const struct closed_system closed_strict =
    PLAIN("pool-strict", "one pool, whole cards, first come first served", create_strict);
const struct closed_system closed_backfill =
    PLAIN("pool-backfill", "one pool, whole cards, who fits passes", create_backfill);
const struct closed_system closed_shared =
    PLAIN("pool-shared", "one pool, shares of cards, who fits passes", create_shared);
