/* `sluice submit`: hand a program to the agent and return at once. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "request.h"

#define SUBMIT_MS 60000

extern char **environ;

/* A list of strings; JSON holds no bytes that are not UTF-8. */
static json_t *string_list(const char *what, char *const *strings, struct sl_err *err)
{
    json_t *list = json_array();
    for (; *strings; strings++)
        if (json_array_append_new(list, json_string(*strings)) != 0) {
            json_decref(list);
            sl_fail(err, SL_INVALID,
                    "%s '%.60s' is not UTF-8 and cannot be sent; use: sluice run --detach",
                    what, *strings);
            return NULL;
        }
    return list;
}

/* There is no other way to read it than to set it. */
static int current_umask(void)
{
    mode_t mask = umask(022);
    umask(mask);
    return (int)mask;
}

static json_t *build_job(const struct lease_request *q, char *const *argv,
                         struct sl_err *err)
{
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_JSON json_t *args = string_list("argument", argv, err);
    AUTO_JSON json_t *env = args ? string_list("variable", environ, err) : NULL;
    if (!args || !env)
        return NULL;
    if (!cwd) {
        sl_fail(err, SL_NOT_FOUND, "the working directory does not exist any more");
        return NULL;
    }
    json_t *job = json_pack("{s:o,s:O,s:O,s:s,s:i}", "lease", lease_request_to_json(q),
                            "argv", args, "env", env, "cwd", cwd, "umask", current_umask());
    if (!job)
        sl_fail(err, SL_INVALID, "the working directory's name is not UTF-8: %s", cwd);
    return job;
}

int cmd_submit(struct cli *cli, const struct cli_args *args)
{
    AUTO_JSON json_t *answer = NULL, *problem = NULL;
    struct lease_request q;
    struct sl_err err = { 0 };

    if (request_from_args(args, &q, &err) < 0)
        return cli_fail(cli, &err);
    int refused = request_refuse_program(cli, args);
    if (refused)
        return refused;
    if (cli_connect(cli, true, &err) < 0)
        return cli_fail(cli, &err);
    /* A job waits for room by nature. */
    if (!cli_has(args, "wait"))
        q.wait_ms = UNKNOWN_U64;
    if (cli_has(args, "dry-run")) {
        AUTO_JSON json_t *command = request_command(args->operand);
        return request_dry_run(cli, &q, command, true);
    }
    AUTO_JSON json_t *job = build_job(&q, args->operand, &err);
    if (!job)
        return cli_fail(cli, &err);
    if (client_call(cli->client, "POST", "/v1/jobs", job, SUBMIT_MS, &answer, &problem,
                    &err) < 0)
        return cli_fail_with(cli, &err, problem);
    cli_warn_room(cli);
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, TAKE_PTR(answer));
    struct lease l;
    if (lease_from_json(answer, &l, NULL) == 0)
        request_warn(cli, &l);
    const char *id = json_string_value(json_object_get(answer, "id"));
    fprintf(cli->out, "%s\n", id ? id : "?");
    return 0;
}
