#include "jdtool/perf/build_ids.h"

#include "jdtool/perf/perf_data_private.h"

#include <string.h>

/* The size of the entry that [bytes, bytes + size) begins with; 0: there is none, or no sound one.
 */
static int take_entry(const uint8_t *bytes, size_t size,
                      int (*take)(void *context, const struct listed_build_id *listed),
                      void *context, size_t *entry_size)
{
    struct perf_build_id_entry entry;
    *entry_size = 0;
    if (size <= sizeof entry) {
        return 0;
    }
    memcpy(&entry, bytes, sizeof entry);
    if (entry.header.size <= sizeof entry || entry.header.size > size) {
        return 0;
    }
    *entry_size = entry.header.size;
    uint16_t mode = entry.header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
    struct listed_build_id listed = {
        .path = (const char *)bytes + sizeof entry,
        .id = bytes + offsetof(struct perf_build_id_entry, build_id),
        .id_size = entry.header.misc & PERF_BUILD_ID_SIZE ? entry.size : BUILD_ID_MAX,
        .kernel = mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL,
    };
    if (listed.id_size < 2 || listed.id_size > BUILD_ID_MAX ||
        !memchr(listed.path, '\0', entry.header.size - sizeof entry)) {
        return 0;
    }
    return take(context, &listed);
}

int perf_data_build_ids(struct perf_data *data,
                        int (*take)(void *context, const struct listed_build_id *listed),
                        void *context)
{
    size_t size;
    size_t entry = 1;
    int err = 0;
    const uint8_t *list = perf_data_feature(data, PERF_FEATURE_BUILD_ID, &size);
    for (size_t at = 0; list && !err && entry; at += entry) {
        err = take_entry(list + at, size - at, take, context, &entry);
    }
    return err;
}

int perf_record_build_id(const struct perf_record *record,
                         int (*take)(void *context, const struct listed_build_id *listed),
                         void *context)
{
    size_t entry;
    return take_entry(record->bytes, record->size, take, context, &entry);
}
