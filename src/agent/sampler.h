/*
 * What a slice, or all of a device, achieved: device time held against device time deliverable over
 * the last 10 s, from one sample a second.  Pure.
 */
#ifndef AGENT_SAMPLER_H
#define AGENT_SAMPLER_H

#include <stdint.h>

#define SAMPLER_ROOM 12 /* 10 s back and one more, for a late second */

struct sampler {
    struct {
        uint64_t now_ns, held_ns, deliverable_ns;
    } sample[SAMPLER_ROOM];
    uint32_t count, next;
};

/* Samples of one slice or device: the broker's clock, time held since the grant, and the device's
 * deliverable time.  Counters that went back (another broker) start it over. */
void sampler_push(struct sampler *s, uint64_t now_ns, uint64_t held_ns,
                  uint64_t deliverable_ns);

/* Permille of the deliverable time of the last 10 s; -1 until samples span 1 s. */
int32_t sampler_achieved_permille(const struct sampler *s);

#endif
