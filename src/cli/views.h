/*
 * Tables of devices, leases and jobs as people see them.  Pure: what is given
 * is printed to cli->out.
 */
#ifndef CLI_VIEWS_H
#define CLI_VIEWS_H

#include "cli/cli.h"
#include "model/device.h"
#include "model/lease.h"

void view_devices(struct cli *cli, const struct device *devices, size_t count);
void view_leases(struct cli *cli, const struct lease *leases, size_t count);
void view_jobs(struct cli *cli, const struct lease *jobs, size_t count);

/* "512 MiB", or "-" for what is unknown. */
const char *format_bytes(uint64_t bytes, char out[32]);
/* "512 MiB..2 GiB", each formatted by `one`; the first alone where the second is no more. */
const char *format_range(uint64_t request, uint64_t limit,
                         const char *(*one)(uint64_t bytes, char out[32]), char out[72]);
/* One word where memory and time are held alike, else "memory/time". */
const char *format_grades(const struct grades *g, char out[32]);
/* Held above the limit after a shrink; 0 where nobody knows. */
uint64_t slice_over_bytes(const struct lease_slice *s);
/* The lease's name, or "-". */
const char *lease_display_name(const struct lease *l);

#endif
