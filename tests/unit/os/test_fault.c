/* Fault points, and that a crash in the middle of a replacement keeps the old file. */
#include "../rows.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/fault.h"
#include "os/file.h"

static char path[] = "/tmp/sluice-fault-XXXXXX";

/* The environment is read once a process, so each row has its own; this process itself
 * passes no fault point. */
static int in_child(const char *set, int (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        setenv("SLUICE_FAULT", set, 1);
        _exit(body());
    }
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int three_times(void)
{
    int first = fault_point("a.b"), second = fault_point("a.b"), third = fault_point("a.b");
    return first == 0 && third == 0             ? second
           : first == second && second == third ? first
                                                : 99;
}

static int write_with_fault(void)
{
    struct sl_err err;
    int rc = file_write_atomic(path, "new", 3, 0600, &err);
    return rc == -SL_IO ? err.sys : rc;
}

static void fault_points_fail_and_kill(void **state)
{
    static const struct {
        const char *label, *set;
        int want;
    } rows[] = {
        { "unset", "", 0 },
        { "another point", "x.y:kill", 0 },
        { "fails each time", "a.b:fail=ENOSPC", ENOSPC },
        { "fails the second time", "x.y:kill,a.b:fail=EIO@2", EIO },
        { "kills", "a.b:kill", -SIGKILL },
        { "kills the third time", "a.b:kill@3", -SIGKILL },
        { "the fourth never comes", "a.b:kill@4", 0 },
        { "nonsense is no fault", "a.b,a.b:,:kill,a.b:explode,a.b:fail=EWHAT", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ROW(rows[i].label, in_child(rows[i].set, three_times) == rows[i].want);

    int fd = mkstemp(path);
    assert_int_equal(write(fd, "old", 3), 3);
    close(fd);
    assert_int_equal(in_child("file.before-sync:fail=ENOSPC", write_with_fault), ENOSPC);
    assert_int_equal(in_child("file.before-rename:kill", write_with_fault), -SIGKILL);
    AUTO_FREE char *text = NULL;
    assert_int_equal(file_read(path, 9, &text, NULL, NULL), 0);
    assert_string_equal(text, "old");
    unlink(path);

    glob_t drafts; /* what the killed one left */
    assert_int_equal(glob("/tmp/sluice-fault-*", 0, NULL, &drafts), 0);
    for (size_t i = 0; i < drafts.gl_pathc; i++)
        if (!strncmp(drafts.gl_pathv[i], path, strlen(path)))
            unlink(drafts.gl_pathv[i]);
    globfree(&drafts);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fault_points_fail_and_kill),
};
ROWS_MAIN(tests)
