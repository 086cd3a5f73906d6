/* The inside of the scheduler core, for the files of sched only. */
#ifndef SCHED_SCHED_IMPL_H
#define SCHED_SCHED_IMPL_H

#include "base/array.h"
#include "pool_impl.h"
#include "sched/sched.h"

/* What is asked, once for all requests that ask the same. */
struct form {
    struct form *next; /* in its hash chain */
    uint64_t hash;
    uint32_t refs, owner;
    uint32_t place_count[SCHED_MAX_OPTIONS]; /* asks of each option */
    /* 1 + the first group that no node could ever run; as of so many nodes */
    uint32_t impossible[SCHED_MAX_OPTIONS], known_nodes;
    struct sched_ties ties;
    bool tied; /* it has tags or ties */
    uint32_t option_count;
    struct sched_option option[];
};

/* What a line waits its turn for. */
enum turn { TURN_TRY, TURN_SEARCH, TURNS };

/* A heap of lines: priority, then age; room for each line of the tenant. */
struct turns {
    struct line **line;
    uint32_t count, room;
};

/* Requests that are the same to the scheduler, waiting in order of age. */
struct line {
    struct line *next; /* in its hash chain */
    struct form *form;
    uint32_t tenant, priority;
    bool preemptible;
    uint64_t min_run_ms, limit_ms;
    uint64_t rank; /* by the policy's order: lower goes first */
    uint32_t level;
    struct request *head, *tail;
    uint32_t turn_at[TURNS]; /* place in the tenant's heap of each, TURN_NOT */
    /* while parked */
    enum sched_verdict verdict;
    uint32_t blocked_by; /* the tenant whose limit bars a model, or TENANT_NONE */
    uint32_t option, group;
    bool unproven;
    struct claim *claim;    /* its head's planned place */
    uint64_t plan_after_ms; /* there was none: sought again then */
    bool searched; /* for victims, in vain; not again before a tick or another quota.
                    * Parked for room and not searched: it waits for its turn to be. */
    struct line *parked_next, *parked_prev;
    bool parked;
};

#define TURN_NOT    UINT32_MAX
#define TENANT_NONE UINT32_MAX

/* Who is on a node, or claims to be: a place of a lease, or of a claim. */
struct occupant {
    struct occupant *next, *prev;
    struct request *r;
    struct claim *claim;
    uint32_t place;
};

/* A planned place for the first of a line: it begins there when what is in its way has
 * ended, at start_ms at the latest if limits say so. */
struct claim {
    struct line *line;
    uint32_t option, place_count;
    struct pool_place *place;
    struct occupant *here; /* by place */
    uint64_t start_ms;
    enum sched_basis basis;
};

struct request {
    struct request *chain; /* by id */
    uint64_t id, age;      /* age: order of submission */
    struct form *form;
    struct line *line; /* while it waits */
    uint32_t tenant, priority;
    bool preemptible;
    uint64_t min_run_ms, start_ms;
    uint64_t work_ms, attained_ms;
    uint64_t limit_ms; /* 0: none */
    uint64_t submit_ms;
    enum sched_state state;
    bool restored; /* its places were given, not chosen */
    uint32_t option;
    uint32_t place_count;
    struct pool_place *place;
    uint64_t models;             /* that it holds something of */
    uint64_t *milli;             /* … how much, in their order */
    struct occupant *here;       /* by place: in the list of its node */
    struct request *next, *prev; /* in the line while pending */
    uint32_t lease_at;           /* among its tenant's leases while it runs */
    /* nominated */
    uint32_t missing; /* places not taken yet */
    uint8_t *taken;   /* by place */
    /* leaving: for whom, by which rule; its place in the order among so many candidates */
    uint64_t by;
    enum sched_rule by_rule;
    uint32_t by_place, by_among;
    uint64_t round;   /* of evictions: the nominated and who leaves for it */
    uint32_t leaving; /* for it, still there */
    bool chosen;      /* scratch of the search for victims */
};

/* For each model that the request holds something of: `m`, and `have` of it. */
#define FOR_EACH_HELD(r, m, have)                                                    \
    for (uint64_t left_ = (r)->models, at_ = 0, have = 0, m = 0;                     \
         left_ && (m = (uint64_t)__builtin_ctzll(left_), have = (r)->milli[at_], 1); \
         left_ &= left_ - 1, at_++)

#define QUOTAS (POOL_MAX_MODELS + 1)

/* One that runs, and what a search for victims asks first: side by side, as it asks all. */
struct lease {
    struct request *r;
    uint64_t goes_ms; /* when it may be evicted; UINT64_MAX: never */
    uint64_t models;
    uint32_t priority;
};

struct tenant {
    bool exists;
    uint32_t parent, depth;
    uint32_t weight;
    uint32_t first_child, next_sibling; /* 0: none (the root is nobody's child) */
    /* of itself and those below; [SCHED_ALL_MODELS] is of all, priced */
    uint64_t held_milli[QUOTAS];
    uint64_t deserved_milli[QUOTAS], limit_milli[QUOTAS];
    uint64_t past_price; /* their mean over the half-life, x 2^16 */
    uint64_t settled_ms;
    uint32_t turns_below[TURNS]; /* lines in turn */
    /* of itself */
    uint64_t own_price, own_past;
    uint32_t line_count;
    struct turns turn[TURNS];
    struct lease *lease; /* room for every request of the tenant */
    uint32_t lease_count, lease_room, request_count;
    uint64_t runs; /* leases that began */
    /* scratch of a tick */
    bool evicts_known;
    uint32_t evicts_from; /* this priority and above may evict something */
};

struct tag_cell; /* tags.c */
struct tag_step;

/* Who carries which tag where, and who is apart from it. */
struct tags {
    struct tag_cell *cell;
    uint32_t mask, count;
    uint32_t apart; /* demands in all */
    struct tag_step *step;
    uint32_t step_count, step_room;
};

struct learned;   /* learn.c */
struct victim;    /* evict.c */
struct candidate; /* within.c */
struct answer;    /* evict.c */
struct due;       /* claim.c */

/* A search counts its steps, of about 100 ns each; this many for an event.  One that took
 * more is paid by the next events, which seek less. */
#define SEARCH_STEPS 10000

/* A node that others wait for, or that is closed. */
struct node_hold {
    bool closed;                    /* by the operator */
    struct request *nominee;        /* who waits here; the node takes nothing else */
    uint32_t waiting;               /* places of it that are not free yet */
    struct occupant *lease, *claim; /* places of what runs, and of what is to */
    bool shut;                      /* scratch of planning */
};

struct sched {
    struct sched_policy policy;
    struct pool *pool;
    struct placer *placer;
    uint64_t now_ms, ages;
    struct tenant *tenant; /* SCHED_MAX_TENANTS */
    uint32_t tenant_count; /* one above the highest number in use */
    uint32_t price_permille[POOL_MAX_MODELS];
    uint64_t least_mem[POOL_MAX_MODELS]; /* of a device; UINT64_MAX: no such model */
    uint64_t all_models;                 /* those the pool has */
    struct request **request;            /* by id */
    uint32_t request_mask, request_count;
    struct form **form;
    struct line **line;
    struct line *parked;
    struct node_hold *hold; /* by node */
    uint32_t hold_room;
    struct learned *learned;
    /* the answer to an event */
    struct sched_decision *decision;
    uint32_t decision_count, decision_room;
    /* scratch */
    struct pool_place *gang; /* SCHED_MAX_GANG */
    struct victim *victim;
    uint32_t victim_room;
    struct candidate *candidate;
    uint32_t candidate_room;
    uint32_t steps; /* left to a search */
    struct claim *claim[SCHED_MAX_PROTECT];
    uint32_t claim_count, claim_turn;
    uint64_t claims_dropped;
    const struct request *placing; /* who may go to claimed nodes, if it leaves in time */
    struct due *due;
    uint32_t due_count, due_room;
    uint64_t plan_steps; /* left to planning at this tick */
    struct tags tags;
    uint64_t rounds; /* of evictions */
    bool gave_up;    /* it had too few */
    bool unproven;   /* … of an option that waits now */
    /* the search for victims */
    int64_t seek_steps;   /* left; below 0: owed */
    uint64_t gains, runs; /* room that came free, leases that began: times */
    uint64_t mature_ms;   /* of the last gathered: when more may go */
    struct answer *answer;
};

#define FORM_BUCKETS 4096
#define LINE_BUCKETS 4096

/* ---- tenant.c: the tree, what it holds and used, whose turn it is ---- */

int tenant_set(struct sched *s, const struct sched_tenant *t, struct sl_err *err);
int tenant_set_quota(struct sched *s, const struct sched_quota *q, struct sl_err *err);

/* Milli-devices of one device for the ask: the larger of its two parts. */
uint64_t ask_device_milli(const struct pool_ask *a, uint64_t device_mem_bytes);
/* … of all that is placed, by model. */
void place_milli(const struct sched *s, const struct form *f, uint32_t option,
                 const struct pool_place *place, uint64_t milli[POOL_MAX_MODELS]);
/* … at most, if the whole option went to this model. */
uint64_t option_milli(const struct sched *s, const struct sched_option *o, uint32_t model);

/* Milli-devices that it holds, each at the price of its model. */
uint64_t request_price(const struct sched *s, const struct request *r);
/* A tenant and all above it hold what the request has from now on, or no more. */
void tenant_charge(struct sched *s, const struct request *r, bool more);
/* The same without time that passes: only to see what would be then. */
void tenant_count(struct sched *s, const struct request *r, bool more);
/* Of these models, those of which it would hold no more than it deserves with the option,
 * however that is spread over them: by what it deserves of each, or of all together. */
uint64_t tenant_owed_models(const struct sched *s, uint32_t tenant,
                            const struct sched_option *o, uint64_t models);
/* Without what the request has, does it hold all that it deserves, of its models and of all? */
bool tenant_can_spare(const struct sched *s, uint32_t tenant, const struct request *r);
/* What it holds above what it deserves, of these models. */
uint64_t tenant_over(const struct sched *s, uint32_t tenant, uint64_t models);
/* Lines in turn, in the tenant and all above it. */
void tenant_turns(struct sched *s, uint32_t tenant, enum turn turn, int32_t more);
/* The line that is next by fair share; NULL: none waits for this turn. */
struct line *tenant_next(struct sched *s, enum turn turn);

/* Models on which the tenant and all above it may have this option, whole.
 * *blocked_by is whose limit bars another, TENANT_NONE if nobody's does; of several the
 * root, as whatever ends may then help. */
uint64_t tenant_models(const struct sched *s, uint32_t tenant, const struct sched_option *o,
                       uint32_t *blocked_by);
bool tenant_is_below(const struct sched *s, uint32_t tenant, uint32_t above);

/* ---- queue.c: forms, lines, requests by id ---- */

int queue_create(struct sched *s);
void queue_destroy(struct sched *s);

struct request *request_by_id(const struct sched *s, uint64_t id);
/* Checked and copied: a new request, known by its id, in no line. */
int request_create(struct sched *s, const struct sched_request *q, struct request **out,
                   struct sl_err *err);
/* … at the end of its line. */
int queue_submit(struct sched *s, const struct sched_request *q, struct sl_err *err);
/* Out of its line: it was placed or cancelled. */
void queue_leave(struct sched *s, struct request *r);
/* Back into its line, by its age. */
/* … for which this made room. */
int queue_prepare(struct sched *s, struct request *r);
void queue_return(struct sched *s, struct request *r);
/* To the line of its new priority, if it waits. */
int queue_set_priority(struct sched *s, const struct sched_priority *p, struct sl_err *err);
/* Not known any more; freed. */
void request_forget(struct sched *s, struct request *r);

void line_park(struct sched *s, struct line *l);
void line_wake(struct sched *s, struct line *l);
/* Lines that the node's free room could help. */
void queue_wake_node(struct sched *s, uint32_t node);
/* Lines of the tenant and those below it: its quota changed. */
void queue_wake_tenant(struct sched *s, uint32_t tenant);
/* Lines that a limit bars from a model, in the same branch of the tree: the tenant
 * holds less. */
void queue_wake_limited(struct sched *s, uint32_t tenant);
/* Lines that no node could run: there is a new one. */
void queue_wake_impossible(struct sched *s);
/* Lines for which more may be evicted now than when they were searched: they get their
 * turn again. */
void queue_seek_again(struct sched *s);
/* Victims were sought for it, in vain. */
void line_searched(struct sched *s, struct line *l);

/* Place in the policy's order, lower first; the level is its power of two, what
 * evictions go by. */
uint64_t service_rank(const struct sched *s, const struct request *r);
uint32_t service_level(const struct sched *s, const struct request *r);

/* ---- grant.c: placing all of an option ---- */

/* Find places for all asks of an option on these models, group by group, into
 * s->gang; they are taken, inside the caller's try.  -SL_NO_CAPACITY: *group has no
 * place. */
int gang_place(struct sched *s, const struct form *f, uint32_t option, uint64_t models,
               uint32_t *group);
/* … the same for asks of which models and devices are settled, on nodes that the filter
 * accepts (NULL: all). */
int gang_place_by(struct sched *s, const struct form *f, const struct sched_option *o,
                  const struct pool_ask *ask, const struct place_filter *filter,
                  uint32_t *group);
/* Does the option draw on what is lent above capacity?  It then holds nothing of a quota, makes
 * nobody go, and going would help nobody. */
static inline bool option_is_lower(const struct sched_option *o)
{
    return o->group[0].ask.lower;
}
/* The ask of a group, on these models only; false: none of them will do. */
bool group_ask(const struct sched *s, const struct sched_group *g, uint64_t models,
               struct pool_ask *out);
/* The ask of the i-th place of an option. */
const struct pool_ask *option_ask(const struct sched_option *o, uint32_t i);

/* Try a line's first request: it is granted, or the line parked. */
int line_try(struct sched *s, struct line *l);
/* Seek victims for a parked line's first request: it is nominated, or they are not
 * sought again before a tick. */
int line_search(struct sched *s, struct line *l);

/* The places are the request's; copied. */
int request_hold(const struct sched *s, struct request *r, uint32_t option,
                 const struct pool_place *place);
void request_let_go(struct request *r);
/* Among its tenant's leases, or not any more. */
void request_run(struct sched *s, struct request *r, uint64_t start_ms);
/* It runs with another priority. */
void lease_changed(struct sched *s, const struct request *r);
void request_stop(struct sched *s, struct request *r);

int decide_reserve(struct sched *s, uint32_t more);
void decide_grant(struct sched *s, const struct request *r);

/* ---- tags.c: who is with or apart from whom; trying on the pool and the tags ---- */

void tags_finish(struct tags *t);

/* As of the pool, with the tags.  `steps` includes the places of the form's option. */
int try_begin(struct sched *s, const struct form *f, uint32_t option, uint32_t steps);
void try_undo_to(struct sched *s, uint32_t mark);
void try_undo(struct sched *s);
void try_keep(struct sched *s);
void try_take(struct sched *s, const struct form *f, const struct pool_ask *a,
              const struct pool_place *at);
void try_give(struct sched *s, const struct form *f, const struct pool_ask *a,
              const struct pool_place *at);

/* Do its required ties let it go to the node, as tags are now?  A gang's own places do not
 * open a node that is barred. */
bool ties_may_hold(const struct sched *s, const struct form *f, uint32_t node);

/* placer_find(), by the form's ties; a filter has a list only. */
int ask_find(struct sched *s, const struct form *f, const struct pool_ask *a,
             const struct place_filter *filter, struct pool_place *out);
/* … for n asks beside each other. */
int bundle_find(struct sched *s, const struct form *f, const struct pool_ask *ask,
                uint32_t n, const struct place_filter *filter, struct pool_place *out);
/* Do the ties allow the node? */
bool ties_suit(struct sched *s, const struct form *f, const struct pool_ask *a,
               uint32_t node);
/* May a place of the form be there, beside who is? */
bool tags_allow(const struct sched *s, const struct form *f, const struct pool_place *at);
/* All its places count, or no more. */
void tags_hold(struct sched *s, const struct request *r, bool more);
/* Lines that wait for somebody like this to come or go. */
void tags_wake(struct sched *s, const struct form *f);
void tags_check(const struct sched *s);

int ties_check(const struct sched_ties *t, struct sl_err *err);
bool ties_equal(const struct sched_ties *a, const struct sched_ties *b);
uint64_t ties_hash(const struct sched_ties *t);

/* ---- within.c: a gang within one node, rack or zone ---- */

/* As gang_place_by(), within one vertex of the option's level. */
int within_place(struct sched *s, const struct form *f, const struct sched_option *o,
                 const struct pool_ask *ask, uint32_t *group);
/* Could one hold it if it were empty?  -SL_INTERNAL: no memory. */
int within_possible(struct sched *s, const struct sched_option *o, bool *possible,
                    uint32_t *group);
/* Do the places lie within one? */
bool within_holds(const struct sched *s, enum pool_level level,
                  const struct pool_place *place, uint32_t count);
/* The order in which places are given out (sched.h). */
void sort_ranks(const struct sched *s, const struct sched_option *o,
                struct pool_place *place);

/* What a node has, now or when empty. */
struct room {
    uint64_t host_mem_bytes;
    uint32_t cpu_milli, device_count;
    struct class_device device[POOL_MAX_DEVICES];
};

/* … in the class of the ask. */
void room_now(const struct pool *p, const struct pool_ask *a, uint32_t node,
              struct room *out);
void room_empty(const struct pool *p, const struct pool_ask *a, uint32_t node,
                struct room *out);
/* How many asks alike go there together, `most` at most.  Labels are not looked at. */
uint64_t asks_in(const struct pool *p, const struct room *r, const struct pool_ask *a,
                 uint64_t most);

/* ---- split.c: groups beside each other, devices over few nodes ---- */

/* Groups from g on that lie beside each other; 1: it is alone. */
uint32_t bundle_size(const struct sched_option *o, uint32_t g);
/* Devices for n asks, none twice, of those that are `ok` for each; the devices of their
 * places, unless NULL. */
bool bundle_match(const struct room *r, const struct pool_ask *ask, const uint32_t *ok,
                  uint32_t n, struct pool_place *out);
/* The group's devices, taken, to out[]. */
int split_place(struct sched *s, const struct form *f, const struct sched_group *g,
                const struct pool_ask *a, const struct place_filter *filter,
                struct pool_place *out);
/* Could each if all were empty?  Else *group. */
bool split_possible(struct sched *s, const struct form *f, const struct sched_option *o,
                    uint32_t *group);
int split_check(const struct sched_option *o, struct sl_err *err);

/* ---- evict.c: who must give way, and waiting until they have ---- */

int evict_create(struct sched *s);
void evict_destroy(struct sched *s);
/* Search victims for an option; if found they are told, and the request is nominated. */
int evict_for(struct sched *s, struct request *r, uint32_t option, bool *nominated);
/* Take what is free of a nominated request's places; grant it when that is all. */
int nomination_settle(struct sched *s, struct request *r);
/* Somebody told to go is gone, and has given all back: for whom? */
int nomination_left(struct sched *s, const struct request *v);
/* It will not come: give back what it took. */
void nomination_drop(struct sched *s, struct request *r);

/* ---- calendar.c: when what runs ends, and what is on a node when ---- */

struct ending {
    uint64_t ms; /* after now */
    enum sched_basis basis;
};

/* It ends by then, by its limit; UINT64_MAX: nobody knows. */
uint64_t calendar_bound(const struct request *r);
/* … if it starts then. */
uint64_t calendar_until(const struct request *r, uint64_t from_ms);
/* When it probably ends: by its limit, or its prediction, or as long again as it ran. */
struct ending calendar_ending(const struct sched *s, const struct request *r);

/* Its places, in the lists of their nodes. */
void calendar_occupy(struct sched *s, struct request *r);
void calendar_vacate(struct sched *s, struct request *r);
void calendar_enter(struct sched *s, struct claim *c);
void calendar_leave(struct sched *s, struct claim *c);

/* How other claims are seen. */
enum claims_seen {
    CLAIMS_PLANNED, /* as they are planned */
    CLAIMS_BEGUN,   /* … those of unknown start as if they began now: for new work */
    CLAIMS_FIRM,    /* only those of a start that is sure */
};

/* The first `count` places of an option; their own claim is not in their way. */
struct wanted {
    const struct sched_option *option;
    const struct pool_place *place;
    uint32_t count;
    const struct claim *self;
    enum claims_seen others;
};

uint64_t calendar_claim_ends(const struct sched *s, const struct claim *c);
bool calendar_overlaps(const struct sched *s, const struct claim *c, uint64_t from_ms,
                       uint64_t until_ms);
/* From then until then, do those of the places that are on this node have what they use, as
 * far as ends are trusted, beside what runs and what is claimed? */
bool calendar_holds(const struct sched *s, const struct wanted *w, uint32_t node,
                    uint64_t from_ms, uint64_t until_ms, enum sched_basis trust);
/* The earliest start for all; UINT64_MAX: never. */
uint64_t calendar_earliest(const struct sched *s, const struct wanted *w, uint64_t lasts_ms,
                           enum sched_basis trust);

/* ---- claim.c: planned places ---- */

void claims_finish(struct sched *s);
/* Those who wait too long claim; claims are reviewed. */
int claims_tick(struct sched *s);
/* When the line's first would start; nothing is recorded. */
int claim_estimate(struct sched *s, struct line *l, uint64_t *start_ms,
                   enum sched_basis *basis);
/* The line's claim, if it has one, is over. */
void claim_drop(struct sched *s, struct line *l);
void claims_drop_at(struct sched *s, uint32_t node);
/* Inside a try: place `at` of s->gang, for s->placing, on a claimed node. */
int claims_find(struct sched *s, const struct sched_option *o, const struct pool_ask *a,
                uint32_t at);
/* Inside a try: all places of its own claim, into s->gang; -SL_NO_CAPACITY: not yet. */
int claim_take(struct sched *s, const struct request *r, uint32_t option, uint64_t models);
/* Claimed nodes are open to whom their claims give way, and closed again. */
void claims_step_aside(struct sched *s, const struct request *r, bool reclaim);
void claims_step_back(struct sched *s);
void claims_check(const struct sched *s);

/* ---- tally.c: what leases add up to ---- */

void tally_check(const struct sched *s);

/* ---- relief.c: what would fit if others were gone ---- */

/* Of so many requests, by `lease`, how many must go, in this order, before the option may
 * fit on these models: fewer never suffice.  More than `count`: not even all. */
uint32_t relief_needed(struct sched *s, const struct form *f, uint32_t option,
                       uint64_t models, uint32_t count,
                       struct request *(*lease)(const struct sched *s, uint32_t i));

/* ---- restore.c: what runs already ---- */

int restore(struct sched *s, const struct sched_restore *e, struct sl_err *err);

/* ---- learn.c: what is asked, for placement ---- */

int learn_create(struct sched *s);
void learn_destroy(struct sched *s);
void learn(struct sched *s, const struct sched_request *q);

#endif
