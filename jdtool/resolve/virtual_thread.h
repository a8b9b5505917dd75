/* Virtual threads in the place of the threads that carry them. */
#ifndef JD_TOOL_VIRTUAL_THREAD_H
#define JD_TOOL_VIRTUAL_THREAD_H

#include "jdtool/resolve/sample_sink.h"

/*
 * Makes the virtual thread of thread->virtual_id, which is not 0, what the thread is: by its name,
 * or "virtual thread ID", which is written to `name`, and by a tid of its own (RESOLVED_OWN_TID).
 */
void virtual_thread_stands(struct resolved_thread *thread, char *name, size_t size);

#endif
