/*
 * The ledger: what each lease holds of each device of this node – bytes and
 * device time – and the governor that hands out turns.
 *
 * Pure: (state, message, now) -> replies.  No clock, no I/O, no allocation
 * after ledger_init(), no globals.  One writer, one thread: the broker's
 * loop, or a test in virtual time.  The only memory it shares with others is
 * the `struct proto_slot` of each client, which it treats as hostile.
 *
 * These always hold between two calls:
 *   - committed + reserved <= limit for every slice, unless a shrink made the
 *     limit smaller (then nothing more is granted and over_bytes says how far);
 *   - the sum over leases <= capacity - reserve of the device;
 *   - no amount is ever negative: a free of more than is held is cut and counted;
 *   - a client that left holds nothing;
 *   - an exclusive device is held by one lease, except while a late holder
 *     has been passed over.
 * Amounts are bytes, times CLOCK_MONOTONIC nanoseconds, shares permille.
 * All functions return 0 or -SL_*.
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/ctl.h"

#define LEDGER_MAX_LEASES  1024
#define LEDGER_MAX_CLIENTS 4096

struct ledger;

/* The caller supplies the memory (ledger_size() bytes, zeroed, page aligned):
 * the broker maps it once, tests use the stack or the heap. */
size_t ledger_size(void);
struct ledger *ledger_init(void *memory);

/* ---- what should be -------------------------------------------------- */

struct ledger_device {
    uint64_t capacity_bytes, reserve_bytes;
    bool concurrent;  /* turns need not be exclusive */
    uint64_t turn_ns; /* base turn; 0: 10 ms */
};

/* Add or refresh device `index`. */
int ledger_set_device(struct ledger *l, uint32_t index, const struct ledger_device *d,
                      uint64_t now_ns);

struct ledger_lease {
    uint64_t number, epoch;
    enum proto_mode mode;
    uint32_t priority; /* 0..100 */
    uint64_t max_kernel_ns;
    uint32_t slice_count;
    struct proto_slice slice[PROTO_MAX_SLOTS];
};

/* Grant, restate or resize.  Growth holds at once; a shrink blocks new requests
 * at once and over_bytes[i] says how far slice i is above its new limit.
 * -SL_STALE for an older epoch; -SL_NO_CAPACITY where requests would exceed the
 * device (bytes or 1000 permille): then nothing changes. */
int ledger_set_lease(struct ledger *l, const struct ledger_lease *lease,
                     uint64_t over_bytes[PROTO_MAX_SLOTS], uint64_t now_ns);

/* End a lease: its clients get no more turns and no more bytes; what they hold
 * stays charged until they leave.  The record goes with the last client. */
int ledger_drop_lease(struct ledger *l, uint64_t number, uint64_t epoch, uint64_t now_ns);

/* ---- clients --------------------------------------------------------- */

/* A process of a lease.  `client` is the caller's index, 0..LEDGER_MAX_CLIENTS-1,
 * free before the call.  `page` is mapped by the caller, stays mapped until
 * ledger_leave(), and its slots are filled here (limits, mode).  On the index of
 * a suspect it takes over what that one committed; its open reservations are
 * void, as they are for the front that reconnects. */
int ledger_join(struct ledger *l, uint32_t client, uint64_t lease, struct proto_page *page,
                uint64_t now_ns);

/* A client known only from the run file after a restart: charged its record,
 * no page, no turns.  ledger_join() on the same index takes it over. */
int ledger_recover(struct ledger *l, uint32_t client, uint64_t lease,
                   const uint64_t committed_bytes[PROTO_MAX_SLOTS]);

/* Its socket closed while it lives: turn ends, growth is refused, bytes stay. */
void ledger_suspect(struct ledger *l, uint32_t client, uint64_t now_ns);

/* Its death was observed: everything returns. */
void ledger_leave(struct ledger *l, uint32_t client, uint64_t now_ns);

/* Bytes committed by one client on one slot (what the run file records). */
uint64_t ledger_client_bytes(const struct ledger *l, uint32_t client, uint32_t slot);

/* ---- memory ---------------------------------------------------------- */

/* All or nothing.  On success *reservation names it (never 0).
 * -SL_NO_CAPACITY at the limit, with *free_bytes what would be granted. */
int ledger_reserve(struct ledger *l, uint32_t client, uint32_t slot, uint64_t bytes,
                   uint64_t *reservation, uint64_t *free_bytes);
/* The allocator took `bytes` (<= reserved); the rest of the reservation returns.
 * More than reserved is -SL_INVALID and commits what was reserved. */
int ledger_commit(struct ledger *l, uint32_t client, uint64_t reservation, uint64_t bytes);
int ledger_abort(struct ledger *l, uint32_t client, uint64_t reservation);
/* Cut to what the client holds; returns -SL_INVALID when it had to cut. */
int ledger_free(struct ledger *l, uint32_t client, uint32_t slot, uint64_t bytes);

/* ---- time: the governor (docs/internals/governor.md) ------------------ */

/* A process asks for the turn / gives it back; `more` is a standing request. */
void ledger_want(struct ledger *l, uint32_t client, uint32_t slot, uint64_t now_ns);
void ledger_release(struct ledger *l, uint32_t client, uint32_t slot, bool more,
                    uint64_t now_ns);

/*
 * Let time pass: charge holders, take idle turns, pass over late holders, hand
 * out turns.  Call after every message batch and at the time returned.
 * Returns when it wants to be called next (UINT64_MAX: only on a message).
 * Clients whose page changed are listed by ledger_take_wakes(); the caller
 * wakes who sleeps on their pages' bells (futex).
 */
uint64_t ledger_run(struct ledger *l, uint64_t now_ns);

/* The next client to wake, or UINT32_MAX; each is returned once per change. */
uint32_t ledger_take_wake(struct ledger *l);

/* ---- views ------------------------------------------------------------ */

/* Fill one STAT answer from the first record at or after `cursor`; sets
 * m->cursor and m->more.  -SL_NOT_FOUND when there is none. */
int ledger_stat_device(struct ledger *l, uint64_t cursor, struct proto_ctl *m,
                       uint64_t now_ns);
int ledger_stat_lease(struct ledger *l, uint64_t cursor, struct proto_ctl *m,
                      uint64_t now_ns);

/* Lease number of a client; 0 if the index is free. */
uint64_t ledger_client_lease(const struct ledger *l, uint32_t client);

/* Epoch of a lease held here; 0 if unknown. */
uint64_t ledger_lease_epoch(const struct ledger *l, uint64_t number);

/* Abort the program (our own bug) if an invariant above does not hold; tests
 * call it after every step. */
void ledger_check(const struct ledger *l);

#endif
