/*
 * Charts as SVG inside a page: lines, stacked areas, and bars.
 *
 * Colours and fonts are the page's (CSS variables --c0 … --c5, --ink, --grid), so that one
 * page is readable on light, on dark and on paper.  Text is escaped.  The caller owns the
 * buffer and looks at buf_failed() at the end.
 */
#ifndef SIM_CHART_H
#define SIM_CHART_H

#include <stddef.h>

#include "base/buf.h"

#define CHART_SERIES 6

struct chart_axis {
    const char *title; /* "waited, hours" */
    double min, max;   /* min < max */
    bool log;          /* then min > 0 */
};

struct chart_key {
    const char *name;
    unsigned colour; /* below CHART_SERIES */
};

struct chart_series {
    struct chart_key key;
    const double *x, *y; /* NAN is a gap */
    size_t count;
    bool faint; /* behind what matters */
};

struct chart {
    const char *title; /* what it shows, as a finding */
    struct chart_axis x, y;
    struct chart_series series[CHART_SERIES];
    unsigned series_count;
};

void chart_lines(struct buf *to, const struct chart *c);

/* Each series on top of those before it; all have the same x, and no gaps. */
void chart_areas(struct buf *to, const struct chart *c);

struct chart_bar {
    const char *name;
    double value[CHART_SERIES];
};

/* Groups of bars, lying, with their values behind; series by name.  A single series is
 * known by the title, and has no legend. */
void chart_bars(struct buf *to, const char *title, const char *unit,
                const struct chart_key *series, unsigned series_count,
                const struct chart_bar *bars, size_t count, unsigned digits);

/* Text with &, <, > and quotes escaped. */
void chart_text(struct buf *to, const char *text);

#endif
