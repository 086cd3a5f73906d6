/* Option parsing of sluice-sim: one routine over the rows of a command. */
#include "sim/command.h"

#include <assert.h>
#include <string.h>

#include "base/suggest.h"
#include "sim/number.h"

static const struct sim_option help_option = { "help", NULL, "print this help" };

/* Option number `i`: the command's own, then --help; NULL after the last. */
static const struct sim_option *option_at(const struct sim_command *c, int i)
{
    for (const struct sim_option *o = c->options; o && o->name; o++)
        if (i-- == 0)
            return o;
    return i == 0 ? &help_option : NULL;
}

static int find_option(const struct sim_command *c, const char *name, size_t len)
{
    const struct sim_option *o;
    for (int i = 0; (o = option_at(c, i)); i++)
        if (strlen(o->name) == len && !memcmp(o->name, name, len))
            return i;
    return -1;
}

static int index_of(const struct sim_args *args, const char *name)
{
    int i = find_option(args->command, name, strlen(name));
    assert(i >= 0);
    return i;
}

bool sim_has(const struct sim_args *args, const char *name)
{
    return args->given[index_of(args, name)];
}

const char *sim_value(const struct sim_args *args, const char *name)
{
    return args->value[index_of(args, name)];
}

/* -1 if it is no whole number that fits. */
static int64_t parse_count(const char *text)
{
    uint64_t n;
    if (number_parse(text, strlen(text), 0, &n) != NUMBER_OK || n > UINT32_MAX)
        return -1;
    return (int64_t)n;
}

uint32_t sim_count(const struct sim_args *args, const char *name, uint32_t otherwise)
{
    const char *value = sim_value(args, name);
    return value ? (uint32_t)parse_count(value) : otherwise;
}

/* "unknown WHAT 'word'", and what was meant if something is near. */
static int fail_unknown(const char *what, const char *word, const char *const *known,
                        unsigned count, struct sl_err *err)
{
    const char *near = suggest_nearest(word, known, count);
    return near ? sl_fail(err, SL_INVALID, "unknown %s '%s'; did you mean '%s'?", what,
                          word, near)
                : sl_fail(err, SL_INVALID, "unknown %s '%s'", what, word);
}

static int fail_unknown_option(const struct sim_command *c, const char *word, size_t len,
                               struct sl_err *err)
{
    const struct sim_option *o;
    const char *names[SIM_MAX_OPTIONS];
    char name[64];
    unsigned count = 0;
    while ((o = option_at(c, (int)count)))
        names[count++] = o->name;
    snprintf(name, sizeof name, "%.*s", (int)len, word);
    return fail_unknown("option", name, names, count, err);
}

int sim_choose(const char *option, const char *list, const char *const *choices,
               unsigned count, unsigned *out, unsigned *out_count, struct sl_err *err)
{
    unsigned chosen = 0;
    for (unsigned i = 0; !list && i < count; i++)
        out[chosen++] = i;
    for (const char *at = list; at;) {
        char word[48];
        size_t len = strcspn(at, ",");
        unsigned which = 0;
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        while (which < count && strcmp(choices[which], word) != 0)
            which++;
        if (which == count)
            return fail_unknown(option, word, choices, count, err);
        for (unsigned i = 0; i < chosen; i++)
            if (out[i] == which)
                return sl_fail(err, SL_INVALID, "--%s: '%s' stands there twice", option,
                               word);
        out[chosen++] = which;
        at = at[len] ? at + len + 1 : NULL;
    }
    *out_count = chosen;
    return 0;
}

static bool is_word_of(const char *words, const char *value)
{
    size_t len = strlen(value);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == len && !memcmp(at, value, len))
            return true;
        at += word;
    }
    return false;
}

static int check_value(const struct sim_option *o, const char *value, struct sl_err *err)
{
    if (o->words && !is_word_of(o->words, value))
        return sl_fail(err, SL_INVALID, "--%s: '%s' is not one of: %s", o->name, value,
                       o->words);
    if (o->max && (parse_count(value) < o->min || parse_count(value) > o->max))
        return sl_fail(err, SL_INVALID, "--%s: '%s' is no whole number in %u..%u", o->name,
                       value, o->min, o->max);
    if (!value[0])
        return sl_fail(err, SL_INVALID, "--%s: the value is empty", o->name);
    return 0;
}

/* "--name", "--name=value", "--name value"; *i moves over a value taken. */
static int take_option(struct sim_args *out, int argc, char **argv, int *i,
                       struct sl_err *err)
{
    const char *name = argv[*i] + 2, *value = NULL;
    size_t len = strcspn(name, "=");
    int n = find_option(out->command, name, len);
    if (n < 0)
        return fail_unknown_option(out->command, name, len, err);
    const struct sim_option *o = option_at(out->command, n);
    if (!o->arg && name[len])
        return sl_fail(err, SL_INVALID, "--%s takes no value", o->name);
    if (o->arg) {
        value = name[len] ? name + len + 1 : *i + 1 < argc ? argv[++*i] : NULL;
        if (!value)
            return sl_fail(err, SL_INVALID, "--%s needs a value: %s", o->name, o->arg);
        int rc = check_value(o, value, err);
        if (rc < 0)
            return rc;
    }
    out->given[n] = true;
    out->value[n] = value;
    return 0;
}

static int check_complete(const struct sim_args *args, struct sl_err *err)
{
    const struct sim_command *c = args->command;
    const struct sim_option *o;
    for (int i = 0; (o = option_at(c, i)); i++)
        if (o->required && !args->given[i])
            return sl_fail(err, SL_INVALID, "--%s %s is missing", o->name, o->arg);
    if (args->operand_count < c->min_operands)
        return sl_fail(err, SL_INVALID, "something is missing; usage: sluice-sim %s %s",
                       c->name, c->operands);
    return 0;
}

int sim_parse(const struct sim_command *command, int argc, char **argv,
              struct sim_args *out, struct sl_err *err)
{
    bool options = true;
    *out = (struct sim_args){ .command = command };
    for (int i = 0; i < argc; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            if (argv[i][1] != '-')
                return sl_fail(err, SL_INVALID, "unknown option %s; options begin with --",
                               argv[i]);
            int rc = take_option(out, argc, argv, &i, err);
            if (rc < 0)
                return rc;
        } else if (out->operand_count == command->max_operands) {
            return sl_fail(err, SL_INVALID, "'%s' is one too many", argv[i]);
        } else {
            out->operand[out->operand_count++] = argv[i];
        }
    }
    return sim_has(out, "help") ? 0 : check_complete(out, err);
}
