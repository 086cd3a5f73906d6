/* 200 cards in a closed loop: the same sessions for all, books that hold, a page that is whole. */
#include "../rows.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/file.h"
#include "sim/chart.h"
#include "sim/closed.h"
#include "sim/command.h"

static struct closed_result run(const char *system, uint32_t seed, uint32_t open_permille)
{
    struct closed_setup setup;
    struct closed_result result;
    struct sl_err err = { 0 };
    closed_setup_init(&setup);
    setup.seed = seed;
    setup.open_permille = open_permille;
    setup.warm_days = 1;
    setup.days = 2;
    if (closed_run(system, &setup, &result, &err))
        fail_msg("%s: %s", system, err.msg);
    return result;
}

/* closed_start itself ends a run that lends too much, or to the wrong card. */
static void every_system_keeps_its_books(void **state)
{
    for (unsigned i = 0; closed_system_name(i); i++) {
        const char *name = closed_system_name(i);
        struct closed_result r = run(name, 3, 0), again = run(name, 3, 0);
        ROW(name, r.cards == 200 && r.sessions == CLOSED_SESSIONS);
        ROW(name, r.finished > 500);
        ROW(name, r.effective_pct > 0 && r.effective_pct < r.occupied_pct + 20);
        ROW(name, r.allocated_pct <= r.occupied_pct && r.occupied_pct <= 100);
        ROW(name, r.wait_p50_s <= r.wait_p90_s);
        ROW("somebody waits", r.wait_all_mean_s > 0);
        ROW(name, fabs(r.little_error_pct) < 30); /* of two days; the bench has 28 */
        ROW(name, r.sample_count == 48);
        ROW("the same again is the same", r.finished == again.finished &&
                                              r.wait_mean_s == again.wait_mean_s &&
                                              r.evictions == again.evictions);
        closed_result_finish(&r);
        closed_result_finish(&again);
    }
}

static void only_ours_displaces(void **state)
{
    for (unsigned i = 0; closed_system_name(i); i++) {
        struct closed_result r = run(closed_system_name(i), 1, 0);
        ROW(closed_system_name(i),
            (r.evictions > 0) == !strncmp(closed_system_name(i), "sluice", 6));
        closed_result_finish(&r);
    }
}

/* An open load is the same for all that keep up: half of what the cards could do. */
static void an_open_load_is_what_was_offered(void **state)
{
    struct closed_result r = run("pool-shared", 1, 300);
    ROW("about as much work is done as was offered",
        r.effective_pct > 20 && r.effective_pct < 40);
    ROW("there is no loop to close", isnan(r.little_error_pct));
    closed_result_finish(&r);
}

static void an_unknown_system(void **state)
{
    struct closed_setup setup;
    struct closed_result r;
    closed_setup_init(&setup);
    ROW("is not found", closed_run("none", &setup, &r, NULL) == -SL_NOT_FOUND);
}

/* A node more or fewer is a node more or fewer, whatever the departments have. */
static void cards_come_by_nodes(void **state)
{
    for (uint32_t nodes = CLOSED_PARTS; nodes < 60; nodes++) {
        struct closed_setup setup;
        struct closed_result r;
        closed_setup_init(&setup);
        setup.nodes_permille = nodes * 1000 / CLOSED_NODES;
        setup.warm_days = 0;
        setup.days = 1;
        assert_int_equal(closed_run("partitioned", &setup, &r, NULL), 0);
        uint32_t most = 0;
        for (int i = 0; i < CLOSED_PARTS; i++)
            most = r.part[i].cards > most ? r.part[i].cards : most;
        ROW("as many as were asked for, if each department keeps one",
            r.cards == nodes * 8 || (nodes < CLOSED_NODES && r.cards > nodes * 8));
        ROW("the largest department has its part", most <= (nodes * 4 / 25 + 1) * 8);
        closed_result_finish(&r);
    }
}

/* ---- charts and the page ---- */

/* Every tag that is opened is closed, in order; 0, or where it is not so. */
static size_t unbalanced(const char *page)
{
    char open[64][16];
    size_t depth = 0;
    for (const char *p = page; (p = strchr(p, '<')); p++) {
        const char *end = strchr(p, '>');
        char name[16] = "";
        if (!end || p[1] == '!')
            continue;
        bool closing = p[1] == '/';
        for (size_t i = 0; i < 15 && isalnum((unsigned char)p[1 + closing + i]); i++)
            name[i] = p[1 + closing + i];
        if (end[-1] == '/')
            continue;
        if (!closing && depth < 64)
            strcpy(open[depth++], name);
        else if (!depth || strcmp(open[--depth], name))
            return (size_t)(p - page) + 1;
    }
    return depth;
}

static void text_is_escaped(void **state)
{
    AUTO_BUF struct buf b = { 0 };
    chart_text(&b, "a<b & \"c\">");
    ROW_STR("marks are escaped", b.text, "a&lt;b &amp; &quot;c&quot;&gt;");
}

static void a_line_is_where_its_points_are(void **state)
{
    AUTO_BUF struct buf b = { 0 };
    const double x[] = { 0, 5, NAN, 10 }, y[] = { 0, 100, 50, 200 };
    struct chart c = { .title = "t",
                       .x = { "x", 0, 10, false },
                       .y = { "y", 0, 100, false },
                       .series = { { { "one", 2 }, x, y, 4, true },
                                   { { "two", 3 }, x, y, 1, false } },
                       .series_count = 2 };
    chart_lines(&b, &c);
    ROW("a gap ends the line", strstr(b.text, "points=\"52.0,226.0 286.0,10.0 \"/>"));
    ROW("what is outside is at the edge", strstr(b.text, "points=\"520.0,10.0 \"/>"));
    ROW("the colour is the key's",
        strstr(b.text, "class=\"s2 faint\"") && strstr(b.text, "key k2"));
    ROW("tags are balanced", !unbalanced(b.text));
}

static void areas_stand_on_each_other(void **state)
{
    AUTO_BUF struct buf b = { 0 };
    const double x[] = { 0, 10 }, low[] = { 50, 0 }, high[] = { 25, 100 };
    struct chart c = { .title = "t",
                       .x = { "x", 0, 10, false },
                       .y = { "y", 0, 100, false },
                       .series = { { { "low", 0 }, x, low, 2, false },
                                   { { "high", 1 }, x, high, 2, false } },
                       .series_count = 2 };
    chart_areas(&b, &c);
    ROW("the first stands on the axis",
        strstr(b.text, "class=\"b0\" points=\"52.0,118.0 520.0,226.0 520.0,226.0 "
                       "52.0,226.0 \"/>"));
    ROW("the second on the first", strstr(b.text, "class=\"b1\" points=\"52.0,64.0 "
                                                  "520.0,10.0 520.0,226.0 52.0,118.0 "
                                                  "\"/>"));
    ROW("tags are balanced", !unbalanced(b.text));
}

static void bars_are_as_long_as_their_values(void **state)
{
    AUTO_BUF struct buf b = { 0 };
    const struct chart_key key = { "", 4 };
    const struct chart_bar bars[] = { { "a<b", { 10 } },
                                      { "none", { NAN } },
                                      { "c", { 5 } } };
    chart_bars(&b, "t", "h", &key, 1, bars, 3, 1);
    ROW("the longest has all the room", strstr(b.text, "width=\"372.0\""));
    ROW("half of it is half as long", strstr(b.text, "width=\"186.0\""));
    ROW("unknown has no length", strstr(b.text, "width=\"0.0\""));
    ROW("a single series has no legend", !strstr(b.text, "legend"));
    ROW("names are escaped", strstr(b.text, "a&lt;b"));
    ROW("tags are balanced", !unbalanced(b.text));
}

static void the_page_is_whole(void **state)
{
    char path[] = "/tmp/sluice-page-XXXXXX", *page;
    size_t len;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    const char *line[] = { "sluice-sim",
                           "scenario",
                           "200-cards",
                           "--seeds",
                           "2",
                           "--days",
                           "2",
                           "--warm-days",
                           "1",
                           "--policy",
                           "partitioned,sluice",
                           "--html",
                           path };
    FILE *null = fopen("/dev/null", "w");
    assert_non_null(null);
    struct sim sim = { .out = null, .err = null };
    assert_int_equal(sim_dispatch(&sim, ARRAY_LEN(line), (char **)line), 0);
    fclose(null);
    assert_int_equal(file_read(path, 1 << 20, &page, &len, NULL), 0);
    unlink(path);
    page = realloc(page, len + 1);
    page[len] = '\0';
    ROW("tags are balanced", !unbalanced(page));
    ROW("nothing comes from outside", !strstr(page, "http") && !strstr(page, "url(") &&
                                          !strstr(page, "src=") &&
                                          !strstr(page, "<script"));
    ROW("no number is missing", !strstr(page, "nan") && !strstr(page, "inf"));
    ROW("it says how it was made", strstr(page, "--seeds 2 --warm-days 1 --days 2") &&
                                       strstr(page, "--policy partitioned,sluice --html"));
    ROW("it says that it is fitted", strstr(page, "<em>fitted</em>"));
    free(page);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_system_keeps_its_books),
    cmocka_unit_test(only_ours_displaces),
    cmocka_unit_test(an_open_load_is_what_was_offered),
    cmocka_unit_test(an_unknown_system),
    cmocka_unit_test(cards_come_by_nodes),
    cmocka_unit_test(text_is_escaped),
    cmocka_unit_test(a_line_is_where_its_points_are),
    cmocka_unit_test(areas_stand_on_each_other),
    cmocka_unit_test(bars_are_as_long_as_their_values),
    cmocka_unit_test(the_page_is_whole),
};
ROWS_MAIN(tests)
