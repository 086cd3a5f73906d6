/* What the doctor prints, and the children it asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "child.h"
#include "core/macros.h"
#include "doctor.h"

static int printed(const struct doctor *d, enum cli_format format, char *out, size_t size)
{
    FILE *f = fmemopen(out, size, "w");
    struct cli cli = { .program = "sluice", .out = f, .err = f, .format = format };
    struct doctor copy = *d;
    copy.cli = &cli;
    int status = doctor_print(&copy);
    fclose(f);
    return status;
}

static void test_broken_hop_is_named(void **state)
{
    static struct doctor d = {
        .checks = { { "loader", CHECK_OK, "ocl-icd 2.3.1", "" },
                    { "drivers", CHECK_BROKEN, "0 found", "install one" },
                    { "run", CHECK_SKIPPED, "not tried", "" } },
        .count = 3,
    };
    char out[1024];
    assert_int_equal(printed(&d, CLI_TABLE, out, sizeof out), 1);
    assert_string_equal(out, "ok      loader         ocl-icd 2.3.1\n"
                             "BROKEN  drivers        0 found\n"
                             "                       to do: install one\n"
                             "skip    run            not tried\n"
                             "\nsomething is broken: begin with the first BROKEN line, "
                             "the others may follow from it\n");
    assert_int_equal(printed(&d, CLI_JSON, out, sizeof out), 1);
    assert_non_null(strstr(out, "\"well\": false"));
    assert_non_null(strstr(out, "\"fix\": \"install one\""));
    d.checks[1].verdict = CHECK_WARN;
    assert_int_equal(printed(&d, CLI_JSON, out, sizeof out), 0);
    assert_non_null(strstr(out, "\"well\": true"));
    printed(&d, CLI_TABLE, out, sizeof out);
    assert_non_null(strstr(out, "\nnothing is broken in what was tested\n"));
    d.count = 2;
    printed(&d, CLI_TABLE, out, sizeof out);
    assert_non_null(strstr(out, "\nall is well\n"));
}

static void test_can_make(void **state)
{
    static const struct {
        const char *label, *path;
        bool can;
    } rows[] = {
        { "a folder that is there", "/tmp", true },
        { "folders that are not", "/tmp/sluice-not-there/a/b", true },
        { "below a file", "/etc/passwd/.cache/pocl", false },
        { "a file", "/etc/passwd", false },
        { "no name", "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (doctor_can_make(rows[i].path) != rows[i].can)
            fail_msg("%s", rows[i].label);
}

static const struct {
    const char *label, *script;
    int rc;
    const char *line;
    int status;
    const char *said;
    bool impatient; /* the child never does what is waited for */
} children[] = {
    { "a line and a good end", "echo one; cat >/dev/null", 0, "one", 0, "" },
    { "the first of two lines", "echo one; echo two", 0, "one", 0, "" },
    { "no line", "exit 3", -SL_IO, NULL, 3, "" },
    { "no line but words on stderr", "echo no room >&2; exit 125", -SL_IO, NULL, 125,
      "no room\n" },
    { "killed by a signal", "kill -9 $$", -SL_IO, NULL, 137, "" },
    { "an answer that never comes", "exec sleep 20", -SL_TIMEOUT, NULL, 137, "", true },
    { "a program that ignores the end of its input", "echo one; exec sleep 20", 0, "one",
      137, "", true },
};

static void test_children(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(children); i++) {
        const char *argv[] = { "/bin/sh", "-c", children[i].script, NULL };
        char line[64];
        int wait_ms = children[i].rc == -SL_TIMEOUT ? 50 : 20000;
        struct child c;
        struct sl_err err = { 0 };
        assert_int_equal(child_start(&c, argv, &err), 0);
        int rc = child_read_line(&c, line, sizeof line, wait_ms, &err);
        int status = child_finish(&c, children[i].impatient ? 50 : 20000);
        if (rc != children[i].rc || status != children[i].status ||
            (rc == 0 && strcmp(line, children[i].line)) || strcmp(c.said, children[i].said))
            fail_msg("%s: rc %d, status %d, said '%s'", children[i].label, rc, status,
                     c.said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_hop_is_named),
        cmocka_unit_test(test_can_make),
        cmocka_unit_test(test_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
