/* What the program that limits events of uprobes (limit.bpf.h) and jdtool agree upon. */
#ifndef JD_TOOL_LIMIT_SHARED_H
#define JD_TOOL_LIMIT_SHARED_H

#include "jdtool/sampler/pid_namespace.h"

#include <linux/types.h>

/* A processor's time is divided into these, of 67 ms. */
#define LIMIT_WINDOW_SHIFT   26
#define LIMIT_WINDOWS_SECOND (1000000000 >> LIMIT_WINDOW_SHIFT)

#define LIMIT_SHIFT_MAX 20

struct limit_config {
    struct pid_namespace ours;
    __u32 is_for_all; /* all processes, whatever `processes` has */
    __u32 most;       /* of an event in a window: even; 0: as many as there are */
};

/* Of an event on a processor. */
struct limit_state {
    __u64 window;
    __u32 kept;  /* in that window, since its rate was changed */
    __u32 shift; /* one is kept of so many, as a power of two */
};

#endif
