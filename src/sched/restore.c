/*
 * Restoring: what ran before a restart is taken as it is.  Nothing is decided, and
 * nobody could start because of it, but who wants to be with it; so it costs little more than the accounts.
 */
#include <string.h>

#include "sched_impl.h"

static int check(const struct sched *s, const struct sched_restore *e, struct sl_err *err)
{
    if (e->start_ms > s->now_ms)
        return sl_fail(err, SL_INVALID, "restore: it starts in the future");
    if (e->option >= e->request.option_count)
        return sl_fail(err, SL_INVALID, "restore: it has no option %u", e->option);
    return 0;
}

/* Inside a try: all its places, as they are said. */
static int take_all(struct sched *s, const struct request *r, const struct sched_restore *e,
                    struct sl_err *err)
{
    for (uint32_t i = 0; i < e->place_count; i++) {
        const struct pool_ask *a = option_ask(&r->form->option[e->option], i);
        const struct pool_place *at = &e->place[i];
        if (at->node >= pool_node_count(s->pool) || at->device_count != a->devices ||
            !pool_ask_possible(s->pool, a, at->node))
            return sl_fail(err, SL_INVALID, "restore: place %u could never be its", i);
        if (s->hold[at->node].nominee || !pool_place_fits(s->pool, a, at))
            return sl_fail(err, SL_CONFLICT, "restore: place %u is another's", i);
        try_take(s, r->form, a, at);
    }
    return 0;
}

static int settle_in(struct sched *s, struct request *r, const struct sched_restore *e,
                     struct sl_err *err)
{
    if (e->place_count != r->form->place_count[e->option])
        return sl_fail(err, SL_INVALID, "restore: %u places, not %u",
                       r->form->place_count[e->option], e->place_count);
    if (try_begin(s, r->form, e->option, e->place_count))
        return sl_fail(err, SL_INTERNAL, "restore: out of memory");
    int rc = take_all(s, r, e, err);
    if (!rc && request_hold(s, r, e->option, e->place))
        rc = sl_fail(err, SL_INTERNAL, "restore: out of memory");
    if (rc) {
        try_undo(s);
        return rc;
    }
    try_keep(s);
    calendar_occupy(s, r);
    for (uint32_t i = 0; i < r->place_count; i++)
        claims_drop_at(s, r->place[i].node);
    memset(r->taken, 1, r->place_count);
    tenant_charge(s, r, true);
    request_run(s, r, e->start_ms);
    r->restored = true;
    tags_wake(s, r->form);
    return 0;
}

int restore(struct sched *s, const struct sched_restore *e, struct sl_err *err)
{
    struct request *r;
    int rc = check(s, e, err);
    if (!rc)
        rc = request_create(s, &e->request, &r, err);
    if (rc)
        return rc;
    rc = settle_in(s, r, e, err);
    if (rc)
        request_forget(s, r);
    return rc;
}
