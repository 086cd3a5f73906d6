/* The openb node list. */
#include <stdlib.h>

#include "core/macros.h"
#include "sim/csv.h"
#include "sim/openb.h"

#define MAX_CPU_MILLI  10000000u /* 10,000 cores */
#define MAX_MEMORY_MIB (1ull << 30)
#define MAX_GPUS       1024u

enum { SN, CPU_MILLI, MEMORY_MIB, GPU, MODEL };

static const struct csv_column columns[] = {
    [SN] = { "sn" },   [CPU_MILLI] = { "cpu_milli" }, [MEMORY_MIB] = { "memory_mib" },
    [GPU] = { "gpu" }, [MODEL] = { "model" },
};

static void read_node(struct csv *c, struct openb_nodes *n)
{
    struct openb_node *node = &n->nodes[n->count++];
    node->name = csv_id(c, SN, &n->names);
    node->cpu_milli = (uint32_t)csv_u64(c, CPU_MILLI, 1, MAX_CPU_MILLI);
    node->memory_mib = csv_u64(c, MEMORY_MIB, 1, MAX_MEMORY_MIB);
    node->gpus = (uint32_t)csv_u64(c, GPU, 0, MAX_GPUS);
    node->model = node->gpus ? csv_name(c, MODEL, &n->models) : OPENB_NONE;
    node->line = c->line;
}

int openb_nodes_read(const struct text *text, struct openb_nodes *out, struct sl_err *err)
{
    struct csv csv;
    struct openb_nodes n = { 0 };
    csv_begin(&csv, text, columns, ARRAY_LEN(columns), err);
    n.nodes = csv_array(&csv, sizeof *n.nodes);
    while (csv_next(&csv))
        read_node(&csv, &n);
    if (csv.rc < 0)
        openb_nodes_finish(&n);
    else
        *out = n;
    return csv.rc;
}

void openb_nodes_finish(struct openb_nodes *n)
{
    free(n->nodes);
    names_finish(&n->names);
    names_finish(&n->models);
    *n = (struct openb_nodes){ 0 };
}
