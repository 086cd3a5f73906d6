/* The frame of sluice-sim: what a line gives, on which stream, with which status. */
#include "ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/jobsim.h"

#define JOBS "jobs --trace " SAMPLES "/jobs.csv --nodes 2x4 "

static void a_line_has_its_answer(void **state)
{
    static const struct {
        const char *label, *line;
        int status;
        const char *out, *err; /* parts of what is said; "": nothing is */
    } rows[] = {
        { "the version", "--version", 0, "sluice-sim " SLUICE_VERSION "\n", "" },
        { "the version, as a command", "version", 0, "sluice-sim ", "" },
        { "help", "--help", 0, "  openb     how much", "" },
        { "help of a command", "help openb", 0, "usage: sluice-sim openb --nodes FILE",
          "" },
        { "a system that is none", "scenario 200-cards --policy pool-shard", 2, "",
          "did you mean 'pool-shared'?" },
        { "no run at all", "scenario 200-cards --seeds 0", 2, "", "seeds" },
        { "a page that cannot be written",
          "scenario 200-cards --seeds 1 --days 1 --warm-days 1 --policy partitioned --html "
          "/none/x",
          1, "", "/none/x: No such file or directory" },
        { "its own --help needs nothing else", "openb --help", 0, "--ties N", "" },
        { "help of no command", "help opneb", 3, "", "there is no command 'opneb'" },
        { "nothing", "", 2, "", "usage: sluice-sim COMMAND" },
        { "an unknown command", "opneb", 2, "", "did you mean 'openb'?" },
        { "nothing like it", "zzzzzz", 2, "", "unknown command 'zzzzzz'\n" },
        { "an unknown option", "openb --node x", 2, "",
          "unknown option 'node'; did you mean 'nodes'?" },
        { "where to look then", "openb --node x", 2, "", "see: sluice-sim help openb" },
        { "a letter", "openb -n x", 2, "", "unknown option -n" },
        { "an option is missing", "openb --nodes a --pods b", 2, "",
          "--order FILE is missing" },
        { "a value is missing", "openb --nodes", 2, "", "--nodes needs a value: FILE" },
        { "an empty value", "openb --nodes=", 2, "", "--nodes: the value is empty" },
        { "a flag takes none", "openb --json=yes", 2, "", "--json takes no value" },
        { "a number too small", "openb --ties 0", 2, "",
          "--ties: '0' is no whole number in 1..1000" },
        { "no number", "openb --ties=-3", 2, "", "--ties: '-3' is no whole number" },
        { "jobs: a table", JOBS "--format csv --policy fifo,sjf", 0, "\nsjf  ", "" },
        { "jobs: what it was of", JOBS "--format csv --policy sjf", 0,
          "3 jobs on 2x4\nmeans over 10 orders", "" },
        { "jobs: JSON", JOBS "--format csv --policy qssf --json", 0,
          "\"policy\": \"qssf\",\n", "" },
        { "jobs: one order", JOBS "--format csv --ties 1 --json", 0, "\"orders\": 1,", "" },
        { "jobs: an unknown format", JOBS "--format murri", 2, "",
          "--format: 'murri' is not one of: muri philly chronus csv" },
        { "jobs: another format", JOBS "--format muri", 2, "", "no column 'num_gpu'" },
        { "jobs: an unknown policy", JOBS "--format csv --policy fifo,srft", 2, "",
          "unknown policy 'srft'; did you mean 'srtf'?" },
        { "jobs: no trace", "jobs --format csv --nodes 2x4 --trace /no/such", 3, "",
          "/no/such" },
        { "jobs: no nodes", JOBS "--format csv --nodes 2", 3, "",
          "'2' is neither a shape such as 8x8" },
        { "an operand too many", "openb x", 2, "", "'x' is one too many" },
        { "also behind --", "help -- -x -y", 2, "", "'-y' is one too many" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer *a = ask(rows[i].line);
        ROW(rows[i].label, a->status == rows[i].status);
        ROW(rows[i].label, rows[i].out[0] ? !!strstr(a->out, rows[i].out) : !a->out[0]);
        ROW(rows[i].label, rows[i].err[0] ? !!strstr(a->err, rows[i].err) : !a->err[0]);
    }
}

static void the_help_of_jobs_names_every_policy(void **state)
{
    const struct answer *a = ask("help jobs");
    for (unsigned i = 0; jobsim_policy_name(i); i++)
        ROW(jobsim_policy_name(i), !!strstr(a->out, jobsim_policy_name(i)));
}

static void options_have_values(void **state)
{
    static const struct sim_option options[] = {
        { "format", "F", "a format", .words = "muri csv" },
        { "seeds", "N", "how many", .max = 9 },
        { NULL },
    };
    static const struct sim_command c = { .name = "c", .options = options };
    const char *line[] = { "--format", "muri", "--seeds=3", "--format=csv" };
    const char *half_a_word[] = { "--format=mu" };
    struct sim_args args;
    struct sl_err err;
    assert_int_equal(sim_parse(&c, 4, (char **)line, &args, &err), 0);
    ROW_STR("the last one wins", sim_value(&args, "format"), "csv");
    ROW("a number", sim_count(&args, "seeds", 7) == 3);
    assert_int_equal(sim_parse(&c, 0, NULL, &args, &err), 0);
    ROW("not given", !sim_has(&args, "format") && sim_count(&args, "seeds", 7) == 7);
    ROW("a word", sim_parse(&c, 1, (char **)half_a_word, &args, &err) == -SL_INVALID);
    ROW_STR("which", err.msg, "--format: 'mu' is not one of: muri csv");
}

static void a_list_of_choices(void **state)
{
    static const char *const choices[] = { "fifo", "sjf", "fgd" };
    static const struct {
        const char *label, *list, *want;
    } rows[] = {
        { "all", NULL, "0 1 2 " },
        { "in the order given", "fgd,fifo", "2 0 " },
        { "one", "sjf", "1 " },
        { "unknown", "sjf,fgs", "unknown policy 'fgs'; did you mean 'fgd'?" },
        { "a part of one", "fif", "unknown policy 'fif'; did you mean 'fifo'?" },
        { "empty", "sjf,", "unknown policy ''" },
        { "twice", "sjf,fgd,sjf", "--policy: 'sjf' stands there twice" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned which[ARRAY_LEN(choices)], count = 0;
        struct sl_err err = { 0 };
        char have[300] = "";
        if (sim_choose("policy", rows[i].list, choices, ARRAY_LEN(choices), which, &count,
                       &err) < 0)
            snprintf(have, sizeof have, "%s", err.msg);
        for (unsigned c = 0; c < count; c++)
            snprintf(have + strlen(have), sizeof have - strlen(have), "%u ", which[c]);
        ROW_STR(rows[i].label, have, rows[i].want);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_has_its_answer),
    cmocka_unit_test(the_help_of_jobs_names_every_policy),
    cmocka_unit_test(options_have_values),
    cmocka_unit_test(a_list_of_choices),
};
ROWS_MAIN(tests)
