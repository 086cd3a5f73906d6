/*
 * From the options of `run` and `submit` to a lease request, and what is said of
 * the lease that comes back.
 */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cli/cli.h"
#include "model/lease.h"

/* Checked and complete; values that only the agent can judge stay unjudged. */
int request_from_args(const struct cli_args *args, struct lease_request *out,
                      struct sl_err *err);

/* Program and arguments in one line, for people: cut to what a lease keeps, bytes
 * that are not UTF-8 replaced.  NULL when out of memory. */
json_t *request_command(char *const *argv);

/* 0, or 126 or 127 with what a shell would say of such a program, said: before anything is
 * asked for it.  What happens to the file later is the shim's to tell. */
int request_refuse_program(struct cli *cli, const struct cli_args *args);

/* "L7 on pocl-…: memory 512 MiB, compute 30%, mode hard, grade memory=front
 * time=front", to stderr unless quiet. */
void request_echo(struct cli *cli, const struct lease *l);

/* That nothing can compute in it, where that is so. */
void request_warn(struct cli *cli, const struct lease *l);

/* Ask for the lease.  With --wait, first without waiting, so that what it waits for
 * can be said.  *problem as client_call(). */
int request_lease(struct cli *cli, const struct lease_request *q, json_t *command,
                  json_t **answer, json_t **problem, struct sl_err *err);

/* POST with ?dry_run=1 and print the plan, or what it would wait for; the exit status.
 * `queues`: it stands behind those who wait, as a submitted job does; else it takes what is
 * free first, as request_lease(). */
int request_dry_run(struct cli *cli, const struct lease_request *q, json_t *command,
                    bool queues);

/* Refuse to run inside a lease of the same agent: -SL_CONFLICT.  By the variable
 * and by ancestry, each confirmed by the agent. */
int request_refuse_nested(struct cli *cli, struct sl_err *err);

#endif
