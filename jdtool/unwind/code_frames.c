#include "jdtool/unwind/code_frames.h"

#include "jdtool/base/chunks.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct code_frames {
    struct code_index *index;
    struct chunks blobs; /* of struct blob_frames, by blob of the index */
    struct code_details details;
    struct blob_frames nothing; /* for want of memory */
    uint32_t entry_frame;       /* frame size of Continuation.enterSpecial; 0: not seen yet */
    uint32_t entry_sought;      /* among so many blobs */
};

struct code_frames *code_frames_new(struct code_index *index)
{
    struct code_frames *frames = calloc(1, sizeof *frames);
    if (!frames) {
        return NULL;
    }
    frames->index = index;
    frames->blobs.element = sizeof(struct blob_frames);
    return frames;
}

void code_frames_free(struct code_frames *frames)
{
    if (!frames) {
        return;
    }
    for (uint32_t i = 0; i < frames->blobs.count; i++) {
        frames_free(&((struct blob_frames *)chunks_at(&frames->blobs, i))->frames);
    }
    chunks_free(&frames->blobs);
    code_details_free(&frames->details);
    free(frames);
}

static bool is_continuation_entry(const char *name)
{
    return strstr(name, "Continuation") && strstr(name, "enterSpecial");
}

/*
 * Unwinders look a return address up one byte before it. That of a thawed continuation's last frame
 * is the first byte of cont_returnBarrier, so they arrive at the last one of cont_thaw, which lies
 * in front of it; cont_thaw itself never gets there.
 */
static void add_barrier_row(struct blob_frames *blob, const struct frames_code *code)
{
    struct frame_row row = {.offset = code->size - 1,
                            .cfa = FRAME_CFA_SP,
                            .cfa_offset = (int32_t)code->entry_frame,
                            .ra = FRAME_AT_CFA,
                            .ra_offset = -8,
                            .fp = FRAME_AT_CFA,
                            .fp_offset = -16};
    const struct frames *frames = &blob->frames;
    if (frames->count && frames->rows[frames->count - 1].offset < row.offset) {
        (void)frames_append(&blob->frames, &row);
    }
}

void blob_frames_facts(const char *name, const int64_t *facts, struct blob_frames *blob)
{
    blob->shape = frames_shape_of(name, facts ? facts[JITDUMP_CODE_KIND] : -1);
    blob->told_frame_size = facts ? facts[JITDUMP_CODE_FRAME_SIZE] : -1;
    blob->compile_id = facts ? facts[JITDUMP_CODE_COMPILE_ID] : -1;
    blob->is_method = facts && (facts[JITDUMP_CODE_KIND] == JITDUMP_KIND_NMETHOD ||
                                facts[JITDUMP_CODE_KIND] == JITDUMP_KIND_NATIVE_WRAPPER);
    blob->continuation_entry = is_continuation_entry(name);
    blob->yields = strstr(name, "Continuation") && strstr(name, "doYield");
    blob->return_barrier = frames_is_return_barrier(name);
    blob->known = true;
}

void blob_frames_rows(unsigned machine, struct frames_code *code, struct blob_frames *blob)
{
    code->shape = blob->shape;
    /* A failure leaves no rows behind, and such code is not walked. */
    if (machine == EM_X86_64) {
        (void)frames_x86_64(code, &blob->frames);
    } else if (machine == EM_AARCH64) {
        (void)frames_aarch64(code, &blob->frames);
    }
    if (blob->shape == FRAMES_CONTINUATION && !blob->return_barrier && code->entry_frame) {
        add_barrier_row(blob, code);
    }
    frames_fit(&blob->frames);
}

static void work_out(struct code_frames *frames, uint32_t number, struct blob_frames *blob)
{
    const struct code_blob *about = code_index_blob(frames->index, number);
    if (!about->has_bytes || about->size > FRAMES_CODE_MAX ||
        code_index_fetch(frames->index, number, &frames->details) != 0 || !frames->details.bytes) {
        if (!blob->known) {
            blob_frames_facts(about->name, NULL, blob);
        }
        return;
    }
    blob_frames_facts(about->name, frames->details.trailer.facts, blob);
    const int64_t *facts = frames->details.trailer.facts;
    struct frames_code code = {
        .bytes = frames->details.bytes,
        .size = (uint32_t)about->size,
        .address = about->address,
        .verified_entry = facts[JITDUMP_CODE_VERIFIED_ENTRY],
        .osr_entry = facts[JITDUMP_CODE_OSR_ENTRY],
        .entry_frame = frames->entry_frame,
    };
    blob_frames_rows(code_index_header(frames->index)->elf_mach, &code, blob);
}

/* The frame in which a continuation runs: that of jdk.internal.vm.Continuation.enterSpecial. */
static void seek_entry_frame(struct code_frames *frames)
{
    uint32_t count = code_index_blob_count(frames->index);
    while (frames->entry_frame == 0 && frames->entry_sought < count) {
        uint32_t blob = frames->entry_sought++;
        if (is_continuation_entry(code_index_blob(frames->index, blob)->name)) {
            frames->entry_frame = code_frames_of(frames, blob)->frames.frame_size;
        }
    }
}

bool code_frames_of_interpreter(struct code_frames *frames)
{
    uint32_t count = code_index_blob_count(frames->index);
    for (uint32_t i = 0; i < count; i++) {
        if (frames_shape_of(code_index_blob(frames->index, i)->name, -1) == FRAMES_INTERPRETER) {
            (void)code_frames_of(frames, i);
            return true;
        }
    }
    return false;
}

static struct blob_frames *blob_at(struct code_frames *frames, uint32_t number)
{
    while (frames->blobs.count <= number) {
        if (!chunks_add(&frames->blobs)) {
            return NULL;
        }
    }
    return chunks_at(&frames->blobs, number);
}

const struct blob_frames *code_frames_facts(struct code_frames *frames, uint32_t number,
                                            const struct code_details *details)
{
    struct blob_frames *blob = blob_at(frames, number);
    if (!blob) {
        return &frames->nothing;
    }
    if (!blob->known) {
        const struct code_blob *about = code_index_blob(frames->index, number);
        if (!details && code_index_fetch(frames->index, number, &frames->details) == 0) {
            details = &frames->details;
        }
        blob_frames_facts(about->name, details ? details->trailer.facts : NULL, blob);
    }
    return blob;
}

const struct blob_frames *code_frames_of(struct code_frames *frames, uint32_t number)
{
    struct blob_frames *blob = blob_at(frames, number);
    if (!blob) {
        return &frames->nothing;
    }
    if (!blob->ready) {
        const char *name = code_index_blob(frames->index, number)->name;
        bool in_continuation = frames_shape_of(name, -1) == FRAMES_CONTINUATION;
        if (in_continuation) {
            seek_entry_frame(frames);
        }
        /* Such code is worked out anew once the frame it runs in is known. */
        blob->ready = !in_continuation || frames->entry_frame;
        work_out(frames, number, blob);
    }
    return blob;
}
