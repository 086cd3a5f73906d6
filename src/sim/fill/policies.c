/*
 * The table of policies, and the scan that makes one of a published score.
 *
 * Nodes lie in the order that decides between equals.  The scores of a class are kept
 * and made anew only for the nodes that changed since its last pod.
 */
#include <stdlib.h>

#include "ours.h"
#include "scores.h"

#define NO_ROOM (-1)

struct scan {
    const struct fill_input *in;
    const uint32_t *tie_order;
    const struct fill_score *score;
    struct random random;
    struct fill_seen *nodes; /* by place in tie_order */
    uint32_t *changed_at;    /* of each, in the log */
    int16_t *scores;         /* [class][node] */
    int16_t *growth;         /* the same, in watts; of a score with power alone */
    uint32_t *log;           /* nodes as they changed */
    uint32_t log_count, log_room;
    uint32_t *read; /* by each class, of the log; all nodes stand at its begin */
};

static void scan_destroy(void *self)
{
    struct scan *s = self;
    if (!s)
        return;
    free(s->nodes);
    free(s->changed_at);
    free(s->scores);
    free(s->growth);
    free(s->log);
    free(s->read);
    free(s);
}

static void note_change(struct scan *s, uint32_t node)
{
    s->changed_at[node] = s->log_count;
    s->log[s->log_count++] = node;
}

/* Everything is new to every class. */
static void restart_log(struct scan *s)
{
    s->log_count = 0;
    for (uint32_t i = 0; i < s->in->node_count; i++)
        note_change(s, i);
    for (uint32_t c = 0; c < s->in->class_count; c++)
        s->read[c] = 0;
}

static void see(struct scan *s, uint32_t node)
{
    s->nodes[node].waste = fill_waste(&s->in->target, &s->nodes[node].node);
}

static void *scan_create(const struct fill_score *score, const struct fill_input *in,
                         const uint32_t *tie_order, uint64_t seed)
{
    struct scan *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct scan){ .in = in,
                        .tie_order = tie_order,
                        .score = score,
                        .random = { seed },
                        .log_room = 16 * in->node_count,
                        .nodes = calloc(in->node_count, sizeof *s->nodes),
                        .changed_at = calloc(in->node_count, sizeof *s->changed_at),
                        .log = calloc(16 * (size_t)in->node_count, sizeof *s->log),
                        .scores = calloc((size_t)in->class_count * in->node_count,
                                         sizeof *s->scores),
                        .read = calloc(in->class_count, sizeof *s->read) };
    if (score->pwr_permille)
        s->growth = calloc((size_t)in->class_count * in->node_count, sizeof *s->growth);
    if (!s->nodes || !s->changed_at || !s->log || !s->scores || !s->read ||
        (score->pwr_permille && !s->growth)) {
        scan_destroy(s);
        return NULL;
    }
    for (uint32_t i = 0; i < in->node_count; i++) {
        s->nodes[i].node = in->nodes[tie_order[i]];
        see(s, i);
    }
    restart_log(s);
    return s;
}

/* The scores of a class, up to date. */
static const int16_t *scores_of(struct scan *s, uint32_t c)
{
    const struct fill_class *class = &s->in->classes[c];
    int16_t *scores = s->scores + (size_t)c * s->in->node_count;
    for (; s->read[c] < s->log_count; s->read[c]++) {
        uint32_t node = s->log[s->read[c]];
        if (s->changed_at[node] != s->read[c])
            continue; /* it changed again later */
        const struct fill_seen *n = &s->nodes[node];
        scores[node] = !fill_fits(&n->node, class) ? NO_ROOM
                       : !s->score->of             ? 0
                                       : (int16_t)s->score->of(&s->in->target, n, class);
        if (s->growth && scores[node] != NO_ROOM)
            s->growth[(size_t)c * s->in->node_count + node] =
                (int16_t)fill_growth_w(&s->in->target, n, class);
    }
    return scores;
}

static uint32_t highest(const int16_t *scores, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        best = scores[i] > scores[best] ? i : best;
    return best;
}

/* The highest of both together. */
static uint32_t highest_with_power(const struct scan *s, const int16_t *scores,
                                   const int16_t *growth)
{
    int weight = s->score->pwr_permille, least = INT16_MAX, most = 0, best_score = -1;
    uint32_t best = 0;
    for (uint32_t i = 0; i < s->in->node_count; i++)
        if (scores[i] != NO_ROOM) {
            least = growth[i] < least ? growth[i] : least;
            most = growth[i] > most ? growth[i] : most;
        }
    for (uint32_t i = 0; i < s->in->node_count; i++) {
        int power = most > least ? 100 * (most - growth[i]) / (most - least) : 100;
        int score = weight * power + (1000 - weight) * scores[i];
        if (scores[i] != NO_ROOM && score > best_score) {
            best_score = score;
            best = i;
        }
    }
    return best;
}

static uint32_t any(struct scan *s, const int16_t *scores, uint32_t count)
{
    uint32_t fitting = 0, i = 0;
    for (uint32_t k = 0; k < count; k++)
        fitting += scores[k] != NO_ROOM;
    if (!fitting)
        return 0;
    for (uint32_t left = random_below(&s->random, fitting) + 1; left; i++)
        left -= scores[i] != NO_ROOM;
    return i - 1;
}

static bool scan_place(void *self, uint32_t c, struct fill_place *out)
{
    struct scan *s = self;
    const struct fill_class *class = &s->in->classes[c];
    const int16_t *scores = scores_of(s, c);
    uint32_t count = s->in->node_count;
    uint32_t best = s->growth ? highest_with_power(s, scores, s->growth + (size_t)c * count)
                    : s->score->of ? highest(scores, count)
                                   : any(s, scores, count);
    struct fill_seen *n = &s->nodes[best];
    if (scores[best] == NO_ROOM)
        return false;
    s->score->devices(&s->in->target, n, class, &s->random, out);
    out->node = s->tie_order[best];
    fill_take(&n->node, class, out);
    n->sorts |= fill_sort(class);
    see(s, best);
    if (s->log_count == s->log_room)
        restart_log(s);
    else
        note_change(s, best);
    return true;
}

/* clang-format off */
#define SCAN(score)                                                                      \
    static void *create_##score(const struct fill_input *in, const uint32_t *tie_order,  \
                                uint64_t seed)                                           \
    {                                                                                    \
        return scan_create(&fill_##score, in, tie_order, seed);                          \
    }
SCAN(random)
SCAN(dotprod)
SCAN(clustering)
SCAN(packing)
SCAN(bestfit)
SCAN(fgd)
SCAN(pwr)
SCAN(pwr500)
SCAN(pwr200)
SCAN(pwr100)
SCAN(pwr50)

const struct fill_policy fill_policies[] = {
    { "random",     create_random,     scan_place, scan_destroy },
    { "dotprod",    create_dotprod,    scan_place, scan_destroy },
    { "clustering", create_clustering, scan_place, scan_destroy },
    { "packing",    create_packing,    scan_place, scan_destroy },
    { "bestfit",    create_bestfit,    scan_place, scan_destroy },
    { "fgd",        create_fgd,        scan_place, scan_destroy },
    { "pwr",        create_pwr,        scan_place, scan_destroy },
    { "pwr500",     create_pwr500,     scan_place, scan_destroy },
    { "pwr200",     create_pwr200,     scan_place, scan_destroy },
    { "pwr100",     create_pwr100,     scan_place, scan_destroy },
    { "pwr50",      create_pwr50,      scan_place, scan_destroy },
    { "sluice",     ours_create,       ours_place, ours_destroy },
    { "sluice-power", ours_create_power, ours_place_power, ours_destroy },
};
/* clang-format on */
const unsigned fill_policy_count = sizeof fill_policies / sizeof fill_policies[0];
