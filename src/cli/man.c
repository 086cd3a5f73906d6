/* The manual page, sluice(1), in mdoc, from the command table. */
#include "cli/cli.h"

#include <string.h>

/* Text with what mdoc would read as a request or an escape made harmless.  A new
 * sentence starts a new line, as mdoc wants it; an empty line is a paragraph. */
static void print_text(FILE *out, const char *text)
{
    bool at_start = true;
    for (const char *p = text; *p; p++) {
        if (p[0] == '\n' && p[1] == '\n') {
            fputs("\n.Pp\n", out);
            at_start = true;
            p++;
            continue;
        }
        if (at_start && (*p == '.' || *p == '\''))
            fputs("\\&", out);
        at_start = false;
        if (*p == '\\')
            fputs("\\e", out);
        else if (*p == '-')
            fputs("\\-", out);
        else
            fputc(*p, out);
        if (*p == '.' && p[1] == ' ' && p > text + 1 && p[-1] != '.') {
            fputc('\n', out);
            at_start = true;
            p++;
        }
    }
    fputc('\n', out);
}

static void print_options(FILE *out, const struct cli_option *list)
{
    if (!list || !list->name)
        return;
    fputs(".Bl -tag -width Ds\n", out);
    for (const struct cli_option *o = list; o->name; o++) {
        fputs(".It ", out);
        if (o->letter)
            fprintf(out, "Fl %c , ", o->letter);
        fprintf(out, "Fl \\-%s", o->name);
        if (o->arg && o->value_optional)
            fprintf(out, " Ns Oo = Ns Ar %s Oc", o->arg);
        else if (o->arg)
            fprintf(out, " Ar %s", o->arg);
        fputc('\n', out);
        char first = o->help[0];
        if (first >= 'a' && first <= 'z')
            first = (char)(first - 'a' + 'A');
        fputc(first, out);
        print_text(out, o->help + 1);
        if (o->words && !strstr(o->help, o->words))
            fprintf(out, "(one of: %s)\n", o->words);
    }
    fputs(".El\n", out);
}

static void print_command(FILE *out, const struct cli_command *c)
{
    fprintf(out, ".Ss sluice %s\n.Nm\n.Cm %s\n", c->name, c->name);
    if (c->synopsis[0])
        print_text(out, c->synopsis);
    fputs(".Pp\n", out);
    fputc(c->summary[0] - 'a' + 'A', out);
    print_text(out, c->summary + 1);
    if (c->about) {
        fputs(".Pp\n", out);
        print_text(out, c->about);
    }
    print_options(out, c->options);
    if (c->more_options)
        fputs(".Pp\nThe slice:\n", out);
    print_options(out, c->more_options);
    if (c->exits) {
        fputs(".Pp\nExit status:\n", out);
        print_text(out, c->exits);
    }
}

static void print_examples(FILE *out)
{
    fputs(".Sh EXAMPLES\n.Bl -tag -width Ds\n", out);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        for (const struct cli_example *e = c->examples; e && e->line; e++) {
            fputs(".It Li ", out);
            print_text(out, e->line);
            print_text(out, e->what);
        }
    fputs(".El\n", out);
}

void cli_print_man(FILE *out)
{
    fputs(
        ".Dd $Mdocdate$\n.Dt SLUICE 1\n.Os\n.Sh NAME\n.Nm sluice\n"
        ".Nd lend slices of accelerators to unmodified programs\n"
        ".Sh SYNOPSIS\n.Nm\n.Op Ar options\n.Ar command\n.Op Ar argument ...\n"
        ".Sh DESCRIPTION\n.Nm\n"
        "lends a slice of a device, memory in bytes and a share of its time, to a program\n"
        "that knows nothing of it, holds the program to exactly that, and takes "
        "everything\n"
        "back when the program ends.\n.Pp\nOptions of every command:\n",
        out);
    print_options(out, cli_global_options);
    fputs(".Sh COMMANDS\n", out);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        print_command(out, c);
    fputs(".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
          ".It Ev SLUICE_RUN_DIR\nThe run directory, instead of the default of this user.\n"
          ".It Ev NO_COLOR\nIf set, no colours.\n"
          ".It Ev COLUMNS\nThe width of pictures where there is no terminal.\n.El\n"
          ".Sh EXIT STATUS\n.Bl -tag -width Ds\n",
          out);
    for (const struct cli_exit *e = cli_exits; e->what; e++)
        fprintf(out, ".It %d\n%s\n", e->status, e->what);
    fputs(".El\n", out);
    print_examples(out);
}
