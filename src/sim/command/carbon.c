/* `sluice-sim carbon`: what waiting for cleaner hours, or going to cleaner grids, saves. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "core/macros.h"
#include "sim/command.h"
#include "sim/shift.h"

#define MAX_GRIDS 32

struct row {
    const char *name;
    struct shift_result result;
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static double saved_pct(const struct shift_result *r, double g)
{
    return 100 * (1 - g / r->at_once_g);
}

static double part_pct(const struct shift_result *r)
{
    double most = r->at_once_g - r->oracle_g;
    return most > 0 ? 100 * (r->at_once_g - r->ours_g) / most : 100;
}

static void print_table(FILE *out, const struct row *rows, uint32_t count)
{
    fprintf(out, "%-28s %12s %9s %9s %12s\n", "grid", "at once, kg", "saved", "at most",
            "of the most");
    for (uint32_t i = 0; i < count; i++) {
        const struct shift_result *r = &rows[i].result;
        fprintf(out, "%-28s %12.0f %7.2f %% %7.2f %% %10.1f %%\n", rows[i].name,
                r->at_once_g / 1000, saved_pct(r, r->ours_g), saved_pct(r, r->oracle_g),
                part_pct(r));
    }
}

static json_t *json_row(const struct row *row, bool *ok)
{
    const struct shift_result *r = &row->result;
    json_t *j = json_object();
    json_put(j, "grid", json_string(row->name), ok);
    json_put(j, "at_once_kg", json_real(round(r->at_once_g / 1000)), ok);
    json_put(j, "saved_pct", json_real(round(saved_pct(r, r->ours_g) * 1000) / 1000), ok);
    json_put(j, "oracle_saved_pct",
             json_real(round(saved_pct(r, r->oracle_g) * 1000) / 1000), ok);
    json_put(j, "of_oracle_pct", json_real(round(part_pct(r) * 10) / 10), ok);
    return j;
}

static int print_json(FILE *out, const struct row *rows, uint32_t count, struct sl_err *err)
{
    bool ok = true;
    AUTO_JSON json_t *all = json_object();
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        ok = json_array_append_new(list, json_row(&rows[i], &ok)) == 0 && ok;
    json_put(all, "grids", list, &ok);
    if (!ok || json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) < 0)
        return sl_fail(err, SL_INTERNAL, "the report cannot be written");
    fputc('\n', out);
    return 0;
}

static int read_grid(const char *path, struct carbon *out, struct sl_err *err)
{
    AUTO_TEXT struct text text = { 0 };
    int rc = text_open(path, &text, err);
    return rc < 0 ? rc : carbon_read(&text, out, err);
}

static int answer(struct sim *sim, const struct sim_args *args, struct carbon *grids,
                  struct sl_err *err)
{
    const struct shift_load load = { .devices = 100,
                                     .fixed = 25,
                                     .movable = 25,
                                     .wait_h = sim_count(args, "wait", 12),
                                     .idle_w = 30,
                                     .dynamic_w = 270 };
    struct row rows[MAX_GRIDS + 1];
    uint32_t count = (uint32_t)args->operand_count;
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rows[i].name = name_of(args->operand[i]);
        rc = read_grid(args->operand[i], &grids[i], err);
        if (rc == 0)
            rc = shift_in_time(&grids[i], &load, &rows[i].result, err);
    }
    if (rc == 0 && count > 1) {
        rows[count].name = "between them, without waiting";
        rc = shift_in_place(grids, count, &load, &rows[count].result, err);
    }
    if (rc < 0)
        return rc;
    count += count > 1;
    if (sim_has(args, "json"))
        return print_json(sim->out, rows, count, err);
    print_table(sim->out, rows, count);
    return 0;
}

int sim_cmd_carbon(struct sim *sim, const struct sim_args *args)
{
    struct carbon grids[MAX_GRIDS] = { 0 };
    struct sl_err err = { 0 };
    int rc = answer(sim, args, grids, &err);
    for (unsigned i = 0; i < MAX_GRIDS; i++)
        carbon_finish(&grids[i]);
    return rc < 0 ? sim_fail(sim, &err) : 0;
}
