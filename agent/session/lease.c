#include "agent/session/lease.h"

#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int lease_open(const char *path)
{
    struct stat status = {0};
    int lease = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const char *reason = NULL;
    int error = -EINVAL;
    if (lease < 0 || fstat(lease, &status) != 0) {
        error = -errno;
        reason = strerror(-error);
    } else if (!S_ISREG(status.st_mode)) {
        reason = "not a regular file";
    } else if (!lease_is_held(lease)) {
        reason = "nobody holds it";
    }
    if (reason) {
        message(MESSAGE_ERROR, "failed to take the lease %s: %s", path, reason);
        lease_close(lease);
        return error;
    }
    return lease;
}

void lease_close(int lease)
{
    if (lease >= 0) {
        close(lease);
    }
}

bool lease_is_held(int lease)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(lease, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
