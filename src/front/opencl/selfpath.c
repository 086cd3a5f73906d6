/* Finds the file of our own library in /proc/self, through a bind mount if it stands in
 * one. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "selfpath.h"

bool selfpath_file(char *out, size_t size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    uintptr_t self = (uintptr_t)&selfpath_file;
    char line[4096 + 128];
    bool found = false;
    while (!found && fgets(line, sizeof(line), maps)) {
        uintptr_t from, to;
        char *path = strchr(line, '/');
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2 || self < from ||
            self >= to || !path)
            continue;
        path[strcspn(path, "\n")] = 0;
        found = (size_t)snprintf(out, size, "%s", path) < size;
    }
    fclose(maps);
    return found;
}

void selfpath_folder(char *file)
{
    char *slash = strrchr(file, '/');
    if (slash)
        *slash = 0;
}

/* mountinfo writes blanks as \040 and so on (proc(5)). */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++) {
        unsigned code;
        if (*s == '\\' && sscanf(s + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
}

struct mount {
    char device[32];
    char root[4096];
    char point[4096];
};

static bool mount_next(FILE *f, struct mount *m)
{
    char line[2 * 4096 + 1024];
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%*d %*d %31s %4095s %4095s", m->device, m->root, m->point) != 3)
            continue;
        unescape(m->root);
        unescape(m->point);
        return true;
    }
    return false;
}

/* What follows `root` in `path` when it lies below it; NULL otherwise. */
static const char *path_below(const char *root, const char *path)
{
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    return strncmp(root, path, len) == 0 && path[len] == '/' ? path + len : NULL;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static bool find_other(FILE *f, const struct mount *bound, const char *file, char *out,
                       size_t size)
{
    struct mount m;
    rewind(f);
    while (mount_next(f, &m)) {
        if (strcmp(m.device, bound->device) != 0 || strcmp(m.point, file) == 0)
            continue;
        const char *rest = path_below(m.root, bound->root);
        if (!rest)
            continue;
        const char *point = strcmp(m.point, "/") == 0 ? "" : m.point;
        if ((size_t)snprintf(out, size, "%s%s", point, rest) < size && same_file(out, file))
            return true;
    }
    return false;
}

bool selfpath_bound_from(const char *file, char *out, size_t size)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    if (!f)
        return false;
    struct mount m, bound;
    bool found = false;
    while (mount_next(f, &m)) {
        if (strcmp(m.point, file) == 0) {
            bound = m; /* the last one is on top */
            found = true;
        }
    }
    found = found && find_other(f, &bound, file, out, size);
    fclose(f);
    return found;
}
