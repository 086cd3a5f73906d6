/*
 * The run file `ledger`: what each client held, for the next broker to read
 * after this one was killed.
 *
 * A header and one fixed record per client index, mapped; written only by the
 * broker that holds broker.lock.  Each record has two copies with a sequence
 * and a checksum; a write goes to the older one, so that a kill -9 at any
 * instruction leaves at least one whole copy: the state before or after.
 * Amounts are bytes.  It need not survive the machine: pids do not either, and
 * a file of another boot is not read.
 */
#ifndef BROKER_RUNFILE_H
#define BROKER_RUNFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "ledger/ledger.h"

struct runfile_record {
    int32_t pid; /* 0: nobody */
    uint32_t uid;
    uint64_t start_ticks;
    uint64_t lease, epoch;
    uint64_t bytes[PROTO_MAX_SLOTS];
};

struct runfile {
    struct runfile_page *page; /* the mapping; NULL when closed */
    bool found;                /* a file of this boot was there */
    bool moved_aside;          /* ... one that we could not use, now `ledger.bad` */
};

/* Open or create `ledger` in directory `dir_fd` and map it.  A file that is not
 * ours, is of another version or size, or has a broken header is renamed to
 * `ledger.bad` and a new one is started.  -SL_IO when the disk is full. */
int runfile_open(struct runfile *f, int dir_fd, struct sl_err *err);
void runfile_close(struct runfile *f);

/* The newer whole copy of a record.  True with *out filled when it names a
 * process; *torn says that both copies were broken and something is lost. */
bool runfile_read(const struct runfile *f, uint32_t index, struct runfile_record *out,
                  bool *torn);

/* A zero pid clears it. */
void runfile_write(struct runfile *f, uint32_t index, const struct runfile_record *record);
void runfile_clear(struct runfile *f, uint32_t index);

#endif
