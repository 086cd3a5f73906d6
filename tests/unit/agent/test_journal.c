/* The journal: every torn end is cut, damage in the middle is an error, a failed write
 * leaves no trace. */
#include "../rows.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include "journal.h"
#include "os/file.h"

static char dir[] = "/tmp/sluice-journal-XXXXXX";
static char path[64], cut_path[72];

struct seen {
    int count, last;
};

static int count_records(void *ctx, const json_t *record, struct sl_err *err)
{
    struct seen *s = ctx;
    s->count++;
    s->last = (int)json_integer_value(json_object_get(record, "n"));
    return 0;
}

static int append(struct journal *j, int n, struct sl_err *err)
{
    json_t *record =
        json_pack("{s:s, s:i, s:s}", "kind", "test", "n", n, "text", "a \"line\"\n");
    int rc = journal_append(j, record, err);
    json_decref(record);
    return rc;
}

/* n records; their bytes, owned by the caller. */
static char *make(int n, size_t *len)
{
    struct journal *j;
    struct seen seen = { 0 };
    char *text = NULL;
    unlink(path);
    assert_int_equal(journal_open(path, count_records, &seen, &j, NULL, NULL), 0);
    for (int i = 1; i <= n; i++)
        assert_int_equal(append(j, i, NULL), 0);
    journal_close(j);
    assert_int_equal(file_read(path, 1 << 20, &text, len, NULL), 0);
    return text;
}

static void put(const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    close(fd);
}

static void torn_at_every_byte(void **state)
{
    size_t len, whole = 0;
    char *text = make(3, &len);
    int records = 0;
    bool ok = true, usable = true;
    for (size_t at = 0; at <= len; at++) {
        if (at > 0 && text[at - 1] == '\n') {
            records++;
            whole = at;
        }
        struct journal *j;
        struct seen seen = { 0 }, again = { 0 };
        uint64_t cut = 77;
        put(text, at);
        ok &= journal_open(path, count_records, &seen, &j, &cut, NULL) == 0;
        ok &= seen.count == records && cut == at - whole;
        usable &= append(j, 99, NULL) == 0;
        journal_close(j);
        usable &=
            journal_open(path, count_records, &again, &j, &cut, NULL) == 0 && cut == 0;
        usable &= again.count == records + 1 && again.last == 99;
        journal_close(j);
    }
    ROW("whatever byte it was torn at, the whole records are read", ok);
    ROW("and the next one can be read back", usable);
    free(text);
}

static void damage_in_the_middle(void **state)
{
    size_t len;
    char *text = make(3, &len);
    bool refused = true, said = true;
    size_t second = (size_t)(strchr(text, '\n') - text) + 1;
    size_t third = (size_t)(strchr(text + second, '\n') - text) + 1;
    for (size_t at = 0; at < third; at++) {
        struct journal *j = NULL;
        struct seen seen = { 0 };
        struct sl_err err = { 0 };
        char was = text[at];
        text[at] ^= 0x04;
        put(text, len);
        if (journal_open(path, count_records, &seen, &j, NULL, &err) == 0)
            refused = false;
        else
            said &= strstr(err.msg, "damaged at byte") && strstr(err.msg, "move it away");
        text[at] = was;
    }
    ROW("a flipped bit in any byte before the last record is found", refused);
    ROW("and the error says where, and what to do", said);

    struct journal *j = NULL;
    struct seen seen = { 0 };
    struct stat st;
    text[third + 12] ^= 0x04;
    put(text, len);
    ROW("in the last record it is a torn end",
        journal_open(path, count_records, &seen, &j, NULL, NULL) == 0 && seen.count == 2);
    ROW("that is kept beside it",
        stat(cut_path, &st) == 0 && (size_t)st.st_size == len - third);
    journal_close(j);
    free(text);
}

static void a_failed_write_leaves_no_trace(void **state)
{
    struct journal *j;
    struct seen seen = { 0 };
    size_t len;
    char *text = make(2, &len);
    free(text);
    assert_int_equal(journal_open(path, count_records, &seen, &j, NULL, NULL), 0);

    struct rlimit was, small;
    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    small.rlim_cur = len + 20; /* a full disk in the middle of a record */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    struct sl_err err = { 0 };
    int rc = append(j, 3, &err);
    struct stat st;
    stat(path, &st);
    setrlimit(RLIMIT_FSIZE, &was);
    ROW("it is an error of the disk", rc == -SL_IO && err.code == SL_IO);
    ROW("the half record is taken back", (size_t)st.st_size == len);
    ROW("with room again it goes on", append(j, 4, NULL) == 0);
    journal_close(j);
    seen = (struct seen){ 0 };
    journal_open(path, count_records, &seen, &j, NULL, NULL);
    ROW("and nothing is damaged", seen.count == 3 && seen.last == 4);
    journal_close(j);
}

static uint64_t blocks(void)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void room_is_kept(void **state)
{
    struct journal *j;
    struct seen seen = { 0 };
    size_t len;
    char *text = make(3, &len);
    free(text);
    int fd = open(path, O_RDWR);
    bool can = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8192) == 0;
    close(fd);
    if (!can)
        skip(); /* this file system keeps none */
    assert_int_equal(journal_open(path, count_records, &seen, &j, NULL, NULL), 0);
    struct stat st;
    stat(path, &st);
    ROW("the disk may fill up: its blocks are there", blocks() >= 256 << 10);
    ROW("behind the end", (size_t)st.st_size == len);
    static char big[32 << 10]; /* few records: each is synced */
    memset(big, 'x', sizeof big - 1);
    json_t *record = json_pack("{s:s, s:i, s:s}", "kind", "test", "n", 1, "job", big);
    for (int i = 0; i < 10; i++)
        journal_append(j, record, NULL);
    json_decref(record);
    stat(path, &st);
    ROW("and again as it grows", blocks() >= (uint64_t)st.st_size + (128 << 10));
    json_t *live = json_pack("[{s:s,s:i}]", "kind", "test", "n", 7);
    journal_compact(j, live, NULL);
    json_decref(live);
    append(j, 8, NULL);
    ROW("and when it is written anew", blocks() >= 256 << 10);
    journal_close(j);
}

static void compaction(void **state)
{
    struct journal *j;
    struct seen seen = { 0 };
    size_t len;
    char *text = make(2000, &len);
    free(text);
    journal_open(path, count_records, &seen, &j, NULL, NULL);
    ROW("mostly dead", journal_wants_compaction(j, 10));
    ROW("not while all of it matters", !journal_wants_compaction(j, 2000));
    json_t *live = json_pack("[{s:s,s:i}]", "kind", "test", "n", 7);
    ROW("it is written anew", journal_compact(j, live, NULL) == 0);
    json_decref(live);
    ROW("and goes on", append(j, 8, NULL) == 0);
    journal_close(j);
    seen = (struct seen){ 0 };
    journal_open(path, count_records, &seen, &j, NULL, NULL);
    ROW("what mattered is there", seen.count == 2 && seen.last == 8);
    ROW("and is small", !journal_wants_compaction(j, 0));
    journal_close(j);
}

/* Few records, but with a job's environment in each. */
static void large_records(void **state)
{
    struct journal *j;
    struct seen seen = { 0 };
    unlink(path);
    journal_open(path, count_records, &seen, &j, NULL, NULL);
    char *big = calloc(1, (1 << 20) + 1);
    memset(big, 'x', 1 << 20);
    json_t *record = json_pack("{s:s, s:i, s:s}", "kind", "test", "n", 1, "job", big);
    for (int i = 0; i < 15; i++)
        journal_append(j, record, NULL);
    ROW("not for few of them", !journal_wants_compaction(j, 100));
    journal_append(j, record, NULL);
    ROW("before the file is too long to read", journal_wants_compaction(j, 100));
    json_t *live = json_pack("[O,O]", record, record);
    ROW("it is written anew", journal_compact(j, live, NULL) == 0);
    for (int i = 0; i < 15; i++)
        journal_append(j, record, NULL);
    ROW("and again when it has grown", !journal_wants_compaction(j, 100));
    json_decref(live);
    json_decref(record);
    free(big);
    journal_close(j);
}

static int finish(void **state)
{
    return file_remove_tree(dir, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_at_every_byte),
        cmocka_unit_test(damage_in_the_middle),
        cmocka_unit_test(a_failed_write_leaves_no_trace),
        cmocka_unit_test(room_is_kept),
        cmocka_unit_test(compaction),
        cmocka_unit_test(large_records),
    };
    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof path, "%s/journal", dir);
    snprintf(cut_path, sizeof cut_path, "%s.cut", path);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, finish);
}
