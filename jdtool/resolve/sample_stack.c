/* The stack of a sample, and how it ends. */
#include "jdtool/base/message.h"
#include "jdtool/base/unique.h"
#include "jdtool/resolve/resolver_private.h"
#include "jdtool/unwind/unwind.h"

#include <string.h>

/* As deep as the kernel records (kernel.perf_event_max_stack), where the event does not tell. */
#define KERNEL_MAX_STACK 127

/* ---- Frames ---- */

static void touch(struct resolver *resolver, const struct resolved_code *code)
{
    if (!code ||
        (resolver->branch_count && resolver->branches[resolver->branch_count - 1] == code)) {
        return;
    }
    if (ARRAY_RESERVE(resolver->branches, resolver->branch_count, resolver->branch_room)) {
        resolver->failed = true;
        return;
    }
    resolver->branches[resolver->branch_count++] = code;
}

/* Adds a location of so many lines, further out than all before. NULL: there was no room. */
static uint32_t *add_location(struct resolver *resolver, uint32_t location, uint32_t count)
{
    struct stack_table *stacks = locations_stacks(resolver->locations);
    uint32_t left = RESOLVED_FRAMES_MAX - resolver->line_count;
    if (count > left) {
        resolver->frames_cut += count - left;
        if (left == 0) {
            return NULL;
        }
        struct location cut = *stack_table_location_at(stacks, location);
        count = cut.line_count = left;
        location = stack_table_location(stacks, &cut);
    }
    if (location == HASH_MAP_NONE ||
        ARRAY_RESERVE(resolver->inner, resolver->inner_count, resolver->inner_room)) {
        resolver->failed = true;
        return NULL;
    }
    resolver->line_count += count;
    resolver->inner[resolver->inner_count] = location;
    return &resolver->inner[resolver->inner_count++];
}

void sample_stack_put(struct resolver *resolver, const struct resolved_frame *line, bool innermost)
{
    const struct location wanted = {.lines = line, .line_count = 1};
    uint32_t location = stack_table_location(locations_stacks(resolver->locations), &wanted);
    if (add_location(resolver, location, 1) && innermost) {
        memmove(resolver->inner + 1, resolver->inner,
                (resolver->inner_count - 1) * sizeof *resolver->inner);
        resolver->inner[0] = location;
    }
}

static uint32_t *add_addr_location(struct resolver *resolver, const struct addr_location *al)
{
    if (al->location == HASH_MAP_NONE) {
        resolver->failed = true;
        return NULL;
    }
    return add_location(resolver, al->location, al->line_count);
}

static uint32_t *add_user_location(struct resolver *resolver, struct addr_location *al)
{
    resolver->outermost[resolver->user_locations++ % ROOT_DEPTH] = al;
    resolver->passed_barrier |= unwind_place_hides(&al->unwind);
    return add_addr_location(resolver, al);
}

static struct addr_location *user_location(struct resolver *resolver, uint64_t pc, bool caller)
{
    return locations_at(resolver->locations, resolver->process, resolver->time, pc, caller);
}

static void add_kernel(struct resolver *resolver, uint64_t pc)
{
    (void)add_addr_location(resolver, locations_at_kernel(resolver->locations, pc, resolver->kernel,
                                                          resolver->kernel_module));
}

/* An address of a guest, or of a hypervisor: nothing is known of it. */
static void add_foreign(struct resolver *resolver, uint64_t pc)
{
    (void)add_addr_location(resolver,
                            locations_at(resolver->locations, NULL, resolver->time, pc, false));
}

/* ---- Call chains as the kernel recorded them ---- */

/* The chain up to the user's part. */
static uint64_t add_kernel_part(struct resolver *resolver, const struct perf_sample *sample)
{
    bool in_kernel = (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    uint64_t i = 0;
    for (; i < sample->chain_count && sample->chain[i] != PERF_CONTEXT_USER; i++) {
        uint64_t ip = sample->chain[i];
        if (ip == PERF_CONTEXT_USER_DEFERRED) {
            return sample->chain_count; /* only the cookie is behind it */
        }
        if (perf_chain_is_garbage(ip)) {
            continue;
        }
        if (ip >= PERF_CONTEXT_MAX) {
            in_kernel = ip == PERF_CONTEXT_KERNEL;
        } else if (in_kernel) {
            add_kernel(resolver, ip);
        } else {
            add_foreign(resolver, ip);
        }
    }
    return i;
}

/* From the marker on; where there is none, `is_user`. */
static void add_user_part(struct resolver *resolver, const struct perf_sample *sample, uint64_t i,
                          bool is_user)
{
    bool is_first = true;
    for (; i < sample->chain_count; i++) {
        uint64_t ip = sample->chain[i];
        if (perf_chain_is_garbage(ip)) {
            continue;
        }
        if (ip >= PERF_CONTEXT_MAX) {
            is_user = ip == PERF_CONTEXT_USER;
        } else if (is_user) {
            (void)add_user_location(resolver, user_location(resolver, ip, !is_first));
            is_first = false;
        } else {
            add_foreign(resolver, ip);
        }
    }
}

/* The user's part is a stack that is known as a whole now. */
static void use_known(struct resolver *resolver, const struct known_stack *known)
{
    const struct known_step *innermost = known_stack_innermost(known);
    for (uint32_t i = 0; i < ROOT_DEPTH && i < known->count; i++) {
        resolver->outermost[(known->count - 1 - i) % ROOT_DEPTH] = known->outermost[i];
    }
    resolver->user_locations = known->count;
    resolver->passed_barrier = innermost->passed_barrier;
    resolver->node = innermost->node;
}

/* The thread's last stack as far as that is still true of these addresses. NULL: it is not that
 * simple a stack, or nothing is known of the process. */
static struct known_stack *find_known(struct resolver *resolver, const struct perf_sample *sample,
                                      const uint64_t *pcs, uint64_t count)
{
    const struct process *process = resolver->process;
    if (!resolver->remembers || !process || sample->branch_count || count == 0) {
        return NULL;
    }
    struct process_code code = process_code_of(dumps_codes(resolver->dumps), process);
    struct known_key key = {.tid = sample->tid,
                            .process = process->number,
                            .generation = code.dump ? code.dump->generation : 0,
                            .state = process_mappings_state(process),
                            .version = locations_version(resolver->locations)};
    return known_stacks_find(resolver->known_stacks, &key, code.dump, resolver->time, pcs, count);
}

/* Its `inner` addresses further in are those of resolver->places. False: it is too deep to be kept.
 */
static bool extend_known(struct resolver *resolver, struct known_stack *known, const uint64_t *pcs,
                         uint32_t inner)
{
    uint32_t lines = 0;
    for (uint32_t at = 0; at < inner; at++) {
        lines += resolver->places[at].al->line_count;
    }
    if (resolver->failed || locations_failed(resolver->locations) ||
        !known_stack_extend(known, locations_stacks(resolver->locations),
                            locations_version(resolver->locations), pcs, resolver->places, inner,
                            lines)) {
        return false;
    }
    use_known(resolver, known);
    return true;
}

/* From the marker on, from the thread's last stack as far as that is still true. */
static bool add_known_part(struct resolver *resolver, const struct perf_sample *sample, uint64_t i)
{
    if (i >= sample->chain_count) {
        return false;
    }
    const uint64_t *pcs = sample->chain + i + 1; /* behind the marker */
    uint64_t count = sample->chain_count - i - 1;
    struct known_stack *known = find_known(resolver, sample, pcs, count);
    if (!known) {
        return false;
    }
    uint32_t inner = (uint32_t)count - known->count;
    for (uint32_t at = 0; at < inner; at++) {
        if (pcs[at] >= PERF_CONTEXT_MAX) {
            known_stack_forget(known);
            return false;
        }
    }
    if (ARRAY_REACH(resolver->places, inner, resolver->place_room)) {
        resolver->failed = true;
        return false;
    }
    locations_prefetch(resolver->locations, resolver->process, pcs, inner);
    for (uint32_t at = 0; at < inner; at++) {
        struct addr_location *al = user_location(resolver, pcs[at], at > 0);
        resolver->places[at] = (struct known_place){al, al->location, al->until};
        stack_table_prefetch(locations_stacks(resolver->locations), al->last_node);
    }
    if (extend_known(resolver, known, pcs, inner)) {
        return true;
    }
    for (uint64_t at = 0; at < count; at++) { /* too deep to be kept */
        (void)add_user_location(resolver, user_location(resolver, pcs[at], at > 0));
    }
    return true;
}

/* Those that start in user mode need no marker in old recordings. */
static void add_chain(struct resolver *resolver, const struct perf_sample *sample)
{
    bool in_user = (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    bool marked = sample->chain_count && sample->chain[0] >= PERF_CONTEXT_MAX;
    if (in_user && !marked) {
        add_user_part(resolver, sample, 0, true);
        return;
    }
    uint64_t i = add_kernel_part(resolver, sample);
    if (!add_known_part(resolver, sample, i)) {
        add_user_part(resolver, sample, i, false);
    }
}

static void add_own_address(struct resolver *resolver, const struct perf_sample *sample)
{
    switch (sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_USER:
        (void)add_user_location(resolver, user_location(resolver, sample->ip, false));
        break;
    case PERF_RECORD_MISC_KERNEL:
        add_kernel(resolver, sample->ip);
        break;
    default:
        add_foreign(resolver, sample->ip);
        break;
    }
}

/*
 * --call-graph lbr: the user's part are the calls that the processor remembers, as perf puts them
 * together (resolve_lbr_callchain_sample in tools/perf/util/machine.c): where the last one went,
 * then where each came from, which are the calls themselves.
 */
static bool has_branch_stack(const struct perf_sample *sample)
{
    return sample->branch_count &&
           sample->event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

static void add_branch_stack(struct resolver *resolver, struct perf_sample *sample)
{
    (void)add_kernel_part(resolver, sample);
    (void)add_user_location(resolver, user_location(resolver, sample->branches[0].to, false));
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        (void)add_user_location(resolver, user_location(resolver, sample->branches[i].from, false));
    }
    sample->unwound = true;
}

/* ---- Stack copies ---- */

static const struct unwind_place *find_place(void *context, uint64_t pc, bool caller)
{
    return &user_location(context, pc, caller)->unwind;
}

static const struct native_row *find_row(void *context, const struct unwind_place *al)
{
    const struct resolver *resolver = context;
    return locations_row(resolver->locations, addr_location_of(al));
}

static const struct frame_row *find_code_row(void *context, const struct unwind_place *al)
{
    (void)context;
    return locations_code_row(addr_location_of(al));
}

/* The method of a detail, which stays the same. NULL: no memory. */
static const struct resolved_method *interpreted_method(struct resolver *resolver,
                                                        const struct method_detail *detail,
                                                        const struct module *module)
{
    const struct interpreted wanted = {.detail = detail};
    uint32_t at = unique_add(&resolver->interpreted, &resolver->interpreted_count,
                             &resolver->interpreted_room, sizeof wanted, &resolver->by_detail,
                             &wanted, offsetof(struct interpreted, method));
    if (at != HASH_MAP_NONE && resolver->interpreted[at].method) {
        return resolver->interpreted[at].method;
    }
    struct method_facts facts = {.kind = RESOLVED_INTERPRETED,
                                 .name = detail->name,
                                 .file = detail->file,
                                 .first_line = detail->line_count ? detail->lines[0].line : 0,
                                 .module = module};
    const struct resolved_method *method = methods_of(resolver->methods, &facts);
    if (!method || at == HASH_MAP_NONE) {
        resolver->failed = true;
        return NULL;
    }
    resolver->interpreted[at].method = method;
    return method;
}

/* The interpreter's entries of Math.sin, CRC32.update and the like are called and build no frame:
 * there is no method to be read, and the stub that they call tells what runs. */
static bool is_frameless_entry(const struct addr_location *al, const struct unwind_frame *unwound)
{
    const struct frame_row *row =
        unwound->caller && !unwound->method ? find_code_row(NULL, &al->unwind) : NULL;
    return row && row->cfa == FRAME_CFA_REG;
}

/* Says so long that holds. */
static uint64_t name_interpreted(struct resolver *resolver, const struct addr_location *al,
                                 const struct unwind_frame *unwound, uint32_t *location)
{
    uint64_t until = resolver->time; /* what has no name may have one later */
    struct stack_table *stacks = locations_stacks(resolver->locations);
    /* What is interpreted there depends on the sample. */
    struct location wanted = *stack_table_location_at(stacks, *location);
    struct resolved_frame line = *location_own(&wanted);
    struct interpreted_frame named;
    if (is_frameless_entry(al, unwound)) {
        return al->until; /* it is the stub that it is */
    }
    line.kind = RESOLVED_INTERPRETED;
    if (al->dump && al->dump->names &&
        interpreter_name(al->dump->names, unwound, resolver->time, &named)) {
        const struct resolved_method *method =
            interpreted_method(resolver, named.method, wanted.module);
        if (method) {
            until = named.until;
            line.method = method;
            line.line = named.line;
            line.bci_ref = named.bci < UINT16_MAX ? (uint16_t)(named.bci + 1) : 0;
        }
    }
    wanted.lines = &line;
    wanted.line_count = 1;
    *location = stack_table_location(stacks, &wanted);
    resolver->failed |= *location == HASH_MAP_NONE;
    return until;
}

static enum stack_end end_of(enum unwind_end ended, const struct perf_sample *sample)
{
    static const enum stack_end ends[UNWIND_END_COUNT] = {
        [UNWIND_ROOT] = STACK_ROOT,
        [UNWIND_COPY_ENDS] = STACK_COPY_ENDS,
        [UNWIND_UNKNOWN_CODE] = STACK_UNKNOWN,
        [UNWIND_NO_FRAME_INFO] = STACK_NO_INFO,
        [UNWIND_BROKEN] = STACK_BROKEN,
        [UNWIND_TOO_DEEP] = STACK_CUT,
    };
    if (ended == UNWIND_COPY_ENDS && sample->stack_dyn_size < sample->stack_size) {
        return STACK_COPY_CUT;
    }
    return ended < UNWIND_END_COUNT ? ends[ended] : STACK_BROKEN;
}

/* Whether a frame that a walk took for set up, of so many bytes, was not: by its row. Where only
 * the caller's fp was elsewhere, the walk went wrong only if the next frame was looked for by it;
 * NULL: there is none. */
static bool is_refuted(struct addr_location *al, uint32_t assumed, const struct addr_location *next)
{
    const struct unwind_place *place = &al->unwind;
    if (!place->code || place->stub_section) {
        return !place->code || blob_frame_size(place->code) != assumed;
    }
    const struct frame_row *row = locations_code_row(al);
    bool needs_fp = !next || !next->unwind.code || !blob_steps_by_size(next->unwind.code);
    return !row || !(needs_fp ? frame_row_is_body(row, assumed) : frame_row_is_sized(row, assumed));
}

/* Differences are told so often, for whoever looks for their cause. */
#define DIFFERENCES_TOLD 20

/*
 * A stack that was copied as well as walked: the addresses that the walk gave, which are the user's
 * part of the chain (walked_packed), against the frames of the copy.
 */
static void compare_walked(struct resolver *resolver, const struct perf_sample *sample,
                           uint32_t count, enum unwind_end ended)
{
    uint64_t from = 0;
    while (from < sample->chain_count && sample->chain[from] != PERF_CONTEXT_USER) {
        from++;
    }
    if (from == sample->chain_count) {
        return; /* it was in doubt, or nobody walked it */
    }
    const uint64_t *pcs = sample->chain + from + 1;
    uint64_t walked = sample->chain_count - from - 1;
    uint64_t same = 0;
    while (same < walked && same < count) {
        const struct unwind_frame *frame = &resolver->unwound[same];
        struct addr_location *al =
            user_location(resolver, walked_packed_pc(pcs[same]), frame->caller);
        const struct unwind_place *place = &al->unwind;
        uint32_t assumed = walked_packed_assumed(pcs[same]);
        const struct addr_location *next =
            assumed && same + 1 < walked
                ? user_location(resolver, walked_packed_pc(pcs[same + 1]), true)
                : NULL;
        if (assumed && is_refuted(al, assumed, next)) {
            resolver->compared_refuted++;
            return;
        }
        /* Behind frozen frames, which the copy has not, the walk has their caller. */
        if (place != frame->place &&
            !(frame->place->barrier && place->code && place->code->continuation_entry)) {
            break;
        }
        same++;
    }
    resolver->compared++;
    if (same == count && (same == walked || ended != UNWIND_ROOT)) {
        resolver->compared_short += ended != UNWIND_ROOT;
        return;
    }
    resolver->compared_differing++;
    if (resolver->compared_differing <= DIFFERENCES_TOLD) {
        info_message("a stack of %llu frames differs from its copy's %u (end %d) at frame %llu: "
                     "%#llx walked, %#llx copied, behind %#llx",
                     (unsigned long long)walked, count, (int)ended, (unsigned long long)same,
                     same < walked ? (unsigned long long)walked_packed_pc(pcs[same]) : 0,
                     same < count ? (unsigned long long)resolver->unwound[same].ip : 0,
                     same ? (unsigned long long)walked_packed_pc(pcs[same - 1]) : 0);
    }
}

static struct known_place place_of(struct resolver *resolver, const struct walked_frame *frame)
{
    struct addr_location *al = user_location(resolver, frame->pc, frame->caller);
    struct known_place place = {al, al->location, al->until};
    if (frame->interpreted && al->line_count == 1 && al->location != HASH_MAP_NONE) {
        const struct unwind_frame unwound = {.ip = al->unwind.address,
                                             .place = &al->unwind,
                                             .kind = UNWIND_INTERPRETED,
                                             .caller = frame->caller,
                                             .method = frame->method,
                                             .bcp = frame->bcp,
                                             .bcp_register = frame->bcp_register,
                                             .method_register = frame->method_register};
        uint64_t until = name_interpreted(resolver, al, &unwound, &place.location);
        place.until = until < al->until ? until : al->until;
    }
    return place;
}

/* How many frames were walked; they are in resolver->walked_frames, their keys beside them. */
static uint32_t read_walked(struct resolver *resolver, struct walked *walked)
{
    uint32_t count = 0;
    struct walked_frame frame;
    while (walked_next(walked, &frame)) {
        if (ARRAY_RESERVE(resolver->walked_frames, count, resolver->walked_room) ||
            ARRAY_RESERVE(resolver->keys, count, resolver->key_room) ||
            ARRAY_RESERVE(resolver->places, count, resolver->place_room)) {
            resolver->failed = true;
            return 0;
        }
        resolver->keys[count] = walked_key(&frame);
        resolver->walked_frames[count++] = frame;
    }
    return count;
}

/* False: it was not walked in the kernel. */
static bool add_walked(struct resolver *resolver, struct perf_sample *sample, enum stack_end *end)
{
    struct walked walked;
    if (sample->regs || !sample->stack ||
        !walked_begin(sample->stack, sample->stack_dyn_size, &walked)) {
        return false;
    }
    (void)add_kernel_part(resolver, sample);
    uint32_t count = read_walked(resolver, &walked);
    struct known_stack *known = find_known(resolver, sample, resolver->keys, count);
    uint32_t inner = count - (known ? known->count : 0);
    *end = walked.head.end == WALKED_ROOT ? STACK_ROOT : STACK_CUT;
    for (uint32_t i = 0; i < inner; i++) {
        const struct walked_frame *frame = &resolver->walked_frames[i];
        resolver->places[i] = place_of(resolver, frame);
        if (frame->assumed && is_refuted(resolver->places[i].al, frame->assumed,
                                         i + 1 < count ? place_of(resolver, frame + 1).al : NULL)) {
            if (known) {
                known_stack_forget(known);
            }
            known = NULL;
            inner = count = i + 1; /* the next one was looked for in the wrong place */
            *end = STACK_BROKEN;
            resolver->refuted++;
        }
    }
    if (!known || !extend_known(resolver, known, resolver->keys, inner)) {
        for (uint32_t i = 0; i < count; i++) {
            struct known_place place =
                i < inner ? resolver->places[i] : place_of(resolver, &resolver->walked_frames[i]);
            uint32_t *location = add_user_location(resolver, place.al);
            if (location && place.location != place.al->location) {
                *location = place.location;
            }
        }
    }
    resolver->walked++;
    sample->unwound = true;
    return true;
}

/* False: there is no copy that can be unwound. */
static bool add_copy(struct resolver *resolver, struct perf_sample *sample, enum stack_end *end)
{
    struct unwind_sample walk = {.stack = sample->stack, .stack_size = sample->stack_dyn_size};
    if (!sample->regs) {
        return false;
    }
    if (!unwind_take_registers(resolver->machine, sample->regs_abi,
                               sample->event->attr.sample_regs_user, sample->regs,
                               sample->reg_count, &walk)) { /* a 32-bit program's */
        if ((sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER) {
            return false;
        }
        (void)add_kernel_part(resolver, sample);
        (void)add_user_location(resolver, user_location(resolver, sample->ip, false));
        sample->unwound = true;
        *end = STACK_BROKEN;
        return true;
    }
    (void)add_kernel_part(resolver, sample);
    struct unwind_process surroundings = {.find = find_place,
                                          .row = find_row,
                                          .code_row = find_code_row,
                                          .context = resolver,
                                          .machine = resolver->machine};
    uint32_t count;
    enum unwind_end ended = unwind(&surroundings, &walk, resolver->unwound, UNWOUND_MAX, &count);
    *end = end_of(ended, sample);
    compare_walked(resolver, sample, count, ended);
    for (uint32_t i = 0; i < count; i++) {
        const struct unwind_frame *unwound = &resolver->unwound[i];
        struct addr_location *al = addr_location_of(unwound->place);
        uint32_t *location = add_user_location(resolver, al);
        if (location && unwound->kind == UNWIND_INTERPRETED && al->line_count == 1) {
            (void)name_interpreted(resolver, al, unwound, location);
        }
    }
    sample->unwound = true;
    return true;
}

/* ---- How stacks end ---- */

static bool reaches_root(struct resolver *resolver)
{
    for (uint32_t i = 1; i <= ROOT_DEPTH && i <= resolver->user_locations; i++) {
        if (addr_location_is_root(
                resolver->outermost[(resolver->user_locations - i) % ROOT_DEPTH])) {
            return true;
        }
    }
    return false;
}

static const struct addr_location *outermost(const struct resolver *resolver)
{
    return resolver->outermost[(resolver->user_locations - 1) % ROOT_DEPTH];
}

/* Of a chain that the kernel made by frame pointers. */
static enum stack_end chain_end(const struct resolver *resolver, const struct perf_sample *sample)
{
    uint64_t most = sample->event->attr.sample_max_stack;
    if (!(sample->has & PERF_SAMPLE_CALLCHAIN)) {
        return STACK_NONE;
    }
    if (sample->chain_count >= (most ? most : KERNEL_MAX_STACK)) {
        return STACK_CUT;
    }
    const struct unwind_place *last = &outermost(resolver)->unwind;
    return last->code || last->mapped ? STACK_BROKEN : STACK_UNKNOWN;
}

static enum stack_end judge(struct resolver *resolver, const struct perf_sample *sample,
                            enum stack_end copy_end, uint64_t frames_cut)
{
    if (resolver->user_locations == 0) {
        return STACK_KERNEL_ONLY;
    }
    if (resolver->frames_cut > frames_cut) {
        return STACK_CUT;
    }
    bool is_copy = copy_end != STACK_ENDS;
    bool rooted = reaches_root(resolver);
    if (is_copy && copy_end == STACK_ROOT && outermost(resolver)->unwind.object) {
        rooted = true; /* its file says that it has no caller */
    }
    if (rooted && (is_copy || sample->has & PERF_SAMPLE_CALLCHAIN)) {
        return resolver->passed_barrier ? STACK_FROZEN : STACK_ROOT;
    }
    if (!is_copy) {
        return chain_end(resolver, sample);
    }
    return copy_end == STACK_ROOT ? STACK_BROKEN : copy_end;
}

/* ---- All of it ---- */

static void touch_branches(struct resolver *resolver, const struct perf_sample *sample)
{
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        touch(resolver, user_location(resolver, sample->branches[i].from, false)->code);
        touch(resolver, user_location(resolver, sample->branches[i].to, false)->code);
    }
}

enum stack_end sample_stack(struct resolver *resolver, struct perf_sample *sample)
{
    uint64_t frames_cut = resolver->frames_cut;
    enum stack_end copy_end = STACK_ENDS; /* there is no copy */
    resolver->node = 0;
    resolver->inner_count = 0;
    resolver->line_count = 0;
    resolver->branch_count = 0;
    resolver->user_locations = 0;
    resolver->passed_barrier = false;
    if (resolver->unwinds &&
        (add_walked(resolver, sample, &copy_end) || add_copy(resolver, sample, &copy_end))) {
        /* all there is */
    } else if (has_branch_stack(sample)) {
        add_branch_stack(resolver, sample);
    } else if (sample->has & PERF_SAMPLE_CALLCHAIN) {
        add_chain(resolver, sample);
    } else if (sample->has & PERF_SAMPLE_IP) {
        add_own_address(resolver, sample);
    }
    if (sample->branch_count) {
        touch_branches(resolver, sample);
    }
    return judge(resolver, sample, copy_end, frames_cut);
}
