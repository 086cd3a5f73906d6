/* The Nth allocation fails in each reader and in what runs on them: an error or success, nothing half, no leak. */
#include "../rows.h"
#include "../nth_alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/carbon.h"
#include "sim/command.h"
#include "sim/gavel.h"
#include "sim/helios.h"
#include "sim/jobstats.h"
#include "sim/llm.h"
#include "sim/openb.h"
#include "sim/scenario.h"
#include "sim/trace.h"

#define SCENARIO SAMPLES "/../../scenario/ff14-priority-reaches-slices.scn"

static struct sl_err err;

static bool opened(const char *name, struct text *out)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", SAMPLES, name);
    return text_open(path, out, &err) == 0;
}

static bool checked(int rc)
{
    /* jansson may say "invalid" where its own memory ran out */
    if (rc < 0 && (rc != -(int)err.code || !err.msg[0]))
        fail_msg("rc %d, \"%s\"", rc, err.msg);
    return rc == 0;
}

#define READ(name, type, read, finish)                               \
    do {                                                             \
        AUTO_TEXT struct text text = { 0 };                          \
        type out = { 0 };                                            \
        bool ok = opened(name, &text) && checked(read(&text, &out)); \
        finish(&out);                                                \
        return ok;                                                   \
    } while (0)

#define NODES(text, out)    openb_nodes_read(text, out, &err)
#define PODS(text, out)     openb_pods_read(text, out, &err)
#define ORDERS(text, out)   openb_orders_read(text, 4, out, &err)
#define MURI(text, out)     trace_read("muri", text, out, &err)
#define PHILLY(text, out)   trace_read("philly", text, out, &err)
#define CHRONUS(text, out)  trace_read("chronus", text, out, &err)
#define CSV(text, out)      trace_read("csv", text, out, &err)
#define SPEEDS(text, out)   gavel_speeds_read(text, out, &err)
#define ARRIVALS(text, out) gavel_trace_read(text, out, &err)
#define CARBON(text, out)   carbon_read(text, out, &err)
#define LLM(text, out)      llm_trace_read(text, out, &err)
#define HELIOS(text, out)   helios_read(text, out, &err)

static bool nodes(void)
{
    READ("openb_nodes.csv", struct openb_nodes, NODES, openb_nodes_finish);
}
static bool pods(void)
{
    READ("openb_pods.csv", struct openb_pods, PODS, openb_pods_finish);
}
static bool orders(void)
{
    READ("openb_pods.order.gz", struct openb_orders, ORDERS, openb_orders_finish);
}
static bool muri(void)
{
    READ("muri.csv", struct trace, MURI, trace_finish);
}
static bool philly(void)
{
    READ("philly.csv.gz", struct trace, PHILLY, trace_finish);
}
static bool chronus(void)
{
    READ("chronus.csv", struct trace, CHRONUS, trace_finish);
}
static bool csv(void)
{
    READ("jobs.csv", struct trace, CSV, trace_finish);
}
static bool speeds(void)
{
    READ("speeds.json", struct gavel_speeds, SPEEDS, gavel_speeds_finish);
}
static bool arrivals(void)
{
    READ("arrivals.trace.gz", struct gavel_trace, ARRIVALS, gavel_trace_finish);
}
static bool carbon(void)
{
    READ("carbon.csv", struct carbon, CARBON, carbon_finish);
}
static bool llm(void)
{
    READ("llm.csv", struct llm_trace, LLM, llm_trace_finish);
}
static bool helios(void)
{
    READ("helios.csv", struct helios, HELIOS, helios_finish);
}

static bool said(char **line, int count)
{
    FILE *null = fopen("/dev/null", "w");
    assert_non_null(null);
    struct sim sim = { .out = null, .err = null };
    int status = sim_dispatch(&sim, count, line);
    fclose(null);
    return status == 0;
}

/* A whole command, two policies. */
static bool openb(void)
{
    const char *line[] = { "sluice-sim", "openb",
                           "--nodes",    SAMPLES "/openb_nodes.csv",
                           "--pods",     SAMPLES "/openb_pods.csv",
                           "--order",    SAMPLES "/openb_pods.order.gz",
                           "--policy",   "random,fgd,pwr50,sluice-power",
                           "--against",  "fgd",
                           "--ties",     "1",
                           "--json" };
    return said((char **)line, ARRAY_LEN(line));
}

/* A run that writes its log, that again, and what it is asked. */
static bool replayed(void)
{
    char path[] = "/tmp/sluice-alloc-XXXXXX";
    int fd = mkstemp(path);
    const char *run[] = { "sluice-sim", "jobs",    "--format",
                          "csv",        "--trace", SAMPLES "/jobs.csv",
                          "--nodes",    "1x2",     "--policy",
                          "sluice",     "--log",   path };
    const char *again[] = { "sluice-sim", "replay", path, "--decisions", "--events" };
    const char *why[] = { "sluice-sim", "explain", path, "1", "--at", "3" };
    const char *whatif[] = { "sluice-sim", "whatif",   path,     "--add-nodes",
                             "1",          "--at",     "3",      "--quota",
                             "0:0=1:2",    "--submit", "2 x 50%" };
    assert_true(fd >= 0);
    bool ok =
        said((char **)run, ARRAY_LEN(run)) && said((char **)again, ARRAY_LEN(again)) &&
        said((char **)why, ARRAY_LEN(why)) && said((char **)whatif, ARRAY_LEN(whatif));
    close(fd);
    unlink(path);
    return ok;
}

/* What two runs printed, beside each other. */
static bool compared(void)
{
    const char *line[] = { "sluice-sim", "compare", SAMPLES "/speeds.json",
                           SAMPLES "/speeds.json", "--json" };
    return said((char **)line, ARRAY_LEN(line));
}

/* Every policy on the sample, and what it comes to. */
static bool simulate_all(enum jobsim_rules rules, const char *format, const char *file)
{
    AUTO_TRACE struct trace t = { 0 };
    AUTO_TEXT struct text text = { 0 };
    const struct jobsim_options o = { .rules = rules, .tie_order = 1 };
    bool ok = opened(file, &text) && checked(trace_read(format, &text, &t, &err));
    for (unsigned p = 0; ok && jobsim_policy_name(p); p++) {
        if (!jobsim_policy_under(p, rules))
            continue;
        AUTO_JOBSIM_RESULT struct jobsim_result r = { 0 };
        struct jobstats s = { 0 };
        ok = checked(jobsim_run(jobsim_policy_name(p), &t, "2x2", &o, &r, &err)) &&
             checked(jobstats_add(&s, &t, &r, &err));
        json_t *j = ok ? jobstats_json(&s, "p") : NULL;
        ok = j;
        json_decref(j);
    }
    return ok;
}

static bool simulated(void)
{
    return simulate_all(JOBSIM_HELIOS, "csv", "jobs.csv");
}
static bool interleaved(void)
{
    return simulate_all(JOBSIM_MURI, "muri", "muri.csv");
}

/* Work that waits, and that moves. */
static bool shifted(void)
{
    const char *line[] = { "sluice-sim", "carbon", SAMPLES "/carbon.csv",
                           SAMPLES "/carbon.csv", "--json" };
    return said((char **)line, ARRAY_LEN(line));
}

/* A scenario, read and run. */
static void ignore(void *ctx, const char *line) {}
static bool played(void)
{
    AUTO_TEXT struct text text = { 0 };
    struct scenario *s = NULL;
    struct scenario_result result;
    bool ok = checked(text_open(SCENARIO, &text, &err)) &&
              checked(scenario_read(&text, &s, &err)) &&
              checked(scenario_run(s, ignore, NULL, &result, &err));
    scenario_destroy(s);
    return ok;
}

/* 200 cards, few sessions, two systems, and the page. */
static bool cards(void)
{
    const char *line[] = { "sluice-sim",
                           "scenario",
                           "200-cards",
                           "--seeds",
                           "1",
                           "--sessions",
                           "1",
                           "--days",
                           "1",
                           "--warm-days",
                           "1",
                           "--policy",
                           "partitioned,sluice",
                           "--json",
                           "--html",
                           "/dev/null" };
    FILE *null = fopen("/dev/null", "w");
    assert_non_null(null);
    struct sim sim = { .out = null, .err = null };
    int status = sim_dispatch(&sim, ARRAY_LEN(line), (char **)line);
    fclose(null);
    return status == 0;
}

/* More names than the first room holds. */
static bool many_names(void)
{
    struct names n = { 0 };
    char text[16];
    uint32_t i;
    for (i = 0; i < 300; i++) {
        int len = snprintf(text, sizeof text, "%u", i);
        if (names_add(&n, text, (size_t)len, 1) == NAMES_NONE)
            break;
    }
    if (n.count != i || (i && names_find(&n, "0") != 0))
        fail_msg("half a name after %u", i);
    names_finish(&n);
    return i == 300;
}

static void the_nth_allocation_fails(void **state)
{
    static const struct nth_alloc_row rows[] = {
        { "names", many_names },
        { "openb nodes", nodes },
        { "openb pods", pods },
        { "openb orders", orders },
        { "muri", muri },
        { "philly", philly },
        { "chronus", chronus },
        { "csv", csv },
        { "gavel's speeds", speeds },
        { "gavel's arrivals", arrivals },
        { "carbon", carbon },
        { "requests", llm },
        { "virtual clusters", helios },
        { "the command openb", openb },
        { "a simulated trace", simulated },
        { "jobs that take turns", interleaved },
        { "work that waits", shifted },
        { "a scenario", played },
        { "200 cards", cards },
        { "a log, and its replay", replayed },
        { "two answers compared", compared },
    };
    nth_alloc_rows(rows, ARRAY_LEN(rows));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_nth_allocation_fails),
};
ROWS_MAIN(tests)
