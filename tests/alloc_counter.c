/*
 * Counts what the agent holds of the heap and of mappings: preloaded into a JVM, it adds up what
 * libjdagent.so itself allocates and frees (told by the caller's address), so that a leak of a few
 * bytes a piece of code shows where the JVM's own memory moves by megabytes.
 *
 * JD_ALLOC_COUNTER names a file of 16 bytes: bytes held, as the agent's own calls have it, and
 * allocations made; both native 64-bit numbers.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own; dlsym itself may allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

#define EXPORT __attribute__((visibility("default"), noinline))
#define CALLED_BY_AGENT                                                                            \
    ((uintptr_t)__builtin_return_address(0) >= atomic_load(&agent_start) &&                        \
     (uintptr_t)__builtin_return_address(0) < atomic_load(&agent_end))

struct counter {
    _Atomic int64_t held;
    _Atomic uint64_t made;
};

static struct counter nobodys;
static struct counter *counter = &nobodys;
static _Atomic uintptr_t agent_start = UINTPTR_MAX, agent_end;

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("JD_ALLOC_COUNTER");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && ftruncate(fd, sizeof *counter) == 0) {
        void *at = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        counter = at != MAP_FAILED ? at : counter;
    }
    if (fd >= 0) {
        close(fd);
    }
}

static int find_agent(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (!strstr(info->dlpi_name, "libjdagent.so")) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            atomic_store(&agent_end, from + info->dlpi_phdr[i].p_memsz);
            atomic_store(&agent_start, from);
        }
    }
    return 1;
}

EXPORT void *dlopen(const char *path, int flags)
{
    void *(*next)(const char *, int) =
        (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen"); // NOLINT
    void *library = next(path, flags);
    if (library && path && strstr(path, "libjdagent.so")) {
        dl_iterate_phdr(find_agent, NULL);
    }
    return library;
}

static void *took(void *block)
{
    if (block) {
        atomic_fetch_add(&counter->held, (int64_t)malloc_usable_size(block));
        atomic_fetch_add(&counter->made, 1);
    }
    return block;
}

static void gave(void *block)
{
    if (block) {
        atomic_fetch_sub(&counter->held, (int64_t)malloc_usable_size(block));
    }
}

EXPORT void *malloc(size_t size)
{
    void *block = __libc_malloc(size);
    return CALLED_BY_AGENT ? took(block) : block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    void *block = __libc_calloc(count, size);
    return CALLED_BY_AGENT ? took(block) : block;
}

EXPORT void *realloc(void *block, size_t size)
{
    if (!CALLED_BY_AGENT) {
        return __libc_realloc(block, size);
    }
    int64_t before = block ? (int64_t)malloc_usable_size(block) : 0;
    void *grown = __libc_realloc(block, size);
    if (grown) {
        atomic_fetch_sub(&counter->held, before);
        took(grown);
    }
    return grown;
}

EXPORT void free(void *block)
{
    if (CALLED_BY_AGENT) {
        gave(block);
    }
    __libc_free(block);
}

EXPORT char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __libc_malloc(size);
    if (copy) {
        memcpy(copy, text, size);
    }
    return CALLED_BY_AGENT ? took(copy) : copy;
}

EXPORT void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *map = (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset); // NOLINT
    if (map != MAP_FAILED && CALLED_BY_AGENT) {
        atomic_fetch_add(&counter->held, (int64_t)size);
        atomic_fetch_add(&counter->made, 1);
    }
    return map;
}

EXPORT int munmap(void *at, size_t size)
{
    if (CALLED_BY_AGENT) {
        atomic_fetch_sub(&counter->held, (int64_t)size);
    }
    return (int)syscall(SYS_munmap, at, size);
}
