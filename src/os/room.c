/* Owns the bounds of what jobs' output may take. */
#include "os/room.h"

#include <sys/statvfs.h>

#include "core/macros.h"

#define RESERVE_BYTES (64ull << 20)
#define ENDED_BYTES   (1ull << 30)

bool room_look(int fd, struct room *out)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0 || fs.f_blocks == 0)
        return false;
    *out = (struct room){ (uint64_t)fs.f_blocks * fs.f_frsize,
                          (uint64_t)fs.f_bavail * fs.f_frsize };
    return true;
}

bool room_is_short(const struct room *r)
{
    return r->free_bytes < min_u64(r->total_bytes / 8, RESERVE_BYTES);
}

uint64_t room_for_ended(const struct room *r)
{
    return min_u64(r->total_bytes / 4, ENDED_BYTES);
}
