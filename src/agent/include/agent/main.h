/*
 * The agent as a program.
 */
#ifndef AGENT_MAIN_H
#define AGENT_MAIN_H

/* The whole life of `sluice-agent`; returns its exit status.  Once in a process. */
int agent_main(int argc, char **argv);

#endif
