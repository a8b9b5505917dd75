/*
 * Reads and writes perf.data files (Linux sources:
 * tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h for the
 * kernel's records, tools/lib/perf/include/perf/event.h for perf's own).
 *
 * A file is a header, the attributes of its events with the ids the kernel gave them, a section of
 * records, and the "features": sections about the machine and the command line. A record belongs to
 * an event by its id; where the id stands depends on the event's sample_type, which perf arranges
 * to be the same for all events of a file.
 *
 * In a pipe (perf record -o -), and in a file that one was kept in, attributes and features come as
 * records before and among the others. The reader takes these in, so that both look alike.
 *
 * All is taken for hostile: sizes are checked before they are believed. Nothing is mapped; records
 * go through a window, so memory does not grow with the file.
 */
#ifndef JD_TOOL_PERF_DATA_H
#define JD_TOOL_PERF_DATA_H

#include "jdtool/base/file_identity.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Newer than Debian 12's headers (Linux 6.19): a user part of call chains, recorded when the thread
 * went back to user mode, for 'perf record --call-graph fp,defer'. */
#define PERF_RECORD_CALLCHAIN_DEFERRED 22

/* Marks a chain that will be completed by one; the cookie that both have follows. */
#define PERF_CONTEXT_USER_DEFERRED ((uint64_t)-640)

/*
 * Whether an entry of a chain is neither an address nor a marker: a word that a walk by frame
 * pointers took for a return address. HotSpot's method_entry_barrier stub puts -1 there since JDK
 * 21. perf throws the whole chain away for it ("invalid callchain context", util/machine.c).
 */
static inline bool perf_chain_is_garbage(uint64_t ip)
{
    return ip >= PERF_CONTEXT_MAX && ip != PERF_CONTEXT_HV && ip != PERF_CONTEXT_KERNEL &&
           ip != PERF_CONTEXT_USER && ip != PERF_CONTEXT_USER_DEFERRED &&
           ip != PERF_CONTEXT_GUEST && ip != PERF_CONTEXT_GUEST_KERNEL &&
           ip != PERF_CONTEXT_GUEST_USER;
}

/* Records of perf's own, behind the kernel's PERF_RECORD_*. */
enum perf_user_record {
    PERF_USER_FIRST = 64,
    PERF_USER_ATTR = 64,
    PERF_USER_TRACING_DATA = 66,
    PERF_USER_BUILD_ID = 67,
    PERF_USER_FINISHED_ROUND = 68,
    PERF_USER_ID_INDEX = 69,
    PERF_USER_AUXTRACE_INFO = 70,
    PERF_USER_AUXTRACE = 71,
    PERF_USER_EVENT_UPDATE = 78,
    PERF_USER_TIME_CONV = 79,
    PERF_USER_FEATURE = 80,
    PERF_USER_COMPRESSED = 81,
    PERF_USER_COMPRESSED2 = 83,
};

/* Feature numbers (HEADER_* of tools/perf/util/header.h) that mean something to us. */
enum perf_feature {
    PERF_FEATURE_TRACING_DATA = 1,
    PERF_FEATURE_BUILD_ID = 2,
    PERF_FEATURE_HOSTNAME = 3,
    PERF_FEATURE_OSRELEASE = 4,
    PERF_FEATURE_VERSION = 5,
    PERF_FEATURE_ARCH = 6,
    PERF_FEATURE_NRCPUS = 7,
    PERF_FEATURE_CPUDESC = 8,
    PERF_FEATURE_CMDLINE = 11,
    PERF_FEATURE_EVENT_DESC = 12,
    PERF_FEATURE_AUXTRACE = 18,
    PERF_FEATURE_DIR_FORMAT = 24,
    PERF_FEATURE_COMPRESSED = 27,
    PERF_FEATURE_CLOCK_DATA = 29,
    PERF_FEATURE_BITS = 256,
};

/* perf.data begins with this, by `magic`; of a pipe with the first two words alone. */
struct perf_section {
    uint64_t offset;
    uint64_t size;
};

struct perf_file_header {
    uint64_t magic;
    uint64_t size;
    uint64_t attr_size; /* bytes of an attribute and the section behind it that holds its ids */
    struct perf_section attrs;
    struct perf_section data;
    struct perf_section event_types; /* unused since Linux 3.x */
    uint64_t features[PERF_FEATURE_BITS / 64];
};
_Static_assert(sizeof(struct perf_file_header) == 104, "perf_file_header");

#define PERF_FILE_MAGIC UINT64_C(0x32454c4946524550) /* "PERFILE2" */

/* Whether a file has a feature; that it has. */
static inline bool perf_features_has(const struct perf_file_header *head, unsigned feature)
{
    return (head->features[feature / 64] & UINT64_C(1) << (feature % 64)) != 0;
}

static inline void perf_features_add(struct perf_file_header *head, unsigned feature)
{
    head->features[feature / 64] |= UINT64_C(1) << (feature % 64);
}

struct bytes;

/*
 * The end of a file, behind its records: a table of where the features are that it has, in the
 * order of their numbers, then these, PERF_FEATURE_BITS by number, which are freed. at: where in
 * the file that will be.
 */
void perf_features_put(const struct perf_file_header *head, struct bytes *features, uint64_t at,
                       struct bytes *to);

/*
 * One event of the recording. Allocations come as two, which differ in the size of their stacks'
 * copies alone (EVENT_STACK_NEAR); they are one here, and in what is written.
 */
struct perf_event {
    struct perf_event_attr attr; /* what the file is too old for is zero */
    const uint64_t *ids;
    uint32_t id_count;
    uint32_t parts;       /* how many the recording has it as */
    _Atomic(char *) name; /* NULL: not known yet, see perf_data_event_name */
};

/* What sample_id_all puts behind every record of the kernel. */
struct perf_sample_id {
    bool has_time;
    uint32_t pid; /* -1: not recorded */
    uint32_t tid;
    uint64_t time;
};

/* What a PERF_RECORD_MMAP or _MMAP2 record maps. */
struct mapping {
    uint32_t pid;
    bool kernel; /* the kernel's own: itself, its modules, its BPF programs */
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;      /* of start */
    uint64_t from;             /* time; 0 when it was there before the recording */
    struct file_identity file; /* its path is in the record */
    bool executable;
    bool anonymous; /* memory without a file: where JVMs put the code they generate */
};

/*
 * One record as it stands in the file. `bytes` is 8-aligned, holds `size` bytes, perf_event_header
 * included, and lives until the next call on the reader.
 */
struct perf_record {
    uint32_t type;
    uint16_t misc;
    uint16_t size;
    const uint8_t *bytes;
    uint64_t left_at;              /* see perf_data_leave_copies; 0: all of it is here */
    struct perf_sample_id id;      /* of records that are no samples */
    const struct mapping *mapping; /* what it maps; NULL: nothing. Lives as the bytes */
};

/* Does this record map memory into a process or the kernel, and what? Fills *mapping; its path
 * points into the record. perf_data_next has done so. */
bool mapping_decode(const struct perf_record *record, struct mapping *mapping);

/* Integers and strings in a record, at an offset of its bytes; 0 and NULL behind its end. */
uint32_t perf_record_u32(const struct perf_record *record, size_t offset);
uint64_t perf_record_u64(const struct perf_record *record, size_t offset);
const char *perf_record_string(const struct perf_record *record, size_t offset);

struct perf_data;

/*
 * Opens a recording, "-" for stdin. Of a pipe it reads up to the first record that is more than a
 * description, and waits for that. 0 or a negative errno after a message; -ENOTSUP for a recording
 * that perf can read and we cannot (AUX area data, directory format, of the other byte order): the
 * message says which and what to do instead. Such records may also turn up later, in
 * perf_data_next.
 */
int perf_data_open(const char *path, struct perf_data **out);
void perf_data_close(struct perf_data *data); /* NULL is fine */

const char *perf_data_path(const struct perf_data *data);

/* Whether it comes from a pipe, whose writer may still be at work; not from a file. */
bool perf_data_is_live(const struct perf_data *data);

/* Whether it was described when it was opened: while it is read, no more of it changes than an
 * event that gets a name. What a pipe kept in a file is described by its records. */
bool perf_data_is_described(const struct perf_data *data);

/*
 * Of large samples of a file, from now on, the copy of the stack is not read with the rest: most of
 * a recording is such copies, of which a part is valid, and that is read when it is wanted
 * (perf_sample_complete). Such a record has `left_at`. Records of pipes, and packed ones, are
 * whole.
 */
void perf_data_leave_copies(struct perf_data *data);
uint32_t perf_data_event_count(const struct perf_data *data);
const struct perf_event *perf_data_event(const struct perf_data *data, uint32_t index);

/* As perf shows it: "cpu-clock:u"; NULL: not known (yet). Lives as long as data. */
const char *perf_data_event_name(struct perf_data *data, uint32_t index);

/* Does some event sample this (PERF_SAMPLE_*)? */
bool perf_data_has(const struct perf_data *data, uint64_t sample_type);

/*
 * The next record: 1, 0 behind the last one, or a negative errno after a message. A last record
 * that is cut off (perf was killed) is left out with a warning. Waits for a pipe's writer;
 * perf_data_wait says whether it would have to: true when a record (or the end) has come within so
 * many milliseconds.
 */
int perf_data_next(struct perf_data *data, struct perf_record *record);

/* Reads exactly size bytes of a file at an offset. 0 or a negative errno (-ENODATA: it ends), no
 * message. */
int perf_data_read(const struct perf_data *data, uint64_t offset, void *to, size_t size);
bool perf_data_wait(const struct perf_data *data, int milliseconds);

/*
 * A feature that is a string (PERF_FEATURE_VERSION, _ARCH, ...). Lives as long as data; NULL when
 * absent or malformed.
 */
const char *perf_data_string(struct perf_data *data, enum perf_feature feature);

/*
 * A feature as it stands in the recording: its bytes, *size of them, which live as long as data; of
 * a pipe what has come of it so far. NULL: absent, or too large to be one, which is told.
 */
const uint8_t *perf_data_feature(struct perf_data *data, unsigned feature, size_t *size);

/* Whether it is there; some are known by their presence alone and have no bytes. */
bool perf_data_has_feature(const struct perf_data *data, unsigned feature);

/* A copy of a record, to outlive it: it takes that many bytes, from an address that is a multiple
 * of 8 on. Samples are kept by perf_sample_keep. */
size_t perf_record_kept_size(const struct perf_record *record);
struct perf_record *perf_record_keep(const struct perf_record *record, void *to);

/*
 * Puts such a trailer behind a record of ours: at most PERF_SAMPLE_ID_MAX bytes at out. Returns
 * their number.
 */
#define PERF_SAMPLE_ID_MAX 48
size_t perf_put_sample_id(const struct perf_data *data, uint32_t pid, uint32_t tid, uint64_t time,
                          uint8_t *out);

/* ---- Samples ---- */

struct perf_bytes {
    const uint8_t *at;
    size_t size;
};

/*
 * One sample. The fields that are read or rewritten are here by name; what lies between them is
 * kept as it is, so that fields we never heard of survive. Pointers are into the record.
 *
 * To rewrite: change the named fields and pointers, then perf_sample_encode.
 */
struct perf_sample {
    const struct perf_event *event;
    uint32_t type; /* PERF_RECORD_SAMPLE, or _CALLCHAIN_DEFERRED: nothing but pid, time and chain */
    uint16_t misc; /* of the record: PERF_RECORD_MISC_CPUMODE_MASK tells kernel from user */

    uint64_t has; /* PERF_SAMPLE_* that the event samples; a missing field below is 0 */
    uint64_t ip;
    uint32_t pid, tid; /* -1 when not sampled */
    uint64_t time;
    uint64_t period;
    uint32_t cpu;

    const uint64_t *chain; /* with PERF_CONTEXT_* markers, innermost first */
    uint64_t chain_count;
    uint64_t cookie; /* of a _CALLCHAIN_DEFERRED: that of the samples it completes */
    bool unwound; /* the chain was made of the stack copy: callers' addresses lie in their calls */

    const struct perf_branch_entry *branches;
    uint64_t branch_count;

    /* What a tracepoint or a probe tells (PERF_SAMPLE_RAW), behind its size. NULL: none. */
    const uint8_t *raw;
    uint32_t raw_size;

    /* Registers of the set bits of event->attr.sample_regs_user, in their order. NULL: none. */
    uint64_t regs_abi; /* PERF_SAMPLE_REGS_ABI_* */
    const uint64_t *regs;
    uint32_t reg_count;

    /* The copy starts at the stack pointer; stack_dyn_size of its bytes are valid. NULL: none. */
    const uint8_t *stack;
    uint64_t stack_size;
    uint64_t stack_dyn_size;
    uint64_t stack_at; /* where in the file it is, which is not here: see perf_data_leave_copies */

    /* Where the pieces are; for perf_sample_encode. */
    struct perf_bytes head;   /* up to the call chain */
    struct perf_bytes middle; /* raw data and branches */
    struct perf_bytes user;   /* user registers and stack; none where the copy has been cut */
    struct perf_bytes tail;   /* the rest */
    size_t ip_at;             /* of the ip in head; so of the next two */
    size_t time_at;
    size_t period_at;
};

/*
 * A copy of a sample with all that it points to, to outlive its record: it takes that many bytes,
 * from an address that is a multiple of 8 on. cut: of a stack copy what is valid alone, which is
 * most of a recording; who was cut can be kept again, but not be encoded with the user's part.
 */
size_t perf_sample_kept_size(const struct perf_sample *sample, bool cut);
struct perf_sample *perf_sample_keep(const struct perf_sample *sample, bool cut, void *to);

/* The same of a sample whose stack copy was left in the file, of which what is valid is read: takes
 * PERF_SAMPLE_WHOLE_MAX bytes. 0 or a negative errno after a message. */
#define PERF_SAMPLE_WHOLE_MAX (sizeof(struct perf_sample) + (1 << 16))
int perf_sample_complete(const struct perf_data *data, const struct perf_sample *sample, void *to);

/*
 * Whether the user part of its chain comes in a _CALLCHAIN_DEFERRED of its own, and with which
 * cookie: it ends in PERF_CONTEXT_USER_DEFERRED and that (PERF_DEFERRED_WORDS). Not of one with a
 * cut copy of the stack.
 */
#define PERF_DEFERRED_WORDS 2
bool perf_sample_awaits_user(const struct perf_sample *sample, uint64_t *cookie);

/* Whether it is a record that perf_sample_decode takes. */
static inline bool perf_record_has_sample(const struct perf_record *record)
{
    return record->type == PERF_RECORD_SAMPLE || record->type == PERF_RECORD_CALLCHAIN_DEFERRED;
}

/* Decodes a PERF_RECORD_SAMPLE or _CALLCHAIN_DEFERRED. 0, or -EINVAL when it is malformed; no
 * message.
 */
int perf_sample_decode(const struct perf_data *data, const struct perf_record *record,
                       struct perf_sample *sample);

/* The largest record there can be: perf_event_header.size is 16 bits wide. */
#define PERF_RECORD_SIZE_MAX 65528

/*
 * Makes a record of a sample. Without keep_user the user's registers and stack are left out
 * (perf_writer_open with drop_user_stacks). Returns its size, or 0 when it would be longer than
 * PERF_RECORD_SIZE_MAX, the room at out.
 */
size_t perf_sample_encode(const struct perf_sample *sample, bool keep_user, uint8_t *out);

/* ---- Writing ---- */

struct perf_writer;

/*
 * Starts a recording with the events and features of `source`; those that a pipe tells of later are
 * taken as they are at perf_writer_finish. The file appears under `path`, mode 0600, when that
 * returns 0, not before; path may be the source's own. With
 * drop_user_stacks the attributes (and the copy of them in HEADER_EVENT_DESC) say that samples hold
 * no user registers and stacks, and that their call chains have a user part. 0 or a negative errno
 * after a message.
 */
int perf_writer_open(const char *path, struct perf_data *source, bool drop_user_stacks,
                     struct perf_writer **out);

/* Packs the records, as 'perf record -z' does; before the first. 0 or -ENOMEM, without a message.
 */
int perf_writer_pack(struct perf_writer *writer);

/* Appends a record. An error is remembered and reported by perf_writer_finish. */
void perf_writer_put(struct perf_writer *writer, const void *record, size_t size);

/* For a caller's own errors: remembered like those of a write; err is a negative errno. */
void perf_writer_fail(struct perf_writer *writer, int err);

/*
 * Adds a file to the list of build-ids (HEADER_BUILD_ID), as perf record does for files that were
 * hit. Errors as in perf_writer_put.
 */
void perf_writer_add_build_id(struct perf_writer *writer, const char *path,
                              const uint8_t build_id[BUILD_ID_MAX]);

/* Writes what is missing, and frees the writer. 0 or a negative errno after a message. */
int perf_writer_finish(struct perf_writer *writer);

/* Frees the writer and what it wrote. NULL is fine. */
void perf_writer_abort(struct perf_writer *writer);

/* ---- Build-ids ---- */

/*
 * The recording's list of build-ids (HEADER_BUILD_ID): the files that samples hit, as perf record
 * found them when it had ended (tools/perf/util/build-id.c).
 */

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
