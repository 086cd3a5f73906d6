/* Owns the command line of sluice-agent: one row an option, which makes parsing and help.
 */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "model/units.h"

/* What an agent that follows, while leases live, takes over: each by itself, or which
 * devices there are as a whole. */
enum kept { NOT_KEPT, KEPT, KEPT_DEVICES };

struct row {
    const char *name, *argument, *help;
    int (*set)(struct agent_options *o, const char *value, struct sl_err *err);
    enum kept kept;
};

static int set_run_dir(struct agent_options *o, const char *value, struct sl_err *err)
{
    o->run_dir = value;
    return 0;
}

static int set_embedded(struct agent_options *o, const char *value, struct sl_err *err)
{
    o->embedded = true;
    return 0;
}

static int set_foreground(struct agent_options *o, const char *value, struct sl_err *err)
{
    o->foreground = true;
    return 0;
}

static int set_share(struct agent_options *o, const char *value, struct sl_err *err)
{
    o->share_tenants = true;
    return 0;
}

static int append(const char **list, uint32_t *count, const char *value, const char *option,
                  struct sl_err *err)
{
    if (*count == BACKEND_MAX_NAMES)
        return sl_fail(err, SL_INVALID, "%s: at most %d", option, BACKEND_MAX_NAMES);
    list[(*count)++] = value;
    return 0;
}

static int set_emulate(struct agent_options *o, const char *value, struct sl_err *err)
{
    /* a file is found from the caller's directory, which the daemon leaves */
    char *path =
        strchr(value, '/') || strstr(value, ".json") ? realpath(value, NULL) : NULL;
    /* refused here, before a daemon and a log stand between us and the user */
    static struct device unused[AGENT_MAX_DEVICES];
    uint32_t count = 0;
    int rc = emulated_add(path ? path : value, unused, AGENT_MAX_DEVICES, &count, err);
    if (rc < 0)
        return rc;
    return append(o->probe.emulate, &o->probe.emulate_count, path ? path : value,
                  "--emulate", err);
}

static int set_probe_env(struct agent_options *o, const char *value, struct sl_err *err)
{
    return append(o->probe.probe_env, &o->probe.probe_env_count, value, "--probe-env", err);
}

static int set_backends(struct agent_options *o, const char *value, struct sl_err *err)
{
    char *copy = strdup(value), *rest = copy, *item; /* kept: the options point into it */
    while (copy && (item = strsep(&rest, ",")) != NULL) {
        if (!backend_find(item))
            return sl_fail(err, SL_INVALID, "--backends: there is no backend \"%s\"", item);
        int rc = append(o->backend, &o->backend_count, item, "--backends", err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int set_reserve(struct agent_options *o, const char *value, struct sl_err *err)
{
    if (strlen(value) >= sizeof o->reserve)
        return sl_fail(err, SL_INVALID, "--reserve: a size or a percentage");
    strcpy(o->reserve, value);
    uint64_t bytes;
    return inventory_reserve(value, GIB, &bytes, err);
}

static int set_overcommit(struct agent_options *o, const char *value, struct sl_err *err)
{
    char *end;
    double r = strtod(value, &end);
    if (end == value || *end || !(r >= 1) || r > 10)
        return sl_fail(err, SL_INVALID, "--mem-overcommit \"%s\": a factor from 1 to 10",
                       value);
    o->mem_overcommit_permille = (uint32_t)lround(r * 1000);
    return 0;
}

static int set_turn(struct agent_options *o, const char *value, struct sl_err *err)
{
    int rc = units_parse_duration(value, &o->turn_ms, err);
    if (rc == 0 && (o->turn_ms < 1 || o->turn_ms > 1000))
        return sl_fail(err, SL_INVALID, "--turn \"%s\": from 1ms to 1s", value);
    return rc;
}

static int set_idle_exit(struct agent_options *o, const char *value, struct sl_err *err)
{
    return units_parse_duration(value, &o->idle_exit_ms, err);
}

static int set_orphan_grace(struct agent_options *o, const char *value, struct sl_err *err)
{
    return units_parse_duration(value, &o->orphan_grace_ms, err);
}

static int set_kill_grace(struct agent_options *o, const char *value, struct sl_err *err)
{
    return units_parse_duration(value, &o->kill_grace_ms, err);
}

static int set_probe_timeout(struct agent_options *o, const char *value, struct sl_err *err)
{
    uint64_t ms;
    int rc = units_parse_duration(value, &ms, err);
    if (rc == 0)
        o->probe.probe_timeout_ms = (uint32_t)min_u64(ms, 600000);
    return rc;
}

static int set_ready_fd(struct agent_options *o, const char *value, struct sl_err *err)
{
    char *end;
    long fd = strtol(value, &end, 10);
    if (end == value || *end || fd < 0 || fd > 1 << 20)
        return sl_fail(err, SL_INVALID, "--ready-fd: a descriptor");
    o->ready_fd = (int)fd;
    return 0;
}

static const struct row rows[] = {
    { "run-dir", "DIR", "where it lives (else SLUICE_RUN_DIR, else the user's default)",
      set_run_dir },
    { "embedded", NULL, "end some time after the last lease, with the broker",
      set_embedded },
    { "idle-exit", "TIME", "that time (60s)", set_idle_exit },
    { "emulate", "WHAT",
      "devices that exist only as numbers: a100-80g:8,l4, or a file; may be "
      "repeated; real ones are then off",
      set_emulate, KEPT_DEVICES },
    { "backends", "LIST", "exactly these: opencl,emulated", set_backends, KEPT_DEVICES },
    { "share-tenants", NULL, "let several users share a device", set_share, KEPT },
    { "reserve", "SIZE|N%", "memory of each real device that is never lent", set_reserve,
      KEPT },
    { "mem-overcommit", "R", "memory limits may reach R times a device (1)", set_overcommit,
      KEPT },
    { "turn", "TIME", "device time of one turn of the smallest lease (10ms)", set_turn,
      KEPT },
    { "probe-env", "NAME", "a variable that the probe of drivers may see; may be repeated",
      set_probe_env, KEPT },
    { "probe-timeout", "TIME", "how long drivers may take to answer (20s)",
      set_probe_timeout },
    { "orphan-grace", "TIME", "for a program that never starts (30s)", set_orphan_grace },
    { "kill-grace", "TIME", "between SIGTERM and SIGKILL at a release (5s)",
      set_kill_grace },
    { "foreground", NULL, "stay, and log to standard error", set_foreground },
    { "ready-fd", "N",
      "write \"+\" there when it answers, \"=\" when another does, or the error",
      set_ready_fd },
    { "version", NULL, "print it", NULL },
    { "help", NULL, "this", NULL },
};

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: sluice-agent [options]\nDevices, leases and jobs of this machine; started "
        "by sluice up or sluice run.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char left[40];
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        fprintf(to, "  %-24s %s\n", left, rows[i].help);
    }
}

/* ---- what is kept: "name=value", or "name" ---- */

static size_t name_length(const char *item)
{
    return strcspn(item, "=");
}

static const struct row *row_of(const char *item)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strlen(rows[i].name) == name_length(item) &&
            strncmp(rows[i].name, item, name_length(item)) == 0)
            return &rows[i];
    return NULL;
}

static int set(struct agent_options *o, const struct row *row, const char *value,
               struct sl_err *err)
{
    char *item = NULL; /* for as long as the options live */
    int rc = row->set(o, value, err);
    if (rc < 0 || row->kept == NOT_KEPT)
        return rc;
    /* as it was understood: a file is named from the root there */
    if (row->set == set_emulate)
        value = o->probe.emulate[o->probe.emulate_count - 1];
    if (o->given_count == OPTIONS_MAX_GIVEN ||
        asprintf(&item, "%s%s%s", row->name, value ? "=" : "", value ? value : "") < 0)
        return sl_fail(err, SL_INVALID, "--%s: too many options", row->name);
    o->given[o->given_count++] = item;
    return 0;
}

/* Does one of the first `count` given decide what this row decides? */
static bool decided(const struct agent_options *o, uint32_t count, const struct row *row)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct row *given = row_of(o->given[i]);
        if (given == row || (row->kept == KEPT_DEVICES && given->kept == KEPT_DEVICES))
            return true;
    }
    return false;
}

static bool is_given(const struct agent_options *o, const char *item)
{
    for (uint32_t i = 0; i < o->given_count; i++)
        if (strcmp(o->given[i], item) == 0)
            return true;
    return false;
}

/* As it is typed. */
static void add_text(char *out, size_t size, const char *item)
{
    size_t at = strlen(out), name = name_length(item);
    snprintf(out + at, size - at, "%s--%.*s%s%s", at ? " " : "", (int)name, item,
             item[name] ? " " : "", item[name] ? item + name + 1 : "");
}

json_t *options_to_json(const struct agent_options *o)
{
    json_t *given = json_array();
    for (uint32_t i = 0; i < o->given_count; i++)
        json_array_append_new(given, json_string(o->given[i]));
    return json_pack("{s:o, s:b}", "given", given, "embedded", o->embedded);
}

void options_take_over(struct agent_options *o, const json_t *earlier,
                       struct options_change *change)
{
    size_t i;
    json_t *value;
    uint32_t own = o->given_count;
    bool had_devices = false;
    memset(change, 0, sizeof *change);
    if (json_is_false(json_object_get(earlier, "embedded")))
        o->embedded = false;
    json_array_foreach(json_object_get(earlier, "given"), i, value) {
        const char *item = json_string_value(value);
        const struct row *row = item ? row_of(item) : NULL;
        if (!row || row->kept == NOT_KEPT)
            continue;
        had_devices |= row->kept == KEPT_DEVICES;
        if (is_given(o, item))
            continue;
        const char *text = item[name_length(item)] ? item + name_length(item) + 1 : NULL;
        /* one that cannot be had any more (a file that is gone) is lost, and said to be */
        if (decided(o, own, row) || set(o, row, text ? strdup(text) : NULL, NULL) < 0)
            add_text(change->lost, sizeof change->lost, item);
        else
            add_text(change->taken, sizeof change->taken, item);
    }
    if (!had_devices && decided(o, own, row_of("emulate")))
        snprintf(change->lost, sizeof change->lost, "no --emulate");
}

static void set_defaults(struct agent_options *o)
{
    memset(o, 0, sizeof *o);
    o->idle_exit_ms = 60000;
    o->orphan_grace_ms = 30000;
    o->kill_grace_ms = 5000;
    o->mem_overcommit_permille = 1000;
    o->ready_fd = -1;
}

int options_parse(int argc, char **argv, struct agent_options *o)
{
    struct option longs[ARRAY_LEN(rows) + 1] = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        longs[i] = (struct option){ rows[i].name,
                                    rows[i].argument ? required_argument : no_argument,
                                    NULL, (int)i };
    set_defaults(o);
    for (int i; (i = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        struct sl_err err = { 0 };
        if (i < 0 || i >= (int)ARRAY_LEN(rows)) {
            print_help(stderr);
            return 2;
        }
        if (!rows[i].set) {
            if (strcmp(rows[i].name, "help") == 0)
                print_help(stdout);
            else
                puts("sluice-agent " SLUICE_VERSION);
            return 0;
        }
        if (set(o, &rows[i], optarg, &err) < 0) {
            fprintf(stderr, "sluice-agent: %s\n", err.msg);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "sluice-agent: unexpected argument: %s\n", argv[optind]);
        return 2;
    }
    return -1;
}
