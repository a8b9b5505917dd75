#include "jdtool/perf/walked.h"

#include "jdtool/base/hash_map.h"

#include <string.h>

_Static_assert(sizeof(struct walked_head) == 24, "walked_head");

bool walked_begin(const uint8_t *bytes, size_t size, struct walked *walked)
{
    *walked = (struct walked){0};
    if (size < sizeof walked->head) {
        return false;
    }
    memcpy(&walked->head, bytes, sizeof walked->head);
    size_t before = walked->head.raw + (size_t)8 * walked->head.kernel;
    walked->words = bytes + sizeof walked->head + before;
    return walked->head.magic == WALKED_MAGIC &&
           before + (size_t)4 * walked->head.words <= size - sizeof walked->head;
}

/* Behind the end: 0. */
static uint32_t word(struct walked *walked)
{
    uint32_t value = 0;
    if (walked->at < walked->head.words) {
        memcpy(&value, walked->words + (size_t)4 * walked->at, sizeof value);
    }
    walked->at++;
    return value;
}

static uint64_t wide(struct walked *walked)
{
    uint64_t low = word(walked);
    return low | (uint64_t)word(walked) << 32;
}

bool walked_next(struct walked *walked, struct walked_frame *frame)
{
    if (walked->at >= walked->head.words) {
        return false;
    }
    uint32_t first = word(walked);
    *frame = (struct walked_frame){.interpreted = first & WALKED_INTERPRETED,
                                   .frozen = first & WALKED_FROZEN};
    if (first & WALKED_WIDE) {
        frame->pc = wide(walked);
        frame->caller = first & WALKED_IS_CALLER;
        frame->assumed = first & WALKED_ASSUMED ? word(walked) : 0;
    } else {
        int32_t delta =
            (int32_t)(first & ~((1u << WALKED_DELTA_SHIFT) - 1)) / (1 << WALKED_DELTA_SHIFT);
        frame->pc = walked->before + (uint64_t)(int64_t)delta;
        frame->caller = true;
    }
    walked->before = frame->pc;
    if (frame->interpreted) {
        uint64_t low = word(walked);
        uint32_t high = word(walked);
        frame->method = low | (uint64_t)(high & 0xffff) << 32;
        if (high & WALKED_BCP_WIDE) {
            frame->bcp = wide(walked);
        } else {
            frame->bcp = frame->method + (uint64_t)(int64_t)(int32_t)word(walked);
        }
        if (high & WALKED_LEAF) {
            frame->bcp_register = wide(walked);
            frame->method_register = wide(walked);
        }
    }
    return walked->at <= walked->head.words;
}

uint64_t walked_key(const struct walked_frame *frame)
{
    uint64_t key = frame->pc | (uint64_t)!frame->caller << 62; /* programs are below both bits */
    if (frame->assumed) {
        key = hash_mix(hash_pair(key, frame->assumed)) | UINT64_C(1) << 63;
    }
    if (frame->interpreted) {
        key = hash_mix(hash_pair(key, frame->method));
        key = hash_mix(hash_pair(key, frame->bcp));
        key = hash_mix(hash_pair(key, frame->method_register));
        key = hash_mix(hash_pair(key, frame->bcp_register)) | UINT64_C(1) << 63;
    }
    return key;
}
