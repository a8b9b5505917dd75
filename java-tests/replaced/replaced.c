/* The library of java-tests/replaced.sh, in two versions whose code lies at different places. */
#include <jni.h>
#include <string.h>

JNIEXPORT jlong JNICALL Java_Replaced_spin(JNIEnv *env, jclass class, jlong n);

static volatile unsigned long sink;

#ifdef REPLACED_NEW
/* A frame of another size, and code that the old version has not, ahead of the same. */
__attribute__((noinline)) static unsigned long padding(unsigned long n)
{
    char bytes[3000];
    memset(bytes, (int)n, sizeof bytes);
    for (unsigned long i = 0; i < n; i++) {
        sink += bytes[i % sizeof bytes] ^ i;
    }
    return sink * 3 + n;
}

__attribute__((noinline)) unsigned long replaced_padding(unsigned long n);
unsigned long replaced_padding(unsigned long n)
{
    return padding(n) + padding(n + 1);
}
#endif

__attribute__((noinline)) unsigned long replaced_inner(unsigned long n);
unsigned long replaced_inner(unsigned long n)
{
    unsigned long words[40];
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 40; i++) {
        words[i] = n + i;
    }
    for (unsigned long i = 0; i < 200000; i++) {
        words[i % 40] = words[(i * 7) % 40] * 31 + i;
    }
    for (unsigned long i = 0; i < 40; i++) {
        sum += words[i];
    }
    return sum;
}

__attribute__((noinline)) unsigned long replaced_outer(unsigned long n);
unsigned long replaced_outer(unsigned long n)
{
    unsigned long sum = 0;
    for (int i = 0; i < 5; i++) {
        sum ^= replaced_inner(n + sum);
    }
    sink = sum;
    return sum + 1;
}

jlong Java_Replaced_spin(JNIEnv *env, jclass class, jlong n)
{
    (void)env;
    (void)class;
    return (jlong)(replaced_outer((unsigned long)n) + 1);
}
