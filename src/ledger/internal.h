/*
 * What the files of the ledger share: its records and the verbs between them.
 *
 * A lease has a share of each of its devices.  A client (one process) has a
 * seat at each share.  A turn belongs to the share; the seats that want it get
 * it together and the last one to give it back ends it.
 *
 * Balances are nanoseconds of device time times 1000 (so that income, permille
 * times nanoseconds, is exact); everything else is plain nanoseconds and bytes.
 */
#ifndef LEDGER_INTERNAL_H
#define LEDGER_INTERNAL_H

#include <stddef.h>

#include "core/clock.h"
#include "core/err.h"
#include "core/macros.h"
#include "ledger/ledger.h"

#define MAX_RESERVATIONS 16384
#define MAX_PER_CLIENT   256 /* reservations one client may have open */
#define NEVER            UINT64_MAX

#define TURN_NS         (10 * NS_PER_MS)
#define SHARE_WINDOW_NS (10 * NS_PER_S)  /* a turn is at most 2.5 % of a share of this */
#define LEAST_TURN_NS   (2 * NS_PER_MS)  /* of a holder that is cut for who is owed */
#define TAU_NS          (1 * NS_PER_MS)  /* how long a drained holder keeps the device */
#define TICK_NS         (20 * NS_PER_MS) /* how often one that is alone is looked at */
#define FLIGHT_NS       (2 * NS_PER_MS)
#define CALM_FLIGHT_NS  (6 * NS_PER_MS) /* ... of one that is alone and was so for CALM_NS */
#define CALM_NS         NS_PER_S
#define FLIGHT_ITEMS    2u
#define ACTIVE_MEMBERS  8u /* processes that hold a contended turn at once */
#define LATE_NS         (50 * NS_PER_MS)
#define REST_NS         NS_PER_S /* the longest predicted rest believed */
#define MAX_KERNEL_NS   (10 * NS_PER_S)
#define CREDIT_NS       NS_PER_S /* the most that a waiting lease piles up */

/* ---- lists: circular, the head is a link too -------------------------- */

struct link {
    struct link *prev, *next;
};

static inline void list_init(struct link *l)
{
    l->prev = l->next = l;
}
static inline bool list_empty(const struct link *l)
{
    return l->next == l;
}

static inline void list_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

static inline void list_append(struct link *head, struct link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

#define CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Walk a list whose current item may be removed by the body. */
#define EACH(var, head, type, member)                                  \
    for (type *var = CONTAINER((head)->next, type, member),            \
              *var##_next = CONTAINER(var->member.next, type, member); \
         &var->member != (head);                                       \
         var = var##_next, var##_next = CONTAINER(var->member.next, type, member))

/* ---- records ---------------------------------------------------------- */

enum seat_state {
    SEAT_IDLE,
    SEAT_WANTS, /* in share->wanting */
    SEAT_HOLDS, /* in share->granted: the page says HELD, or the client gave back */
    SEAT_LATE,  /* in share->late: passed over with work in flight */
};

struct seat {
    struct link member; /* of one of the share's lists; alone when idle */
    struct client *client;
    struct share *share;
    struct proto_slot *slot; /* hostile; NULL while there is no page */
    enum seat_state state;
    bool idle;           /* had nothing in flight when last looked at */
    bool wants_after;    /* asked while late */
    uint32_t idle_ticks; /* looks in a row at which it was idle, while alone */
    uint32_t unused;     /* turns in a row in which it submitted nothing */
    uint64_t looked_ns;  /* the last look */
    uint64_t idle_ns;    /* since when it is idle, as far as we believe it */
    uint64_t submitted;  /* the page's count at the last look */
    uint64_t submitted_at_grant;
    uint64_t back_ns; /* seen to be given back, the message is on its way; or 0 */
    uint64_t committed_bytes, reserved_bytes;
};

struct client {
    struct link member; /* of lease->clients */
    struct link wake;   /* of ledger->wakes; alone when nothing changed */
    struct link reservations;
    struct lease *lease; /* NULL: the index is free */
    struct proto_page *page;
    bool suspect;
    uint32_t reservation_count;
    struct seat seat[PROTO_MAX_SLOTS];
};

struct reservation {
    struct link member; /* of client->reservations, or the free list */
    struct client *client;
    uint32_t slot;
    uint32_t generation;
    uint64_t bytes;
};

/* A slice, as the ledger keeps it. */
struct share {
    struct link member; /* of device->shares */
    struct link queue;  /* of device->waiting, ->holders or ->lates; never of two */
    struct lease *lease;
    struct device *device;
    uint32_t index;
    uint32_t request, limit; /* permille */

    /* memory */
    uint64_t mem_request, mem_limit;
    uint64_t committed_bytes, reserved_bytes;
    bool over; /* a shrink or a recovered record left it above its limit */
    bool unpublished;
    uint64_t published_ns;
    uint64_t refused;

    /* the account; current as of synced_ns */
    uint64_t synced_ns, synced_deliverable;
    uint64_t held_ns, wait_ns, overrun_ns, turns;
    uint64_t vt;             /* held / weight, comparable within one device */
    int64_t request_balance; /* income request, cost what was held on it */
    int64_t limit_balance;   /* income limit; unused at 1000 permille */

    /* the turn */
    struct link wanting, granted, late;
    uint32_t granted_count, bound_members;
    bool calm;       /* the larger bound in flight is in force */
    bool waits;      /* in device->waiting */
    bool in_contest; /* waits and may be served */
    bool woke;       /* ... and had been idle before */
    bool away;       /* was idle or paused since it last competed */
    bool fresh;      /* entered the contest since the holder's terms were last looked at */
    bool holds;      /* in device->holders: charged */
    bool kept;       /* holds this device until its other devices are free */
    bool claims;     /* its sibling is kept: next here, whoever else waits */
    bool contended;  /* somebody waits */
    bool rivalled;   /* somebody waits for whom the turn must end */
    bool on_promise; /* the turn is charged to the request: it is not borrowed time */
    bool restate;    /* its terms must be said anew: turn began or limits changed */
    bool stuck;
    uint64_t begin_ns, deadline_ns, contended_ns;
    uint64_t turn_ns; /* length of the last turn that was granted beside a rival; or 0 */
    uint64_t busy_ns; /* when it was last seen at work */
    uint64_t look_ns; /* when to look at it next */

    /* counters of clients that left */
    uint64_t gone_kernels, gone_copies, gone_ungated, gone_longest_ns;
};

struct lease {
    struct link clients;
    uint64_t number, epoch;
    enum proto_mode mode;
    uint32_t priority;
    uint64_t max_kernel_ns;
    uint32_t client_count, slice_count;
    bool dropped;
    struct share share[PROTO_MAX_SLOTS];
};

struct device {
    bool present, concurrent;
    bool dirty;       /* something changed since the last run */
    bool gap;         /* nobody holds it although somebody could */
    uint64_t turn_ns; /* base turn */
    bool shrunk;      /* a smaller capacity or recovered records left it too full */
    uint64_t capacity_bytes, reserve_bytes;
    uint64_t used_bytes;     /* committed + reserved of all shares */
    uint64_t promised_bytes; /* sum of max(used, request) */
    struct link shares, waiting, holders, lates;
    uint64_t advanced_ns, deliverable_ns, gap_ns, held_ns, handoffs;
    uint64_t vt, besteffort_vt; /* of who was furthest behind at the last grant */
    uint64_t contest_ns;        /* when a lease last wanted it after another */
    uint64_t next_ns;           /* when it wants to be looked at again */
    const struct lease *last;
};

struct ledger {
    uint64_t
        lease_number[LEDGER_MAX_LEASES]; /* 0: free; apart, so that a search is short */
    struct link wakes, free_reservations;
    uint64_t now_ns;
    uint32_t device_count;
    uint64_t publish_ns; /* when the pages' memory figures are next brought up to date */
    struct device device[PROTO_MAX_DEVICES];
    struct lease lease[LEDGER_MAX_LEASES];
    struct client client[LEDGER_MAX_CLIENTS];
    struct reservation reservation[MAX_RESERVATIONS];
};

/* ---- table.c ----------------------------------------------------------- */

struct lease *lease_find(struct ledger *l, uint64_t number);
/* NULL for an index out of range or free. */
struct client *client_find(struct ledger *l, uint32_t client);
/* NULL also for a slot that the lease does not have. */
struct seat *seat_find(struct ledger *l, uint32_t client, uint32_t slot);
/* Put the client on the list of those to wake and ring its bell. */
void client_wake(struct ledger *l, struct client *c);

/* ---- memory.c ---------------------------------------------------------- */

static inline uint64_t share_used(const struct share *s)
{
    return s->committed_bytes + s->reserved_bytes;
}
/* Change what a seat holds, and the sums above it. */
void memory_adjust(struct ledger *l, struct seat *seat, uint64_t committed,
                   uint64_t reserved);
/* Restate a share's request and limit; keeps the device's sums. */
void memory_set_limits(struct ledger *l, struct share *s, uint64_t request, uint64_t limit);
/* Its open reservations return; what it has committed stays. */
void memory_void(struct ledger *l, struct client *c);
/* Everything the client holds returns, its reservations too. */
void memory_leave(struct ledger *l, struct client *c);
void memory_publish(struct ledger *l, struct share *s);
/* Bring pages up to date where it is time; returns when next. */
uint64_t memory_publish_due(struct ledger *l);

/* ---- account.c --------------------------------------------------------- */

static inline uint32_t share_weight(const struct share *s)
{
    return s->lease->mode == PROTO_BESTEFFORT || !s->request ? 1000 : s->request;
}
static inline uint64_t share_max_kernel_ns(const struct share *s)
{
    return s->lease->max_kernel_ns ? s->lease->max_kernel_ns : MAX_KERNEL_NS;
}
static inline bool share_is_capped(const struct share *s)
{
    return s->limit < 1000;
}
static inline bool share_is_besteffort(const struct share *s)
{
    return s->lease->mode == PROTO_BESTEFFORT;
}
static inline bool share_is_late(const struct share *s)
{
    return !list_empty(&s->late);
}

/* The turn on this device of the smallest of several leases, were it of this weight. */
uint64_t account_base_turn(const struct device *d, uint32_t weight);
/* Bring a device's deliverable clock to now. */
void account_advance(struct device *d, uint64_t now_ns);
/* Charge a share and pay its income up to now. */
void account_sync(struct share *s, uint64_t now_ns);
/* Take back the charge for the last `ns` of a turn in which it did nothing. */
void account_refund(struct share *s, uint64_t ns);
/* The virtual time of its device is that of the active lease furthest behind, and
 * never runs back. */
void account_note_virtual_time(struct share *s);
/* Called when it starts to compete: idling banks one turn at most. */
void account_return(struct share *s);
/* May it be served now?  All wanted shares of a spanning lease must agree. */
bool account_eligible(const struct share *s);
/* How long until it may, if nothing changes; 0 when it may. */
uint64_t account_pause_ns(const struct share *s);
/* Has it not yet had what its request promises? */
bool account_has_promise(const struct share *s);
/* Has its request been owed two turns and more? */
bool account_is_overdue(const struct share *s);

/* ---- turn.c ------------------------------------------------------------ */

void seat_init(struct seat *seat, struct client *c, struct share *s,
               struct proto_slot *slot);
/* Off every list, its turn taken; for a client that leaves or is suspect. */
void seat_retire(struct ledger *l, struct seat *seat, uint64_t now_ns);
/* From here on the share is charged; from turn_begin() on its seats may submit,
 * under the terms already in the share. */
void turn_hold(struct ledger *l, struct share *s, uint64_t now_ns);
void turn_begin(struct ledger *l, struct share *s, uint64_t now_ns);
/* Grant to seats that want, while the turn runs and has places. */
void turn_fill(struct ledger *l, struct share *s, uint64_t now_ns);
void turn_end(struct ledger *l, struct share *s, uint64_t now_ns);
/* Look at the holder's seats; may end the turn; sets s->look_ns. */
void turn_look(struct ledger *l, struct share *s, uint64_t now_ns);
/* Have late seats finished?  Returns when to look again. */
uint64_t turn_look_late(struct ledger *l, struct share *s, uint64_t now_ns);
/* Say deadline and contention to the seats, if they changed. */
void turn_set_terms(struct ledger *l, struct share *s, uint64_t deadline_ns, bool contended,
                    uint64_t now_ns);
/* Wait where a seat wants and nothing is in the way; else stop waiting. */
void share_requeue(struct share *s, uint64_t now_ns);

#endif
