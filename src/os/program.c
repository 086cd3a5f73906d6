/* Owns the search for a program by name. */
#include "os/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The interpreter that the first line of a script names; empty if it names none. */
static void read_interpreter(const char *path, char *out, size_t size)
{
    char head[256] = "";
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, head, sizeof head - 1);
    close(fd);
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return;
    head[n] = 0;
    const char *from = head + 2 + strspn(head + 2, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(from, " \t\n"), from);
}

/* A shell's status for it, and a sentence. */
static int explain(const char *path, int sys, char *why, size_t size)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    char interpreter[256];
    if (sys == ENOENT && !exists) {
        snprintf(why, size, "%s: there is no such program", path);
        return 127;
    }
    if (sys == ENOENT) {
        read_interpreter(path, interpreter, sizeof interpreter);
        if (interpreter[0])
            snprintf(why, size, "%s: its first line names %s, which does not exist", path,
                     interpreter);
        else
            snprintf(why, size, "%s: the loader that it needs does not exist here", path);
    } else if (sys == ENOEXEC) {
        snprintf(
            why, size,
            "%s: not something that the kernel can execute; a script needs a first line"
            " such as #!/bin/sh",
            path);
    } else if (exists && S_ISDIR(st.st_mode)) {
        snprintf(why, size, "%s: is a directory", path);
    } else if (sys == EACCES && exists && !(st.st_mode & 0111)) {
        snprintf(why, size, "%s: is not executable; try: chmod +x %s", path, path);
    } else {
        snprintf(why, size, "%s: %s", path, strerror(sys));
    }
    return 126;
}

int program_search(const char *name, int (*try)(const char *path, void *ctx), void *ctx,
                   char *why, size_t size)
{
    char path[4096], meant[4096] = "";
    int sys = ENOENT;
    if (strchr(name, '/') || !name[0]) {
        sys = try(name, ctx);
        return sys ? explain(name, sys, why, size) : 0;
    }
    const char *dirs = getenv("PATH");
    for (const char *d = dirs ? dirs : "/bin:/usr/bin";; d++) {
        size_t len = strcspn(d, ":");
        snprintf(path, sizeof path, "%.*s%s%s", (int)len, d, len ? "/" : "", name);
        int failed = try(path, ctx);
        if (!failed)
            return 0;
        if (failed != ENOENT && failed != ENOTDIR) {
            sys = failed;
            snprintf(meant, sizeof meant, "%s", path);
            if (sys != EACCES)
                break;
        } else if (access(path, F_OK) == 0) {
            snprintf(meant, sizeof meant, "%s", path);
            break;
        }
        d += len;
        if (!*d)
            break;
    }
    return explain(meant[0] ? meant : name, sys, why, size);
}

static int look(const char *path, void *ctx)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EACCES; /* as execve() says it */
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

int program_check(const char *name, char *why, size_t size)
{
    return program_search(name, look, NULL, why, size);
}
