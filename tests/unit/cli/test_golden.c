/*
 * Whole commands against recorded answers: stdout, stderr, exit status and the
 * body sent, compared with the files of tests/golden/cli.
 *
 *   test-cli-golden           compare
 *   test-cli-golden --write   rewrite the files
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "core/macros.h"
#include "fake_api.h"

static bool rewrite;

static const struct {
    const char *file;    /* its name says what is shown */
    const char *answers; /* folder of tests/golden/api; NULL: nobody runs */
    int width;
    bool utf8;
    const char *line;
} cases[] = {
    { "overview", NULL, 80, true, "help" },
    { "help-run", NULL, 80, true, "help run" },
    { "help-submit", NULL, 80, true, "submit --help" },
    { "help-ps", NULL, 80, true, "help ps" },
    { "help-top", NULL, 80, true, "help top" },
    { "help-devices", NULL, 80, true, "help devices" },
    { "help-resize", NULL, 80, true, "help resize" },
    { "help-release", NULL, 80, true, "help release" },
    { "help-jobs", NULL, 80, true, "help jobs" },
    { "help-logs", NULL, 80, true, "help logs" },
    { "help-up", NULL, 80, true, "help up" },
    { "help-down", NULL, 80, true, "help down" },
    { "help-doctor", NULL, 80, true, "help doctor" },
    { "help-help", NULL, 80, true, "help help" },
    { "help-version", NULL, 80, true, "help version" },
    { "help-completion", NULL, 80, true, "help completion" },
    { "help-unknown", NULL, 80, true, "help nothing" },
    { "help-misspelt", NULL, 80, true, "help rum" },
    { "no-command", NULL, 80, true, "" },
    { "unknown-command", NULL, 80, true, "devcies" },
    { "unknown-option", NULL, 80, true, "ps --al" },
    { "run-usage-is-125", NULL, 80, true, "run --compute 101 x" },
    { "run-json-is-refused", NULL, 80, true, "run -o json -- true" },
    { "run-no-such-program", NULL, 80, true, "run -- /no/such/program" },
    { "run-wait-without-equals", NULL, 80, true, "run --wait 5s no-such-program" },
    { "submit-size-with-a-space", NULL, 80, true, "submit --mem 512 MiB no-such-program" },
    { "resize-size-with-a-space", "pair", 80, true, "resize a --mem 512 MiB" },
    { "resize-size-is-a-range", "pair", 80, true, "resize a --mem 1GiB..2GiB" },
    { "resize-share-with-a-space", "pair", 80, true, "resize a --compute 50 %" },
    { "run-dry-no-such-program", NULL, 80, true, "run --dry-run -- /no/such/program" },
    { "submit-directory", NULL, 80, true, "submit -- /" },
    { "submit-dry-directory", NULL, 80, true, "submit --dry-run -- /" },
    { "version-json", NULL, 80, true, "-o json version" },
    { "completion-unknown", NULL, 80, true, "completion fish" },
    { "devices-pair", "pair", 80, true, "devices" },
    { "devices-mixed", "mixed", 80, true, "devices" },
    { "devices-none", "none", 80, true, "devices" },
    { "devices-starts-an-agent", NULL, 80, true, "devices" },
    { "devices-json", "idle", 80, true, "devices -o json" },
    { "ps-pair", "pair", 80, true, "ps" },
    { "ps-all", "pair", 80, true, "ps -a" },
    { "ps-gang", "mixed", 80, true, "ps" },
    { "ps-none", "idle", 80, true, "ps" },
    { "ps-quiet", "idle", 80, true, "ps -q" },
    { "ps-no-agent", NULL, 80, true, "ps" },
    { "ps-no-agent-json", NULL, 80, true, "ps -o json" },
    { "jobs-no-agent", NULL, 80, true, "jobs" },
    { "top-no-agent", NULL, 80, true, "top --once" },
    { "top-no-agent-json", NULL, 80, true, "top -o json" },
    { "logs-no-agent", NULL, 80, true, "logs a" },
    { "jobs-all", "pair", 80, true, "jobs -a" },
    { "top-80-utf8", "pair", 80, true, "top --once" },
    { "top-80-ascii", "pair", 80, false, "top --once" },
    { "top-120-utf8", "pair", 120, true, "top --once" },
    { "top-120-ascii", "pair", 120, false, "top --once" },
    { "top-mixed", "mixed", 100, true, "top --once" },
    { "top-long-names-80", "long", 80, true, "top --once" },
    { "top-long-names-60", "long", 60, false, "top --once" },
    { "top-idle", "idle", 80, true, "top --once" },
    { "top-none", "none", 80, true, "top --once" },
    { "top-interval-too-short", "pair", 80, true, "top --interval 1ms" },
    { "resize-grows", "pair", 80, true, "resize a --compute 50 --mem 2GiB" },
    { "resize-shrinks", "pair", 80, true, "resize b --mem 788MiB" },
    { "resize-no-room", "pair", 80, true, "resize c --compute 50 --priority 70" },
    { "resize-unknown", "pair", 80, true, "resize nobody --mem 1g" },
    { "resize-limit", "borrow", 80, true, "resize a --mem-limit 2GiB" },
    { "resize-nothing", "pair", 80, true, "resize a" },
    { "release-one", "pair", 80, true, "release a" },
    { "release-one-of-two", "pair", 80, true, "release nobody a" },
    { "release-json", "pair", 80, true, "release a -o json" },
    { "logs", "pair", 80, true, "logs a" },
    { "top-limit-above-request", "borrow", 80, true, "top --once" },
    { "ps-limit-above-request", "borrow", 80, true, "ps" },
    { "up-starts", NULL, 80, true, "up" },
    { "up-runs-already", "mixed", 80, true, "up --emulate a100-80g:2" },
    { "down-nothing", NULL, 80, true, "down" },
    { "down-refused", "pair", 80, true, "down" },
};

/* Times of day and this machine's temporary folder differ from run to run. */
static void mask(char *text)
{
    for (char *p = text; *p; p++)
        if (isdigit(p[0]) && isdigit(p[1]) && p[2] == ':' && isdigit(p[3]) && p[5] == ':')
            memcpy(p, "HH:MM:SS", 8);
}

/* Runs a line; the transcript is owned by the caller. */
static char *transcript(size_t i)
{
    char line[256], name[] = "sluice", *argv[32] = { name }, *text, *out_text, *err_text,
                    *whole, dir[128];
    size_t size;
    int argc = 1;

    snprintf(line, sizeof line, "%s", cases[i].line);
    for (char *save, *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    snprintf(dir, sizeof dir, "%s/%s", RECORDED, cases[i].answers ? cases[i].answers : "");
    fake_api_serve(cases[i].answers ? dir : NULL);
    setlocale(LC_ALL, cases[i].utf8 ? "C.UTF-8" : "C");

    struct cli cli = { .program = "sluice",
                       .width = cases[i].width,
                       .utf8 = cases[i].utf8 };
    cli.out = open_memstream(&out_text, &size);
    cli.err = open_memstream(&err_text, &size);
    int status = cli_dispatch(&cli, argc, argv);
    fclose(cli.out);
    fclose(cli.err);
    client_destroy(cli.client);

    FILE *f = open_memstream(&text, &size);
    fprintf(f, "$ sluice %s\n%s", cases[i].line, out_text);
    if (err_text[0])
        fprintf(f, "--- stderr\n%s", err_text);
    if (fake_api_last_body()[0])
        fprintf(f, "--- sent\n%s\n", fake_api_last_body());
    fprintf(f, "--- exit %d\n", status);
    fclose(f);
    free(out_text);
    free(err_text);
    whole = text;
    mask(whole);
    return whole;
}

static void test_golden(void **state)
{
    int wrong = 0;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[256], want[16384] = "";
        char *got = transcript(i);
        snprintf(path, sizeof path, "%s/%s.txt", GOLDEN, cases[i].file);
        FILE *f = fopen(path, rewrite ? "w" : "r");
        assert_non_null(f);
        if (rewrite)
            fputs(got, f);
        else
            want[fread(want, 1, sizeof want - 1, f)] = 0;
        fclose(f);
        if (!rewrite && strcmp(got, want)) {
            print_error("%s: got\n%s\nwant\n%s\n", cases[i].file, got, want);
            wrong++;
        }
        free(got);
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_golden) };
    rewrite = argc > 1 && !strcmp(argv[1], "--write");
    setenv("TZ", "UTC", 1);
    setenv("SLUICE_RUN_DIR", "/run/sluice-test", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
