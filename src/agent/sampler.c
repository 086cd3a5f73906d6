/* Owns the ring of samples of one slice and the share computed from it. */
#include "sampler.h"

#include <string.h>

#include "core/clock.h"

#define WINDOW_NS (10 * NS_PER_S)

void sampler_push(struct sampler *s, uint64_t now_ns, uint64_t held_ns,
                  uint64_t deliverable_ns)
{
    if (s->count > 0) {
        uint32_t last = (s->next + SAMPLER_ROOM - 1) % SAMPLER_ROOM;
        if (held_ns < s->sample[last].held_ns || now_ns < s->sample[last].now_ns ||
            deliverable_ns < s->sample[last].deliverable_ns)
            memset(s, 0, sizeof *s);
    }
    s->sample[s->next].now_ns = now_ns;
    s->sample[s->next].held_ns = held_ns;
    s->sample[s->next].deliverable_ns = deliverable_ns;
    s->next = (s->next + 1) % SAMPLER_ROOM;
    if (s->count < SAMPLER_ROOM)
        s->count++;
}

int32_t sampler_achieved_permille(const struct sampler *s)
{
    if (s->count < 2)
        return -1;
    uint32_t last = (s->next + SAMPLER_ROOM - 1) % SAMPLER_ROOM, first = last;
    /* the sample nearest to ten seconds back, not much beyond */
    for (uint32_t i = 1; i < s->count; i++) {
        uint32_t at = (last + SAMPLER_ROOM - i) % SAMPLER_ROOM;
        if (s->sample[last].now_ns - s->sample[at].now_ns > WINDOW_NS + NS_PER_S / 2)
            break;
        first = at;
    }
    uint64_t span = s->sample[last].now_ns - s->sample[first].now_ns;
    uint64_t deliverable = s->sample[last].deliverable_ns - s->sample[first].deliverable_ns;
    uint64_t held = s->sample[last].held_ns - s->sample[first].held_ns;
    if (span + NS_PER_S / 20 < NS_PER_S || deliverable == 0)
        return -1;
    uint64_t permille = (held * 1000 + deliverable / 2) / deliverable;
    return permille > 1000 ? 1000 : (int32_t)permille;
}
