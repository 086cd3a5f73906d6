/* Lease requests from the command line: parse, ask, echo. */
#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "fetch.h"
#include "model/units.h"
#include "os/proc.h"
#include "os/program.h"
#include "table.h"
#include "views.h"

#define ANSWER_MS 60000

static int get_size(const struct cli_args *args, const char *name, uint64_t *out,
                    struct sl_err *err)
{
    const char *text = cli_value(args, name);
    if (!text)
        return 0;
    return units_parse_size(text, out, err) < 0 ? sl_prefix(err, "--%s", name) : 0;
}

static int get_count(const struct cli_args *args, const char *name, uint32_t *out,
                     struct sl_err *err)
{
    const char *text = cli_value(args, name);
    char *end;
    if (!text)
        return 0;
    unsigned long n = strtoul(text, &end, 10);
    if (!*text || *end || *text == '-' || n > UINT32_MAX)
        return sl_fail(err, SL_INVALID, "--%s: a whole number is expected, not '%s'", name,
                       text);
    *out = (uint32_t)n;
    return 0;
}

static int get_duration(const struct cli_args *args, const char *name, uint64_t *out,
                        struct sl_err *err)
{
    const char *text = cli_value(args, name);
    if (!text)
        return 0;
    return units_parse_duration(text, out, err) < 0 ? sl_prefix(err, "--%s", name) : 0;
}

static int get_text(const struct cli_args *args, const char *name, char *out, size_t size,
                    struct sl_err *err)
{
    const char *text = cli_value(args, name);
    if (text && strlen(text) >= size)
        return sl_fail(err, SL_INVALID, "--%s: at most %zu characters", name, size - 1);
    if (text)
        strcpy(out, text);
    return 0;
}

/* A range implies burst; a mode that is given is taken at its word. */
static int get_compute(const struct cli_args *args, struct lease_request *q,
                       struct sl_err *err)
{
    const char *text = cli_value(args, "compute"), *mode = cli_value(args, "mode");
    struct units_share share;
    if (text) {
        if (units_parse_share(text, &share, err) < 0)
            return sl_prefix(err, "--compute");
        q->compute_request_permille = share.request_permille;
        q->compute_limit_permille = share.limit_permille;
        q->mode = share.is_range ? LEASE_BURST : LEASE_HARD;
    }
    if (mode && lease_mode_parse(mode, &q->mode, err) < 0)
        return sl_prefix(err, "--mode");
    return 0;
}

static int get_cpus(const struct cli_args *args, struct lease_request *q,
                    struct sl_err *err)
{
    const char *text = cli_value(args, "cpus");
    char *end;
    if (!text)
        return 0;
    double cpus = strtod(text, &end);
    if (!*text || *end || !(cpus >= 0.001 && cpus <= 1e6))
        return sl_fail(err, SL_INVALID, "--cpus: a number such as 0.5 or 4, not '%s'",
                       text);
    q->cpu_milli = (uint32_t)(cpus * 1000 + 0.5);
    return 0;
}

int request_from_args(const struct cli_args *args, struct lease_request *out,
                      struct sl_err *err)
{
    struct lease_request q;
    int rc;
    lease_request_init(&q);
    if ((rc = get_size(args, "mem", &q.mem_request_bytes, err)) < 0 ||
        (rc = get_size(args, "mem-limit", &q.mem_limit_bytes, err)) < 0 ||
        (rc = get_size(args, "host-mem", &q.host_mem_bytes, err)) < 0 ||
        (rc = get_compute(args, &q, err)) < 0 || (rc = get_cpus(args, &q, err)) < 0 ||
        (rc = get_count(args, "priority", &q.priority, err)) < 0 ||
        (rc = get_count(args, "devices", &q.slice_count, err)) < 0 ||
        (rc = get_duration(args, "time", &q.time_ms, err)) < 0 ||
        (rc = get_text(args, "name", q.name, sizeof q.name, err)) < 0 ||
        (rc = get_text(args, "device", q.device, sizeof q.device, err)) < 0)
        return rc;
    if (cli_has(args, "time") && q.time_ms == 0)
        return sl_fail(err, SL_INVALID, "--time: must be above 0, such as 90s");
    q.fail_closed = cli_has(args, "fail-closed");
    if (cli_has(args, "wait"))
        q.wait_ms = UNKNOWN_U64;
    if ((rc = get_duration(args, "wait", &q.wait_ms, err)) < 0 ||
        (rc = lease_request_check(&q, err)) < 0)
        return rc;
    *out = q;
    return 0;
}

json_t *request_command(char *const *argv)
{
    AUTO_BUF struct buf text = { 0 };
    for (int i = 0; argv[i] && text.len < sizeof((struct lease *)0)->command; i++)
        buf_addf(&text, "%s%s", i ? " " : "", argv[i]);
    if (buf_failed(&text) || !text.text)
        return NULL;
    json_t *j = json_string(text.text);
    if (j)
        return j;
    for (char *p = text.text; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    return json_string(text.text);
}

int request_refuse_program(struct cli *cli, const struct cli_args *args)
{
    char why[400], hint[160];
    int status = program_check(args->operand[0], why, sizeof why);
    if (!status)
        return 0;
    text_tame(why, "");
    fprintf(cli->err, "%s: %s%s\n", cli->program, why,
            status == 127 ? cli_suggest_value(args, args->operand[0], hint) : "");
    return status;
}

void request_warn(struct cli *cli, const struct lease *l)
{
    if (l->emulated)
        cli_note(cli,
                 "the device is emulated: a program finds no device in this lease, and "
                 "cannot compute");
}

void request_echo(struct cli *cli, const struct lease *l)
{
    char id[24], mem[72], share[32];
    AUTO_BUF struct buf text = { 0 };
    buf_add(&text, lease_format_id(l->number, id));
    for (uint32_t i = 0; i < l->slice_count && i < LEASE_MAX_SLICES; i++) {
        const struct lease_slice *s = &l->slice[i];
        buf_addf(&text, "%s%s", i ? ", " : " on ", s->device);
    }
    if (l->slice_count) {
        const struct lease_slice *s = &l->slice[0];
        buf_addf(&text, ": memory %s, compute %s",
                 format_range(s->mem_request_bytes, s->mem_limit_bytes, format_bytes, mem),
                 units_format_share(s->compute_request_permille, s->compute_limit_permille,
                                    share));
    }
    buf_addf(&text, ", mode %s, grade memory=%s time=%s", lease_mode_name(l->mode),
             grade_name(l->grades.memory), grade_name(l->grades.time));
    if (!buf_failed(&text))
        cli_note(cli, "%s", text.text);
    request_warn(cli, l);
}

static int post_lease(struct cli *cli, const struct lease_request *q, json_t *command,
                      bool dry_run, json_t **answer, json_t **problem, struct sl_err *err)
{
    AUTO_JSON json_t *body = lease_request_to_json(q);
    if (!body || (command && json_object_set(body, "command", command) != 0))
        return sl_fail(err, SL_INTERNAL, "out of memory");
    return client_call(cli->client, "POST", dry_run ? "/v1/leases?dry_run=1" : "/v1/leases",
                       body, q->wait_ms ? 0 : ANSWER_MS, answer, problem, err);
}

/* Is a refusal of now one that waiting may end? */
static bool would_wait(const struct lease_request *q, const json_t *problem,
                       const struct sl_err *err)
{
    return q->wait_ms && err->code == SL_NO_CAPACITY &&
           !json_is_true(json_object_get(problem, "never"));
}

int request_lease(struct cli *cli, const struct lease_request *q, json_t *command,
                  json_t **answer, json_t **problem, struct sl_err *err)
{
    struct lease_request now = *q;
    now.wait_ms = 0;
    int rc = post_lease(cli, &now, command, false, answer, problem, err);
    if (rc >= 0 || !would_wait(q, *problem, err))
        return rc;
    cli_note(cli, "%s; waiting for room", err->msg);
    json_decref(*problem);
    *problem = NULL;
    return post_lease(cli, q, command, false, answer, problem, err);
}

static void format_memory(const json_t *value, struct buf *out)
{
    char text[72];
    uint64_t request = (uint64_t)json_integer_value(json_object_get(value, "request"));
    uint64_t limit = (uint64_t)json_integer_value(json_object_get(value, "limit"));
    buf_add(out, format_range(request, limit, units_format_size, text));
}

/* A member of a plan as people read it; "" for what is not for them. */
static void format_member(const char *key, const json_t *value, struct buf *out)
{
    char text[32];
    const json_t *request = json_object_get(value, "request");
    if (json_is_string(value))
        buf_add(out, json_string_value(value));
    else if (json_is_boolean(value))
        buf_add(out, json_is_true(value) ? "yes" : "no");
    else if (!strcmp(key, "mem"))
        format_memory(value, out);
    else if (!strcmp(key, "compute"))
        buf_add(out,
                units_format_share(
                    (uint32_t)json_integer_value(request),
                    (uint32_t)json_integer_value(json_object_get(value, "limit")), text));
}

/* A slice's member, of each of several slices where they differ. */
static void format_slices(const char *key, const json_t *slices, struct buf *out)
{
    const json_t *first = json_object_get(json_array_get(slices, 0), key);
    bool alike = true;
    for (size_t i = 1; i < json_array_size(slices); i++)
        alike &= json_equal(first, json_object_get(json_array_get(slices, i), key));
    for (size_t i = 0; i < (alike ? 1 : json_array_size(slices)); i++) {
        buf_add(out, i ? ", " : "");
        format_member(key, json_object_get(json_array_get(slices, i), key), out);
    }
}

static void print_plan(struct cli *cli, const json_t *plan)
{
    const json_t *slices = json_object_get(plan, "slices");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)plan, key, value) {
        AUTO_BUF struct buf text = { 0 };
        if (json_object_get(json_array_get(slices, 0), key))
            format_slices(key, slices, &text);
        else
            format_member(key, value, &text);
        if (text.text && text.text[0])
            fprintf(cli->out, "%-12s %s\n", key, text.text);
    }
}

int request_dry_run(struct cli *cli, const struct lease_request *q, json_t *command,
                    bool queues)
{
    struct lease_request ask = *q;
    AUTO_JSON json_t *plan = NULL, *problem = NULL;
    struct sl_err err = { 0 };
    if (!queues)
        ask.wait_ms = 0;
    int rc = post_lease(cli, &ask, command, true, &plan, &problem, &err);
    if (rc < 0 && !would_wait(q, problem, &err))
        return cli_fail_with(cli, &err, problem);
    if (rc < 0)
        plan = json_pack("{s:b,s:s}", "dry_run", 1, "waits", err.msg);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, TAKE_PTR(plan));
    print_plan(cli, plan);
    return 0;
}

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    AUTO_FCLOSE FILE *f = fopen(path, "re");
    if (!f || !fgets(text, sizeof text, f))
        return 0;
    const char *after = strrchr(text, ')');
    int parent = 0;
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Is the lease's shim among our ancestors? */
static bool is_under(const struct lease *l)
{
    struct proc_id id = { .pid = l->shim_pid, .start_ticks = l->shim_start_ticks };
    if (l->shim_pid <= 1 || !proc_is_alive(&id))
        return false;
    for (pid_t pid = getppid(); pid > 1; pid = parent_of(pid))
        if (pid == l->shim_pid)
            return true;
    return false;
}

/* The lease that SLUICE_LEASE names, if that variable speaks of this agent. */
static const char *named_lease(struct cli *cli)
{
    char path[108];
    const char *lease = getenv("SLUICE_LEASE"), *broker = getenv("SLUICE_BROKER");
    if (!lease || rundir_path(&cli->rundir, "broker.sock", path, sizeof path, NULL) < 0)
        return NULL;
    return broker && strcmp(broker, path) != 0 ? NULL : lease;
}

int request_refuse_nested(struct cli *cli, struct sl_err *err)
{
    AUTO_FREE struct lease *leases = NULL;
    size_t count = 0;
    const char *named = named_lease(cli);
    int rc = fetch_leases(cli, false, &leases, &count, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        char id[24];
        lease_format_id(leases[i].number, id);
        if ((named && !strcmp(named, id)) || is_under(&leases[i]))
            return sl_fail(err, SL_CONFLICT,
                           "this runs inside lease %s already, and a lease is not lent on: "
                           "start the program directly",
                           id);
    }
    return 0;
}
