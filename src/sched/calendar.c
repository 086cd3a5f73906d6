/* The calendar: when what runs ends. */
#include "core/macros.h"
#include "sched_impl.h"

uint64_t calendar_bound(const struct request *r)
{
    if (!r->limit_ms || r->limit_ms > UINT64_MAX - r->start_ms)
        return UINT64_MAX;
    return r->start_ms + r->limit_ms;
}
