/* Leases, requests and devices: their JSON, there and back. */
#include "../rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/device.h"
#include "model/lease.h"

static struct lease sample_lease(void)
{
    struct lease l = {
        .number = 7,
        .epoch = 3,
        .name = "train",
        .tenant = "uid:1000",
        .uid = 1000,
        .state = LEASE_ACTIVE,
        .mode = LEASE_BURST,
        .priority = 60,
        .fail_closed = true,
        .emulated = true,
        .slice_count = 2,
        .grades = { GRADE_FRONT, GRADE_FRONT, GRADE_NONE, GRADE_PROXY, GRADE_KERNEL },
        .placement = "mount",
        .time_ms = 3600000,
        .max_kernel_ms = 10000,
        .cpu_milli = 1500,
        .host_mem_bytes = 1 << 30,
        .host_limits = "cgroup",
        .granularity_ns = 12345678,
        .created_ms = 1779271200123,
        .granted_ms = 1779271200456,
        .released_ms = 1779271260000,
        .why = "ended",
        .shim_pid = 4321,
        .shim_start_ticks = 987654321,
        .cgroup_id = 5555,
        .exited = true,
        .exit_status = 137,
        .command = "python3 train.py",
        .clients = 2,
        .suspects = 1,
    };
    for (uint32_t i = 0; i < l.slice_count; i++) {
        struct lease_slice *s = &l.slice[i];
        *s = (struct lease_slice){
            .device_index = i,
            .mem_request_bytes = 1000 + i,
            .mem_limit_bytes = 2000 + i,
            .compute_request_permille = 200 + i,
            .compute_limit_permille = 600 + i,
            .mem_used_bytes = 500 + i,
            .mem_over_bytes = 1 + i,
            .achieved_permille_10s = 201,
            .held_ns = 11,
            .turns = 12,
            .wait_ns = 13,
            .overrun_ns = 14,
            .kernels = 15,
            .copies = 16,
            .ungated = 17,
            .refused = 18,
            .holds = true,
            .waits = true,
            .late = true,
            .stuck = true,
        };
        snprintf(s->device, sizeof s->device, "emu-a100-80g-%u", i);
    }
    return l;
}

static void a_lease_comes_back_as_it_was(void **state)
{
    struct lease have = sample_lease(), again;
    AUTO_JSON json_t *j = lease_to_json(&have);
    assert_non_null(j);
    struct sl_err err = { 0 };
    int rc = lease_from_json(j, &again, &err);
    if (rc)
        fail_msg("%s", err.msg);
    assert_memory_equal(&have, &again, sizeof have);
}

static void a_lease_of_unknowns_comes_back_as_it_was(void **state)
{
    struct lease have = { .number = 1, .slice_count = 1, .granularity_ns = 5000000 }, again;
    struct lease_slice *s = &have.slice[0];
    s->mem_used_bytes = s->mem_over_bytes = s->held_ns = s->turns = UNKNOWN_U64;
    s->wait_ns = s->overrun_ns = s->kernels = s->copies = UNKNOWN_U64;
    s->ungated = s->refused = UNKNOWN_U64;
    s->achieved_permille_10s = -1;
    AUTO_JSON json_t *j = lease_to_json(&have);
    assert_int_equal(lease_from_json(j, &again, NULL), 0);
    assert_memory_equal(&have, &again, sizeof have);

    json_t *mem = json_object_get(j, "mem"), *compute = json_object_get(j, "compute");
    assert_true(json_is_null(json_object_get(mem, "used")));
    assert_true(json_is_null(json_object_get(compute, "achieved_10s")));
    assert_true(json_is_null(json_object_get(j, "exit_status")));
    assert_true(json_is_null(json_object_get(j, "granted_at")));
    assert_true(json_is_null(json_object_get(j, "shim")));
}

static void the_public_form_is_the_documented_one(void **state)
{
    struct lease l = sample_lease();
    AUTO_JSON json_t *j = lease_to_json(&l);
    l.slice_count = 1;
    static const char *const keys[] = {
        "id",
        "name",
        "tenant",
        "device",
        "state",
        "mode",
        "priority",
        "mem",
        "compute",
        "grade",
        "placement",
        "epoch",
        "granularity_ms",
        "slices",
        "created_at",
        "why",
        "command",
        "shim",
        "exit_status",
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        ROW(keys[i], json_object_get(j, keys[i]));
    assert_string_equal(json_string_value(json_object_get(j, "id")), "L7");
    assert_string_equal(json_string_value(json_object_get(j, "device")), "emu-a100-80g-0");
    assert_string_equal(json_string_value(json_object_get(j, "state")), "active");
    assert_string_equal(json_string_value(json_object_get(j, "created_at")),
                        "2026-05-20T10:00:00.123Z");
    json_t *compute = json_object_get(j, "compute");
    assert_int_equal(json_integer_value(json_object_get(compute, "request")), 200);
    assert_int_equal(json_integer_value(json_object_get(compute, "limit")), 600);
    assert_int_equal(json_integer_value(json_object_get(compute, "achieved_10s")), 201);
}

static void a_command_of_any_bytes_survives_the_journal(void **state)
{
    struct lease l = { .number = 1 }, again;
    memset(l.command, '\xff', sizeof l.command - 1);
    AUTO_JSON json_t *j = lease_to_json(&l);
    assert_non_null(j);
    assert_int_equal(lease_from_json(j, &again, NULL), 0);
    assert_true(strlen(again.command) > 150);
    AUTO_JSON json_t *second = lease_to_json(&again);
    assert_non_null(second);
}

static void bad_leases(void **state)
{
    static const struct {
        const char *label, *json, *say;
    } rows[] = {
        { "no object", "[]", "a lease is a JSON object" },
        { "no id", "{}", "needs an \"id\"" },
        { "an id of another kind", "{\"id\":\"J7\"}", "those look like L7" },
        { "an id with a zero", "{\"id\":\"L07\"}", "those look like L7" },
        { "an id with a tail", "{\"id\":\"L7x\"}", "those look like L7" },
        { "an id too large", "{\"id\":\"L9223372036854775808\"}", "number too large" },
        { "an unknown state", "{\"id\":\"L7\",\"state\":\"lost\"}",
          "it is one of pending, active, draining, released" },
        { "a date without a time", "{\"id\":\"L7\",\"created_at\":\"2026-05-20\"}",
          "a time is written" },
        { "month 13", "{\"id\":\"L7\",\"created_at\":\"2026-13-20T10:00:00.000Z\"}",
          "a time is written" },
        { "nine slices", "{\"id\":\"L7\",\"slices\":[{},{},{},{},{},{},{},{},{}]}",
          "at most 8" },
        { "a slice of another kind", "{\"id\":\"L7\",\"slices\":[{},7]}",
          "slice 1: a slice is a JSON object" },
        { "a share out of range", "{\"id\":\"L7\",\"granularity_ms\":-1}",
          "granularity_ms" },
        { "a shim that is a number", "{\"id\":\"L7\",\"shim\":7}",
          "\"shim\" is not an object" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        struct lease l;
        AUTO_JSON json_t *j = json_parse(rows[i].json, strlen(rows[i].json), &err);
        ROW(rows[i].label, lease_from_json(j, &l, &err) == -SL_INVALID);
        if (!strstr(err.msg, rows[i].say))
            fail_msg("row \"%s\": it says: %s", rows[i].label, err.msg);
    }
}

static void requests(void **state)
{
    static const struct {
        const char *label, *json, *say; /* NULL: accepted */
    } rows[] = {
        { "nothing asked is the whole device", "{}", NULL },
        { "all of it",
          "{\"name\":\"b-1.x_2\",\"mem\":{\"request\":1,\"limit\":2},\"compute\":{"
          "\"request\":200,"
          "\"limit\":600},\"mode\":\"burst\",\"priority\":100,\"slices\":8,\"device\":"
          "\"a\","
          "\"fail_closed\":true,\"time_ms\":1,\"wait_ms\":\"forever\",\"max_kernel_ms\":5,"
          "\"cpu_milli\":1,\"host_mem\":1}",
          NULL },
        { "a range without a mode is burst",
          "{\"compute\":{\"request\":200,\"limit\":600}}", NULL },
        { "an unknown key", "{\"memory\":{}}", "\"memory\" is not known" },
        { "a mistyped key", "{\"prioritiy\":1}", "did you mean \"priority\"?" },
        { "a mistyped key inside", "{\"mem\":{\"requst\":1}}",
          "did you mean \"request\"?" },
        { "memory as text", "{\"mem\":\"1GiB\"}", "\"mem\" is not an object" },
        { "no memory", "{\"mem\":{\"request\":0}}", "at least 1 byte" },
        { "negative memory", "{\"mem\":{\"request\":-1}}", "cannot be negative" },
        { "memory limit below its request",
          "{\"mem\":{\"request\":67108864,\"limit\":33554432}}",
          "the memory request, 64MiB, is above the limit, 32MiB" },
        { "memory limit alone", "{\"mem\":{\"limit\":1}}", "needs a memory request" },
        { "compute 0", "{\"compute\":{\"request\":0}}", "between 1 and 1000" },
        { "compute 101 %", "{\"compute\":{\"request\":1010}}", "between 1 and 1000" },
        { "compute turned round", "{\"compute\":{\"request\":700,\"limit\":300}}",
          "is above the limit" },
        { "hard with room above",
          "{\"mode\":\"hard\",\"compute\":{\"request\":200,\"limit\":600}}",
          "needs mode burst" },
        { "mode unknown", "{\"mode\":\"soft\"}", "it is hard, burst or besteffort" },
        { "priority 101", "{\"priority\":101}", "between 0 and 100" },
        { "no slices", "{\"slices\":0}", "between 1 and 8" },
        { "nine slices", "{\"slices\":9}", "between 1 and 8" },
        { "a name like an id", "{\"name\":\"L7\"}", "looks like an id" },
        { "a name of digits", "{\"name\":\"77\"}", "looks like an id" },
        { "a name with a slash", "{\"name\":\"../x\"}", "letters, digits" },
        { "a name with a newline", "{\"name\":\"a\\nb\"}", "letters, digits" },
        { "a name too long",
          "{\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
          "at most 63 fit" },
        { "waiting for a word", "{\"wait_ms\":\"long\"}", "milliseconds or \"forever\"" },
        { "not an object", "[1]", "a JSON object is expected" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sl_err err = { 0 };
        struct lease_request r, again;
        AUTO_JSON json_t *j = json_parse(rows[i].json, strlen(rows[i].json), &err);
        int rc = lease_request_from_json(j, &r, &err);
        if (!rows[i].say) {
            if (rc)
                fail_msg("row \"%s\": %s", rows[i].label, err.msg);
            AUTO_JSON json_t *back = lease_request_to_json(&r);
            ROW(rows[i].label, lease_request_from_json(back, &again, NULL) == 0);
            ROW(rows[i].label, !memcmp(&r, &again, sizeof r));
        } else {
            ROW(rows[i].label, rc == -SL_INVALID);
            if (!strstr(err.msg, rows[i].say))
                fail_msg("row \"%s\": it says: %s", rows[i].label, err.msg);
        }
    }
}

static void what_follows_from_the_rest(void **state)
{
    struct lease_request r;
    lease_request_init(&r);
    assert_int_equal(r.compute_request_permille, 1000);
    assert_int_equal(r.slice_count, 1);
    r.mem_request_bytes = 5;
    r.compute_request_permille = 250;
    r.compute_limit_permille = 0;
    assert_int_equal(lease_request_check(&r, NULL), 0);
    assert_int_equal(r.mem_limit_bytes, 5);
    assert_int_equal(r.compute_limit_permille, 250);
    assert_int_equal(r.max_kernel_ms, 10000);

    r.mode = LEASE_BESTEFFORT;
    assert_int_equal(lease_request_check(&r, NULL), 0);
    assert_int_equal(r.compute_request_permille, 0);
    assert_int_equal(r.compute_limit_permille, 250);
}

static struct device sample_device(void)
{
    return (struct device){
        .id = "emu-a100-80g-3",
        .index = 3,
        .backend = "emulated",
        .emulated = true,
        .state = DEVICE_HELD,
        .why = "held by pid 7",
        .vendor = "NVIDIA",
        .model = "A100 80GB",
        .arch = "sm_80",
        .platform = "p",
        .driver = "550",
        .ordinal = 2,
        .unified = true,
        .memory_bytes = 85899345920,
        .memory_source = "recorded",
        .wipe = "driver",
        .reserve_bytes = 1 << 30,
        .max_alloc_bytes = 1 << 29,
        .compute_units = 108,
        .clock_mhz = 1410,
        .numa_node = 1,
        .pci = "0000:3b:00.0",
        .concurrent = true,
        .share_tenants = true,
        .grades = { GRADE_HARDWARE, GRADE_FRONT, GRADE_NONE, GRADE_PROXY, GRADE_KERNEL },
        .lent_bytes = 5,
        .used_bytes = 4,
        .lent_permille = 300,
        .achieved_permille_10s = 201,
        .lease_count = 2,
        .holder_pid = 7,
        .holder_uid = 1000,
    };
}

static void a_device_comes_back_as_it_was(void **state)
{
    struct device have = sample_device(), again;
    struct sl_err err = { 0 };
    AUTO_JSON json_t *j = device_to_json(&have);
    if (device_from_json(j, &again, &err))
        fail_msg("%s", err.msg);
    assert_memory_equal(&have, &again, sizeof have);
    json_t *memory = json_object_get(j, "memory");
    assert_int_equal(json_integer_value(json_object_get(memory, "lendable_bytes")),
                     85899345920 - (1 << 30));
}

static void a_device_without_an_id_is_refused(void **state)
{
    struct device d;
    AUTO_JSON json_t *j = json_object();
    assert_int_equal(device_from_json(j, &d, NULL), -SL_INVALID);
    json_object_set_new(j, "id", json_string("x"));
    assert_int_equal(device_from_json(j, &d, NULL), 0);
    assert_true(d.memory_bytes == UNKNOWN_U64);
    assert_int_equal(d.numa_node, -1);
    json_object_set_new(j, "memory", json_string("big"));
    assert_int_equal(device_from_json(j, &d, NULL), -SL_INVALID);
}

static void lendable_never_wraps(void **state)
{
    struct device d = { .memory_bytes = 5, .reserve_bytes = 7 };
    assert_int_equal(device_lendable_bytes(&d), 0);
    d.memory_bytes = UNKNOWN_U64;
    assert_int_equal(device_lendable_bytes(&d), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_lease_comes_back_as_it_was),
    cmocka_unit_test(a_lease_of_unknowns_comes_back_as_it_was),
    cmocka_unit_test(the_public_form_is_the_documented_one),
    cmocka_unit_test(a_command_of_any_bytes_survives_the_journal),
    cmocka_unit_test(bad_leases),
    cmocka_unit_test(requests),
    cmocka_unit_test(what_follows_from_the_rest),
    cmocka_unit_test(a_device_comes_back_as_it_was),
    cmocka_unit_test(a_device_without_an_id_is_refused),
    cmocka_unit_test(lendable_never_wraps),
};
ROWS_MAIN(tests)
