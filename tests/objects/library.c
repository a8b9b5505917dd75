/*
 * A library for objects_test, in two builds whose code lies at other addresses: what is mapped and
 * what replaced it.
 */
int library_root(int n);
int library_work(int n);
int library_only_new(int n);

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
static inline __attribute__((always_inline)) int innermost(int n)
{
    return value * n; /* line 25 */
}

static inline __attribute__((always_inline)) int between(int n)
{
    return innermost(n + 1) + 5; /* line 30 */
}

__attribute__((noinline)) int library_work(int n)
{
    return between(n) ^ 1; /* line 35 */
}

__attribute__((noinline)) int library_root(int n)
{
    return library_work(n) + library_work(n + 1);
}
