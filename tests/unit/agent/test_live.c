/* The agent with its broker: leases, waiting, resize, and what survives which death. */
#include "live_one.h"

#include "../rows.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"
#include "proto/ctl.h"

/* A zombie that nobody reaps, as in a container, is dead. */
static bool alive(pid_t pid)
{
    struct proc_id id;
    return proc_identify(pid, &id, NULL) == 0 && proc_is_alive(&id);
}

static void want(const char *label, json_t *j, const char *path, const char *value)
{
    ROW_STR(label, live_get(j, path), value);
}

static void grant_resize_release(void **state)
{
    json_t *j;
    start(TWO_CARDS);
    ROW("a lease is granted", ask(HALF ",\"name\":\"b\"}", &j) == 201);
    want("it is active", j, "state", "active");
    want("on the first card", j, "device", "emu-a100-80g-0");
    want("and emulated", j, "emulated", "true");
    json_decref(j);
    ROW("a name lives once per tenant", ask(HALF ",\"name\":\"b\"}", NULL) == 409);
    ROW("the second of 48 GiB", ask(HALF "}", &j) == 201);
    want("goes to the other card (fact 1)", j, "device", "emu-a100-80g-1");
    json_decref(j);
    ROW("100 GiB on one device is refused (fact 3)",
        ask("{\"mem\":{\"request\":107374182400}}", &j) == 409);
    want("by memory", j, "cause", "memory");
    want("for ever", j, "never", "true");
    json_decref(j);
    ROW("a plan grants nothing", live_call(&l, "POST", "/v1/leases?dry_run=1",
                                           "{\"mem\":{\"request\":1048576},"
                                           "\"compute\":{\"request\":10}}",
                                           &j) == 200);
    want("it names the device", j, "device", "emu-a100-80g-0");
    want("and the normal form", j, "normal", "--mem 1MiB --compute 1% --mode hard");
    json_decref(j);
    ROW("a plan of two slices", live_call(&l, "POST", "/v1/leases?dry_run=1",
                                          "{\"slices\":2,\"mem\":{\"request\":1048576},"
                                          "\"compute\":{\"request\":10}}",
                                          &j) == 200);
    want("has both in its normal form", j, "normal",
         "--mem 1MiB --compute 1% --mode hard --devices 2");
    json_decref(j);
    ROW("there are two leases", live_until(&l, "/v1/node", "leases", "2"));

    ROW("grow", live_call(&l, "PATCH", "/v1/leases/b",
                          "{\"mem\":{\"request\":64424509440}}", &j) == 200);
    want("is acknowledged", j, "acknowledged", "true");
    want("and a new epoch", j, "lease.epoch", "2");
    want("with the new size", j, "lease.mem.limit", "64424509440");
    json_decref(j);
    ROW("beyond the card is no-capacity",
        live_call(&l, "PATCH", "/v1/leases/b", "{\"mem\":{\"request\":96636764160}}", &j) ==
            409);
    want("with what there could be", j, "most_bytes", "85197848576");
    json_decref(j);
    ROW("nothing changed", live_until(&l, "/v1/leases/b", "epoch", "2"));
    ROW("a share as people write it",
        live_call(&l, "PATCH", "/v1/leases/b", "{\"compute\":\"20..60\",\"priority\":70}",
                  &j) == 200);
    want("makes it burst", j, "lease.mode", "burst");
    want("with its limit", j, "lease.compute.limit", "600");
    json_decref(j);
    ROW("a memory limit above the request",
        live_call(&l, "PATCH", "/v1/leases/b",
                  "{\"mem\":{\"request\":1073741824,\"limit\":3221225472}}", NULL) == 200);
    ROW("a new request under it",
        live_call(&l, "PATCH", "/v1/leases/b", "{\"mem\":{\"request\":2147483648}}", &j) ==
            200);
    want("leaves the limit", j, "lease.mem.limit", "3221225472");
    json_decref(j);
    ROW("one above it is refused",
        live_call(&l, "PATCH", "/v1/leases/b", "{\"mem\":{\"request\":4294967296}}", &j) ==
            400);
    want("with both figures", j, "detail",
         "the memory limit, 3.00 GiB, would be below the request, 4.00 GiB: change both "
         "(--mem, --mem-limit)");
    json_decref(j);
    ROW("the limit goes up alone",
        live_call(&l, "PATCH", "/v1/leases/b", "{\"mem\":{\"limit\":4294967296}}", &j) ==
            200);
    want("and the request stays", j, "lease.mem.request", "2147483648");
    json_decref(j);
    ROW("an unknown key is refused",
        live_call(&l, "PATCH", "/v1/leases/b", "{\"memory\":5}", NULL) == 400);
    ROW("nothing to change is refused",
        live_call(&l, "PATCH", "/v1/leases/b", "{}", NULL) == 400);

    ROW("release", live_call(&l, "DELETE", "/v1/leases/b", NULL, &j) == 200);
    want("it is released at once when nothing runs", j, "state", "released");
    json_decref(j);
    ROW("the name is free again", ask(HALF ",\"name\":\"b\"}", NULL) == 201);
    ROW("one that is not there",
        live_call(&l, "DELETE", "/v1/leases/L99", NULL, NULL) == 404);
    ROW("what the device achieved is known, of its own samples",
        live_until(&l, "/v1/devices", "devices.0.compute.achieved_10s", "0"));
}

static void waiting(void **state)
{
    json_t *j;
    start(((const char *const[]){ "--emulate", "t4", NULL }));
    ROW("the whole card", ask("{\"name\":\"all\"}", NULL) == 201);
    ROW("no room, no wait", ask("{}", &j) == 409);
    want("compute or memory", j, "never", "false");
    json_decref(j);
    ROW("a wait that ends says so", ask("{\"wait_ms\":100}", NULL) == 504);
    ROW("what never fits does not wait",
        ask("{\"mem\":{\"request\":107374182400},\"wait_ms\":\"forever\"}", NULL) == 409);

    pid_t old = live_call_async(&l, 0, "POST", "/v1/leases",
                                "{\"name\":\"old\",\"mem\":{\"request\":1073741824},"
                                "\"compute\":{\"request\":300},\"wait_ms\":20000}");
    ROW("it is shown as pending", live_until(&l, "/v1/leases/old", "state", "pending"));
    ROW("with the memory that it asks",
        live_lease_is(&l, "old", "slices.0.mem.limit", "1073741824"));
    ROW("and the share", live_lease_is(&l, "old", "compute.request", "300"));
    pid_t keen = live_call_async(&l, 0, "POST", "/v1/leases",
                                 "{\"name\":\"keen\",\"priority\":90,\"wait_ms\":20000}");
    ROW("another", live_until(&l, "/v1/leases/keen", "state", "pending"));
    ROW("a whole device is no figure yet",
        live_lease_is(&l, "keen", "slices.0.mem.request", "null"));
    pid_t gone = live_call_async(&l, 0, "POST", "/v1/leases",
                                 "{\"name\":\"gone\",\"priority\":99,\"wait_ms\":20000}");
    ROW("and one more", live_until(&l, "/v1/leases/gone", "state", "pending"));
    kill(gone, SIGKILL);
    waitpid(gone, NULL, 0);
    ROW("who goes away waits no more",
        live_until(&l, "/v1/leases/gone", "state", "released"));

    live_call(&l, "DELETE", "/v1/leases/all", NULL, NULL);
    ROW("the higher priority is first", live_join(keen) == 200);
    ROW("the older one still waits", live_until(&l, "/v1/leases/old", "state", "pending"));
    live_call(&l, "DELETE", "/v1/leases/keen", NULL, NULL);
    ROW("then it is its turn", live_join(old) == 200);
    ROW("granted", live_until(&l, "/v1/leases/old", "state", "active"));
}

/* The broker's word on a lease of a number that this agent never gave: bytes that are gone
 * without its knowledge, as a program takes them between two looks. */
static int32_t tell_broker(struct proto_ctl m, enum proto_ctl_kind kind)
{
    char path[90];
    snprintf(path, sizeof path, "%s/control.sock", l.dir);
    int fd = sock_connect_unix(path, SOCK_SEQPACKET, NULL);
    m.version = PROTO_VERSION;
    m.kind = (uint16_t)kind;
    assert_int_equal(send(fd, &m, sizeof m, MSG_NOSIGNAL), sizeof m);
    assert_int_equal(recv(fd, &m, sizeof m, 0), sizeof m);
    close(fd);
    return m.code;
}

static void broker_has_no_room(void **state)
{
    json_t *j;
    struct proto_ctl m = { .lease = { .number = 900, .epoch = 1, .slice_count = 1 } };
    m.lease.slice[0] = (struct proto_slice){ .request_permille = 10,
                                             .limit_permille = 10,
                                             .mem_request_bytes = 70ull << 30,
                                             .mem_limit_bytes = 70ull << 30 };
    start(((const char *const[]){ "--emulate", "a100-80g", NULL }));
    ROW("bytes go past the agent", tell_broker(m, PROTO_CTL_LEASE) == 0);
    ROW("one that does not wait is refused", ask(HALF ",\"name\":\"now\"}", &j) == 409);
    want("as for any lack of room", j, "cause", "memory");
    want("which may end", j, "never", "false");
    json_decref(j);
    pid_t waits = live_call_async(&l, 0, "POST", "/v1/leases",
                                  HALF ",\"name\":\"later\",\"wait_ms\":20000}");
    ROW("one that waits does", live_lease_is(&l, "later", "state", "pending"));
    m = (struct proto_ctl){ .drop = { .number = 900, .epoch = 1 } };
    ROW("the bytes come back", tell_broker(m, PROTO_CTL_DROP) == 0);
    ROW("and it has room", live_join(waits) == 200);
    ROW("under the same number", live_lease_is(&l, "later", "id", "L2"));
}

static void time_is_over(void **state)
{
    start(TWO_CARDS);
    ROW("for 150 ms", ask(HALF ",\"name\":\"t\",\"time_ms\":150}", NULL) == 201);
    ROW("it ends by itself", live_until(&l, "/v1/leases/t", "state", "released"));
    ROW("and says why", live_until(&l, "/v1/leases/t", "why", "out of time"));
}

static void agent_killed(void **state)
{
    json_t *j;
    start(TWO_CARDS);
    ask(HALF ",\"name\":\"a\"}", NULL);
    ask(HALF ",\"name\":\"b\"}", NULL);
    live_call(&l, "PATCH", "/v1/leases/a", "{\"mem\":{\"request\":64424509440}}", NULL);
    live_call(&l, "DELETE", "/v1/leases/b", NULL, NULL);
    pid_t broker = live_broker(&l);
    live_stop(&l, SIGKILL);
    start(TWO_CARDS);
    ROW("the broker is the same", live_broker(&l) == broker);
    ROW("it still holds the lease", live_until(&l, "/v1/node", "broker.leases", "1"));
    live_call(&l, "GET", "/v1/leases/a", NULL, &j);
    want("the lease lives", j, "state", "active");
    want("with its epoch", j, "epoch", "2");
    want("and size", j, "mem.request", "64424509440");
    json_decref(j);
    ROW("what was released stays released",
        live_until(&l, "/v1/leases/b", "state", "released"));
    ROW("numbers are not given twice", ask(HALF "}", &j) == 201);
    want("the third", j, "id", "L3");
    json_decref(j);
    ROW("and another machine's devices do not take their place",
        live_stop(&l, SIGTERM) == 0);
    start(((const char *const[]){ "--emulate", "l4", NULL }));
    ROW("a device that is gone says so",
        live_until(&l, "/v1/devices", "devices.0.state", "failed"));
    ROW("the new one comes after",
        live_until(&l, "/v1/devices", "devices.2.id", "emu-l4-0"));
    live_release(&l, "L3");
    ROW("a device that is gone goes with its last lease",
        live_until(&l, "/v1/devices", "devices.1.id", "emu-l4-0"));
    live_release(&l, "a");
    ROW("each of them", live_until(&l, "/v1/devices", "devices.0.id", "emu-l4-0"));
    ROW("and the index stays", live_until(&l, "/v1/devices", "devices.0.index", "2"));
}

static void devices_of_earlier_starts(void **state)
{
    start(((const char *const[]){ "--emulate", "t4:3", NULL }));
    live_call(&l, "DELETE", "/v1/node", NULL, NULL);
    live_stop(&l, 0);
    start(((const char *const[]){ "--emulate", "l4", NULL }));
    ask("{\"name\":\"a\",\"mem\":{\"request\":1048576}}", NULL);
    live_stop(&l, SIGKILL);
    start(((const char *const[]){ "--emulate", "l4,t4", NULL }));
    ROW("what is leased keeps its place",
        live_until(&l, "/v1/devices", "devices.0.id", "emu-l4-0"));
    ROW("what is found is there once",
        live_until(&l, "/v1/devices", "devices.1.id", "emu-t4-0"));
    ROW("what is neither is not kept", live_until(&l, "/v1/devices", "devices.2.id", ""));
}

static void options_go_on(void **state)
{
    json_t *j;
    start(((const char *const[]){ "--emulate", "a100-80g:2", "--share-tenants",
                                  "--mem-overcommit", "2", NULL }));
    ask(HALF ",\"name\":\"a\"}", NULL);
    live_stop(&l, SIGKILL);
    start(((const char *const[]){ "--embedded", "--mem-overcommit", "3", NULL }));
    live_call(&l, "GET", "/v1/node", NULL, &j);
    want("an agent that follows has the options of the one before", j, "share_tenants",
         "true");
    want("where it was given no others", j, "mem_overcommit_permille", "3000");
    want("it stays as the one before did", j, "embedded", "false");
    want("what was taken over is said", j, "options_taken_over",
         "--emulate a100-80g:2 --share-tenants");
    want("and what was not", j, "options_lost", "--mem-overcommit 2");
    json_decref(j);
    ROW("the devices are there", live_until(&l, "/v1/devices", "devices.0.state", "ok"));

    live_stop(&l, SIGKILL);
    start(((const char *const[]){ "--emulate", "a100-80g:2,l4", NULL }));
    live_call(&l, "GET", "/v1/node", NULL, &j);
    want("the last word on each holds", j, "mem_overcommit_permille", "3000");
    want("devices are one option", j, "options_lost", "--emulate a100-80g:2");
    json_decref(j);

    live_release(&l, "a");
    live_stop(&l, SIGKILL);
    start(TWO_CARDS);
    live_call(&l, "GET", "/v1/node", NULL, &j);
    want("with no lease nothing goes on", j, "share_tenants", "false");
    want("and nothing is said", j, "options_lost", "null");
    json_decref(j);
}

static void broker_killed(void **state)
{
    start(TWO_CARDS);
    ask(HALF ",\"name\":\"a\"}", NULL);
    pid_t broker = live_broker(&l);
    kill(broker, SIGKILL);
    ROW("there is another one", live_until(&l, "/v1/node", "broker.started_by_agent", "2"));
    ROW("which was told of the lease", live_until(&l, "/v1/node", "broker.leases", "1"));
    ROW("and of the devices", live_until(&l, "/v1/node", "broker.devices", "2"));
    ROW("resize works",
        live_call(&l, "PATCH", "/v1/leases/a", "{\"priority\":1}", NULL) == 200);
}

static void full_disk(void **state)
{
    struct rlimit was, full = { 1, 0 };
    json_t *j;
    start(TWO_CARDS);
    ask(HALF ",\"name\":\"a\"}", NULL);
    getrlimit(RLIMIT_FSIZE, &was);
    full.rlim_max = was.rlim_max;
    prlimit(l.agent, RLIMIT_FSIZE, &full, NULL);
    ROW("a new lease is refused", ask(HALF "}", &j) == 500);
    want("as the disk's fault", j, "code", "io");
    json_decref(j);
    ROW("a resize too", live_call(&l, "PATCH", "/v1/leases/a",
                                  "{\"mem\":{\"request\":64424509440}}", NULL) == 500);
    ROW("the old figures hold", live_until(&l, "/v1/leases/a", "epoch", "1"));
    ROW("a release works", live_call(&l, "DELETE", "/v1/leases/a", NULL, &j) == 200);
    want("at once", j, "state", "released");
    json_decref(j);
    prlimit(l.agent, RLIMIT_FSIZE, &was, NULL);
    ROW("with room again leases are granted", ask(HALF ",\"name\":\"c\"}", NULL) == 201);
    usleep(1200000); /* the second in which the release is written after all */
    live_stop(&l, SIGKILL);
    start(TWO_CARDS);
    ROW("the release was not forgotten",
        live_until(&l, "/v1/leases/a", "state", "released"));
    ROW("nor the new lease", live_until(&l, "/v1/leases/c", "state", "active"));
}

static void two_agents(void **state)
{
    struct live other;
    start(TWO_CARDS);
    other = l;
    const char *said = live_start(&other, TWO_CARDS);
    ROW("the second says who has it", strstr(said, "already running") != NULL);
    ROW("and ends well", live_stop(&other, 0) == 0);
    ROW("the first goes on", live_call(&l, "GET", "/v1/node", NULL, NULL) == 200);
}

static void socket_taken(void **state)
{
    start(TWO_CARDS);
    assert_int_equal(unlink(l.sock), 0);
    for (int i = 0; i < 1000 && access(l.sock, F_OK) != 0; i++)
        usleep(10 * 1000);
    ROW("a socket that a cleaner took is there again", access(l.sock, F_OK) == 0);
    ROW("and the agent is found", live_call(&l, "GET", "/v1/devices", NULL, NULL) == 200);
}

static void racing_agents(void **state)
{
    pid_t racer[12];
    json_t *j;
    for (size_t i = 0; i < ARRAY_LEN(racer); i++) {
        racer[i] = fork();
        if (racer[i] == 0) {
            int null = open("/dev/null", O_WRONLY);
            dup2(null, 2);
            execl(AGENT_PROGRAM, AGENT_PROGRAM, "--run-dir", l.dir, "--emulate", "t4",
                  (char *)NULL);
            _exit(127);
        }
    }
    bool well = true, answered = true;
    for (size_t i = 0; i < ARRAY_LEN(racer); i++) {
        int status;
        waitpid(racer[i], &status, 0);
        well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
        answered &= live_call(&l, "GET", "/v1/node", NULL, NULL) == 200;
    }
    ROW("every one of them ends well", well);
    ROW("and whoever returned finds an agent", answered);
    live_call(&l, "GET", "/v1/node", NULL, &j);
    want("which started one broker", j, "broker.started_by_agent", "1");
    pid_t agent = atoi(live_get(j, "pid"));
    json_decref(j);
    ROW("it is a daemon of its own", getsid(agent) != getsid(0));
    live_call(&l, "DELETE", "/v1/node", NULL, NULL);
    for (int i = 0; i < 200 && alive(agent); i++)
        usleep(20000);
}

static void damaged_journal(void **state)
{
    char path[100], *text = NULL;
    size_t len;
    start(TWO_CARDS);
    ask(HALF "}", NULL);
    live_stop(&l, SIGTERM);
    snprintf(path, sizeof path, "%s/journal", l.dir);
    assert_int_equal(file_read(path, 1 << 20, &text, &len, NULL), 0);
    text[len / 3] ^= 1;
    assert_int_equal(file_write_atomic(path, text, len, 0600, NULL), 0);
    const char *said = live_start(&l, TWO_CARDS);
    ROW("it is not guessed what was lost",
        said[0] == '-' && strstr(said, "damaged at byte") && strstr(said, "move it away"));
    ROW("and nothing serves", live_stop(&l, 0) == 1);
    unlink(path);
    start(TWO_CARDS);
    ROW("with it away, what the broker still held is let go",
        live_until(&l, "/v1/node", "broker.leases", "0"));
    free(text);
}

static void embedded_ends(void **state)
{
    start(((const char *const[]){ "--emulate", "t4", "--embedded", "--idle-exit", "1500ms",
                                  NULL }));
    pid_t broker = live_broker(&l);
    ask("{\"name\":\"a\"}", NULL); /* within the 1.5 s, on a loaded machine too */
    usleep(1800000);
    ROW("not while a lease lives",
        live_call(&l, "DELETE", "/v1/leases/a", NULL, NULL) == 200);
    ROW("then by itself", live_stop(&l, 0) == 0);
    for (int i = 0; i < 100 && alive(broker); i++)
        usleep(20000);
    ROW("with its broker", !alive(broker));
}

static void down(void **state)
{
    json_t *j;
    start(TWO_CARDS);
    ask(HALF ",\"name\":\"a\"}", NULL);
    pid_t broker = live_broker(&l);
    ROW("down is refused while leases live",
        live_call(&l, "DELETE", "/v1/node", NULL, &j) == 409);
    want("and says which", j, "leases.0.name", "a");
    json_decref(j);
    ROW("by force it is done",
        live_call(&l, "DELETE", "/v1/node?force=1", NULL, NULL) == 200);
    ROW("the agent ended", live_stop(&l, 0) == 0);
    for (int i = 0; i < 100 && alive(broker); i++)
        usleep(20000);
    ROW("the broker too", !alive(broker));
}

/* A shim of our own: a process that has a child, anchors it, and waits. */
static pid_t fake_shim(const char *lease, bool ignore_term, pid_t *child)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t shim = fork();
    if (shim == 0) {
        char path[80], body[60];
        setsid();
        signal(SIGTERM, ignore_term ? SIG_IGN : SIG_DFL); /* the program's from its start */
        pid_t mine = fork();
        while (mine == 0)
            pause();
        signal(SIGTERM, SIG_IGN);
        snprintf(path, sizeof path, "/v1/leases/%s/anchor", lease);
        snprintf(body, sizeof body, "{\"child_pid\":%d}", mine);
        int said[2] = { live_call(&l, "POST", path, body, NULL), mine };
        if (write(ends[1], said, sizeof said) < 0)
            _exit(1);
        waitpid(mine, NULL, 0);
        snprintf(path, sizeof path, "/v1/leases/%s/exit", lease);
        live_call(&l, "POST", path, "{\"exit_status\":7}", NULL);
        _exit(0);
    }
    int said[2] = { 0, 0 };
    assert_int_equal(read(ends[0], said, sizeof said), sizeof said);
    close(ends[0]);
    close(ends[1]);
    *child = said[1];
    assert_int_equal(said[0], 200);
    return shim;
}

static void job_ends(void **state)
{
    pid_t child;
    start(TWO_CARDS);
    ask(HALF ",\"name\":\"a\",\"command\":\"prog\"}", NULL);
    pid_t shim = fake_shim("a", false, &child);
    ROW("another process is not its shim",
        live_call(&l, "POST", "/v1/leases/a/exit", "{\"exit_status\":0}", NULL) == 403);
    ROW("nor may it be anchored twice",
        live_call(&l, "POST", "/v1/leases/a/anchor", "{\"child_pid\":1}", NULL) == 409);
    kill(child, SIGTERM);
    ROW("the end of the program is the end of the lease",
        live_until(&l, "/v1/leases/a", "state", "released"));
    ROW("with its status", live_until(&l, "/v1/leases/a", "exit_status", "7"));
    ROW("and no log is named, since none was kept",
        live_until(&l, "/v1/jobs/a", "log", "null"));
    waitpid(shim, NULL, 0);
}

static void job_is_killed(void **state)
{
    pid_t child;
    start(((const char *const[]){ "--emulate", "t4", "--kill-grace", "200ms", NULL }));
    ask("{\"name\":\"a\",\"command\":\"prog\"}", NULL);
    pid_t shim = fake_shim("a", true, &child);
    ROW("a release ends a program that ignores SIGTERM",
        live_call(&l, "DELETE", "/v1/leases/a", NULL, NULL) == 200);
    waitpid(shim, NULL, 0);
    ROW("it is gone", !alive(child));
    ROW("the room is back", ask("{}", NULL) == 201);
}

static void shim_dies(void **state)
{
    pid_t child;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start(TWO_CARDS);
    ask(HALF ",\"name\":\"a\",\"command\":\"prog\"}", NULL);
    pid_t shim = fake_shim("a", false, &child);
    kill(shim, SIGKILL);
    waitpid(shim, NULL, 0);
    if (geteuid() == 0) { /* without a cgroup nobody knows the orphan */
        int status;
        ROW("its orphan is ended",
            waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    } else {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    ROW("and the lease with it", live_until(&l, "/v1/leases/a", "state", "released"));
}

static void submitted(void **state)
{
    char path[100], *log = NULL, line[160];
    start(TWO_CARDS);
    ROW("a job is taken",
        live_call(
            &l, "POST", "/v1/jobs",
            "{\"lease\":{\"name\":\"j\",\"mem\":{\"request\":1048576},\"compute\":"
            "{\"request\":10}},\"argv\":[\"/bin/sh\",\"-c\",\"env; umask; pwd; exit 3\"],"
            "\"env\":[\"A=b\",\"SLUICE_LEASE=L99\"],\"cwd\":\"/usr\",\"umask\":63}",
            NULL) == 201);
    ROW("it ends", live_until(&l, "/v1/leases/j", "state", "released"));
    ROW("with its status", live_until(&l, "/v1/jobs/j", "exit_status", "3"));
    ROW("and in words", live_until(&l, "/v1/jobs/j", "why", "exited 3"));
    snprintf(path, sizeof path, "%s/jobs/L1/log", l.dir);
    ROW("and its log is named", live_until(&l, "/v1/jobs/j", "log", path));
    assert_int_equal(file_read(path, 65536, &log, NULL, NULL), 0);
    snprintf(line, sizeof line, "OPENCL_LAYERS=%s/front/libsluice-opencl.so\n", l.dir);
    ROW("the front is in its environment", strstr(log, line) != NULL);
    snprintf(line, sizeof line, "SLUICE_BROKER=%s/broker.sock\n", l.dir);
    ROW("the broker too", strstr(log, line) != NULL);
    ROW("and its own lease, whatever was said",
        strstr(log, "SLUICE_LEASE=L1\n") && !strstr(log, "L99"));
    ROW("its own variables", strstr(log, "A=b\n") != NULL);
    ROW("its umask", strstr(log, "0077\n") != NULL);
    ROW("and directory", strstr(log, "/usr\n") != NULL);
    free(log);
    static const char *const bad[] = { "{}", "{\"argv\":[]}", "{\"argv\":[5]}",
                                       "{\"argv\":[\"x\"],\"cwd\":\"here\"}",
                                       "{\"argv\":[\"x\"],\"umask\":4096}" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ROW(bad[i], live_call(&l, "POST", "/v1/jobs", bad[i], NULL) == 400);
}

/* A process that waits where this cgroup.procs is. */
static pid_t process_in(const char *procs)
{
    pid_t pid = fork();
    while (pid == 0)
        pause();
    FILE *f = fopen(procs, "w");
    assert_non_null(f);
    fprintf(f, "%d\n", pid);
    assert_int_equal(fclose(f), 0);
    return pid;
}

static void has_a_cgroup(void **state)
{
    json_t *j;
    char dir[200], *log = NULL, path[240];
    start(((const char *const[]){ "--emulate", "t4", "--kill-grace", "200ms", NULL }));
    ask("{\"name\":\"a\",\"command\":\"prog\"}", &j);
    snprintf(dir, sizeof dir, "%s", live_get(j, "cgroup"));
    json_decref(j);
    if (dir[0] != '/') {
        print_message("SKIP: a lease's cgroup: needs root and a v2 hierarchy\n");
        skip();
    }
    ROW("it is there before its program", access(dir, F_OK) == 0);
    live_release(&l, "a");
    ROW("and goes with the lease, used or not", access(dir, F_OK) != 0);

    ask("{\"name\":\"b\",\"command\":\"prog\"}", &j);
    snprintf(path, sizeof path, "%s/cgroup.procs", live_get(j, "cgroup"));
    json_decref(j);
    pid_t early = process_in(path);
    live_release(&l, "b");
    bool ended = false;
    for (int i = 0; i < 100 && !ended; i++, usleep(20000))
        ended = waitpid(early, NULL, WNOHANG) == early;
    kill(early, SIGKILL);
    ROW("what lived there before it was anchored ends with it", ended);

    pid_t child, shim;
    ask("{\"name\":\"c\"}", NULL);
    shim = fake_shim("c", false, &child);
    strstr(dir, "/L1-")[2] = '3';
    ROW("one without a command has one when it is anchored", access(dir, F_OK) == 0);
    kill(child, SIGTERM);
    waitpid(shim, NULL, 0);
    ROW("it ends", live_lease_is(&l, "c", "state", "released"));
    ROW("and takes its cgroup along", access(dir, F_OK) != 0);

    live_call(&l, "POST", "/v1/jobs",
              "{\"lease\":{\"name\":\"j\"},\"argv\":[\"cat\",\"/proc/self/cgroup\"]}",
              NULL);
    ROW("a job ends well", live_lease_is(&l, "j", "exit_status", "0"));
    snprintf(path, sizeof path, "%s/jobs/L4/log", l.dir);
    assert_int_equal(file_read(path, 65536, &log, NULL, NULL), 0);
    ROW("it ran in its own", strstr(log, "/L4-") != NULL);
    free(log);
}

static void never_anchored(void **state)
{
    start(((const char *const[]){ "--emulate", "t4", "--orphan-grace", "200ms", NULL }));
    ROW("a caller that asks and dies",
        live_join(live_call_async(&l, 0, "POST", "/v1/leases",
                                  "{\"name\":\"a\",\"command\":\"prog\"}")) == 200);
    ROW("gives its lease back", live_until(&l, "/v1/leases/a", "state", "released"));
    ROW("a lease without a command stays", ask("{\"name\":\"b\"}", NULL) == 201);
    usleep(500000);
    ROW("it is there", live_until(&l, "/v1/leases/b", "state", "active"));
}

/* The journal's marked points: what was promised exists afterwards, and at most one more.
 */
static void killed_at_marked_points(void **state)
{
    static const char *const points[] = { "journal.before-write", "journal.after-write",
                                          "journal.after-sync" };
    for (size_t p = 0; p < ARRAY_LEN(points); p++) {
        for (int nth = 5; nth <= 7; nth++) { /* after two devices and the options */
            char fault[64];
            int promised = 0, found = 0;
            json_t *j;
            live_init(&l);
            snprintf(fault, sizeof fault, "%s:kill@%d", points[p], nth);
            setenv("SLUICE_FAULT", fault, 1);
            start(TWO_CARDS);
            unsetenv("SLUICE_FAULT");
            while (promised < 10 &&
                   ask("{\"mem\":{\"request\":1048576},\"compute\":{\"request\":10}}",
                       NULL) == 201)
                promised++;
            ROW("it died where it was told to", promised == nth - 4);
            live_stop(&l, 0);
            start(TWO_CARDS);
            live_call(&l, "GET", "/v1/leases", NULL, &j);
            found = (int)json_array_size(json_object_get(j, "leases"));
            json_decref(j);
            ROW("no lease that was promised is lost", found >= promised);
            ROW("none is there that nobody asked for", found <= promised + 1);
            ROW("a written but unsynced one may stand, an unwritten one not",
                p > 0 || found == promised);
            char count[12];
            snprintf(count, sizeof count, "%d", found);
            ROW("the broker holds the same",
                live_until(&l, "/v1/node", "broker.leases", count));
            live_finish(&l);
            l.agent = 0;
        }
    }
}

/* A program of the lease that maps a file as a driver would be. */
static pid_t mapping_shim(const char *lease, const char *const *files)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t shim = fork();
    if (shim == 0) {
        char path[80], body[60];
        pid_t mine = fork();
        if (mine == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* no cgroup ends it where we are not root */
            for (; *files; files++) {
                snprintf(path, sizeof path, "%s/%s", l.dir, *files);
                int fd = open(path, O_RDWR | O_CREAT, 0600);
                if (ftruncate(fd, 4096) ||
                    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
                    _exit(1);
            }
            for (;;)
                pause();
        }
        snprintf(path, sizeof path, "/v1/leases/%s/anchor", lease);
        snprintf(body, sizeof body, "{\"child_pid\":%d}", mine);
        live_call(&l, "POST", path, body, NULL);
        if (write(ends[1], "x", 1) < 0)
            _exit(1);
        waitpid(mine, NULL, 0);
        _exit(0);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return shim;
}

static void auditor(void **state)
{
    static const char *const driver[] = { "libpocl.so.2.9.0", NULL };
    static const char *const both[] = { "libpocl.so.2.9.0", "libsluice-opencl.so", NULL };
    static const char *const loader[] = { "libOpenCL.so.1", NULL };
    start(TWO_CARDS);
    ask("{\"name\":\"a\",\"command\":\"x\",\"mem\":{\"request\":1048576},"
        "\"compute\":{\"request\":10}}",
        NULL);
    ask("{\"name\":\"d\",\"command\":\"x\",\"mem\":{\"request\":1048576},"
        "\"compute\":{\"request\":10},\"fail_closed\":true}",
        NULL);
    ask("{\"name\":\"b\",\"command\":\"x\",\"mem\":{\"request\":1048576},"
        "\"compute\":{\"request\":10}}",
        NULL);
    ask("{\"name\":\"c\",\"command\":\"x\",\"mem\":{\"request\":1048576},"
        "\"compute\":{\"request\":10}}",
        NULL);
    pid_t shims[] = { mapping_shim("b", both), mapping_shim("c", loader),
                      mapping_shim("a", driver), mapping_shim("d", driver) };
    ROW("a driver without the front is found",
        live_until(&l, "/v1/leases/a", "ungated_processes", "1"));
    usleep(1100000);
    ROW("once", live_until(&l, "/v1/leases/a", "ungated_processes", "1"));
    ROW("with the front it is innocent",
        live_until(&l, "/v1/leases/b", "ungated_processes", "0"));
    ROW("a fail-closed lease ends", live_until(&l, "/v1/leases/d", "state", "released"));
    ROW("so is the loader alone", live_until(&l, "/v1/leases/c", "ungated_processes", "0"));
    for (size_t i = 0; i < ARRAY_LEN(shims); i++)
        kill(shims[i], SIGKILL);
    live_call(&l, "DELETE", "/v1/node?force=1", NULL, NULL);
    live_stop(&l, 0);
    for (size_t i = 0; i < ARRAY_LEN(shims); i++)
        waitpid(shims[i], NULL, 0);
}

static void tenants(void **state)
{
    if (geteuid() != 0) {
        print_message("SKIP: two tenants: needs root to become them\n");
        skip();
    }
    start(((const char *const[]){ "--emulate", "t4", NULL }));
    ROW("root's lease", ask("{\"name\":\"a\",\"mem\":{\"request\":1048576},"
                            "\"compute\":{\"request\":10}}",
                            NULL) == 201);
    ROW("another user does not share the card",
        live_join(live_call_async(
            &l, 65534, "POST", "/v1/leases",
            "{\"mem\":{\"request\":1048576},\"compute\":{\"request\":10}}")) == 400);
    ROW("and may not release it",
        live_join(live_call_async(&l, 65534, "DELETE", "/v1/leases/a", NULL)) == 400);
    ROW("nor resize it", live_join(live_call_async(&l, 65534, "PATCH", "/v1/leases/a",
                                                   "{\"priority\":1}")) == 400);
    ROW("nor end the agent",
        live_join(live_call_async(&l, 65534, "DELETE", "/v1/node?force=1", NULL)) == 400);
    ROW("but see it",
        live_join(live_call_async(&l, 65534, "GET", "/v1/leases", NULL)) == 200);
    ROW("it lives", live_until(&l, "/v1/leases/a", "state", "active"));
}

static void bad_start(void **state)
{
    static const struct {
        const char *label, *argument, *value;
    } rows[] = {
        { "an unknown model", "--emulate", "a101" },
        { "a file that is not there", "--emulate", "/nonexistent.json" },
        { "a reserve of everything", "--reserve", "100%" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        live_start(&l, (const char *const[]){ rows[i].argument, rows[i].value, NULL });
        ROW(rows[i].label, live_stop(&l, 0) == 2);
    }
}

#define LIVE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    LIVE(grant_resize_release),
    LIVE(waiting),
    LIVE(broker_has_no_room),
    LIVE(time_is_over),
    LIVE(agent_killed),
    LIVE(devices_of_earlier_starts),
    LIVE(options_go_on),
    LIVE(broker_killed),
    LIVE(full_disk),
    LIVE(two_agents),
    LIVE(socket_taken),
    LIVE(racing_agents),
    LIVE(damaged_journal),
    LIVE(embedded_ends),
    LIVE(down),
    LIVE(job_ends),
    LIVE(job_is_killed),
    LIVE(shim_dies),
    LIVE(submitted),
    LIVE(has_a_cgroup),
    LIVE(never_anchored),
    LIVE(tenants),
    LIVE(bad_start),
    LIVE(auditor),
    cmocka_unit_test(killed_at_marked_points),
};

ROWS_MAIN(tests)
