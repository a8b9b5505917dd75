/*
 * How an nmethod is found from the address of its code
 *
 * The code cache consists of up to three heaps (JDK 8: one). Each is a row of segments, and a byte
 * map says for each segment how far it is from the first one of its block (255: the block is free;
 * at most 254 a step). A block starts with a HeapBlock header, behind it stands the CodeBlob, an
 * nmethod is one, and inside of that the code. Everything from the block's start to the code is
 * committed memory, because the code is there; the map is read only where it describes that block.
 * What is found is believed only if the blob says itself that its code starts where we came from.
 */
#include "agent/hotspot_fields.h"

enum { MAX_HEAPS = 8 };

/*
 * Whether there is memory at `at`: a layout that is not what it says would send us anywhere. The
 * kernel is asked once for each of the few pointers there are.
 */
static bool is_memory(struct hotspot *hotspot, const char *at)
{
    size_t i = 0;
    const char *known = NULL;
    while (i < MAX_TRUSTED && (known = atomic_load(&hotspot->trusted[i]))) {
        if (known == at) {
            return true;
        }
        i++;
    }
    if (!hotspot_is_mapped(at)) {
        return false;
    }
    if (i < MAX_TRUSTED) {
        atomic_store(&hotspot->trusted[i], at);
    }
    return true;
}

/* The code cache's heaps. Few, and never moved once they are there; at the JVM's start none is. */
static size_t find_heaps(struct hotspot *hotspot, const char *heaps[MAX_HEAPS])
{
    if (!hotspot->places[HEAPS].known) {
        heaps[0] = hotspot_load(hotspot->places[HEAP].static_address);
        return heaps[0] ? 1 : 0;
    }
    const char *array = hotspot_load(hotspot->places[HEAPS].static_address);
    int64_t length = 0;
    if (!is_memory(hotspot, array) || !hotspot_integer(hotspot, array, ARRAY_LENGTH, &length) ||
        length < 1 || length > MAX_HEAPS) {
        return 0;
    }
    const char *data = hotspot_pointer(hotspot, array, ARRAY_DATA);
    if (!is_memory(hotspot, data)) {
        return 0;
    }
    for (int64_t i = 0; i < length; i++) {
        heaps[i] = hotspot_load(data + (size_t)i * sizeof(char *));
    }
    return (size_t)length;
}

/* The blob that the block around `address` holds, when the address lies in that heap. */
static const char *blob_in_heap(struct hotspot *hotspot, const char *heap, const char *address)
{
    const char *memory = heap + hotspot->places[HEAP_MEMORY].offset;
    const char *segmap = heap + hotspot->places[HEAP_SEGMAP].offset;
    const char *low = hotspot_pointer(hotspot, memory, SPACE_LOW);
    const char *map = hotspot_pointer(hotspot, segmap, SPACE_LOW);
    size_t map_size = (size_t)(hotspot_pointer(hotspot, segmap, SPACE_HIGH) - map);
    int64_t log2 = 0;
    if (!is_memory(hotspot, low) || !is_memory(hotspot, map) || address < low ||
        address >= hotspot_pointer(hotspot, memory, SPACE_HIGH) ||
        !hotspot_integer(hotspot, heap, HEAP_LOG2_SEGMENT, &log2) || log2 < 3 || log2 > 30) {
        return NULL;
    }
    size_t segment = (size_t)(address - low) >> log2;
    while (segment < map_size) {
        unsigned char back = (unsigned char)map[segment];
        if (back == 0) {
            const char *block = low + (segment << log2);
            bool used = block[hotspot->places[BLOCK_USED].offset] != 0;
            return used ? block + hotspot->block_header : NULL;
        }
        if (back == 255 || back > segment) {
            return NULL;
        }
        segment -= back;
    }
    return NULL;
}

/* The blob whose code starts at `address`, NULL when there is none. */
static const char *find_blob(struct hotspot *hotspot, const char *address)
{
    const char *heaps[MAX_HEAPS];
    size_t count = find_heaps(hotspot, heaps);
    const char *blob = NULL;
    for (size_t i = 0; i < count && !blob; i++) {
        blob = is_memory(hotspot, heaps[i]) ? blob_in_heap(hotspot, heaps[i], address) : NULL;
    }
    if (!blob || blob >= address) {
        return NULL; /* a stub inside of a blob may even start the block's first segment */
    }
    int64_t size = 0;
    int64_t offset = 0;
    if (!hotspot_integer(hotspot, blob, BLOB_SIZE, &size) || size < address - blob) {
        return NULL;
    }
    const char *code = NULL;
    if (hotspot->places[BLOB_CODE_BEGIN].known) {
        code = hotspot_pointer(hotspot, blob, BLOB_CODE_BEGIN);
    } else if (hotspot_integer(hotspot, blob, BLOB_CODE_OFFSET, &offset)) {
        code = blob + offset;
    }
    return code == address ? blob : NULL;
}

/* A field's value when it is one that makes sense, else -1. */
static int32_t fact(const struct hotspot *hotspot, const char *object, enum field field,
                    int64_t least, int64_t most)
{
    int64_t value = 0;
    if (!hotspot_integer(hotspot, object, field, &value) || value < least || value > most) {
        return -1;
    }
    return (int32_t)value;
}

/* The same for a field that holds an address inside of the code: its offset. */
static int32_t address_fact(const struct hotspot *hotspot, const char *object, enum field field,
                            const char *code, uint64_t size)
{
    if (!hotspot->places[field].known) {
        return -1;
    }
    const char *value = hotspot_pointer(hotspot, object, field);
    return value >= code && (uint64_t)(value - code) < size ? (int32_t)(value - code) : -1;
}

static void nmethod_facts(const struct hotspot *hotspot, const char *nmethod, const char *code,
                          uint64_t size, struct code_facts *facts)
{
    facts->tier = fact(hotspot, nmethod, NMETHOD_TIER, 0, 4);
    facts->compile_id = fact(hotspot, nmethod, NMETHOD_COMPILE_ID, 0, INT32_MAX);
    facts->verified_entry = address_fact(hotspot, nmethod, NMETHOD_VERIFIED_ENTRY, code, size);
    if (facts->verified_entry < 0) {
        facts->verified_entry =
            fact(hotspot, nmethod, NMETHOD_VERIFIED_OFFSET, 0, (int64_t)size - 1);
    }
    /* InvocationEntryBci is -1: entered from the start. */
    facts->osr_bci = fact(hotspot, nmethod, NMETHOD_ENTRY_BCI, 0, UINT16_MAX);
    if (facts->osr_bci >= 0) {
        facts->osr_entry = address_fact(hotspot, nmethod, NMETHOD_OSR_ENTRY, code, size);
    }
}

/* The blob whose code is that, with what is known of every blob in *facts. */
static const char *blob_facts(struct hotspot *hotspot, const char *code, uint64_t size,
                              struct code_facts *facts)
{
    enum { MAX_FRAME_WORDS = 1 << 20 };
    const char *blob = hotspot && size > 0 && size <= INT32_MAX ? find_blob(hotspot, code) : NULL;
    if (blob) {
        int32_t words = fact(hotspot, blob, BLOB_FRAME_SIZE, 1, MAX_FRAME_WORDS);
        facts->frame_size = words > 0 ? words * (int32_t)sizeof(void *) : -1;
        facts->frame_complete = fact(hotspot, blob, BLOB_FRAME_COMPLETE, 0, (int64_t)size);
    }
    return blob;
}

void hotspot_facts(struct hotspot *hotspot, const void *address, uint64_t size,
                   struct code_facts *facts)
{
    (void)blob_facts(hotspot, address, size, facts);
}

const void *hotspot_compiled_facts(struct hotspot *hotspot, const void *address, uint64_t size,
                                   struct code_facts *facts)
{
    const char *nmethod = blob_facts(hotspot, address, size, facts);
    if (!nmethod) {
        return NULL;
    }
    nmethod_facts(hotspot, nmethod, address, size, facts);
    return hotspot->places[NMETHOD_METHOD].known ? hotspot_pointer(hotspot, nmethod, NMETHOD_METHOD)
                                                 : NULL;
}
