/* Help and the commands that print texts: help, version, completion. */
#include "cli/cli.h"

#include <string.h>

#define HELP_WIDTH  84
#define HELP_COLUMN 26 /* where an option's help starts */

/* Print words from `text`, the first at column `at`, further lines at `indent`; an
 * empty line in the text is a new paragraph. */
static void print_wrapped(FILE *out, int at, int indent, const char *text)
{
    bool first = true;
    for (;;) {
        while (*text == ' ' || *text == '\n') {
            if (text[0] == '\n' && text[1] == '\n') {
                fprintf(out, "\n\n%*s", indent, "");
                at = indent;
                first = true;
            }
            text++;
        }
        int len = (int)strcspn(text, " \n");
        if (!len)
            break;
        if (!first && at + 1 + len > HELP_WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        at += fprintf(out, "%s%.*s", first ? "" : " ", len, text);
        first = false;
        text += len;
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct cli_option *o)
{
    int at = fprintf(out, o->letter ? "  -%c, " : "      ", o->letter);
    at += fprintf(out, "--%s", o->name);
    if (o->arg)
        at += fprintf(out, o->value_optional ? "[=%s]" : " %s", o->arg);
    if (at >= HELP_COLUMN - 1) {
        fputc('\n', out);
        at = 0;
    }
    at += fprintf(out, "%*s", HELP_COLUMN - at, "");
    print_wrapped(out, at, HELP_COLUMN, o->help);
    if (o->words && !strstr(o->help, o->words))
        fprintf(out, "%*sone of: %s\n", HELP_COLUMN, "", o->words);
}

static void print_options(FILE *out, const char *title, const struct cli_option *o)
{
    if (!o || !o->name)
        return;
    fprintf(out, "\n%s:\n", title);
    for (; o->name; o++)
        print_option(out, o);
}

void cli_print_help(FILE *out, const struct cli_command *c)
{
    fprintf(out, "sluice %s: %s\n\nusage: sluice %s%s%s\n", c->name, c->summary, c->name,
            c->synopsis[0] ? " " : "", c->synopsis);
    if (c->about) {
        fputc('\n', out);
        print_wrapped(out, 0, 0, c->about);
    }
    print_options(out, "options", c->options);
    print_options(out, "the slice", c->more_options);
    print_options(out, "every command", cli_global_options);
    if (c->examples) {
        fputs("\nexamples:\n", out);
        for (const struct cli_example *e = c->examples; e->line; e++)
            fprintf(out, "  %s\n      %s\n", e->line, e->what);
    }
    if (c->exits) {
        fputs("\nexit status:\n  ", out);
        print_wrapped(out, 2, 2, c->exits);
    }
}

void cli_print_overview(FILE *out)
{
    fputs("sluice lends slices of accelerators to unmodified programs and holds them to "
          "it.\n\n"
          "usage: sluice [OPTIONS] COMMAND ...\n\ncommands:\n",
          out);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        fprintf(out, "  %-12s%s\n", c->name, c->summary);
    print_options(out, "every command", cli_global_options);
    fputs("\nexit status:\n", out);
    for (const struct cli_exit *e = cli_exits; e->what; e++)
        fprintf(out, "  %-5d%s\n", e->status, e->what);
    fputs("\nStart with: sluice devices\n"
          "            sluice run --mem 512MiB --compute 30 -- PROGRAM\n",
          out);
}

int cmd_help(struct cli *cli, const struct cli_args *args)
{
    if (cli_has(args, "man")) {
        cli_print_man(cli->out);
        return 0;
    }
    if (!args->operand_count) {
        cli_print_overview(cli->out);
        return 0;
    }
    const char *name = args->operand[0];
    const struct cli_command *c = cli_find_command(name);
    if (c) {
        cli_print_help(cli->out, c);
        return 0;
    }
    const char *near = cli_nearest_command(name);
    struct sl_err err = { 0 };
    if (near)
        sl_fail(&err, SL_NOT_FOUND, "there is no command '%s'; did you mean '%s'?", name,
                near);
    else
        sl_fail(&err, SL_NOT_FOUND, "there is no command '%s'; sluice help lists them",
                name);
    return cli_fail(cli, &err);
}

int cmd_version(struct cli *cli, const struct cli_args *args)
{
    if (cli->format == CLI_JSON)
        return cli_print_json(cli, json_pack("{s:s}", "version", SLUICE_VERSION));
    fprintf(cli->out, "sluice %s\n", SLUICE_VERSION);
    return 0;
}

int cmd_completion(struct cli *cli, const struct cli_args *args)
{
    if (!strcmp(args->operand[0], "bash")) {
        cli_print_completion(cli->out);
        return 0;
    }
    struct sl_err err = { 0 };
    sl_fail(&err, SL_INVALID, "no completion for '%s'; there is one for: bash",
            args->operand[0]);
    return cli_fail(cli, &err);
}
