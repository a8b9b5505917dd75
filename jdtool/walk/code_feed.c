#include "jdtool/walk/code_feed.h"

#include <string.h>

int code_feed_open(struct code_feed *feed, int fd, const char *name)
{
    *feed = (struct code_feed){0};
    for (int i = 0; i < JITDUMP_CODE_FROZEN_COUNT; i++) {
        feed->frozen[i] = -1;
    }
    return jitdump_reader_open_fd(fd, name, &feed->reader);
}

void code_feed_close(struct code_feed *feed)
{
    jitdump_reader_close(feed->reader);
    feed->reader = NULL;
}

/* One whose trailer is broken tells nothing. */
static void take_facts(struct code_feed *feed, const struct jitdump_record_view *record)
{
    const uint8_t *behind;
    size_t size;
    const char *why;
    feed->address = 0;
    if (jitdump_behind_entries(feed->reader, record, &behind, &size) == 0 &&
        trailer_facts(feed->reader, behind, size, feed->facts, &why) == 0) {
        feed->address = record->debug_info.code_addr;
        if (feed->facts[JITDUMP_CODE_FROZEN_STACK] > 0) {
            memcpy(feed->frozen, feed->facts + JITDUMP_CODE_FROZEN_FIRST, sizeof feed->frozen);
        }
    }
}

static void take_load(struct code_feed *feed, const struct jitdump_record_view *record,
                      struct fed_code *code)
{
    bool has_facts = feed->address && feed->address == record->load.code_addr;
    *code = (struct fed_code){
        .address = record->load.code_addr,
        .size = record->load.code_size,
        .load_offset = record->offset,
        .verified_entry = has_facts ? feed->facts[JITDUMP_CODE_VERIFIED_ENTRY] : -1,
        .osr_entry = has_facts ? feed->facts[JITDUMP_CODE_OSR_ENTRY] : -1,
    };
    blob_frames_facts(record->load.name, has_facts ? feed->facts : NULL, &code->frames);
    feed->address = 0;
}

/* What was moved, which is rare, is not known where it is now: stacks with it are copied. */
bool code_feed_next(struct code_feed *feed, struct fed_code *code)
{
    for (;;) {
        struct jitdump_record_view record;
        enum jitdump_status status = jitdump_reader_next(feed->reader, &record);
        if (status == JITDUMP_BROKEN) {
            continue;
        }
        if (status != JITDUMP_RECORD) {
            return false;
        }
        if (record.id == JIT_CODE_DEBUG_INFO) {
            take_facts(feed, &record);
        } else if (record.id == JIT_CODE_LOAD) {
            take_load(feed, &record, code);
            return true;
        }
    }
}

void code_feed_rows(struct code_feed *feed, struct fed_code *code)
{
    struct jitdump_record_view record;
    uint64_t next = jitdump_reader_offset(feed->reader);
    jitdump_reader_seek(feed->reader, code->load_offset);
    if (jitdump_reader_next(feed->reader, &record) == JITDUMP_RECORD &&
        record.id == JIT_CODE_LOAD && record.load.bytes && record.load.code_size == code->size &&
        code->size <= FRAMES_CODE_MAX) {
        struct frames_code source = {
            .bytes = record.load.bytes,
            .size = (uint32_t)code->size,
            .address = record.load.code_addr,
            .verified_entry = code->verified_entry,
            .osr_entry = code->osr_entry,
            .entry_frame = feed->entry_frame,
        };
        blob_frames_rows(jitdump_reader_header(feed->reader)->elf_mach, &source, &code->frames);
        if (code->frames.continuation_entry) {
            feed->entry_frame = code->frames.frames.frame_size;
        }
    }
    jitdump_reader_seek(feed->reader, next);
}
