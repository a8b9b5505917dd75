#include "jdtool/base/output_path.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <sys/stat.h>

int output_path_check(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0 || S_ISREG(status.st_mode)) {
        return 0; /* mkstemp finds out what is wrong, if anything is */
    }
    error_message("failed to write %s: not a regular file", path);
    return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
}
