#include "jdtool/resolve/virtual_thread.h"

#include <inttypes.h>
#include <stdio.h>

void virtual_thread_stands(struct resolved_thread *thread, char *name, size_t size)
{
    if (thread->virtual_name && *thread->virtual_name) {
        snprintf(name, size, "%s", thread->virtual_name);
    } else {
        snprintf(name, size, "virtual thread %" PRIu64, thread->virtual_id);
    }
    thread->comm = name;
    thread->tid = RESOLVED_OWN_TID | (uint32_t)thread->virtual_id;
}
