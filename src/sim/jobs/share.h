/*
 * Who takes turns with whom on the same devices: our own rule, beside the scheduler core.
 *
 * The core leases whole devices.  A lease has a host, which the core knows, and may have
 * guests, which it does not: jobs of as many devices, at most MURI_MOST_PARTNERS with the
 * host.  A job that waits becomes the guest where the sum of the paces (an iteration alone /
 * the common one) rises most, if it rises by LEAST_GAIN; the one with the least service left
 * chooses first.
 */
#ifndef SIM_JOBS_SHARE_H
#define SIM_JOBS_SHARE_H

#include "policy.h"

struct share;

/* NULL when out of memory; share_destroy() takes NULL. */
struct share *share_create(const struct jobsim *sim);
void share_destroy(struct share *s);

/* The jobs in this state, guests alone or not, into job[] (room for all): the least remaining
 * service first, then the first that came. */
uint32_t share_list(struct share *s, const struct jobsim *sim, enum sim_job_state state,
                    bool guests, uint32_t *job);

/* Look again: what no host took may be taken now. */
void share_forget(struct share *s);
/* The host for a waiting job, or JOBSIM_NONE. */
uint32_t share_find(struct share *s, const struct jobsim *sim, uint32_t job);

/* In whose lease it runs or ran last: itself unless it was a guest. */
uint32_t share_host(const struct share *s, uint32_t job);
void share_set_host(struct share *s, uint32_t job, uint32_t host);

/* The guests of a host that run, into guest[] (room for MURI_MOST_PARTNERS). */
uint32_t share_guests(const struct share *s, const struct jobsim *sim, uint32_t host,
                      uint32_t *guest);

#endif
