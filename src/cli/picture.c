/* Drawing the picture of `top`. */
#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/macros.h"
#include "model/units.h"
#include "table.h"
#include "views.h"

#define LABEL    10  /* " share    " */
#define NOTE     26  /* what stands behind a bar */
#define MAX_ROWS 512 /* leases shown; a machine has some dozens */

/* What bars are made of. */
struct ink {
    const char *full, *rest, *free, *borrowed, *edge;
};
static const struct ink ink_utf8 = { "█", "░", "·", "▒", "│" };
static const struct ink ink_ascii = { "#", "-", ".", "+", "|" };

/* One slice as a bar shows it. */
struct part {
    const char *name;
    char label[112];
    uint64_t promised, got; /* in the unit of the bar */
    bool bad;
};

struct row {
    const struct lease *lease;
    const struct lease_slice *slice; /* NULL: it waits for one */
};

static void add_style(struct buf *out, enum style style)
{
    char byte = (char)(style + 1);
    buf_add_bytes(out, &byte, 1);
}

static void add_repeated(struct buf *out, const char *text, int count)
{
    while (count-- > 0)
        buf_add(out, text);
}

/* `text` cut or padded to `width` columns; cut at a character. */
static void add_fitted(struct buf *out, const char *text, int width)
{
    size_t len = strlen(text);
    char copy[160];
    if (len >= sizeof copy)
        len = sizeof copy - 1;
    memcpy(copy, text, len);
    copy[len] = 0;
    while (text_width(copy) > width) {
        do
            len--;
        while (len && ((unsigned char)copy[len] & 0xc0) == 0x80);
        copy[len] = 0;
    }
    buf_add(out, copy);
    add_repeated(out, " ", width - text_width(copy));
}

/* Columns of a bar of `width` that end at `value` of `whole`. */
static int column_of(uint64_t value, uint64_t whole, int width)
{
    if (!whole)
        return 0;
    double at = (double)value / (double)whole * width + 0.5;
    return at > width ? width : (int)at;
}

/* The upper line of a pair: who was promised what. */
static void draw_promised(struct buf *out, const struct ink *ink, const struct part *parts,
                          size_t count, uint64_t whole, int width)
{
    uint64_t sum = 0;
    int at = 0;
    buf_add(out, ink->edge);
    for (size_t i = 0; i < count; i++) {
        sum += parts[i].promised;
        int end = column_of(sum, whole, width);
        if (end <= at)
            continue;
        add_style(out, i % 2 ? STYLE_PLAIN : STYLE_BOLD);
        add_fitted(out, parts[i].label, end - at - 1);
        add_style(out, STYLE_PLAIN);
        buf_add(out, ink->edge);
        at = end;
    }
    add_style(out, STYLE_DIM);
    add_repeated(out, ink->free, width - at - (at < width));
    add_style(out, STYLE_PLAIN);
    if (at < width)
        buf_add(out, ink->edge);
}

/* The lower line: how much of it each has; what is borrowed stands in the free part. */
static void draw_got(struct buf *out, const struct ink *ink, const struct part *parts,
                     size_t count, uint64_t whole, int width)
{
    uint64_t sum = 0, borrowed = 0;
    int at = 0;
    buf_add(out, ink->edge);
    for (size_t i = 0; i < count; i++) {
        const struct part *p = &parts[i];
        sum += p->promised;
        borrowed += sub_sat_u64(p->got, p->promised);
        int end = column_of(sum, whole, width);
        if (end <= at)
            continue;
        int room = end - at - 1;
        int full = column_of(min_u64(p->got, p->promised), p->promised, room);
        add_style(out, p->bad ? STYLE_BAD : STYLE_GOOD);
        add_repeated(out, ink->full, full);
        add_style(out, STYLE_DIM);
        add_repeated(out, ink->rest, room - full);
        add_style(out, STYLE_PLAIN);
        buf_add(out, ink->edge);
        at = end;
    }
    if (at == width)
        return;
    int room = width - at - 1, more = column_of(borrowed, whole, width);
    more = more < room ? more : room;
    add_style(out, STYLE_WARN);
    add_repeated(out, ink->borrowed, more);
    add_style(out, STYLE_DIM);
    add_repeated(out, ink->free, room - more);
    add_style(out, STYLE_PLAIN);
    buf_add(out, ink->edge);
}

static void add_pair(const struct picture *p, struct buf *out, const char *const labels[2],
                     const char *const notes[2], const struct part *parts, size_t count,
                     uint64_t whole)
{
    const struct ink *ink = p->utf8 ? &ink_utf8 : &ink_ascii;
    int width = p->width - LABEL - NOTE - 2;

    buf_addf(out, "   %-*s", LABEL - 3, labels[0]);
    draw_promised(out, ink, parts, count, whole, width);
    buf_addf(out, " %s\n   %-*s", notes[0], LABEL - 3, labels[1]);
    draw_got(out, ink, parts, count, whole, width);
    buf_addf(out, " %s\n", notes[1]);
}

/* The slices of one device, in the order of their leases. */
static size_t find_rows(const struct picture *p, const char *device, struct row *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < p->lease_count; i++) {
        const struct lease *l = &p->leases[i];
        if (l->state != LEASE_ACTIVE && l->state != LEASE_DRAINING)
            continue;
        for (uint32_t s = 0; s < l->slice_count && s < LEASE_MAX_SLICES; s++)
            if (!strcmp(l->slice[s].device, device) && count < MAX_ROWS)
                rows[count++] = (struct row){ l, &l->slice[s] };
    }
    return count;
}

static const char *row_name(const struct lease *l, char id[24])
{
    return l->name[0] ? l->name : lease_format_id(l->number, id);
}

static void draw_time(const struct picture *p, struct buf *out, const struct device *d,
                      const struct row *rows, struct part *parts, size_t count)
{
    char note[2][NOTE + 8], lent[16], held[16], id[24], share[32];

    for (size_t i = 0; i < count; i++) {
        const struct lease_slice *s = rows[i].slice;
        int32_t got = s->achieved_permille_10s;
        parts[i] = (struct part){ .promised = s->compute_request_permille,
                                  .got = got > 0 ? (uint64_t)got : 0,
                                  .bad = s->late || s->stuck };
        snprintf(parts[i].label, sizeof parts[i].label, "%s %s",
                 row_name(rows[i].lease, id),
                 units_format_share(s->compute_request_permille, s->compute_limit_permille,
                                    share));
    }
    snprintf(note[0], sizeof note[0], "%s %% lent",
             cli_format_permille(d->lent_permille, lent));
    snprintf(note[1], sizeof note[1],
             d->achieved_permille_10s < 0 ? "not known yet" : "%s %% used",
             cli_format_permille(d->achieved_permille_10s, held));
    add_pair(p, out, (const char *const[]){ "share", "10 s" },
             (const char *const[]){ note[0], note[1] }, parts, count, 1000);
}

static void draw_memory(const struct picture *p, struct buf *out, const struct device *d,
                        const struct row *rows, struct part *parts, size_t count)
{
    char note[2][2 * NOTE], lent[32], whole_text[32], used[32], id[24];
    uint64_t whole = device_lendable_bytes(d), promised = 0;

    for (size_t i = 0; i < count; i++) {
        const struct lease_slice *s = rows[i].slice;
        parts[i] =
            (struct part){ .promised = s->mem_request_bytes,
                           .got =
                               s->mem_used_bytes == UNKNOWN_U64 ? 0 : s->mem_used_bytes };
        parts[i].bad = parts[i].got > s->mem_limit_bytes;
        promised += s->mem_request_bytes;
        bool may_borrow = s->mem_limit_bytes > s->mem_request_bytes;
        snprintf(parts[i].label, sizeof parts[i].label, "%s %s%s%s",
                 row_name(rows[i].lease, id), format_bytes(s->mem_request_bytes, lent),
                 may_borrow ? ".." : "",
                 may_borrow ? format_bytes(s->mem_limit_bytes, used) : "");
    }
    snprintf(note[0], sizeof note[0], "%s of %s lent", format_bytes(d->lent_bytes, lent),
             format_bytes(whole, whole_text));
    snprintf(note[1], sizeof note[1], "%s held", format_bytes(d->used_bytes, used));
    /* what drains after a shrink is promised no more, and still there */
    add_pair(p, out, (const char *const[]){ "memory", "held" },
             (const char *const[]){ note[0], note[1] }, parts, count,
             max_u64(whole, promised));
}

enum { MODEL, MEMORY, GRADE, FACTS };

static int facts_width(char fact[FACTS][160])
{
    int width = 0;
    for (int i = 0; i < FACTS; i++)
        width += fact[i][0] ? (width ? 3 : 2) + text_width(fact[i]) : 0;
    return width;
}

/* Whole words into `room` columns: left out are the model's from its end, then the grade,
 * then the memory. */
static void add_facts(const struct picture *p, struct buf *out, const struct device *d,
                      int room)
{
    char text[32], fact[FACTS][160];
    snprintf(fact[MODEL], sizeof fact[MODEL], "%s", d->model);
    snprintf(fact[MEMORY], sizeof fact[MEMORY], "%s", format_bytes(d->memory_bytes, text));
    snprintf(fact[GRADE], sizeof fact[GRADE], "grade %s", format_grades(&d->grades, text));
    while (facts_width(fact) > room) {
        char *space = strrchr(fact[MODEL], ' ');
        char *end = space            ? space
                    : fact[MODEL][0] ? fact[MODEL]
                    : fact[GRADE][0] ? fact[GRADE]
                                     : fact[MEMORY];
        if (!*end)
            return;
        *end = 0;
    }
    const char *gap = "  ";
    for (int i = 0; i < FACTS; i++) {
        if (!fact[i][0])
            continue;
        buf_addf(out, "%s%s", gap, fact[i]);
        gap = p->utf8 ? " · " : " - ";
    }
}

static void draw_device_title(const struct picture *p, struct buf *out,
                              const struct device *d)
{
    buf_add(out, " ");
    add_style(out, STYLE_BOLD);
    buf_add(out, d->id);
    add_style(out, STYLE_PLAIN);
    if (d->emulated) {
        add_style(out, STYLE_WARN);
        buf_add(out, "  EMULATED");
        add_style(out, STYLE_PLAIN);
    }
    add_facts(p, out, d, p->width - 1 - text_width(d->id) - (d->emulated ? 10 : 0));
    buf_add(out, "\n");
}

static void draw_device(const struct picture *p, struct buf *out, const struct device *d)
{
    struct row rows[MAX_ROWS];
    size_t count = find_rows(p, d->id, rows);

    draw_device_title(p, out, d);
    if (d->state != DEVICE_OK) {
        add_style(out, STYLE_BAD);
        buf_addf(out, "   %s: %s\n", device_state_name(d->state), d->why[0] ? d->why : "-");
        add_style(out, STYLE_PLAIN);
        return;
    }
    if (!count) {
        char size[32];
        buf_addf(out, "   nothing lent; %s can be\n",
                 format_bytes(device_lendable_bytes(d), size));
        return;
    }
    struct part *parts = calloc(count, sizeof *parts);
    if (!parts) {
        out->failed = true;
        return;
    }
    draw_time(p, out, d, rows, parts, count);
    draw_memory(p, out, d, rows, parts, count);
    free(parts);
}

static uint64_t sort_key(const struct row *r, enum picture_sort sort)
{
    if (!r->slice)
        return 0;
    if (sort == SORT_SHARE)
        return r->slice->achieved_permille_10s > 0
                   ? (uint64_t)r->slice->achieved_permille_10s
                   : 0;
    return r->slice->mem_used_bytes == UNKNOWN_U64 ? 0 : r->slice->mem_used_bytes;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct row *x = a, *y = b;
    enum picture_sort sort = *(const enum picture_sort *)ctx;
    if (sort == SORT_NAME)
        return strcmp(x->lease->name, y->lease->name);
    uint64_t kx = sort_key(x, sort), ky = sort_key(y, sort);
    if (kx != ky)
        return kx < ky ? 1 : -1;
    return x->lease->number < y->lease->number ? -1 : x->lease->number > y->lease->number;
}

/* What it does at this moment, or what is wrong with it; NULL: nothing to say. */
static const char *row_state(const struct row *r, enum style *style)
{
    const struct lease_slice *s = r->slice;
    *style = STYLE_BAD;
    if (s->stuck)
        return "stuck";
    if (s->late)
        return "late";
    if (slice_over_bytes(s))
        return "over";
    *style = STYLE_WARN;
    if (r->lease->state == LEASE_DRAINING)
        return "ends";
    *style = s->holds ? STYLE_GOOD : STYLE_PLAIN;
    return s->holds ? "runs" : s->waits ? "waits" : NULL;
}

static void add_row(struct buf *out, const struct row *r)
{
    char id[24], used[32], limit[32], share[32], got[16];
    const struct lease_slice *s = r->slice;

    buf_addf(out, "   %-6s", lease_format_id(r->lease->number, id));
    add_fitted(out, lease_display_name(r->lease), 13);
    buf_addf(out, " %-11s", lease_mode_name(r->lease->mode));
    buf_addf(
        out, "%9s",
        units_format_share(s->compute_request_permille, s->compute_limit_permille, share));
    buf_addf(out, "%7s%s", cli_format_permille(s->achieved_permille_10s, got),
             s->achieved_permille_10s < 0 ? " " : "%");
    buf_addf(out, "%10s of %s", format_bytes(s->mem_used_bytes, used),
             format_bytes(s->mem_limit_bytes, limit));
    enum style style;
    const char *state = row_state(r, &style);
    if (state) {
        buf_addf(out, "%*s", 10 - (int)strlen(limit), "");
        add_style(out, style);
        buf_add(out, state);
        add_style(out, STYLE_PLAIN);
    }
    buf_add(out, "\n");
    if (r->lease->slice_count > 1) /* a row for each of its devices */
        buf_addf(out, "         on %s\n", s->device);
}

/* Lines of at most `width` columns, cut at a space, further ones indented. */
static void add_wrapped(struct buf *out, const char *text, int indent, int width)
{
    int at = indent;
    for (const char *p = text; *p;) {
        int len = (int)strcspn(p, " ");
        if (at > indent && at + 1 + len > width) {
            buf_addf(out, "\n%*s", indent, "");
            at = indent;
        }
        if (at > indent)
            buf_add(out, " ");
        buf_add_bytes(out, p, (size_t)len);
        at += len + (at > indent);
        p += len + (p[len] == ' ');
    }
}

static void draw_leases(const struct picture *p, struct buf *out)
{
    static const char *const by[] = { "device", "share", "memory", "name" };
    struct row rows[MAX_ROWS];
    size_t count = 0;

    for (size_t d = 0; d < p->device_count; d++)
        if (count + p->lease_count < MAX_ROWS)
            count += find_rows(p, p->devices[d].id, rows + count);
    if (!count)
        return;
    enum picture_sort sort = p->sort;
    if (sort != SORT_DEVICE)
        qsort_r(rows, count, sizeof *rows, compare_rows, &sort);
    add_style(out, STYLE_BOLD);
    buf_addf(out, "\n   %-6s%-13s %-11s%9s%8s%10s    %s\n", "LEASE", "NAME", "MODE",
             "PROMISED", "10 s", "HELD", "LIMIT");
    add_style(out, STYLE_PLAIN);
    for (size_t i = 0; i < count; i++)
        add_row(out, &rows[i]);
    if (sort != SORT_DEVICE)
        buf_addf(out, "   sorted by %s\n", by[sort]);
}

static void draw_waiting(const struct picture *p, struct buf *out)
{
    char id[24];
    bool first = true;
    for (size_t i = 0; i < p->lease_count; i++) {
        const struct lease *l = &p->leases[i];
        if (l->state != LEASE_PENDING)
            continue;
        if (first)
            buf_add(out, "\n   waiting for room:\n");
        first = false;
        buf_addf(out, "   %-6s", lease_format_id(l->number, id));
        add_fitted(out, lease_display_name(l), 13);
        buf_add(out, " ");
        add_style(out, STYLE_WARN);
        add_wrapped(out, l->why[0] ? l->why : "the cause is not known", 23, p->width);
        add_style(out, STYLE_PLAIN);
        buf_add(out, "\n");
    }
}

static void draw_header(const struct picture *p, struct buf *out)
{
    size_t active = 0, pending = 0;
    for (size_t i = 0; i < p->lease_count; i++) {
        active +=
            p->leases[i].state == LEASE_ACTIVE || p->leases[i].state == LEASE_DRAINING;
        pending += p->leases[i].state == LEASE_PENDING;
    }
    add_style(out, STYLE_BOLD);
    buf_add(out, " sluice  ");
    add_style(out, STYLE_PLAIN);
    add_fitted(out, p->node, p->width - 10 - text_width(p->clock));
    buf_addf(out, " %s\n", p->clock);
    buf_addf(out, " %zu device%s, %zu lease%s, %zu waiting\n", p->device_count,
             p->device_count == 1 ? "" : "s", active, active == 1 ? "" : "s", pending);
    if (p->trouble) {
        add_style(out, STYLE_BAD);
        buf_addf(out, " %s\n", p->trouble);
        add_style(out, STYLE_PLAIN);
    }
}

void picture_draw(const struct picture *p, struct buf *out)
{
    draw_header(p, out);
    for (size_t i = 0; i < p->device_count; i++) {
        buf_add(out, "\n");
        draw_device(p, out, &p->devices[i]);
    }
    if (!p->device_count)
        buf_add(out, "\n   no devices here; sluice doctor says why\n");
    draw_leases(p, out);
    draw_waiting(p, out);
}

void picture_print(const char *drawn, FILE *out, bool colour)
{
    for (const char *p = drawn; *p; p++) {
        if (*p > STYLE_BAD + 1 || *p < 0) {
            fputc(*p, out);
            continue;
        }
        if (colour)
            fprintf(out, "\033[0m%s", style_begin((enum style)(*p - 1), true));
    }
}
