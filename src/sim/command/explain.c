/* `sluice-sim explain`: why a request of a log waits or must go, and what would start it. */
#include <inttypes.h>
#include <string.h>

#include "feed.h"
#include "sched/explain.h"
#include "sim/number.h"

static int explain(struct sim *sim, const struct sim_args *args, struct feed *f,
                   struct sl_err *err)
{
    struct sched_explanation x;
    AUTO_BUF struct buf text = { 0 };
    const char *word = args->operand[1];
    uint64_t id;
    if (number_parse(word, strlen(word), 0, &id) != NUMBER_OK)
        return sl_fail(err, SL_INVALID, "'%.40s' is no number of a request", word);
    int rc = feed_open(sim, args->operand[0], feed_upto(args), f, err);
    if (rc)
        return rc;
    rc = sched_explain(f->sched, id, &x);
    if (rc == -SL_NOT_FOUND)
        return sl_fail(err, SL_NOT_FOUND,
                       "%" PRIu64 " neither waits nor runs after event %" PRIu64, id,
                       f->events);
    sched_explanation_text(&text, &x);
    if (rc || buf_failed(&text))
        return sl_fail(err, SL_INTERNAL, "out of memory");
    feed_print_when(sim->out, f);
    fputs(text.text, sim->out);
    return 0;
}

int sim_cmd_explain(struct sim *sim, const struct sim_args *args)
{
    struct sl_err err = { 0 };
    struct feed f = { 0 };
    int rc = explain(sim, args, &f, &err);
    feed_finish(&f);
    return rc < 0 ? sim_fail(sim, &err) : 0;
}
