/* The command line of sluice-broker, and its life from start to end. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/broker.h"
#include "internal.h"

static const char usage[] =
    "usage: sluice-broker --run-dir DIR [options]\n"
    "Hands out bytes and turns of this machine's devices; started by sluice-agent.\n"
    "\n"
    "  --run-dir DIR      where its sockets, lock and ledger live; must exist and be "
    "yours\n"
    "  --foreground       log to stderr instead of DIR/broker.log\n"
    "  --log-level LEVEL  error, warn, info (default) or debug\n"
    "  --identity HOW     how processes are recognised: auto (default), cgroup, ancestry\n"
    "  --no-peerpidfd     as on a kernel before 6.5: pidfd_open and start time\n"
    "  --no-pidfd-info    as on a kernel before 6.13: cgroups from /proc\n"
    "  --version, --help\n";

static bool parse_identity(const char *text, struct broker_options *o)
{
    o->cgroup = strcmp(text, "ancestry") != 0;
    o->ancestry = strcmp(text, "cgroup") != 0;
    return !strcmp(text, "auto") || !strcmp(text, "cgroup") || !strcmp(text, "ancestry");
}

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "sluice-broker: %s%s%s\n%s", what, value ? ": " : "",
            value ? value : "", usage);
    return 2;
}

/* -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct broker_options *o)
{
    static const struct option options[] = {
        { "run-dir", required_argument, NULL, 'd' },
        { "foreground", no_argument, NULL, 'f' },
        { "log-level", required_argument, NULL, 'l' },
        { "identity", required_argument, NULL, 'i' },
        { "no-peerpidfd", no_argument, NULL, 'p' },
        { "no-pidfd-info", no_argument, NULL, 'c' },
        { "version", no_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    const char *dir = NULL;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'd':
            dir = optarg;
            break;
        case 'f':
            o->foreground = true;
            break;
        case 'l':
            if (log_level_parse(optarg, &o->log_level, NULL))
                return usage_error("unknown log level", optarg);
            break;
        case 'i':
            if (!parse_identity(optarg, o))
                return usage_error("unknown identity", optarg);
            break;
        case 'p':
            o->peerpidfd = false;
            break;
        case 'c':
            o->pidfd_info = false;
            break;
        case 'v':
            puts("sluice-broker " SLUICE_VERSION);
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind < argc)
        return usage_error("unexpected argument", argv[optind]);
    if (!dir)
        return usage_error("--run-dir is missing", NULL);
    o->run_dir = dir;
    return -1;
}

/* Not if the directory was emptied under us: the names in it are another broker's. */
static bool owns_directory(const struct broker *b)
{
    struct stat ours, now;
    return fstat(b->lock_fd, &ours) == 0 && stat("broker.lock", &now) == 0 &&
           ours.st_dev == now.st_dev && ours.st_ino == now.st_ino;
}

int broker_main(int argc, char **argv)
{
    struct broker_options o = { .cgroup = true,
                                .ancestry = true,
                                .peerpidfd = true,
                                .pidfd_info = true,
                                .log_level = LOG_INFO };
    int status = parse(argc, argv, &o);
    if (status >= 0)
        return status;

    struct sl_err err = { 0 };
    struct broker *b = broker_create(&o);
    if (!b) {
        fputs("sluice-broker: out of memory\n", stderr);
        return 1;
    }
    int rc = setup_open(b, &err);
    if (rc) {
        fprintf(stderr, "sluice-broker: %s\n", err.msg);
        broker_destroy(b);
        return sl_code_row((enum sl_code) - rc)->exit_status;
    }
    log_event(LOG_INFO, "start", "pid=%d run_dir=%s clients_recovered=%llu", (int)getpid(),
              b->options.run_dir, (unsigned long long)b->recovered_clients);
    rc = broker_run(b);
    /* Programs keep running and keep what they hold: the run file tells the
     * next broker.  Only the names go, so that nobody knocks in vain. */
    if (owns_directory(b)) {
        unlink("broker.sock");
        unlink("control.sock");
    }
    log_event(LOG_INFO, "end", "clients=%u code=%d", b->client_count, rc);
    broker_destroy(b);
    return rc ? 1 : 0;
}
