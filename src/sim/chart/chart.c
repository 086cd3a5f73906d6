/* Charts as SVG: scales, axes, lines, stacked areas, bars. */
#include "sim/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH  540.0
#define HEIGHT 270.0
#define LEFT   52.0
#define RIGHT  20.0
#define TOP    10.0
#define BOTTOM 44.0

void chart_text(struct buf *to, const char *text)
{
    for (; *text; text++) {
        const char *as = *text == '&'   ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                         : *text == '"' ? "&quot;"
                                        : NULL;
        if (as)
            buf_add(to, as);
        else
            buf_add_bytes(to, text, 1);
    }
}

/* ---- scales ---- */

static double part_of(const struct chart_axis *a, double value)
{
    if (a->log)
        return (log(fmax(value, a->min)) - log(a->min)) / (log(a->max) - log(a->min));
    return (value - a->min) / (a->max - a->min);
}

static double at_x(const struct chart *c, double x)
{
    return LEFT + fmin(fmax(part_of(&c->x, x), 0), 1) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct chart *c, double y)
{
    return HEIGHT - BOTTOM - fmin(fmax(part_of(&c->y, y), 0), 1) * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, so that there are some five steps. */
static double step_of(const struct chart_axis *a)
{
    double rough = (a->max - a->min) / 5, power = pow(10, floor(log10(rough)));
    double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

static double first_tick(const struct chart_axis *a)
{
    return a->log ? pow(10, ceil(log10(a->min) - 1e-9))
                  : ceil(a->min / step_of(a) - 1e-9) * step_of(a);
}

static double next_tick(const struct chart_axis *a, double tick)
{
    return a->log ? tick * 10 : tick + step_of(a);
}

static bool is_tick(const struct chart_axis *a, double tick)
{
    return tick <= a->max * (1 + 1e-9);
}

/* A zero is a zero. */
static double no_minus(double tick)
{
    return fabs(tick) < 1e-9 ? 0 : tick;
}

/* ---- axes ---- */

static void add_x_axis(struct buf *to, const struct chart *c)
{
    double floor_y = HEIGHT - BOTTOM;
    for (double t = first_tick(&c->x); is_tick(&c->x, t); t = next_tick(&c->x, t)) {
        double x = at_x(c, t);
        buf_addf(to,
                 "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
                 x, TOP, x, floor_y);
        buf_addf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>", x,
                 floor_y + 16, no_minus(t));
    }
    buf_addf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
             (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
    chart_text(to, c->x.title);
    buf_add(to, "</text>");
}

static void add_y_axis(struct buf *to, const struct chart *c)
{
    for (double t = first_tick(&c->y); is_tick(&c->y, t); t = next_tick(&c->y, t)) {
        double y = at_y(c, t);
        buf_addf(to,
                 "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
                 LEFT, y, WIDTH - RIGHT, y);
        buf_addf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>", LEFT - 6,
                 y + 4, no_minus(t));
    }
    buf_addf(to,
             "<text transform=\"translate(13 %.1f) rotate(-90)\" text-anchor=\"middle\">",
             (TOP + HEIGHT - BOTTOM) / 2);
    chart_text(to, c->y.title);
    buf_add(to, "</text>");
}

static void add_legend(struct buf *to, const struct chart_key *keys, unsigned count)
{
    if (count < 2)
        return;
    buf_add(to, "<ul class=\"legend\">");
    for (unsigned i = 0; i < count; i++) {
        buf_addf(to, "<li><span class=\"key k%u\"></span>", keys[i].colour);
        chart_text(to, keys[i].name);
        buf_add(to, "</li>");
    }
    buf_add(to, "</ul>\n");
}

static void begin_figure(struct buf *to, const char *title, const struct chart_key *keys,
                         unsigned count, double height)
{
    buf_add(to, "<figure><figcaption>");
    chart_text(to, title);
    buf_add(to, "</figcaption>\n");
    add_legend(to, keys, count);
    buf_addf(to, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH,
             height);
    chart_text(to, title);
    buf_add(to, "\">\n");
}

/* ---- lines ---- */

static void add_series(struct buf *to, const struct chart *c, unsigned i)
{
    const struct chart_series *s = &c->series[i];
    bool open = false;
    for (size_t k = 0; k < s->count; k++) {
        if (isnan(s->x[k]) || isnan(s->y[k])) {
            if (open)
                buf_add(to, "\"/>\n");
            open = false;
            continue;
        }
        if (!open)
            buf_addf(to, "<polyline class=\"s%u%s\" points=\"", s->key.colour,
                     s->faint ? " faint" : "");
        buf_addf(to, "%.1f,%.1f ", at_x(c, s->x[k]), at_y(c, s->y[k]));
        open = true;
    }
    if (open)
        buf_add(to, "\"/>\n");
}

static void begin_chart(struct buf *to, const struct chart *c)
{
    struct chart_key keys[CHART_SERIES];
    for (unsigned i = 0; i < c->series_count; i++)
        keys[i] = c->series[i].key;
    begin_figure(to, c->title, keys, c->series_count, HEIGHT);
}

void chart_lines(struct buf *to, const struct chart *c)
{
    begin_chart(to, c);
    add_x_axis(to, c);
    add_y_axis(to, c);
    for (unsigned i = 0; i < c->series_count; i++)
        add_series(to, c, i);
    buf_add(to, "</svg></figure>\n");
}

/* ---- areas ---- */

/* The sum of the first `count` series. */
static double height_of(const struct chart *c, unsigned count, size_t k)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += c->series[i].y[k];
    return sum;
}

/* Along its upper edge, and back along the one below. */
static void add_area(struct buf *to, const struct chart *c, unsigned i)
{
    const struct chart_series *s = &c->series[i];
    buf_addf(to, "<polygon class=\"b%u\" points=\"", s->key.colour);
    for (size_t k = 0; k < s->count; k++)
        buf_addf(to, "%.1f,%.1f ", at_x(c, s->x[k]), at_y(c, height_of(c, i + 1, k)));
    for (size_t k = s->count; k-- > 0;)
        buf_addf(to, "%.1f,%.1f ", at_x(c, s->x[k]), at_y(c, height_of(c, i, k)));
    buf_add(to, "\"/>\n");
}

void chart_areas(struct buf *to, const struct chart *c)
{
    begin_chart(to, c);
    for (unsigned i = 0; i < c->series_count; i++)
        add_area(to, c, i);
    add_x_axis(to, c);
    add_y_axis(to, c);
    buf_add(to, "</svg></figure>\n");
}

/* ---- bars ---- */

#define BAR      15.0
#define BAR_GAP  10.0
#define BAR_LEFT 96.0
#define BAR_ROOM 72.0 /* behind the longest, for its value */

void chart_bars(struct buf *to, const char *title, const char *unit,
                const struct chart_key *series, unsigned series_count,
                const struct chart_bar *bars, size_t count, unsigned digits)
{
    double group = series_count * BAR + BAR_GAP, most = 0, y = 0;
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < series_count; k++)
            most = fmax(most, isnan(bars[i].value[k]) ? 0 : bars[i].value[k]);
    begin_figure(to, title, series, series_count, (double)count * group);
    for (size_t i = 0; i < count; i++, y += BAR_GAP) {
        buf_addf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", BAR_LEFT - 8,
                 y + (group - BAR_GAP) / 2 + 4);
        chart_text(to, bars[i].name);
        buf_add(to, "</text>");
        for (unsigned k = 0; k < series_count; k++, y += BAR) {
            double value = isnan(bars[i].value[k]) ? 0 : bars[i].value[k];
            double width = most > 0 ? value / most * (WIDTH - BAR_LEFT - BAR_ROOM) : 0;
            buf_addf(
                to,
                "<rect class=\"b%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
                "<text x=\"%.1f\" y=\"%.1f\">%.*f %s</text>\n",
                series[k].colour, BAR_LEFT, y, width, BAR - 2, BAR_LEFT + width + 6, y + 11,
                (int)digits, value, unit);
        }
    }
    buf_add(to, "</svg></figure>\n");
}
