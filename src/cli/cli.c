/* The program's frame: what a command is given, and how failures are said. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/suggest.h"
#include "cli/start.h"
#include "fetch.h"
#include "table.h"
#include "views.h"

#define ROOT_RUN_DIR "/run/sluice"

/* What may stand before the command's name: global options, and --version. */
static const struct cli_option root_options[] = {
    { "version", 0, NULL, CLI_FLAG, "print the version" },
    { NULL },
};
static const struct cli_command root = {
    .name = "",
    .synopsis = "COMMAND",
    .options = root_options,
    .max_operands = -1,
    .stops_at_operand = true,
};

const struct cli_command *cli_find_command(const char *name)
{
    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

void cli_note(struct cli *cli, const char *fmt, ...)
{
    if (cli->quiet)
        return;
    va_list ap;
    va_start(ap, fmt);
    fputs("sluice: ", cli->err);
    vfprintf(cli->err, fmt, ap);
    fputc('\n', cli->err);
    va_end(ap);
}

static void print_line(struct cli *cli, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    text_tame(line, "");
    fprintf(cli->err, "  - %s\n", line);
}

/* Members of a problem that help the reader; each is a string or a list of them.  A command
 * among them may be another user's. */
static void print_member(struct cli *cli, const json_t *value)
{
    if (json_is_string(value)) {
        print_line(cli, "%s", json_string_value(value));
    } else if (json_is_array(value)) {
        size_t i;
        json_t *item;
        json_array_foreach(value, i, item)
            print_member(cli, item);
    } else if (json_is_object(value)) {
        const char *id = json_string_value(json_object_get(value, "id"));
        const char *name = json_string_value(json_object_get(value, "name"));
        const char *command = json_string_value(json_object_get(value, "command"));
        if (id)
            print_line(cli, "%s%s%s%s%s", id, name && name[0] ? "  " : "", name ? name : "",
                       command ? "  " : "", command ? command : "");
    }
}

/* What the reader can do about it, where the message does not say that itself. */
static const char *advice(const struct cli_command *c, const struct sl_err *err)
{
    const char *operands = c && c->operands ? c->operands : "";
    switch (err->code) {
    case SL_NOT_FOUND:
        return !strcmp(operands, "leases") ? "sluice ps -a lists those that are known"
               : !strcmp(operands, "jobs") ? "sluice jobs -a lists those that are known"
                                           : NULL;
    case SL_DENIED:
        if (geteuid() == 0 ||
            strstr(err->msg, "run directory")) /* nobody to ask; it is said */
            return NULL;
        return "ask its owner, or root";
    case SL_TIMEOUT:
        return "try again, or wait longer";
    case SL_UNAVAILABLE:
        if (strstr(err->msg, "No space left"))
            return "make room in that file system, or choose another with --run-dir";
        if (strstr(err->msg, "sluice up")) /* what to do is said */
            return NULL;
        return "sluice doctor tests every part and says what is broken";
    case SL_PROTOCOL:
        return "do the versions differ? sluice down, then sluice up";
    case SL_IO:
        if (err->sys == 0 && strstr(err->msg, "No space left")) /* the agent's */
            return "make room there; sluice jobs --clear removes ended jobs and their logs";
        return err->sys == 0 || err->sys == ENOSPC || err->sys == EDQUOT ||
                       err->sys == EPIPE
                   ? "is a disk full, or a pipe closed?"
                   : NULL;
    case SL_INTERNAL:
        return "this is a fault of Sluice: please report it";
    default:
        return NULL;
    }
}

int cli_fail_with(struct cli *cli, const struct sl_err *err, const json_t *problem)
{
    const struct sl_code_row *row = sl_code_row(err->code);
    const struct cli_command *c = cli->command;

    fflush(cli->out);
    char said[sizeof err->msg];
    snprintf(said, sizeof said, "%s", err->msg[0] ? err->msg : row->wire);
    text_tame(said, "\n\t");
    fprintf(cli->err, "%s: %s\n", cli->program, said);
    print_member(cli, json_object_get(problem, "alternatives"));
    print_member(cli, json_object_get(problem, "leases"));
    if (err->code == SL_INVALID)
        fprintf(cli->err, "  see: %s help%s%s\n", cli->program, c && c->name[0] ? " " : "",
                c ? c->name : "");
    else if (advice(c, err))
        fprintf(cli->err, "  to do: %s\n", advice(c, err));
    return c && c->failure_exit ? c->failure_exit : row->exit_status;
}

int cli_fail(struct cli *cli, const struct sl_err *err)
{
    return cli_fail_with(cli, err, NULL);
}

int cli_print_json(struct cli *cli, json_t *j)
{
    int rc = json_dumpf(j, cli->out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(j);
    fputc('\n', cli->out);
    return rc ? sl_code_row(SL_IO)->exit_status : 0;
}

const char *cli_format_permille(int64_t permille, char out[16])
{
    if (permille < 0)
        return strcpy(out, "-");
    if (permille % 10)
        snprintf(out, 16, "%d.%d", (int)(permille / 10), (int)(permille % 10));
    else
        snprintf(out, 16, "%d", (int)(permille / 10));
    return out;
}

int cli_choose_rundir(struct cli *cli, struct sl_err *err)
{
    static const struct rundir of_root = { ROOT_RUN_DIR };
    int rc = rundir_choose(&cli->rundir, cli->run_dir_option, err);

    /* the machine's agent serves every user; one of one's own would find the devices held
     */
    if (rc == 0 && geteuid() != 0 && !cli->run_dir_option && !getenv("SLUICE_RUN_DIR") &&
        !agent_is_running(&cli->rundir) && agent_is_running(&of_root))
        cli->rundir = of_root;
    return rc;
}

bool cli_look_at_room(const struct cli *cli, struct room *out)
{
    AUTO_CLOSE int dir = open(cli->rundir.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 && room_look(dir, out);
}

void cli_warn_room(struct cli *cli)
{
    struct room room;
    char left[32];
    if (cli_look_at_room(cli, &room) && room_is_short(&room))
        cli_note(cli, "%s has only %s free: no job's log grows", cli->rundir.path,
                 format_bytes(room.free_bytes, left));
}

int cli_connect_if_any(struct cli *cli, struct sl_err *err)
{
    int rc = cli_connect(cli, false, err);
    if (rc == 0 || !cli->rundir.path[0] || agent_left_traces(&cli->rundir))
        return rc;
    cli_note(cli, "%s", err->msg);
    return 1;
}

void cli_say_options(struct cli *cli, const json_t *node)
{
    const char *taken = json_string_value(json_object_get(node, "options_taken_over"));
    const char *lost = json_string_value(json_object_get(node, "options_lost"));
    if (taken)
        cli_note(cli,
                 "leases of the agent before live, so its options hold on: %s; to change "
                 "them: sluice down, then sluice up",
                 taken);
    if (lost)
        cli_note(cli, "leases of the agent before live, which had other options: %s", lost);
}

static void say_started(struct cli *cli)
{
    AUTO_JSON json_t *node = NULL;
    fetch_json(cli, "/v1/node", &node, NULL);
    if (json_is_false(json_object_get(node, "embedded")))
        cli_note(cli, "started the agent again (it stays, as the one before did)");
    else
        cli_note(cli, "started an agent in the background (it ends 60 s after its last"
                      " lease; one that `sluice up` started stays)");
    cli_say_options(cli, node);
}

int cli_connect(struct cli *cli, bool start, struct sl_err *err)
{
    char path[108];

    if (cli->client)
        return 0;
    int rc = cli_choose_rundir(cli, err);
    if (rc < 0)
        return rc;
    bool started = false;
    if (!agent_is_running(&cli->rundir)) {
        if (!start)
            return agent_fail_missing(&cli->rundir, err);
        struct start_options embedded = { .embedded = true };
        rc = agent_start(&cli->rundir, &embedded, err);
        if (rc < 0)
            return rc;
        started = rc == 0;
    }
    rc = rundir_path(&cli->rundir, "agent.sock", path, sizeof path, err);
    if (rc < 0)
        return rc;
    cli->client = client_create(path, err);
    if (cli->client && started)
        say_started(cli);
    return cli->client ? 0 : -(int)err->code;
}

/* What `out` can show. */
static void look_at_terminal(struct cli *cli)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    const char *columns = getenv("COLUMNS");
    int fd = fileno(cli->out);
    struct winsize size;

    cli->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    cli->colour =
        isatty(fd) && !(no_colour && no_colour[0]) && term && strcmp(term, "dumb");
    cli->width = 80;
    if (columns && atoi(columns) >= 40 && atoi(columns) <= 1000)
        cli->width = atoi(columns);
    else if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        cli->width = size.ws_col;
}

static void take_global_options(struct cli *cli, const struct cli_args *args)
{
    const char *value = cli_value(args, "output");
    if (value)
        cli->format = !strcmp(value, "json") ? CLI_JSON : CLI_TABLE;
    if (cli_value(args, "run-dir"))
        cli->run_dir_option = cli_value(args, "run-dir");
    cli->quiet |= cli_has(args, "quiet");
    cli->verbose |= cli_has(args, "verbose");
}

const char *cli_nearest_command(const char *name)
{
    const char *names[64];
    size_t count = 0;
    for (const struct cli_command *c = cli_commands; c->name && count < 64; c++)
        names[count++] = c->name;
    return suggest_nearest(name, names, count);
}

static int fail_unknown_command(struct cli *cli, const char *name)
{
    const char *near = cli_nearest_command(name);
    struct sl_err err = { 0 };
    if (near)
        sl_fail(&err, SL_INVALID, "unknown command '%s'; did you mean '%s'?", name, near);
    else
        sl_fail(&err, SL_INVALID, "unknown command '%s'", name);
    return cli_fail(cli, &err);
}

/* Parse for one command and run it.  `operand` has room for argc + 1 pointers. */
static int run_command(struct cli *cli, const struct cli_command *c, int argc, char **argv,
                       char **operand)
{
    struct cli_args args;
    struct sl_err err = { 0 };

    cli->command = c;
    if (cli_parse(c, argc, argv, operand, &args, &err) < 0)
        return cli_fail(cli, &err);
    if (cli_has(&args, "help")) {
        cli_print_help(cli->out, c);
        return 0;
    }
    take_global_options(cli, &args);
    if (!c->run) {
        sl_fail(&err, SL_UNSUPPORTED, "this build has no '%s'", c->name);
        return cli_fail(cli, &err);
    }
    return c->run(cli, &args);
}

int cli_dispatch(struct cli *cli, int argc, char **argv)
{
    AUTO_FREE char **operand = calloc((size_t)argc + 1, sizeof *operand);
    struct cli_args args;
    struct sl_err err = { 0 };

    cli->command = &root;
    if (!operand) {
        sl_fail(&err, SL_INTERNAL, "out of memory");
        return cli_fail(cli, &err);
    }
    if (cli_parse(&root, argc - 1, argv + 1, operand, &args, &err) < 0)
        return cli_fail(cli, &err);
    take_global_options(cli, &args);
    if (cli_has(&args, "version"))
        return cmd_version(cli, &args);
    if (cli_has(&args, "help") || !args.operand_count) {
        cli_print_overview(cli_has(&args, "help") ? cli->out : cli->err);
        return cli_has(&args, "help") ? 0 : sl_code_row(SL_INVALID)->exit_status;
    }
    const char *name = operand[0];
    const struct cli_command *c = cli_find_command(name);
    if (!c)
        return fail_unknown_command(cli, name);
    int skip = argc - args.operand_count + 1;
    return run_command(cli, c, argc - skip, argv + skip, operand);
}

int cli_main(int argc, char **argv)
{
    struct cli cli = { .program = "sluice", .out = stdout, .err = stderr };

    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* 12.5 is 12.5 everywhere */
    look_at_terminal(&cli);
    int status = cli_dispatch(&cli, argc, argv);
    client_destroy(cli.client);
    /* A full disk or a closed pipe must not look like success. */
    if (status == 0 && (fflush(stdout) || ferror(stdout))) {
        struct sl_err err = { 0 };
        sl_fail_sys(&err, SL_IO, errno, "cannot write to the output");
        status = cli_fail(&cli, &err);
    }
    return status;
}
