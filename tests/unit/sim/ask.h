/* A line for sluice-sim, and what it answers on which stream with which status. */
#ifndef TESTS_SIM_ASK_H
#define TESTS_SIM_ASK_H

#include "../rows.h"

#include <stdlib.h>
#include <string.h>

#include "sim/command.h"

struct answer {
    int status;
    char out[6000], err[2000];
};

static inline void close_into(FILE *f, char **text, char *to, size_t room)
{
    fclose(f);
    snprintf(to, room, "%s", *text);
    free(*text);
}

static inline const struct answer *ask(const char *line)
{
    static struct answer a;
    char copy[1000], program[] = "sluice-sim", *argv[40] = { program }, *text[2];
    size_t len[2];
    int argc = 1;
    struct sim sim = { .out = open_memstream(&text[0], &len[0]),
                       .err = open_memstream(&text[1], &len[1]) };
    snprintf(copy, sizeof copy, "%s", line);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    a.status = sim_dispatch(&sim, argc, argv);
    close_into(sim.out, &text[0], a.out, sizeof a.out);
    close_into(sim.err, &text[1], a.err, sizeof a.err);
    return &a;
}

#endif
