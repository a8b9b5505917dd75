#include "jdtool/live/kernel.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kernel_path(const char *name, char *path)
{
    const char *given = getenv("JDPERF_PROC");
    snprintf(path, PATH_MAX, "%s/%s", given && *given ? given : "/proc", name);
}

bool kernel_read(const char *name, char *text, size_t size)
{
    char path[PATH_MAX];
    kernel_path(name, path);
    return descriptor_text(AT_FDCWD, path, text, size) > 0;
}

long kernel_number(const char *name, long otherwise)
{
    char path[128];
    char text[32];
    snprintf(path, sizeof path, "sys/kernel/%s", name);
    return kernel_read(path, text, sizeof text) ? strtol(text, NULL, 10) : otherwise;
}

bool kernel_filters(void)
{
    static const char key[] = "Seccomp:";
    char text[8192];
    const char *at = kernel_read("self/status", text, sizeof text) ? strstr(text, key) : NULL;
    return at && strtol(at + sizeof key - 1, NULL, 10) > 0;
}

bool kernel_shifts_clock(void)
{
    static const char key[] = "monotonic ";
    char text[256];
    const char *at =
        kernel_read("self/timens_offsets", text, sizeof text) ? strstr(text, key) : NULL;
    size_t length = at ? strcspn(at, "\n") : 0;
    return at && strcspn(at + sizeof key - 1, "123456789") + sizeof key - 1 < length;
}

int kernel_check_clock(void)
{
    if (!kernel_shifts_clock()) {
        return 0;
    }
    error_message("this time namespace has another clock than the kernel's samples: run jdperf "
                  "outside of it (as root: nsenter -t 1 -T jdperf …)");
    return -ENOTSUP;
}
