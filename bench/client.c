/*
 * bench-client: a process of a lease that speaks to the broker without any accelerator:
 * what one bench or another needs inside `sluice run`.  It uses the front's own
 * connection (src/front/common).
 *
 *   bench-client first              prints CLOCK_MONOTONIC ns, the first thing it does
 *   bench-client reserve N          ns of N reserve+commit+free, and of N socket round trips
 *                                   between two processes of this machine, interleaved
 *   bench-client race N LIMIT       two processes race N times for the last byte of LIMIT
 *   bench-client crowd N            N processes say hello at once, then all end
 *   bench-client hold BYTES         holds BYTES until it is killed
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "front/link.h"

static struct link link_here;

static int die(const char *what, const struct sl_err *err)
{
    fprintf(stderr, "bench-client: %s: %s\n", what, err ? err->msg : strerror(errno));
    return 1;
}

static int open_link(void)
{
    const char *broker = getenv("SLUICE_BROKER");
    struct sl_err err = { 0 };
    memset(&link_here, 0, sizeof link_here);
    if (!broker || link_open(&link_here, broker, &err))
        return die(broker ? broker : "SLUICE_BROKER is not set", &err);
    return 0;
}

static int first(void)
{
    printf("%llu\n", (unsigned long long)clock_now_ns());
    return 0;
}

/* A process that sends each packet back, for the machine's own round trip. */
static int echo_fd(size_t size)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
        return -1;
    if (!fork()) {
        char packet[256];
        close(pair[0]);
        while (recv(pair[1], packet, size, 0) == (ssize_t)size &&
               send(pair[1], packet, size, MSG_NOSIGNAL) == (ssize_t)size)
            ;
        _exit(0);
    }
    close(pair[1]);
    return pair[0];
}

static int reserve(int count)
{
    if (open_link())
        return 1;
    char packet[sizeof(struct proto_msg)] = { 0 };
    int fd = echo_fd(sizeof packet);
    for (int i = 0; i < count; i++) {
        struct link_reservation r;
        uint64_t room, begin = clock_now_ns();
        if (link_reserve(&link_here, 0, 4096, &r, &room))
            return die("reserve", NULL);
        link_commit(&link_here, &r, 4096);
        uint64_t middle = clock_now_ns();
        link_free(&link_here, 0, 4096);
        uint64_t trip = clock_now_ns();
        if (send(fd, packet, sizeof packet, 0) < 0 ||
            recv(fd, packet, sizeof packet, 0) < 0)
            return die("echo", NULL);
        printf("%llu %llu\n", (unsigned long long)(middle - begin),
               (unsigned long long)(clock_now_ns() - trip));
    }
    return 0;
}

/* Shared between the two racers. */
struct track {
    _Atomic uint32_t go, done;
    _Atomic uint64_t won[2], held_at_once;
};

static int racer(struct track *t, int me, int count, uint64_t limit)
{
    if (open_link())
        return 1;
    for (int i = 1; i <= count; i++) {
        while (atomic_load(&t->go) < (uint32_t)i)
            usleep(1);
        struct link_reservation r;
        uint64_t room;
        /* each asks for all but half a page: both fit only if the ledger is wrong */
        if (!link_reserve(&link_here, 0, limit / 2 + 1, &r, &room)) {
            link_commit(&link_here, &r, limit / 2 + 1);
            atomic_fetch_add(&t->won[me], 1);
            if (atomic_fetch_add(&t->held_at_once, 1) != 0)
                fprintf(stderr, "bench-client: round %d: both hold the last byte\n", i);
            atomic_fetch_add(&t->done, 1);
            while (atomic_load(&t->done) < (uint32_t)i * 2)
                usleep(1);
            atomic_fetch_sub(&t->held_at_once, 1);
            link_free(&link_here, 0, limit / 2 + 1);
        } else {
            atomic_fetch_add(&t->done, 1);
            while (atomic_load(&t->done) < (uint32_t)i * 2)
                usleep(1);
        }
    }
    return 0;
}

static int race(int count, uint64_t limit)
{
    struct track *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[2];
    if (t == MAP_FAILED)
        return die("mmap", NULL);
    for (int i = 0; i < 2; i++)
        if (!(pid[i] = fork()))
            _exit(racer(t, i, count, limit));
    for (int i = 1; i <= count; i++) {
        atomic_store(&t->go, (uint32_t)i);
        while (atomic_load(&t->done) < (uint32_t)i * 2)
            usleep(1);
    }
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        int status;
        waitpid(pid[i], &status, 0);
        failed |= status;
    }
    uint64_t wins = atomic_load(&t->won[0]) + atomic_load(&t->won[1]);
    printf("%d races, %llu won, %lld over\n", count, (unsigned long long)wins,
           (long long)wins - count);
    return failed ? 1 : 0;
}

static int crowd(int count)
{
    int pipe_go[2], pipe_done[2];
    setpgid(0, 0); /* ends its children by their group, which must not be the caller's */
    if (pipe(pipe_go) || pipe(pipe_done))
        return die("pipe", NULL);
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return die("fork", NULL);
        if (pid)
            continue;
        char byte;
        close(pipe_go[1]);
        if (read(pipe_go[0], &byte, 1) < 0) /* returns at end of file: everybody at once */
            _exit(1);
        uint64_t begin = clock_now_ns();
        int failed = open_link();
        uint64_t took = failed ? UINT64_MAX : clock_now_ns() - begin;
        if (write(pipe_done[1], &took, sizeof took) != sizeof took)
            _exit(1);
        pause();
        _exit(0);
    }
    usleep(200000);
    uint64_t begin = clock_now_ns(), took;
    close(pipe_go[0]);
    close(pipe_go[1]);
    int served = 0;
    for (int i = 0; i < count && read(pipe_done[0], &took, sizeof took) == sizeof took; i++)
        served += took != UINT64_MAX;
    printf("%d of %d served in %llu ns\n", served, count,
           (unsigned long long)(clock_now_ns() - begin));
    fflush(stdout);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (wait(NULL) > 0)
        ;
    return served == count ? 0 : 1;
}

static int hold(uint64_t bytes)
{
    struct link_reservation r;
    uint64_t room;
    if (open_link())
        return 1;
    if (link_reserve(&link_here, 0, bytes, &r, &room))
        return die("reserve", NULL);
    link_commit(&link_here, &r, bytes);
    puts("holding");
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (!strcmp(what, "first"))
        return first();
    if (!strcmp(what, "reserve") && n)
        return reserve((int)n);
    if (!strcmp(what, "race") && argc > 3)
        return race((int)n, strtoull(argv[3], NULL, 10));
    if (!strcmp(what, "crowd") && n)
        return crowd((int)n);
    if (!strcmp(what, "hold") && n)
        return hold(n);
    fprintf(
        stderr,
        "usage: bench-client first | reserve N | race N LIMIT | crowd N | hold BYTES\n");
    return 2;
}
