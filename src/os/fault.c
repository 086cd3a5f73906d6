/* Fault points: SLUICE_FAULT read once, each point counted, then killed or failed. */
#include "os/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAULTS_MAX 8

struct fault {
    char name[48];
    bool kill;
    int fail;     /* errno */
    unsigned nth; /* 1: the first time; 0: every time */
    atomic_uint seen;
};

static struct fault faults[FAULTS_MAX];
static unsigned fault_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int armed = -1; /* -1: the environment was not read yet */

static int errno_parse(const char *name)
{
    for (int e = 1; e < 256; e++) {
        const char *known = strerrorname_np(e);
        if (known && !strcmp(known, name))
            return e;
    }
    return 0;
}

/* "name:kill@3" or "name:fail=ENOSPC"; what does not parse is no fault. */
static void add(char *row)
{
    char *action = strchr(row, ':');
    if (!action || fault_count == FAULTS_MAX)
        return;
    *action++ = '\0';
    struct fault *f = &faults[fault_count];
    char *nth = strchr(action, '@');
    if (nth) {
        *nth++ = '\0';
        f->nth = (unsigned)strtoul(nth, NULL, 10);
    }
    f->kill = !strcmp(action, "kill");
    if (!strncmp(action, "fail=", 5))
        f->fail = errno_parse(action + 5);
    if ((!f->kill && !f->fail) || strlen(row) >= sizeof f->name)
        return;
    strcpy(f->name, row);
    fault_count++;
}

static void read_environment(void)
{
    const char *set = getenv("SLUICE_FAULT");
    char *copy = set && *set ? strdup(set) : NULL, *rest = copy, *row;
    while (copy && (row = strsep(&rest, ",")))
        add(row);
    free(copy);
    atomic_store(&armed, fault_count > 0);
}

int fault_point(const char *name)
{
    int on = atomic_load_explicit(&armed, memory_order_relaxed);
    if (__builtin_expect(on == 0, 1))
        return 0;
    pthread_once(&once, read_environment);

    for (unsigned i = 0; i < fault_count; i++) {
        struct fault *f = &faults[i];
        if (strcmp(f->name, name))
            continue;
        unsigned seen = atomic_fetch_add(&f->seen, 1) + 1;
        if (f->nth && f->nth != seen)
            continue;
        if (f->kill)
            kill(getpid(), SIGKILL);
        return f->fail;
    }
    return 0;
}
