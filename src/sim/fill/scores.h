/*
 * The published policies, each as a score of a node for a class of pods.  They are
 * written after their descriptions in the FGD paper; where these leave it open, after
 * what gives the published figures (the constants, the truncation to whole numbers).
 */
#ifndef SIM_FILL_SCORES_H
#define SIM_FILL_SCORES_H

#include "sim/fill.h"
#include "sim/random.h"

/* A node as a policy sees it. */
struct fill_seen {
    struct fill_node node;
    uint64_t waste; /* fill_waste() of it */
    uint32_t sorts; /* of pods on it: bit 0 shares, bit n pods of n devices */
};

struct fill_score {
    /* 0 … 100, the highest wins; `c` fits.  NULL: all nodes are equal, one is drawn. */
    int (*of)(const struct fill_target *t, const struct fill_seen *n,
              const struct fill_class *c);
    /* The devices of such a pod on it. */
    void (*devices)(const struct fill_target *t, const struct fill_seen *n,
                    const struct fill_class *c, struct random *r, struct fill_place *out);
    /* Of 1000 parts, how much the growth of power counts against `of`: it is stretched to
     * 0 … 100 over the nodes that fit, the least growth is 100. */
    int pwr_permille;
};

/* The watts that such a pod adds to a node where it fits, on the devices fgd would take. */
int fill_growth_w(const struct fill_target *t, const struct fill_seen *n,
                  const struct fill_class *c);

extern const struct fill_score fill_random, fill_dotprod, fill_clustering, fill_packing,
    fill_bestfit, fill_fgd, fill_pwr, fill_pwr500, fill_pwr200, fill_pwr100, fill_pwr50;

/* The sort of such a pod, as a bit of fill_seen.sorts; 0 for one without devices. */
uint32_t fill_sort(const struct fill_class *c);

#endif
