/*
 * From a sample as it was recorded to its frames: each address is looked up once, a stack copy is
 * unwound once, and how the stack ends is judged, here and nowhere else.
 *
 * Records and samples are given in the order of their times; the resolver's knowledge of processes
 * is that of the last record.
 */
#ifndef JD_TOOL_RESOLVER_H
#define JD_TOOL_RESOLVER_H

#include "jdtool/events/event_rule.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/resolve/sample_sink.h"

/* What a sample may have, inlined ones included; what is further out is left out, and counted. A
 * stack copy has room for 8,191 return addresses. */
#define RESOLVED_FRAMES_MAX (UINT32_C(1) << 16)

struct resolver;

struct resolver_options {
    const char *build_id_dir; /* where perf record left copies of files; NULL: its default */
    char *const *dumps;       /* to be used in place of those of that name, or of that JVM */
    uint32_t dump_count;
    bool symbolize; /* name native and kernel functions */
    bool unwind;    /* stack copies, where they are of a machine we know */
    bool sparing;   /* see struct objects_options */
};

/* The data must live longer. 0 or a negative errno after a message. */
int resolver_new(struct perf_data *data, const struct resolver_options *options,
                 struct resolver **out);
void resolver_free(struct resolver *resolver); /* NULL is fine */

/* Whether stack copies are unwound. */
bool resolver_unwinds(const struct resolver *resolver);

/* Any record as soon as it is read, before its time has come. 0 or a negative errno after a
 * message. */
int resolver_notice(struct resolver *resolver, const struct perf_record *record);

/* A record that is no sample, at its time. *superseded: as sample sinks want to know it. 0 or a
 * negative errno after a message. */
int resolver_record(struct resolver *resolver, const struct perf_record *record, bool *superseded);

/* Whether the next sample has what earlier ones point to thrown away; of one whose facts are a
 * plain sample's all else lives until the next record. */
bool resolver_is_full(const struct resolver *resolver);

/*
 * Fills *out but for event and weight. What it points to lives until the next call; the sample gets
 * its call chain where that was made here. Of an event that the facts tell of, the stack begins
 * with what it is about and goes on with the program's own frames. 0 or a negative errno after a
 * message.
 */
int resolver_sample(struct resolver *resolver, struct perf_sample *sample,
                    const struct event_facts *facts, struct resolved_sample *out);

/* The thread as it is called now, and what its JVM's journal tells of that time. Its strings live
 * until the next record. 0 or a negative errno after a message. */
int resolver_thread(const struct resolver *resolver, uint32_t pid, uint32_t tid, uint64_t time,
                    struct resolved_thread *thread);

/* How many pieces of code the dumps tell of until now. */
uint64_t resolver_code_count(const struct resolver *resolver);

/* How many bytes held code at that time, of each dump that had begun. What was freed counts until
 * its place is used again: dumps do not tell of it. Costs a
 * look at each piece. 0 or what `take` returned. */
int resolver_code_bytes(struct resolver *resolver, uint64_t time,
                        int (*take)(void *context, uint32_t pid, uint64_t bytes), void *context);

/* What the JVMs' own logs tell of, where they stand beside their dumps: marks.h. 0 or what `take`
 * returned. */
int resolver_logs(struct resolver *resolver,
                  int (*take)(void *context, uint32_t pid, uint32_t tid,
                              const struct resolved_mark *mark),
                  void *context);

/*
 * Each piece of code that dumps tell of and that was not given before, up to that time of the
 * recording's clock. 0 or what `take` returned.
 */
int resolver_codes(struct resolver *resolver, uint64_t until,
                   int (*take)(void *context, const struct resolved_code *code), void *context);

/* Reads what dumps have grown by; is_all: nothing more will come. 0 or a negative errno after a
 * message. */
int resolver_update(struct resolver *resolver, bool is_all);

/* The same of the dumps of one process, unless that was done since then (CLOCK_MONOTONIC, ns). */
int resolver_update_process(struct resolver *resolver, uint32_t pid, uint64_t since);

/* What dumps_let_go does. */
void resolver_let_go(struct resolver *resolver, uint64_t time, bool keep);

/* Closes what was not asked for since the last call and can be had again: files' debug information,
 * which is most of what a run without end holds. */
void resolver_rest(struct resolver *resolver);

/*
 * Nobody needs what samples pointed to until now: when enough has died, all that was made of
 * samples (places, stacks, methods, modules) is thrown away and made anew as it is asked for,
 * without what was of JVMs and files that are gone. Not together with resolver_codes. 0 or a
 * negative errno after a message.
 */
int resolver_forget(struct resolver *resolver);

/* Has the file that a sample was taken in opened, and what its JVM has told until then read, which
 * both take long, while the sample waits for what its JVM may tell. `since`: as of
 * resolver_update_process. 0 or a negative errno after a message. */
int resolver_prepare(struct resolver *resolver, const struct perf_sample *sample, uint64_t since);

/* Whether the process has a dump that may still grow. */
bool resolver_may_grow(const struct resolver *resolver, uint32_t pid);

/* Whether it has begun a moment ago, and its table of methods, which the agent can fill only when
 * the JVM has started, lacks some. */
bool resolver_is_starting(const struct resolver *resolver, uint32_t pid);

/* Takes over what the resolver counted, and the list of JVMs. */
void resolver_report(const struct resolver *resolver, struct recording *recording);

/* Tells of what could not be used, at the end. */
void resolver_tell(struct resolver *resolver);

/* Frees what only further samples need, which cannot be resolved then; methods, modules and code
 * stay. */
void resolver_settle(struct resolver *resolver);

/* ---- Virtual threads ---- */

/* Virtual threads in the place of the threads that carry them. */

/*
 * Makes the virtual thread of thread->virtual_id, which is not 0, what the thread is: by its name,
 * or "virtual thread ID", which is written to `name`, and by a tid of its own (RESOLVED_OWN_TID).
 */
void virtual_thread_stands(struct resolved_thread *thread, char *name, size_t size);

#endif
