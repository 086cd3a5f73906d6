/*
 * sluice-probe: asks vendor libraries what is there, in a process that may hang
 * or die without harm.  One function per backend; each returns the JSON object
 * that is printed (owned by the caller), and never fails: what went wrong is
 * inside as "failed".
 */
#ifndef AGENT_PROBE_H
#define AGENT_PROBE_H

#include <jansson.h>

/* {"devices":[{"platform","name","vendor","driver","type","memory_bytes",
 *  "max_alloc_bytes","compute_units","clock_mhz","unified","pci","numa_node","failed"}],
 *  "note"}; what is unknown is absent. */
json_t *probe_opencl(void);

#endif
