/* Two JSON answers beside each other: what is compared with what, and what is said of it. */
#include "ask.h"

#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The answer to both texts as files A and B of an empty folder. */
static const struct answer *compare(const char *a, const char *b, const char *options)
{
    static const struct answer *answer;
    char folder[] = "/tmp/sluice-compare-XXXXXX", path[2][64], line[200];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%c", folder, "ab"[i]);
        write_file(path[i], i ? b : a);
    }
    snprintf(line, sizeof line, "compare %s %s %s", path[0], path[1], options);
    answer = ask(line);
    unlink(path[0]);
    unlink(path[1]);
    rmdir(folder);
    return answer;
}

/* Several blanks as one, so that a row does not depend on the columns' widths. */
static const char *squeezed(const char *text)
{
    static char out[6000];
    char *to = out;
    for (; *text; text++)
        if (*text != ' ' || to == out || to[-1] != ' ')
            *to++ = *text;
    *to = 0;
    return out;
}

#define RUNS(a, b, c) "{\"s\": {\"mean\": 2, \"values\": [" #a "," #b "," #c "]}}"

static void figures_are_compared(void **state)
{
    static const struct {
        const char *label, *a, *b;
        int status;
        const char *want; /* a part of what is said */
    } rows[] = {
        { "a number", "{\"n\": 4}", "{\"n\": 5}", 0, "\nn 4 5 +1 +25.0 %" },
        { "the same", "{\"n\": 4}", "{\"n\": 4}", 0, "\nn 4 4 same\n" },
        { "from nothing there is no ratio", "{\"n\": 0}", "{\"n\": 5}", 0, "n 0 5 +5 \n" },
        { "a mean without an interval", "{\"n\": {\"mean\": 4.5}}",
          "{\"n\": {\"mean\": 4}}", 0, "n 4.50 4.00 -0.50 -11.1 %\n" },
        { "intervals add in squares", "{\"n\": {\"mean\": 10, \"low\": 7, \"high\": 13}}",
          "{\"n\": {\"mean\": 20, \"low\": 16, \"high\": 24}}", 0,
          "+10.00 +100.0 % +5.00 to +15.00\n" },
        { "one of them alone is none", "{\"n\": {\"mean\": 10, \"low\": 7, \"high\": 13}}",
          "{\"n\": {\"mean\": 20}}", 0, "+100.0 %\n" },
        { "an interval that holds 0", "{\"n\": {\"mean\": 10, \"low\": 7, \"high\": 13}}",
          "{\"n\": {\"mean\": 11, \"low\": 7, \"high\": 15}}", 0, "to +6.00, unclear" },
        { "runs in pairs: a constant shift is certain", RUNS(1, 5, 9), RUNS(2, 6, 10), 0,
          "+1.00 to +1.00, paired\n" },
        { "unlike numbers of runs are no pairs", "{\"n\": {\"mean\": 1, \"values\": [1]}}",
          "{\"n\": {\"mean\": 1.5, \"values\": [1,2]}}", 0, "+0.50 +50.0 %\n" },
        { "unknown is not 0", "{\"n\": null, \"m\": 1}", "{\"n\": 5, \"m\": 1}", 0,
          "n - 5 -" },
        { "by the policy's name, not its place",
          "{\"policies\": [{\"policy\": \"x\", \"n\": 1}, {\"policy\": \"y\", \"n\": 2}]}",
          "{\"policies\": [{\"policy\": \"y\", \"n\": 3}]}", 0, "\ny n 2 3 +1 +50.0 %" },
        { "who is missing is named",
          "{\"policies\": [{\"policy\": \"x\", \"n\": 1}, {\"policy\": \"y\", \"n\": 2}]}",
          "{\"policies\": [{\"policy\": \"y\", \"n\": 3}]}", 0, "\nx: only in A\n" },
        { "also in the second", "{\"policies\": [{\"policy\": \"y\", \"n\": 1}]}",
          "{\"policies\": [{\"policy\": \"y\", \"n\": 3}, {\"policy\": \"z\"}], \"k\": 1}",
          0, "\nz: only in B\nk: only in B\n" },
        { "named within named",
          "{\"l\": [{\"system\": \"s\", \"parts\": [{\"name\": \"p\", \"n\": 1}]}]}",
          "{\"l\": [{\"system\": \"s\", \"parts\": [{\"name\": \"p\", \"n\": 1}]}]}", 0,
          "\ns p n 1 1 same" },
        { "a list without names, by place", "[[1, 2], 3]", "[[1, 4], 3]", 0,
          "\n1 2 2 4 +2" },
        { "texts, where they differ", "{\"n\": 1, \"t\": \"u\"}",
          "{\"n\": 1, \"t\": \"v\"}", 0, "\nt: 'u' in A, 'v' in B\n" },
        { "unlike kinds", "{\"n\": 1, \"t\": {}}", "{\"n\": 1, \"t\": []}", 0,
          "\nt: not the same in A and B\n" },
        { "nothing in common", "{\"n\": 1}", "{\"m\": 1}", 2, "have no figure in common" },
        { "no JSON", "{\"n\": 1}", "n: 1", 2, "/b: " },
        { "an empty file", "", "{}", 2, "/a: " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer *x = compare(rows[i].a, rows[i].b, "");
        ROW(rows[i].label, x->status == rows[i].status);
        ROW(rows[i].label,
            !!strstr(squeezed(rows[i].status ? x->err : x->out), rows[i].want));
    }
}

static void differences_of_a_run_are_no_figures(void **state)
{
    const struct answer *x =
        compare("{\"n\": 1, \"paired\": {\"d\": 1}, \"less_the_first\": {\"d\": 1}}",
                "{\"n\": 1}", "");
    assert_null(strstr(x->out, "only in"));
}

static void as_json(void **state)
{
    const struct answer *x = compare(RUNS(1, 5, 9), RUNS(2, 6, 10), "--json");
    assert_int_equal(x->status, 0);
    assert_non_null(strstr(x->out, "\"name\": \"s\""));
    assert_non_null(strstr(x->out, "\"paired\": true"));
}

static void bad_lines_are_refused(void **state)
{
    static const struct {
        const char *label, *line, *err;
    } rows[] = {
        { "one file", "compare a", "usage: sluice-sim compare A B" },
        { "three files", "compare a b c", "'c' is one too many" },
        { "no such file", "compare /no/such /no/such", "/no/such" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct answer *x = ask(rows[i].line);
        ROW(rows[i].label, x->status != 0 && !!strstr(x->err, rows[i].err));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(figures_are_compared),
    cmocka_unit_test(differences_of_a_run_are_no_figures),
    cmocka_unit_test(as_json),
    cmocka_unit_test(bad_lines_are_refused),
};
ROWS_MAIN(tests)
