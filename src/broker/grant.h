/*
 * What the agent says should be: devices, leases, anchors.  Each function
 * carries out one request of proto/ctl.h and returns its code; saying the same
 * again changes nothing.
 */
#ifndef BROKER_GRANT_H
#define BROKER_GRANT_H

#include "internal.h"

/* -SL_CONFLICT with PROTO_DEVICE_HELD and the holder in `m` where another
 * broker of this machine has it; without, where the index is another device
 * that is leased. */
int device_set(struct broker *b, struct proto_ctl *m, uint64_t now_ns);

/* Fills over_bytes of `m`.  Clients of the run file that waited for this lease
 * are charged, and their hellos answered. */
int grant_set(struct broker *b, struct proto_ctl *m, uint64_t now_ns);
int grant_anchor(struct broker *b, const struct proto_ctl *m, uint64_t now_ns);
int grant_drop(struct broker *b, const struct proto_ctl *m, uint64_t now_ns);

#endif
