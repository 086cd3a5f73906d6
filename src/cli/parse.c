/* Option parsing: one routine over the rows of a command. */
#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "model/units.h"

const struct cli_option *cli_option_at(const struct cli_command *command, int i)
{
    const struct cli_option *lists[] = { command->options, command->more_options,
                                         cli_global_options };
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (const struct cli_option *o = lists[l]; o && o->name; o++)
            if (i-- == 0)
                return o;
    return NULL;
}

/* The index of an option by name (of `len` bytes) or letter, or -1. */
static int find_option(const struct cli_command *c, const char *name, size_t len,
                       char letter)
{
    const struct cli_option *o;
    for (int i = 0; (o = cli_option_at(c, i)); i++)
        if (name ? strlen(o->name) == len && !memcmp(o->name, name, len)
                 : letter && o->letter == letter)
            return i;
    return -1;
}

bool cli_has(const struct cli_args *args, const char *name)
{
    int i = find_option(args->command, name, strlen(name), 0);
    assert(i >= 0);
    return args->given[i];
}

const char *cli_value(const struct cli_args *args, const char *name)
{
    int i = find_option(args->command, name, strlen(name), 0);
    assert(i >= 0);
    return args->value[i];
}

static int fail_unknown(const struct cli_command *c, const char *name, size_t len,
                        struct sl_err *err)
{
    const char *names[CLI_MAX_OPTIONS];
    int count = 0;
    const struct cli_option *o;
    while (count < CLI_MAX_OPTIONS && (o = cli_option_at(c, count)))
        names[count++] = o->name;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)len, name);
    const char *near = suggest_nearest(word, names, (size_t)count);
    if (near)
        return sl_fail(err, SL_INVALID, "unknown option --%s; did you mean --%s?", word,
                       near);
    return sl_fail(err, SL_INVALID, "unknown option --%s", word);
}

static int check_word(const char *words, const char *value, struct sl_err *err)
{
    char copy[128];
    const char *list[16];
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *save, *w = strtok_r(copy, " ", &save); w && count < 16;
         w = strtok_r(NULL, " ", &save)) {
        if (!strcmp(w, value))
            return 0;
        list[count++] = w;
    }
    const char *near = suggest_nearest(value, list, count);
    if (near)
        return sl_fail(err, SL_INVALID, "'%s' is not one of: %s; did you mean %s?", value,
                       words, near);
    return sl_fail(err, SL_INVALID, "'%s' is not one of: %s", value, words);
}

static int check_count(const char *value, struct sl_err *err)
{
    char *end;
    errno = 0;
    strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno)
        return sl_fail(err, SL_INVALID, "'%s' is not a whole number from 0 on", value);
    return 0;
}

static int check_number(const char *value, struct sl_err *err)
{
    if (!value[0] || value[strspn(value, "0123456789.")] || strtod(value, NULL) <= 0)
        return sl_fail(err, SL_INVALID, "'%s' is not a number above 0", value);
    return 0;
}

/* So few bytes are no slice of anything: the unit was forgotten.  A range is how shares are
 * written. */
static int check_size(const char *value, struct sl_err *err)
{
    uint64_t bytes;
    if (strstr(value, ".."))
        return sl_fail(err, SL_INVALID,
                       "'%s' is a range: --mem takes the lower size, --mem-limit the upper",
                       value);
    int rc = units_parse_size(value, &bytes, err);
    if (rc == 0 && bytes < MIB && !value[strspn(value, "0123456789")])
        return sl_fail(
            err, SL_INVALID,
            "%s bytes? The unit stands right behind the number: %sMiB, %sGiB (or %sB)",
            value, value, value, value);
    return rc;
}

static int check_value(const struct cli_option *o, const char *value, struct sl_err *err)
{
    uint64_t number;
    struct units_share share;

    switch (o->kind) {
    case CLI_SIZE:
        return check_size(value, err);
    case CLI_SHARE:
        return units_parse_share(value, &share, err);
    case CLI_DURATION:
        return units_parse_duration(value, &number, err);
    case CLI_COUNT:
        return check_count(value, err);
    case CLI_NUMBER:
        return check_number(value, err);
    case CLI_WORD:
        return check_word(o->words, value, err);
    case CLI_TEXT:
        if (!value[0])
            return sl_fail(err, SL_INVALID, "the value is empty");
        return 0;
    case CLI_FLAG:
        break;
    }
    return 0;
}

/* Note option number `i` with its value (NULL: none). */
static int take_option(struct cli_args *out, int i, const char *value, struct sl_err *err)
{
    const struct cli_option *o = cli_option_at(out->command, i);
    struct sl_err why = { 0 };
    if (value && check_value(o, value, &why) < 0)
        return sl_fail(err, SL_INVALID, "--%s: %s", o->name, why.msg);
    out->given[i] = true;
    out->value[i] = value;
    return 0;
}

/* "--name", of this command or of every one, with a value or without. */
static bool is_long_option(const struct cli_command *c, const char *word)
{
    return !strncmp(word, "--", 2) &&
           find_option(c, word + 2, strcspn(word + 2, "="), 0) >= 0;
}

/* The word behind an option that needs a value: what ends the options, or is one, is none.
 * *i moves over it. */
static int take_next(struct cli_args *out, int option, const char *name, int argc,
                     char **argv, int *i, struct sl_err *err)
{
    const char *next = *i + 1 < argc ? argv[*i + 1] : "--";
    if (!strcmp(next, "--") || is_long_option(out->command, next))
        return sl_fail(err, SL_INVALID, "%s needs a value: %s", name,
                       cli_option_at(out->command, option)->arg);
    ++*i;
    return take_option(out, option, next, err);
}

/* "--name", "--name=value", "--name value"; *i moves over a value taken. */
static int parse_long(struct cli_args *out, int argc, char **argv, int *i,
                      struct sl_err *err)
{
    const char *name = argv[*i] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    int n = find_option(out->command, name, len, 0);

    if (n < 0)
        return fail_unknown(out->command, name, len, err);
    const struct cli_option *o = cli_option_at(out->command, n);
    if (o->kind == CLI_FLAG) {
        if (equals)
            return sl_fail(err, SL_INVALID, "--%s takes no value", o->name);
        return take_option(out, n, NULL, err);
    }
    if (equals || o->value_optional)
        return take_option(out, n, equals ? equals + 1 : NULL, err);
    return take_next(out, n, argv[*i], argc, argv, i, err);
}

/* "-a", "-ab", "-mVALUE", "-m VALUE". */
static int parse_short(struct cli_args *out, int argc, char **argv, int *i,
                       struct sl_err *err)
{
    const char *word = argv[*i] + 1;
    size_t len = strcspn(word, "=");
    if (find_option(out->command, word, len, 0) >= 0)
        return sl_fail(err, SL_INVALID, "unknown option -%.*s; did you mean --%.*s?",
                       (int)len, word, (int)len, word);
    for (const char *p = word; *p; p++) {
        int n = find_option(out->command, NULL, 0, *p);
        if (n < 0)
            return sl_fail(err, SL_INVALID, "unknown option -%c", *p);
        const struct cli_option *o = cli_option_at(out->command, n);
        if (o->kind == CLI_FLAG) {
            int rc = take_option(out, n, NULL, err);
            if (rc < 0)
                return rc;
            continue;
        }
        if (p[1])
            return take_option(out, n, p[1] == '=' ? p + 2 : p + 1, err);
        if (o->value_optional)
            return take_option(out, n, NULL, err);
        return take_next(out, n, (char[]){ '-', *p, 0 }, argc, argv, i, err);
    }
    return 0;
}

static bool is_measure(enum cli_kind kind)
{
    return kind == CLI_SIZE || kind == CLI_SHARE || kind == CLI_DURATION;
}

const char *cli_suggest_value(const struct cli_args *args, const char *word, char out[160])
{
    const struct cli_option *o;
    for (int i = 0; (o = cli_option_at(args->command, i)); i++) {
        const char *value = args->value[i] ? args->value[i] : "";
        char whole[80];
        struct sl_err ignored;
        if (!args->given[i] || !is_measure(o->kind) ||
            (value[0] && word[0] >= '0' && word[0] <= '9') ||
            (size_t)snprintf(whole, sizeof whole, "%s%s", value, word) >= sizeof whole ||
            check_value(o, whole, &ignored) < 0)
            continue;
        snprintf(out, 160, " (did you mean --%s=%s?)", o->name, whole);
        return out;
    }
    return "";
}

static int check_operands(const struct cli_args *args, struct sl_err *err)
{
    char hint[160];
    const struct cli_command *c = args->command;
    if (cli_has(args, "help"))
        return 0;
    if (args->operand_count < c->min_operands)
        return sl_fail(err, SL_INVALID, "something is missing; usage: sluice %s %s",
                       c->name, c->synopsis);
    if (c->max_operands < 0 || args->operand_count <= c->max_operands)
        return 0;
    const char *word = args->operand[c->max_operands];
    return sl_fail(err, SL_INVALID, "'%s' is one too many%s; usage: sluice %s %s", word,
                   cli_suggest_value(args, word, hint), c->name, c->synopsis);
}

int cli_parse(const struct cli_command *command, int argc, char **argv, char **operand,
              struct cli_args *out, struct sl_err *err)
{
    int i = 0, rc = 0;

    *out = (struct cli_args){ .command = command, .operand = operand };
    for (; i < argc; i++) {
        const char *word = argv[i];
        if (!strcmp(word, "--")) {
            i++;
            break;
        }
        if (word[0] != '-' || !word[1]) {
            if (command->stops_at_operand)
                break;
            operand[out->operand_count++] = argv[i];
            continue;
        }
        if (word[1] == '-')
            rc = parse_long(out, argc, argv, &i, err);
        else
            rc = parse_short(out, argc, argv, &i, err);
        if (rc < 0)
            return rc;
    }
    while (i < argc)
        operand[out->operand_count++] = argv[i++];
    operand[out->operand_count] = NULL;
    return check_operands(out, err);
}
