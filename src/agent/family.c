/* Owns the reading of who descends from whom. */
#include "family.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kin {
    pid_t pid, parent;
};

pid_t family_parent(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    char *end = strrchr(text, ')'); /* the name before it may hold anything */
    int parent = 0;
    if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
        return 0;
    return parent;
}

static uint32_t list_all(struct kin **out)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    struct kin *all = NULL;
    uint32_t n = 0, room = 0;
    while (d && (e = readdir(d)) != NULL) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        if (n == room) {
            room = room ? 2 * room : 256;
            struct kin *more = realloc(all, room * sizeof *more);
            if (!more)
                break;
            all = more;
        }
        all[n].pid = atoi(e->d_name);
        all[n].parent = family_parent(all[n].pid);
        n++;
    }
    if (d)
        closedir(d);
    *out = all;
    return n;
}

uint32_t family_below(pid_t root, pid_t *pids, uint32_t room)
{
    struct kin *all;
    uint32_t n = list_all(&all), found = 0;
    for (uint32_t done = 0; done <= found && found < room; done++) {
        pid_t parent = done ? pids[done - 1] : root;
        for (uint32_t i = 0; i < n && found < room; i++)
            if (all[i].parent == parent)
                pids[found++] = all[i].pid;
    }
    free(all);
    return found;
}
