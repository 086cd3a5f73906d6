/* The command line of sluice-agent. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "agent.h"

/* -1: go on with *o; else the exit status, and everything was said.  Strings are argv's. */
int options_parse(int argc, char **argv, struct agent_options *o);

/* As the journal keeps those that say what is lent and how. */
json_t *options_to_json(const struct agent_options *o);

/* While leases of an earlier agent live, its options go on where *o was not given others. */
void options_take_over(struct agent_options *o, const json_t *earlier,
                       struct options_change *change);

#endif
