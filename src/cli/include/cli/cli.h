/*
 * The program `sluice`: what a command is, what it is given, and how it
 * answers.
 *
 * A command is a row of one table (commands.c).  From the row come dispatch,
 * option parsing, help, the man page and the completion.  A command's function
 * prints its answer to cli->out, hands failures to cli_fail(), and returns an
 * exit status.  One thread.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/client.h"
#include "core/err.h"
#include "os/room.h"
#include "os/rundir.h"

#define CLI_MAX_OPTIONS 32 /* of one command, the global ones included */

/* How a value is checked before the command sees it (always as text). */
enum cli_kind {
    CLI_FLAG, /* takes no value */
    CLI_TEXT,
    CLI_SIZE, /* model/units.h */
    CLI_SHARE,
    CLI_DURATION,
    CLI_COUNT,  /* a whole number >= 0 */
    CLI_NUMBER, /* a decimal number > 0 */
    CLI_WORD,   /* one of `words` */
};

struct cli_option {
    const char *name; /* "mem"; NULL ends a list */
    char letter;      /* 'm' for -m; 0: none */
    const char *arg;  /* "SIZE" in help; NULL for a flag */
    enum cli_kind kind;
    const char *help;     /* one sentence without a full stop */
    bool value_optional;  /* --wait or --wait=5m: a value only after '=' */
    const char *words;    /* CLI_WORD: "hard burst besteffort" */
    const char *complete; /* other values: "devices", "leases", "files" */
};

struct cli_example {
    const char *line, *what; /* line NULL ends a list */
};

struct cli;
struct cli_args;

struct cli_command {
    const char *name;     /* NULL ends the table */
    const char *summary;  /* one line, lower case, without a full stop */
    const char *synopsis; /* what follows the name: "[--wait] NAME" */
    const char *about;    /* paragraphs separated by an empty line; may be NULL */
    const struct cli_option *options;
    const struct cli_option *more_options; /* cli_lease_options, or NULL */
    const struct cli_example *examples;
    const char *exits;    /* what is special about its exit status; may be NULL */
    const char *operands; /* completes "devices", "leases", "commands", "programs"; NULL */
    int min_operands, max_operands; /* max -1: any number */
    bool stops_at_operand;          /* what follows the first operand is somebody else's */
    int failure_exit; /* every failure of ours exits with this; 0: the code's own */
    int (*run)(struct cli *cli, const struct cli_args *args);
};

extern const struct cli_command cli_commands[];
extern const struct cli_option cli_global_options[];
extern const struct cli_option cli_lease_options[]; /* what a lease may be asked for */

/* What each exit status of the program says; what NULL ends it. */
struct cli_exit {
    int status;
    const char *what;
};
extern const struct cli_exit cli_exits[];

/* Option number `i` of a command: its own, then more_options, then the global ones;
 * NULL after the last.  The index is that of struct cli_args. */
const struct cli_option *cli_option_at(const struct cli_command *command, int i);

/* One parsed command line; points into argv. */
struct cli_args {
    const struct cli_command *command;
    bool given[CLI_MAX_OPTIONS];
    const char *value[CLI_MAX_OPTIONS]; /* NULL: a flag, or no value given */
    char **operand;                     /* NULL-terminated where argv is */
    int operand_count;
};

enum cli_format { CLI_TABLE, CLI_JSON };

struct cli {
    const char *program; /* "sluice" */
    const struct cli_command *command;
    struct rundir rundir;       /* filled by cli_choose_rundir() */
    const char *run_dir_option; /* --run-dir, or NULL */
    struct client *client;      /* NULL until cli_connect() */
    enum cli_format format;
    bool colour, utf8; /* of what `out` can show */
    int width;         /* columns of `out` */
    bool quiet, verbose;
    FILE *out, *err;
};

/* The whole program; returns the exit status. */
int cli_main(int argc, char **argv);

/* The same for a `cli` whose streams and what they can show are already set. */
int cli_dispatch(struct cli *cli, int argc, char **argv);

const struct cli_command *cli_find_command(const char *name);
/* The one that was meant, or NULL. */
const char *cli_nearest_command(const char *name);

/*
 * Parse what follows the command's name.  `argv[0]` is the first word after it.
 * Options and operands mix, unless the command stops at the first operand; "--"
 * ends the options.  `operand` of *out needs room for argc + 1 pointers.
 * -SL_INVALID with a message and a did-you-mean.
 */
int cli_parse(const struct cli_command *command, int argc, char **argv, char **operand,
              struct cli_args *out, struct sl_err *err);

/* " (did you mean --wait=5s?)" of a word behind "--wait", "… --mem=512MiB?)" of one
 * behind "--mem 512"; else "". */
const char *cli_suggest_value(const struct cli_args *args, const char *word, char out[160]);

/* Was --name given, and with which value (NULL: none).  The name must be one of
 * the command's own or a global option. */
bool cli_has(const struct cli_args *args, const char *name);
const char *cli_value(const struct cli_args *args, const char *name);

/* Fill cli->rundir from --run-dir, SLUICE_RUN_DIR or the default. */
int cli_choose_rundir(struct cli *cli, struct sl_err *err);

/* Of the run directory's file system; false where it does not say. */
bool cli_look_at_room(const struct cli *cli, struct room *out);
/* A note where no job's output is kept now. */
void cli_warn_room(struct cli *cli);

/* A client in cli->client (and the run directory chosen).  With `start`, an embedded agent
 * is started where none runs, and a message says so. */
int cli_connect(struct cli *cli, bool start, struct sl_err *err);

/* Which options of the agent before go on in one that was just started (`node` may be NULL),
 * because leases live, and which do not. */
void cli_say_options(struct cli *cli, const json_t *node);

/* The same for what only lists: where no agent runs nothing is lent.  1 then, and a note
 * says so; one that broke is a failure. */
int cli_connect_if_any(struct cli *cli, struct sl_err *err);

/* The one place where a failure is printed: "sluice: MESSAGE" and what can be
 * done about it, to cli->err.  Returns the exit status. */
int cli_fail(struct cli *cli, const struct sl_err *err);
/* As cli_fail(), and what a problem+json said beside it (borrowed, may be NULL):
 * alternatives, needs, when. */
int cli_fail_with(struct cli *cli, const struct sl_err *err, const json_t *problem);

/* A message for people, to cli->err, unless --quiet. */
void cli_note(struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One JSON document to cli->out, indented; `j` is taken. */
int cli_print_json(struct cli *cli, json_t *j);

/* A percentage of permille with at most one decimal, "-" for a negative one. */
const char *cli_format_permille(int64_t permille, char out[16]);

/* Texts made from the table. */
void cli_print_overview(FILE *out);
void cli_print_help(FILE *out, const struct cli_command *command);
void cli_print_man(FILE *out);
void cli_print_completion(FILE *out);

/* The commands. */
int cmd_up(struct cli *cli, const struct cli_args *args);
int cmd_down(struct cli *cli, const struct cli_args *args);
int cmd_devices(struct cli *cli, const struct cli_args *args);
int cmd_run(struct cli *cli, const struct cli_args *args);
int cmd_submit(struct cli *cli, const struct cli_args *args);
int cmd_ps(struct cli *cli, const struct cli_args *args);
int cmd_top(struct cli *cli, const struct cli_args *args);
int cmd_resize(struct cli *cli, const struct cli_args *args);
int cmd_release(struct cli *cli, const struct cli_args *args);
int cmd_jobs(struct cli *cli, const struct cli_args *args);
int cmd_logs(struct cli *cli, const struct cli_args *args);
int cmd_doctor(struct cli *cli, const struct cli_args *args);
int cmd_help(struct cli *cli, const struct cli_args *args);
int cmd_version(struct cli *cli, const struct cli_args *args);
int cmd_completion(struct cli *cli, const struct cli_args *args);

#endif
