/*
 * Puts inlined methods into samples' call chains as frames of their own, which every perf shows:
 * before the address in a compiled method stand the frames of the methods inlined there, innermost
 * first.
 */
#ifndef JD_TOOL_CALL_CHAINS_H
#define JD_TOOL_CALL_CHAINS_H

#include "jdtool/resolve/jvms.h"

struct call_chains_options {
    bool expand; /* false: no frames are put in */
    /*
     * Callers in generated code are given as addresses in the call. A return address belongs to
     * what comes behind the call, and perf looks it up as it stands: it would show the next line,
     * and the inlined methods of that.
     */
    bool at_calls;
    bool leaf; /* move the sample's own address, too, so that self time is the innermost's */
};

struct call_chains;

/* The jvms must live longer. NULL: no memory. */
struct call_chains *call_chains_new(const struct jvms *jvms,
                                    const struct call_chains_options *options);
void call_chains_free(struct call_chains *chains); /* NULL is fine */

/*
 * One address of a call chain, and what it is. `address` is where to look: a return address is
 * looked for one byte further down, in the call (those of an unwound chain are there already).
 */
struct chain_entry {
    uint64_t ip;
    uint64_t address;
    bool is_marker; /* PERF_CONTEXT_*: no address */
    bool is_user;
    bool is_first; /* the user part's innermost address: no return address */
};

/* Walks a chain: start with a zeroed walk. False behind the last entry. A sample without a chain
 * has its own address as the only one. */
struct chain_walk {
    uint64_t next;
    bool started;
    bool is_user;
    bool seen_user;
};
bool chain_next(const struct perf_sample *sample, struct chain_walk *walk,
                struct chain_entry *entry);

/*
 * Marks the code that a sample touches, and collects the inlined frames it will have. Comes before
 * the layout of the frame tables. 0 or a negative errno after a message.
 */
int call_chains_collect(struct call_chains *chains, const struct process *process,
                        const struct perf_sample *sample);

/*
 * Gives a sample its final chain, which lives until the next call. Comes behind the layout. 0 or a
 * negative errno after a message.
 */
int call_chains_rewrite(struct call_chains *chains, const struct process *process,
                        struct perf_sample *sample);

#endif
