/* The command table of sluice-sim: every command, its options, and what is said of them. */
#include "sim/command.h"

/* Rows are read as a table. */
/* clang-format off */

static const struct sim_option openb_options[] = {
    { "nodes", "FILE", "the node list: sn,cpu_milli,memory_mib,gpu,model", .required = true },
    { "pods", "FILE", "the pod list: name,cpu_milli,memory_mib,num_gpu,gpu_milli,…", .required = true },
    { "order", "FILE", "the arrivals: a line per seed, `seed i0 i1 …`, indices into the pods"
      " sorted by name", .required = true },
    { "policy", "LIST", "names between commas: random, dotprod, clustering, packing, bestfit, fgd, pwr, pwr500,"
      " pwr200, pwr100, pwr50, sluice, sluice-power"
      " (default: all)" },
    { "ties", "N", "orders of the nodes, drawn by seed, that decide between equal scores"
      " (default: 5)", .min = 1, .max = 1000 },
    { "seeds", "N", "use the first N lines of the orders (default: all)", .min = 1, .max = 100000 },
    { "memory", "SEED", "pods take memory of the GPUs too: 0.5 to 2 times their share of compute,"
      " drawn by this seed", .min = 1, .max = 1000000 },
    { "against", "POLICY", "print the others' differences to this one too, paired by order" },
    { "json", NULL, "print JSON" },
    { NULL },
};

static const struct sim_option jobs_options[] = {
    { "format", "F", "what the trace is written in", .required = true, .words = "muri philly chronus csv" },
    { "trace", "FILE", "the trace; may be gzip", .required = true },
    { "nodes", "NxD", "N nodes of D devices each, such as 8x8; or a csv file with a column gpu, a row"
      " per node", .required = true },
    { "policy", "LIST", "names between commas: fifo, sjf, srtf, srsf, tiresias, qssf, sluice, sluice-blind,"
      " sluice-history, sluice-told, sluice-shared (default: all; sluice-shared for muri only)" },
    { "ties", "N", "average over N orders of the jobs that were submitted at the same moment, drawn by"
      " seed (default: 10; muri: 1); 1 is the order of the file", .min = 1, .max = 1000 },
    { "log", "FILE", "write what the scheduler core was told and decided, for sluice-sim replay; of one"
      " policy (sluice, sluice-…), with the jobs in the file's order" },
    { "no-start-overhead", NULL, "muri: leave out that at every event each running job loses its start"
      " overhead" },
    { "json", NULL, "print JSON" },
    { NULL },
};

static const struct sim_option carbon_options[] = {
    { "wait", "HOURS", "how long the work that can wait waits at most (default: 12)", .min = 1, .max = 168 },
    { "json", NULL, "print JSON" },
    { NULL },
};

static const struct sim_option replay_options[] = {
    { "decisions", NULL, "print every decision" },
    { "events", NULL, "print every event" },
    { NULL },
};

static const struct sim_option scenario_options[] = {
    { "seeds", "N", "runs with different chances, the same for each system (default: 5)", .min = 1, .max = 50 },
    { "policy", "LIST", "names between commas: partitioned, pool-strict, pool-backfill, pool-shared,"
      " sluice-exact, sluice (default: all); the first is what the others are compared with" },
    { "sessions", "PERCENT", "of the scenario's 248 sessions (default: 100)", .min = 1, .max = 1000 },
    { "think", "MINUTES", "mean time to think (default: 60)", .min = 1, .max = 100000 },
    { "heavy", "PERCENT", "of the shares of jobs on 2, 4 and 8 cards (default: 100)", .min = 1, .max = 300 },
    { "cards", "PERCENT", "of the 25 nodes; each department keeps one (default: 100)", .min = 5, .max = 1000 },
    { "offered", "PERCENT", "no sessions: arrivals at random that offer so much of the cards' native work",
      .min = 1, .max = 300 },
    { "warm-days", "N", "days before anything is measured (default: 7)", .min = 1, .max = 100 },
    { "days", "N", "days that are measured (default: 28)", .min = 1, .max = 365 },
    { "html", "FILE", "write one self-contained page with charts" },
    { "json", NULL, "print JSON" },
    { NULL },
};

static const struct sim_option capacity_options[] = {
    { "sessions", "N", "how many sessions think, ask for cards, wait and run", .required = true, .min = 10, .max = 2000 },
    { "wait", "MINUTES", "what they may wait", .required = true, .min = 1, .max = 100000 },
    { "of", "WHAT", "which wait that is (default: mean)", .words = "mean p90 p99" },
    { "policy", "LIST", "names as of scenario 200-cards (default: all); the first is what you have, the last the pool" },
    { "own-price", "AMOUNT", "own cards: what one costs to buy, its part of the node included" },
    { "own-years", "YEARS", "own cards: how long one is used" },
    { "own-running", "AMOUNT", "own cards: power, room and people, for a card and a year" },
    { "pool-price", "AMOUNT", "what pooling adds, for a card and a year; 0 if nothing" },
    { "rent-price", "AMOUNT", "rented cards: of one, for an hour" },
    { "think", "MINUTES", "mean time to think (default: 60)", .min = 1, .max = 100000 },
    { "heavy", "PERCENT", "of the shares of jobs on 2, 4 and 8 cards (default: 100)", .min = 1, .max = 300 },
    { "seeds", "N", "runs of each size (default: 2)", .min = 1, .max = 50 },
    { "warm-days", "N", "days before anything is measured (default: 4)", .min = 1, .max = 100 },
    { "days", "N", "days that are measured (default: 14)", .min = 1, .max = 365 },
    { "json", NULL, "print JSON" },
    { NULL },
};

static const struct sim_option compare_options[] = {
    { "json", NULL, "print JSON" },
    { NULL },
};

#define AT_OPTION { "at", "EVENT", "as it was after that event (default: the last)", .min = 1, .max = UINT32_MAX }

static const struct sim_option explain_options[] = {
    AT_OPTION,
    { NULL },
};

static const struct sim_option whatif_options[] = {
    AT_OPTION,
    { "add-nodes", "N", "add N nodes", .min = 1, .max = 100000 },
    { "like", "NODE", "… such as this one, by its number (default: 0)", .max = UINT32_MAX },
    { "quota", "T:M=DESERVED[:LIMIT]", "tenant T deserves so many devices (2.5) of model M, or of `all`, and"
      " has at most LIMIT (default: any number)" },
    { "submit", "ASK", "ask for: [gang of N x] [N x] SHARE [SIZE] [on M|M] [with N cpus SIZE host],"
      " such as '2 x 50% 8GiB'; parts are joined by +" },
    { "tenant", "T", "… for this tenant (default: 0, the one above all)", .max = UINT32_MAX },
    { "priority", "P", "… of this priority (default: 0)", .max = 100 },
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
          " the idle GPU the list's usual pods cannot use when 50, 80 and 90 % had. The JSON has what the"
          " nodes draw, too.\n\n"
          "pwr places where power grows least; pwr500 to pwr50 are half to a twentieth of it with fgd, as in"
          " the PWR paper (CCGrid 2025). sluice-power is sluice among the nodes that add few watts.",
      .example = "sluice-sim openb --nodes nodes.csv --pods pods.csv --order pods.order.gz --policy bestfit,fgd",
      .options = openb_options, .run = sim_cmd_openb },
    { .name = "jobs",
      .summary = "how long the jobs of a trace take, by scheduling policy",
      .about = "Every job asks for whole devices and gives them back when its work is done; policies say who"
          " runs when, and where.\n\n"
          "fifo: first come, first served. sjf: the shortest first. srtf: the shortest remaining time first."
          " srsf: the least remaining time x devices first. tiresias: the least attained service first, in"
          " steps. qssf: the least predicted time x devices first, from what the same owner ran before."
          " In fifo, sjf and qssf the first in the queue holds up all behind and nobody is stopped; the"
          " others stop jobs. sjf, srtf and srsf know the run times.\n\n"
          "sluice-shared lets jobs take turns on the same devices, at the pace of Muri's own model of"
          " interleaved stages.\n\n"
          "A muri trace is run by the rules of Muri's simulator, the others by those of HeliosArtifact"
          " (src/sim/README.md), so that the figures stand beside the published ones. Jobs that ask for no"
          " device, or for more than the nodes have, are counted and in no average. A percentile needs"
          " ten jobs beyond it.",
      .example = "sluice-sim jobs --format csv --trace log.csv --nodes 30x8 --policy fifo,srtf",
      .options = jobs_options, .run = sim_cmd_jobs },
    { .name = "carbon",
      .summary = "what running work in cleaner hours, or on cleaner grids, saves",
      .about = "A pool of 100 devices (30 W idle, 300 W at work) of which 25 must work in every hour, while 25"
          " hours of work come that can wait. Printed for each grid: grams of CO2 if all runs at once, by its"
          " average intensity; what is saved by planning with a forecast from earlier days and the hour at hand;"
          " and what a planner would save that knows the whole file.\n\n"
          "Of several grids, also what is saved if that work does not wait but runs in whichever has the"
          " lowest intensity, known an hour late. Files: a csv with the columns timestamp and avg_CI, hour by hour.",
      .example = "sluice-sim carbon --wait 24 CA.csv NY.csv",
      .options = carbon_options, .operands = "FILE...", .min_operands = 1, .max_operands = 32,
      .run = sim_cmd_carbon },
    { .name = "scenario",
      .summary = "run scenarios: files in words, or the one of 200 cards",
      .about = "A scenario says in plain words which nodes and tenants there are, what is asked when, and what"
          " is expected then; docs/guide/scenarios.md has the words. It runs on the scheduler core in virtual"
          " time. The status is 1 if something was not as expected, 2 if a file is no scenario.\n\n"
          "200-cards is built in, and the options are its: sessions that think, ask for cards, wait and run, on"
          " 200 mixed cards, under departments with whole cards, under pools, and under the scheduler core."
          " Effective is the native work of finished jobs in the cards' time; starved is who waited 24 h or 20"
          " times its run.",
      .example = "sluice-sim scenario 200-cards --html report.html",
      .options = scenario_options, .operands = "FILE...|200-cards", .min_operands = 1, .max_operands = SIM_MAX_OPERANDS,
      .run = sim_cmd_scenario },
    { .name = "replay",
      .summary = "run a scheduler's log again and compare every decision",
      .about = "A log holds the policy, every event, and what was decided; `sluice-sim jobs --log` writes one."
          " Its events go through a scheduler core of this build, and what that decides is compared byte by"
          " byte.\n\n"
          "The status is 0 if all is the same. At the first difference it is 1, and the event, its time and both"
          " decisions are printed. A log that was cut off is replayed up to there, which is said.",
      .example = "sluice-sim replay run.log --decisions",
      .options = replay_options, .operands = "LOG", .min_operands = 1, .max_operands = 1,
      .run = sim_cmd_replay },
    { .name = "capacity",
      .summary = "how many cards a load needs at a wait, and what they would cost",
      .about = "Sessions of the scenario 200-cards work on more and fewer cards, with the scenario's shares of"
          " types and departments, until the least number is found at which they wait no longer than you allow."
          " At an equal wait they do about equal work, so these numbers can be compared.\n\n"
          "With your prices, in any money: what a year costs on cards of your own under the first system,"
          " on pooled ones under the last, and on rented ones, whole cards by the hour, each only while its"
          " job runs. No price is assumed.",
      .example = "sluice-sim capacity --sessions 250 --wait 15 --policy partitioned,sluice --own-price 12000"
          " --own-years 4 --own-running 1500 --pool-price 100 --rent-price 2.20",
      .options = capacity_options, .run = sim_cmd_capacity },
    { .name = "compare",
      .summary = "two JSON answers beside each other, with differences",
      .about = "A and B are what a command printed with --json; policies and systems are found by name. Of each"
          " figure: its value in both, the difference, and where both say how far to trust theirs, its 95 %"
          " interval. If both hold the values of as many runs, the differences are taken run by run (paired)."
          " Else the runs count as independent, which makes the interval of paired runs too wide. An interval"
          " that holds 0 is called unclear.",
      .example = "sluice-sim compare before.json after.json",
      .options = compare_options, .operands = "A B", .min_operands = 2, .max_operands = 2,
      .run = sim_cmd_compare },
    { .name = "explain",
      .summary = "why a request of a log waits or must go, and what would start it",
      .about = "The events of the log go through a scheduler core; then the request with the number ID is"
          " explained: whether it can never run, is blocked by a limit or waits for room; what each node"
          " lacks; and the smallest changes that would start it at once, each of them tried. Of one that was"
          " told to go: for whom, by which rule, and its place among those who could have gone.",
      .example = "sluice-sim explain run.log 4711 --at 90000",
      .options = explain_options, .operands = "LOG ID", .min_operands = 2, .max_operands = 2,
      .run = sim_cmd_explain },
    { .name = "whatif",
      .summary = "what a scheduler would do with more nodes, another quota, one more request",
      .about = "The events of the log go through a scheduler core. Then the change is made, in this order: nodes,"
          " quota, request. Printed is what is decided because of it, at that moment: who starts and who must"
          " go; how many wait then, and for what; and of a request that does not start, why.",
      .example = "sluice-sim whatif run.log --at 90000 --add-nodes 4 --like 0",
      .options = whatif_options, .operands = "LOG", .min_operands = 1, .max_operands = 1,
      .run = sim_cmd_whatif },
    { .name = "help", .summary = "explain a command", .operands = "[COMMAND]",
      .max_operands = 1, .run = sim_cmd_help },
    { .name = "version", .summary = "print the version", .run = sim_cmd_version },
    { NULL },
};
