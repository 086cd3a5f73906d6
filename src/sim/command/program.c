/* The frame of sluice-sim: dispatch, help, failures, and the bar of a long run. */
#include "sim/command.h"

#include <errno.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"

#define HELP_WIDTH  84
#define HELP_COLUMN 20 /* where an option's help starts */
#define BAR_WIDTH   40

static const struct sim_command *find_command(const char *name)
{
    for (const struct sim_command *c = sim_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

/* ---- help ---- */

/* Words from `text`, the first at column `at`, further lines at `indent`; an empty line
 * in the text is a new paragraph. */
static void print_wrapped(FILE *out, int at, int indent, const char *text)
{
    while (*text) {
        size_t blanks = strspn(text, " \n"), len = strcspn(text + blanks, " \n");
        if (blanks > 1) {
            fprintf(out, "\n\n%*s", indent, "");
            at = indent;
        } else if (blanks && at + 1 + (int)len > HELP_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (blanks) {
            at += fprintf(out, " ");
        }
        at += fprintf(out, "%.*s", (int)len, text + blanks);
        text += blanks + len;
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct sim_option *o)
{
    int at = fprintf(out, "  --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    if (at > HELP_COLUMN - 2)
        at = fprintf(out, "\n") - 1;
    at += fprintf(out, "%*s", HELP_COLUMN - at, "");
    print_wrapped(out, at, HELP_COLUMN, o->help);
    if (o->words)
        fprintf(out, "%*sone of: %s\n", HELP_COLUMN, "", o->words);
}

static void print_help(FILE *out, const struct sim_command *c)
{
    fprintf(out, "sluice-sim %s: %s\n\nusage: sluice-sim %s", c->name, c->summary, c->name);
    for (const struct sim_option *o = c->options; o && o->name; o++)
        if (o->required)
            fprintf(out, " --%s %s", o->name, o->arg);
    fprintf(out, "%s%s%s\n", c->options ? " [OPTIONS]" : "", c->operands ? " " : "",
            c->operands ? c->operands : "");
    if (c->about) {
        fputc('\n', out);
        print_wrapped(out, 0, 0, c->about);
    }
    if (c->options)
        fputs("\noptions:\n", out);
    for (const struct sim_option *o = c->options; o && o->name; o++)
        print_option(out, o);
    if (c->example)
        fprintf(out, "\nexample:\n  %s\n", c->example);
}

static void print_overview(FILE *out)
{
    fputs("sluice-sim runs schedulers on recorded and invented loads, in virtual time.\n\n"
          "usage: sluice-sim COMMAND ...\n\ncommands:\n",
          out);
    for (const struct sim_command *c = sim_commands; c->name; c++)
        fprintf(out, "  %-10s%s\n", c->name, c->summary);
    fputs("\nsluice-sim help COMMAND says more.\n", out);
}

int sim_cmd_version(struct sim *sim, const struct sim_args *args)
{
    fprintf(sim->out, "sluice-sim %s\n", SLUICE_VERSION);
    return 0;
}

int sim_cmd_help(struct sim *sim, const struct sim_args *args)
{
    if (!args->operand_count) {
        print_overview(sim->out);
        return 0;
    }
    const struct sim_command *c = find_command(args->operand[0]);
    if (c) {
        print_help(sim->out, c);
        return 0;
    }
    struct sl_err err;
    sl_fail(&err, SL_NOT_FOUND, "there is no command '%s'; sluice-sim help lists them",
            args->operand[0]);
    return sim_fail(sim, &err);
}

/* ---- what is said on the side ---- */

int sim_fail(struct sim *sim, const struct sl_err *err)
{
    const struct sl_code_row *row = sl_code_row(err->code);
    fflush(sim->out);
    fprintf(sim->err, "sluice-sim: %s\n", err->msg[0] ? err->msg : row->wire);
    return row->exit_status;
}

void sim_progress(struct sim *sim, const char *what, uint64_t done, uint64_t total)
{
    if (!sim->progress || !total)
        return;
    int full = (int)(done * BAR_WIDTH / total);
    if (done == total)
        fputs("\r\033[K", sim->err);
    else
        fprintf(sim->err, "\r%s [%.*s%*s] %3d %%\033[K", what, full,
                "########################################", BAR_WIDTH - full, "",
                (int)(done * 100 / total));
    fflush(sim->err);
}

/* ---- dispatch ---- */

static int fail_unknown_command(struct sim *sim, const char *name)
{
    const char *names[32];
    size_t count = 0;
    struct sl_err err;
    for (const struct sim_command *c = sim_commands; c->name && count < 32; c++)
        names[count++] = c->name;
    const char *near = suggest_nearest(name, names, count);
    sl_fail(&err, SL_INVALID, "unknown command '%s'%s%s%s", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    int status = sim_fail(sim, &err);
    fputs("  see: sluice-sim help\n", sim->err);
    return status;
}

int sim_dispatch(struct sim *sim, int argc, char **argv)
{
    struct sim_args args;
    struct sl_err err = { 0 };

    if (argc < 2) {
        print_overview(sim->err);
        return sl_code_row(SL_INVALID)->exit_status;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "--version"))
        name += 2;
    const struct sim_command *c = find_command(name);
    if (!c)
        return fail_unknown_command(sim, name);
    if (sim_parse(c, argc - 2, argv + 2, &args, &err) < 0) {
        int status = sim_fail(sim, &err);
        fprintf(sim->err, "  see: sluice-sim help %s\n", c->name);
        return status;
    }
    if (sim_has(&args, "help")) {
        print_help(sim->out, c);
        return 0;
    }
    if (!c->run) {
        sl_fail(&err, SL_UNSUPPORTED, "this build has no '%s'", c->name);
        return sim_fail(sim, &err);
    }
    return c->run(sim, &args);
}

int sim_main(int argc, char **argv)
{
    struct sim sim = { .out = stdout, .err = stderr, .progress = isatty(STDERR_FILENO) };

    setlocale(LC_CTYPE, "");
    int status = sim_dispatch(&sim, argc, argv);
    /* A full disk or a closed pipe must not look like success. */
    if (status == 0 && (fflush(stdout) || ferror(stdout))) {
        struct sl_err err;
        sl_fail_sys(&err, SL_IO, errno, "cannot write to the output");
        status = sim_fail(&sim, &err);
    }
    return status;
}
