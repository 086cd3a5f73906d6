/* Our own policy as a row of fill_policies; see ours.c.  Private to sim/fill. */
#ifndef SIM_FILL_OURS_H
#define SIM_FILL_OURS_H

#include "sim/fill.h"

void *ours_create(const struct fill_input *in, const uint32_t *tie_order, uint64_t seed);
bool ours_place(void *self, uint32_t c, struct fill_place *out);
/* The same among the nodes that add few watts. */
void *ours_create_power(const struct fill_input *in, const uint32_t *tie_order,
                        uint64_t seed);
bool ours_place_power(void *self, uint32_t c, struct fill_place *out);
void ours_destroy(void *self);

#endif
