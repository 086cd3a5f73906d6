/* The command top: the picture once, or live on the whole screen. */
#include <curses.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "fetch.h"
#include "model/units.h"
#include "picture.h"
#include "table.h"

/* What the last look found, and how it is shown. */
struct top {
    struct cli *cli;
    char node[160], clock[16], trouble[320];
    struct device *devices;
    struct lease *leases;
    size_t device_count, lease_count;
    enum picture_sort sort;
    int scroll;
    bool paused;
};

static const char *text_of(const json_t *obj, const char *key)
{
    const json_t *value = json_object_get(obj, key);
    return json_is_string(value) ? json_string_value(value) : NULL;
}

static void look_at_node(struct top *t)
{
    AUTO_JSON json_t *node = NULL;
    char host[64] = "";
    time_t now = time(NULL);
    struct tm tm;

    gethostname(host, sizeof host - 1);
    if (localtime_r(&now, &tm))
        strftime(t->clock, sizeof t->clock, "%H:%M:%S", &tm);
    snprintf(t->node, sizeof t->node, "%s", host);
    if (fetch_json(t->cli, "/v1/node", &node, NULL) < 0)
        return;
    if (text_of(node, "host"))
        snprintf(host, sizeof host, "%s", text_of(node, "host"));
    const char *version = text_of(node, "version");
    const json_t *broker = json_object_get(node, "broker");
    const char *broker_version = text_of(broker, "version");
    snprintf(t->node, sizeof t->node, "%s%s%s%s%s%s", host, version ? ", agent " : "",
             version ? version : "", broker_version ? ", broker " : "",
             broker_version ? broker_version : "",
             json_is_true(json_object_get(node, "embedded")) ? ", embedded" : "");
}

/* On failure what was seen last stays, and `trouble` says why it is old. */
static int look(struct top *t, struct sl_err *err)
{
    struct device *devices = NULL;
    struct lease *leases = NULL;
    size_t device_count, lease_count;

    look_at_node(t);
    int rc = fetch_devices(t->cli, &devices, &device_count, err);
    if (rc == 0)
        rc = fetch_leases(t->cli, false, &leases, &lease_count, err);
    if (rc < 0) {
        free(devices);
        snprintf(t->trouble, sizeof t->trouble, "old: %s", err->msg);
        return rc;
    }
    free(t->devices);
    free(t->leases);
    t->devices = devices;
    t->leases = leases;
    t->device_count = device_count;
    t->lease_count = lease_count;
    t->trouble[0] = 0;
    return 0;
}

static void draw(const struct top *t, int width, struct buf *out)
{
    struct picture p = {
        .node = t->node,
        .clock = t->clock,
        .trouble = t->trouble[0] ? t->trouble : NULL,
        .devices = t->devices,
        .device_count = t->device_count,
        .leases = t->leases,
        .lease_count = t->lease_count,
        .sort = t->sort,
        .utf8 = t->cli->utf8,
        .width = width < 60 ? 60 : width,
    };
    picture_draw(&p, out);
}

static int print_once(struct top *t)
{
    AUTO_BUF struct buf out = { 0 };
    struct sl_err err = { 0 };
    struct cli *cli = t->cli;

    if (cli->format == CLI_JSON) {
        json_t *devices = NULL, *leases = NULL;
        if (fetch_json(cli, "/v1/devices", &devices, &err) < 0 ||
            fetch_json(cli, "/v1/leases", &leases, &err) < 0) {
            json_decref(devices);
            return cli_fail(cli, &err);
        }
        json_object_update(devices, leases);
        json_decref(leases);
        return cli_print_json(cli, devices);
    }
    if (look(t, &err) < 0)
        return cli_fail(cli, &err);
    draw(t, cli->width, &out);
    picture_print(out.text, cli->out, cli->colour);
    return 0;
}

static void start_screen(const struct cli *cli)
{
    initscr();
    noecho();
    cbreak();
    curs_set(0);
    keypad(stdscr, TRUE);
    if (!cli->colour || !has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(STYLE_GOOD, COLOR_GREEN, -1);
    init_pair(STYLE_WARN, COLOR_YELLOW, -1);
    init_pair(STYLE_BAD, COLOR_RED, -1);
}

static attr_t attributes(enum style style, bool colour)
{
    switch (style) {
    case STYLE_BOLD:
        return A_BOLD;
    case STYLE_DIM:
        return A_DIM;
    case STYLE_GOOD:
    case STYLE_WARN:
        return colour ? (attr_t)COLOR_PAIR(style) : A_NORMAL;
    case STYLE_BAD:
        return colour ? (attr_t)COLOR_PAIR(style) | A_BOLD : A_REVERSE;
    case STYLE_PLAIN:
        break;
    }
    return A_NORMAL;
}

/* One drawn line at the cursor: runs of text between the style bytes. */
static void show_line(const char *line, size_t len, bool colour)
{
    while (len) {
        if (*line > 0 && *line <= STYLE_BAD + 1) {
            attrset((int)attributes((enum style)(*line - 1), colour));
            line++;
            len--;
            continue;
        }
        size_t run = 0;
        while (run < len && !(line[run] > 0 && line[run] <= STYLE_BAD + 1))
            run++;
        addnstr(line, (int)run);
        line += run;
        len -= run;
    }
}

static void show(struct top *t)
{
    AUTO_BUF struct buf out = { 0 };
    int lines = 0, first, last_row = LINES - 1;

    draw(t, COLS, &out);
    if (buf_failed(&out) || !out.text)
        return;
    for (const char *p = out.text; *p; p++)
        lines += *p == '\n';
    if (t->scroll > lines - last_row)
        t->scroll = lines - last_row;
    if (t->scroll < 0)
        t->scroll = 0;
    first = t->scroll;
    erase();
    int n = 0;
    for (const char *line = out.text; *line; n++) {
        size_t len = strcspn(line, "\n");
        if (n >= first && n - first < last_row) {
            move(n - first, 0);
            show_line(line, len, t->cli->colour);
        }
        line += len + (line[len] == '\n');
    }
    attrset(A_DIM);
    mvprintw(last_row, 0, " q quit  p %s  s share  m memory  n name  d device%s",
             t->paused ? "go on" : "pause", lines > last_row ? "  up/down scroll" : "");
    attrset(A_NORMAL);
    refresh();
}

/* Returns false to quit. */
static bool handle_key(struct top *t, int key)
{
    switch (key) {
    case 'q':
    case 'Q':
        return false;
    case 'p':
    case ' ':
        t->paused = !t->paused;
        break;
    case 's':
        t->sort = SORT_SHARE;
        break;
    case 'm':
        t->sort = SORT_MEMORY;
        break;
    case 'n':
        t->sort = SORT_NAME;
        break;
    case 'd':
        t->sort = SORT_DEVICE;
        break;
    case KEY_DOWN:
        t->scroll++;
        break;
    case KEY_UP:
        t->scroll--;
        break;
    case KEY_NPAGE:
        t->scroll += LINES - 1;
        break;
    case KEY_PPAGE:
        t->scroll -= LINES - 1;
        break;
    default:
        break;
    }
    return true;
}

static volatile sig_atomic_t interrupted;

static void note_interrupt(int sig)
{
    interrupted = 1;
}

static int run_live(struct top *t, int interval_ms)
{
    struct sl_err err = { 0 };
    if (look(t, &err) < 0)
        return cli_fail(t->cli, &err);
    signal(SIGINT, note_interrupt); /* the screen's own would end with 1 */
    start_screen(t->cli);
    timeout(interval_ms);
    while (!interrupted) {
        show(t);
        int key = getch();
        if (!handle_key(t, key))
            break;
        if (key == ERR && !t->paused)
            look(t, &err);
    }
    endwin();
    return interrupted ? 128 + SIGINT : 0;
}

int cmd_top(struct cli *cli, const struct cli_args *args)
{
    struct top t = { .cli = cli };
    uint64_t interval_ms = 1000;
    struct sl_err err = { 0 };

    if (cli_value(args, "interval"))
        units_parse_duration(cli_value(args, "interval"), &interval_ms, NULL);
    if (interval_ms < 100 || interval_ms > 3600 * 1000) {
        sl_fail(&err, SL_INVALID, "--interval: between 100ms and 1h");
        return cli_fail(cli, &err);
    }
    int rc = cli_connect_if_any(cli, &err);
    if (rc < 0)
        return cli_fail(cli, &err);
    if (rc == 1)
        return cli->format == CLI_JSON
                   ? cli_print_json(cli, json_pack("{s:[],s:[]}", "devices", "leases"))
                   : 0;
    bool once = cli_has(args, "once") || cli->format == CLI_JSON ||
                !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
    int status = once ? print_once(&t) : run_live(&t, (int)interval_ms);
    free(t.devices);
    free(t.leases);
    return status;
}
