#include "jdtool/perf/mapping.h"

#include <string.h>
#include <sys/mman.h>

uint32_t perf_record_u32(const struct perf_record *record, size_t offset)
{
    uint32_t value = 0;
    if (offset + sizeof value <= record->size) {
        memcpy(&value, record->bytes + offset, sizeof value);
    }
    return value;
}

uint64_t perf_record_u64(const struct perf_record *record, size_t offset)
{
    uint64_t value = 0;
    if (offset + sizeof value <= record->size) {
        memcpy(&value, record->bytes + offset, sizeof value);
    }
    return value;
}

const char *perf_record_string(const struct perf_record *record, size_t offset)
{
    if (offset >= record->size || !memchr(record->bytes + offset, '\0', record->size - offset)) {
        return NULL;
    }
    return (const char *)record->bytes + offset;
}

/* The names the kernel and perf give to memory without a file (map__new in tools/perf/util/map.c);
 * code caches of large pages (-XX:+UseLargePages) have names of their own. */
static bool is_anonymous(const char *path)
{
    static const char *const starts[] = {
        "//anon", "[anon:", "/memfd:", "/anon_hugepage", "/SYSV", "/dev/zero",
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(path, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool mapping_decode(const struct perf_record *record, struct mapping *mapping)
{
    bool extended = record->type == PERF_RECORD_MMAP2;
    uint16_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    if ((!extended && record->type != PERF_RECORD_MMAP) ||
        (mode != PERF_RECORD_MISC_USER && mode != PERF_RECORD_MISC_KERNEL)) {
        return false;
    }
    const char *path = perf_record_string(record, extended ? 72 : 40);
    uint64_t start = perf_record_u64(record, 16);
    uint64_t size = perf_record_u64(record, 24);
    if (!path || size == 0 || size > UINT64_MAX - start) {
        return false;
    }
    bool has_id = extended && record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
    bool has_inode = extended && !has_id;
    *mapping = (struct mapping){
        .pid = perf_record_u32(record, 8),
        .kernel = mode == PERF_RECORD_MISC_KERNEL,
        .start = start,
        .end = start + size,
        .file_offset = perf_record_u64(record, 32),
        .from = record->id.time,
        .file = {.path = path,
                 .inode = has_inode ? perf_record_u64(record, 48) : 0,
                 .major = has_inode ? perf_record_u32(record, 40) : 0,
                 .minor = has_inode ? perf_record_u32(record, 44) : 0},
        .executable = extended ? (perf_record_u32(record, 64) & PROT_EXEC) != 0
                               : !(record->misc & PERF_RECORD_MISC_MMAP_DATA),
        .anonymous = is_anonymous(path),
    };
    /* A byte with the size, three reserved ones, the id. */
    uint8_t id_size = has_id ? record->bytes[40] : 0;
    if (id_size > 0 && id_size <= BUILD_ID_MAX) {
        memcpy(mapping->file.build_id, record->bytes + 44, id_size);
        mapping->file.build_id_size = id_size;
    }
    return true;
}
