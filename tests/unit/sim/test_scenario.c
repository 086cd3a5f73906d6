/* Scenarios: every file of tests/scenario holds; what is wrong in one is said with its place. */
#include "../rows.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario.h"

#define N1 "node n1: 2 x A100 80GiB\n"

struct told {
    char said[2000];
};

static void say(void *ctx, const char *line)
{
    struct told *t = ctx;
    size_t at = strlen(t->said);
    snprintf(t->said + at, sizeof t->said - at, "%s\n", line);
}

/* "ok", what was not as expected, or the error. */
static const char *play(const struct text *text, struct scenario_result *result)
{
    static struct told told;
    struct sl_err err = { 0 };
    struct scenario *s;
    told.said[0] = '\0';
    int rc = scenario_read(text, &s, &err);
    if (!rc) {
        rc = scenario_run(s, say, &told, result, &err);
        scenario_destroy(s);
    }
    if (rc)
        snprintf(told.said, sizeof told.said, "%s", err.msg);
    return told.said[0] ? told.said : "ok";
}

static void every_file_holds(void **state)
{
    glob_t files;
    struct scenario_result result;
    assert_int_equal(glob(SOURCE_ROOT "/tests/scenario/*.scn", 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= 10);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        AUTO_TEXT struct text text = { 0 };
        assert_int_equal(text_open(files.gl_pathv[i], &text, NULL), 0);
        ROW_STR(files.gl_pathv[i], play(&text, &result), "ok");
        ROW(files.gl_pathv[i], result.expected > 0);
    }
    globfree(&files);
}

static void a_text_gives(void **state)
{
    static const struct {
        const char *label, *text, *want; /* a part of what is said */
    } rows[] = {
        { "what is so is ok", N1 "submit a: 100%\nexpect a runs on n1\n", "ok" },
        { "blanks, comments and CRLF are nothing",
          "\r\n# a comment\r\n  " N1 "\tsubmit a : 100% # here, too\r\nexpect a runs\r\n",
          "ok" },
        { "what is not so is said with its line, its time and what is so instead",
          N1 "submit a: 2 x 100%\nafter 90s\nexpect a waits\n",
          "t:4: expect a waits\n  at 1m30s a runs on n1 and waited 0s" },
        { "why it waits is said", N1 "submit a b: 100%\n",
          "t:2:10: expected ':', not 'b'" },
        { "a count that is not met", N1 "submit a1..a4: 100%\nexpect 3 of a1..a4 run\n",
          "there are 2; a3 waits for room, 0s so far" },
        { "at least so many", N1 "submit a1..a4: 100%\nexpect at least 1 of a1..a4 run\n",
          "ok" },
        { "a tenant that holds something else",
          N1 "tenant t\nsubmit a by t: 50%\nexpect tenant t holds 1 A100\n",
          "it holds 0.500" },
        { "who was told to go for whom",
          N1
          "submit a: 2 x 100%, priority 1\nsubmit b: 100%\nexpect a was not told to go\n",
          "a is over, told to go for b" },
        { "within a time, and then it is late",
          N1 "submit a: 2 x 100%, runs 1h\nsubmit b: 100%\nexpect b runs within 59m\n",
          "at 59m b waits for room, 59m so far" },
        { "at the last moment of it",
          N1 "submit a: 2 x 100%, runs 1h\nsubmit b: 100%\nexpect b runs within 1h\n",
          "ok" },
        { "jobs that come one after the other",
          N1 "submit a1..a3 : 2 x 100%, runs 10m, every 10m\nafter 25m\n"
             "expect 2 of a1..a3 are over\nexpect a3 runs\n",
          "ok" },
        { "attained service counts over evictions",
          "policy: order by attained\n" N1
          "submit a: 2 x 100%, runs 2h, requeued\nafter 1h\nsubmit b: 2 x 100%, runs 10m\n"
          "expect b runs\nexpect a is over within 1h10m\n",
          "ok" },

        { "an empty file", "\n# nothing\n", "t:3:1: a scenario without a statement" },
        { "an unknown statement", "nodde n1: 1 x A100\n",
          "t:1:1: unknown statement 'nodde'; did you mean 'node'?" },
        { "an unknown clause", N1 "submit a: 100%, prioriti 3\n",
          "t:2:17: unknown clause of a submission 'prioriti'; did you mean 'priority'?" },
        { "a missing clause", N1 "submit a: 100%,\n",
          "t:2:16: expected clause of a submission" },
        { "a missing comma", N1 "submit a: 100% priority 3\n",
          "t:2:16: 'priority' is one word too many, or a comma is missing" },
        { "an unknown job", N1 "expect a runs\n", "t:2:8: there is no job 'a'" },
        { "an unknown node", N1 "submit a: 100%\nexpect a runs on n2\n",
          "t:3:18: there is no node 'n2'" },
        { "an unknown model", N1 "submit a: 100% on A100|H100\n",
          "t:2:19: there is no model 'H100'" },
        { "an unknown parent", "tenant a in b\n", "t:1:13: there is no tenant 'b'" },
        { "a tenant below itself", "tenant a in a\n",
          "t:1:13: a tenant is not below itself" },
        { "a parent that comes late", "tenant a\ntenant b\ntenant a in b\n",
          "t:3:13: a tenant's parent cannot be changed" },
        { "a node twice", N1 N1, "a node of this name is there already" },
        { "too many devices", "node n: 17 x A100\n", "more than 16 devices on a node" },
        { "no share", N1 "submit a: 2\n", "t:2:12: expected 'x', not the end of the line" },
        { "a share of nothing", N1 "submit a: 0%\n", "t:2:11: 0%: compute is between" },
        { "a size of nothing", N1 "submit a: 10% 0GiB\n", "t:2:15: " },
        { "a time that is none", N1 "at soon\n", "t:2:4: \"soon\" is not a duration" },
        { "time that goes back", N1 "at 1h\nat 30m\n",
          "t:3: it is later than that already" },
        { "a job twice", N1 "submit a: 100%\nsubmit a: 100%\n",
          "t:3: 'a' was submitted and is not over" },
        { "a range that goes back", N1 "submit a3..a1: 100%\n",
          "a range of names is written like job1..job9" },
        { "a policy that comes late", N1 "policy: order by age\n",
          "t:2:9: the policy comes before everything else" },
        { "a level that is none", N1 "submit a: 10%, within row\n",
          "t:2:23: unknown level 'row'" },
        { "within a device", N1 "submit a: 10%, within device\n",
          "all of it lies within a node, rack or zone" },
        { "a rack in two zones",
          "node a: 1 x T, rack r, zone y\nnode b: 1 x T, rack r, zone z\n", "t:2: " },
        { "a tick of no time", "policy: tick 0s\n" N1, "a tick is at least 1s" },
        { "an unknown order", "policy: order by size\n", "unknown order 'size'" },
        { "a word without an end",
          "node aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
          "a word longer than 63 letters" },
        { "a quota the core refuses", N1 "tenant a: deserves 2 A100, at most 1 A100\n",
          "t:2: " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text text = { 0 };
        struct scenario_result result;
        assert_int_equal(text_copy("t", rows[i].text, &text, NULL), 0);
        const char *have = play(&text, &result);
        if (!strstr(have, rows[i].want))
            fail_msg("row \"%s\": have \"%s\", want \"%s\"", rows[i].label, have,
                     rows[i].want);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_holds),
        cmocka_unit_test(a_text_gives),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
