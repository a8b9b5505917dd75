/*
 * The dumps of a recording's JVMs: found as perf finds them (a file named jit-<digits>.dump, mapped
 * executable), opened, and followed while their JVMs still write. A process may have several, one
 * after the other (an agent stopped and started again): each is a struct jvm_dump of its own.
 */
#ifndef JD_TOOL_DUMPS_H
#define JD_TOOL_DUMPS_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/jitdump/method_names.h"
#include "jdtool/jitdump/thread_journal.h"
#include "jdtool/perf/process_table.h"
#include "jdtool/resolve/inner_threads.h"
#include "jdtool/resolve/methods.h"
#include "jdtool/resolve/sample_sink.h"
#include "jdtool/unwind/code_frames.h"

#include <stdio.h>

/* The parameters of PERF_RECORD_TIME_CONV: processor's time stamps against perf's default clock. */
struct time_conversion {
    bool known;
    uint64_t shift;
    uint64_t mult;
    uint64_t zero;
};

/* Of which of its stretches of 4 KB a dump knows when code came there last; others share that. */
#define STRETCH_SHIFT 12
#define STRETCHES     2048

struct jvm_dump {
    struct recorded_jvm about;      /* index NULL: the dump is of no use */
    struct jvm_dump *earlier;       /* the same process' dump before this one */
    struct method_names *names;     /* NULL: there is no table of methods */
    struct thread_journal *journal; /* NULL: there is no journal of threads */
    struct inner_threads inner;     /* the journal's threads, where that is a container's */
    struct code_frames *frames;     /* made when first needed */
    struct time_conversion conversion;
    uint64_t code_start; /* what all code of the dump lies in */
    uint64_t code_end;
    uint32_t bounded;       /* stays that these bounds know of */
    uint32_t bounded_blobs; /* and of so many blobs */
    /* One higher when the process' dumps have grown; which generation it was when names, code of
     * any place, and code of each stretch came last. */
    uint32_t generation;
    uint32_t names_came;
    uint32_t all_came;
    uint32_t came[STRETCHES];
    uint32_t holders; /* processes whose latest dump it is, and later dumps */
    bool may_grow;    /* its JVM lives, and has not closed it */
    bool is_prepared; /* dumps_prepare has made what it makes */
    uint64_t opened;  /* when */
    uint64_t updated; /* when what was appended was read last; 0: not yet */
    uint64_t sought;  /* when files beside it were looked for last */
    uint64_t seek_every;
    uint64_t segment; /* its number, and then that of the last one that was read; 0: none */
    char *names_path;
    char *journal_path;
    FILE *log; /* the JVM's own (jvm_log_read); NULL: there is none */
    char *path;
    char *recorded; /* of `about` */

    /* code_blobs.c */
    struct chunks blobs; /* of struct kept_blob, by blob */
    struct chunks codes; /* of struct resolved_code, in the order of first use */
    struct hash_map by_stay;
    struct hash_map by_page; /* codes that have their own address in the module */
    uint64_t apart;          /* bytes that the others have taken */
    size_t blob_bytes;
    bool unreadable; /* a blob could not be fetched, which was told */
};

static inline uint32_t jvm_dump_stretch(uint64_t address)
{
    return (uint32_t)(address >> STRETCH_SHIFT) & (STRETCHES - 1);
}

/* Whether all that was known of a stretch's code in that generation is true still. */
static inline bool jvm_dump_stands(const struct jvm_dump *dump, uint32_t generation,
                                   uint32_t stretch)
{
    return generation >= dump->all_came && generation >= dump->came[stretch];
}

/*
 * What a process has of generated code. A fork has what its parent had then, which is as old as
 * `until`; of its own code that is UINT64_MAX.
 */
struct process_code {
    struct jvm_dump *dump; /* the latest dump; NULL: none */
    uint64_t until;
};

/*
 * The same of all processes, by their index.
 *
 *     1. A dump is held once for each process here that has it and once for a later dump of the
 *        same process; one that nobody holds is not here.
 *     2. What the entry of a process that is gone held is empty.
 */
struct process_codes {
    struct process_code *list;
    uint32_t room;
};

static inline struct process_code process_code_of(const struct process_codes *codes,
                                                  const struct process *process)
{
    const struct process_code none = {.until = UINT64_MAX};
    return process->index < codes->room && codes->list[process->index].dump
               ? codes->list[process->index]
               : none;
}

/* Its latest dump, where that is its own; NULL: it has none. */
static inline struct jvm_dump *process_code_own(struct process_code code)
{
    return code.until == UINT64_MAX ? code.dump : NULL;
}

struct dumps;

struct dumps_options {
    char *const *named; /* files to be used in place of those of that name, or of that JVM */
    uint32_t named_count;
    bool live; /* JVMs may still write */
};

/* All that is given must live longer. 0 or a negative errno after a message. */
int dumps_new(struct perf_data *data, struct methods *methods, const struct dumps_options *options,
              struct dumps **out);
void dumps_free(struct dumps *dumps); /* NULL is fine */

/* Lives as long as the dumps. */
const struct process_codes *dumps_codes(const struct dumps *dumps);

/* A process is a fork of another; one is gone. The first: 0 or -ENOMEM. */
int dumps_fork(struct dumps *dumps, const struct process *parent, const struct process *process);
void dumps_process_gone(struct dumps *dumps, const struct process *process);

/* How many dumps nobody holds any more; frees those, and forgets the methods and modules that the
 * others had from the methods, which were cleared, and what segments that were let go told of their
 * own methods. The latter: 0 or -ENOMEM after a message. */
uint32_t dumps_dead(const struct dumps *dumps);
bool dumps_outgrown(const struct dumps *dumps); /* or a living one has more of what is gone */
int dumps_forget(struct dumps *dumps);

/* How processor's time stamps are to be converted: PERF_RECORD_TIME_CONV. */
void dumps_set_conversion(struct dumps *dumps, const struct perf_record *record);

/*
 * A mapping as soon as its record is read, before its time has come: dumps with names that several
 * JVMs use can then be told apart, and a file be opened before its process ends. 0 or -ENOMEM.
 */
int dumps_notice(struct dumps *dumps, const struct mapping *mapping);

/* The same of a thread of a process that is known. */
int dumps_notice_thread(struct process_code code, uint32_t tid);

/* A process has mapped a file; a dump becomes its code. 0 or a negative errno after a message. */
int dumps_map(struct dumps *dumps, const struct process *process, const struct mapped_file *file,
              uint64_t time);

/* A process without a dump is sampled: one that options name may be its. As dumps_map. */
int dumps_seek(struct dumps *dumps, const struct process *process, uint64_t time);

/* Reads what was appended since; is_all: nothing more will come. 0 or a negative errno after a
 * message. */
int dumps_update(struct dumps *dumps, bool is_all);

/* The same of a process' own dumps, unless that was done since then (CLOCK_MONOTONIC, ns). */
int dumps_update_process(struct process_code code, uint64_t since);

/* The same, and makes the interpreter's rows; nothing once these are there. */
int dumps_prepare(struct process_code code, uint64_t since);

/* No sample of before that time comes any more: what of segments tells of older code alone is
 * closed; keep: but for code that was asked for, which sinks will read once more. */
void dumps_let_go(struct dumps *dumps, uint64_t time, bool keep);

/* Tells of dumps that options named and no process had. */
void dumps_tell_unused(const struct dumps *dumps);

/* The list of recorded_jvm, which moves when it grows. */
const struct recorded_jvm *const *dumps_list(const struct dumps *dumps, uint32_t *count);

struct jvm_dump *const *dumps_all(const struct dumps *dumps, uint32_t *count);

/* Stamps of the dump on the recording's clock, and the other way around. */
uint64_t jvm_dump_recording_time(const struct jvm_dump *dump, uint64_t dump_time);
uint64_t jvm_dump_time(const struct jvm_dump *dump, uint64_t recording_time);

/* A blob of code that was found. */
struct found_code {
    struct jvm_dump *dump;
    const struct code_stay *stay; /* NULL: none that a dump tells of */
    uint64_t until;               /* the answer holds until then, as far as is known */
};

/* The code at an address of a process at a time. */
struct found_code dumps_code_at(struct process_code code, uint64_t address, uint64_t time);

/* What the journals of the process' JVM tell of a thread then: its whole name, virtual thread,
 * labels. *thread has what is known without; number: process_table_thread_number. 0 or a negative
 * errno after a message. */
int dumps_identify(struct process_code code, uint32_t number, uint64_t time,
                   struct resolved_thread *thread);

/* The same of a virtual thread that no thread carries then, by its id. */
void dumps_identify_virtual(struct process_code code, uint64_t id, uint64_t time,
                            struct resolved_thread *thread);

/* Why there is none, where generated code is. */
enum unnamed_reason dumps_why_unnamed(struct process_code code, uint64_t address, uint64_t time);

#endif
