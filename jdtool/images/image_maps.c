#include "jdtool/images/image_maps.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/message.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/perf/perf_data.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Memory for code that is closer together is taken for one code cache; HotSpot's has at most 2 GB.
 */
#define CACHE_SIZE (UINT64_C(2) << 30)
#define CACHES_MAX 8

/* The state of all processes of which nothing is known. */
#define NOTHING_MAPPED 1

/* What a process has of one JVM's images. */
struct mapped_images {
    struct jvm_images *images;
    uint64_t *pieces; /* a bit set: mapped, and not hidden by another one since */
    uint32_t words;
    bool frames;
};

/* A process that has mapped memory for code, or something of ours. */
struct mapped_process {
    uint32_t pid;
    bool is_free;
    uint32_t state;        /* see image_maps_state */
    const char *last_path; /* of the image mapped last; NULL: another file was, or nothing */
    struct mapped_images *images;
    uint32_t count;
    uint32_t room;
    uint64_t caches[CACHES_MAX]; /* lowest addresses of memory for generated code */
    uint32_t cache_count;
};

struct image_maps {
    const struct perf_data *data;
    struct perf_writer *writer;
    struct mapped_process *processes;
    uint32_t count;
    uint32_t room;
    uint32_t *free;
    uint32_t free_count;
    uint32_t free_room;
    struct hash_map by_pid;
    uint32_t last_state; /* the last one that was given out */
    uint32_t last;       /* process that was asked for, plus one; 0: none */
    uint8_t record[PERF_RECORD_SIZE_MAX];
};

struct image_maps *image_maps_new(const struct perf_data *data, struct perf_writer *writer)
{
    struct image_maps *maps = calloc(1, sizeof *maps);
    if (maps) {
        maps->data = data;
        maps->writer = writer;
        maps->last_state = NOTHING_MAPPED;
    }
    return maps;
}

static void clear_process(struct mapped_process *process)
{
    for (uint32_t i = 0; i < process->count; i++) {
        free(process->images[i].pieces);
    }
    free(process->images);
    *process = (struct mapped_process){.is_free = true};
}

void image_maps_free(struct image_maps *maps)
{
    if (maps) {
        for (uint32_t i = 0; i < maps->count; i++) {
            clear_process(&maps->processes[i]);
        }
        hash_map_free(&maps->by_pid);
        free(maps->processes);
        free(maps->free);
        free(maps);
    }
}

static int no_memory(void)
{
    return failed_to(-ENOMEM, "map code in the result");
}

/* ---- Processes ---- */

static struct mapped_process *find_process(struct image_maps *maps, uint32_t pid)
{
    if (maps->last && maps->processes[maps->last - 1].pid == pid &&
        !maps->processes[maps->last - 1].is_free) {
        return &maps->processes[maps->last - 1];
    }
    uint32_t at;
    HASH_MAP_FIND(at, &maps->by_pid, pid, maps->processes[at].pid == pid);
    if (at == HASH_MAP_NONE) {
        return NULL;
    }
    maps->last = at + 1;
    return &maps->processes[at];
}

/* NULL: no memory. */
static struct mapped_process *get_process(struct image_maps *maps, uint32_t pid)
{
    struct mapped_process *process = find_process(maps, pid);
    if (process) {
        return process;
    }
    if (ARRAY_RESERVE(maps->processes, maps->count, maps->room) ||
        ARRAY_RESERVE(maps->free, maps->count, maps->free_room)) {
        return NULL;
    }
    uint32_t at = maps->free_count ? maps->free[maps->free_count - 1] : maps->count;
    if (hash_map_add(&maps->by_pid, pid, at) < 0) {
        return NULL;
    }
    if (maps->free_count) {
        maps->free_count--;
    } else {
        maps->count++;
    }
    maps->processes[at] = (struct mapped_process){.pid = pid, .state = ++maps->last_state};
    return &maps->processes[at];
}

/* What was mapped is gone, or perf will think so. */
static void forget(struct image_maps *maps, uint32_t pid)
{
    struct mapped_process *process = find_process(maps, pid);
    if (process) {
        uint32_t at = (uint32_t)(process - maps->processes);
        (void)hash_map_remove(&maps->by_pid, pid, at);
        clear_process(process);
        maps->free[maps->free_count++] = at; /* has room for all processes */
        maps->last = 0;
    }
}

/* NULL: no memory. */
static struct mapped_images *images_in(struct mapped_process *process, struct jvm_images *images)
{
    for (uint32_t i = 0; i < process->count; i++) {
        if (process->images[i].images == images) {
            return &process->images[i];
        }
    }
    if (ARRAY_RESERVE(process->images, process->count, process->room)) {
        return NULL;
    }
    process->images[process->count] = (struct mapped_images){.images = images};
    return &process->images[process->count++];
}

/* ---- Records ---- */

/* PERF_RECORD_MMAP2 up to the file's name. */
struct mmap2_record {
    struct perf_event_header header;
    uint32_t pid;
    uint32_t tid;
    uint64_t address;
    uint64_t size;
    uint64_t file_offset;
    uint32_t device[2];
    uint64_t inode;
    uint64_t generation;
    uint32_t protection;
    uint32_t flags;
};
_Static_assert(sizeof(struct mmap2_record) == 72, "mmap2_record");

/* The file's build-id is known at the end; it stands in HEADER_BUILD_ID. */
static void put_mapping(struct image_maps *maps, uint32_t pid, uint64_t time, const char *path,
                        uint64_t address, uint64_t size, uint64_t offset)
{
    struct mmap2_record mmap = {
        .pid = pid,
        .tid = pid,
        .address = address,
        .size = size,
        .file_offset = offset,
        .protection = PROT_READ | PROT_EXEC,
        .flags = MAP_PRIVATE,
    };
    size_t length = strlen(path);
    size_t path_size = (length + 8) / 8 * 8; /* with its NUL */
    if (length > PATH_MAX) {
        perf_writer_fail(maps->writer, -ENAMETOOLONG);
        return;
    }
    uint8_t *at = maps->record + sizeof mmap;
    memset(at, 0, path_size);
    memcpy(at, path, length + 1);
    size_t id_size = perf_put_sample_id(maps->data, pid, pid, time, at + path_size);
    mmap.header = (struct perf_event_header){
        .type = PERF_RECORD_MMAP2,
        .misc = PERF_RECORD_MISC_USER,
        .size = (uint16_t)(sizeof mmap + path_size + id_size),
    };
    memcpy(maps->record, &mmap, sizeof mmap);
    perf_writer_put(maps->writer, maps->record, mmap.header.size);
}

/* ---- Touching ---- */

/* Where the code cache that an address lies in may begin. */
struct surroundings {
    const struct mapped_process *process;
    struct code_index *index;
};

static uint64_t lowest(void *context, uint64_t address)
{
    const struct surroundings *around = context;
    uint64_t least = address;
    for (uint32_t i = 0; i < around->process->cache_count; i++) {
        uint64_t start = around->process->caches[i];
        if (start < least && address - start < CACHE_SIZE) {
            least = start;
        }
    }
    uint32_t blobs = code_index_blob_count(around->index);
    for (uint32_t i = 0; i < blobs; i++) {
        uint64_t start = code_index_blob(around->index, i)->address;
        if (start < least && address - start < CACHE_SIZE) {
            least = start;
        }
    }
    return least;
}

static bool is_mapped(const struct mapped_images *mapped, uint32_t piece)
{
    return piece / 64 < mapped->words && (mapped->pieces[piece / 64] >> (piece % 64) & 1);
}

struct hiding {
    struct mapped_images *mapped;
    bool is_any;
};

static void hide(void *context, uint32_t piece)
{
    struct hiding *hiding = context;
    if (is_mapped(hiding->mapped, piece)) {
        hiding->mapped->pieces[piece / 64] &= ~(UINT64_C(1) << (piece % 64));
        hiding->is_any = true;
    }
}

static void hide_all(struct image_maps *maps, struct mapped_process *process, uint64_t address,
                     uint64_t size)
{
    struct hiding hiding = {0};
    for (uint32_t i = 0; i < process->count; i++) {
        hiding.mapped = &process->images[i];
        image_layout_overlaps(hiding.mapped->images->layout, address, size, hide, &hiding);
    }
    if (hiding.is_any) {
        process->state = ++maps->last_state;
    }
}

static int mark(struct mapped_images *mapped, uint32_t piece)
{
    while (piece / 64 >= mapped->words) {
        uint32_t old = mapped->words;
        if (ARRAY_RESERVE(mapped->pieces, old, mapped->words)) {
            return -ENOMEM;
        }
        memset(mapped->pieces + old, 0, (mapped->words - old) * sizeof(uint64_t));
    }
    mapped->pieces[piece / 64] |= UINT64_C(1) << (piece % 64);
    return 0;
}

static int map_piece(struct image_maps *maps, struct mapped_process *process,
                     struct jvm_images *images, uint32_t file, uint64_t time,
                     const struct resolved_code *code)
{
    const struct image_file *image = image_layout_file(images->layout, file);
    uint64_t base = image->base;
    const char *path = image_set_path(images, file);
    if (!path) {
        return -ENOMEM;
    }
    if (process->last_path != path && images->paths[file].bases < IMAGE_BASE_ROOM) {
        put_mapping(maps, process->pid, time, path, base, ++images->paths[file].bases, 0);
        if (images->frame_info && image->frame_room) {
            put_mapping(maps, process->pid, time, path, image->frame_room, IMAGE_FRAME_ROOM,
                        image->frame_room - base);
        }
    }
    process->last_path = path;
    put_mapping(maps, process->pid, time, path, code->address, code->size, code->address - base);
    return 0;
}

/* The images of a process that was not asked for last, or was asked for another JVM's. */
static struct mapped_images *get_images(struct image_maps *maps, struct jvm_images *images,
                                        uint32_t pid, struct mapped_process **process)
{
    *process = get_process(maps, pid);
    return *process ? images_in(*process, images) : NULL;
}

static bool has_code(const struct mapped_images *mapped, const struct resolved_code *code)
{
    const struct jvm_images *images = mapped->images;
    return code->id < images->piece_room && images->pieces[code->id] &&
           is_mapped(mapped, images->pieces[code->id] - 1);
}

bool image_maps_has(struct image_maps *maps, struct jvm_images *images, uint32_t pid,
                    const struct resolved_code *code)
{
    const struct mapped_process *process = find_process(maps, pid);
    for (uint32_t i = 0; process && i < process->count; i++) {
        if (process->images[i].images == images) {
            return has_code(&process->images[i], code);
        }
    }
    return false;
}

uint32_t image_maps_state(struct image_maps *maps, uint32_t pid)
{
    const struct mapped_process *process = find_process(maps, pid);
    return process ? process->state : NOTHING_MAPPED;
}

int image_maps_touch(struct image_maps *maps, struct jvm_images *images, uint32_t pid,
                     uint64_t time, const struct resolved_code *code)
{
    struct mapped_process *process;
    struct mapped_images *mapped = get_images(maps, images, pid, &process);
    if (!mapped) {
        return no_memory();
    }
    if (has_code(mapped, code)) {
        return 0;
    }
    struct surroundings around = {process, images->index};
    uint32_t piece;
    int err = image_set_piece(images, code, lowest, &around, &piece);
    if (err) {
        return err;
    }
    uint32_t file = image_layout_file_of(images->layout, piece);
    if (file != IMAGE_NONE) {
        hide_all(maps, process, code->address, code->size);
        err = map_piece(maps, process, images, file, time, code);
    }
    return err ? err : mark(mapped, piece) < 0 ? no_memory() : 0;
}

int image_maps_touch_frames(struct image_maps *maps, struct jvm_images *images, uint32_t pid,
                            uint64_t time)
{
    struct mapped_process *process;
    struct mapped_images *mapped = get_images(maps, images, pid, &process);
    if (!mapped) {
        return no_memory();
    }
    if (mapped->frames) {
        return 0;
    }
    const char *path = image_set_frames_path(images);
    if (!path) {
        return -ENOMEM;
    }
    mapped->frames = true;
    process->last_path = NULL;
    put_mapping(maps, pid, time, path, image_frames_start(images->frames), IMAGE_FRAMES_SPACE, 0);
    return 0;
}

/* ---- What the recording tells ---- */

/* Memory for code: where a code cache may begin. */
static int note_cache(struct image_maps *maps, uint32_t pid, uint64_t start)
{
    struct mapped_process *process = get_process(maps, pid);
    if (!process) {
        return no_memory();
    }
    for (uint32_t i = 0; i < process->cache_count; i++) {
        if (start >= process->caches[i] && start - process->caches[i] < CACHE_SIZE) {
            return 0;
        }
        if (start < process->caches[i] && process->caches[i] - start < CACHE_SIZE) {
            process->caches[i] = start;
            return 0;
        }
    }
    if (process->cache_count < CACHES_MAX) {
        process->caches[process->cache_count++] = start;
    }
    return 0;
}

int image_maps_record(struct image_maps *maps, const struct perf_record *record, bool dropped)
{
    const struct mapping *mapping = record->mapping;
    uint32_t ids[2]; /* pid and the parent's of FORK and EXIT, pid and tid of COMM */
    int err = 0;
    if (mapping && !mapping->kernel) {
        struct mapped_process *process = find_process(maps, mapping->pid);
        if (process && !dropped) {
            process->last_path = NULL;
            hide_all(maps, process, mapping->start, mapping->end - mapping->start);
        }
        if (mapping->anonymous && mapping->executable) {
            err = note_cache(maps, mapping->pid, mapping->start);
        }
        return err;
    }
    if (record->size < sizeof(struct perf_event_header) + 2 * sizeof ids) {
        return 0;
    }
    memcpy(ids, record->bytes + sizeof(struct perf_event_header), sizeof ids);
    uint32_t tid;
    memcpy(&tid, record->bytes + sizeof(struct perf_event_header) + sizeof ids, sizeof tid);
    switch (record->type) {
    case PERF_RECORD_FORK: /* a thread of its own process, or a new process */
        if (ids[0] != ids[1]) {
            forget(maps, ids[0]);
        }
        break;
    case PERF_RECORD_EXIT:
        if (ids[0] == tid) {
            forget(maps, ids[0]);
        }
        break;
    case PERF_RECORD_COMM:
        if (record->misc & PERF_RECORD_MISC_COMM_EXEC) {
            forget(maps, ids[0]);
        }
        break;
    default:
        break;
    }
    return 0;
}
