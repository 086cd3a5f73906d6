/*
 * The program `sluice-sim`: what a command is, what it is given, and how it answers.
 *
 * A command is a row of one table (command/commands.c); from the row come dispatch,
 * the parsing of options, and help.  A command's function prints its answer to
 * sim->out, hands failures to sim_fail(), and returns an exit status.  One thread.
 */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/err.h"

#define SIM_MAX_OPTIONS  24 /* of one command, --help included */
#define SIM_MAX_OPERANDS 256

struct sim_option {
    const char *name; /* "nodes"; NULL ends a list */
    const char *arg;  /* "FILE" in help; NULL: a flag */
    const char *help; /* one sentence without a full stop */
    bool required;
    uint32_t min, max; /* a whole number in min..max; max 0: any text */
    const char *words; /* one of these, "muri philly csv"; NULL: any text */
};

struct sim;
struct sim_args;

struct sim_command {
    const char *name;     /* NULL ends the table */
    const char *summary;  /* one line, lower case, without a full stop */
    const char *operands; /* "LOG" in help; NULL: none */
    const char *about;    /* paragraphs separated by an empty line; may be NULL */
    const char *example;  /* a line to type; may be NULL */
    const struct sim_option *options;
    int min_operands, max_operands;
    int (*run)(struct sim *sim, const struct sim_args *args);
};

extern const struct sim_command sim_commands[];

/* One parsed command line; points into argv. */
struct sim_args {
    const struct sim_command *command;
    bool given[SIM_MAX_OPTIONS];
    const char *value[SIM_MAX_OPTIONS]; /* NULL: a flag, or not given; the last one wins */
    const char *operand[SIM_MAX_OPERANDS];
    int operand_count;
};

struct sim {
    FILE *out, *err;
    bool progress; /* `err` is a terminal */
};

/* The whole program; returns the exit status. */
int sim_main(int argc, char **argv);
/* The same for a `sim` whose streams are set. */
int sim_dispatch(struct sim *sim, int argc, char **argv);

/* Parse what follows the command's name.  -SL_INVALID with a message and a did-you-mean. */
int sim_parse(const struct sim_command *command, int argc, char **argv,
              struct sim_args *out, struct sl_err *err);

/* The name must be one of the command's own options, or "help". */
bool sim_has(const struct sim_args *args, const char *name);
const char *sim_value(const struct sim_args *args, const char *name);
uint32_t sim_count(const struct sim_args *args, const char *name, uint32_t otherwise);

/* "a,b" as indices of the choices, in that order, each once at most; NULL: all of them.
 * `out` has room for `count`.  -SL_INVALID with a message and a did-you-mean. */
int sim_choose(const char *option, const char *list, const char *const *choices,
               unsigned count, unsigned *out, unsigned *out_count, struct sl_err *err);

/* The one place where a failure is printed; returns its exit status. */
int sim_fail(struct sim *sim, const struct sl_err *err);

/* A bar on sim->err, if that is a terminal: at every step, and once more with
 * done == total, which takes it away again. */
void sim_progress(struct sim *sim, const char *what, uint64_t done, uint64_t total);

/* The commands. */
int sim_cmd_openb(struct sim *sim, const struct sim_args *args);
int sim_cmd_carbon(struct sim *sim, const struct sim_args *args);
int sim_cmd_jobs(struct sim *sim, const struct sim_args *args);
int sim_cmd_scenario(struct sim *sim, const struct sim_args *args);
int sim_cmd_replay(struct sim *sim, const struct sim_args *args);
int sim_cmd_capacity(struct sim *sim, const struct sim_args *args);
int sim_cmd_compare(struct sim *sim, const struct sim_args *args);
int sim_cmd_cards(struct sim *sim, const struct sim_args *args);
int sim_cmd_explain(struct sim *sim, const struct sim_args *args);
int sim_cmd_whatif(struct sim *sim, const struct sim_args *args);
int sim_cmd_help(struct sim *sim, const struct sim_args *args);
int sim_cmd_version(struct sim *sim, const struct sim_args *args);

#endif
