/* A scheduler core fed by a log up to some event, for the commands that ask it something. */
#ifndef SIM_COMMAND_FEED_H
#define SIM_COMMAND_FEED_H

#include "sched/sched.h"
#include "sim/command.h"

struct feed {
    struct sched *sched;
    uint64_t events, now_ms; /* taken so far */
    uint64_t *id;            /* of all that was asked, ascending, each once */
    uint32_t id_count, id_room;
};

/* Up to event `upto`, or to the log's end (UINT64_MAX).  The caller frees it by _finish, also
 * after a failure. */
int feed_open(struct sim *sim, const char *path, uint64_t upto, struct feed *out,
              struct sl_err *err);
void feed_finish(struct feed *f);

/* --at of the command line, or all. */
uint64_t feed_upto(const struct sim_args *args);
/* "after event 12 at 1.500 s:" */
void feed_print_when(FILE *out, const struct feed *f);

#endif
