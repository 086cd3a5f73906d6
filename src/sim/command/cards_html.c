/* The page of `sluice-sim scenario 200-cards --html`: figures, charts, assumptions. */
#include "cards.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sim/chart.h"

#define MINUTE 60.0

static const char style[] =
    ":root{--bg:#fff;--ink:#1b1f24;--soft:#57606a;--grid:#d8dee4;--c0:#b35900;--c1:#8c8c8c;"
    "--c2:#6f42c1;--c3:#1b7f79;--c4:#2f6fdd;--c5:#0a8f3c}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14181d;--ink:#e6e9ec;--soft:#9aa4af;"
    "--grid:#2d343c;--c0:#ff9d4d;--c1:#9aa4af;--c2:#b794f6;--c3:#4fd1c5;--c4:#79aef9;"
    "--c5:#56d37f}}\n"
    "body{background:var(--bg);color:var(--ink);font:16px/1.5 "
    "system-ui,sans-serif;margin:0}\n"
    "main{max-width:1080px;margin:auto;padding:24px 20px 60px}\n"
    "h1{font-size:1.7rem;line-height:1.25;margin:.2em 0 "
    ".3em}h2{margin-top:2em;font-size:1.2rem}\n"
    "p,li{max-width:75ch}.soft{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px;"
    "margin:22px 0}\n"
    ".tile{border:1px solid var(--grid);border-radius:8px;padding:12px 16px}\n"
    ".tile b{display:block;font-size:1.5rem}.tile "
    "s{color:var(--soft);text-decoration:none}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-"
    "nums;width:100%;font-size:.85rem}\n"
    "th,td{padding:5px 7px;text-align:right;border-bottom:1px solid var(--grid);"
    "vertical-align:bottom}\n"
    "td{white-space:nowrap}tr:last-child td{font-weight:600}\n"
    "th:first-child,td:first-child{text-align:left;padding-left:0}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr)"
    ");"
    "gap:26px}\n"
    "figure{margin:0}figcaption{font-weight:600;margin-bottom:4px}\n"
    "svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:12px}\n"
    ".grid{stroke:var(--grid);stroke-width:1}polyline{fill:none;stroke-width:2.2}"
    ".faint{stroke-width:1;opacity:.55}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:0 0 "
    "6px;padding:0;"
    "font-size:.85rem;color:var(--soft)}\n"
    ".key{display:inline-block;width:14px;height:10px;margin-right:6px;border-radius:2px}\n"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}"
    ".s4{stroke:var(--c4)}.s5{stroke:var(--c5)}\n"
    ".b0,.k0{fill:var(--c0);background:var(--c0)}.b1,.k1{fill:var(--c1);background:var(--"
    "c1)}"
    ".b2,.k2{fill:var(--c2);background:var(--c2)}.b3,.k3{fill:var(--c3);background:var(--"
    "c3)}"
    ".b4,.k4{fill:var(--c4);background:var(--c4)}.b5,.k5{fill:var(--c5);background:var(--"
    "c5)}\n"
    "code{font-size:.9em;overflow-wrap:anywhere}\n"
    "@media "
    "print{:root{--bg:#fff;--ink:#000;--soft:#333;--grid:#ccc}*{print-color-adjust:exact}"
    "body{font-size:11px}table{font-size:8px}th,td{padding:3px 4px}"
    ".charts{grid-template-columns:1fr "
    "1fr!important}figure,.tile,tr{break-inside:avoid}h2{break-after:avoid}}\n";

static const struct cards_figure *figure(const char *key)
{
    const struct cards_figure *f = cards_figures;
    while (f->key && strcmp(f->key, key))
        f++;
    return f;
}

static double mean(const struct cards *c, unsigned system, const char *key)
{
    return cards_stats(c, system, figure(key)).mean;
}

/* "4.3 h", "7 min" */
static void add_hours(struct buf *to, double hours)
{
    if (hours < 1.5)
        buf_addf(to, "%.*f min", hours * MINUTE < 9.95, hours * MINUTE);
    else
        buf_addf(to, "%.1f h", hours);
}

static void add_value(struct buf *to, double value, const char *unit, int digits)
{
    if (unit)
        buf_addf(to, "%.*f%s", digits, value, unit);
    else
        add_hours(to, value);
}

/* ---- the head ---- */

static void add_tile(struct buf *to, const char *name, const char *before,
                     const char *after)
{
    buf_addf(to, "<div class=\"tile\"><b>%s</b>%s<br/><s>before: %s</s></div>\n", after,
             name, before);
}

/* How sure the difference is: the seeds are paired, the sessions are the same. */
static void add_gain(struct buf *to, const struct cards *c, unsigned system)
{
    struct stats work = cards_gain(c, system, figure("effective_pct"));
    struct stats wait = cards_gain(c, system, figure("wait_mean_h"));
    buf_addf(to,
             "<p>On the same sessions that is %.1f points more work (95 %% interval %.1f to"
             " %.1f) and %.1f h less waiting (%.1f to %.1f).</p>\n",
             work.mean, work.low, work.high, -wait.mean, -wait.high, -wait.low);
}

static void add_tiles(struct buf *to, const struct cards *c)
{
    static const struct {
        const char *name, *key, *unit; /* no unit: hours */
        int digits;
    } tiles[] = {
        { "of what the cards could do is done", "effective_pct", " %", 1 },
        { "mean wait", "wait_mean_h", NULL, 0 },
        { "is what 99 in 100 waited at most", "wait_p99_h", NULL, 0 },
        { "jobs finished", "finished", "", 0 },
    };
    unsigned last = c->systems - 1;
    buf_add(to, "<div class=\"tiles\">\n");
    for (size_t i = 0; i < ARRAY_LEN(tiles); i++) {
        AUTO_BUF struct buf before = { 0 }, after = { 0 };
        double a = mean(c, 0, tiles[i].key), b = mean(c, last, tiles[i].key);
        add_value(&before, a, tiles[i].unit, tiles[i].digits);
        add_value(&after, b, tiles[i].unit, tiles[i].digits);
        to->failed |= buf_failed(&before) || buf_failed(&after);
        if (!to->failed)
            add_tile(to, tiles[i].name, before.text, after.text);
    }
    buf_add(to, "</div>\n");
    if (c->seeds > 1 && last)
        add_gain(to, c, last);
}

static void add_head(struct buf *to, const struct cards *c)
{
    unsigned last = c->systems - 1;
    buf_add(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n"
                "<title>200 mixed cards</title>\n<style>\n");
    buf_add(to, style);
    buf_add(to,
            "</style></head><body><main>\n<p class=\"soft\">Sluice simulator</p>\n<h1>");
    buf_addf(
        to, "%u mixed cards: from %.0f to %.0f %% of the work they could do, and from ",
        c->result[0][0].cards, mean(c, 0, "effective_pct"), mean(c, last, "effective_pct"));
    add_hours(to, mean(c, 0, "wait_mean_h"));
    buf_add(to, " to ");
    add_hours(to, mean(c, last, "wait_mean_h"));
    buf_add(to, " of waiting</h1>\n<p>Before: ");
    chart_text(to, closed_system_about(c->system[0]));
    buf_add(to, ". After: ");
    chart_text(to, closed_system_about(c->system[last]));
    buf_addf(
        to,
        ". Simulated: the same %u sessions think, ask, wait and run under each system for"
        " %u days; means over %u seeds. The replica is <em>fitted</em>: sessions and think"
        " time were chosen so that the first system shows what such places report.</p>\n",
        c->result[0][0].sessions, c->setup.days, c->seeds);
}

/* ---- the table ---- */

static void add_table(struct buf *to, const struct cards *c)
{
    buf_add(to, "<h2>All systems</h2><div class=\"wide\"><table><tr><th>system</th>");
    for (const struct cards_figure *f = cards_figures; f->key; f++)
        buf_addf(to, "<th>%s%s%s</th>", f->title, f->unit[0] ? ", " : "", f->unit);
    buf_add(to, "</tr>\n");
    for (unsigned i = 0; i < c->systems; i++) {
        buf_addf(to, "<tr><td>%s</td>", closed_system_name(c->system[i]));
        for (const struct cards_figure *f = cards_figures; f->key; f++) {
            struct stats s = cards_stats(c, i, f);
            if (isnan(s.mean))
                buf_add(to, "<td>\u2013</td>");
            else if (isnan(s.low))
                buf_addf(to, "<td>%.*f</td>", (int)f->digits, s.mean);
            else
                buf_addf(to, "<td title=\"95 %% interval %.*f to %.*f\">%.*f</td>",
                         (int)f->digits, s.low, (int)f->digits, s.high, (int)f->digits,
                         s.mean);
        }
        buf_add(to, "</tr>\n");
    }
    buf_add(
        to,
        "</table></div>\n<p class=\"soft\">Effective: native device-seconds of finished"
        " work in the cards' time. Allocated: what was lent for sure. Occupied: cards that"
        " anybody held. Starved: waited more than 24 h, or than 20 times its run."
        " Little: how far throughput times (think, wait and run) is from the sessions."
        " Point at a value for its 95 % interval.</p>\n<ul class=\"soft\">");
    for (unsigned i = 0; i < c->systems; i++) {
        buf_addf(to, "<li><b>%s</b>: ", closed_system_name(c->system[i]));
        chart_text(to, closed_system_about(c->system[i]));
        buf_add(to, "</li>\n");
    }
    buf_add(to, "</ul>\n");
}

/* ---- charts ---- */

static struct chart_key key_of(const struct cards *c, unsigned system)
{
    return (struct chart_key){ closed_system_name(c->system[system]), c->system[system] };
}

/* Before and after are what matters. */
static bool is_between(const struct cards *c, unsigned system)
{
    return system && system + 1 < c->systems;
}

struct points {
    double *x, *y; /* of all series, one after the other */
};

static bool points_create(struct points *p, size_t count)
{
    p->x = calloc(count, sizeof *p->x);
    p->y = calloc(count, sizeof *p->y);
    return p->x && p->y;
}

static void points_finish(struct points *p)
{
    free(p->x);
    free(p->y);
}

/* The part that waited a minute at most. */
static double at_once_pct(const struct closed_result *r)
{
    unsigned k = 0;
    while (k < CLOSED_CDF && r->wait_cdf_s[k] <= MINUTE)
        k++;
    return 100.0 * k / CLOSED_CDF;
}

static void add_cdf(struct buf *to, const struct cards *c, struct points *p)
{
    char title[96];
    snprintf(title, sizeof title, "%.0f %% wait a minute at most; before, %.0f %%",
             at_once_pct(&c->result[c->systems - 1][0]), at_once_pct(&c->result[0][0]));
    struct chart chart = { .title = title,
                           .x = { "waited at most, minutes", 0.1, 10000, true },
                           .y = { "jobs, %", 0, 100, false },
                           .series_count = c->systems };
    for (unsigned i = 0; i < c->systems; i++) {
        double *x = p->x + (size_t)i * CLOSED_CDF, *y = p->y + (size_t)i * CLOSED_CDF;
        for (size_t k = 0; k < CLOSED_CDF; k++) {
            x[k] = fmax(c->result[i][0].wait_cdf_s[k] / MINUTE, 0.1);
            y[k] = 100.0 * (double)(k + 1) / CLOSED_CDF;
        }
        chart.series[i] =
            (struct chart_series){ key_of(c, i), x, y, CLOSED_CDF, is_between(c, i) };
    }
    chart_lines(to, &chart);
}

#define FIELD(name)                                   \
    static double name(const struct closed_sample *s) \
    {                                                 \
        return s->name##_pct;                         \
    }
FIELD(allocated)
FIELD(working)
FIELD(occupied)
FIELD(unusable)

static double mean_sample(const struct closed_result *r,
                          double (*of)(const struct closed_sample *))
{
    double sum = 0;
    for (uint32_t i = 0; i < r->sample_count; i++)
        sum += of(&r->sample[i]);
    return sum / r->sample_count;
}

/* Means of six hours, so that days can be told apart from noise. */
#define SMOOTH 6u

/* The k-th. */
static double smooth(const struct closed_result *r, uint32_t k,
                     double (*of)(const struct closed_sample *))
{
    double sum = 0;
    for (uint32_t h = 0; h < SMOOTH; h++)
        sum += of(&r->sample[k * SMOOTH + h]);
    return sum / SMOOTH;
}

static void add_over_time(struct buf *to, const struct cards *c, struct points *p,
                          const char *title, const char *axis,
                          double (*of)(const struct closed_sample *))
{
    uint32_t count = c->result[0][0].sample_count / SMOOTH;
    char finding[96];
    snprintf(finding, sizeof finding, "%s: %.0f %%; before, %.0f %%", title,
             mean_sample(&c->result[c->systems - 1][0], of),
             mean_sample(&c->result[0][0], of));
    struct chart chart = { .title = finding,
                           .x = { "day", 0, c->setup.days, false },
                           .y = { axis, 0, 100, false },
                           .series_count = c->systems };
    for (unsigned i = 0; i < c->systems; i++) {
        double *x = p->x + (size_t)i * count, *y = p->y + (size_t)i * count;
        for (uint32_t k = 0; k < count; k++) {
            x[k] = (k + 0.5) * SMOOTH / 24.0;
            y[k] = smooth(&c->result[i][0], k, of);
        }
        chart.series[i] =
            (struct chart_series){ key_of(c, i), x, y, count, is_between(c, i) };
    }
    chart_lines(to, &chart);
}

/* Where a system's card time goes: work, held by somebody but idle, held by nobody. */
static void add_card_time(struct buf *to, const struct cards *c, unsigned system,
                          const char *when, struct points *p)
{
    const struct closed_result *r = &c->result[system][0];
    uint32_t count = r->sample_count / SMOOTH;
    double work = mean_sample(r, working), held = mean_sample(r, occupied);
    char title[120];
    snprintf(title, sizeof title,
             "%s, %.0f %% of the cards' time is work, %.0f %% held idle, %.0f %% free",
             when, work, held - work, 100 - held);
    struct chart chart = { .title = title,
                           .x = { "day", 0, c->setup.days, false },
                           .y = { "cards' time, %", 0, 100, false },
                           .series_count = 3 };
    static const struct chart_key keys[] = { { "work", 5 },
                                             { "held, idle", 0 },
                                             { "free", 1 } };
    for (unsigned i = 0; i < 3; i++)
        chart.series[i] =
            (struct chart_series){ keys[i], p->x, p->y + (size_t)i * count, count, false };
    for (uint32_t k = 0; k < count; k++) {
        double in_use = smooth(r, k, working), taken = smooth(r, k, occupied);
        p->x[k] = (k + 0.5) * SMOOTH / 24.0;
        p->y[k] = in_use;
        p->y[count + k] = taken - in_use;
        p->y[2 * count + k] = 100 - taken;
    }
    chart_areas(to, &chart);
}

/* Each department, under the first and the last system. */
static void add_departments(struct buf *to, const struct cards *c, bool wait)
{
    const struct closed_result *before = c->result[0], *after = c->result[c->systems - 1];
    const struct chart_key series[] = { key_of(c, 0), key_of(c, c->systems - 1) };
    struct chart_bar bars[CLOSED_PARTS];
    double hours = c->setup.days * 24.0;
    for (size_t i = 0; i < CLOSED_PARTS; i++) {
        const struct closed_part *b = &before->part[i], *a = &after->part[i];
        bars[i] = (struct chart_bar){
            b->name,
            { wait ? b->wait_mean_s / 3600 : 100 * b->work_device_h / (b->cards * hours),
              wait ? a->wait_mean_s / 3600 : 100 * a->work_device_h / (a->cards * hours) }
        };
    }
    unsigned better = 0;
    char title[96];
    for (size_t i = 0; i < CLOSED_PARTS; i++)
        better += wait ? bars[i].value[1] < bars[i].value[0]
                       : bars[i].value[1] > bars[i].value[0];
    snprintf(title, sizeof title,
             wait ? "%u of %d departments wait less (mean wait)"
                  : "%u of %d get more work done (in %% of what their own cards could do)",
             better, CLOSED_PARTS);
    chart_bars(to, title, wait ? "h" : "%", series, 2, bars, CLOSED_PARTS, wait ? 2 : 0);
}

static void add_energy(struct buf *to, const struct cards *c)
{
    const struct chart_key series = { "", 4 };
    struct chart_bar bars[CARDS_SYSTEMS];
    char title[128];
    for (unsigned i = 0; i < c->systems; i++)
        bars[i] = (struct chart_bar){ closed_system_name(c->system[i]),
                                      { mean(c, i, "work_per_mj") } };
    double more = 100 * (bars[c->systems - 1].value[0] / bars[0].value[0] - 1);
    snprintf(title, sizeof title,
             "%.0f %% %s work for the same energy, by a model (device-seconds a megajoule)",
             fabs(more), more < 0 ? "less" : "more");
    chart_bars(to, title, "s/MJ", &series, 1, bars, c->systems, 0);
}

static void add_charts(struct buf *to, const struct cards *c)
{
    struct points p = { 0 };
    uint32_t samples = c->result[0][0].sample_count;
    if (!points_create(&p, CARDS_SYSTEMS *
                               (size_t)(samples > CLOSED_CDF ? samples : CLOSED_CDF))) {
        points_finish(&p);
        to->failed = true;
        return;
    }
    buf_add(to, "<h2>In pictures</h2>\n<p class=\"soft\">Runs of the first seed; over "
                "time, means of"
                " six hours.</p>\n<div class=\"charts\">\n");
    add_cdf(to, c, &p);
    add_over_time(to, c, &p, "Compute in use", "compute in use, %", working);
    add_card_time(to, c, 0, "Before", &p);
    add_card_time(to, c, c->systems - 1, "After", &p);
    add_over_time(to, c, &p, "Lent for sure", "allocated, %", allocated);
    add_over_time(to, c, &p, "Fragments, not lent though somebody waits", "not lent, %",
                  unusable);
    add_departments(to, c, false);
    add_departments(to, c, true);
    add_energy(to, c);
    buf_add(to, "</div>\n");
    points_finish(&p);
}

/* ---- the foot ---- */

/* What makes this page again. */
static void add_command(struct buf *to, const struct cards *c)
{
    const struct closed_setup *s = &c->setup;
    const struct {
        const char *option;
        uint32_t value;
        bool said;
    } options[] = {
        { "seeds", c->seeds, true },
        { "warm-days", s->warm_days, true },
        { "days", s->days, true },
        { "think", s->think_s / 60, true },
        { "sessions", s->sessions_permille / 10, true },
        { "heavy", s->heavy_permille / 10, true },
        { "cards", s->nodes_permille / 10, true },
        { "offered", s->open_permille / 10, s->open_permille > 0 },
    };
    buf_add(to, "<h2>To make it again</h2>\n<p><code>sluice-sim scenario 200-cards");
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (options[i].said)
            buf_addf(to, " --%s %u", options[i].option, options[i].value);
    buf_add(to, " --policy ");
    for (unsigned i = 0; i < c->systems; i++)
        buf_addf(to, "%s%s", i ? "," : "", closed_system_name(c->system[i]));
    buf_addf(to,
             " --html FILE</code></p>\n<p class=\"soft\">sluice-sim %s. Seeds are 1 to %u;"
             " each gives every system the same sessions and jobs.</p>\n",
             SLUICE_VERSION, c->seeds);
}

static void add_foot(struct buf *to, const struct cards *c)
{
    buf_add(
        to,
        "<h2>What was assumed</h2>\n<ul>\n"
        "<li>25 nodes of 8: 10 with V100-32G, 8 with A100-80G, 7 with Ascend 910-32G; ten"
        " departments whose demand differs as that of virtual clusters in Helios' "
        "Earth.</li>\n"
        "<li>Run times lognormal, median 20 minutes, 30 s to 48 h (Philly, Helios, PAI); "
        "sizes"
        " 73 % one card, 12 % two, 11 % four, 4 % eight; utilisation after Philly, Acme "
        "and PAI;"
        " a fifth of the jobs on one card is light.</li>\n"
        "<li>All cards are equally fast. On less than a whole card a job runs 8 % longer. "
        "Four in"
        " five jobs for CUDA may use V100 or A100, the others any; half of those for Ascend"
        " Ascend only.</li>\n"
        "<li>Where shares are lent, a job asks for 1.15 times its utilisation and 2 "
        "points, in"
        " steps of 5. Ours lends that divided by 1.35 for sure, and the rest as others "
        "leave"
        " it: where all want more than there is, each has what it is sure of, and more in"
        " proportion.</li>\n"
        "<li>Ours knows no run times. Who ran less than five minutes goes first, then who "
        "waited"
        " twenty minutes, then who had least. Who is displaced keeps its work and has 7 s "
        "(one"
        " card) or 30 s more to do.</li>\n"
        "<li>Two jobs on several cards never share one: they would wait for each "
        "other.</li>\n"
        "<li>Power: idle and full watts of the PWR paper (V100 30 and 300, A100 50 and "
        "400; the"
        " Ascend 910 as 30 and 310), in proportion to the compute in use.</li>\n</ul>\n");
    add_command(to, c);
    buf_add(to, "</main></body></html>\n");
}

int cards_html(const struct cards *c, const char *path, struct sl_err *err)
{
    AUTO_BUF struct buf page = { 0 };
    add_head(&page, c);
    add_tiles(&page, c);
    add_table(&page, c);
    add_charts(&page, c);
    add_foot(&page, c);
    if (buf_failed(&page))
        return sl_fail(err, SL_INTERNAL, "%s: out of memory", path);
    FILE *f = fopen(path, "w");
    bool written = f && fwrite(page.text, 1, page.len, f) == page.len;
    int sys = errno;
    if (f && fclose(f)) {
        sys = errno;
        written = false;
    }
    return written ? 0 : sl_fail_sys(err, SL_IO, sys, "%s", path);
}
