/*
 * Requests, leases and devices from any bytes: what is read is written, and read
 * back to what writes the same.
 */
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "model/device.h"
#include "model/lease.h"

const char *const fuzz_seeds[] = {
    "{\"name\":\"b\",\"mem\":{\"request\":1,\"limit\":2},\"compute\":{\"request\":200,"
    "\"limit\":600},\"mode\":\"burst\",\"priority\":7,\"slices\":2,\"device\":\"a\","
    "\"fail_closed\":true,\"time_ms\":1,\"wait_ms\":\"forever\",\"max_kernel_ms\":5,"
    "\"cpu_milli\":1,\"host_mem\":1}",
    "{\"id\":\"L7\",\"name\":\"b\",\"state\":\"active\",\"mode\":\"hard\",\"mem\":{"
    "\"request\":5},"
    "\"granularity_ms\":12.5,\"slices\":[{\"device\":\"x\",\"mem\":{\"request\":1,"
    "\"limit\":2,"
    "\"used\":null,\"over\":0},\"compute\":{\"request\":1,\"achieved_10s\":5},\"turns\":7}]"
    ","
    "\"grade\":{\"memory\":\"front\"},\"created_at\":\"2026-05-20T10:00:00.123Z\","
    "\"shim\":{\"pid\":7,\"start_ticks\":8},\"exit_status\":0,\"command\":\"ls\"}",
    "{\"id\":\"emu\",\"index\":3,\"state\":\"held\",\"memory\":{\"bytes\":80,\"source\":"
    "\"x\","
    "\"reserve_bytes\":7},\"compute\":{\"units\":108},\"numa_node\":0,\"pci\":\"0000:3b:00."
    "0\","
    "\"holder\":{\"pid\":7,\"uid\":0}}",
    "[[[[[[1.5e3,\"\\u00e4\\ud83d\\udca7\"]]]]]]",
    NULL,
};

static void check_request(const json_t *j)
{
    struct lease_request have, again;
    struct sl_err err = { 0 };
    if (lease_request_from_json(j, &have, &err) < 0) {
        FUZZ_CHECK(err.msg[0]);
        return;
    }
    FUZZ_CHECK(have.compute_limit_permille >= 1 && have.compute_limit_permille <= 1000);
    FUZZ_CHECK(have.compute_request_permille <= have.compute_limit_permille);
    FUZZ_CHECK(have.mem_request_bytes <= have.mem_limit_bytes);
    FUZZ_CHECK(have.slice_count >= 1 && have.slice_count <= LEASE_MAX_SLICES);
    AUTO_JSON json_t *form = lease_request_to_json(&have);
    FUZZ_CHECK(form && lease_request_from_json(form, &again, NULL) == 0);
    AUTO_JSON json_t *second = lease_request_to_json(&again);
    FUZZ_CHECK(json_equal(form, second));
}

static void check_lease(const json_t *j)
{
    struct lease have, again;
    struct sl_err err = { 0 };
    if (lease_from_json(j, &have, &err) < 0) {
        FUZZ_CHECK(err.msg[0]);
        return;
    }
    AUTO_JSON json_t *form = lease_to_json(&have);
    FUZZ_CHECK(form && lease_from_json(form, &again, NULL) == 0);
    AUTO_JSON json_t *second = lease_to_json(&again);
    FUZZ_CHECK(json_equal(form, second));
}

static void check_device(const json_t *j)
{
    struct device have, again;
    struct sl_err err = { 0 };
    if (device_from_json(j, &have, &err) < 0) {
        FUZZ_CHECK(err.msg[0]);
        return;
    }
    AUTO_JSON json_t *form = device_to_json(&have);
    FUZZ_CHECK(form && device_from_json(form, &again, NULL) == 0);
    AUTO_JSON json_t *second = device_to_json(&again);
    FUZZ_CHECK(json_equal(form, second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_err err = { 0 };
    AUTO_JSON json_t *j = json_parse((const char *)data, size, &err);
    FUZZ_CHECK(j || err.msg[0]);
    if (!j)
        return 0;
    check_request(j);
    check_lease(j);
    check_device(j);
    return 0;
}
