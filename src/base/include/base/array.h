/*
 * An array that grows.  The caller keeps the pointer, the room and the count.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Room for at least `need` items of `item_size` bytes in the array that *(T **)array
 * points to (NULL with *room 0 to begin with); doubled where it grows.  -SL_INTERNAL
 * without memory: the array is as it was. */
int array_reserve(void *array, uint32_t *room, uint32_t need, size_t item_size);

#endif
