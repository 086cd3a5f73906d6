/*
 * A pseudo-terminal with an interactive shell on it, for the tests of job
 * control: type, and wait for what appears.
 */
#ifndef TEST_TERM_H
#define TEST_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct term {
    int fd;             /* the master */
    pid_t pid;          /* of the shell */
    char seen[1 << 16]; /* all output so far */
    size_t len, from;   /* what is waited for is looked for from here */
};

/* argv on a new terminal, its session's leader. */
void term_open(struct term *t, char *const *argv);
void term_type(struct term *t, const char *text);
/* Up to ten seconds; what follows is looked for behind it. */
bool term_wait(struct term *t, const char *text);
void term_resize(struct term *t, int rows, int columns);
void term_close(struct term *t);

#endif
