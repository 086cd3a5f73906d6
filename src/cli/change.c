/* The commands that change leases: resize, release. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "fetch.h"
#include "model/units.h"
#include "views.h"

#define POLL_MS    100 /* between two looks while a shrink is waited for */
#define RESIZE_MS  15000
#define RELEASE_MS 60000 /* ends processes: grace, then kill */

static void add_size(json_t *mem, const char *key, const char *text)
{
    uint64_t bytes;
    if (text && units_parse_size(text, &bytes, NULL) == 0)
        json_object_set_new(mem, key, json_integer((json_int_t)bytes));
}

/* The body of a resize: the same form as a lease request. */
static json_t *resize_body(const struct cli_args *args)
{
    json_t *body = json_object(), *mem = json_object();
    const char *compute = cli_value(args, "compute");
    const char *priority = cli_value(args, "priority");
    struct units_share share;

    add_size(mem, "request", cli_value(args, "mem"));
    add_size(mem, "limit", cli_value(args, "mem-limit"));
    if (json_object_size(mem))
        json_object_set(body, "mem", mem);
    json_decref(mem);
    if (compute && units_parse_share(compute, &share, NULL) == 0)
        json_object_set_new(body, "compute",
                            json_pack("{s:i,s:i}", "request", (int)share.request_permille,
                                      "limit", (int)share.limit_permille));
    if (priority)
        json_object_set_new(body, "priority", json_integer(atoi(priority)));
    return body;
}

static uint64_t bytes_over(const struct lease *l)
{
    uint64_t over = 0;
    for (uint32_t i = 0; i < l->slice_count && i < LEASE_MAX_SLICES; i++)
        over += slice_over_bytes(&l->slice[i]);
    return over;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Until nothing is over, at most `wait_ms` (UNKNOWN_U64: for ever). */
static int wait_for_shrink(struct cli *cli, const char *id, uint64_t wait_ms,
                           struct lease *l, struct sl_err *err)
{
    char text[32];
    uint64_t start = now_ms();

    while (bytes_over(l)) {
        if (wait_ms != UNKNOWN_U64 && now_ms() - start >= wait_ms)
            return sl_fail(err, SL_TIMEOUT, "%s is still over its new size",
                           format_bytes(bytes_over(l), text));
        nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000 * 1000 }, NULL);
        int rc = fetch_lease(cli, id, l, err);
        if (rc < 0)
            return rc;
        if (l->state == LEASE_RELEASED)
            return 0;
    }
    return 0;
}

/* "L7 (b): 512MiB..2GiB and 30% of pocl-0" */
static void describe(const struct lease *l, struct buf *out)
{
    char id[24], mem[72], share[32];
    buf_addf(out, "%s", lease_format_id(l->number, id));
    if (l->name[0] && strcmp(l->name, id))
        buf_addf(out, " (%s)", l->name);
    for (uint32_t i = 0; i < l->slice_count && i < LEASE_MAX_SLICES; i++) {
        const struct lease_slice *s = &l->slice[i];
        if (!s->device[0])
            continue;
        buf_addf(
            out, "%s %s and %s of %s", i ? "," : ":",
            format_range(s->mem_request_bytes, s->mem_limit_bytes, units_format_size, mem),
            units_format_share(s->compute_request_permille, s->compute_limit_permille,
                               share),
            s->device);
    }
}

static int print_resized(struct cli *cli, const struct lease *l, uint64_t over)
{
    AUTO_BUF struct buf text = { 0 };
    char bytes[32];
    describe(l, &text);
    if (buf_failed(&text))
        return sl_code_row(SL_INTERNAL)->exit_status;
    if (over)
        fprintf(cli->out,
                "%s\nshrinking: %s still over; new requests are blocked until it is met\n",
                text.text, format_bytes(over, bytes));
    else
        fprintf(cli->out, "%s, acknowledged\n", text.text);
    return 0;
}

static int patch_lease(struct cli *cli, const char *id, const struct cli_args *args,
                       json_t **answer, json_t **problem, struct sl_err *err)
{
    AUTO_BUF struct buf path = { 0 };
    AUTO_JSON json_t *body = resize_body(args);

    buf_add(&path, "/v1/leases/");
    path_add_segment(&path, id);
    if (buf_failed(&path) || !body)
        return sl_fail(err, SL_INTERNAL, "out of memory");
    if (!json_object_size(body))
        return sl_fail(
            err, SL_INVALID,
            "nothing to change: give --mem, --mem-limit, --compute or --priority");
    return client_call(cli->client, "PATCH", path.text, body, RESIZE_MS, answer, problem,
                       err);
}

int cmd_resize(struct cli *cli, const struct cli_args *args)
{
    AUTO_JSON json_t *answer = NULL, *problem = NULL;
    const char *id = args->operand[0];
    uint64_t wait_ms = UNKNOWN_U64;
    struct lease l;
    struct sl_err err = { 0 };

    if (cli_connect(cli, true, &err) < 0)
        return cli_fail(cli, &err);
    if (patch_lease(cli, id, args, &answer, &problem, &err) < 0)
        return cli_fail_with(cli, &err, problem);
    if (lease_from_json(json_object_get(answer, "lease"), &l, &err) < 0)
        return cli_fail(cli, &err);
    if (cli_has(args, "wait")) {
        if (cli_value(args, "wait"))
            units_parse_duration(cli_value(args, "wait"), &wait_ms, NULL);
        if (wait_for_shrink(cli, id, wait_ms, &l, &err) < 0)
            return cli_fail(cli, &err);
        if (cli->format == CLI_JSON)
            return cli_print_json(cli,
                                  json_pack("{s:o,s:b,s:i}", "lease", lease_to_json(&l),
                                            "acknowledged", 1, "over_bytes", 0));
    }
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, TAKE_PTR(answer));
    uint64_t over = bytes_over(&l);
    if (!cli_has(args, "wait"))
        json_get_u64(answer, "over_bytes", &over, NULL);
    return print_resized(cli, &l, over);
}

static void print_released(struct cli *cli, const struct lease *l, bool already)
{
    AUTO_BUF struct buf text = { 0 };
    describe(l, &text);
    if (buf_failed(&text))
        return;
    if (already)
        fprintf(cli->out, "%s had ended already: %s\n", text.text,
                l->why[0] ? l->why : "released");
    else if (l->state != LEASE_RELEASED)
        fprintf(cli->out, "%s comes back as its programs end\n", text.text);
    else
        fprintf(cli->out, "%s %s\n", text.text,
                l->granted_ms ? "came back" : "waits no longer");
}

static int release_one(struct cli *cli, const char *id, json_t *released)
{
    AUTO_BUF struct buf path = { 0 };
    AUTO_JSON json_t *answer = NULL;
    struct lease l;
    struct sl_err err = { 0 };

    buf_add(&path, "/v1/leases/");
    path_add_segment(&path, id);
    if (buf_failed(&path))
        sl_fail(&err, SL_INTERNAL, "out of memory");
    else if (client_call(cli->client, "DELETE", path.text, NULL, RELEASE_MS, &answer, NULL,
                         &err) == 0)
        lease_from_json(answer, &l, &err);
    if (err.code)
        return cli_fail(cli, &err);
    json_array_append(released, answer);
    if (cli->format == CLI_JSON)
        return 0;
    print_released(cli, &l, json_is_true(json_object_get(answer, "already_released")));
    return 0;
}

int cmd_release(struct cli *cli, const struct cli_args *args)
{
    AUTO_JSON json_t *released = json_array();
    struct sl_err err = { 0 };
    int status = 0;

    if (cli_connect(cli, true, &err) < 0)
        return cli_fail(cli, &err);
    for (int i = 0; i < args->operand_count; i++) {
        int one = release_one(cli, args->operand[i], released);
        if (one && !status)
            status = one; /* the first failure's; the others are still released */
    }
    if (cli->format == CLI_JSON)
        cli_print_json(cli, json_pack("{s:O}", "leases", released));
    return status;
}
