/*
 * Ties the processor's clock to perf's: prints the time stamp counter just before and after an
 * event that perf writes down with its own time, the mapping of this program's file at an odd
 * length.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <x86intrin.h>

int main(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    unsigned long long before = __rdtsc();
    void *mapping = mmap(NULL, 0x3000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    unsigned long long after = __rdtsc();
    if (fd < 0 || mapping == MAP_FAILED) {
        return 1;
    }
    printf("%llu %llu\n", before, after);
    return 0;
}
