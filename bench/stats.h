/*
 * Numbers of a bench: order statistics with their intervals, and the rows that
 * become bench/out/NAME.json and a line of the table.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts in place. */
double stats_median(double *values, size_t n);

/* The q-quantile (0..1) if at least ten samples lie beyond it, else NaN: then
 * say "max" (stats_max).  Sorts in place. */
double stats_quantile(double *values, size_t n, double q);
double stats_max(const double *values, size_t n);

/* 95 % interval of the median by 2,000 bootstrap resamples, fixed seed. */
void stats_median_interval(const double *values, size_t n, double *low, double *high);

/* A result under one goal. */
struct row {
    const char *name;      /* "share 30/70 async, device time, 10 s windows" */
    const char *unit;      /* "pp", "%", "us" */
    const char *statistic; /* "p95", "max", "median" */
    double value;
    double low, high; /* 95 % interval; NaN where there is none */
    double goal;      /* NaN: reported, no goal */
    size_t samples;
    const char *note; /* or NULL; what else a reader must know */
};

struct report;

/* `name` is the row's name on the command line; starts bench/out/NAME.json. */
struct report *report_open(const char *name, const char *question);
void report_add(struct report *r, const struct row *row);
/*
 * A picture of the rows whose statistic is one of "p95", "max", "median" and whose name contains
 * `only`: one dot a row, the goal as a tick, into bench/out/NAME.svg.
 */
void report_picture(struct report *r, const char *only, const char *axis);

/* Prints the table, writes the JSON with the machine's description.  Returns 0, or 1
 * where a goal was missed. */
int report_close(struct report *r);

#endif
