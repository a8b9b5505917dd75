#include "jdtool/unwind/frames.h"

#include "format/jitdump.h"
#include "jdtool/base/array.h"
#include "jdtool/base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The stubs of continuations: "Cont thaw" and "Cont thaw return barrier" (on aarch64 "cont return
 * barrier") in JDK 21 to 23, "cont_thaw" and "cont_returnBarrier" to 25, "Stub Generator
 * cont_thaw_stub" in 26 and "cont_thaw_stub (stub gen)" from 27 on.
 */
static const char *without_generator(const char *name)
{
    static const char generator[] = "Stub Generator ";
    return text_begins(name, generator) ? name + sizeof generator - 1 : name;
}

bool frames_is_return_barrier(const char *name)
{
    const char *stub = without_generator(name);
    return text_begins(stub, "cont_returnBarrier") ||
           text_begins(stub, "Cont thaw return barrier") ||
           text_begins(stub, "cont return barrier");
}

static bool is_thaw(const char *name)
{
    const char *stub = without_generator(name);
    return text_begins(stub, "cont_thaw") || text_begins(stub, "Cont thaw");
}

enum frames_shape frames_shape_of(const char *name, int64_t kind)
{
    if (kind == JITDUMP_KIND_INTERPRETER || strcmp(name, "Interpreter") == 0) {
        return FRAMES_INTERPRETER;
    }
    if (kind == JITDUMP_KIND_NMETHOD || kind == JITDUMP_KIND_NATIVE_WRAPPER) {
        return FRAMES_COMPILED;
    }
    if (text_begins(name, "I2C/C2I adapters")) {
        return FRAMES_ADAPTER;
    }
    if (is_thaw(name) || frames_is_return_barrier(name)) {
        return FRAMES_CONTINUATION;
    }
    if (strcmp(name, "InlineCacheBuffer") == 0) {
        return FRAMES_FRAMELESS;
    }
    /* SharedRuntime::generate_handler_blob and OptoRuntime::generate_exception_blob, from JDK 28 on
     * "exception_blob (C2 runtime)" */
    if (text_begins(name, "SafepointBlob") || text_begins(name, "ExceptionBlob") ||
        text_begins(name, "exception_blob") || strstr(name, "polling_page_") != NULL) {
        return FRAMES_JUMPED_TO;
    }
    /* A dump without our trailer: methods carry their class, HotSpot's blobs do not. */
    if (kind == -1 && (strchr(name, '.') != NULL || strchr(name, ';') != NULL)) {
        return FRAMES_COMPILED;
    }
    return FRAMES_STUB;
}

/* Whether a place is the memory at CFA + offset, where the CFA is `size` above sp. */
static bool is_at_cfa(uint8_t place, int32_t its, int32_t size, int32_t offset)
{
    return place == FRAME_AT_CFA ? its == offset : place == FRAME_AT_SP && its == size + offset;
}

bool frame_row_is_sized(const struct frame_row *row, uint32_t size)
{
    return row->cfa == FRAME_CFA_SP && size <= INT32_MAX && row->cfa_offset == (int32_t)size &&
           is_at_cfa(row->ra, row->ra_offset, row->cfa_offset, -8);
}

bool frame_row_is_body(const struct frame_row *row, uint32_t size)
{
    bool is_fp = size == 8 ? row->fp == FRAME_SAME
                           : is_at_cfa(row->fp, row->fp_offset, row->cfa_offset, -16);
    return is_fp && frame_row_is_sized(row, size);
}

const struct frame_row *frames_at(const struct frames *frames, uint32_t offset)
{
    uint32_t low;
    ARRAY_FIRST(low, frames->count, frames->rows[low].offset <= offset);
    return low ? &frames->rows[low - 1] : NULL;
}

static bool same_rules(const struct frame_row *a, const struct frame_row *b)
{
    return a->cfa == b->cfa && a->cfa_offset == b->cfa_offset && a->cfa_reg == b->cfa_reg &&
           a->ra == b->ra && a->ra_offset == b->ra_offset && a->ra_reg == b->ra_reg &&
           a->fp == b->fp && a->fp_offset == b->fp_offset;
}

int frames_append(struct frames *frames, const struct frame_row *row)
{
    if (frames->count && same_rules(&frames->rows[frames->count - 1], row)) {
        return 0;
    }
    if (ARRAY_RESERVE(frames->rows, frames->count, frames->room)) {
        return -ENOMEM;
    }
    frames->rows[frames->count++] = *row;
    return 0;
}

void frames_fit(struct frames *frames)
{
    struct frame_row *rows = frames->count && frames->count < frames->room
                                 ? realloc(frames->rows, frames->count * sizeof *rows)
                                 : NULL;
    if (rows) {
        frames->rows = rows;
        frames->room = frames->count;
    }
}

void frames_free(struct frames *frames)
{
    free(frames->rows);
    memset(frames, 0, sizeof *frames);
}
