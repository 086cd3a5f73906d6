/* Completion for bash, from the command table. */
#include "cli/cli.h"

#include <string.h>

static void print_option_words(FILE *out, const struct cli_command *c)
{
    const struct cli_option *o;
    for (int i = 0; (o = cli_option_at(c, i)); i++)
        fprintf(out, "%s--%s", i ? " " : "", o->name);
}

/* What completes a word of this sort, as shell; `sort` is "devices" and so on. */
static const char *completes(const char *sort)
{
    static const struct {
        const char *sort, *shell;
    } rows[] = {
        { "devices", "_sluice_words \"$(_sluice_ask devices)\"" },
        { "leases", "_sluice_words \"$(_sluice_ask ps)\"" },
        { "jobs", "_sluice_words \"$(_sluice_ask jobs)\"" },
        { "commands", "_sluice_words \"$commands\"" },
        { "programs", "COMPREPLY=($(compgen -c -- \"$cur\"))" },
        { "files", "COMPREPLY=($(compgen -f -- \"$cur\"))" },
        { "shells", "_sluice_words bash" },
    };
    for (size_t i = 0; sort && i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].sort, sort))
            return rows[i].shell;
    return ":";
}

/* The case of a command's options that take a value. */
static void print_value_cases(FILE *out, const struct cli_command *c)
{
    const struct cli_option *o;
    for (int i = 0; (o = cli_option_at(c, i)); i++) {
        if (o->kind == CLI_FLAG || o->value_optional)
            continue;
        fprintf(out, "    %s:--%s", c->name, o->name);
        if (o->letter)
            fprintf(out, "|%s:-%c", c->name, o->letter);
        if (o->words)
            fprintf(out, ") _sluice_words \"%s\"; return ;;\n", o->words);
        else
            fprintf(out, ") %s; return ;;\n", completes(o->complete));
    }
}

void cli_print_completion(FILE *out)
{
    static const struct cli_command none = { .name = "" }; /* before a command */
    fputs("# bash completion for sluice: source <(sluice completion bash)\n"
          "_sluice_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
          "_sluice_ask() {\n"
          "  sluice -q \"$1\" 2>/dev/null | awk 'NR > 1 { print $1; if ($2 != \"-\" && "
          "\"'$1'\""
          " != \"devices\") print $2 }'\n}\n"
          "_sluice() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev= cmd= i\n"
          "  ((COMP_CWORD)) && prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "  [[ $cur == = ]] && cur=\n"
          "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "  local commands=\"",
          out);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        fprintf(out, "%s%s", c == cli_commands ? "" : " ", c->name);
    fputs("\"\n  COMPREPLY=()\n"
          "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "    case \" $commands \" in *\" ${COMP_WORDS[i]} \"*) cmd=${COMP_WORDS[i]}; "
          "break;;"
          " esac\n  done\n  case $cmd:$prev in\n",
          out);
    print_value_cases(out, &none);
    for (const struct cli_command *c = cli_commands; c->name; c++)
        print_value_cases(out, c);
    fputs("  esac\n  case $cmd:$cur in\n", out);
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        fprintf(out, "    %s:-*) _sluice_words \"", c->name);
        print_option_words(out, c);
        fprintf(out, "\" ;;\n    %s:*) %s ;;\n", c->name, completes(c->operands));
    }
    fputs("    *) _sluice_words \"$commands\" ;;\n  esac\n}\n"
          "complete -o default -F _sluice sluice\n",
          out);
}
