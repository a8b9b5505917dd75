/*
 * A library for objects_test, in two builds whose code lies at other addresses: what is mapped and
 * what replaced it.
 */
int library_root(int n);
int library_work(int n);
int library_only_new(int n);
int library_deep(int depth, int n);

static volatile int value;

#ifdef LIBRARY_NEW
int library_only_new(int n)
{
    volatile int sum = 0;
    for (int i = 0; i < n * 3; i++) {
        sum += i * 7;
    }
    return sum;
}
#endif

/* objects_test knows these lines. */
#line 100
static inline __attribute__((always_inline)) int innermost(int n)
{
    return value * n;
}

static inline __attribute__((always_inline)) int between(int n)
{
    return innermost(n + 1) + 5;
}

__attribute__((noinline)) int library_work(int n)
{
    return between(n) ^ 1;
}

__attribute__((noinline)) int library_root(int n)
{
    return library_work(n) + library_work(n + 1);
}

/* Several names of one place, of which perf shows the plainest. */
int library_plain(int n);
int __library_plain(int n) __attribute__((alias("library_plain")));
__attribute__((noinline)) int library_plain(int n)
{
    return value + n * 17;
}
int library_a_weak(int n) __attribute__((weak, alias("library_strong")));
int library_strong(int n);
int library_z_weak_and_long(int n) __attribute__((weak, alias("library_strong")));
__attribute__((noinline)) int library_strong(int n)
{
    return value + n * 19;
}

/* Goes down and burns time there: stacks of that depth. */
__attribute__((noinline)) int library_deep(int depth, int n)
{
    volatile char room[64];
    room[depth % 64] = (char)n;
    if (depth > 0) {
        return library_deep(depth - 1, n) + room[depth % 64];
    }
    for (int i = 0; i < n; i++) {
        value = value * 3 + i;
    }
    return value;
}
