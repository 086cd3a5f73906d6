/*
 * The broker as a program: parse the command line, then run until told to end.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

/* The whole life of `sluice-broker`; returns its exit status.  May be called
 * once in a process, from its only thread. */
int broker_main(int argc, char **argv);

#endif
