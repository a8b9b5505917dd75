/*
 * How an nmethod is found from the address of its code
 *
 * The code cache consists of up to three heaps (JDK 8: one; 27: four with a hot one). Each is a row
 * of segments, and a byte map says for each segment how far it is from the first one of its block
 * (255: the block is free; at most 254 a step). A block starts with a HeapBlock header, behind it
 * stands the CodeBlob, an nmethod is one, and inside of that the code. What is found is believed
 * only if the blob says itself that its code starts where we came from.
 */
#include "agent/hotspot/hotspot_fields.h"

#include <stdlib.h>

struct hotspot *hotspot_new(const void *function, int major)
{
    struct hotspot *hotspot = calloc(1, sizeof(*hotspot));
    if (!hotspot) {
        return NULL;
    }
    pthread_mutex_init(&hotspot->heaps_lock, NULL);
    hotspot->major = major;
    hotspot->memory = memory_own_new();
    if (!hotspot->memory || !hotspot_find_fields(hotspot, function)) {
        hotspot_free(hotspot);
        return NULL;
    }
    hotspot->top_tier =
        hotspot_flag_is_on(hotspot, "UseJVMCICompiler", false) ? JITDUMP_TIER_JVMCI : 4;
    return hotspot;
}

void hotspot_free(struct hotspot *hotspot)
{
    if (hotspot) {
        memory_free(hotspot->memory);
        pthread_mutex_destroy(&hotspot->heaps_lock);
        free(hotspot);
    }
}

/*
 * The code cache's heaps: all are reserved at once, when the JVM starts, and stay where they are.
 * So they are looked up once, when there is code.
 */
static size_t find_heaps(struct hotspot *hotspot)
{
    bool sane = true;
    size_t count = atomic_load(&hotspot->heap_count);
    if (atomic_load(&hotspot->blobs) == TRUST_BROKEN) {
        return 0;
    }
    if (count > 0) {
        return count;
    }
    pthread_mutex_lock(&hotspot->heaps_lock);
    count = atomic_load(&hotspot->heap_count);
    if (count == 0) {
        int found = code_heaps_read(hotspot->memory, &hotspot->layout, hotspot->heaps);
        sane = found >= 0;
        count = sane ? (size_t)found : 0;
        atomic_store(&hotspot->heap_count, count);
    }
    pthread_mutex_unlock(&hotspot->heaps_lock);
    if (!sane) {
        hotspot_distrust(hotspot, &hotspot->blobs,
                         "no code heap where one should be; tiers and frame sizes are unknown");
    }
    return count;
}

/*
 * What is in the code cache's own memory, once it has been found to be that: it is never given
 * back. `nearby` may be NULL.
 */
static const char *view_cache(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                              uint64_t from, size_t size, char *room)
{
    if (nearby && nearby->own && atomic_load(&hotspot->blobs) == TRUST_PROVEN) {
        return hotspot_there(hotspot, nearby, from, size);
    }
    return memory_read(hotspot->memory, from, room, size) ? room : NULL;
}

/* The block around `address`, which lies in that heap; 0: there is none, or a free one. */
static uint64_t find_block(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                           const struct code_heap *heap, uint64_t address)
{
    enum { WINDOW = 256 }; /* segments to look at at a time */
    char room[WINDOW];
    const char *window = NULL;
    size_t segment = (size_t)(address - heap->low) >> heap->log2;
    size_t start = segment + 1;
    while (true) {
        if (segment < start) {
            start = segment >= WINDOW ? segment - WINDOW + 1 : 0;
            window = view_cache(hotspot, nearby, heap->map + start, segment - start + 1, room);
            if (!window) {
                return 0;
            }
        }
        unsigned char back = (unsigned char)window[segment - start];
        if (back == 0) {
            return heap->low + (segment << heap->log2);
        }
        if (back == 255 || back > segment) {
            return 0;
        }
        segment -= back;
    }
}

/* A blob, and as much of it as our fields take: where it is, or a copy. */
struct blob {
    uint64_t at;
    const char *copy;
    size_t size; /* of the copy */
    char room[1024];
};

/* Copies the blob whose code of `size` bytes starts at `address`; false when there is none. */
static bool find_blob(struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t address,
                      uint64_t size, struct blob *blob)
{
    char room[64];
    const struct place *used = &hotspot->layout.places[BLOCK_USED];
    uint64_t block = 0;
    size_t count = find_heaps(hotspot);
    for (size_t i = 0; i < count && !block; i++) {
        const struct code_heap *heap = &hotspot->heaps[i];
        if (address >= heap->low && address < heap->end) {
            block = find_block(hotspot, nearby, heap, address);
        }
    }
    /* A stub inside of a blob may even start the block's first segment. */
    if (!block || address - block <= hotspot->layout.block_header ||
        hotspot->layout.block_header > sizeof(room) ||
        used->offset >= hotspot->layout.block_header) {
        return false;
    }
    blob->at = block + hotspot->layout.block_header;
    blob->size = hotspot->head < sizeof(blob->room) ? hotspot->head : sizeof(blob->room);
    /* Up to the code's end all is there, whatever it is. */
    if (blob->size > address - blob->at + size) {
        blob->size = address - blob->at + size;
    }
    int64_t blob_size = 0;
    int64_t offset = 0;
    const char *header = view_cache(hotspot, nearby, block, hotspot->layout.block_header, room);
    blob->copy = header ? view_cache(hotspot, nearby, blob->at, blob->size, blob->room) : NULL;
    if (!blob->copy || header[used->offset] == 0 ||
        !hotspot_integer(hotspot, blob->copy, blob->size, BLOB_SIZE, &blob_size) ||
        blob_size < (int64_t)(address - blob->at)) {
        return false;
    }
    uint64_t code = hotspot_pointer(hotspot, blob->copy, blob->size, BLOB_CODE_BEGIN);
    if (!code && hotspot_integer(hotspot, blob->copy, blob->size, BLOB_CODE_OFFSET, &offset)) {
        code = blob->at + (uint64_t)offset;
    }
    if (code != address) {
        return false;
    }
    if (size > 0) { /* an event's word for it */
        int unproven = TRUST_UNPROVEN;
        (void)atomic_compare_exchange_strong(&hotspot->blobs, &unproven, TRUST_PROVEN);
    }
    return true;
}

/* A field's value when it is one that makes sense, else -1. */
static int32_t fact(const struct hotspot *hotspot, const struct blob *blob, enum field field,
                    int64_t least, int64_t most)
{
    int64_t value = 0;
    if (!hotspot_integer(hotspot, blob->copy, blob->size, field, &value) || value < least ||
        value > most) {
        return -1;
    }
    return (int32_t)value;
}

/* The same for a field that holds an address inside of the code: its offset. */
static int32_t address_fact(const struct hotspot *hotspot, const struct blob *blob,
                            enum field field, uint64_t code, uint64_t size)
{
    uint64_t value = hotspot_pointer(hotspot, blob->copy, blob->size, field);
    return value >= code && value - code < size ? (int32_t)(value - code) : -1;
}

/* Whether what each nmethod has is what none can have. */
static bool is_absurd(const struct hotspot *hotspot, const struct blob *blob)
{
    int64_t value = 0;
    /* CompLevel (compiler/compilerDefinitions.hpp) ends with 4; the entry of code that was entered
     * in mid-method and is not any more is InvalidOSREntryBci, -2. */
    return (hotspot_integer(hotspot, blob->copy, blob->size, NMETHOD_TIER, &value) &&
            (value < 0 || value > 4)) ||
           (hotspot_integer(hotspot, blob->copy, blob->size, NMETHOD_COMPILE_ID, &value) &&
            value < 0) ||
           (hotspot_integer(hotspot, blob->copy, blob->size, NMETHOD_ENTRY_BCI, &value) &&
            (value < -2 || value > UINT16_MAX));
}

static void nmethod_facts(const struct hotspot *hotspot, const struct blob *blob, uint64_t code,
                          uint64_t size, struct code_facts *facts)
{
    facts->tier = fact(hotspot, blob, NMETHOD_TIER, 0, 4);
    facts->tier = facts->tier == 4 ? hotspot->top_tier : facts->tier;
    facts->compile_id = fact(hotspot, blob, NMETHOD_COMPILE_ID, 0, INT32_MAX);
    facts->verified_entry = address_fact(hotspot, blob, NMETHOD_VERIFIED_ENTRY, code, size);
    if (facts->verified_entry < 0) {
        facts->verified_entry = fact(hotspot, blob, NMETHOD_VERIFIED_OFFSET, 0, (int64_t)size - 1);
    }
    /* InvocationEntryBci is -1: entered from the start. */
    facts->osr_bci = fact(hotspot, blob, NMETHOD_ENTRY_BCI, 0, UINT16_MAX);
    if (facts->osr_bci >= 0) {
        facts->osr_entry = address_fact(hotspot, blob, NMETHOD_OSR_ENTRY, code, size);
    }
}

/*
 * To JDK 22 all is in the blob, one behind the other: metadata, scopes, PcDescs, dependencies. From
 * 25 on PcDescs and then scopes are in the immutable data, and the metadata is behind the
 * relocations in the mutable data. What was in between is gone, and stays unknown to us. False:
 * what is said of them cannot be.
 */
static bool find_scopes(const struct hotspot *hotspot, const struct blob *blob,
                        struct hotspot_nmethod *nmethod)
{
    const char *copy = blob->copy;
    const size_t size = blob->size;
    int64_t pcs = 0;
    int64_t scopes = 0;
    int64_t end = 0;
    int64_t metadata = 0;
    int64_t metadata_end = 0;
    uint64_t base = hotspot_pointer(hotspot, copy, size, NMETHOD_IMMUTABLE_DATA);
    uint64_t mutable_data = hotspot_pointer(hotspot, copy, size, BLOB_MUTABLE_DATA);
    if (!hotspot_integer(hotspot, copy, size, NMETHOD_PCS_OFFSET, &pcs)) {
        return true;
    }
    if (base && mutable_data) {
        if (!hotspot_integer(hotspot, copy, size, NMETHOD_SCOPES_OFFSET, &scopes) ||
            !hotspot_integer(hotspot, copy, size, NMETHOD_IMMUTABLE_SIZE, &end) ||
            !hotspot_integer(hotspot, copy, size, BLOB_RELOCATION_SIZE, &metadata) ||
            !hotspot_integer(hotspot, copy, size, BLOB_MUTABLE_SIZE, &metadata_end)) {
            return true;
        }
    } else if (!base && !mutable_data) {
        uint64_t data = hotspot_pointer(hotspot, copy, size, NMETHOD_SCOPES);
        base = mutable_data = blob->at;
        if (data) {
            scopes = (int64_t)(data - base);
        } else if (!hotspot_integer(hotspot, copy, size, NMETHOD_SCOPES_OFFSET, &scopes)) {
            return true;
        }
        if (!hotspot_integer(hotspot, copy, size, NMETHOD_DEPENDENCIES_OFFSET, &end) ||
            !hotspot_integer(hotspot, copy, size, NMETHOD_METADATA_OFFSET, &metadata)) {
            return true;
        }
        metadata_end = scopes;
    } else {
        return true;
    }
    int64_t first = pcs < scopes ? pcs : scopes;
    if (first < 0 || end < pcs || end < scopes || metadata < 0 || metadata_end < metadata) {
        return false;
    }
    nmethod->data = base + (uint64_t)first;
    nmethod->data_size = (size_t)(end - first);
    nmethod->pcs_at = (size_t)(pcs - first);
    nmethod->scopes_at = (size_t)(scopes - first);
    nmethod->metadata = mutable_data + (uint64_t)metadata;
    nmethod->metadata_count = (size_t)(metadata_end - metadata) / sizeof(void *);
    return true;
}

/* Copies the blob whose code is that, and fills in what is known of every blob. */
static bool blob_facts(struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t code,
                       uint64_t size, struct code_facts *facts, struct blob *blob)
{
    enum { MAX_FRAME_WORDS = 1 << 20 };
    if (!hotspot || size == 0 || size > INT32_MAX ||
        !find_blob(hotspot, nearby, code, size, blob)) {
        return false;
    }
    int32_t words = fact(hotspot, blob, BLOB_FRAME_SIZE, 1, MAX_FRAME_WORDS);
    facts->frame_size = words > 0 ? words * (int32_t)sizeof(void *) : -1;
    facts->frame_complete = fact(hotspot, blob, BLOB_FRAME_COMPLETE, 0, (int64_t)size);
    return true;
}

void hotspot_facts(struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t address,
                   uint64_t size, struct code_facts *facts)
{
    struct blob blob;
    (void)blob_facts(hotspot, nearby, address, size, facts, &blob);
}

void hotspot_compiled_facts(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                            uint64_t address, uint64_t size, struct code_facts *facts,
                            struct hotspot_nmethod *nmethod)
{
    struct blob blob;
    *nmethod = (struct hotspot_nmethod){0};
    if (!blob_facts(hotspot, nearby, address, size, facts, &blob)) {
        return;
    }
    if (is_absurd(hotspot, &blob)) {
        hotspot_distrust(hotspot, &hotspot->blobs,
                         "an nmethod without a tier; tiers and frame sizes are unknown");
        facts->frame_size = facts->frame_complete = -1;
        return;
    }
    nmethod_facts(hotspot, &blob, address, size, facts);
    nmethod->method = hotspot_pointer(hotspot, blob.copy, blob.size, NMETHOD_METHOD);
    if (!find_scopes(hotspot, &blob, nmethod)) {
        hotspot_scopes_broken(hotspot);
    }
}

int32_t hotspot_compilation_in_use(struct hotspot *hotspot, uint64_t address)
{
    struct blob blob;
    uint64_t code = 0;
    if (!hotspot || !find_blob(hotspot, NULL, address, 0, &blob) || is_absurd(hotspot, &blob)) {
        return -1;
    }
    /* Before an nmethod goes, its method has left it (nmethod::unlink_from_method). */
    uint64_t method = hotspot_pointer(hotspot, blob.copy, blob.size, NMETHOD_METHOD);
    return hotspot_read_pointer(hotspot, method, METHOD_CODE, &code) && code == blob.at
               ? fact(hotspot, &blob, NMETHOD_COMPILE_ID, 0, INT32_MAX)
               : -1;
}

/* ---- Threads ---- */

uint32_t hotspot_thread_id(const struct hotspot *hotspot, uint64_t java_thread)
{
    uint64_t os_thread = 0;
    int64_t tid = 0;
    return hotspot && hotspot_read_pointer(hotspot, java_thread, THREAD_OSTHREAD, &os_thread) &&
                   hotspot_read_integer(hotspot, os_thread, OSTHREAD_ID, &tid) && tid > 0 &&
                   tid <= INT32_MAX
               ? (uint32_t)tid
               : 0;
}

uint64_t hotspot_thread_record(const struct hotspot *hotspot, uint64_t java_thread)
{
    uint64_t sp = 0;
    uint64_t pc = 0;
    uint64_t fp = 0;
    uint64_t below[2] = {0};
    if (!hotspot || !hotspot->layout.places[THREAD_ANCHOR].known) {
        return 0;
    }
    uint64_t anchor = java_thread + hotspot->layout.places[THREAD_ANCHOR].offset;
    bool is = hotspot_read_pointer(hotspot, anchor, ANCHOR_SP, &sp) &&
              hotspot_read_pointer(hotspot, anchor, ANCHOR_PC, &pc) &&
              hotspot_read_pointer(hotspot, anchor, ANCHOR_FP, &fp) && sp > sizeof(below) && pc &&
              memory_read(hotspot->memory, sp - sizeof(below), below, sizeof(below));
    return is && below[0] == fp && below[1] == pc ? sp - sizeof(below) : 0;
}
