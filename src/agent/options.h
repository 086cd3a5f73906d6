/* The command line of sluice-agent. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "agent.h"

/* -1: go on with *o; else the exit status, and everything was said.  Strings are argv's. */
int options_parse(int argc, char **argv, struct agent_options *o);

#endif
