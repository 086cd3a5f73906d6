/* The command table: every command, its options, and what is said about them. */
#include "cli/cli.h"

/* Rows are read as a table. */
/* clang-format off */

const struct cli_option cli_global_options[] = {
    { "output", 'o', "FORMAT", CLI_WORD,
      "print a table, or JSON: memory there in bytes, compute in permille (300 is 30 %), null"
      " for what is not known",
      .words = "table json" },
    { "run-dir", 0, "DIR", CLI_TEXT,
      "the agent's run directory (default: SLUICE_RUN_DIR, else root's if an agent runs"
      " there, else this user's)",
      .complete = "files" },
    { "quiet", 'q', NULL, CLI_FLAG, "print no messages, only answers and errors" },
    { "verbose", 0, NULL, CLI_FLAG, "say more about what is done" },
    { "help", 'h', NULL, CLI_FLAG, "print this help" },
    { NULL },
};

const struct cli_option cli_lease_options[] = {
    { "mem", 'm', "SIZE", CLI_SIZE,
      "memory of the slice: 512MiB, 2g, 1.5GiB (default: all that can be lent)" },
    { "mem-limit", 0, "SIZE", CLI_SIZE,
      "the most it may take when others leave room (default: the same as --mem)" },
    { "compute", 'c', "SHARE", CLI_SHARE,
      "percent of the device's time: 25, 12.5, or 20..60 for at least..at most (default: 100)" },
    { "mode", 0, "MODE", CLI_WORD,
      "hard: never above its share, even alone; burst: more, up to its limit, while others"
      " leave it; besteffort: only what is idle (default: hard, with a range burst)",
      .words = "hard burst besteffort" },
    { "name", 'n', "NAME", CLI_TEXT, "a name for the lease (default: its id)" },
    { "device", 'd', "DEVICE", CLI_TEXT, "only such a device: an id, an index, a model, or a part that fits one model only",
      .complete = "devices" },
    { "devices", 0, "N", CLI_COUNT,
      "a slice of each of N devices; a device can be in only one lease on several (default: 1)" },
    { "priority", 'p', "N", CLI_COUNT,
      "0 to 100: the higher is served first, with room and with turns, but never with what"
      " others were promised (default: 50)" },
    { "time", 't', "TIME", CLI_DURATION, "end the program after this time: 90s, 5m, 2h" },
    { "cpus", 0, "N", CLI_NUMBER, "host processors it may use: 0.5, 4" },
    { "host-mem", 0, "SIZE", CLI_SIZE, "host memory it may use: the kernel kills what takes more" },
    { "fail-closed", 0, NULL, CLI_FLAG,
      "refuse calls that would pass the gate, and end the program if it uses the device"
      " past the front (default: report both)" },
    { NULL },
};

static const struct cli_option run_options[] = {
    { "wait", 'w', "TIME", CLI_DURATION,
      "wait for room, for ever or so long (default: no room is a failure)",
      .value_optional = true },
    { "dry-run", 0, NULL, CLI_FLAG, "say where it would run, and run nothing" },
    { "detach", 0, NULL, CLI_FLAG, "do not wait for the program; its output goes to a log" },
    { "userns", 0, NULL, CLI_FLAG,
      "as a normal user: mount the front in a user namespace (sudo stops working inside)" },
    { NULL },
};

static const struct cli_example run_examples[] = {
    { "sluice run --mem 512MiB --compute 30 -- clpeak",
      "512 MiB and 30 % of the device's time, never more" },
    { "sluice run --mem 1GiB --compute 20..60 --name b -- python3 mine.py",
      "at least 20 %, up to 60 % while others leave it" },
    { "sluice run --wait=10m --mem 8GiB -- ./train", "wait up to ten minutes for room" },
    { NULL },
};

static const struct cli_option submit_options[] = {
    { "wait", 'w', "TIME", CLI_DURATION,
      "give the job up if there was no room for so long (default: it waits for ever)",
      .value_optional = true },
    { "dry-run", 0, NULL, CLI_FLAG,
      "say where it would run now, or why it would wait, and hand nothing over" },
    { NULL },
};

static const struct cli_example submit_examples[] = {
    { "sluice submit --mem 4GiB --compute 50 --name night -- ./train --epochs 40",
      "hand it over and go home; see sluice logs night" },
    { NULL },
};

static const struct cli_option up_options[] = {
    { "emulate", 0, "MODEL:N", CLI_TEXT,
      "no real device: N emulated ones of a model, or those of a file"
      " (docs/guide/emulated-machines.md has its format)",
      .complete = "files" },
    { "share-tenants", 0, NULL, CLI_FLAG,
      "let different users share a device even where only the front holds them" },
    { "mem-overcommit", 0, "RATIO", CLI_NUMBER,
      "let limits (not requests) sum to RATIO times the memory" },
    { "reserve", 0, "SIZE", CLI_TEXT,
      "memory of each real device that is never lent: 2GiB, 25%" },
    { "turn", 0, "TIME", CLI_DURATION,
      "device time of one turn: longer loses less, shorter is smoother (default: 10ms)" },
    { "foreground", 0, NULL, CLI_FLAG, "stay in the foreground and log to stderr" },
    { NULL },
};

static const struct cli_example up_examples[] = {
    { "sluice up", "start the agent and the broker of this machine" },
    { "sluice up --emulate a100-80g:8",
      "a machine with eight emulated cards, to look around" },
    { NULL },
};

static const struct cli_option down_options[] = {
    { "force", 0, NULL, CLI_FLAG, "release live leases first; their programs are ended" },
    { NULL },
};

static const struct cli_option ps_options[] = {
    { "all", 'a', NULL, CLI_FLAG, "released ones too" },
    { NULL },
};

static const struct cli_option top_options[] = {
    { "once", '1', NULL, CLI_FLAG, "print one picture and end" },
    { "interval", 'i', "TIME", CLI_DURATION, "time between two looks (default: 1s)" },
    { NULL },
};

static const struct cli_option resize_options[] = {
    { "mem", 'm', "SIZE", CLI_SIZE, "new memory of the slice" },
    { "mem-limit", 0, "SIZE", CLI_SIZE,
      "the most it may take when others leave room (default: as it was; where that was the"
      " same as --mem, the same)" },
    { "compute", 'c', "SHARE", CLI_SHARE, "new share: 50, or 20..60" },
    { "priority", 'p', "N", CLI_COUNT, "new priority, 0 to 100" },
    { "wait", 'w', "TIME", CLI_DURATION, "wait until a shrink is met, for ever or so long",
      .value_optional = true },
    { NULL },
};

static const struct cli_example resize_examples[] = {
    { "sluice resize b --compute 50 --mem 2GiB", "grow a running program's slice" },
    { "sluice resize b --mem 256MiB --wait=30s",
      "shrink it, and wait until it has given the memory back" },
    { NULL },
};

static const struct cli_option jobs_options[] = {
    { "all", 'a', NULL, CLI_FLAG, "ended ones too" },
    { "clear", 0, NULL, CLI_FLAG,
      "remove the ended ones with their logs: your own, as root everybody's" },
    { NULL },
};

static const struct cli_option logs_options[] = {
    { "follow", 'f', NULL, CLI_FLAG, "go on printing until the job ends" },
    { NULL },
};

static const struct cli_option doctor_options[] = {
    { "no-run", 0, NULL, CLI_FLAG, "only look: start no agent and run no program" },
    { NULL },
};

static const struct cli_option help_options[] = {
    { "man", 0, NULL, CLI_FLAG, "print the manual page's source (mdoc)" },
    { NULL },
};

static const struct cli_option no_options[] = { { NULL } };

const struct cli_exit cli_exits[] = {
    { 0, "all went well" },
    { 1, "an error" },
    { 2, "wrong usage, or a value that cannot be" },
    { 3, "not found" },
    { 4, "denied" },
    { 5, "a quota is used up" },
    { 6, "no capacity" },
    { 7, "a time limit passed" },
    { 125, "run: a failure of Sluice, any of the above" },
    { 126, "run, submit: the program cannot be executed" },
    { 127, "run, submit: there is no such program" },
    { 0, NULL },
};

static const char run_exits[] =
    "The program's own status; 128+N if signal N ended it; 126 if it cannot be executed, 127 if"
    " it does not exist; 125 for every failure of Sluice, usage and no room included (the reason"
    " is on stderr).";

static const char submit_exits[] =
    "126 if the program cannot be executed, 127 if it does not exist, as for run: both are looked"
    " up when it is handed over. Else as sluice help lists them.";

const struct cli_command cli_commands[] = {
    { .name = "run",
      .summary = "run a program inside a slice of a device",
      .synopsis = "[OPTIONS] [--] PROGRAM [ARGUMENT...]",
      .about =
          "Acquires a slice, runs the program in it unmodified, holds it to exactly that, "
          "and"
          " gives everything back when it ends, however it ends. The program sees only its "
          "own"
          " devices, each of its slice's size. Terminal, signals, environment and exit "
          "status"
          " are as without Sluice.\n\n"
          "With no agent running, one is started in the background; it ends by itself 60"
          " seconds after its last lease.\n\n"
          "It takes what is free now, also before jobs that wait; only with --wait, and only"
          " where there is no room, does it queue with them (sluice help submit).\n\n"
          "kill -9 of sluice run itself ends neither the program nor its lease: sluice release"
          " does.\n\n"
          "Standard output is the program's: -o json goes only with --detach, which prints"
          " the lease, and --dry-run, which prints the plan.",
      .options = run_options,
      .more_options = cli_lease_options,
      .examples = run_examples,
      .exits = run_exits,
      .operands = "programs",
      .min_operands = 1,
      .max_operands = -1,
      .stops_at_operand = true,
      .failure_exit = 125,
      .run = cmd_run },
    { .name = "submit",
      .summary = "hand a program to the agent and return at once",
      .synopsis = "[OPTIONS] [--] PROGRAM [ARGUMENT...]",
      .about = "The job waits for room, runs without a terminal, and keeps its output: see"
               " sluice jobs and sluice logs.\n\n"
               "Jobs start in order: the higher priority first, then the older. None passes one"
               " before it that may want the same device, even where it would fit; sluice run"
               " does.",
      .options = submit_options,
      .more_options = cli_lease_options,
      .examples = submit_examples,
      .exits = submit_exits,
      .operands = "programs",
      .min_operands = 1,
      .max_operands = -1,
      .stops_at_operand = true,
      .run = cmd_submit },
    { .name = "ps",
      .summary = "list the leases of this machine",
      .synopsis = "[-a]",
      .about =
          "Promised and achieved shares are of the device's time; achieved is over the last"
          " 10 seconds.\n\n"
          "With no agent running nothing is lent: the list is empty, and a message says so."
          " -a starts one to read what has ended. An agent that was killed, or left its broker,"
          " is an error, because its programs may still run.",
      .options = ps_options,
      .run = cmd_ps },
    { .name = "top",
      .summary = "watch devices, slices and who waits",
      .synopsis = "[--once] [--interval TIME]",
      .about =
          "Keys: q quits, p pauses, up and down scroll; s sorts by share, m by memory, n by name,"
          " d by device.\n\n"
          "Starts no agent: with none running nothing is lent, and a message says so.",
      .options = top_options,
      .run = cmd_top },
    { .name = "devices",
      .summary = "list the devices of this machine and what is lent of them",
      .synopsis = "",
      .about = "With no agent running, one is started in the background to look; it ends by"
               " itself 60 seconds after its last lease.",
      .options = no_options,
      .run = cmd_devices },
    { .name = "resize",
      .summary = "change a running lease's slice",
      .synopsis = "[--mem SIZE] [--mem-limit SIZE] [--compute SHARE] [--priority N]"
                  " [--wait[=TIME]] NAME",
      .about =
          "Growing takes effect at once. Shrinking refuses new requests at once; what is"
          " still held above the new size is reported until the program has given it back.\n\n"
          "With no agent running, one is started to look for the lease.",
      .options = resize_options,
      .examples = resize_examples,
      .exits =
          "6 if there is no room to grow; 7 if --wait=TIME passed before a shrink was met.",
      .operands = "leases",
      .min_operands = 1,
      .max_operands = 1,
      .run = cmd_resize },
    { .name = "release",
      .summary = "end leases and the programs in them",
      .synopsis = "NAME...",
      .about = "With no agent running, one is started to look for them.",
      .options = no_options,
      .operands = "leases",
      .min_operands = 1,
      .max_operands = -1,
      .run = cmd_release },
    { .name = "jobs",
      .summary = "list jobs, and how they ended",
      .synopsis = "[-a | --clear]",
      .about = "Those that wait or run; with -a also those that have ended, and how: exited 0,"
               " killed by SIGKILL, out of time, released by its user.\n\n"
               "The last 256 ended ones are kept. Their logs may take a quarter of the run"
               " directory's file system, at most 1 GiB, one user's half of that; the oldest go"
               " first, and before that when the file system is nearly full. Then no running"
               " job's log grows either: submit, run --detach and logs say so.",
      .options = jobs_options,
      .run = cmd_jobs },
    { .name = "logs",
      .summary = "print what a job without a terminal has printed",
      .synopsis = "[-f] JOB",
      .about = "Also after it has ended. With no agent running, one is started to read what"
               " is kept.",
      .options = logs_options,
      .operands = "jobs",
      .min_operands = 1,
      .max_operands = 1,
      .run = cmd_logs },
    { .name = "up",
      .summary = "start the agent and the broker of this machine",
      .synopsis = "[--emulate MODEL:N | FILE] [--share-tenants] [--mem-overcommit RATIO]"
                  " [--reserve SIZE] [--turn TIME] [--foreground]",
      .about = "Says what was found. If they run already it says so, and changes nothing. While"
               " leases of an agent that was killed live, its options hold on where none are"
               " given, and this is said.",
      .options = up_options,
      .examples = up_examples,
      .run = cmd_up },
    { .name = "down",
      .summary = "end the agent and the broker of this machine",
      .synopsis = "[--force]",
      .about = "Refused while leases live, unless forced.",
      .options = down_options,
      .run = cmd_down },
    { .name = "doctor",
      .summary = "test every hop, and say which is broken and what to do",
      .synopsis = "[--no-run]",
      .about =
          "From the run directory to a real kernel held by the front and a real allocation"
          " refused one byte over the limit.",
      .options = doctor_options,
      .exits = "1 if something is broken.",
      .run = cmd_doctor },
    { .name = "help",
      .summary = "explain a command, or list them all",
      .synopsis = "[--man] [COMMAND]",
      .options = help_options,
      .operands = "commands",
      .max_operands = 1,
      .run = cmd_help },
    { .name = "version",
      .summary = "print the version",
      .synopsis = "",
      .options = no_options,
      .run = cmd_version },
    { .name = "completion",
      .summary = "print a completion script for a shell",
      .synopsis = "bash",
      .about = "Use it with: source <(sluice completion bash)",
      .options = no_options,
      .operands = "shells",
      .min_operands = 1,
      .max_operands = 1,
      .run = cmd_completion },
    { .name = NULL },
};
