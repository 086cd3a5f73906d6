/* Option parsing, and that everything made from the command table agrees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "core/macros.h"

/* What cli_parse() made of a line, as one string: "mem=1g detach| a b". */
static const char *parsed(const char *command, const char *line)
{
    static char out[512];
    static char copy[256];
    char *argv[32], *operand[33];
    int argc = 0;
    struct cli_args args;
    struct sl_err err = { 0 };
    const struct cli_option *o;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    argv[argc] = NULL;
    int rc = cli_parse(cli_find_command(command), argc, argv, operand, &args, &err);
    if (rc < 0) {
        snprintf(out, sizeof out, "error %s: %s", sl_code_row(err.code)->wire, err.msg);
        return out;
    }
    out[0] = 0;
    for (int i = 0; (o = cli_option_at(args.command, i)); i++)
        if (args.given[i])
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s%s ", o->name,
                     args.value[i] ? "=" : "", args.value[i] ? args.value[i] : "");
    snprintf(out + strlen(out), sizeof out - strlen(out), "|");
    for (int i = 0; i < args.operand_count; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), " %s", args.operand[i]);
    return out;
}

static const struct {
    const char *label, *command, *line, *want;
} cases[] = {
    { "bytes without a unit", "run", "--mem 536870912 prog", "mem=536870912 | prog" },
    { "few bytes with one", "run", "--mem 512B prog", "mem=512B | prog" },
    { "so few without one", "run", "--mem 512 prog",
      "error invalid: --mem: 512 bytes? The unit stands right behind the number: 512MiB, "
      "512GiB "
      "(or 512B)" },
    { "a value after a space", "run", "--mem 512MiB prog", "mem=512MiB | prog" },
    { "a value after =", "run", "--mem=512MiB prog", "mem=512MiB | prog" },
    { "a letter with its value attached", "run", "-m512MiB prog", "mem=512MiB | prog" },
    { "a letter with its value apart", "run", "-m 2g prog", "mem=2g | prog" },
    { "run stops at the first operand", "run", "-c 30 prog --mem 1g -x",
      "compute=30 | prog --mem 1g -x" },
    { "run leaves -- of the program alone", "run", "-- prog -- x", "| prog -- x" },
    { "options after operands elsewhere", "resize", "b --mem 1g", "mem=1g | b" },
    { "-- ends options elsewhere", "release", "-- -b", "| -b" },
    { "a lone - is an operand", "release", "-", "| -" },
    { "flags in one word", "ps", "-aq", "all quiet |" },
    { "an optional value is not the next word", "resize", "--wait b --mem 1g",
      "mem=1g wait | b" },
    { "an optional value after =", "resize", "--wait=5m b --mem 1g", "mem=1g wait=5m | b" },
    { "the last one wins", "resize", "b --mem 1g --mem 2g", "mem=2g | b" },
    { "a range of shares", "run", "--compute 20..60 x", "compute=20..60 | x" },
    { "global options belong to every command", "ps", "-o json --run-dir /x",
      "output=json run-dir=/x |" },
    { "help needs no operands", "resize", "--help", "help |" },
    { "a number of processors", "run", "--cpus 0.5 x", "cpus=0.5 | x" },

    { "an unknown option", "run", "--men 1g x",
      "error invalid: unknown option --men; did you mean --mem?" },
    { "an unknown option with a value", "run", "--compte=3 x",
      "error invalid: unknown option --compte; did you mean --compute?" },
    { "nothing like it", "run", "--zzzzzzzz x",
      "error invalid: unknown option --zzzzzzzz" },
    { "an unknown letter", "ps", "-z", "error invalid: unknown option -z" },
    { "a value is missing", "resize", "b --mem",
      "error invalid: --mem needs a value: SIZE" },
    { "what ends the options is no value", "run", "--mem -- x",
      "error invalid: --mem needs a value: SIZE" },
    { "nor is another option", "run", "-m --compute=3 x",
      "error invalid: -m needs a value: SIZE" },
    { "nor behind what takes any text", "run", "--name -- x",
      "error invalid: --name needs a value: NAME" },
    { "a long option with one dash", "run", "-mem 1GiB x",
      "error invalid: unknown option -mem; did you mean --mem?" },
    { "though its letters could be read otherwise", "run", "-name=b x",
      "error invalid: unknown option -name; did you mean --name?" },
    { "a negative time", "up", "--turn -5",
      "error invalid: --turn: -5: a duration cannot be negative: a duration is written like"
      " 90 (seconds), 250ms, 5m, 2h, 1d or 1h30m" },
    { "a flag takes no value", "ps", "--all=yes", "error invalid: --all takes no value" },
    { "a word that is not one of them", "ps", "-o jsn",
      "error invalid: --output: 'jsn' is not one of: table json; did you mean json?" },
    { "priority is a whole number", "run", "--priority high x",
      "error invalid: --priority: 'high' is not a whole number from 0 on" },
    { "priority is not negative", "run", "--priority -5 x",
      "error invalid: --priority: '-5' is not a whole number from 0 on" },
    { "processors are more than 0", "run", "--cpus 0 x",
      "error invalid: --cpus: '0' is not a number above 0" },
    { "an operand is missing", "run", "--mem 1g",
      "error invalid: something is missing; usage: sluice run [OPTIONS] [--] PROGRAM"
      " [ARGUMENT...]" },
    { "an operand too many", "resize", "a b",
      "error invalid: 'b' is one too many; usage: sluice resize [--mem SIZE] [--mem-limit "
      "SIZE] [--compute"
      " SHARE] [--priority N] [--wait[=TIME]] NAME" },
    { "an empty name", "run", "--name= x", "error invalid: --name: the value is empty" },
};

static void test_parse(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = parsed(cases[i].command, cases[i].line);
        if (strcmp(got, cases[i].want))
            fail_msg("%s: got '%s', want '%s'", cases[i].label, got, cases[i].want);
    }
}

/* Values that model/units.h refuses: that they are refused here, whatever it says. */
static void test_bad_values(void **state)
{
    static const char *const lines[] = {
        "--mem 0 x",       "--mem -1 x",         "--mem 18446744073709551616 x",
        "--mem 1zb x",     "--mem --compute x",  "--compute 0 x",
        "--compute 101 x", "--compute 70..30 x", "--compute x x",
        "--time soon x",   "--wait=never x",     "--host-mem 0 x",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const char *got = parsed("run", lines[i]);
        if (strncmp(got, "error invalid: --", 17))
            fail_msg("%s: got '%s'", lines[i], got);
    }
}

static char *printed(void (*print)(FILE *out))
{
    static char *text;
    static size_t size;
    FILE *f = open_memstream(&text, &size);
    print(f);
    fclose(f);
    return text;
}

static void must_have(const char *text, const char *what, const char *of)
{
    if (!strstr(text, what))
        fail_msg("%s is missing in %s", what, of);
}

static void test_texts_agree(void **state)
{
    char *man = printed(cli_print_man), *bash = printed(cli_print_completion);
    char *overview = printed(cli_print_overview);
    const struct cli_option *o;
    char word[128];

    for (const struct cli_command *c = cli_commands; c->name; c++) {
        must_have(overview, c->summary, "the overview");
        snprintf(word, sizeof word, ".Ss sluice %s\n", c->name);
        must_have(man, word, "the manual page");
        snprintf(word, sizeof word, "    %s:-*) ", c->name);
        char *line = strstr(bash, word);
        assert_non_null(line);
        *strchr(line, '\n') = 0;
        for (int i = 0; (o = cli_option_at(c, i)); i++) {
            snprintf(word, sizeof word, "--%s", o->name);
            must_have(line, word, "the completion");
            snprintf(word, sizeof word, "Fl \\-%s", o->name);
            must_have(man, word, "the manual page");
        }
        line[strlen(line)] = '\n';
    }
    free(man);
    free(bash);
    free(overview);
}

static void test_rows_are_sound(void **state)
{
    const struct cli_option *o, *p;
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        int i = 0;
        assert_non_null(c->options);
        for (; (o = cli_option_at(c, i)); i++) {
            assert_true((o->kind == CLI_FLAG) == !o->arg);
            assert_true((o->kind == CLI_WORD) == !!o->words);
            for (int k = 0; k < i; k++) {
                p = cli_option_at(c, k);
                if (!strcmp(o->name, p->name) || (o->letter && o->letter == p->letter))
                    fail_msg("%s: --%s and --%s are one option", c->name, o->name, p->name);
            }
        }
        assert_true(i <= CLI_MAX_OPTIONS);
    }
}

static void test_exit_statuses(void **state)
{
    for (int code = 0; code < SL_CODE_COUNT; code++) {
        int status = sl_code_row((enum sl_code)code)->exit_status;
        const struct cli_exit *e = cli_exits;
        while (e->what && e->status != status)
            e++;
        if (!e->what)
            fail_msg("exit status %d of %s is not in the help", status,
                     sl_code_row((enum sl_code)code)->wire);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),         cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_texts_agree),   cmocka_unit_test(test_rows_are_sound),
        cmocka_unit_test(test_exit_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
