/* Numbers, names, text files and tables: what is read, and what an error says. */
#include "../rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/csv.h"
#include "sim/number.h"
#include "sim/openb.h"
#include "sim/trace.h"

static void numbers_are_exact(void **state)
{
    static const struct {
        const char *label, *text;
        unsigned places;
        enum number_fault fault;
        uint64_t value;
    } rows[] = {
        { "a whole one", "17", 0, NUMBER_OK, 17 },
        { "zeros behind the point", "66.0", 0, NUMBER_OK, 66 },
        { "zeros in front", "007", 0, NUMBER_OK, 7 },
        { "fewer digits than places", "0.5", 3, NUMBER_OK, 500 },
        { "as many digits as places", "12.345", 3, NUMBER_OK, 12345 },
        { "zeros behind the last place", "12.3450000", 3, NUMBER_OK, 12345 },
        { "too fine", "12.3451", 3, NUMBER_FINE, 0 },
        { "the largest", "18446744073709551615", 0, NUMBER_OK, UINT64_MAX },
        { "one above the largest", "18446744073709551616", 0, NUMBER_LARGE, 0 },
        { "too large by its places", "18446744073709551615", 1, NUMBER_LARGE, 0 },
        { "very long", "99999999999999999999999999999999", 0, NUMBER_LARGE, 0 },
        { "negative", "-5", 0, NUMBER_NEGATIVE, 0 },
        { "negative and fine", "-0.5", 0, NUMBER_NEGATIVE, 0 },
        { "nothing", "", 0, NUMBER_NONE, 0 },
        { "a word", "ten", 0, NUMBER_NONE, 0 },
        { "a word behind", "10ms", 0, NUMBER_NONE, 0 },
        { "an exponent", "1e3", 0, NUMBER_NONE, 0 },
        { "a plus", "+1", 0, NUMBER_NONE, 0 },
        { "a point only", ".", 0, NUMBER_NONE, 0 },
        { "nothing behind the point", "1.", 0, NUMBER_NONE, 0 },
        { "nothing before the point", ".5", 1, NUMBER_NONE, 0 },
        { "two points", "1.2.3", 3, NUMBER_NONE, 0 },
        { "hexadecimal", "0x10", 0, NUMBER_NONE, 0 },
        { "not a number", "nan", 0, NUMBER_NONE, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t value = 0;
        enum number_fault fault =
            number_parse(rows[i].text, strlen(rows[i].text), rows[i].places, &value);
        ROW(rows[i].label, fault == rows[i].fault && value == rows[i].value);
    }
}

static void measured_numbers_are_rounded(void **state)
{
    static const struct {
        const char *label, *text;
        uint64_t micro;
    } rows[] = {
        { "down", "222.29592043", 222295920 },
        { "half goes up", "222.2959205", 222295921 },
        { "up into the whole", "0.9999999", 1000000 },
        { "few digits", "3.5", 3500000 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t value = 0;
        number_parse_rounded(rows[i].text, strlen(rows[i].text), 6, &value);
        ROW(rows[i].label, value == rows[i].micro);
    }
    uint64_t value = 7;
    const char *largest = "18446744073709.5516159";
    ROW("rounding up above the largest is too large",
        number_parse_rounded(largest, strlen(largest), 6, &value) == NUMBER_LARGE);
    ROW("and leaves the output alone", value == 7);
}

static void numbers_are_printed_back(void **state)
{
    static const struct {
        const char *want;
        uint64_t value;
        unsigned places;
    } rows[] = {
        { "0", 0, 3 },        { "12", 12000, 3 },
        { "12.5", 12500, 3 }, { "0.001", 1, 3 },
        { "1000", 1000, 0 },  { "18446744073709551615", UINT64_MAX, 0 },
        { "0.05", 50000, 6 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char out[32];
        ROW_STR(rows[i].want, number_format(rows[i].value, rows[i].places, out),
                rows[i].want);
    }
}

static void names_are_kept_once(void **state)
{
    struct names n = { 0 };
    char text[16];
    ROW("nothing is found in an empty table", names_find(&n, "a") == NAMES_NONE);
    for (uint32_t i = 0; i < 5000; i++) {
        int len = snprintf(text, sizeof text, "name-%u", i);
        ROW("numbered in order", names_add(&n, text, (size_t)len, i + 1) == i);
    }
    ROW("the same name has the same number", names_add(&n, "name-77", 7, 9999) == 77);
    ROW("and the line where it stood first", n.name[77].line == 78);
    ROW("nothing was added", n.count == 5000);
    ROW("found by text", names_find(&n, "name-4999") == 4999);
    ROW("what is not there", names_find(&n, "name-5000") == NAMES_NONE);
    ROW("part of a text is another name", names_add(&n, "name-77", 5, 1) == 5000);
    ROW_STR("text by number", names_text(&n, 4999), "name-4999");
    ROW_STR("no name has no text", names_text(&n, NAMES_NONE), "");
    names_finish(&n);
}

/* ---- text files ---- */

/* gzip of a string, in malloc'ed bytes. */
static char *gzip_of(const char *string, size_t *len)
{
    z_stream z = { .next_in = (Bytef *)string, .avail_in = (uInt)strlen(string) };
    char *out = malloc(4096);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (Bytef *)out;
    z.avail_out = 4096;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *len = z.total_out;
    deflateEnd(&z);
    return out;
}

static void gzip_is_unpacked_whatever_its_name(void **state)
{
    struct text t;
    struct sl_err err;
    size_t len;
    char *packed = gzip_of("a,b\n1,2\n", &len);
    assert_int_equal(text_take("x.csv", packed, len, &t, &err), 0);
    assert_int_equal(t.len, 8);
    assert_memory_equal(t.bytes, "a,b\n1,2\n", 8);
    text_finish(&t);

    size_t second_len;
    char *first = gzip_of("a,b\n", &len), *second = gzip_of("1,2\n", &second_len);
    memcpy(first + len, second, second_len);
    free(second);
    assert_int_equal(text_take("x", first, len + second_len, &t, &err), 0);
    ROW("two members one after the other", t.len == 8 && !memcmp(t.bytes, "a,b\n1,2\n", 8));
    text_finish(&t);
}

static void a_damaged_gzip_says_so(void **state)
{
    struct text t = { .len = 99 };
    struct sl_err err;
    size_t len;
    free(gzip_of("a,b\n1,2\n", &len));
    for (size_t cut = 2; cut < len; cut++) {
        char *packed = gzip_of("a,b\n1,2\n", &len);
        int rc = text_take("x.gz", packed, cut, &t, &err);
        ROW("cut off anywhere", rc == -SL_INVALID && strstr(err.msg, "cut off"));
        ROW("nothing is written", t.len == 99);
    }
    char *packed = gzip_of("a,b\n1,2\n", &len);
    packed[len - 6] ^= 1;
    assert_int_equal(text_take("x.gz", packed, len, &t, &err), -SL_INVALID);
    ROW("a wrong checksum", strstr(err.msg, "x.gz: damaged gzip data"));
    packed = gzip_of("a,b\n1,2\n", &len);
    packed[len] = 'x';
    assert_int_equal(text_take("x.gz", packed, len + 1, &t, &err), -SL_INVALID);
}

static void what_is_no_text_is_refused(void **state)
{
    struct text t;
    struct sl_err err;
    char *bytes = calloc(1, 8);
    memcpy(bytes, "a\nb\n\0c\n", 7);
    assert_int_equal(text_take("x", bytes, 7, &t, &err), -SL_INVALID);
    assert_string_equal(err.msg, "x:3: a zero byte: this is no text file");
    assert_int_equal(text_open("/nowhere/x.csv", &t, &err), -SL_NOT_FOUND);
    assert_int_equal(text_copy("x",
                               "\xef\xbb\xbf"
                               "ab",
                               &t, &err),
                     0);
    ROW("a byte order mark is no part of it", t.len == 2 && t.bytes[0] == 'a');
    text_finish(&t);
}

static void a_long_path_is_shown_by_its_end(void **state)
{
    char path[300];
    struct text t;
    struct trace trace;
    struct sl_err err;
    memset(path, 'd', sizeof path);
    snprintf(path + 200, 100, "/pods.csv");
    assert_int_equal(text_copy(path, "job_id\n", &t, &err), 0);
    assert_int_equal(trace_read("csv", &t, &trace, &err), -SL_INVALID);
    assert_string_equal(err.msg,
                        "pods.csv:1: no column 'submit_s'; the header is 'job_id'");
    text_finish(&t);
}

/* ---- tables ---- */

#define HEAD "job_id,submit_s,gpu_num,duration_s\n"

static int read_jobs(const char *string, struct trace *out, struct sl_err *err)
{
    AUTO_TEXT struct text text = { 0 };
    assert_int_equal(text_copy("jobs.csv", string, &text, err), 0);
    return trace_read("csv", &text, out, err);
}

static void tables_that_are_right(void **state)
{
    static const struct {
        const char *label, *text;
        uint32_t jobs;
    } rows[] = {
        { "plain", HEAD "a,1,2,3\nb,1,2,3\n", 2 },
        { "the last line without its end", HEAD "a,1,2,3", 1 },
        { "CRLF", "job_id,submit_s,gpu_num,duration_s\r\na,1,2,3\r\n", 1 },
        { "CRLF and no end", "job_id,submit_s,gpu_num,duration_s\r\na,1,2,3\r", 1 },
        { "blank lines behind", HEAD "a,1,2,3\n\n\r\n", 1 },
        { "blank lines between and before", "\n" HEAD "\na,1,2,3\n\nb,1,2,3\n", 2 },
        { "another order of columns", "gpu_num,duration_s,job_id,submit_s\n2,3,a,1\n", 1 },
        { "columns that nobody knows",
          "x,job_id,submit_s,y,gpu_num,duration_s,z\n,a,1,?,2,3,\n", 1 },
        { "blanks around fields", "job_id , submit_s, gpu_num,duration_s\n a , 1,2 ,3\n",
          1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace t;
        struct sl_err err;
        int rc = read_jobs(rows[i].text, &t, &err);
        if (rc < 0)
            fail_msg("row \"%s\": %s", rows[i].label, err.msg);
        const struct trace_job *job = &t.jobs[0];
        ROW(rows[i].label, t.job_count == rows[i].jobs);
        ROW_STR(rows[i].label, names_text(&t.ids, job->id), "a");
        ROW(rows[i].label, job->submit_ms == 1000 && job->devices == 2);
        ROW(rows[i].label, job->duration_ms == 3000 && job->share_permille == 1000);
        trace_finish(&t);
    }
}

static void tables_that_are_wrong(void **state)
{
    static const struct {
        const char *label, *text, *want;
    } rows[] = {
        { "an empty file", "", "jobs.csv is empty; a header with 'job_id' is expected" },
        { "blank lines only", "\n\r\n",
          "jobs.csv is empty; a header with 'job_id' is expected" },
        { "a header only", HEAD, "jobs.csv has no rows" },
        { "a column is missing", "job_id,submit_s,duration_s\na,1,3\n",
          "jobs.csv:1: no column 'gpu_num'; the header is 'job_id,submit_s,duration_s'" },
        { "a column twice", "job_id,submit_s,gpu_num,duration_s,submit_s\na,1,2,3,4\n",
          "jobs.csv:1: column 'submit_s' is there twice" },
        { "a field too few", HEAD "a,1,2,3\nb,1,2\n",
          "jobs.csv:3: 3 fields; 4 are expected" },
        { "a field too many", HEAD "a,1,2,3,\n", "jobs.csv:2: 5 fields; 4 are expected" },
        { "negative", HEAD "a,1,-5,3\n",
          "jobs.csv:2: gpu_num: '-5' is below 0; expected 0..1000000" },
        { "absurd", HEAD "a,1,5000000,3\n",
          "jobs.csv:2: gpu_num: '5000000' is above 1000000; expected 0..1000000" },
        { "overflow", HEAD "a,99999999999999999999999,2,3\n",
          "jobs.csv:2: submit_s: '99999999999999999999999' is above 1000000000; expected "
          "0..1000000000" },
        { "part of a device", HEAD "a,1,0.5,3\n",
          "jobs.csv:2: gpu_num: '0.5' is not whole; expected 0..1000000" },
        { "finer than a millisecond", HEAD "a,1.0005,1,3\n",
          "jobs.csv:2: submit_s: '1.0005' has more than 3 digits behind the point" },
        { "a word", HEAD "a,1,two,3\n",
          "jobs.csv:2: gpu_num: 'two' is not a number; expected 0..1000000" },
        { "an empty number", HEAD "a,1,,3\n",
          "jobs.csv:2: gpu_num: '' is empty; expected 0..1000000" },
        { "no id", HEAD ",1,2,3\n", "jobs.csv:2: job_id: '' is empty; a name is expected" },
        { "the same id", HEAD "a,1,2,3\nb,1,2,3\na,7,7,7\n",
          "jobs.csv:4: job_id: 'a' is on line 2 already" },
        { "the first error of several", HEAD "a,-1,-2,-3\n",
          "jobs.csv:2: submit_s: '-1' is below 0; expected 0..1000000000" },
        { "blank lines count as lines", HEAD "\n\na,1,-2,3\n",
          "jobs.csv:4: gpu_num: '-2' is below 0; expected 0..1000000" },
        { "quotes", HEAD "\"a\",1,2,3\n",
          "jobs.csv:2: \"a\" is in quotes; plain fields are expected" },
        { "a long field", HEAD "a,1,123456789.123456789.123456789.123456789.123456789,3\n",
          "jobs.csv:2: gpu_num: '123456789.123456789.123456789.123456789.1...' is not a "
          "number; expected 0..1000000" },
        { "no field may speak to a terminal", HEAD "a,1,\033[2J,3\n",
          "jobs.csv:2: gpu_num: '?[2J' is not a number; expected 0..1000000" },
        { "a share above the whole",
          "job_id,submit_s,gpu_num,duration_s,share_permille\na,1,2,3,1001\n",
          "jobs.csv:2: share_permille: '1001' is above 1000; expected 1..1000" },
        { "a share of nothing",
          "job_id,submit_s,gpu_num,duration_s,share_permille\na,1,2,3,0\n",
          "jobs.csv:2: share_permille: '0' is below 1; expected 1..1000" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace t = { .job_count = 77 };
        struct sl_err err = { 0 };
        ROW(rows[i].label, read_jobs(rows[i].text, &t, &err) == -SL_INVALID);
        ROW_STR(rows[i].label, err.msg, rows[i].want);
        ROW(rows[i].label, t.job_count == 77 && !t.jobs);
        ROW(rows[i].label, read_jobs(rows[i].text, &t, NULL) == -SL_INVALID);
    }
}

static void jobs_are_in_order_of_submission(void **state)
{
    struct trace t;
    struct sl_err err;
    static const char *const want[] = { "c", "b", "d", "a" };
    assert_int_equal(read_jobs(HEAD "a,9,1,1\nb,5,1,1\nc,0.5,1,1\nd,5,1,1\n", &t, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        ROW_STR("equal times in the order of the file", names_text(&t.ids, t.jobs[i].id),
                want[i]);
    ROW("a job knows its line", t.jobs[0].line == 4);
    trace_finish(&t);
}

static void an_unknown_format_is_told_what_there_is(void **state)
{
    struct trace t;
    struct sl_err err;
    AUTO_TEXT struct text text = { 0 };
    assert_int_equal(text_copy("x", "a\n", &text, &err), 0);
    assert_int_equal(trace_read("json", &text, &t, &err), -SL_INVALID);
    assert_string_equal(
        err.msg, "'json' is no format of job traces; there are muri, philly, chronus, csv");
    assert_int_equal(trace_open("muri", "/nowhere", &t, &err), -SL_NOT_FOUND);
}

/* ---- times ---- */

static void times_are_read_as_utc(void **state)
{
    static const struct {
        const char *label, *text;
        uint64_t us; /* 0: refused */
    } rows[] = {
        { "plain", "2022-01-31 10:00:00", 1643623200000000 },
        { "with a T and a Z", "2022-01-31T10:00:00Z", 1643623200000000 },
        { "with the offset of UTC", "2022-01-31 10:00:00+00:00", 1643623200000000 },
        { "with a fraction", "2022-01-31 10:00:00.5", 1643623200500000 },
        { "finer than microseconds", "2022-01-31 10:00:00.9799609", 1643623200979960 },
        { "a leap day", "2024-02-29 00:00:00", 1709164800000000 },
        { "no leap day", "2023-02-29 00:00:00", 0 },
        { "month 13", "2022-13-01 00:00:00", 0 },
        { "month 0", "2022-00-01 00:00:00", 0 },
        { "hour 24", "2022-01-01 24:00:00", 0 },
        { "second 60", "2022-01-01 00:00:60", 0 },
        { "before 1970", "1969-12-31 23:00:00", 0 },
        { "another offset", "2022-01-31 10:00:00+01:00", 0 },
        { "a date alone", "2022-01-31", 0 },
        { "a point without digits", "2022-01-31 10:00:00.", 0 },
        { "something behind", "2022-01-31 10:00:00 PM", 0 },
        { "far too long", "2022-01-31 10:00:00.0000000000000000000000000000000000", 0 },
        { "nothing", "", 0 },
    };
    static const struct csv_column columns[] = { { "time" }, { "x" } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char string[100];
        struct csv csv;
        struct sl_err err;
        AUTO_TEXT struct text text = { 0 };
        snprintf(string, sizeof string, "time,x\n%s,1\n", rows[i].text);
        assert_int_equal(text_copy("t.csv", string, &text, &err), 0);
        csv_begin(&csv, &text, columns, 2, &err);
        ROW(rows[i].label, csv_next(&csv));
        ROW(rows[i].label, csv_time_us(&csv, 0) == rows[i].us);
        ROW(rows[i].label, (csv.rc == 0) == (rows[i].us != 0));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_exact),
    cmocka_unit_test(measured_numbers_are_rounded),
    cmocka_unit_test(numbers_are_printed_back),
    cmocka_unit_test(names_are_kept_once),
    cmocka_unit_test(gzip_is_unpacked_whatever_its_name),
    cmocka_unit_test(a_damaged_gzip_says_so),
    cmocka_unit_test(what_is_no_text_is_refused),
    cmocka_unit_test(a_long_path_is_shown_by_its_end),
    cmocka_unit_test(tables_that_are_right),
    cmocka_unit_test(tables_that_are_wrong),
    cmocka_unit_test(jobs_are_in_order_of_submission),
    cmocka_unit_test(an_unknown_format_is_told_what_there_is),
    cmocka_unit_test(times_are_read_as_utc),
};
ROWS_MAIN(tests)
