/* What programs of ours in the kernel have in common. */
#ifndef JD_TOOL_MAPS_BPF_H
#define JD_TOOL_MAPS_BPF_H

#include <linux/types.h>

/* An event by processor to write into. */
#define OUTPUT(name)                                                                               \
    struct {                                                                                       \
        __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);                                               \
        __type(key, __u32);                                                                        \
        __type(value, __u32);                                                                      \
    } name SEC(".maps")

/* The program that goes on with what is kept, as soon as there is one. */
#define NEXT                                                                                       \
    struct {                                                                                       \
        __uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                                     \
        __uint(max_entries, 1);                                                                    \
        __type(key, __u32);                                                                        \
        __type(value, __u32);                                                                      \
    } next SEC(".maps")

/* Who is sampled: that of struct filter. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} processes SEC(".maps");

#endif
