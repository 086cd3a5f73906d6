/*
 * The doctor: a list of hops, each with what was found and what to do.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/cli.h"

enum verdict { CHECK_OK, CHECK_WARN, CHECK_SKIPPED, CHECK_BROKEN };

struct check {
    const char *hop;
    enum verdict verdict;
    char found[512];
    char fix[200]; /* empty: nothing to do */
};

struct doctor {
    struct cli *cli;
    bool may_run; /* start an agent and programs */
    struct check checks[24];
    size_t count;
    char dir[4000]; /* where our programs lie */
    json_t *node;   /* GET /v1/node */
    size_t real;    /* real devices that can be lent */
    size_t visible; /* devices that a program outside any slice finds */
};

/* Could a folder of this name be written, made with what leads to it where it is missing? */
bool doctor_can_make(const char *path);

void doctor_examine(struct doctor *d);
int doctor_print(const struct doctor *d); /* the exit status: 1 if a hop is broken */
void doctor_finish(struct doctor *d);

#endif
