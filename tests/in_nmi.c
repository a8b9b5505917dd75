/*
 * Samples are taken in an NMI, as those of x86's hardware counters are, on machines that have none:
 * preloaded into jdtool, it has the kernel sample by a breakpoint in place of the timer, on a word
 * of the kernel's own, whose exception is an NMI to perf and BPF (exc_debug_kernel in
 * arch/x86/kernel/traps.c).
 *
 * IN_NMI_ADDRESS is that word's address, hexadecimal; jiffies_64 is written at every tick of the
 * processor that keeps time.
 */
#include <dlfcn.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) long syscall(long number, ...)
{
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    struct perf_event_attr attr;
    const char *address = getenv("IN_NMI_ADDRESS");
    if (number == SYS_perf_event_open && address) {
        memcpy(&attr, (const void *)arguments[0], sizeof attr);
        if (attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_CPU_CLOCK &&
            attr.freq) {
            attr.type = PERF_TYPE_BREAKPOINT;
            attr.config = 0;
            attr.bp_type = HW_BREAKPOINT_W;
            attr.bp_addr = strtoull(address, NULL, 16);
            attr.bp_len = HW_BREAKPOINT_LEN_8;
            attr.freq = 0;
            attr.sample_period = 1;
            attr.exclude_idle = attr.exclude_guest = attr.exclude_hv = 0;
            arguments[0] = (long)&attr;
        }
    }
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}
