#include "jdtool/sinks/image_mappings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct image_mapping {
    uint64_t time;
    uint32_t jvm;
    uint32_t stay; /* FRAMES: the image of its frames */
};
#define FRAMES UINT32_MAX

struct image_mappings {
    const struct perf_data *data;
    const struct jvms *jvms;
    const struct image_files *files;
    bool keep_all;
    struct image_mapping *list; /* by time */
    uint32_t count;
    uint32_t next;
    uint8_t record[PERF_RECORD_SIZE_MAX];
};

static bool is_mapped(const struct image_mappings *mappings, uint32_t jvm, uint32_t stay)
{
    const struct code_index *index = mappings->jvms->list[jvm]->index;
    bool touched = mappings->jvms->list[jvm]->touched_stays[stay / 64] >> (stay % 64) & 1;
    return (touched || mappings->keep_all) &&
           mappings->files[jvm].code.offsets[code_index_stay(index, stay)->blob] != 0;
}

static int by_time(const void *left, const void *right)
{
    const struct image_mapping *a = left;
    const struct image_mapping *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return (a->stay > b->stay) - (a->stay < b->stay);
}

static bool list_mappings(struct image_mappings *mappings)
{
    size_t room = 0;
    for (uint32_t i = 0; i < mappings->jvms->count; i++) {
        const struct code_index *index = mappings->jvms->list[i]->index;
        room += index ? code_index_stay_count(index) + (size_t)1 : 0;
    }
    mappings->list = calloc(room + 1, sizeof *mappings->list);
    if (!mappings->list) {
        return false;
    }
    for (uint32_t i = 0; i < mappings->jvms->count; i++) {
        const struct jvm *jvm = mappings->jvms->list[i];
        if (mappings->files[i].frames_path) {
            mappings->list[mappings->count++] = (struct image_mapping){jvm->from, i, FRAMES};
        }
        uint32_t stays = jvm->index ? code_index_stay_count(jvm->index) : 0;
        for (uint32_t stay = 0; stay < stays; stay++) {
            if (is_mapped(mappings, i, stay)) {
                uint64_t from = code_index_stay(jvm->index, stay)->from;
                mappings->list[mappings->count++] =
                    (struct image_mapping){jvm_recording_time(jvm, from), i, stay};
            }
        }
    }
    if (mappings->count) {
        qsort(mappings->list, mappings->count, sizeof *mappings->list, by_time);
    }
    return true;
}

/* PERF_RECORD_MMAP2 up to the file's name. */
struct mmap2_record {
    struct perf_event_header header;
    uint32_t pid;
    uint32_t tid;
    uint64_t address;
    uint64_t size;
    uint64_t file_offset;
    uint8_t build_id_size;
    uint8_t reserved[3];
    uint8_t build_id[BUILD_ID_MAX];
    uint32_t protection;
    uint32_t flags;
};
_Static_assert(sizeof(struct mmap2_record) == 72, "mmap2_record");

static void put_mapping(struct image_mappings *mappings, const struct image_mapping *mapping,
                        struct perf_writer *writer)
{
    const struct jvm *jvm = mappings->jvms->list[mapping->jvm];
    const struct image_files *files = &mappings->files[mapping->jvm];
    const char *path = files->code_path;
    struct mmap2_record mmap = {
        .pid = jvm->process->pid,
        .tid = jvm->process->pid,
        .build_id_size = BUILD_ID_MAX,
        .protection = PROT_READ | PROT_EXEC,
        .flags = MAP_PRIVATE,
    };
    if (mapping->stay == FRAMES) {
        struct frame_mapping frames = frame_table_mapping(jvm->frames);
        mmap.address = frames.address;
        mmap.size = frames.size;
        mmap.file_offset = frames.file_offset;
        memcpy(mmap.build_id, files->frames_build_id, BUILD_ID_MAX);
        path = files->frames_path;
    } else {
        const struct code_stay *stay = code_index_stay(jvm->index, mapping->stay);
        mmap.address = stay->address;
        mmap.size = stay->size;
        mmap.file_offset = files->code.offsets[stay->blob];
        memcpy(mmap.build_id, files->code.build_id, BUILD_ID_MAX);
    }
    size_t path_length = strlen(path);
    size_t path_size = (path_length + 8) / 8 * 8; /* with its NUL */
    uint8_t *at = mappings->record + sizeof mmap;
    memset(at, 0, path_size);
    memcpy(at, path, path_length + 1);
    size_t id_size =
        perf_put_sample_id(mappings->data, mmap.pid, mmap.tid, mapping->time, at + path_size);
    mmap.header = (struct perf_event_header){
        .type = PERF_RECORD_MMAP2,
        .misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID,
        .size = (uint16_t)(sizeof mmap + path_size + id_size),
    };
    memcpy(mappings->record, &mmap, sizeof mmap);
    perf_writer_put(writer, mappings->record, mmap.header.size);
}

void image_mappings_put(struct image_mappings *mappings, uint64_t time, struct perf_writer *writer)
{
    while (mappings->next < mappings->count && mappings->list[mappings->next].time <= time) {
        put_mapping(mappings, &mappings->list[mappings->next++], writer);
    }
}

struct image_mappings *image_mappings_new(const struct perf_data *data, const struct jvms *jvms,
                                          const struct image_files *files, bool keep_all)
{
    struct image_mappings *mappings = calloc(1, sizeof *mappings);
    if (!mappings) {
        return NULL;
    }
    mappings->data = data;
    mappings->jvms = jvms;
    mappings->files = files;
    mappings->keep_all = keep_all;
    if (!list_mappings(mappings)) {
        image_mappings_free(mappings);
        return NULL;
    }
    return mappings;
}

void image_mappings_free(struct image_mappings *mappings)
{
    if (mappings) {
        free(mappings->list);
        free(mappings);
    }
}
