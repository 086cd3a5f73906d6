/* The commands that list: devices, ps, jobs, logs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "fetch.h"
#include "views.h"

#define FOLLOW_MS 500   /* between two looks at a log */
#define CLEAR_MS  60000 /* removes files */

int cmd_devices(struct cli *cli, const struct cli_args *args)
{
    AUTO_JSON json_t *answer = NULL;
    AUTO_FREE struct device *devices = NULL;
    size_t count;
    struct sl_err err = { 0 };

    if (cli_connect(cli, true, &err) < 0 ||
        fetch_json(cli, "/v1/devices", &answer, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, TAKE_PTR(answer));
    if (decode_devices(answer, &devices, &count, &err) < 0)
        return cli_fail(cli, &err);
    view_devices(cli, devices, count);
    return 0;
}

/* ps and jobs: the same list, seen twice. */
static int list_leases(struct cli *cli, const struct cli_args *args, const char *key,
                       void (*view)(struct cli *, const struct lease *, size_t))
{
    AUTO_JSON json_t *answer = NULL;
    AUTO_FREE struct lease *leases = NULL;
    char path[40];
    size_t count;
    struct sl_err err = { 0 };

    bool all = cli_has(args, "all");
    snprintf(path, sizeof path, "/v1/%s%s", key, all ? "?all=1" : "");
    /* what has ended is in the journal, which an agent reads */
    int rc = all ? cli_connect(cli, true, &err) : cli_connect_if_any(cli, &err);
    if (rc == 1)
        return cli->format == CLI_JSON ? cli_print_json(cli, json_pack("{s:[]}", key)) : 0;
    if (rc < 0 || fetch_json(cli, path, &answer, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, TAKE_PTR(answer));
    if (decode_leases(answer, key, &leases, &count, &err) < 0)
        return cli_fail(cli, &err);
    view(cli, leases, count);
    if (!count)
        cli_note(cli, all ? "no %s" : "no %s now; -a lists those that have ended too", key);
    return 0;
}

int cmd_ps(struct cli *cli, const struct cli_args *args)
{
    return list_leases(cli, args, "leases", view_leases);
}

static int clear_jobs(struct cli *cli)
{
    AUTO_JSON json_t *answer = NULL;
    struct sl_err err = { 0 };
    if (cli_connect(cli, true, &err) < 0 ||
        client_call(cli->client, "DELETE", "/v1/jobs", NULL, CLEAR_MS, &answer, NULL,
                    &err) < 0)
        return cli_fail(cli, &err);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, TAKE_PTR(answer));
    int removed = (int)json_integer_value(json_object_get(answer, "removed"));
    fprintf(cli->out, "%d ended job%s removed\n", removed, removed == 1 ? "" : "s");
    return 0;
}

int cmd_jobs(struct cli *cli, const struct cli_args *args)
{
    if (cli_has(args, "clear"))
        return clear_jobs(cli);
    return list_leases(cli, args, "jobs", view_jobs);
}

/* Print what the log has beyond *seen. */
static int print_log(struct cli *cli, const char *path, size_t *seen, struct sl_err *err)
{
    AUTO_FREE char *text = NULL;
    size_t len = 0;
    int rc = client_get_text(cli->client, path, &text, &len, err);
    if (rc < 0)
        return rc;
    if (len > *seen) {
        fwrite(text + *seen, 1, len - *seen, cli->out);
        fflush(cli->out);
        *seen = len;
    }
    return ferror(cli->out) ? sl_fail(err, SL_IO, "cannot write to the output") : 0;
}

/* Asked before the log is read, so that its last words are not missed. */
static int look_at_job(struct cli *cli, const char *id, bool *begun, bool *ended,
                       struct sl_err *err)
{
    struct lease l;
    int rc = fetch_lease(cli, id, &l, err);
    if (rc < 0)
        return rc;
    *ended = l.exited || l.state == LEASE_RELEASED;
    *begun = *ended || l.shim_pid;
    return 0;
}

int cmd_logs(struct cli *cli, const struct cli_args *args)
{
    AUTO_BUF struct buf path = { 0 };
    const char *id = args->operand[0];
    struct sl_err err = { 0 };
    size_t seen = 0;
    bool begun = true, ended = true;

    if (cli_connect(cli, true, &err) < 0)
        return cli_fail(cli, &err);
    cli_warn_room(cli);
    buf_add(&path, "/v1/jobs/");
    path_add_segment(&path, id);
    buf_add(&path, "/log");
    if (buf_failed(&path)) {
        sl_fail(&err, SL_INTERNAL, "out of memory");
        return cli_fail(cli, &err);
    }
    do {
        if (cli_has(args, "follow") && look_at_job(cli, id, &begun, &ended, &err) < 0)
            return cli_fail(cli, &err);
        if (begun && print_log(cli, path.text, &seen, &err) < 0)
            return cli_fail(cli, &err);
        if (!ended)
            nanosleep(&(struct timespec){ .tv_nsec = FOLLOW_MS * 1000 * 1000 }, NULL);
    } while (!ended);
    return 0;
}
