#include "agent/method_listing.h"

#include "agent/bytecodes.h"
#include "writer/message.h"

/* A listing longer than this is cut off. */
enum { LISTING_LIMIT = 1024 * 1024 };

bool method_listing_prepare(jvmtiEnv *jvmti)
{
    const jvmtiCapabilities capabilities = {
        .can_get_bytecodes = 1,
        .can_get_constant_pool = 1,
    };
    jvmtiError error = (*jvmti)->AddCapabilities(jvmti, &capabilities);
    if (error != JVMTI_ERROR_NONE) {
        message(MESSAGE_WARNING,
                "failed to get the JVMTI capabilities for bytecodes: error %d; methods without a "
                "source have no listing",
                (int)error);
    }
    return error == JVMTI_ERROR_NONE;
}

/* The JVM's copy of a method's constant pool, to be deallocated; NULL: there is none. */
static unsigned char *fetch_pool(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id, jint *count,
                                 jint *size)
{
    jclass klass = NULL;
    unsigned char *bytes = NULL;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, id, &klass) == JVMTI_ERROR_NONE) {
        if ((*jvmti)->GetConstantPool(jvmti, klass, count, size, &bytes) != JVMTI_ERROR_NONE) {
            bytes = NULL;
        }
        if (jni) {
            (*jni)->DeleteLocalRef(jni, klass);
        }
    }
    return bytes;
}

static char *list(const unsigned char *code, jint size, const struct java_method *method,
                  const struct constant_pool *pool)
{
    struct buffer out = BUFFER_INIT(LISTING_LIMIT);
    bytecodes_list(&out, code, (size_t)size, method->lines, method->line_count, pool);
    if (out.size == out.capacity && !out.failed) {
        buffer_grow(&out, 1);
    }
    if (out.size == out.capacity) { /* no memory for the NUL, or nothing at all */
        buffer_free(&out);
        return NULL;
    }
    out.bytes[out.size] = '\0';
    return (char *)out.bytes; /* the buffer's memory is malloc's, and now the caller's */
}

char *method_listing(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id, const struct java_method *method)
{
    jint code_size = 0;
    unsigned char *code = NULL;
    if (method->native ||
        (*jvmti)->GetBytecodes(jvmti, id, &code_size, &code) != JVMTI_ERROR_NONE) {
        return NULL;
    }
    jint pool_count = 0;
    jint pool_size = 0;
    unsigned char *pool_bytes = fetch_pool(jvmti, jni, id, &pool_count, &pool_size);
    struct constant_pool pool = {0};
    char *text = NULL;
    if (!pool_bytes ||
        constant_pool_open(&pool, pool_bytes, (size_t)pool_size, (uint32_t)pool_count)) {
        text = list(code, code_size, method, &pool);
        constant_pool_close(&pool);
    }
    if (pool_bytes) {
        (*jvmti)->Deallocate(jvmti, pool_bytes);
    }
    (*jvmti)->Deallocate(jvmti, code);
    return text;
}
