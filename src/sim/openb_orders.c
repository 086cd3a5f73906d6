/* The openb arrival orders: a line per seed, then zero-based indices of pods. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/csv.h"
#include "sim/number.h"
#include "sim/openb.h"

/* One line, as words between blanks. */
struct words {
    const char *at, *end;
};

static bool take_word(struct words *w, struct csv_field *word)
{
    while (w->at < w->end && *w->at == ' ')
        w->at++;
    word->text = w->at;
    while (w->at < w->end && *w->at != ' ')
        w->at++;
    word->len = (size_t)(w->at - word->text);
    return word->len > 0;
}

struct reader {
    const struct text *text;
    struct openb_orders *out;
    uint32_t index_count, pod_count, line;
    struct sl_err *err;
};

static int fail_word(struct reader *r, const char *what, struct csv_field word,
                     uint64_t max)
{
    return sl_fail(r->err, SL_INVALID, "%s:%u: %s: '%.*s' is no number in 0..%llu",
                   r->text->name, r->line, what, (int)(word.len < 40 ? word.len : 40),
                   word.text, (unsigned long long)max);
}

static int take_seed(struct reader *r, struct csv_field word, struct openb_order *order)
{
    if (number_parse(word.text, word.len, 0, &order->seed) != NUMBER_OK)
        return fail_word(r, "seed", word, UINT64_MAX);
    for (uint32_t i = 0; i < r->out->count; i++)
        if (r->out->orders[i].seed == order->seed)
            return sl_fail(r->err, SL_INVALID, "%s:%u: seed %llu is on line %u already",
                           r->text->name, r->line, (unsigned long long)order->seed,
                           r->out->orders[i].line);
    return 0;
}

static int read_order(struct reader *r, struct words words)
{
    struct openb_order order = { .first = r->index_count, .line = r->line };
    struct csv_field word;
    uint64_t index;
    if (!take_word(&words, &word))
        return 0;
    int rc = take_seed(r, word, &order);
    if (rc < 0)
        return rc;
    for (; take_word(&words, &word); order.count++) {
        if (number_parse(word.text, word.len, 0, &index) != NUMBER_OK ||
            index >= r->pod_count)
            return fail_word(r, "index of a pod", word, r->pod_count - 1);
        r->out->index[r->index_count++] = (uint32_t)index;
    }
    if (order.count == 0)
        return sl_fail(r->err, SL_INVALID, "%s:%u: a seed without pods", r->text->name,
                       r->line);
    r->out->orders[r->out->count++] = order;
    return 0;
}

/* As many items as there are separators, and one. */
static void *room_for(const struct text *text, char separator, size_t size)
{
    size_t count = 1;
    for (size_t i = 0; i < text->len; i++)
        count += text->bytes[i] == separator || text->bytes[i] == '\n';
    return calloc(count, size);
}

static int read_lines(struct reader *r)
{
    const char *at = r->text->bytes, *end = at + r->text->len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct words words = { at, stop ? stop : end };
        at = stop ? stop + 1 : end;
        r->line++;
        if (words.end > words.at && words.end[-1] == '\r')
            words.end--;
        int rc = read_order(r, words);
        if (rc < 0)
            return rc;
    }
    if (r->out->count == 0)
        return sl_fail(r->err, SL_INVALID, "%s has no orders", r->text->name);
    return 0;
}

int openb_orders_read(const struct text *text, uint32_t pod_count, struct openb_orders *out,
                      struct sl_err *err)
{
    struct openb_orders o = {
        .orders = room_for(text, '\n', sizeof *o.orders),
        .index = room_for(text, ' ', sizeof *o.index),
    };
    struct reader r = { .text = text, .out = &o, .pod_count = pod_count, .err = err };
    int rc;
    if (!o.orders || !o.index)
        rc = sl_fail(err, SL_INTERNAL, "%s: out of memory", text->name);
    else if (pod_count == 0)
        rc = sl_fail(err, SL_INVALID, "%s: orders of no pods", text->name);
    else
        rc = read_lines(&r);
    if (rc < 0)
        openb_orders_finish(&o);
    else
        *out = o;
    return rc;
}

void openb_orders_finish(struct openb_orders *o)
{
    free(o->orders);
    free(o->index);
    *o = (struct openb_orders){ 0 };
}
