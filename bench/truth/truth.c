/* The native half of Truth.java: a clock, and work in native code whose share is known. */
#include <jni.h>
#include <stdint.h>
#include <time.h>

JNIEXPORT jlong JNICALL Java_Truth_cpu(JNIEnv *jni, jclass klass);
JNIEXPORT jlong JNICALL Java_Truth_nativeMix(JNIEnv *jni, jclass klass, jlong x, jint rounds);
JNIEXPORT jlong JNICALL Java_Truth_nativeSort(JNIEnv *jni, jclass klass, jlong x, jint rounds);

JNIEXPORT jlong JNICALL Java_Truth_cpu(JNIEnv *jni, jclass klass)
{
    (void)jni;
    (void)klass;
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (jlong)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Functions of their own, for a profile to name. */
__attribute__((noinline)) static uint64_t mix_natively(uint64_t x, int rounds)
{
    for (int i = 0; i < rounds * 1000; i++) {
        x = x * 31 + (uint64_t)i;
        x ^= x >> 7;
    }
    return x;
}

__attribute__((noinline)) static uint64_t sort_natively(uint64_t x, int rounds)
{
    uint64_t values[64];
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 64; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            values[i] = x;
        }
        for (int i = 1; i < 64; i++) {
            for (int k = i; k > 0 && values[k - 1] > values[k]; k--) {
                uint64_t swapped = values[k];
                values[k] = values[k - 1];
                values[k - 1] = swapped;
            }
        }
        x += values[0];
    }
    return x;
}

JNIEXPORT jlong JNICALL Java_Truth_nativeMix(JNIEnv *jni, jclass klass, jlong x, jint rounds)
{
    (void)jni;
    (void)klass;
    return (jlong)mix_natively((uint64_t)x, rounds * 100);
}

JNIEXPORT jlong JNICALL Java_Truth_nativeSort(JNIEnv *jni, jclass klass, jlong x, jint rounds)
{
    (void)jni;
    (void)klass;
    return (jlong)sort_natively((uint64_t)x, rounds * 20);
}
