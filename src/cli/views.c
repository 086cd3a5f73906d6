/* The tables of `devices`, `ps` and `jobs`. */
#include "views.h"

#include <string.h>
#include <time.h>

#include "core/macros.h"
#include "model/units.h"
#include "table.h"

const char *format_bytes(uint64_t bytes, char out[32])
{
    if (bytes == UNKNOWN_U64)
        return strcpy(out, "-");
    if (bytes == 0)
        return strcpy(out, "0");
    return units_format_size_human(bytes, out);
}

const char *format_range(uint64_t request, uint64_t limit,
                         const char *(*one)(uint64_t bytes, char out[32]), char out[72])
{
    char low[32], high[32];
    snprintf(out, 72, "%s%s%s", one(request, low), limit > request ? ".." : "",
             limit > request ? one(limit, high) : "");
    return out;
}

const char *format_grades(const struct grades *g, char out[32])
{
    if (g->memory == g->time)
        snprintf(out, 32, "%s", grade_name(g->memory));
    else
        snprintf(out, 32, "%s/%s", grade_name(g->memory), grade_name(g->time));
    return out;
}

const char *lease_display_name(const struct lease *l)
{
    return l->name[0] ? l->name : "-";
}

uint64_t slice_over_bytes(const struct lease_slice *s)
{
    return s->mem_over_bytes == UNKNOWN_U64 ? 0 : s->mem_over_bytes;
}

static void add_bytes(struct table *t, uint64_t bytes)
{
    char text[32];
    table_add(t, STYLE_PLAIN, "%s", format_bytes(bytes, text));
}

static void add_device_state(struct table *t, const struct device *d)
{
    switch (d->state) {
    case DEVICE_OK:
        table_add(t, STYLE_GOOD, "ok");
        break;
    case DEVICE_HELD:
        if (d->holder_pid > 0)
            table_add(t, STYLE_BAD, "held by process %d of uid %u", (int)d->holder_pid,
                      d->holder_uid);
        else
            table_add(t, STYLE_BAD, "held: %s", d->why[0] ? d->why : "by another broker");
        break;
    case DEVICE_FAILED:
        table_add(t, STYLE_BAD, "failed: %s", d->why[0] ? d->why : "cause unknown");
        break;
    }
}

void view_devices(struct cli *cli, const struct device *devices, size_t count)
{
    static const struct table_column columns[] = {
        { "ID" },
        { "MODEL" },
        { "MEMORY", true },
        { "LENDABLE", true },
        { "LENT", true },
        { "USED", true },
        { "SHARE LENT", true },
        { "GRADE" },
        { "TENANTS" },
        { "BACKEND" },
        { "STATE" },
    };
    struct table t;
    char text[32], share[16];

    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        const struct device *d = &devices[i];
        table_add(&t, STYLE_BOLD, "%s", d->id);
        table_add(&t, STYLE_PLAIN, "%s", d->model);
        add_bytes(&t, d->memory_bytes);
        add_bytes(&t,
                  d->memory_bytes == UNKNOWN_U64 ? UNKNOWN_U64 : device_lendable_bytes(d));
        add_bytes(&t, d->lent_bytes);
        add_bytes(&t, d->used_bytes);
        table_add(&t, STYLE_PLAIN, "%s %%", cli_format_permille(d->lent_permille, share));
        table_add(&t, STYLE_PLAIN, "%s", format_grades(&d->grades, text));
        table_add(&t, d->share_tenants ? STYLE_WARN : STYLE_PLAIN, "%s",
                  d->share_tenants ? "many (waived)" : "one");
        table_add(&t, d->emulated ? STYLE_WARN : STYLE_PLAIN, "%s",
                  d->emulated ? "EMULATED" : d->backend);
        add_device_state(&t, d);
    }
    if (count)
        table_print(&t, cli->out, cli->colour);
    else
        fputs("no devices\n", cli->out);
    table_finish(&t);
}

/* "active", and what is wrong with it. */
static void add_lease_state(struct table *t, const struct lease *l,
                            const struct lease_slice *s)
{
    const char *more = s && s->stuck ? ", stuck" : s && s->late ? ", late" : "";
    const char *over = s && slice_over_bytes(s) ? ", over" : "";
    enum style style = *more || *over               ? STYLE_BAD
                       : l->state == LEASE_ACTIVE   ? STYLE_GOOD
                       : l->state == LEASE_RELEASED ? STYLE_DIM
                                                    : STYLE_WARN;
    table_add(t, style, "%s%s%s", lease_state_name(l->state), more, over);
}

static void add_lease_row(struct table *t, const struct lease *l,
                          const struct lease_slice *s)
{
    char id[24], used[32], promised[72], text[32], achieved[16];

    table_add(t, STYLE_BOLD, "%s", lease_format_id(l->number, id));
    table_add(t, STYLE_PLAIN, "%s", l->name);
    table_add(t, STYLE_PLAIN, "%s", l->tenant);
    table_add(t, STYLE_PLAIN, "%s", s ? s->device : "");
    add_lease_state(t, l, s);
    table_add(t, STYLE_PLAIN, "%s", lease_mode_name(l->mode));
    if (s) {
        uint64_t held = l->state == LEASE_RELEASED ? UNKNOWN_U64 : s->mem_used_bytes;
        table_add(t, STYLE_PLAIN, "%s / %s", format_bytes(held, used),
                  s->mem_limit_bytes
                      ? format_range(s->mem_request_bytes, s->mem_limit_bytes, format_bytes,
                                     promised)
                      : "all");
        table_add(t, STYLE_PLAIN, "%s",
                  units_format_share(s->compute_request_permille, s->compute_limit_permille,
                                     text));
        table_add(t, STYLE_PLAIN, "%s%s",
                  cli_format_permille(s->achieved_permille_10s, achieved),
                  s->achieved_permille_10s < 0 ? "" : "%");
    } else {
        for (int i = 0; i < 3; i++)
            table_add(t, STYLE_PLAIN, "%s", "-");
    }
    table_add(t, l->emulated ? STYLE_WARN : STYLE_PLAIN, "%s%s",
              l->granted_ms ? format_grades(&l->grades, text) : "-",
              l->emulated ? ", EMULATED" : "");
}

static void print_waiting(struct cli *cli, const struct lease *leases, size_t count)
{
    char id[24];
    for (size_t i = 0; i < count; i++)
        if (leases[i].state == LEASE_PENDING && leases[i].why[0])
            fprintf(cli->out, "%s waits: %s\n", lease_format_id(leases[i].number, id),
                    leases[i].why);
}

void view_leases(struct cli *cli, const struct lease *leases, size_t count)
{
    static const struct table_column columns[] = {
        { "ID" },   { "NAME" },         { "TENANT" },         { "DEVICE" },     { "STATE" },
        { "MODE" }, { "MEMORY", true }, { "PROMISED", true }, { "10 s", true }, { "GRADE" },
    };
    struct table t;

    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        const struct lease *l = &leases[i];
        uint32_t slices =
            l->slice_count < LEASE_MAX_SLICES ? l->slice_count : LEASE_MAX_SLICES;
        if (!slices)
            add_lease_row(&t, l, NULL);
        for (uint32_t s = 0; s < slices; s++)
            add_lease_row(&t, l, &l->slice[s]);
    }
    if (count)
        table_print(&t, cli->out, cli->colour);
    print_waiting(cli, leases, count);
    table_finish(&t);
}

static const char *format_time(uint64_t ms, char out[32])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (!ms || !localtime_r(&seconds, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm))
        strcpy(out, "-");
    return out;
}

/* What it does, or how it ended. */
static void add_job_state(struct table *t, const struct lease *l)
{
    if (l->state != LEASE_RELEASED || !l->why[0])
        add_lease_state(t, l, NULL);
    else
        table_add(t, l->exited && !l->exit_status ? STYLE_DIM : STYLE_BAD, "%s", l->why);
}

void view_jobs(struct cli *cli, const struct lease *jobs, size_t count)
{
    static const struct table_column columns[] = {
        { "ID" }, { "NAME" }, { "STATE" }, { "STARTED" }, { "COMMAND" },
    };
    struct table t;
    char id[24], when[32];

    table_init(&t, columns, ARRAY_LEN(columns));
    for (size_t i = 0; i < count; i++) {
        const struct lease *l = &jobs[i];
        table_add(&t, STYLE_BOLD, "%s", lease_format_id(l->number, id));
        table_add(&t, STYLE_PLAIN, "%s", l->name);
        add_job_state(&t, l);
        table_add(&t, STYLE_PLAIN, "%s", format_time(l->granted_ms, when));
        table_add(&t, STYLE_PLAIN, "%s", l->command);
    }
    if (count)
        table_print(&t, cli->out, cli->colour);
    print_waiting(cli, jobs, count);
    table_finish(&t);
}
