/* The commands up and down: the agent and broker of this machine. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/start.h"
#include "fetch.h"
#include "os/sock.h"
#include "views.h"

#define DOWN_MS 60000 /* a forced one ends programs first */
#define GONE_MS 10000

/* What an agent that runs already is, and what that means for these options: false if it
 * is not what was asked for. */
static bool say_running(struct cli *cli, const struct cli_args *args)
{
    AUTO_JSON json_t *node = NULL;
    bool embedded = fetch_json(cli, "/v1/node", &node, NULL) == 0 &&
                    json_is_true(json_object_get(node, "embedded"));
    uint32_t uid = geteuid();
    json_get_u32(node, "uid", &uid, NULL);
    bool mine = geteuid() == 0 || uid == geteuid();
    if (!mine)
        cli_note(cli,
                 "an agent of uid %u runs already in %s, which only that user or root ends",
                 uid, cli->rundir.path);
    else if (embedded)
        cli_note(cli,
                 "an agent runs already, which ends 60 s after its last lease; to keep one:"
                 " sluice down, then sluice up");
    else
        cli_note(cli, "an agent runs already in %s", cli->rundir.path);
    static const char *const fixed[] = { "emulate", "share-tenants", "mem-overcommit",
                                         "reserve", "turn" };
    bool as_asked = !embedded;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (cli_has(args, fixed[i])) {
            cli_note(cli, "--%s has no effect on it%s%s%s", fixed[i],
                     mine ? ": sluice down first, then sluice up --" : "",
                     mine ? fixed[i] : "", mine && cli_value(args, fixed[i]) ? " ..." : "");
            as_asked = false;
        }
    return as_asked;
}

static int print_found(struct cli *cli, bool started)
{
    AUTO_JSON json_t *answer = NULL, *node = NULL;
    AUTO_FREE struct device *devices = NULL;
    size_t count;
    struct sl_err err = { 0 };

    if (started && fetch_json(cli, "/v1/node", &node, NULL) == 0)
        cli_say_options(cli, node);
    if (fetch_json(cli, "/v1/devices", &answer, &err) < 0 ||
        decode_devices(answer, &devices, &count, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, json_pack("{s:b,s:s,s:O}", "started", started, "run_dir",
                                             cli->rundir.path, "devices",
                                             json_object_get(answer, "devices")));
    if (started)
        cli_note(cli, "up in %s with %zu device%s", cli->rundir.path, count,
                 count == 1 ? "" : "s");
    view_devices(cli, devices, count);
    return 0;
}

int cmd_up(struct cli *cli, const struct cli_args *args)
{
    struct start_options o = {
        .share_tenants = cli_has(args, "share-tenants"),
        .emulate = cli_value(args, "emulate"),
        .mem_overcommit = cli_value(args, "mem-overcommit"),
        .turn = cli_value(args, "turn"),
        .reserve = cli_value(args, "reserve"),
    };
    struct sl_err err = { 0 };

    if (cli_choose_rundir(cli, &err) < 0)
        return cli_fail(cli, &err);
    if (cli_has(args, "foreground") && !agent_is_running(&cli->rundir)) {
        agent_exec(&cli->rundir, &o, &err);
        return cli_fail(cli, &err);
    }
    int rc = agent_start(&cli->rundir, &o, &err);
    if (rc < 0 || cli_connect(cli, false, &err) < 0)
        return cli_fail(cli, &err);
    bool as_asked = rc == 0 || say_running(cli, args);
    int status = print_found(cli, rc == 0);
    return as_asked ? status : 1;
}

static bool broker_is_running(const struct rundir *r)
{
    char path[108];
    if (rundir_path(r, "control.sock", path, sizeof path, NULL) < 0)
        return false;
    AUTO_CLOSE int fd = sock_connect_unix(path, SOCK_SEQPACKET, NULL);
    return fd >= 0;
}

static bool wait_until_gone(const struct rundir *r)
{
    for (int ms = 0; ms < GONE_MS; ms += 20) {
        if (!agent_is_running(r))
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
    }
    return false;
}

/* An agent to talk to; a broker alone is taken over by a new one first.  1: there
 * is nothing to end. */
static int find_node(struct cli *cli, struct sl_err *err)
{
    int rc = cli_choose_rundir(cli, err);
    if (rc < 0)
        return rc;
    if (!agent_is_running(&cli->rundir)) {
        if (!broker_is_running(&cli->rundir))
            return 1;
        struct start_options o = { .embedded = true };
        if ((rc = agent_start(&cli->rundir, &o, err)) < 0)
            return rc;
    }
    return cli_connect(cli, false, err);
}

int cmd_down(struct cli *cli, const struct cli_args *args)
{
    AUTO_JSON json_t *answer = NULL, *problem = NULL;
    const char *path = cli_has(args, "force") ? "/v1/node?force=1" : "/v1/node";
    struct sl_err err = { 0 };

    int rc = find_node(cli, &err);
    if (rc < 0)
        return cli_fail(cli, &err);
    if (rc == 0) {
        rc = client_call(cli->client, "DELETE", path, NULL, DOWN_MS, &answer, &problem,
                         &err);
        if (rc < 0)
            return cli_fail_with(cli, &err, problem);
        if (!wait_until_gone(&cli->rundir)) {
            sl_fail(&err, SL_TIMEOUT, "the agent said yes but has not ended after %d s",
                    GONE_MS / 1000);
            return cli_fail(cli, &err);
        }
    }
    if (cli->format == CLI_JSON)
        return cli_print_json(
            cli, json_pack("{s:b,s:s}", "ended", rc == 0, "run_dir", cli->rundir.path));
    fprintf(cli->out, rc == 1 ? "nothing was running in %s\n" : "down: %s\n",
            cli->rundir.path);
    return 0;
}
