#include "jdtool/live/lease.h"

#include <errno.h>
#include <fcntl.h>

/* Locks of the open file, not of the process (F_SETLK): closing some other descriptor of the same
 * file does not give them up. */
static int lock(int lease, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(lease, F_OFD_SETLK, &all) == 0 ? 0 : -errno;
}

int lease_take(int lease)
{
    int err = lock(lease, F_RDLCK);
    return err == -EACCES ? -EAGAIN : err;
}

bool lease_take_over(int lease)
{
    return lock(lease, F_WRLCK) == 0;
}

bool lease_is_held(int lease)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(lease, F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}
