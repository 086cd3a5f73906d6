/* `sluice run`: a lease, a program in it, and the program's own exit status. */
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "fetch.h"
#include "request.h"

/* Nothing runs in it: give it back, quietly, since the cause is told already. */
static void give_back(struct cli *cli, const json_t *lease)
{
    char path[64];
    struct sl_err err;
    const char *id = json_string_value(json_object_get(lease, "id"));
    if (!id)
        return;
    snprintf(path, sizeof path, "/v1/leases/%s", id);
    if (cli_connect(cli, false, &err) == 0)
        client_call(cli->client, "DELETE", path, NULL, 10000, NULL, NULL, &err);
}

/* A lease that was ended from outside says why. */
static void tell_end(struct cli *cli, const struct lease *l)
{
    char id[24];
    struct lease now;
    struct sl_err err;
    lease_format_id(l->number, id);
    if (cli_connect(cli, false, &err) == 0 && fetch_lease(cli, id, &now, &err) == 0 &&
        now.why[0])
        cli_note(cli, "%s was ended: %s", id, now.why);
    else
        cli_note(cli, "%s was ended from outside", id);
}

/* The kernel's SIGKILL for too much host memory looks like any other. */
static void tell_host_memory(struct cli *cli, const struct lease *l)
{
    char id[24];
    struct lease now;
    struct sl_err err;
    lease_format_id(l->number, id);
    if (cli_connect(cli, false, &err) == 0 && fetch_lease(cli, id, &now, &err) == 0 &&
        strstr(now.why, "--host-mem"))
        cli_note(cli, "%s: %s", id, now.why);
}

/* For a shell's script Ctrl-C means "stop all" only if the program is seen to have
 * died of it; the status is 130 either way. */
static void die_of_interrupt(void)
{
    sigset_t one;
    fflush(NULL);
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
    sigemptyset(&one);
    sigaddset(&one, SIGINT);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static int print_detached(struct cli *cli, const struct lease *l, json_t *answer)
{
    char id[24];
    cli_warn_room(cli);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, json_incref(answer));
    fprintf(cli->out, "%s\n", lease_format_id(l->number, id));
    return 0;
}

/* The loader drops a layer that is not there without a word, and the program
 * would run outside its slice. */
static int check_front(struct cli *cli, const struct lease *l, struct sl_err *err)
{
    char layer[160];
    int rc =
        rundir_path(&cli->rundir, "front/libsluice-opencl.so", layer, sizeof layer, err);
    if (rc < 0 || l->emulated || access(layer, R_OK) == 0)
        return rc;
    return sl_fail_sys(err, SL_UNAVAILABLE, errno, "the front cannot be read: %s", layer);
}

static int run_in_lease(struct cli *cli, const struct run_plan *plan, json_t *answer,
                        const struct run_inherited *in)
{
    struct run_shim shim;
    struct run_end end;
    struct sl_err err = { 0 };
    if (check_front(cli, plan->lease, &err) < 0 ||
        run_start_shim(cli, plan, in, &shim, &err) < 0) {
        int status = cli_fail(cli, &err);
        give_back(cli, answer);
        return status;
    }
    run_attend(cli, plan, &shim, &end);
    if (end.why[0])
        fprintf(cli->err, "%s: %s\n", cli->program, end.why);
    if (!end.anchored)
        give_back(cli, answer);
    if (plan->detach && end.started)
        return print_detached(cli, plan->lease, answer);
    if (end.ended_outside)
        tell_end(cli, plan->lease);
    else if (end.status && plan->lease->host_mem_bytes)
        tell_host_memory(cli, plan->lease);
    if (end.signal == SIGINT)
        die_of_interrupt();
    return end.status;
}

/* Whose standard output is it? */
static int check_output(const struct cli *cli, const struct cli_args *args,
                        struct sl_err *err)
{
    if (cli->format != CLI_JSON || cli_has(args, "detach") || cli_has(args, "dry-run"))
        return 0;
    return sl_fail(err, SL_INVALID,
                   "-o json goes with --detach or --dry-run: otherwise the output is the "
                   "program's; sluice ps -o json has the lease");
}

int cmd_run(struct cli *cli, const struct cli_args *args)
{
    static struct run_inherited in;
    AUTO_JSON json_t *answer = NULL, *problem = NULL;
    AUTO_JSON json_t *command = request_command(args->operand);
    struct run_plan plan = { .argv = args->operand,
                             .detach = cli_has(args, "detach"),
                             .userns = cli_has(args, "userns") };
    struct lease_request q;
    struct lease lease;
    struct sl_err err = { 0 };

    run_remember(&in);
    if (request_from_args(args, &q, &err) < 0 || check_output(cli, args, &err) < 0)
        return cli_fail(cli, &err);
    int refused = request_refuse_program(cli, args);
    if (refused)
        return refused;
    if (cli_connect(cli, true, &err) < 0 || request_refuse_nested(cli, &err) < 0)
        return cli_fail(cli, &err);
    if (cli_has(args, "dry-run"))
        return request_dry_run(cli, &q, command, false);
    if (request_lease(cli, &q, command, &answer, &problem, &err) < 0)
        return cli_fail_with(cli, &err, problem);
    if (lease_from_json(answer, &lease, &err) < 0) {
        give_back(cli, answer);
        err.code = SL_PROTOCOL;
        return cli_fail(cli, &err);
    }
    request_echo(cli, &lease);
    plan.lease = &lease;
    plan.cgroup = json_string_value(json_object_get(answer, "cgroup"));
    return run_in_lease(cli, &plan, answer, &in);
}
