/*
 * The journal: what this node has granted, one JSON record a line, on disk
 * before anyone is told.
 *
 *   CRC32 LENGTH JSON\n      "9ae0daaf 41 {"kind":"lease","lease":{…}}"
 *
 * The last record about a thing is what holds.  A record is durable when
 * journal_append() returned 0; when it failed, the file is as it was before.
 * A torn last record (a crash in the middle of a write) is cut when the file is
 * opened and kept beside it as "journal.cut"; damage before the end is an
 * error, because good records follow it and nothing may guess what is lost.
 * A quarter of a megabyte of blocks is kept beyond the end, where the file system can: on a full disk
 * leases are still granted and ended.
 * One owner, one thread.
 */
#ifndef AGENT_JOURNAL_H
#define AGENT_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct journal;

/* Called for each record in order; an error from it ends the opening. */
typedef int journal_replay_fn(void *ctx, const json_t *record, struct sl_err *err);

/* Open or make it and replay.  *cut (may be NULL) is the number of bytes cut. */
int journal_open(const char *path, journal_replay_fn *replay, void *ctx,
                 struct journal **out, uint64_t *cut, struct sl_err *err);
void journal_close(struct journal *j);

/* Durable when it returns 0.  -SL_IO: nothing is written, and a later append may work; so
 * it is when the file would be too long to be read again. */
int journal_append(struct journal *j, const json_t *record, struct sl_err *err);

/* Mostly dead records: worth writing anew when only `live` of them matter. */
bool journal_wants_compaction(const struct journal *j, uint64_t live);

/* Replace the whole content by these records (an array, borrowed): new file, sync,
 * rename.  On failure the old one stays in use. */
int journal_compact(struct journal *j, const json_t *records, struct sl_err *err);

#endif
