/*
 * The picture of `top`: devices with bars of their slices, and the leases.
 *
 * Pure: from devices and leases to lines of text.  A byte 1..6 in a line switches
 * to style (byte - 1) of table.h; picture_print() turns that into colours or
 * nothing.
 */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "model/device.h"
#include "model/lease.h"

enum picture_sort { SORT_DEVICE, SORT_SHARE, SORT_MEMORY, SORT_NAME };

struct picture {
    const char *node;    /* "host, agent 0.1.0, broker 0.1.0" */
    const char *clock;   /* right end of the first line */
    const char *trouble; /* NULL, or why what is shown is old */
    const struct device *devices;
    size_t device_count;
    const struct lease *leases;
    size_t lease_count;
    enum picture_sort sort;
    bool utf8;
    int width; /* columns, at least 60 */
};

void picture_draw(const struct picture *p, struct buf *out);
void picture_print(const char *drawn, FILE *out, bool colour);

#endif
