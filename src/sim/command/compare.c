/* `sluice-sim compare`: two JSON answers beside each other, figure by figure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "core/macros.h"
#include "sim/command.h"
#include "sim/stats.h"
#include "sim/text.h"

#define NAME_SIZE  160
#define MAX_VALUES 1000 /* of one figure, run by run */

enum row_kind { BOTH, TEXT, ONLY_A, ONLY_B };

/* One figure: a place in the tree, and what both files have there. */
struct row {
    char name[NAME_SIZE];
    enum row_kind kind;
    double a, b;             /* means; NAN: unknown */
    struct stats difference; /* b - a; without an interval where a file has none */
    bool paired;
    const char *text_a, *text_b;
};

struct compare {
    struct row *rows;
    uint32_t count, room;
    struct sl_err *err;
};

/* ---- figures ---- */

/* A figure of several runs says its mean. */
static bool is_figure(const json_t *j)
{
    return json_is_number(j) || json_is_null(j) || json_object_get(j, "mean");
}

static double mean_of(const json_t *j)
{
    const json_t *mean = json_is_object(j) ? json_object_get(j, "mean") : j;
    return json_is_number(mean) ? json_number_value(mean) : NAN;
}

/* Half the width of its 95 % interval; NAN where it says none. */
static double half_of(const json_t *j)
{
    const json_t *low = json_object_get(j, "low"), *high = json_object_get(j, "high");
    if (!json_is_number(low) || !json_is_number(high))
        return NAN;
    return (json_number_value(high) - json_number_value(low)) / 2;
}

/* The runs one by one, if both have as many: the same number is the same seed. */
static bool difference_of_runs(const json_t *a, const json_t *b, struct stats *out)
{
    const json_t *x = json_object_get(a, "values"), *y = json_object_get(b, "values");
    double differ[MAX_VALUES];
    size_t count = json_array_size(x);
    if (count < 2 || count > MAX_VALUES || json_array_size(y) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        differ[i] = mean_of(json_array_get(y, i)) - mean_of(json_array_get(x, i));
    *out = stats_of(differ, count);
    return true;
}

static struct stats difference_of_means(const json_t *a, const json_t *b)
{
    double mean = mean_of(b) - mean_of(a), half = hypot(half_of(a), half_of(b));
    return (struct stats){ mean, NAN, mean - half, mean + half };
}

static struct row *add_row(struct compare *c, const char *name, enum row_kind kind)
{
    if (array_reserve(&c->rows, &c->room, c->count + 1, sizeof *c->rows))
        return NULL;
    struct row *r = &c->rows[c->count++];
    *r = (struct row){ .kind = kind };
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

static int add_figure(struct compare *c, const char *name, const json_t *a, const json_t *b)
{
    struct row *r = add_row(c, name, BOTH);
    if (!r)
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    r->a = mean_of(a);
    r->b = mean_of(b);
    r->paired = difference_of_runs(a, b, &r->difference);
    if (!r->paired)
        r->difference = difference_of_means(a, b);
    return 0;
}

/* What is no figure is worth a line only where it differs. */
static int add_text(struct compare *c, const char *name, const json_t *a, const json_t *b)
{
    if (json_equal(a, b))
        return 0;
    struct row *r = add_row(c, name, TEXT);
    if (!r)
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    r->text_a = json_string_value(a);
    r->text_b = json_string_value(b);
    return 0;
}

static int add_alone(struct compare *c, const char *name, enum row_kind kind)
{
    return add_row(c, name, kind) ? 0 : sl_fail(c->err, SL_INTERNAL, "out of memory");
}

/* ---- two trees ---- */

static int walk(struct compare *c, const char *name, const json_t *a, const json_t *b);

static void join(char *out, const char *name, const char *key)
{
    snprintf(out, NAME_SIZE, "%s%s%s", name, name[0] ? " " : "", key);
}

/* Differences that a run has worked out itself. */
static bool is_comparison(const char *key)
{
    return !strcmp(key, "paired") || !strcmp(key, "less_the_first");
}

/* What an element of a list is called, NULL: nothing but its place. */
static const char *label_of(const json_t *element)
{
    static const char *const keys[] = { "system", "policy", "name", "trace" };
    const char *label = NULL;
    for (size_t i = 0; i < ARRAY_LEN(keys) && !label; i++)
        label = json_string_value(json_object_get(element, keys[i]));
    return label;
}

/* A list whose elements have names adds none of its own. */
static void name_of(char *out, const char *name, const char *key, const json_t *value)
{
    if (label_of(json_array_get(value, 0)))
        snprintf(out, NAME_SIZE, "%s", name);
    else
        join(out, name, key);
}

static int walk_object(struct compare *c, const char *name, const json_t *a,
                       const json_t *b)
{
    char below[NAME_SIZE];
    const char *key;
    json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)a, key, value) {
        const json_t *other = json_object_get(b, key);
        if (rc || is_comparison(key))
            continue;
        name_of(below, name, key, value);
        rc = other ? walk(c, below, value, other) : add_alone(c, below, ONLY_A);
    }
    json_object_foreach((json_t *)b, key, value) {
        if (rc || is_comparison(key) || json_object_get(a, key))
            continue;
        name_of(below, name, key, value);
        rc = add_alone(c, below, ONLY_B);
    }
    return rc;
}

static const json_t *find_label(const json_t *list, const char *label)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *element = json_array_get(list, i);
        if (label_of(element) && !strcmp(label_of(element), label))
            return element;
    }
    return NULL;
}

/* Found by its name, or by its place. */
static int walk_element(struct compare *c, const char *name, const json_t *list, size_t i,
                        const json_t *other_list, bool second)
{
    const json_t *element = json_array_get(list, i);
    const char *label = label_of(element);
    const json_t *other =
        label ? find_label(other_list, label) : json_array_get(other_list, i);
    char below[NAME_SIZE], place[24];
    snprintf(place, sizeof place, "%zu", i + 1);
    join(below, name, label ? label : place);
    if (!other)
        return add_alone(c, below, second ? ONLY_B : ONLY_A);
    return second ? 0 : walk(c, below, element, other);
}

static int walk_array(struct compare *c, const char *name, const json_t *a, const json_t *b)
{
    int rc = 0;
    for (size_t i = 0; i < json_array_size(a) && !rc; i++)
        rc = walk_element(c, name, a, i, b, false);
    for (size_t i = 0; i < json_array_size(b) && !rc; i++)
        rc = walk_element(c, name, b, i, a, true);
    return rc;
}

static int walk(struct compare *c, const char *name, const json_t *a, const json_t *b)
{
    if (is_figure(a) && is_figure(b))
        return add_figure(c, name, a, b);
    if (json_is_object(a) && json_is_object(b))
        return walk_object(c, name, a, b);
    if (json_is_array(a) && json_is_array(b))
        return walk_array(c, name, a, b);
    return add_text(c, name, a, b);
}

/* ---- the answer ---- */

static bool is_whole(double value)
{
    return isnan(value) || value == trunc(value);
}

static int digits_of(const struct row *r)
{
    double most = fmax(fabs(r->a), fabs(r->b));
    if (is_whole(r->a) && is_whole(r->b) && isnan(r->difference.low))
        return 0;
    return most >= 10000 ? 0 : most >= 100 ? 1 : most >= 1 ? 2 : 4;
}

static void print_number(FILE *out, double value, int digits, const char *sign)
{
    char text[40];
    snprintf(text, sizeof text, sign[0] ? "%+.*f" : "%.*f", digits, value);
    fprintf(out, " %12s", isnan(value) ? "-" : text);
}

static void print_figure(FILE *out, const struct row *r, int width)
{
    const struct stats *d = &r->difference;
    int digits = digits_of(r);
    fprintf(out, "%-*s", width, r->name);
    print_number(out, r->a, digits, "");
    print_number(out, r->b, digits, "");
    if (r->a == r->b && isnan(d->low)) {
        fprintf(out, " %12s\n", "same");
        return;
    }
    print_number(out, d->mean, digits, "+");
    if (r->a != 0 && !isnan(d->mean))
        fprintf(out, " %+8.1f %%", 100 * d->mean / fabs(r->a));
    else
        fprintf(out, " %10s", "");
    if (!isnan(d->low))
        fprintf(out, "  %+.*f to %+.*f%s%s", digits, d->low, digits, d->high,
                r->paired ? ", paired" : "", d->low > 0 || d->high < 0 ? "" : ", unclear");
    fputc('\n', out);
}

static void print_other(FILE *out, const struct row *r)
{
    if (r->kind == TEXT && r->text_a && r->text_b)
        fprintf(out, "%s: '%s' in A, '%s' in B\n", r->name, r->text_a, r->text_b);
    else if (r->kind == TEXT)
        fprintf(out, "%s: not the same in A and B\n", r->name);
    else
        fprintf(out, "%s: only in %s\n", r->name, r->kind == ONLY_A ? "A" : "B");
}

static void print_table(FILE *out, const struct compare *c, const char *const *path)
{
    int width = 24;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rows[i].kind == BOTH && (int)strlen(c->rows[i].name) > width)
            width = (int)strlen(c->rows[i].name);
    fprintf(out, "A: %s\nB: %s\n\n%-*s %12s %12s %12s %10s  %s\n", path[0], path[1], width,
            "", "A", "B", "B - A", "", "95 % of B - A");
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rows[i].kind == BOTH)
            print_figure(out, &c->rows[i], width);
    for (uint32_t i = 0, others = 0; i < c->count; i++) {
        if (c->rows[i].kind == BOTH)
            continue;
        if (!others++)
            fputc('\n', out);
        print_other(out, &c->rows[i]);
    }
}

static json_t *json_number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *json_row(const struct row *r, bool *ok)
{
    json_t *j = json_object();
    json_put(j, "name", json_string(r->name), ok);
    if (r->kind == ONLY_A || r->kind == ONLY_B) {
        json_put(j, "only_in", json_string(r->kind == ONLY_A ? "a" : "b"), ok);
    } else if (r->kind == TEXT) {
        json_put(j, "a", r->text_a ? json_string(r->text_a) : json_null(), ok);
        json_put(j, "b", r->text_b ? json_string(r->text_b) : json_null(), ok);
    } else {
        json_put(j, "a", json_number(r->a), ok);
        json_put(j, "b", json_number(r->b), ok);
        json_put(j, "difference", json_number(r->difference.mean), ok);
        json_put(j, "low", json_number(r->difference.low), ok);
        json_put(j, "high", json_number(r->difference.high), ok);
        json_put(j, "paired", json_boolean(r->paired), ok);
    }
    return j;
}

static int print_json(FILE *out, const struct compare *c, const char *const *path)
{
    bool ok = true;
    AUTO_JSON json_t *all = json_object();
    json_t *list = json_array();
    json_put(all, "a", json_text(path[0]), &ok);
    json_put(all, "b", json_text(path[1]), &ok);
    for (uint32_t i = 0; i < c->count; i++)
        ok = json_array_append_new(list, json_row(&c->rows[i], &ok)) == 0 && ok;
    json_put(all, "figures", list, &ok);
    if (!ok)
        return sl_fail(c->err, SL_INTERNAL, "out of memory");
    json_dumpf(all, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(8));
    fputc('\n', out);
    return 0;
}

/* ---- the command ---- */

static int read_json(const char *path, json_t **out, struct sl_err *err)
{
    AUTO_TEXT struct text text = { 0 };
    int rc = text_open(path, &text, err);
    if (rc)
        return rc;
    *out = json_parse(text.bytes, text.len, err);
    return *out ? 0 : sl_prefix(err, "%s", text.name);
}

static bool has_figures(const struct compare *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rows[i].kind == BOTH)
            return true;
    return false;
}

int sim_cmd_compare(struct sim *sim, const struct sim_args *args)
{
    struct sl_err err = { 0 };
    struct compare c = { .err = &err };
    AUTO_JSON json_t *a = NULL;
    AUTO_JSON json_t *b = NULL;
    int rc = read_json(args->operand[0], &a, &err);
    if (!rc)
        rc = read_json(args->operand[1], &b, &err);
    if (!rc)
        rc = walk(&c, "", a, b);
    if (!rc && !has_figures(&c))
        rc = sl_fail(&err, SL_INVALID, "%s and %s have no figure in common",
                     args->operand[0], args->operand[1]);
    if (!rc && sim_has(args, "json"))
        rc = print_json(sim->out, &c, args->operand);
    else if (!rc)
        print_table(sim->out, &c, args->operand);
    free(c.rows);
    return rc ? sim_fail(sim, &err) : 0;
}
