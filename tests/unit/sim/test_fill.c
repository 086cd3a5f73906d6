/* Filling a cluster: target workload, scores by hand, books that believe nobody, columns. */
#include "../rows.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fill/scores.h"
#include "sim/command.h"
#include "sim/fill.h"
#include "sim/stats.h"

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

#define TWO_NODES NODES "n0,4000,100,2,T4\nn1,4000,100,1,T4\n"
#define ONE_POD   PODS "p,1000,10,1,600,\n"

static struct sl_err err;

#define READ(string, read, out)                                    \
    do {                                                           \
        AUTO_TEXT struct text text_ = { 0 };                       \
        assert_int_equal(text_copy("x", string, &text_, &err), 0); \
        if (read(&text_, out, &err) < 0)                           \
            fail_msg("%s", err.msg);                               \
    } while (0)

static void make_input(const char *node_list, const char *pod_list, struct fill_input *in)
{
    struct openb_nodes nodes;
    struct openb_pods pods;
    READ(node_list, openb_nodes_read, &nodes);
    READ(pod_list, openb_pods_read, &pods);
    if (fill_input_make(&nodes, &pods, in, &err) < 0)
        fail_msg("%s", err.msg);
    openb_nodes_finish(&nodes);
    openb_pods_finish(&pods);
}

static void rounds_halves_to_even(void **state)
{
    static const struct {
        const char *label;
        uint64_t part, whole, want;
    } rows[] = {
        { "nothing", 0, 200, 0 },
        { "below a half", 99, 20000, 0 },
        { "a half, to the even 0", 1, 200, 0 },
        { "a half, to the even 2", 3, 200, 2 },
        { "above a half", 101, 20000, 1 },
        { "a half, to the even 100", 201, 200, 100 },
        { "more than all", 260, 200, 130 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ROW(rows[i].label, fill_column(rows[i].part, rows[i].whole) == rows[i].want);
}

/* "weight:cpu/milli x gpus, …" */
static const char *show_target(const struct fill_target *t)
{
    static char out[400];
    out[0] = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct fill_shape *s = &t->shapes[i];
        snprintf(out + strlen(out), sizeof out - strlen(out), "%u:%u/%ux%u%s ", s->weight,
                 s->cpu_milli, s->gpu_milli, s->gpus, s->models ? "!" : "");
    }
    return out;
}

static void the_target_is_the_most_frequent_sorts(void **state)
{
    static const struct {
        const char *label, *pods, *want;
    } rows[] = {
        { "equal sorts are one, whatever their memory",
          PODS "a,1000,1,1,500,\nb,1000,2,1,500,\n", "2:1000/500x1 " },
        { "the most frequent first", PODS "a,9000,1,0,0,\nb,1,1,0,0,\nc,1,1,0,0,\n",
          "2:1/0x0 1:9000/0x0 " },
        { "then the larger CPU, GPU, number",
          PODS "a,1,1,1,500,\nb,2,1,0,0,\nc,1,1,2,1000,\n"
               "d,1,1,1,1000,\n",
          "1:2/0x0 1:1/1000x2 1:1/1000x1 1:1/500x1 " },
        { "a limit to models is another sort", PODS "a,1,1,1,500,\nb,1,1,1,500,T4\n",
          "1:1/500x1! 1:1/500x1 " },
        { "the fewest that are 95 %, of 20 the one too many is left out",
          PODS "a,1,1,0,0,\nb,1,1,0,0,\nc,1,1,0,0,\nd,1,1,0,0,\ne,1,1,0,0,\nf,1,1,0,0,\n"
               "g,1,1,0,0,\nh,1,1,0,0,\ni,1,1,0,0,\nj,1,1,0,0,\nk,1,1,0,0,\nl,1,1,0,0,\n"
               "m,1,1,0,0,\nn,1,1,0,0,\no,1,1,0,0,\np,1,1,0,0,\nq,1,1,0,0,\nr,1,1,0,0,\n"
               "s,1,1,0,0,\nt,9,9,0,0,\n",
          "19:1/0x0 " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct openb_pods pods;
        struct fill_target t;
        READ(rows[i].pods, openb_pods_read, &pods);
        assert_int_equal(fill_target_of(&pods, &t, &err), 0);
        ROW_STR(rows[i].label, show_target(&t), rows[i].want);
        fill_target_finish(&t);
        openb_pods_finish(&pods);
    }
}

/* A node with this much free on each device: what the classes of the target cannot use. */
static void waste_is_what_the_target_cannot_use(void **state)
{
    static const struct {
        const char *label;
        struct fill_shape shape;
        uint32_t want;
    } rows[] = {
        { "no device wanted: all of it", { 0, 1000, 0, 0, 1 }, 1600 },
        { "fits everywhere", { 0, 1000, 1, 200, 1 }, 0 },
        { "what is on devices with too little", { 0, 1000, 1, 500, 1 }, 400 },
        { "both are needed", { 0, 1000, 2, 400, 1 }, 0 },
        { "one of two has too little: all of it", { 0, 1000, 2, 1000, 1 }, 1600 },
        { "too little CPU: all of it", { 0, 5000, 1, 200, 1 }, 1600 },
        { "its model", { 2, 1000, 1, 500, 1 }, 400 },
        { "not its model: all of it", { 4, 1000, 1, 200, 1 }, 1600 },
        { "as often as its weight", { 0, 1000, 1, 500, 3 }, 1200 },
        { "memory that is there", { 0, 1000, 1, 200, 1, 0, 300 }, 0 },
        { "too little memory on the second", { 0, 1000, 1, 200, 1, 0, 301 }, 400 },
    };
    const struct fill_node n = { .model = 2,
                                 .cpu_milli = 4000,
                                 .gpu_milli = 1600,
                                 .gpus = 3,
                                 .free = { 1000, 400, 200 } };
    const struct fill_node two = { .model = 2,
                                   .cpu_milli = 4000,
                                   .gpu_milli = 1600,
                                   .gpus = 2,
                                   .free = { 1200, 400 },
                                   .used_mem = { 0, 700 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fill_shape s = rows[i].shape;
        const struct fill_target t = { &s, 1, s.weight };
        ROW(rows[i].label, fill_waste(&t, &two) == rows[i].want);
    }
    struct fill_shape s = { 0, 1000, 1, 300, 1 };
    const struct fill_target t = { &s, 1, 1 };
    ROW("of three devices", fill_waste(&t, &n) == 200);
}

static const struct fill_node idle8 = { .cpu_milli = 128000,
                                        .gpu_milli = 8000,
                                        .memory_mib = 1,
                                        .gpus = 8,
                                        .free = { 1000, 1000, 1000, 1000, 1000, 1000, 1000,
                                                  1000 } };
static const struct fill_node used4 = { .cpu_milli = 32000,
                                        .gpu_milli = 2300,
                                        .memory_mib = 1,
                                        .gpus = 4,
                                        .free = { 1000, 300, 1000, 0 } };

static void scores_are_what_the_formulas_say(void **state)
{
    static const struct fill_class
        share = { .cpu_milli = 8000, .gpus = 1, .gpu_milli = 300 },
        whole = { .cpu_milli = 8000, .gpus = 1, .gpu_milli = 1000 },
        two = { .cpu_milli = 16000, .gpus = 2, .gpu_milli = 1000 },
        half = { .cpu_milli = 8000, .gpus = 1, .gpu_milli = 500 },
        cpu = { .cpu_milli = 8000 };
    static const struct {
        const char *label;
        const struct fill_score *score;
        const struct fill_node *node;
        const struct fill_class *class;
        uint32_t sorts;
        int want;
    } rows[] = {
        /* 100 (1 - (1 * 1/16 + 1 * .0375) / 2) = 95.0 */
        { "dotprod: an idle node", &fill_dotprod, &idle8, &share, 0, 95 },
        /* 100 (1 - (.25 * .0625 + .2875 * .0375) / 2) = 98.67 */
        { "dotprod: truncated", &fill_dotprod, &used4, &share, 0, 98 },
        { "dotprod: CPU only", &fill_dotprod, &idle8, &cpu, 0, 96 },
        /* 100 (1 - (.9375 + .9625) / 2) = 5 */
        { "bestfit: an idle node", &fill_bestfit, &idle8, &share, 0, 5 },
        /* 100 (1 - (.1875 + .25) / 2) = 78.1 */
        { "bestfit: truncated", &fill_bestfit, &used4, &share, 0, 78 },
        { "packing: an idle node of 8", &fill_packing, &idle8, &whole, 0, 25 },
        { "packing: one fresh device", &fill_packing, &used4, &whole, 0, 49 },
        { "packing: two fresh devices", &fill_packing, &used4, &two, 0, 48 },
        { "packing: a device in use", &fill_packing, &used4, &share, 0, 97 },
        { "packing: none in use is enough", &fill_packing, &used4, &half, 0, 49 },
        { "packing: CPU only", &fill_packing, &used4, &cpu, 0, 0 },
        { "clustering: an empty node", &fill_clustering, &idle8, &share, 0, 25 },
        /* 25 * 5700 / 8000 = 17.8 */
        { "clustering: only its sort", &fill_clustering, &used4, &share, 1, 92 },
        { "clustering: among others", &fill_clustering, &used4, &whole, 1 | 2, 67 },
        { "clustering: others only", &fill_clustering, &used4, &two, 1 | 2, 17 },
        { "clustering: CPU only", &fill_clustering, &used4, &cpu, 1, 0 },
        /* the target is whole devices: 300 of 2300 is waste */
        { "fgd: waste goes away, sigmoid(.3)", &fill_fgd, &used4, &share, 0, 57 },
        { "fgd: none comes or goes", &fill_fgd, &used4, &whole, 0, 50 },
        { "fgd: half a device is broken, sigmoid(-.5)", &fill_fgd, &used4, &half, 0, 37 },
    };
    struct fill_shape shape = { 0, 1000, 1, 1000, 4 };
    const struct fill_target t = { &shape, 1, 4 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fill_seen n = { *rows[i].node, fill_waste(&t, rows[i].node), rows[i].sorts };
        int have = rows[i].score->of(&t, &n, rows[i].class);
        if (have != rows[i].want)
            fail_msg("row \"%s\": have %d, want %d", rows[i].label, have, rows[i].want);
    }
}

static void nodes_draw_power(void **state)
{
    static const struct {
        const char *label;
        struct fill_node node;
        uint32_t want;
    } rows[] = {
        { "idle: two sockets, two devices",
          { .all_cpu_milli = 64000,
            .cpu_milli = 64000,
            .gpus = 2,
            .idle_w = 10,
            .full_w = 70,
            .free = { 1000, 1000 } },
          2 * 15 + 2 * 10 },
        { "any share makes a device full",
          { .all_cpu_milli = 64000,
            .cpu_milli = 64000,
            .gpus = 2,
            .idle_w = 10,
            .full_w = 70,
            .free = { 1000, 999 } },
          2 * 15 + 10 + 70 },
        { "one core makes a socket full",
          { .all_cpu_milli = 64000, .cpu_milli = 63999 },
          120 + 15 },
        { "33 cores make two", { .all_cpu_milli = 64000, .cpu_milli = 31000 }, 2 * 120 },
        { "a socket not all of which is sold",
          { .all_cpu_milli = 8000, .cpu_milli = 8000 },
          15 },
    };
    uint16_t idle_w, full_w;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ROW(rows[i].label, fill_watts(&rows[i].node) == rows[i].want);
    ROW("G3 is as A100",
        fill_device_watts("G3", &idle_w, &full_w) && idle_w == 50 && full_w == 400);
    ROW("an unknown one draws nothing",
        !fill_device_watts("G9", &idle_w, &full_w) && idle_w == 0 && full_w == 0);
}

/* One T4 and one V100, which is first in the order of the nodes. */
static void power_and_fragmentation_are_weighed(void **state)
{
    static const char *const want[][2] = {
        { "fgd", "n1" }, { "pwr", "n0" }, { "pwr500", "n0" }, { "sluice-power", "n0" }
    };
    static const uint32_t ties[] = { 1, 0 };
    struct fill_input in;
    make_input(NODES "n0,32000,100,1,T4\nn1,32000,100,1,V100M16\n", ONE_POD, &in);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        for (unsigned k = 0; k < fill_policy_count; k++) {
            struct fill_place p;
            if (strcmp(fill_policies[k].name, want[i][0]))
                continue;
            void *self = fill_policies[k].create(&in, ties, 0);
            ROW(want[i][0], fill_policies[k].place(self, 0, &p) &&
                                p.node == (uint32_t)(want[i][1][1] - '0'));
            fill_policies[k].destroy(self);
        }
    fill_input_finish(&in);
}

static void devices_are_chosen(void **state)
{
    static const struct {
        const char *label;
        const struct fill_score *score;
        struct fill_class class;
        const char *want;
    } rows[] = {
        { "the least that is enough",
          &fill_bestfit,
          { .gpus = 1, .gpu_milli = 200 },
          "1 " },
        { "of equal ones the first", &fill_packing, { .gpus = 1, .gpu_milli = 400 }, "0 " },
        { "whole ones, the first", &fill_fgd, { .gpus = 2, .gpu_milli = 1000 }, "0 2 " },
        { "fgd: what leaves the least waste",
          &fill_fgd,
          { .gpus = 1, .gpu_milli = 300 },
          "1 " },
        { "no devices", &fill_dotprod, { .cpu_milli = 1000 }, "" },
    };
    struct fill_shape shape = { 0, 1000, 1, 1000, 1 };
    const struct fill_target t = { &shape, 1, 1 };
    const struct fill_seen n = { used4, fill_waste(&t, &used4), 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct random r = { 1 };
        struct fill_place p = { 0 };
        char have[64] = "";
        rows[i].score->devices(&t, &n, &rows[i].class, &r, &p);
        for (uint32_t d = 0; d < p.count; d++)
            snprintf(have + strlen(have), sizeof have - strlen(have), "%u ", p.device[d]);
        ROW_STR(rows[i].label, have, rows[i].want);
    }
}

static void memory_is_a_second_dimension(void **state)
{
    const struct fill_node n = { .cpu_milli = 1000,
                                 .gpu_milli = 1000,
                                 .gpus = 2,
                                 .free = { 400, 600 },
                                 .used_mem = { 200, 900 } };
    static const struct {
        const char *label;
        struct fill_class class;
        const char *want; /* the device, or none */
    } rows[] = {
        { "without it, where both are least", { .gpus = 1, .gpu_milli = 400 }, "1" },
        { "where it is", { .gpus = 1, .gpu_milli = 400, .gpu_mem_milli = 200 }, "0" },
        { "least of compute and memory",
          { .gpus = 1, .gpu_milli = 400, .gpu_mem_milli = 100 },
          "1" },
        { "both on one device",
          { .gpus = 1, .gpu_milli = 600, .gpu_mem_milli = 200 },
          "none" },
    };
    const struct fill_target t = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct fill_seen seen = { n, 0, 0 };
        struct fill_place p = { 0 };
        char have[8] = "none";
        if (fill_fits(&n, &rows[i].class)) {
            fill_bestfit.devices(&t, &seen, &rows[i].class, NULL, &p);
            snprintf(have, sizeof have, "%u", p.device[0]);
        }
        ROW_STR(rows[i].label, have, rows[i].want);
    }
}

static void memory_is_drawn(void **state)
{
    struct openb_pods pods;
    uint32_t least = 1000, most = 0;
    READ(PODS "a,1,1,0,0,\nb,1,1,1,400,\nc,1,1,2,1000,\n", openb_pods_read, &pods);
    for (uint64_t seed = 1; seed < 300; seed++) {
        fill_draw_memory(&pods, seed);
        uint32_t b = pods.pods[1].gpu_mem_milli;
        ROW("none without a GPU", pods.pods[0].gpu_mem_milli == 0);
        ROW("in tenths", b % 100 == 0 && pods.pods[2].gpu_mem_milli % 100 == 0);
        ROW("half to all of whole devices",
            pods.pods[2].gpu_mem_milli >= 500 && pods.pods[2].gpu_mem_milli <= 1000);
        least = b < least ? b : least;
        most = b > most ? b : most;
    }
    ROW("half to twice a share", least == 200 && most == 800);
    openb_pods_finish(&pods);
}

static void a_random_device_is_any_that_fits(void **state)
{
    const struct fill_seen n = { used4, 0, 0 };
    const struct fill_class c = { .gpus = 1, .gpu_milli = 300 };
    const struct fill_target t = { 0 };
    struct random r = { 7 };
    struct fill_place p;
    unsigned drawn[FILL_MAX_DEVICES] = { 0 };
    for (int i = 0; i < 3000; i++) {
        fill_random.devices(&t, &n, &c, &r, &p);
        assert_int_equal(p.count, 1);
        drawn[p.device[0]]++;
    }
    ROW("each of three a third of the times",
        drawn[0] > 900 && drawn[1] > 900 && drawn[2] > 900);
    ROW("never one with too little", drawn[3] == 0);
}

/* ---- the books ---- */

static struct fill_place lie;
static bool lie_place(void *self, uint32_t c, struct fill_place *out)
{
    *out = lie;
    return lie.count != UINT32_MAX;
}
static void *lie_create(const struct fill_input *in, const uint32_t *ties, uint64_t seed)
{
    return &lie;
}
static void lie_destroy(void *self) {}
static const struct fill_policy liar = { "liar", lie_create, lie_place, lie_destroy };

static void the_books_believe_no_policy(void **state)
{
    static const struct {
        const char *label;
        struct fill_place lie;
        const char *want; /* "": all is well */
    } rows[] = {
        { "a node that is not there", { 2, 1, { 0 } }, "there is no such node" },
        { "a device that is not there", { 1, 1, { 1 } }, "not different ones of the node" },
        { "too few devices", { 0, 0, { 0 } }, "not the number of devices" },
        { "the device is taken already", { 0, 1, { 0 } }, "a device has too little free" },
        { "the node is full", { 1, 1, { 0 } }, "it does not fit there" },
    };
    static const uint32_t order[] = { 0, 0 }, ties[] = { 0, 1 };
    static struct fill_result r;
    struct fill_input in;
    make_input(TWO_NODES, ONE_POD, &in);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        lie = rows[i].lie;
        ROW(rows[i].label,
            fill_run(&in, &liar, order, 2, ties, 0, &r, &err) == -SL_INTERNAL);
        ROW(rows[i].label, strstr(err.msg, rows[i].want));
    }
    lie.count = UINT32_MAX;
    assert_int_equal(fill_run(&in, &liar, order, 2, ties, 0, &r, &err), 0);
    ROW("what it refuses is counted", r.refused == 2 && r.refused_though_fits == 2);
    fill_input_finish(&in);
}

static void every_policy_fills_what_there_is(void **state)
{
    static const uint32_t order[] = { 0, 0, 0, 0 }, ties[] = { 1, 0 };
    static struct fill_result r;
    struct fill_input in;
    make_input(TWO_NODES, ONE_POD, &in);
    for (unsigned p = 0; p < fill_policy_count; p++) {
        const char *name = fill_policies[p].name;
        assert_int_equal(fill_run(&in, &fill_policies[p], order, 4, ties, 1, &r, &err), 0);
        ROW(name, fabs(r.alloc_pct[20] - 20) < 1e-9 && fabs(r.alloc_pct[40] - 40) < 1e-9);
        ROW(name, fabs(r.alloc_pct[60] - 60) < 1e-9 && fabs(r.alloc_pct[80] - 60) < 1e-9);
        ROW(name, isnan(r.alloc_pct[50]) && isnan(r.frag_ratio_pct[50]));
        ROW(name, fabs(r.frag_ratio_pct[60] - 100) < 1e-9 && r.frag_ratio_pct[20] < 100);
        ROW(name, r.refused == 1 && r.refused_though_fits == 0);
    }
    fill_input_finish(&in);
}

static void equal_scores_go_by_the_order_of_the_nodes(void **state)
{
    static const uint32_t ties[][2] = { { 0, 1 }, { 1, 0 } };
    struct fill_input in;
    struct fill_place p;
    make_input(NODES "n0,4000,100,1,T4\nn1,4000,100,1,T4\n", ONE_POD, &in);
    for (unsigned i = 1; i < fill_policy_count; i++) /* but random */
        for (unsigned t = 0; t < 2; t++) {
            void *self = fill_policies[i].create(&in, ties[t], 0);
            ROW(fill_policies[i].name, fill_policies[i].place(self, 0, &p));
            ROW(fill_policies[i].name, p.node == ties[t][0]);
            ROW(fill_policies[i].name, fill_policies[i].place(self, 0, &p));
            ROW(fill_policies[i].name, p.node == ties[t][1]);
            ROW(fill_policies[i].name, !fill_policies[i].place(self, 0, &p));
            fill_policies[i].destroy(self);
        }
    fill_input_finish(&in);
}

static void a_cluster_must_have_devices(void **state)
{
    static const struct {
        const char *label, *nodes, *want;
    } rows[] = {
        { "none", NODES "n,1000,1,0,\n", "no node has a GPU" },
        { "too many on one", NODES "m,1,1,1,T4\nn,1000,1,17,T4\n",
          "line 3 of the nodes: gpu: 17 are more than 16" },
    };
    struct openb_pods pods;
    READ(ONE_POD, openb_pods_read, &pods);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct openb_nodes nodes;
        struct fill_input in;
        READ(rows[i].nodes, openb_nodes_read, &nodes);
        ROW(rows[i].label, fill_input_make(&nodes, &pods, &in, &err) == -SL_INVALID);
        ROW_STR(rows[i].label, err.msg, rows[i].want);
        openb_nodes_finish(&nodes);
    }
    openb_pods_finish(&pods);
}

/* ---- figures ---- */

static void a_mean_has_an_interval(void **state)
{
    static const double values[] = { 1, 2, 3, 4, 5 }, hole[] = { 1, NAN };
    struct stats s = stats_of(values, 5);
    ROW("mean and deviation", s.mean == 3 && fabs(s.std - sqrt(2.5)) < 1e-12);
    /* 2.776 * sqrt(2.5 / 5) */
    ROW("Student's interval", fabs(s.low - 1.037) < 1e-3 && fabs(s.high - 4.963) < 1e-3);
    ROW("one value has none",
        stats_of(values, 1).mean == 1 && isnan(stats_of(values, 1).low));
    ROW("nothing has no mean", isnan(stats_of(values, 0).mean));
    ROW("nor has what is not known", isnan(stats_of(hole, 2).mean));
}

/* ---- the command ---- */

static char dir[] = "/tmp/test-fill-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* `openb` on files in dir; the status, and what was printed (free). */
static int openb(const char *more, char **out, char **said)
{
    char line[300], *argv[24];
    size_t len[2];
    int argc = 0;
    struct sim sim = { .out = open_memstream(out, &len[0]),
                       .err = open_memstream(said, &len[1]) };
    snprintf(line, sizeof line,
             "sluice-sim openb --nodes %s/nodes --pods %s/pods --order %s/order %s", dir,
             dir, dir, more);
    for (char *save, *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    int status = sim_dispatch(&sim, argc, argv);
    fclose(sim.out);
    fclose(sim.err);
    return status;
}

static void make_files(void)
{
    assert_non_null(mkdtemp(dir));
    write_file("nodes", NODES "n0,8000,100,1,T4\nn1,8000,100,1,T4\n");
    write_file("pods", PODS "a,1000,10,1,1000,\nb,1000,10,1,400,\n");
    write_file("order", "7 1 0 0 0\n8 0 0\n");
    write_file("empty", "");
    write_file("far", "7 0 2\n");
}

static void remove_files(void)
{
    static const char *const names[] = { "nodes", "pods", "order", "empty", "far" };
    char path[100];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void check_json(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);
    json_t *p = json_array_get(json_object_get(j, "policies"), 1), *paired;
    ROW_STR("in the order asked for", json_string_value(json_object_get(p, "policy")),
            "fgd");
    ROW("orders times ties", json_integer_value(json_object_get(p, "runs")) == 2);
    /* order 8 alone has 50 % arrived: one node is full */
    json_t *at = json_object_get(p, "alloc_pct_at_100");
    ROW("what not every run reached is not known",
        json_is_null(json_object_get(at, "mean")) &&
            json_is_null(json_object_get(at, "std")));
    ROW("each figure is there", json_object_get(p, "alloc_pct_at_130") &&
                                    json_object_get(p, "frag_ratio_pct_at_50") &&
                                    json_object_get(p, "frag_ratio_pct_at_80") &&
                                    json_object_get(p, "frag_ratio_pct_at_90"));
    ROW("refusals", json_integer_value(json_object_get(p, "refused_though_fits")) == 0);
    paired = json_object_get(p, "paired");
    ROW_STR("pairs", json_string_value(json_object_get(paired, "against")), "bestfit");
    ROW("none with itself",
        !json_object_get(json_array_get(json_object_get(j, "policies"), 0), "paired"));
    json_decref(j);
}

static void the_command_answers(void **state)
{
    static const struct {
        const char *label, *more;
        int status;
        const char *said;
    } rows[] = {
        { "a table", "--ties 1", 0, "" },
        { "an order that is not there", "--order /nowhere/x", 3, "/nowhere/x" },
        { "an order without pods", "--order DIR/empty", 2, "has no orders" },
        { "an index out of range", "--order DIR/far", 2, "'2' is no number in 0..1" },
        { "an unknown policy", "--policy fgd,bestfitt", 2,
          "unknown policy 'bestfitt'; did you mean 'bestfit'?" },
        { "against what does not run", "--policy fgd --against bestfit", 2,
          "--against, of those that run: unknown policy 'bestfit'" },
        { "no ties", "--ties 0", 2, "'0' is no whole number" },
        { "more orders than there are", "--seeds 3", 2, "--seeds: 3, but" },
    };
    char *out, *said;
    make_files();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char more[200];
        const char *dir_at = strstr(rows[i].more, "DIR");
        snprintf(more, sizeof more, "%.*s%s%s",
                 dir_at ? (int)(dir_at - rows[i].more) : (int)strlen(rows[i].more),
                 rows[i].more, dir_at ? dir : "", dir_at ? dir_at + 3 : "");
        int status = openb(more, &out, &said);
        if (status != rows[i].status || !strstr(said, rows[i].said))
            fail_msg("row \"%s\": %d: %s", rows[i].label, status, said);
        ROW(rows[i].label, rows[i].status ? !out[0] : !!strstr(out, "\nclustering "));
        free(out);
        free(said);
    }
    assert_int_equal(
        openb("--ties 1 --policy bestfit,fgd --against bestfit --json", &out, &said), 0);
    check_json(out);
    free(out);
    free(said);
    remove_files();
}

static void the_help_names_every_policy(void **state)
{
    char *line[] = { (char[]){ "sluice-sim" }, (char[]){ "help" }, (char[]){ "openb" } };
    char *out;
    size_t len;
    struct sim sim = { .out = open_memstream(&out, &len), .err = stderr };
    assert_int_equal(sim_dispatch(&sim, 3, line), 0);
    fclose(sim.out);
    for (unsigned i = 0; i < fill_policy_count; i++)
        ROW(fill_policies[i].name, strstr(out, fill_policies[i].name));
    free(out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rounds_halves_to_even),
    cmocka_unit_test(the_target_is_the_most_frequent_sorts),
    cmocka_unit_test(waste_is_what_the_target_cannot_use),
    cmocka_unit_test(scores_are_what_the_formulas_say),
    cmocka_unit_test(devices_are_chosen),
    cmocka_unit_test(nodes_draw_power),
    cmocka_unit_test(power_and_fragmentation_are_weighed),
    cmocka_unit_test(memory_is_a_second_dimension),
    cmocka_unit_test(memory_is_drawn),
    cmocka_unit_test(a_random_device_is_any_that_fits),
    cmocka_unit_test(the_books_believe_no_policy),
    cmocka_unit_test(every_policy_fills_what_there_is),
    cmocka_unit_test(equal_scores_go_by_the_order_of_the_nodes),
    cmocka_unit_test(a_cluster_must_have_devices),
    cmocka_unit_test(a_mean_has_an_interval),
    cmocka_unit_test(the_command_answers),
    cmocka_unit_test(the_help_names_every_policy),
};
ROWS_MAIN(tests)
