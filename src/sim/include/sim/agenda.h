/*
 * What happens when, in virtual time: a heap, the earliest first, and of equal times what
 * was put down first.
 *
 * An item is the caller's; `epoch` lets it tell one that came too late to matter.  Start
 * from `struct agenda a = { 0 }`; one owner.
 */
#ifndef SIM_AGENDA_H
#define SIM_AGENDA_H

#include <stdint.h>

struct agenda_item {
    uint64_t at_ms;
    uint64_t order; /* given out by agenda_add */
    int kind;
    uint32_t id, epoch;
    const void *of; /* borrowed */
};

struct agenda {
    struct agenda_item *item;
    uint32_t count, room;
    uint64_t added;
};

/* -SL_INTERNAL: no memory, and nothing was added. */
int agenda_add(struct agenda *a, struct agenda_item item);
/* The time of the first; UINT64_MAX: there is none. */
uint64_t agenda_next_ms(const struct agenda *a);
/* The first, out of it; there is one. */
struct agenda_item agenda_take(struct agenda *a);
void agenda_finish(struct agenda *a);

#endif
