/* Finds and ends the children of this process. */
#include "family.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_living_child(const char *pid)
{
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (n <= 0)
        return false;
    stat[n] = 0;
    /* The name in parentheses may hold anything, so from its end. */
    const char *after = strrchr(stat, ')');
    char state;
    int parent;
    return after && sscanf(after + 1, " %c %d", &state, &parent) == 2 && state != 'Z' &&
           state != 'X' && parent == getpid();
}

int family_list(pid_t *out, int max)
{
    DIR *proc = opendir("/proc");
    int count = 0;
    for (struct dirent *e; proc && count < max && (e = readdir(proc));)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_living_child(e->d_name))
            out[count++] = atoi(e->d_name);
    if (proc)
        closedir(proc);
    return count;
}

static bool was_told(const struct family *f, pid_t pid)
{
    for (int i = 0; i < f->told_count; i++)
        if (f->told[i] == pid)
            return true;
    return false;
}

void family_terminate(struct family *f)
{
    static pid_t pids[FAMILY_MAX];
    int count = family_list(pids, FAMILY_MAX);
    for (int i = 0; i < count; i++) {
        if (was_told(f, pids[i]))
            continue;
        if (f->told_count < FAMILY_MAX)
            f->told[f->told_count++] = pids[i];
        kill(pids[i], SIGTERM);
        kill(pids[i], SIGCONT);
    }
}

int family_kill(void)
{
    static pid_t pids[FAMILY_MAX];
    int count = family_list(pids, FAMILY_MAX), reached = 0;
    for (int i = 0; i < count; i++)
        reached += kill(pids[i], SIGKILL) == 0;
    return reached;
}
