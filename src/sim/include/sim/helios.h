/*
 * How full the virtual clusters of one installation were over time (Helios, SC 2021):
 * time,vc,total_gpu_num,running_gpu_num,pending_gpu_num,running_gpujob_num,
 * pending_gpujob_num.
 */
#ifndef SIM_HELIOS_H
#define SIM_HELIOS_H

#include <stdint.h>

#include "core/err.h"
#include "sim/names.h"
#include "sim/text.h"

struct helios_sample {
    uint64_t time_s; /* since 1970, taken for UTC */
    uint32_t vc;     /* in vcs */
    uint32_t total_gpus, running_gpus;
    uint32_t pending_gpus; /* asked for by jobs in the queue */
    uint32_t running_jobs, pending_jobs;
    uint32_t line;
};

/* In the order of the file; the samples of each cluster ascend in time.  At least one;
 * the caller frees by _finish. */
struct helios {
    struct helios_sample *samples;
    uint32_t count;
    struct names vcs;
};

int helios_read(const struct text *text, struct helios *out, struct sl_err *err);
void helios_finish(struct helios *h);

#endif
