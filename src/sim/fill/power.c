/* What nodes draw, by the PWR paper's constants. */
#include <string.h>

#include "core/macros.h"
#include "sim/fill.h"

#define SOCKET_MILLI  32000 /* Xeon E5-2682 v4: 16 cores, two virtual CPUs each */
#define SOCKET_IDLE_W 15
#define SOCKET_FULL_W 120

/* G2 and G3 are openb's names for what the paper takes as A10 and A100. */
static const struct {
    const char *model;
    uint16_t idle_w, full_w;
} devices[] = {
    { "T4", 10, 70 },       { "A10", 30, 150 },     { "P100", 25, 250 },
    { "V100M16", 30, 300 }, { "V100M32", 30, 300 }, { "A100", 50, 400 },
    { "G2", 30, 150 },      { "G3", 50, 400 },
};

bool fill_device_watts(const char *model, uint16_t *idle_w, uint16_t *full_w)
{
    *idle_w = *full_w = 0;
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (!strcmp(model, devices[i].model)) {
            *idle_w = devices[i].idle_w;
            *full_w = devices[i].full_w;
            return true;
        }
    return false;
}

static uint32_t sockets_for(uint32_t cpu_milli)
{
    return (cpu_milli + SOCKET_MILLI - 1) / SOCKET_MILLI;
}

uint32_t fill_watts(const struct fill_node *n)
{
    uint32_t used = sockets_for(n->all_cpu_milli - n->cpu_milli);
    uint32_t watts =
        used * SOCKET_FULL_W + (sockets_for(n->all_cpu_milli) - used) * SOCKET_IDLE_W;
    for (unsigned d = 0; d < n->gpus; d++)
        watts += n->free[d] < FILL_WHOLE ? n->full_w : n->idle_w;
    return watts;
}
