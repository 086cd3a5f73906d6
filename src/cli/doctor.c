/*
 * The command doctor: each hop from the run directory to a real kernel held by
 * the front, in the order in which a program meets them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "child.h"
#include "cli/start.h"
#include "core/macros.h"
#include "doctor.h"
#include "fetch.h"
#include "model/units.h"
#include "os/file.h"
#include "os/library.h"
#include "os/sock.h"
#include "table.h"
#include "views.h"

#define INFO_MS    20000 /* a vendor's library may hang */
#define CHECK_MS   60000 /* a cold compile of the kernel takes seconds */
#define CHECK_MEM  (64 * MIB)
#define START_ROOM (4 * MIB)

/* Another user's has another HOME. */
static bool agent_is_mine(const struct doctor *d)
{
    struct stat st;
    return stat(d->cli->rundir.path, &st) || st.st_uid == geteuid();
}

static bool may_end_agent(const struct doctor *d)
{
    return geteuid() == 0 || agent_is_mine(d);
}

static void add(struct doctor *d, const char *hop, enum verdict verdict, const char *fix,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void add(struct doctor *d, const char *hop, enum verdict verdict, const char *fix,
                const char *fmt, ...)
{
    va_list ap;
    if (d->count == ARRAY_LEN(d->checks))
        return;
    struct check *c = &d->checks[d->count++];
    *c = (struct check){ .hop = hop, .verdict = verdict };
    va_start(ap, fmt);
    vsnprintf(c->found, sizeof c->found, fmt, ap);
    va_end(ap);
    if (fix && verdict != CHECK_OK && strstr(fix, "sluice down") && !may_end_agent(d))
        snprintf(c->fix, sizeof c->fix, "ask who runs the agent, or root: %s", fix);
    else if (fix && verdict != CHECK_OK)
        snprintf(c->fix, sizeof c->fix, "%s", fix);
}

/* A start needs some megabytes there: the front's copies, the ledger, the journal. */
static void check_room(struct doctor *d)
{
    const char *path = d->cli->rundir.path;
    struct room room;
    char left[32], all[32];
    bool known = cli_look_at_room(d->cli, &room),
         running = agent_is_running(&d->cli->rundir);
    const char *trouble = NULL, *fix = NULL;
    if (known && !running && room.free_bytes < START_ROOM) {
        trouble = "an agent may not start";
        fix = "make room there, or choose another with --run-dir or SLUICE_RUN_DIR";
    } else if (known && room_is_short(&room)) {
        trouble = "no job's log grows";
        fix = "make room there; the logs of ended jobs go by themselves";
    }
    if (trouble)
        add(d, "run directory", CHECK_WARN, fix, "%s has only %s of %s free: %s", path,
            format_bytes(room.free_bytes, left), format_bytes(room.total_bytes, all),
            trouble);
    else
        add(d, "run directory", CHECK_OK, NULL, "%s", path);
}

static void check_rundir(struct doctor *d)
{
    struct sl_err err = { 0 };
    if (cli_choose_rundir(d->cli, &err) < 0 ||
        (!agent_is_running(&d->cli->rundir) &&
         (d->may_run ? rundir_prepare : rundir_check)(&d->cli->rundir, &err) < 0))
        add(d, "run directory", CHECK_BROKEN,
            "give another with --run-dir or SLUICE_RUN_DIR, or repair this one", "%s",
            err.msg);
    else
        check_room(d);
}

static void check_programs(struct doctor *d)
{
    static const char *const names[] = { "sluice-agent",        "sluice-broker",
                                         "sluice-shim",         "sluice-probe",
                                         "libsluice-opencl.so", "libOpenCL.so.1",
                                         "sluice-selftest" };
    char path[4096 + 64], missing[200] = "";
    struct sl_err err = { 0 };

    if (file_program_dir(d->dir, sizeof d->dir, &err) < 0) {
        add(d, "programs", CHECK_BROKEN, "is /proc mounted?", "%s", err.msg);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", d->dir, names[i]);
        if (access(path, strncmp(names[i], "lib", 3) ? X_OK : R_OK))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %s",
                     names[i]);
    }
    if (missing[0])
        add(d, "programs", CHECK_BROKEN, "build or install them all into one folder",
            "missing in %s:%s", d->dir, missing);
    else
        add(d, "programs", CHECK_OK, NULL, "all in %s", d->dir);
}

static const char *text_of(const json_t *obj, const char *key)
{
    const char *text = json_string_value(json_object_get(obj, key));
    return text ? text : "";
}

/* What to do about a full disk is the same everywhere; about an agent that is gone, it is said. */
static const char *fix_of(const char *said, const char *fix)
{
    return strstr(said, "No space left") ? "make room there; see the run directory above"
           : strstr(said, "sluice up")   ? "sluice up; agent.log there may say how it ended"
                                         : fix;
}

static void check_agent(struct doctor *d)
{
    struct sl_err err = { 0 };
    bool absent = !agent_is_running(&d->cli->rundir) && !agent_left_traces(&d->cli->rundir);
    if (absent && !d->may_run) {
        add(d, "agent", CHECK_SKIPPED, NULL, "none runs, and --no-run starts none");
        return;
    }
    if (cli_connect(d->cli, d->may_run, &err) < 0 ||
        fetch_json(d->cli, "/v1/node", &d->node, &err) < 0) {
        add(d, "agent", CHECK_BROKEN,
            fix_of(err.msg, "read agent.log in the run directory"), "%s", err.msg);
        return;
    }
    const char *version = text_of(d->node, "version");
    if (strcmp(version, SLUICE_VERSION))
        add(d, "agent", CHECK_BROKEN, "sluice down, then sluice up",
            "it is version %s, this is %s", version[0] ? version : "unknown",
            SLUICE_VERSION);
    else
        add(d, "agent", CHECK_OK, NULL, "answers, version %s", version);
}

static void check_broker(struct doctor *d)
{
    char path[108];
    struct sl_err err = { 0 };
    const json_t *broker = json_object_get(d->node, "broker");
    const char *version = text_of(broker, "version");

    if (rundir_path(&d->cli->rundir, "broker.sock", path, sizeof path, &err) < 0)
        return;
    AUTO_CLOSE int fd = sock_connect_unix(path, SOCK_SEQPACKET, &err);
    if (fd < 0)
        add(d, "broker", CHECK_BROKEN,
            "the agent starts it; read agent.log and broker.log in the run directory", "%s",
            err.msg);
    else if (version[0] && strcmp(version, SLUICE_VERSION))
        /* an agent's upgrade leaves the broker running: the messages are versioned */
        add(d, "broker", CHECK_WARN, "it is renewed by sluice down, then sluice up",
            "answers, version %s beside %s", version, SLUICE_VERSION);
    else
        add(d, "broker", CHECK_OK, NULL, "answers%s%s", version[0] ? ", version " : "",
            version);
}

/* The copies that jobs load. */
static void check_front_files(struct doctor *d)
{
    const json_t *front = json_object_get(d->node, "front");
    const char *path = text_of(front, "path"), *placement = text_of(front, "placement");
    const char *loader = text_of(front, "loader");
    struct sl_err err = { 0 };
    if (!front)
        return;
    if (json_is_true(json_object_get(front, "ready")) &&
        (library_check(path, "clInitLayer", &err) < 0 ||
         (!strcmp(placement, "mount") &&
          library_check(loader, "clGetPlatformIDs", &err) < 0)))
        add(d, "front files", CHECK_BROKEN,
            "sluice down, then sluice up: the agent copies them anew", "%s", err.msg);
    else if (!json_is_true(json_object_get(front, "ready")))
        add(d, "front files", CHECK_BROKEN,
            "the agent copies them from beside its program; read agent.log in the run "
            "directory",
            "%s cannot be loaded by jobs", path[0] ? path : "the front");
    else
        add(d, "front files", CHECK_OK, NULL, "%s%s%s", path,
            placement[0] ? ", placed by " : "", placement);
}

/* One run of sluice-selftest as it is, outside any slice: what the loader finds. */
static json_t *ask_loader(struct doctor *d, struct sl_err *err)
{
    char program[4096 + 32], line[8192];
    struct child c;
    snprintf(program, sizeof program, "%s/sluice-selftest", d->dir);
    const char *argv[] = { program, "--info", NULL };
    int rc = child_start(&c, argv, err);
    if (rc < 0)
        return NULL;
    rc = child_read_line(&c, line, sizeof line, INFO_MS, err);
    child_finish(&c, rc == -SL_TIMEOUT ? 0 : 2000);
    return rc < 0 ? NULL : json_parse(line, strlen(line), err);
}

/* Loader layers came with ocl-icd 2.3.0; the Khronos loader counts from 3.0.  One that
 * says no version is proven, or not, by the run below. */
static bool has_layers(const char *version)
{
    int major, minor;
    return sscanf(version, "%d.%d", &major, &minor) != 2 || major > 2 ||
           (major == 2 && minor >= 3);
}

/* The drivers of a folder; *pocl: is PoCL among them? */
static unsigned count_icds(const char *dir, bool *pocl)
{
    unsigned count = 0;
    DIR *folder = opendir(dir);
    *pocl = false;
    if (!folder)
        return 0;
    for (struct dirent *e; (e = readdir(folder));) {
        size_t len = strlen(e->d_name);
        if (len <= 4 || strcmp(e->d_name + len - 4, ".icd"))
            continue;
        count++;
        *pocl |= strstr(e->d_name, "pocl") != NULL;
    }
    closedir(folder);
    return count;
}

bool doctor_can_make(const char *path)
{
    char at[4096];
    struct stat st;
    snprintf(at, sizeof at, "%s", path);
    while (stat(at, &st) && errno == ENOENT) {
        char *slash = strrchr(at, '/');
        if (!slash)
            return false;
        slash[slash == at] = '\0';
    }
    return !stat(at, &st) && S_ISDIR(st.st_mode) && !access(at, W_OK | X_OK);
}

/* Where PoCL keeps what it compiles (lib/CL/pocl_cache.c); without it, it shows no device. */
static void find_pocl_cache(char *out, size_t size)
{
    const char *own = getenv("POCL_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (own)
        snprintf(out, size, "%s", own);
    else if (xdg && xdg[0])
        snprintf(out, size, "%s/pocl", xdg);
    else
        snprintf(out, size, "%s/.cache/pocl", home ? home : "");
}

static void check_drivers(struct doctor *d, const json_t *info)
{
    const char *dir = getenv("OCL_ICD_VENDORS");
    char cache[256];
    bool pocl;
    if (!dir)
        dir = "/etc/OpenCL/vendors";
    unsigned icds = count_icds(dir, &pocl);
    d->visible = json_array_size(json_object_get(info, "devices"));
    find_pocl_cache(cache, sizeof cache);
    if (d->visible)
        add(d, "drivers", CHECK_OK, NULL, "%u in %s, %zu device%s", icds, dir, d->visible,
            d->visible == 1 ? "" : "s");
    else if (pocl && !doctor_can_make(cache))
        add(d, "drivers", CHECK_BROKEN,
            agent_is_mine(d)
                ? "set HOME to a folder that can be written, then sluice down: an"
                  " agent looks for devices at its start"
                : "set HOME to a folder that can be written",
            "%u in %s, but no device: PoCL cannot write its cache, %s", icds, dir, cache);
    else
        add(d, "drivers", CHECK_BROKEN,
            "install the vendor's OpenCL driver, or for the CPU: apt install "
            "pocl-opencl-icd",
            icds ? "%u in %s, but %s" : "%u in %s: %s", icds, dir, text_of(info, "error"));
}

static void check_loader(struct doctor *d)
{
    struct sl_err err = { 0 };
    AUTO_JSON json_t *info = ask_loader(d, &err);

    if (!info) {
        add(d, "loader", CHECK_BROKEN, "a vendor's library may hang: try clinfo", "%s",
            err.msg);
        return;
    }
    const char *path = text_of(info, "loader"), *name = text_of(info, "loader_name");
    const char *version = text_of(info, "loader_version");
    if (!path[0]) {
        add(d, "loader", CHECK_BROKEN,
            "install an OpenCL loader: apt install ocl-icd-libopencl1", "%s",
            text_of(info, "error"));
        return;
    }
    if (!has_layers(version))
        add(d, "loader", CHECK_BROKEN, "it needs ocl-icd 2.3.0 or newer",
            "%s %s has no layers", name, version);
    else
        add(d, "loader", CHECK_OK, NULL, "%s%s%s%s%s", path, name[0] ? ", " : "", name,
            version[0] ? " " : "", version);
    check_drivers(d, info);
}

static void check_devices(struct doctor *d)
{
    struct sl_err err = { 0 };
    AUTO_FREE struct device *devices = NULL;
    size_t count = 0, good = 0;
    char why[200] = "", fix[200] = "see sluice devices";

    if (fetch_devices(d->cli, &devices, &count, &err) < 0) {
        add(d, "devices", CHECK_BROKEN, "read agent.log in the run directory", "%s",
            err.msg);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (devices[i].state == DEVICE_OK) {
            good++;
            d->real += !devices[i].emulated;
        } else if (!why[0]) {
            const char *dir = strstr(devices[i].why, ", in /");
            if (devices[i].state == DEVICE_HELD && dir)
                snprintf(fix, sizeof fix, "sluice --run-dir %s down gives it back",
                         dir + strlen(", in "));
            snprintf(why, sizeof why, "; %s is %s: %s", devices[i].id,
                     device_state_name(devices[i].state), devices[i].why);
        }
    }
    if (!count)
        add(d, "devices", CHECK_BROKEN,
            "see the drivers above; an agent looks at its start: sluice down, then sluice "
            "up",
            "the agent found none");
    else if (!good)
        add(d, "devices", CHECK_BROKEN, fix, "none of %zu can be lent%s", count, why);
    else
        add(d, "devices", why[0] ? CHECK_WARN : CHECK_OK, fix, "%zu of %zu can be lent%s%s",
            good, count,
            d->real == good ? ""
            : d->real       ? ", some of them emulated"
                            : ", emulated",
            why);
}

/* What the broker's ledger says of the lease in which the self-test still runs. */
static void check_front(struct doctor *d, const struct lease *l)
{
    const struct lease_slice *s = &l->slice[0];
    char grades[32];

    if (!l->slice_count || !l->clients)
        add(d, "front", CHECK_BROKEN,
            "the loader may have dropped the layer: is front/libsluice-opencl.so in the "
            "run directory readable, and of this machine's kind?",
            "no process of the lease has said hello to the broker");
    else if (strcmp(l->placement, "mount"))
        add(d, "front", CHECK_WARN,
            "as root, or with sluice run --userns, the front is mounted over the loader",
            "in place by environment, grade %s: a child that clears its environment is not "
            "held",
            format_grades(&l->grades, grades));
    else
        add(d, "front", CHECK_OK, NULL, "in place by mount, grade %s",
            format_grades(&l->grades, grades));
    if (s->kernels == UNKNOWN_U64 || !s->kernels)
        add(d, "kernel", CHECK_BROKEN,
            "the program reached the device beside the front; see docs/internals",
            "it ran, but the ledger counts none");
    else
        add(d, "kernel", CHECK_OK, NULL, "ran under the gate; the ledger counts %llu",
            (unsigned long long)s->kernels);
}

static uint64_t number_of(const json_t *obj, const char *key)
{
    uint64_t value = UNKNOWN_U64;
    json_get_u64(obj, key, &value, NULL);
    return value;
}

static void check_memory(struct doctor *d, const json_t *said)
{
    char shown[32], taken[32];
    uint64_t global = number_of(said, "global_mem"), got = number_of(said, "taken_bytes");
    const json_t *code = json_object_get(said, "one_more_code");

    format_bytes(global, shown);
    if (global != CHECK_MEM) {
        add(d, "size shown", CHECK_BROKEN, "the front is not in place",
            "the program sees %s instead of 64 MiB", shown);
        return;
    }
    add(d, "size shown", CHECK_OK, NULL, "the program sees exactly 64 MiB");
    if (got != CHECK_MEM)
        add(d, "memory bound", CHECK_BROKEN,
            "the slice must be usable to its last byte; please report it",
            "only %s of 64 MiB could be taken (OpenCL error %d)", format_bytes(got, taken),
            (int)json_integer_value(json_object_get(said, "take_code")));
    else if (!json_is_true(json_object_get(said, "one_more_refused")))
        add(d, "memory bound", CHECK_BROKEN,
            "allocations pass beside the front; please report it",
            "64 MiB were taken, and one byte more as well");
    else
        add(d, "memory bound", CHECK_OK, NULL,
            "64 MiB were taken; one byte more was refused with OpenCL error %d",
            (int)json_integer_value(code));
}

/* The self-test inside a slice; it holds everything until the ledger was read. */
static void check_run(struct doctor *d)
{
    char sluice[4096 + 32], program[4096 + 32], name[32], line[8192];
    struct child c;
    struct lease l = { 0 };
    struct sl_err err = { 0 };

    snprintf(sluice, sizeof sluice, "%s/sluice", d->dir);
    snprintf(program, sizeof program, "%s/sluice-selftest", d->dir);
    snprintf(name, sizeof name, "doctor-%d", (int)getpid());
    const char *argv[] = { sluice,   "--run-dir", d->cli->rundir.path,
                           "-q",     "run",       "--mem",
                           "64MiB",  "--compute", "1..100",
                           "--name", name,        "--",
                           program,  "--check",   "--hold",
                           NULL };
    int rc = child_start(&c, argv, &err);
    if (rc == 0)
        rc = child_read_line(&c, line, sizeof line, CHECK_MS, &err);
    int seen = rc == 0 ? fetch_lease(d->cli, name, &l, &err) : rc;
    int status = child_finish(&c, rc == -SL_TIMEOUT ? 0 : 10000);
    AUTO_JSON json_t *said = rc == 0 ? json_parse(line, strlen(line), &err) : NULL;
    if (!said) {
        c.said[strcspn(c.said, "\n")] = 0;
        add(d, "run", CHECK_BROKEN,
            fix_of(c.said, "if there is no room, end other leases first"),
            "%s (exit status %d): %s", err.msg, status,
            c.said[0] ? c.said : "nothing on stderr");
        return;
    }
    if (json_object_get(said, "error") || status) {
        add(d, "run", CHECK_BROKEN, "does the program run without sluice run?",
            "exit status %d: %s", status, text_of(said, "error"));
        return;
    }
    add(d, "run", CHECK_OK, NULL, "a program ran in a slice of 64 MiB and ended well");
    if (seen < 0)
        add(d, "front", CHECK_BROKEN, "please report it",
            "the lease of a running program was not found: %s", err.msg);
    else
        check_front(d, &l);
    check_memory(d, said);
}

void doctor_examine(struct doctor *d)
{
    check_rundir(d);
    if (d->checks[0].verdict == CHECK_BROKEN)
        return;
    check_programs(d);
    check_loader(d);
    check_agent(d);
    if (d->checks[d->count - 1].verdict == CHECK_SKIPPED)
        return; /* it starts the broker and finds the devices */
    check_broker(d);
    if (!d->node)
        return;
    check_front_files(d);
    check_devices(d);
    if (!d->may_run)
        add(d, "run", CHECK_SKIPPED, NULL, "not tried: --no-run");
    else if (!d->visible)
        add(d, "run", CHECK_SKIPPED, NULL,
            "a program would find no device: see the drivers");
    else if (!d->real)
        add(d, "run", CHECK_SKIPPED, NULL,
            "there is no real device that a program could use");
    else
        check_run(d);
}

void doctor_finish(struct doctor *d)
{
    json_decref(d->node);
}

static const struct {
    const char *name, *word;
    enum style style;
} verdicts[] = {
    [CHECK_OK] = { "ok", "ok", STYLE_GOOD },
    [CHECK_WARN] = { "warning", "look", STYLE_WARN },
    [CHECK_SKIPPED] = { "skipped", "skip", STYLE_DIM },
    [CHECK_BROKEN] = { "broken", "BROKEN", STYLE_BAD },
};

static json_t *to_json(const struct doctor *d, bool well)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->count; i++) {
        const struct check *c = &d->checks[i];
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s*}", "hop", c->hop,
                                              "verdict", verdicts[c->verdict].name, "found",
                                              c->found, "fix", c->fix[0] ? c->fix : NULL));
    }
    return json_pack("{s:b,s:o}", "well", well, "checks", list);
}

int doctor_print(const struct doctor *d)
{
    struct cli *cli = d->cli;
    bool well = true, whole = true;

    for (size_t i = 0; i < d->count; i++) {
        well &= d->checks[i].verdict != CHECK_BROKEN;
        whole &= d->checks[i].verdict != CHECK_SKIPPED;
    }
    if (cli->format == CLI_JSON) {
        int rc = cli_print_json(cli, to_json(d, well));
        return rc ? rc : !well;
    }
    for (size_t i = 0; i < d->count; i++) {
        const struct check *c = &d->checks[i];
        enum style style = verdicts[c->verdict].style;
        fprintf(cli->out, "%s%-7s%s %-14s %s\n", style_begin(style, cli->colour),
                verdicts[c->verdict].word, style_end(style, cli->colour), c->hop, c->found);
        if (c->fix[0])
            fprintf(cli->out, "%23sto do: %s\n", "", c->fix);
    }
    fputs(!well ? "\nsomething is broken: begin with the first BROKEN line, the others may "
                  "follow from it\n"
          : !whole ? "\nnothing is broken in what was tested\n"
                   : "\nall is well\n",
          cli->out);
    return !well;
}

int cmd_doctor(struct cli *cli, const struct cli_args *args)
{
    struct doctor d = { .cli = cli, .may_run = !cli_has(args, "no-run") };
    doctor_examine(&d);
    int status = doctor_print(&d);
    doctor_finish(&d);
    return status;
}
