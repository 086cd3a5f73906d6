/*
 * How much of the run directory's file system the output of jobs may take: leases, the
 * ledger and, in /run, the whole machine need room there too.
 */
#ifndef OS_ROOM_H
#define OS_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct room {
    uint64_t total_bytes, free_bytes;
};

/* Of the file system of an open file; false where it does not say. */
bool room_look(int fd, struct room *out);

/* Below an eighth of it, at most 64 MiB, no log grows, and those of ended jobs go. */
bool room_is_short(const struct room *r);

/* What ended jobs may keep in all: a quarter of it, at most 1 GiB.  One user's: half of that. */
uint64_t room_for_ended(const struct room *r);

#endif
