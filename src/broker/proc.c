/* Reads and parses the few files of /proc by which the broker knows a process. */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/err.h"

#define PF_EXITING 0x4 /* linux/sched.h; field 9 */

int proc_parse_stat(const char *text, size_t length, struct proc_stat *out)
{
    char field[64];
    const char *after = memrchr(text, ')', length);
    if (!after || after + 2 >= text + length || after[1] != ' ')
        return -SL_INVALID;

    struct proc_stat found = { .state = after[2] };
    const char *at = after + 2, *end = text + length;
    for (int number = 3; number <= 22; number++) {
        size_t n = 0;
        while (at < end && *at != ' ' && *at != '\n' && n < sizeof field - 1)
            field[n++] = *at++;
        field[n] = 0;
        if (n == 0)
            return -SL_INVALID;
        if (number == 4)
            found.ppid = (pid_t)strtol(field, NULL, 10);
        if (number == 9)
            found.exiting = strtoul(field, NULL, 10) & PF_EXITING;
        if (number == 22)
            found.start_ticks = strtoull(field, NULL, 10);
        at += at < end;
    }
    *out = found;
    return 0;
}

int proc_parse_cgroup(const char *text, size_t length, char *path, size_t size)
{
    static const char deleted[] = " (deleted)";
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        size_t n = (size_t)(stop - line);
        if (n >= 4 && !memcmp(line, "0::/", 4)) {
            line += 3;
            n -= 3;
            size_t tail = sizeof deleted - 1;
            if (n > tail && !memcmp(line + n - tail, deleted, tail))
                n -= tail;
            if (n >= size)
                return -SL_TOO_LARGE;
            memcpy(path, line, n);
            path[n] = 0;
            return 0;
        }
        line = stop + 1;
    }
    return -SL_NOT_FOUND;
}

/* "31 23 0:28 ROOT POINT options - cgroup2 source options" */
static int parse_mount_line(const char *line, size_t n, char *point, size_t point_size,
                            char *root, size_t root_size)
{
    char copy[1024], have_root[PATH_MAX], have_point[PATH_MAX];
    if (n >= sizeof copy)
        return -SL_TOO_LARGE;
    memcpy(copy, line, n);
    copy[n] = 0;
    if (!strstr(copy, " - cgroup2 "))
        return -SL_NOT_FOUND;
    if (sscanf(copy, "%*s %*s %*s %4095s %4095s", have_root, have_point) != 2)
        return -SL_INVALID;
    if (strlen(have_root) >= root_size || strlen(have_point) >= point_size)
        return -SL_TOO_LARGE;
    strcpy(root, have_root);
    strcpy(point, have_point);
    return 0;
}

int proc_parse_mountinfo(const char *text, size_t length, char *point, size_t point_size,
                         char *root, size_t root_size)
{
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        if (!parse_mount_line(line, (size_t)(stop - line), point, point_size, root,
                              root_size))
            return 0;
        line = stop + 1;
    }
    return -SL_NOT_FOUND;
}

ssize_t proc_read_file(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? -SL_NOT_FOUND : -SL_DENIED;
    size_t length = 0;
    ssize_t got = 0;
    while (length < size - 1 && (got = read(fd, buffer + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    buffer[length] = 0;
    /* a process that died between open and read says ESRCH */
    return got < 0 ? -SL_NOT_FOUND : (ssize_t)length;
}

int proc_read_stat(pid_t pid, struct proc_stat *out)
{
    char path[32], text[2048];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t n = proc_read_file(path, text, sizeof text);
    return n < 0 ? (int)n : proc_parse_stat(text, (size_t)n, out);
}

int proc_read_cgroup(pid_t pid, char *path_out, size_t size)
{
    char path[32], text[8192];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    ssize_t n = proc_read_file(path, text, sizeof text);
    return n < 0 ? (int)n : proc_parse_cgroup(text, (size_t)n, path_out, size);
}
