/*
 * The agent goes into containers, whose libc is often older than the one it was built with. A call
 * that a later glibc has a new version of, if only because it moved into libc.so (2.34), keeps it
 * from being loaded there at all ("version `GLIBC_2.34' not found"). So these calls are bound to
 * the first version that glibc had of them, which each later one still has, and what had none is
 * done otherwise. glibc 2.17 is enough then, of 2012 and the first for aarch64.
 *
 * The linker hands every call of one of these names in the agent to __wrap_NAME (--wrap; the build
 * takes the names from the lines below).
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define JUMP          "endbr64; jmp "
#define FIRST(x86_64) "GLIBC_" x86_64
#elif defined __aarch64__
#define JUMP          "hint #34; b " /* bti c */
#define FIRST(x86_64) "GLIBC_2.17"   /* glibc's first for it */
#endif

/* NAME as it first was; IS: the name it has there. A jump, so that the caller stays the caller. */
#define OLD(name, is, x86_64)                                                                      \
    __asm__(".symver old_" #name ", " #is "@" FIRST(x86_64));                                      \
    __asm__(".text; .globl __wrap_" #name "; .hidden __wrap_" #name);                              \
    __asm__(".type __wrap_" #name ", %function; __wrap_" #name ": " JUMP "old_" #name);            \
    __asm__(".size __wrap_" #name ", . - __wrap_" #name);

/* In libdl.so and libpthread.so before 2.34. */
OLD(dladdr, dladdr, "2.2.5")
OLD(dlclose, dlclose, "2.2.5")
OLD(dlerror, dlerror, "2.2.5")
OLD(dlopen, dlopen, "2.2.5")
OLD(dlsym, dlsym, "2.2.5")
OLD(pthread_attr_getstack, pthread_attr_getstack, "2.2.5")
OLD(pthread_attr_setstacksize, pthread_attr_setstacksize, "2.2.5")
OLD(pthread_condattr_setclock, pthread_condattr_setclock, "2.3.3")
OLD(pthread_create, pthread_create, "2.2.5")
OLD(pthread_detach, pthread_detach, "2.2.5")
OLD(pthread_getattr_np, pthread_getattr_np, "2.2.5")
OLD(pthread_join, pthread_join, "2.2.5")
OLD(pthread_key_create, pthread_key_create, "2.2.5")
OLD(pthread_mutex_trylock, pthread_mutex_trylock, "2.2.5")
OLD(pthread_once, pthread_once, "2.2.5")
OLD(pthread_setname_np, pthread_setname_np, "2.12")
OLD(pthread_setspecific, pthread_setspecific, "2.2.5")
OLD(pthread_sigmask, pthread_sigmask, "2.2.5")

/* What <stdlib.h> makes of them since 2.38, for binary numbers of C23. */
OLD(__isoc23_strtol, strtol, "2.2.5")
OLD(__isoc23_strtoul, strtoul, "2.2.5")

/* Functions since 2.33; what came before them is in no header. The kernel's struct is glibc's. */
#define INSTEAD(name, ...)                                                                         \
    name##_by_syscall(__VA_ARGS__) __asm__("__wrap_" #name) __attribute__((visibility("hidden")))

int INSTEAD(fstat, int fd, struct stat *status);
int INSTEAD(fstatat, int directory, const char *path, struct stat *status, int flags);

int fstat_by_syscall(int fd, struct stat *status)
{
    return (int)syscall(SYS_fstat, fd, status);
}

int fstatat_by_syscall(int directory, const char *path, struct stat *status, int flags)
{
    return (int)syscall(SYS_newfstatat, directory, path, status, flags);
}
