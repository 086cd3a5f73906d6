/*
 * The shim: the parent of one job's program.
 *
 * A process group of its own in the caller's session (its own session with
 * `detach`); all signals blocked and read from a descriptor, so that nothing
 * typed at the terminal reaches it.  It starts the program, passes stops and
 * signals on, keeps the log, waits for orphans, writes status.json and tells the
 * agent.  It outlives its starter and the agent; SIGTERM ends the job.
 */
#ifndef AGENT_JOB_SHIM_H
#define AGENT_JOB_SHIM_H

/* sluice-shim --spec-fd N [--notify-fd M] [-- PROGRAM ARGUMENT…]
 * Returns the exit status of the process: the program's, or 125. */
int shim_main(int argc, char **argv);

#endif
