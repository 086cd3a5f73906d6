/* `sluice-sim scenario`: what scenario files expect, and what is so. */
#include <string.h>

#include "model/units.h"
#include "sim/command.h"
#include "sim/scenario.h"

static void say(void *ctx, const char *line)
{
    struct sim *sim = ctx;
    fprintf(sim->out, "%s\n", line);
}

/* The exit status of one file; counted in *all. */
static int run_file(struct sim *sim, const char *path, struct scenario_result *all)
{
    AUTO_TEXT struct text text = { 0 };
    struct scenario *s = NULL;
    struct scenario_result result = { 0 };
    struct sl_err err = { 0 };
    char ms[32];
    int rc = text_open(path, &text, &err);
    if (!rc)
        rc = scenario_read(&text, &s, &err);
    if (!rc)
        rc = scenario_run(s, say, sim, &result, &err);
    scenario_destroy(s);
    if (rc)
        return sim_fail(sim, &err);
    all->expected += result.expected;
    all->failed += result.failed;
    fprintf(sim->out, "%s  %s: %u as expected, %u not; %s of virtual time\n",
            result.failed ? "FAILED" : "ok    ", path, result.expected - result.failed,
            result.failed, result.ms ? units_format_duration(result.ms, ms) : "0s");
    return result.failed != 0;
}

int sim_cmd_scenario(struct sim *sim, const struct sim_args *args)
{
    struct scenario_result all = { 0 };
    int worst = 0;
    if (!strcmp(args->operand[0], "200-cards"))
        return sim_cmd_cards(sim, args);
    for (int i = 0; i < args->operand_count; i++) {
        int status = run_file(sim, args->operand[i], &all);
        worst = status > worst ? status : worst;
    }
    if (args->operand_count > 1)
        fprintf(sim->out, "%d scenarios: %u as expected, %u not\n", args->operand_count,
                all.expected - all.failed, all.failed);
    return worst;
}
