/* The agenda: a binary heap by time and order. */
#include "sim/agenda.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"

static bool earlier(const struct agenda_item *a, const struct agenda_item *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

int agenda_add(struct agenda *a, struct agenda_item item)
{
    int rc = array_reserve(&a->item, &a->room, a->count + 1, sizeof item);
    if (rc)
        return rc;
    item.order = a->added++;
    uint32_t i = a->count++;
    for (; i && earlier(&item, &a->item[(i - 1) / 2]); i = (i - 1) / 2)
        a->item[i] = a->item[(i - 1) / 2];
    a->item[i] = item;
    return 0;
}

uint64_t agenda_next_ms(const struct agenda *a)
{
    return a->count ? a->item[0].at_ms : UINT64_MAX;
}

struct agenda_item agenda_take(struct agenda *a)
{
    struct agenda_item first = a->item[0], last = a->item[--a->count];
    uint32_t i = 0;
    for (uint32_t k; (k = 2 * i + 1) < a->count; i = k) {
        if (k + 1 < a->count && earlier(&a->item[k + 1], &a->item[k]))
            k++;
        if (earlier(&last, &a->item[k]))
            break;
        a->item[i] = a->item[k];
    }
    a->item[i] = last;
    return first;
}

void agenda_finish(struct agenda *a)
{
    free(a->item);
    *a = (struct agenda){ 0 };
}
