/* Tests the pure parts of the broker: what /proc says, and the run file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/macros.h"
#include "internal.h"
#include "proc.h"

/* ---- /proc/PID/stat --------------------------------------------------------------- */

#define REST " 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 69321 2998272 419\n"

static const struct {
    const char *label, *text;
    int rc;
    pid_t ppid;
    char state;
    uint64_t start;
} stats[] = {
    { "an ordinary command", "7 (head) R 5122 7 3317" REST, 0, 5122, 'R', 69321 },
    { "spaces in the command", "7 (a b c) S 5 7 3317" REST, 0, 5, 'S', 69321 },
    { "parentheses in the command", "7 (x) R 1 (y) Z 6 7 3317" REST, 0, 6, 'Z', 69321 },
    { "a newline in the command", "7 (x\n9 (z) S 8 7 3317" REST, 0, 8, 'S', 69321 },
    { "a command that ends in a parenthesis", "7 (:)) S 8 7 3317" REST, 0, 8, 'S', 69321 },
    { "an empty command", "7 () S 8 7 3317" REST, 0, 8, 'S', 69321 },
    { "cut before the start time", "7 (head) R 5122 7 3317 0 -1", -SL_INVALID, 0, 0, 0 },
    { "cut inside the command", "7 (head", -SL_INVALID, 0, 0, 0 },
    { "nothing after the command", "7 (head)", -SL_INVALID, 0, 0, 0 },
    { "empty", "", -SL_INVALID, 0, 0, 0 },
};

static void test_stat(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(stats); i++) {
        struct proc_stat s = { 0 };
        int rc = proc_parse_stat(stats[i].text, strlen(stats[i].text), &s);
        if (rc != stats[i].rc || s.ppid != stats[i].ppid || s.state != stats[i].state ||
            s.start_ticks != stats[i].start)
            fail_msg("%s: rc %d ppid %d state %d", stats[i].label, rc, (int)s.ppid,
                     s.state);
    }
}

static void test_stat_of_ourselves(void **state)
{
    struct proc_stat s;
    assert_int_equal(proc_read_stat(getpid(), &s), 0);
    assert_int_equal(s.ppid, getppid());
    assert_true(s.start_ticks > 0);
    assert_int_equal(proc_read_stat(0x3fffffff, &s), -SL_NOT_FOUND);
}

/* ---- /proc/PID/cgroup ---------------------------------------------------------------- */

static const struct {
    const char *label, *text;
    int rc;
    const char *path;
} cgroups[] = {
    { "v2 only", "0::/user.slice\n", 0, "/user.slice" },
    { "v2 beside v1", "8:pids:/a\n4:memory:/b\n0::/sluice/L1\n", 0, "/sluice/L1" },
    { "a v1 name that looks like it", "10::/x\n0::/y\n", 0, "/y" },
    { "a v1 path that holds it", "4:memory:/0::/x\n0::/y\n", 0, "/y" },
    { "a removed directory", "0::/sluice/L1 (deleted)\n", 0, "/sluice/L1" },
    { "spaces in a name", "0::/a b/c\n", 0, "/a b/c" },
    { "no newline at the end", "0::/a", 0, "/a" },
    { "v1 only", "4:memory:/b\n", -SL_NOT_FOUND, "" },
    { "no path", "0::\n", -SL_NOT_FOUND, "" },
    { "longer than the buffer", "0::/0123456789012345678901234567890123456789\n",
      -SL_TOO_LARGE, "" },
    { "empty", "", -SL_NOT_FOUND, "" },
};

static void test_cgroup(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(cgroups); i++) {
        char path[32] = "";
        int rc =
            proc_parse_cgroup(cgroups[i].text, strlen(cgroups[i].text), path, sizeof path);
        if (rc != cgroups[i].rc || strcmp(path, cgroups[i].path))
            fail_msg("%s: rc %d path '%s'", cgroups[i].label, rc, path);
    }
}

static const struct {
    const char *label, *text;
    int rc;
    const char *point, *root;
} mounts[] = {
    { "v2 at the usual place", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", 0,
      "/sys/fs/cgroup", "/" },
    { "v2 beside v1",
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "33 31 0:30 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n",
      0, "/sys/fs/cgroup/unified", "/" },
    { "a part of the hierarchy", "31 23 0:28 /docker/7 /cg ro - cgroup2 cgroup rw\n", 0,
      "/cg", "/docker/7" },
    { "v1 only", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
      -SL_NOT_FOUND, "", "" },
    { "empty", "", -SL_NOT_FOUND, "", "" },
};

static void test_mountinfo(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        char point[64] = "", root[64] = "";
        int rc = proc_parse_mountinfo(mounts[i].text, strlen(mounts[i].text), point,
                                      sizeof point, root, sizeof root);
        if (rc != mounts[i].rc || strcmp(point, mounts[i].point) ||
            strcmp(root, mounts[i].root))
            fail_msg("%s: rc %d '%s' '%s'", mounts[i].label, rc, point, root);
    }
}

/* ---- the run file ----------------------------------------------------------------------
 */

struct place {
    char dir[32];
    int fd;
    struct runfile f;
};

static int enter(void **state)
{
    static struct place p;
    strcpy(p.dir, "/tmp/slr-XXXXXX");
    if (!mkdtemp(p.dir))
        return -1;
    p.fd = open(p.dir, O_RDONLY | O_DIRECTORY);
    *state = &p;
    return runfile_open(&p.f, p.fd, NULL);
}

static int leave(void **state)
{
    struct place *p = *state;
    runfile_close(&p->f);
    unlinkat(p->fd, "ledger", 0);
    unlinkat(p->fd, "ledger.bad", 0);
    close(p->fd);
    return rmdir(p->dir);
}

/* As the next broker would: what is in the file counts, not in the mapping. */
static void reopen(struct place *p)
{
    runfile_close(&p->f);
    assert_int_equal(runfile_open(&p->f, p->fd, NULL), 0);
}

static struct runfile_record record(int pid, uint64_t bytes)
{
    return (struct runfile_record){ .pid = pid,
                                    .uid = 3,
                                    .start_ticks = 99,
                                    .lease = 7,
                                    .epoch = 2,
                                    .bytes = { bytes, 1, 2, 3, 4, 5, 6, 7 } };
}

static void write_bytes(struct place *p, off_t at, const void *data, size_t length)
{
    int fd = openat(p->fd, "ledger", O_WRONLY);
    assert_int_equal(pwrite(fd, data, length, at), length);
    close(fd);
}

static void test_round_trip(void **state)
{
    struct place *p = *state;
    struct runfile_record in = record(41, 1000), out;
    bool torn;
    assert_false(p->f.found);
    runfile_write(&p->f, 0, &in);
    in.pid = 42;
    runfile_write(&p->f, LEDGER_MAX_CLIENTS - 1, &in);
    reopen(p);
    assert_true(p->f.found);
    assert_true(runfile_read(&p->f, 0, &out, &torn));
    assert_int_equal(out.pid, 41);
    assert_true(runfile_read(&p->f, LEDGER_MAX_CLIENTS - 1, &out, &torn));
    assert_memory_equal(&out, &in, sizeof in);
    assert_false(runfile_read(&p->f, 1, &out, &torn));
    assert_false(torn);
}

static void test_newest_wins(void **state)
{
    struct place *p = *state;
    struct runfile_record out;
    bool torn;
    for (uint64_t bytes = 1; bytes <= 9; bytes++) {
        struct runfile_record in = record(41, bytes);
        runfile_write(&p->f, 5, &in);
        reopen(p);
        assert_true(runfile_read(&p->f, 5, &out, &torn));
        assert_int_equal(out.bytes[0], bytes);
    }
    runfile_clear(&p->f, 5);
    reopen(p);
    assert_false(runfile_read(&p->f, 5, &out, &torn));
    assert_false(torn);
}

/* Cut the newest copy at each of its bytes: the state before it must come back. */
static void test_torn_copy(void **state)
{
    struct place *p = *state;
    for (int writes = 2; writes <= 3; writes++) {
        for (size_t at = 0; at < 112; at++) {
            struct runfile_record out, in;
            bool torn;
            uint32_t index = (uint32_t)(writes * 112 + at);
            for (int i = 1; i <= writes; i++) {
                in = record(41, (uint64_t)i);
                runfile_write(&p->f, index, &in);
            }
            int newest = (writes - 1) % 2;
            char junk = 0x5a;
            write_bytes(p, (off_t)(4096 + index * 256 + newest * 128 + at), &junk, 1);
            assert_true(runfile_read(&p->f, index, &out, &torn));
            assert_false(torn);
            assert_int_equal(out.bytes[0], writes - 1);
            /* the next write must not go over the only whole copy */
            in = record(41, 77);
            runfile_write(&p->f, index, &in);
            assert_true(runfile_read(&p->f, index, &out, &torn));
            assert_int_equal(out.bytes[0], 77);
        }
    }
}

static void test_both_torn(void **state)
{
    struct place *p = *state;
    struct runfile_record in = record(41, 5), out;
    bool torn;
    runfile_write(&p->f, 3, &in);
    runfile_write(&p->f, 3, &in);
    write_bytes(p, 4096 + 3 * 256 + 20, "x", 1);
    write_bytes(p, 4096 + 3 * 256 + 128 + 20, "x", 1);
    assert_false(runfile_read(&p->f, 3, &out, &torn));
    assert_true(torn);
    runfile_write(&p->f, 3, &in);
    assert_true(runfile_read(&p->f, 3, &out, &torn));
    assert_false(torn);
}

static const struct {
    const char *label;
    off_t at;
    const char *bytes;
    off_t size;
} foreign[] = {
    { "other magic", 0, "XXXX", 0 },         { "other version", 8, "\xff", 0 },
    { "other record count", 12, "\xff", 0 }, { "broken header", 20, "\xff", 0 },
    { "cut file", 0, NULL, 5000 },           { "longer file", 0, NULL, 4 << 20 },
};

static void test_foreign_file(void **state)
{
    struct place *p = *state;
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        struct runfile_record in = record(41, 5), out;
        bool torn;
        runfile_write(&p->f, 3, &in);
        if (foreign[i].bytes)
            write_bytes(p, foreign[i].at, foreign[i].bytes, strlen(foreign[i].bytes));
        runfile_close(&p->f);
        char path[64];
        snprintf(path, sizeof path, "%s/ledger", p->dir);
        if (foreign[i].size)
            assert_int_equal(truncate(path, foreign[i].size), 0);
        reopen(p);
        struct stat st;
        if (!p->f.moved_aside || p->f.found || fstatat(p->fd, "ledger.bad", &st, 0) ||
            runfile_read(&p->f, 3, &out, &torn))
            fail_msg("%s: not moved aside", foreign[i].label);
        unlinkat(p->fd, "ledger.bad", 0);
    }
}

static void test_other_boot(void **state)
{
    struct place *p = *state;
    struct runfile_record in = record(41, 5), out;
    bool torn;
    runfile_write(&p->f, 3, &in);
    /* a whole header of another boot: same layout, other id, its own checksum */
    char header[64];
    int fd = openat(p->fd, "ledger", O_RDWR);
    assert_int_equal(pread(fd, header, 64, 0), 64);
    header[16] ^= 1;
    uint64_t hash = 0x9e3779b97f4a7c15ull, word;
    for (int at = 0; at < 56; at += 8) {
        memcpy(&word, header + at, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    memcpy(header + 56, &hash, 8);
    assert_int_equal(pwrite(fd, header, 64, 0), 64);
    close(fd);
    reopen(p);
    assert_false(p->f.found);
    assert_false(p->f.moved_aside);
    assert_false(runfile_read(&p->f, 3, &out, &torn));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_stat_of_ourselves),
        cmocka_unit_test(test_cgroup),
        cmocka_unit_test(test_mountinfo),
        cmocka_unit_test_setup_teardown(test_round_trip, enter, leave),
        cmocka_unit_test_setup_teardown(test_newest_wins, enter, leave),
        cmocka_unit_test_setup_teardown(test_torn_copy, enter, leave),
        cmocka_unit_test_setup_teardown(test_both_torn, enter, leave),
        cmocka_unit_test_setup_teardown(test_foreign_file, enter, leave),
        cmocka_unit_test_setup_teardown(test_other_boot, enter, leave),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("broker-parts", tests, NULL, NULL);
}
