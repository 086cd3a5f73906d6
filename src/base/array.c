/* The growing array. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#include "core/err.h"

#define LEAST_ROOM 16u

int array_reserve(void *array, uint32_t *room, uint32_t need, size_t item_size)
{
    void *items;
    if (need <= *room)
        return 0;
    uint32_t more = *room > UINT32_MAX / 2 ? UINT32_MAX : 2 * *room;
    more = more < need ? need : more;
    more = more < LEAST_ROOM ? LEAST_ROOM : more;
    memcpy(&items, array, sizeof items);
    items = reallocarray(items, more, item_size);
    if (!items)
        return -SL_INTERNAL;
    memcpy(array, &items, sizeof items);
    *room = more;
    return 0;
}
