/* The runs of `sluice-sim scenario 200-cards`, as its answers take them.  Private. */
#ifndef COMMAND_CARDS_H
#define COMMAND_CARDS_H

#include "sim/closed.h"
#include "sim/command.h"
#include "sim/stats.h"

#define CARDS_SYSTEMS 8
#define CARDS_SEEDS   50

struct cards {
    struct closed_setup setup;
    unsigned system[CARDS_SYSTEMS], systems; /* their numbers, for closed_system_name */
    uint32_t seeds;
    struct closed_result result[CARDS_SYSTEMS][CARDS_SEEDS];
};

/* A figure of a run; a row of cards_figures. */
struct cards_figure {
    const char *key, *title, *unit;
    double (*of)(const struct closed_result *r);
    unsigned digits;
};
extern const struct cards_figure cards_figures[];

/* Systems by --policy; all if `list` is NULL.  `system` has room for CARDS_SYSTEMS. */
int cards_choose(const char *list, unsigned *system, unsigned *count, struct sl_err *err);

/* Over the seeds. */
struct stats cards_stats(const struct cards *c, unsigned system,
                         const struct cards_figure *f);
/* Its difference to the first system, paired by seed. */
struct stats cards_gain(const struct cards *c, unsigned system,
                        const struct cards_figure *f);

/* One self-contained page.  -SL_IO with a message. */
int cards_html(const struct cards *c, const char *path, struct sl_err *err);

#endif
