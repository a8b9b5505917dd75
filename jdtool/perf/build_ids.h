/*
 * The recording's list of build-ids (HEADER_BUILD_ID): the files that samples hit, as perf record
 * found them when it had ended (tools/perf/util/build-id.c).
 */
#ifndef JD_TOOL_BUILD_IDS_H
#define JD_TOOL_BUILD_IDS_H

#include "jdtool/perf/perf_data.h"

/* What a sound entry tells; it lives until the function that took it returns. */
struct listed_build_id {
    const char *path;
    const uint8_t *id;
    uint8_t id_size;
    bool kernel; /* the kernel or a module of it, a guest's included */
};

/*
 * Gives every sound entry to `take`, which returns 0 or a negative errno that ends it. A list that
 * is broken is as good as none from there on. 0 or what `take` returned.
 */
int perf_data_build_ids(struct perf_data *data,
                        int (*take)(void *context, const struct listed_build_id *listed),
                        void *context);

/* The same for one record of a pipe (PERF_USER_BUILD_ID): such an entry. */
int perf_record_build_id(const struct perf_record *record,
                         int (*take)(void *context, const struct listed_build_id *listed),
                         void *context);

#endif
