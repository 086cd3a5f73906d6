/*
 * The words between a shim and whoever started it, over --notify-fd: a
 * SEQPACKET socket, one short text a packet (docs/internals/jobs.md).
 *
 *   shim says    ready                 the program's process waits, in its group
 *                started MOUNT         it runs; how the front got in
 *                placement WHY         not by mount, though asked
 *                failed STATUS WHY     it could not be run; nothing is left
 *                stopped SIGNAL        it stopped
 *                continued             it runs again
 *                exited STATUS SIGNAL  it ended, by a signal or 0; orphans may still live
 *                lingering COUNT       that many do, after a second
 *                ending WHY            the job is being ended from outside
 *                done                  nothing of the job is left
 *   shim hears   signal NUMBER         for the program
 *                resumed               "continued" was understood
 *                hurry                 end the orphans now
 *
 * The peer may go away at any time; then words are dropped.  A bare pipe or
 * no descriptor at all is allowed: what cannot be said is not said.
 */
#ifndef AGENT_JOB_LINK_H
#define AGENT_JOB_LINK_H

#include <stdbool.h>
#include <stddef.h>

#define LINK_WORDS_SIZE 512

struct link {
    int fd; /* -1: nobody is there */
};

void link_say(struct link *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next packet, without waiting; false: none.  A peer that went away closes
 * the link. */
bool link_hear(struct link *l, char words[LINK_WORDS_SIZE]);
/* Has the peer gone?  Closes the link then. */
bool link_is_gone(struct link *l);
void link_close(struct link *l);

#endif
