#include "writer/disk_room.h"

#include <errno.h>
#include <sys/statvfs.h>

enum { DEFAULT_PERCENT = 5, PART_TO_GO_ON = 16, BYTES_TO_GO_ON = 4 * 1024 * 1024 };
static const uint64_t default_most = UINT64_C(1) << 30;

uint64_t disk_room(int fd, uint64_t reserve)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0 || fs.f_blocks == 0) {
        return UINT64_MAX;
    }
    if (reserve == DISK_ROOM_DEFAULT) {
        uint64_t share = (uint64_t)fs.f_blocks * fs.f_frsize / 100 * DEFAULT_PERCENT;
        reserve = share < default_most ? share : default_most;
    }
    uint64_t free = (uint64_t)fs.f_bavail * fs.f_frsize;
    return free > reserve ? free - reserve : 0;
}

bool disk_is_full(int error)
{
    return error == -ENOSPC || error == -EDQUOT;
}

uint64_t disk_room_to_go_on(int fd)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0) {
        return 0;
    }
    uint64_t part = (uint64_t)fs.f_blocks * fs.f_frsize / PART_TO_GO_ON;
    return part < BYTES_TO_GO_ON ? part : BYTES_TO_GO_ON;
}
