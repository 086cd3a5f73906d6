/*
 * Answers of the API as structs.  Lists are owned by the caller (free).
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include "base/buf.h"
#include "cli/cli.h"
#include "model/device.h"
#include "model/lease.h"

/* Decode {"devices":[…]} and {"leases":[…]} ({"jobs":[…]} with key "jobs"). */
int decode_devices(const json_t *answer, struct device **out, size_t *count,
                   struct sl_err *err);
int decode_leases(const json_t *answer, const char *key, struct lease **out, size_t *count,
                  struct sl_err *err);

/* GET over cli->client, which is connected. */
int fetch_json(struct cli *cli, const char *path, json_t **out, struct sl_err *err);
int fetch_devices(struct cli *cli, struct device **out, size_t *count, struct sl_err *err);
int fetch_leases(struct cli *cli, bool all, struct lease **out, size_t *count,
                 struct sl_err *err);
int fetch_lease(struct cli *cli, const char *id, struct lease *out, struct sl_err *err);

/* Append `word` to a path so that it is one segment of it. */
void path_add_segment(struct buf *path, const char *word);

#endif
