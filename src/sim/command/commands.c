/* The command table of sluice-sim: every command, its options, and what is said of them. */
#include "sim/command.h"

/* Rows are read as a table. */
/* clang-format off */

static const struct sim_option openb_options[] = {
    { "nodes", "FILE", "the node list: sn,cpu_milli,memory_mib,gpu,model", .required = true },
    { "pods", "FILE", "the pod list: name,cpu_milli,memory_mib,num_gpu,gpu_milli,…", .required = true },
    { "order", "FILE", "the arrivals: a line per seed, `seed i0 i1 …`, indices into the pods"
      " sorted by name", .required = true },
    { "policy", "LIST", "names between commas: random, dotprod, clustering, packing, bestfit, fgd"
      " (default: all)" },
    { "ties", "N", "orders of the nodes, drawn by seed, that decide between equal scores"
      " (default: 5)", .min = 1, .max = 1000 },
    { "seeds", "N", "use the first N lines of the orders (default: all)", .min = 1, .max = 100000 },
    { "against", "POLICY", "print the others' differences to this one too, paired by order" },
    { "json", NULL, "print JSON" },
    { NULL },
};

const struct sim_command sim_commands[] = {
    { .name = "openb",
      .summary = "how much of a cluster placement policies fill, on the openb pod lists",
      .about = "The protocol of the FGD paper (USENIX ATC 2023): pods arrive one after the other and never"
          " leave; one that fits nowhere is dropped. Each policy is run on every order of arrival with every"
          " order of the nodes.\n\n"
          "Printed for each policy, as mean and standard deviation over these runs: allocated GPU in percent"
          " of the cluster when pods that asked for 100 and 130 % of it had arrived, and which part of"
          " the idle GPU the list's usual pods cannot use when 50, 80 and 90 % had.",
      .example = "sluice-sim openb --nodes nodes.csv --pods pods.csv --order pods.order.gz --policy bestfit,fgd",
      .options = openb_options, .run = sim_cmd_openb },
    { .name = "help", .summary = "explain a command", .operands = "[COMMAND]",
      .max_operands = 1, .run = sim_cmd_help },
    { .name = "version", .summary = "print the version", .run = sim_cmd_version },
    { NULL },
};
