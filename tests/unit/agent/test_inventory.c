/* Devices: emulated specifications, recorded machines, and what the probe prints. */
#include "../rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/backend.h"
#include "model/units.h"

#define MAX 64

static void specifications(void **state)
{
    static const struct {
        const char *label, *text;
        uint32_t count;
        const char *last, *say;
    } rows[] = {
        { "one model", "t4", 1, "emu-t4-0", 0 },
        { "eight of one", "a100-80g:8", 8, "emu-a100-80g-7", 0 },
        { "several", "a100-80g:2,l4:3", 5, "emu-l4-2", 0 },
        { "the same twice goes on counting", "l4,t4,l4", 3, "emu-l4-1", 0 },
        { "any case", "H100-80G", 1, "emu-h100-80g-0", 0 },
        { "an unknown model names the known ones", "a100", 0, 0, "a100-80g" },
        { "none of one", "t4:0", 0, 0, "1 to 64" },
        { "negative", "t4:-1", 0, 0, "1 to 64" },
        { "too many", "t4:65", 0, 0, "1 to 64" },
        { "too many together", "t4:40,l4:40", 0, 0, "more than 64" },
        { "no number", "t4:", 0, 0, "not a number" },
        { "nothing", "", 0, 0, "no model is called" },
        { "an empty item", "t4,,l4", 0, 0, "no model is called" },
        { "a file that is not there", "/nonexistent.json", 0, 0, "/nonexistent.json" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct device d[MAX];
        uint32_t count = 0;
        struct sl_err err = { 0 };
        int rc = emulated_add(rows[i].text, d, MAX, &count, &err);
        if (!rows[i].say) {
            ROW(rows[i].label, rc == 0 && count == rows[i].count);
            ROW_STR(rows[i].label, d[count - 1].id, rows[i].last);
            ROW("it is labelled",
                d[count - 1].emulated && !strcmp(d[0].backend, "emulated"));
            ROW("and holds nothing", d[0].grades.memory == GRADE_NONE &&
                                         d[0].grades.time == GRADE_NONE &&
                                         d[0].grades.visibility == GRADE_NONE);
        } else if (rc == 0 || !strstr(err.msg, rows[i].say)) {
            fail_msg("row \"%s\": \"%s\"", rows[i].label, err.msg);
        }
    }
}

static void recorded_machines(void **state)
{
    static const struct {
        const char *file;
        uint32_t count, at;
        const char *id, *pci;
        int32_t numa;
        bool unified;
    } rows[] = {
        { "dgx-a100.json", 8, 7, "emu-a100-80g-7", "0000:bd:00.0", 5, false },
        { "mixed-box.json", 4, 3, "emu-mi210-0", "0000:c3:00.0", 1, false },
        { "laptop-cpu.json", 1, 0, "emu-pthread-skylake-11th-gen-intel-core-i7-0", "", 0,
          true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct device d[MAX];
        char path[300];
        uint32_t count = 0;
        struct sl_err err = { 0 };
        snprintf(path, sizeof path, MACHINES "/%s", rows[i].file);
        if (emulated_add(path, d, MAX, &count, &err) < 0)
            fail_msg("%s", err.msg);
        const struct device *one = &d[rows[i].at];
        ROW(rows[i].file, count == rows[i].count && one->numa_node == rows[i].numa &&
                              one->unified == rows[i].unified);
        ROW_STR(rows[i].file, one->id, rows[i].id);
        ROW_STR(rows[i].file, one->pci, rows[i].pci);
    }
}

static void bad_files(void **state)
{
    static const struct {
        const char *label, *text, *say;
    } rows[] = {
        { "not JSON", "{", "" },
        { "no list", "{\"machine\":\"x\"}", "\"devices\" must be a list" },
        { "nothing: what is expected is shown", "{}",
          "{\"devices\": [{\"like\": \"a100-80g\"" },
        { "a wrong key at the top", "{\"device\":[],\"devices\":[]}", "did you mean" },
        { "an unknown key", "{\"devices\":[{\"like\":\"t4\",\"memroy_bytes\":1}]}",
          "memroy_bytes" },
        { "where it is", "{\"devices\":[{\"like\":\"t4\"},{\"lik\":\"t4\"}]}",
          "device 2: " },
        { "and what may be", "{\"devices\":[{\"colour\":1}]}",
          "expected are like, model, memory_bytes" },
        { "an unknown model", "{\"devices\":[{\"like\":\"t5\"}]}",
          "no model is called \"t5\"; known are" },
        { "no size", "{\"devices\":[{\"model\":\"x\"}]}", "memory_bytes" },
        { "a reserve above the size",
          "{\"devices\":[{\"model\":\"x\",\"memory_bytes\":5,\"reserve_bytes\":6}]}",
          "reserve" },
        { "a negative size", "{\"devices\":[{\"model\":\"x\",\"memory_bytes\":-5}]}",
          "memory_bytes" },
        { "more than there may be", "{\"devices\":[{\"like\":\"t4\",\"count\":65}]}",
          "more than" },
    };
    char path[] = "/tmp/sluice-machine-XXXXXX.json";
    int fd = mkstemps(path, 5);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct device d[MAX];
        uint32_t count = 0;
        struct sl_err err = { 0 };
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_true(pwrite(fd, rows[i].text, strlen(rows[i].text), 0) > 0);
        int rc = emulated_add(path, d, MAX, &count, &err);
        if (rc == 0 || !strstr(err.msg, rows[i].say) || !strstr(err.msg, path))
            fail_msg("row \"%s\": \"%s\"", rows[i].label, err.msg);
    }
    close(fd);
    unlink(path);
}

#define DEVICE(name, more)                                           \
    "{\"platform\":\"Portable Computing Language\",\"name\":\"" name \
    "\",\"vendor\":\"v\",\"driver\":\"3.1\",\"type\":\"cpu\",\"unified\":true" more "}"

static uint32_t parse(const char *text, struct device *out, struct sl_err *err)
{
    uint32_t count = 0;
    int rc = opencl_parse(text, strlen(text), 8 * GIB, out, MAX, &count, err);
    return rc < 0 ? 0 : count;
}

static void probe_output(void **state)
{
    static struct device d[MAX], again[MAX];
    struct sl_err err = { 0 };
    const char *two =
        "{\"devices\":[" DEVICE("cpu", ",\"memory_bytes\":4294967296") "," DEVICE(
            "cpu", ",\"memory_bytes\":99999999999") "," DEVICE("basic", "") "]}";
    ROW("three devices", parse(two, d, &err) == 3);
    parse(two, again, &err);
    ROW_STR("an id is the same every time", d[1].id, again[1].id);
    ROW("it starts with the platform's short name", strncmp(d[0].id, "pocl-", 5) == 0);
    ROW("alike devices differ by ordinal",
        d[0].ordinal == 0 && d[1].ordinal == 1 && strcmp(d[0].id, d[1].id) != 0);
    ROW("another name is another hash", strncmp(d[0].id, d[2].id, 13) != 0);
    ROW("the driver's size where it is less", d[0].memory_bytes == 4 * GIB);
    ROW_STR("and its source", d[0].memory_source, "clGetDeviceInfo");
    ROW("MemTotal where the driver says more", d[1].memory_bytes == 8 * GIB);
    ROW_STR("and its source", d[1].memory_source, "MemTotal");
    ROW("a quarter is reserved on a CPU", d[1].reserve_bytes == 2 * GIB);
    ROW("what is unknown stays unknown", d[0].numa_node == -1 && d[0].pci[0] == '\0');
    ROW("no memory is a failed device", d[2].state == DEVICE_FAILED && d[2].why[0]);
    ROW("no device at all is fine",
        parse("{\"devices\":[]}", d, &err) == 0 && err.code == 0);
    parse("{}", d, &err);
    ROW("no list is an error", err.code == SL_PROTOCOL);
    parse("Segmentation fault", d, &err);
    ROW("no JSON is an error", strstr(err.msg, "no JSON") != NULL);
}

static void probe_failures(void **state)
{
    static const struct {
        const char *label, *script, *say;
    } rows[] = {
        { "one that dies", "#!/bin/sh\nkill -SEGV $$\n", "killed by signal 11" },
        { "one that fails", "#!/bin/sh\nexit 3\n", "status 3" },
        { "one that hangs", "#!/bin/sh\nsleep 100\n", "no answer in 300 ms" },
        { "one that says what it wants", "#!/bin/sh\necho hello\n", "no JSON" },
    };
    char path[] = "/tmp/sluice-probe-XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < ARRAY_LEN(rows) + 1; i++) {
        static struct device d[MAX];
        uint32_t count = 0;
        struct sl_err err = { 0 };
        bool missing = i == ARRAY_LEN(rows);
        struct backend_options o = { .probe_program = missing ? "/nonexistent" : path,
                                     .probe_timeout_ms = 300 };
        if (!missing) {
            FILE *f = fopen(path, "w");
            fputs(rows[i].script, f);
            fclose(f);
            chmod(path, 0700);
        }
        assert_int_equal(backend_opencl.probe(&o, d, MAX, &count, &err), 0);
        const char *say = missing ? "cannot run" : rows[i].say;
        if (count != 1 || d[0].state != DEVICE_FAILED || !strstr(d[0].why, say))
            fail_msg("row \"%s\": %s", missing ? "one that is missing" : rows[i].label,
                     d[0].why);
    }
    unlink(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(specifications), cmocka_unit_test(recorded_machines),
    cmocka_unit_test(bad_files),      cmocka_unit_test(probe_output),
    cmocka_unit_test(probe_failures),
};

ROWS_MAIN(tests)
