/* Keeps the run file: mapped records in two checksummed copies each. */
#include "runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fault.h"
#include "proc.h"

#define RUNFILE_MAGIC   0x7267646c656c6c53ull /* "Sllledgr" */
#define RUNFILE_VERSION 1

struct runfile_copy {
    uint64_t sequence; /* 0: never written */
    struct runfile_record record;
    uint64_t checksum; /* of all before it */
    uint64_t pad[2];
};

struct runfile_page {
    struct {
        uint64_t magic;
        uint32_t version, record_count;
        char boot_id[40];
        uint64_t checksum;
        char pad[4096 - 64];
    } header;
    struct runfile_copy copy[LEDGER_MAX_CLIENTS][2];
};

_Static_assert(sizeof(struct runfile_copy) == 128, "a copy is two cache lines");

static uint64_t sum(const void *data, size_t length)
{
    uint64_t hash = 0x9e3779b97f4a7c15ull, word;
    for (size_t at = 0; at + 8 <= length; at += 8) {
        memcpy(&word, (const char *)data + at, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    return hash;
}

static uint64_t copy_sum(const struct runfile_copy *c)
{
    return sum(c, offsetof(struct runfile_copy, checksum));
}

static uint64_t header_sum(const struct runfile_page *p)
{
    return sum(&p->header, offsetof(struct runfile_page, header.checksum));
}

static void read_boot_id(char out[40])
{
    char text[64] = "";
    memset(out, 0, 40);
    if (proc_read_file("/proc/sys/kernel/random/boot_id", text, sizeof text) >= 36)
        memcpy(out, text, 36);
}

static bool header_ok(const struct runfile_page *p)
{
    return p->header.magic == RUNFILE_MAGIC && p->header.version == RUNFILE_VERSION &&
           p->header.record_count == LEDGER_MAX_CLIENTS &&
           p->header.checksum == header_sum(p);
}

static void start_empty(struct runfile_page *p, const char boot_id[40])
{
    memset(p, 0, sizeof *p);
    p->header.magic = RUNFILE_MAGIC;
    p->header.version = RUNFILE_VERSION;
    p->header.record_count = LEDGER_MAX_CLIENTS;
    memcpy(p->header.boot_id, boot_id, 40);
    p->header.checksum = header_sum(p);
}

/* Open the file and give it its size with real blocks behind it: a store into
 * a mapped hole on a full disk would be a SIGBUS. */
static int map_file(struct runfile *f, int dir_fd, bool *fresh, struct sl_err *err)
{
    int fd = openat(dir_fd, "ledger", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return sl_fail_sys(err, SL_IO, errno, "run file ledger: open");
    struct stat st;
    int bad = fstat(fd, &st) ? errno : 0;
    *fresh = !bad && st.st_size == 0;
    if (!bad && !*fresh &&
        (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size != sizeof *f->page)) {
        close(fd);
        return -SL_INVALID;
    }
    if (!bad)
        bad = posix_fallocate(fd, 0, sizeof *f->page);
    void *at = MAP_FAILED;
    if (!bad) {
        at = mmap(NULL, sizeof *f->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        bad = at == MAP_FAILED ? errno : 0;
    }
    if (bad && *fresh)
        unlinkat(dir_fd, "ledger", 0);
    close(fd);
    if (bad)
        return sl_fail_sys(err, SL_IO, bad, "run file ledger: %zu bytes", sizeof *f->page);
    f->page = at;
    return 0;
}

int runfile_open(struct runfile *f, int dir_fd, struct sl_err *err)
{
    char boot_id[40];
    bool fresh = false;
    memset(f, 0, sizeof *f);
    read_boot_id(boot_id);

    int rc = map_file(f, dir_fd, &fresh, err);
    if (rc == -SL_INVALID || (!rc && !fresh && !header_ok(f->page))) {
        runfile_close(f);
        if (renameat(dir_fd, "ledger", dir_fd, "ledger.bad"))
            return sl_fail_sys(err, SL_IO, errno, "run file ledger: move aside");
        f->moved_aside = true;
        rc = map_file(f, dir_fd, &fresh, err);
    }
    if (rc)
        return rc;
    if (fresh || memcmp(f->page->header.boot_id, boot_id, 40))
        start_empty(f->page, boot_id);
    else
        f->found = true;
    return 0;
}

void runfile_close(struct runfile *f)
{
    if (f->page)
        munmap(f->page, sizeof *f->page);
    f->page = NULL;
}

bool runfile_read(const struct runfile *f, uint32_t index, struct runfile_record *out,
                  bool *torn)
{
    const struct runfile_copy *best = NULL;
    int broken = 0;
    for (int i = 0; i < 2; i++) {
        const struct runfile_copy *c = &f->page->copy[index][i];
        if (c->sequence == 0 && c->checksum == 0)
            continue;
        if (c->checksum != copy_sum(c))
            broken++;
        else if (!best || c->sequence > best->sequence)
            best = c;
    }
    /* one broken copy beside an unwritten one is a first write cut short: its
     * client had no answer yet */
    *torn = broken == 2;
    if (!best || best->record.pid <= 0)
        return false;
    *out = best->record;
    return true;
}

void runfile_write(struct runfile *f, uint32_t index, const struct runfile_record *record)
{
    struct runfile_copy *pair = f->page->copy[index];
    bool ok0 = pair[0].checksum == copy_sum(&pair[0]);
    bool ok1 = pair[1].checksum == copy_sum(&pair[1]);
    /* never over the only whole copy, else over the older one */
    int target = ok0 != ok1 ? ok0 : pair[0].sequence > pair[1].sequence;
    uint64_t newest = (target ? ok0 : ok1) ? pair[!target].sequence : 0;

    struct runfile_copy next = { .sequence = newest + 1, .record = *record };
    next.checksum = copy_sum(&next);
    /* front and end, with a place between them where a crash test may kill us */
    memcpy(&pair[target], &next, sizeof next / 2);
    fault_point("broker.half-record");
    memcpy((char *)&pair[target] + sizeof next / 2, (char *)&next + sizeof next / 2,
           sizeof next / 2);
    /* the next write goes to the other copy: it must not begin before this one
     * is whole */
    atomic_thread_fence(memory_order_seq_cst);
}

void runfile_clear(struct runfile *f, uint32_t index)
{
    struct runfile_record nobody = { 0 };
    runfile_write(f, index, &nobody);
}
