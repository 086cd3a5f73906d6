/* Owns the choice of devices for a request on one machine, and the reasons when there is
 * none. */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"
#include "model/units.h"

/* Why a device is not taken, mildest first: the binding cause of a refusal is the one that
 * the most hopeful device gave. */
enum obstacle {
    FITS,
    NO_COMPUTE_NOW,
    NO_MEMORY_NOW,
    NO_LIMIT_NOW,
    SPANNED,
    OTHER_TENANT,
    TOO_SMALL,
    NOT_OK,
    FILTERED,
};

static const struct {
    const char *cause, *sentence;
    bool never;
} obstacles[] = {
    [FITS] = { "devices", "fewer devices fit than were asked for", false },
    [NO_COMPUTE_NOW] = { "compute", "not enough compute is free on any device", false },
    [NO_MEMORY_NOW] = { "memory", "not enough memory is free on any device", false },
    [NO_LIMIT_NOW] = { "memory",
                       "the memory limits of all leases on a device would exceed it",
                       false },
    [SPANNED] = { "spanning",
                  "too few devices are free of a lease on several: a device can be in only "
                  "one such lease",
                  false },
    [OTHER_TENANT] = { "tenancy",
                       "the device is lent to another user, and two share one only if "
                       "whoever runs the agent allows it",
                       false },
    [TOO_SMALL] = { "memory", "no device is that large, even when empty", true },
    [NOT_OK] = { "state", "no device is in order", false },
    [FILTERED] = { "filter", "no device has that name", true },
};

/* How a name fits a device, the exact ways first. */
enum naming { BY_ID, BY_INDEX, BY_MODEL, BY_PART, NOT_NAMED };

static enum naming naming_of(const struct device *d, const char *name)
{
    if (!*name || strcmp(name, d->id) == 0)
        return BY_ID;
    if (name[strspn(name, "0123456789")] == '\0') /* in a name it would be by chance */
        return strtoul(name, NULL, 10) == d->index ? BY_INDEX : NOT_NAMED;
    if (strcasecmp(name, d->model) == 0)
        return BY_MODEL;
    return strcasestr(d->id, name) || strcasestr(d->model, name) ? BY_PART : NOT_NAMED;
}

enum sl_code place_named(const struct device *devices, uint32_t count, const char *name,
                         bool *named)
{
    enum naming best = NOT_NAMED;
    const char *model = NULL;
    bool alike = true;
    for (uint32_t i = 0; i < count; i++) {
        enum naming n = naming_of(&devices[i], name);
        best = n < best ? n : best;
    }
    for (uint32_t i = 0; i < count; i++) {
        named[i] = best != NOT_NAMED && naming_of(&devices[i], name) == best;
        if (!named[i])
            continue;
        alike &= !model || strcasecmp(model, devices[i].model) == 0;
        model = devices[i].model;
    }
    if (best == NOT_NAMED)
        return SL_NOT_FOUND;
    return best == BY_PART && !alike ? SL_INVALID : SL_OK;
}

/* After a shrink that is not met yet, what is still held cannot be promised to another. */
static uint64_t taken_bytes(const struct lease_slice *s)
{
    if (s->mem_over_bytes == UNKNOWN_U64 || s->mem_over_bytes == 0)
        return s->mem_request_bytes;
    return max_u64(s->mem_request_bytes, s->mem_limit_bytes + s->mem_over_bytes);
}

static void add_held(struct place_use *u, const struct lease *l,
                     const struct lease_slice *s)
{
    if (s->mem_used_bytes == UNKNOWN_U64)
        return;
    uint64_t above = sub_sat_u64(s->mem_used_bytes, taken_bytes(s));
    u->mem_above_bytes += above;
    if (above > u->borrower_bytes) {
        u->borrower = l;
        u->borrower_bytes = above;
    }
}

void place_sum(const struct device *devices, uint32_t count,
               const struct lease *const *leases, uint32_t lease_count,
               const struct lease *except, struct place_use *use)
{
    memset(use, 0, count * sizeof *use);
    for (uint32_t i = 0; i < lease_count; i++) {
        const struct lease *l = leases[i];
        if (l == except || (l->state != LEASE_ACTIVE && l->state != LEASE_DRAINING))
            continue;
        for (uint32_t s = 0; s < l->slice_count; s++) {
            uint32_t d = 0;
            while (d < count && strcmp(devices[d].id, l->slice[s].device) != 0)
                d++;
            if (d == count)
                continue; /* a device that is gone */
            struct place_use *u = &use[d];
            u->mixed |= u->lease_count > 0 && u->uid != l->uid;
            u->uid = l->uid;
            u->lease_count++;
            u->spanned |= l->slice_count > 1;
            u->permille += l->slice[s].compute_request_permille;
            u->mem_request_bytes += taken_bytes(&l->slice[s]);
            u->mem_limit_bytes += l->slice[s].mem_limit_bytes;
            add_held(u, l, &l->slice[s]);
        }
    }
}

void place_slice_ask(const struct lease_request *q, struct lease_slice *out)
{
    memset(out, 0, sizeof *out);
    out->mem_request_bytes = q->mem_request_bytes;
    out->mem_limit_bytes = max_u64(q->mem_limit_bytes, q->mem_request_bytes);
    out->compute_request_permille =
        q->mode == LEASE_BESTEFFORT ? 0 : q->compute_request_permille;
    out->compute_limit_permille = q->compute_limit_permille;
    out->mem_used_bytes = out->mem_over_bytes = UNKNOWN_U64;
    out->achieved_permille_10s = -1;
}

void place_slice_fill(const struct device *d, const struct lease_request *q,
                      struct lease_slice *out)
{
    place_slice_ask(q, out);
    snprintf(out->device, sizeof out->device, "%s", d->id);
    out->device_index = d->index;
    if (!q->mem_request_bytes)
        out->mem_request_bytes = device_lendable_bytes(d);
    out->mem_limit_bytes = max_u64(q->mem_limit_bytes, out->mem_request_bytes);
}

static uint64_t limit_room(const struct device *d, const struct place_policy *p)
{
    if (p->mem_overcommit_permille <= 1000)
        return device_lendable_bytes(d);
    return (uint64_t)((unsigned __int128)d->memory_bytes * p->mem_overcommit_permille /
                      1000);
}

/* For requests. */
static uint64_t free_bytes(const struct device *d, const struct place_use *use)
{
    return sub_sat_u64(device_lendable_bytes(d),
                       use->mem_request_bytes + use->mem_above_bytes);
}

static uint64_t free_limit_bytes(const struct device *d, const struct place_use *use,
                                 const struct place_policy *p)
{
    return sub_sat_u64(limit_room(d, p), use->mem_limit_bytes);
}

static enum obstacle slice_obstacle(const struct device *d, const struct place_use *use,
                                    const struct lease_slice *s,
                                    const struct place_policy *p)
{
    if (s->mem_request_bytes > device_lendable_bytes(d) ||
        s->mem_limit_bytes > limit_room(d, p))
        return TOO_SMALL;
    if (s->mem_request_bytes > free_bytes(d, use))
        return NO_MEMORY_NOW;
    if (s->mem_limit_bytes > free_limit_bytes(d, use, p))
        return NO_LIMIT_NOW;
    if (s->compute_request_permille > sub_sat_u64(1000, use->permille))
        return NO_COMPUTE_NOW;
    return FITS;
}

bool place_slice_fits(const struct device *d, const struct place_use *use,
                      const struct lease_slice *s, const struct place_policy *p,
                      const char **cause)
{
    enum obstacle o = slice_obstacle(d, use, s, p);
    *cause = obstacles[o].cause;
    return o == FITS;
}

/* The one-tenant rule holds where nothing but a library in the program keeps them apart. */
static bool tenancy_forbids(const struct device *d, const struct place_use *use,
                            uint32_t uid)
{
    return use->lease_count > 0 && (use->mixed || use->uid != uid) && !d->share_tenants &&
           d->grades.memory <= GRADE_FRONT;
}

static enum obstacle find_obstacle(const struct device *d, const struct place_use *use,
                                   const struct lease_request *q, uint32_t uid,
                                   const struct place_policy *p)
{
    if (d->state != DEVICE_OK)
        return NOT_OK;
    struct lease_slice s;
    place_slice_fill(d, q, &s);
    enum obstacle o = slice_obstacle(d, use, &s, p);
    if (o == TOO_SMALL)
        return o;
    if (tenancy_forbids(d, use, uid))
        return OTHER_TENANT;
    if (q->slice_count > 1 && use->spanned)
        return SPANNED;
    return o;
}

/* What stays unused beside the slice, in thousandths of the device, both dimensions added:
 * the less, the better the fit.  Real devices before emulated ones, which run nothing. */
static uint64_t leftover(const struct device *d, const struct place_use *use,
                         const struct lease_request *q)
{
    struct lease_slice s;
    place_slice_fill(d, q, &s);
    uint64_t lendable = max_u64(device_lendable_bytes(d), 1);
    uint64_t bytes = sub_sat_u64(free_bytes(d, use), s.mem_request_bytes);
    uint64_t permille = sub_sat_u64(1000, use->permille + s.compute_request_permille);
    return (uint64_t)((unsigned __int128)bytes * 1000 / lendable) + permille +
           (d->emulated ? 1000000 : 0);
}

static void measure_free(const struct device *devices, const struct place_use *use,
                         uint32_t count, const struct lease_request *q, uint32_t uid,
                         const struct place_policy *p, const bool *named,
                         struct place_verdict *v)
{
    v->largest_free_device = -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct device *d = &devices[i];
        if (!named[i] || d->state != DEVICE_OK)
            continue;
        v->largest_lendable_bytes =
            max_u64(v->largest_lendable_bytes, device_lendable_bytes(d));
        if (tenancy_forbids(d, &use[i], uid))
            continue;
        uint64_t limit = free_limit_bytes(d, &use[i], p);
        uint64_t bytes = min_u64(free_bytes(d, &use[i]), limit);
        uint32_t permille = (uint32_t)sub_sat_u64(1000, use[i].permille);
        v->total_free_bytes += bytes;
        if (v->largest_free_device < 0 || bytes > v->largest_free_bytes) {
            v->largest_free_bytes = bytes;
            v->largest_free_device = (int32_t)i;
        }
        if (permille > v->largest_free_permille)
            v->largest_free_permille = permille;
        if (permille >= q->compute_request_permille && bytes > v->largest_slice_bytes &&
            !(q->slice_count > 1 && use[i].spanned)) {
            v->largest_slice_bytes = bytes;
            v->largest_limit_bytes = limit;
        }
    }
}

static void explain_state(const struct device *devices, uint32_t count, const bool *named,
                          struct place_verdict *v)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct device *d = &devices[i];
        if (d->state == DEVICE_OK || !named[i])
            continue;
        snprintf(v->why, sizeof v->why, "%s is %s: %.110s", d->id,
                 device_state_name(d->state), d->why);
        return;
    }
    snprintf(v->why, sizeof v->why, "this machine has no device; sluice doctor says why");
}

/* A device that another broker holds is asked for again and again; nothing repairs one. */
static bool may_come_back(const struct device *devices, uint32_t count, const bool *named)
{
    for (uint32_t i = 0; i < count; i++)
        if (devices[i].state == DEVICE_HELD && named[i])
            return true;
    return false;
}

/* Who of those named holds most above its request: what nobody was promised is gone. */
static void explain_borrower(const struct place_use *use, uint32_t count, const bool *named,
                             char *out, size_t size)
{
    const struct place_use *most = NULL;
    char text[32];
    for (uint32_t i = 0; i < count; i++)
        if (named[i] && use[i].borrower &&
            (!most || use[i].borrower_bytes > most->borrower_bytes))
            most = &use[i];
    if (most)
        snprintf(out, size, " (%.24s holds %s above its request)", most->borrower->name,
                 units_format_size_human(most->borrower_bytes, text));
}

static void format_wanted(const struct lease_request *q, char *out, size_t size)
{
    char request[32], limit[32];
    snprintf(out, size, "a whole device");
    if (q->mem_request_bytes)
        snprintf(out, size, "%s", units_format_size_human(q->mem_request_bytes, request));
    if (q->mem_request_bytes && q->mem_limit_bytes > q->mem_request_bytes)
        snprintf(out, size, "%s..%s", request,
                 units_format_size_human(q->mem_limit_bytes, limit));
}

/* What was asked, and what there is: when empty, where that is too little, and now. */
static void explain_room(const struct lease_request *q, enum obstacle o,
                         const char *sentence, struct place_verdict *v)
{
    char want[80], lendable[64] = "", size[32], total[32];
    format_wanted(q, want, sizeof want);
    if (o == TOO_SMALL)
        snprintf(lendable, sizeof lendable, "the largest can lend %s; ",
                 units_format_size_human(v->largest_lendable_bytes, size));
    snprintf(v->why, sizeof v->why,
             "%s: asked %u x %s and %.1f %%; %son one device at most %s and %.1f %% are "
             "free, in all %s",
             sentence, q->slice_count, want, q->compute_request_permille / 10.0, lendable,
             units_format_size_human(v->largest_free_bytes, size),
             v->largest_free_permille / 10.0,
             units_format_size_human(v->total_free_bytes, total));
}

/* Some have room, and not enough of them: what is free on one is not what is short. */
static void explain_few(const struct lease_request *q, enum obstacle o,
                        struct place_verdict *v)
{
    char want[80];
    format_wanted(q, want, sizeof want);
    snprintf(v->why, sizeof v->why,
             "only %u device%s %s room for a slice now, and %u are asked for: %u x %s and "
             "%.1f %%; in the way on others: %s",
             v->fitting, v->fitting == 1 ? "" : "s", v->fitting == 1 ? "has" : "have",
             q->slice_count, q->slice_count, want, q->compute_request_permille / 10.0,
             obstacles[o].cause);
}

static void refuse(const struct device *devices, const struct place_use *use,
                   uint32_t count, const struct lease_request *q, uint32_t uid,
                   const struct place_policy *policy, const bool *named,
                   const enum obstacle *found, struct place_verdict *v)
{
    enum obstacle mildest = count ? FILTERED : NOT_OK;
    uint32_t possible = 0;
    for (uint32_t i = 0; i < count; i++) {
        v->fitting += found[i] == FITS;
        if (found[i] < mildest && found[i] != FITS)
            mildest = found[i];
        possible += found[i] < TOO_SMALL;
    }
    if (mildest == FILTERED && v->fitting > 0)
        mildest = FITS;
    measure_free(devices, use, count, q, uid, policy, named, v);
    v->code = mildest == FILTERED ? SL_NOT_FOUND : SL_NO_CAPACITY;
    v->cause = obstacles[mildest].cause;
    v->never = obstacles[mildest].never;
    if (mildest != FILTERED && mildest != NOT_OK && possible < q->slice_count) {
        v->never = true;
        if (possible > 0)
            v->cause = "devices";
    }

    if (mildest == NOT_OK) {
        v->never = !may_come_back(devices, count, named);
        explain_state(devices, count, named, v);
        return;
    }
    if (mildest == FILTERED) {
        snprintf(v->why, sizeof v->why, "no device is called \"%s\"", q->device);
        return;
    }
    if (v->fitting > 0 && !v->never) {
        explain_few(q, mildest, v);
        return;
    }
    char sentence[160];
    snprintf(sentence, sizeof sentence, "%s",
             v->never && possible > 0 ? "this machine has too few devices for that"
                                      : obstacles[mildest].sentence);
    if (mildest == NO_MEMORY_NOW) {
        size_t n = strlen(sentence);
        explain_borrower(use, count, named, sentence + n, sizeof sentence - n);
    }
    explain_room(q, mildest, sentence, v);
}

void place_find(const struct device *devices, const struct place_use *use, uint32_t count,
                const struct lease_request *q, uint32_t uid,
                const struct place_policy *policy, struct place_verdict *out)
{
    memset(out, 0, sizeof *out);
    out->cause = "";
    out->largest_free_device = -1;
    enum obstacle found[64] = { 0 };
    bool taken[64] = { false }, named[64];
    if (count > 64)
        count = 64;
    if (place_named(devices, count, q->device, named) == SL_INVALID) {
        out->code = SL_INVALID;
        out->cause = obstacles[FILTERED].cause;
        out->never = true;
        snprintf(out->why, sizeof out->why, "\"%s\" names devices of several models",
                 q->device);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        found[i] =
            named[i] ? find_obstacle(&devices[i], &use[i], q, uid, policy) : FILTERED;

    for (uint32_t s = 0; s < q->slice_count; s++) {
        uint32_t best = count;
        for (uint32_t i = 0; i < count; i++)
            if (found[i] == FITS && !taken[i] &&
                (best == count || leftover(&devices[i], &use[i], q) <
                                      leftover(&devices[best], &use[best], q)))
                best = i;
        if (best == count) {
            refuse(devices, use, count, q, uid, policy, named, found, out);
            return;
        }
        taken[best] = true;
        out->device[s] = best;
    }
}

static void suggest(json_t *list, const char *text)
{
    json_array_append_new(list, json_string(text));
}

/* Those that a name may mean; of one that fits none, all. */
static void suggest_devices(json_t *list, const struct device *devices, uint32_t count,
                            const char *name)
{
    bool named[64];
    char text[sizeof devices->id + sizeof devices->model + 4];
    bool any = place_named(devices, min_u64(count, 64), name, named) != SL_NOT_FOUND;
    for (uint32_t i = 0; i < count && i < 64; i++) {
        if (any && !named[i])
            continue;
        snprintf(text, sizeof text, "%s  %s", devices[i].id, devices[i].model);
        suggest(list, text);
    }
}

static void suggest_size(json_t *list, const struct place_verdict *v,
                         const struct lease_request *q)
{
    char text[160], size[32], limit[32] = "";
    uint64_t mem = v->largest_slice_bytes / MIB * MIB;
    uint64_t most = v->largest_limit_bytes / MIB * MIB;
    uint64_t want = q->mem_request_bytes ? q->mem_request_bytes : UINT64_MAX; /* all */
    bool shorten = q->mem_limit_bytes > q->mem_request_bytes && q->mem_limit_bytes > most;
    if (mem == 0 || (mem >= want && !shorten))
        return;
    if (shorten)
        units_format_size(most, limit);
    if (mem < want)
        snprintf(text, sizeof text, "--mem %s%s%s fits now on one device",
                 units_format_size(mem, size), shorten ? " --mem-limit " : "", limit);
    else
        snprintf(text, sizeof text, "--mem-limit %s fits now on one device", limit);
    suggest(list, text);
}

/* What the caller could ask instead, from what is free now. */
static json_t *alternatives(const struct place_verdict *v, const struct device *devices,
                            uint32_t count, const struct lease_request *q)
{
    json_t *list = json_array();
    char text[160], size[32], part[32];
    bool memory = strcmp(v->cause, "memory") == 0;
    if (v->fitting > 0) {
        snprintf(text, sizeof text, "--devices %u fits now", v->fitting);
        suggest(list, text);
    } else {
        suggest_size(list, v, q);
    }
    if (memory && q->slice_count == 1 && v->largest_slice_bytes > 0 &&
        q->mem_request_bytes > v->largest_slice_bytes &&
        q->mem_request_bytes <= v->total_free_bytes) {
        uint64_t n =
            (q->mem_request_bytes + v->largest_slice_bytes - 1) / v->largest_slice_bytes;
        if (n <= count && n <= LEASE_MAX_SLICES) {
            snprintf(
                text, sizeof text,
                "more devices: %llu x %s, if the program can split its work "
                "(devices are not one memory)",
                (unsigned long long)n,
                units_format_size((q->mem_request_bytes / n + MIB - 1) / MIB * MIB, part));
            suggest(list, text);
        }
    }
    if (strcmp(v->cause, "compute") == 0 && v->largest_free_permille > 0) {
        snprintf(
            text, sizeof text, "--compute %s is free on one device",
            units_format_share(v->largest_free_permille, v->largest_free_permille, size));
        suggest(list, text);
    }
    if (strcmp(v->cause, "compute") == 0 && q->mode != LEASE_BESTEFFORT)
        suggest(list, "--mode besteffort takes only idle time and needs none to be free");
    if (!v->never && v->code == SL_NO_CAPACITY && !q->wait_ms)
        suggest(list, "--wait waits until there is room");
    if (v->code == SL_NOT_FOUND || v->code == SL_INVALID)
        suggest_devices(list, devices, count, q->device);
    return list;
}

json_t *place_explain(const struct place_verdict *v, const struct device *devices,
                      uint32_t count, const struct lease_request *q)
{
    json_t *free_now = json_pack(
        "{s:I, s:I, s:i, s:I, s:I}", "largest_bytes", (json_int_t)v->largest_free_bytes,
        "total_bytes", (json_int_t)v->total_free_bytes, "largest_permille",
        (int)v->largest_free_permille, "largest_slice_bytes",
        (json_int_t)v->largest_slice_bytes, "largest_lendable_bytes",
        (json_int_t)v->largest_lendable_bytes);
    if (v->largest_free_device >= 0)
        json_object_set_new(free_now, "device",
                            json_string(devices[v->largest_free_device].id));
    return json_pack("{s:s, s:b, s:o, s:o}", "cause", v->cause, "never", v->never, "free",
                     free_now, "alternatives", alternatives(v, devices, count, q));
}
