/*
 * Prints everything that a program inherits, for the test that `sluice run`
 * changes nothing of it.  What differs from process to process by nature (its
 * pid) is left out.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <unistd.h>

extern char **environ;

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void dump_descriptors(void)
{
    int fds[1024], count = 0;
    char path[64], target[512];
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(dir)) && count < 1024;)
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
            fds[count++] = atoi(e->d_name);
    printf("next-fd %d\n", dirfd(dir));
    closedir(dir);
    qsort(fds, (size_t)count, sizeof *fds, by_number);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fds[i]);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        printf("fd %d %s flags=%o cloexec=%d\n", fds[i], target, fcntl(fds[i], F_GETFL),
               fcntl(fds[i], F_GETFD));
    }
}

static void dump_signals(void)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    static const char *const keys[] = { "Sig", "Shd",         "Umask",      "Uid",
                                        "Gid", "Groups",      "NoNewPrivs", "Seccomp:",
                                        "Cap", "Cpus_allowed" };
    while (fgets(line, sizeof line, f))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (!strncmp(line, keys[i], strlen(keys[i])) && strncmp(line, "SigQ", 4))
                fputs(line, stdout);
    fclose(f);
}

int main(int argc, char **argv)
{
    char cwd[512];
    int subreaper = -1;
    for (int i = 0; i < argc; i++)
        printf("argv %s\n", argv[i]);
    for (char **e = environ; *e; e++)
        printf("env %s\n", *e);
    dump_descriptors();
    dump_signals();
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit limit;
        getrlimit(which, &limit);
        printf("limit %d %llu %llu\n", which, (unsigned long long)limit.rlim_cur,
               (unsigned long long)limit.rlim_max);
    }
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    printf("cwd %s\nnice %d\nsession %d\ngroup %d\nforeground %d\nsubreaper %d\n"
           "dumpable %d\nkeepcaps %d\n",
           getcwd(cwd, sizeof cwd), getpriority(PRIO_PROCESS, 0), getsid(0),
           getpgrp() == getpid() ? -1 : getpgrp(), tcgetpgrp(0), subreaper,
           prctl(PR_GET_DUMPABLE), prctl(PR_GET_KEEPCAPS));
    return 0;
}
