#include "jdtool/sampler/turn.h"

#include "jdtool/base/clock.h"
#include "jdtool/sampler/present.h"
#include "jdtool/sampler/registers.h"
#include "jdtool/sampler/switches_shared.h"
#include "jdtool/walk/walker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

struct turn_process {
    uint64_t pid; /* the first member */
    bool is_sampled;
    bool is_over;                   /* had ended when they were looked at last */
    uint32_t one_in, one_in_before; /* of its samples; 0: all, as 1 */
    uint64_t since;                 /* samples before that time are of the earlier rate */
};

void turn_new(struct turn *turn, int out)
{
    turn->event_count = 1;
    turn->filter = FILTER_NONE;
    turn->known = NUMBERED(struct turn_process);
    turn->pipe.fd = out;
    turn->chance = 1;
    stack_ends_new(&turn->ends);
}

void turn_free(struct turn *turn)
{
    perf_pipe_free(&turn->pipe);
    filter_close(&turn->filter);
    numbered_free(&turn->known);
    stack_ends_free(&turn->ends);
}

/* ---- Who is sampled ---- */

static bool is_sampled(const struct turn *turn, uint32_t pid)
{
    const struct turn_process *process = turn->is_for_all ? NULL : numbered_find(&turn->known, pid);
    return turn->is_for_all || (process && process->is_sampled);
}

static bool was_sampled(const struct turn *turn, uint32_t pid)
{
    return turn->is_for_all || numbered_find(&turn->known, pid);
}

int turn_sample_process(struct turn *turn, uint32_t pid, bool is)
{
    struct turn_process *process =
        is ? numbered_get(&turn->known, pid, NULL) : numbered_find(&turn->known, pid);
    if (!process) {
        return is ? -ENOMEM : 0;
    }
    int err = 0;
    if (is != process->is_sampled && turn->filter.processes >= 0) {
        err = is ? filter_add(&turn->filter, (pid_t)pid, turn->one_in)
                 : filter_remove(&turn->filter, (pid_t)pid);
    }
    if (is != process->is_sampled) {
        *process =
            (struct turn_process){.pid = pid, .is_sampled = is && !err, .one_in = turn->one_in};
    }
    if (process->is_sampled && turn->walker) {
        walker_notice(turn->walker, (pid_t)pid);
    }
    return err;
}

/* What lies in the rings was taken at the rate until now. */
int turn_thin_process(struct turn *turn, uint32_t pid, uint32_t one_in)
{
    struct turn_process *process = numbered_find(&turn->known, pid);
    if (!process || !process->is_sampled || turn->walker) { /* its program keeps all */
        return process && process->is_sampled ? -ENOTSUP : -ESRCH;
    }
    int err = turn->filter.processes >= 0 ? filter_add(&turn->filter, (pid_t)pid, one_in) : 0;
    if (!err) {
        process->one_in_before = process->one_in;
        process->one_in = one_in;
        process->since = clock_ns(CLOCK_MONOTONIC);
    }
    return err;
}

/* So many processes are taken up until those that have ended are looked for: the kernel's map has
 * room for few times as many. */
#define FORGET_EVERY (FILTER_PROCESSES_MAX / 4)

/* What a process has written before it ended may lie in the rings until the next time. */
static void forget_ended(struct turn *turn)
{
    if (turn->taken_up < FORGET_EVERY) {
        return;
    }
    turn->taken_up = 0;
    for (uint32_t i = 0; i < turn->known.list.count; i++) {
        struct turn_process *process = chunks_at(&turn->known.list, i);
        bool is_over = process->is_sampled && kill((pid_t)process->pid, 0) != 0 && errno == ESRCH;
        if (is_over && process->is_over) {
            (void)turn_sample_process(turn, (uint32_t)process->pid, false);
        }
        process->is_over = is_over;
    }
}

void turn_thin(struct turn *turn, uint32_t one_in)
{
    turn->one_in = one_in;
    for (uint32_t i = 0; i < turn->known.list.count; i++) {
        const struct turn_process *process = chunks_at(&turn->known.list, i);
        (void)turn_thin_process(turn, (uint32_t)process->pid, one_in);
    }
}

void turn_each_process(const struct turn *turn, void (*take)(void *context, uint32_t pid),
                       void *context)
{
    for (uint32_t i = 0; i < turn->known.list.count; i++) {
        const struct turn_process *process = chunks_at(&turn->known.list, i);
        if (process->is_sampled) {
            take(context, (uint32_t)process->pid);
        }
    }
}

/* Marsaglia's xorshift. */
static uint32_t draw(struct turn *turn)
{
    turn->chance ^= turn->chance << 13;
    turn->chance ^= turn->chance >> 7;
    turn->chance ^= turn->chance << 17;
    return (uint32_t)(turn->chance >> 32);
}

/* How many samples one of that process and time stands for; 0: it is left out. */
static uint32_t stands_for(struct turn *turn, uint32_t pid, uint64_t time)
{
    const struct turn_process *process = turn->is_for_all ? NULL : numbered_find(&turn->known, pid);
    uint32_t one_in = !process                ? 1
                      : time < process->since ? process->one_in_before
                                              : process->one_in;
    bool is_drawn_here = one_in > 1 && turn->filter.processes < 0;
    return one_in <= 1 ? 1 : is_drawn_here && draw(turn) > UINT32_MAX / one_in ? 0 : one_in;
}

/* ---- Forks ---- */

/* FORK: pid, ppid, tid, ptid, time. */
enum { FORK_PIDS_AT = 8, FORK_TIDS_AT = 16, FORK_TIME_AT = 24, FORK_SIZE = 32 };

static struct perf_event_header header_at(const struct ring *ring, uint64_t at, uint64_t end)
{
    struct perf_event_header header = {0};
    if (at < end) {
        uint64_t word = ring_u64(ring, at);
        memcpy(&header, &word, sizeof header);
        if (header.size < sizeof header || header.size > end - at) {
            header.size = 0; /* the kernel does not do this */
        }
    }
    return header;
}

/* Its next fork that has not been taken up stands at forks_end then. False: there is none. */
static bool find_fork(struct turn_rings *rings)
{
    const struct ring *ring = &rings->side_band;
    uint64_t end = ring->page ? ring_until(ring) : 0;
    struct perf_event_header header;
    while ((header = header_at(ring, rings->forks_end, end)).size) {
        if (header.type == PERF_RECORD_FORK && header.size >= FORK_SIZE) {
            return true;
        }
        rings->forks_end += header.size;
    }
    return false;
}

/* What was known of its number is another's. */
static void take_child(struct turn *turn, uint32_t pid, bool is, uint64_t time)
{
    turn->forked = is ? time : turn->forked;
    if (is && is_sampled(turn, pid)) {
        (void)turn_sample_process(turn, pid, false);
    }
    turn->taken_up += is;
    turn->left_out += turn_sample_process(turn, pid, is) && is;
}

/* A process' child is sampled as it is; a number that is given to another process is not. */
static void take_fork(struct turn *turn, struct turn_rings *rings)
{
    const struct ring *ring = &rings->side_band;
    uint64_t at = rings->forks_end;
    uint64_t pids = ring_u64(ring, at + FORK_PIDS_AT);
    uint32_t pid = (uint32_t)pids;
    uint32_t parent = (uint32_t)(pids >> 32);
    if (pid != parent) {
        stack_ends_forget(&turn->ends, pid);
        if (!turn->is_for_all) {
            take_child(turn, pid, !turn->is_for_each && is_sampled(turn, parent),
                       ring_u64(ring, at + FORK_TIME_AT));
        }
    }
    if (is_sampled(turn, pid)) {
        stack_ends_thread(&turn->ends, (uint32_t)ring_u64(ring, at + FORK_TIDS_AT),
                          ring_u64(ring, at + FORK_TIME_AT));
    }
    rings->forks_end += header_at(ring, at, UINT64_MAX).size;
}

void turn_take_forks(struct turn *turn, struct turn_rings *rings, uint32_t count)
{
    struct turn_rings *first;
    do {
        uint64_t time = 0;
        first = NULL;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t its = find_fork(&rings[i])
                               ? ring_u64(&rings[i].side_band, rings[i].forks_end + FORK_TIME_AT)
                               : UINT64_MAX;
            if (its != UINT64_MAX && (!first || its < time)) {
                first = &rings[i];
                time = its;
            }
        }
        if (first) {
            take_fork(turn, first);
        }
    } while (first);
}

bool turn_side_band_fills(const struct turn_rings *rings, uint32_t count)
{
    bool fills = false;
    for (uint32_t i = 0; i < count && !fills; i++) {
        const struct ring *ring = &rings[i].side_band;
        fills = ring->page && ring_until(ring) - ring_from(ring) > ring->size / 4;
    }
    return fills;
}

/* ---- Records ---- */

/* Every record bears the id that its event was described with, those of no event the first one's: a
 * processor may come when that was long ago. It stands first in samples, last in others. */
static void put(struct turn *turn, size_t size, const struct turn_event *event)
{
    struct perf_event_header header;
    memcpy(&header, turn->record, sizeof header);
    size_t at = header.type == PERF_RECORD_SAMPLE ? sizeof header : size - sizeof event->id;
    memcpy(turn->record + at, &event->id, sizeof event->id);
    perf_pipe_put(&turn->pipe, turn->record, size);
}

/* Bytes of a record's trailer: pid, tid, time, processor, id. */
enum { TRAILER_SIZE = 32 };

/* Samples were lost; `turn->record` has the trailer already, behind a record of that kind. */
static void put_loss(struct turn *turn, uint64_t count)
{
    /* Of samples that are thinned, they would have been as many as would have been given on. */
    uint32_t one_in = turn->one_in ? turn->one_in : 1;
    uint64_t thinned = turn->lost_before + count;
    uint64_t lost = thinned / one_in;
    turn->lost += count;
    turn->lost_before = (uint32_t)(thinned % one_in);
    struct perf_event_header its = {.type = PERF_RECORD_LOST_SAMPLES,
                                    .size = sizeof its + sizeof lost + TRAILER_SIZE};
    memcpy(turn->record, &its, sizeof its);
    memcpy(turn->record + sizeof its, &lost, sizeof lost);
    put(turn, its.size, turn->events);
}

enum { LOSS_TRAILER_AT = sizeof(struct perf_event_header) + sizeof(uint64_t) };

/* LOST: id, how many. Of a ring that has samples alone it is samples. */
static void take_loss(struct turn *turn, const struct ring *ring, uint64_t at,
                      const struct perf_event_header *header)
{
    ring_copy(ring, at + header->size - TRAILER_SIZE, turn->record + LOSS_TRAILER_AT, TRAILER_SIZE);
    put_loss(turn, ring_u64(ring, at + 16));
}

void turn_tell_lost(struct turn *turn, uint64_t all)
{
    const uint64_t trailer[TRAILER_SIZE / 8] = {0, clock_ns(CLOCK_MONOTONIC)};
    if (all > turn->lost) {
        memcpy(turn->record + LOSS_TRAILER_AT, trailer, sizeof trailer);
        put_loss(turn, all - turn->lost);
    }
}

/* The name of MMAP2 stands behind pid, tid, address, size, offset, file and rights. Memory without
 * a file is where a JVM's code cache grows. */
enum { MMAP2_NAME_AT = 72 };

static bool maps_a_file(const struct turn *turn, const struct perf_event_header *header)
{
    return header->size > MMAP2_NAME_AT + 2 && memcmp(turn->record + MMAP2_NAME_AT, "//", 2) != 0;
}

/* pid, tid, and then the name, with a NUL. */
enum { COMM_AT = 16 };

/* A record of the side-band, which tells of all processes. */
static void take_side_band(struct turn *turn, const struct ring *ring, uint64_t at,
                           const struct perf_event_header *header)
{
    ring_copy(ring, at, turn->record, header->size);
    uint32_t pid = 0;
    uint32_t tid = 0;
    memcpy(&pid, turn->record + sizeof *header, sizeof pid);
    bool is_wanted = true; /* LOST, THROTTLE: of whom is not known */
    switch (header->type) {
    case PERF_RECORD_COMM:
        if (header->misc & PERF_RECORD_MISC_COMM_EXEC) {
            stack_ends_forget(&turn->ends, pid);
        }
        is_wanted = is_sampled(turn, pid);
        turn->carries |= is_wanted && present_may_carry((const char *)turn->record + COMM_AT);
        break;
    case PERF_RECORD_EXIT: /* as of FORK */
        memcpy(&tid, turn->record + FORK_TIDS_AT, sizeof tid);
        if (tid == pid) {
            stack_ends_forget(&turn->ends, pid);
        }
        /* Or who reads on would have the thread, and its process, for ever. */
        is_wanted = was_sampled(turn, pid);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_MMAP:
        is_wanted = is_sampled(turn, pid);
        break;
    case PERF_RECORD_MMAP2:
        is_wanted = is_sampled(turn, pid);
        if (is_wanted && !turn->reads_no_files) {
            present_build_id(turn->record);
        }
        break;
    default:
        break;
    }
    if (is_wanted) {
        put(turn, header->size, turn->events);
    }
    bool is_exec = header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC;
    bool is_code = header->type == PERF_RECORD_MMAP2 && maps_a_file(turn, header);
    if (turn->walker && is_wanted && (is_exec || is_code)) {
        walker_notice(turn->walker, (pid_t)pid);
    }
}

/*
 * IDENTIFIER, IP, TID, TIME, CPU, PERIOD, how many addresses of the chain and these, the size of
 * what a tracepoint tells, in 4 bytes, and that; then the ABI of the registers and, unless it is 0,
 * these, the size of the copy, the copy, and how much of it is valid.
 */
enum { TID_AT = 24, TIME_AT = 32, PERIOD_AT = 48, CHAIN_AT = 56 };

/* It stands for so many. */
static void put_sample(struct turn *turn, size_t size, const struct turn_event *event,
                       uint64_t count)
{
    uint64_t period;
    memcpy(&period, turn->record + PERIOD_AT, sizeof period);
    period = period ? period * count : count; /* what a program writes has none */
    memcpy(turn->record + PERIOD_AT, &period, sizeof period);
    put(turn, size, event);
    turn->given += event == turn->events;
}

/* A thread that was switched away from has a processor again: a PERF_RECORD_SWITCH of it. False: it
 * is an entry of the tracepoint. */
static bool take_back(struct turn *turn, const struct ring *ring, uint64_t at, size_t size,
                      const struct turn_event *event)
{
    struct switches_back back;
    uint64_t raw = CHAIN_AT + 4;
    if (event->has_stack || raw + sizeof back > size) {
        return false;
    }
    ring_copy(ring, at + raw, (uint8_t *)&back, sizeof back);
    if (back.type) {
        return false;
    }
    const struct perf_event_header header = {.type = PERF_RECORD_SWITCH,
                                             .size = sizeof header + TRAILER_SIZE};
    const uint32_t ids[2] = {back.pid, back.tid};
    memcpy(turn->record, &header, sizeof header);
    memcpy(turn->record + sizeof header, ids, sizeof ids);
    ring_copy(ring, at + TIME_AT, turn->record + sizeof header + sizeof ids, 16); /* and CPU */
    put(turn, header.size, turn->events);
    return true;
}

/* ids: pid and tid of the thread. */
static bool is_wanted(const struct turn *turn, uint64_t ids, uint64_t time)
{
    /* -1: a thread so near its end that it has no number any more */
    return is_sampled(turn, (uint32_t)ids) && ids >> 32 != UINT32_MAX && time >= turn->begun;
}

/*
 * The call chain of a record that is made anew, from CHAIN_AT on: the one that it had up to `chain`
 * words, and what was walked at the same interrupt behind it. `rest` bytes follow, in what was
 * given the registers at `registers`. Returns where it ends, or 0: there is nothing to be compared,
 * or no room.
 */
static uint64_t put_compared(struct turn *turn, const struct ring *ring, uint64_t at,
                             uint64_t chain, uint64_t registers, uint64_t rest)
{
    uint32_t tid = (uint32_t)(ring_u64(ring, at + TID_AT) >> 32);
    uint64_t count = chain + 1 + turn->compared.count;
    uint64_t end = CHAIN_AT + 8 + 8 * count;
    /* The copy that belongs to it may be lost, and this be a later one. */
    bool is_its =
        turn->compared.ring == ring && turn->compared.tid == tid && turn->compared.count > 0 &&
        turn->compared.chain[0] == ring_u64(ring, at + registers + 8 + UINT64_C(8) * CODE_POINTER);
    turn->compared.ring = NULL;
    if (!is_its || end + rest > UINT16_MAX - 7) {
        return 0;
    }
    const uint64_t user = PERF_CONTEXT_USER;
    uint8_t *to = turn->record + CHAIN_AT;
    memcpy(to, &count, sizeof count);
    ring_copy(ring, at + CHAIN_AT + 8, to + 8, 8 * chain);
    memcpy(to + 8 + 8 * chain, &user, sizeof user);
    memcpy(to + 16 + 8 * chain, turn->compared.chain, (size_t)8 * turn->compared.count);
    return end;
}

/* Where its registers stand from the record's start on; 0: it has none, nor a copy. */
static uint64_t registers_of(const struct turn_event *event, const struct ring *ring, uint64_t at,
                             size_t size, uint64_t chain)
{
    uint64_t registers = CHAIN_AT + 8 + 8 * chain;
    if (!event->has_copies || chain > size / 8 || registers + 16 > size) {
        return 0;
    }
    if (event->has_raw) {
        registers += 4 + (uint32_t)ring_u64(ring, at + registers); /* whole words together */
    }
    return registers % 8 == 0 && registers + 16 <= size ? registers : 0;
}

/* What was told of the weight of a thread's next sample is of this one, or of none any more. */
static uint64_t take_weight(struct turn_rings *rings, uint32_t tid)
{
    uint64_t weight = rings->weighed == tid && rings->weight ? rings->weight : 1;
    rings->weight = 0;
    return weight;
}

static void take_sample(struct turn *turn, struct turn_rings *rings, uint64_t at,
                        const struct perf_event_header *header, const struct turn_event *event)
{
    const struct ring *ring = &rings->samples;
    uint64_t ids = ring_u64(ring, at + TID_AT);
    uint64_t time = ring_u64(ring, at + TIME_AT);
    if (event->has_backs && take_back(turn, ring, at, header->size, event)) {
        return;
    }
    /* Who is woken is sampled, whoever wakes it. */
    bool is_of_another = event->is_of_another && time >= turn->begun;
    uint64_t count = is_of_another                ? 1
                     : is_wanted(turn, ids, time) ? stands_for(turn, (uint32_t)ids, time)
                                                  : 0;
    count *= event->is_limited ? take_weight(rings, (uint32_t)(ids >> 32)) : 1;
    if (!count) {
        return;
    }
    uint64_t chain = event->has_stack ? ring_u64(ring, at + CHAIN_AT) : 0;
    size_t size = header->size;
    uint64_t registers = registers_of(event, ring, at, size, chain);
    if (!registers) {
        ring_copy(ring, at, turn->record, size);
        put_sample(turn, size, event, count);
        return;
    }
    bool has_registers = ring_u64(ring, at + registers) != 0;
    uint64_t stack =
        registers + 8 + (has_registers ? UINT64_C(8) * REGISTER_COUNT : 0); /* its size */
    uint64_t copied = stack + 8 <= size ? ring_u64(ring, at + stack) : 0;
    if (!has_registers || !copied || stack + 16 + copied > size) {
        ring_copy(ring, at, turn->record, size);
        put_sample(turn, size, event, count);
        return;
    }
    turn->copied++;
    uint64_t pointer = ring_u64(ring, at + registers + 8 + UINT64_C(8) * STACK_POINTER);
    uint64_t valid = ring_u64(ring, at + stack + 8 + copied);
    uint64_t end = stack_ends_of(&turn->ends, (uint32_t)ids, (uint32_t)(ids >> 32), pointer, time);
    /* A page that was never touched ended the copy: it stays larger than what is valid of it. */
    bool is_cut = valid < copied && valid < end - pointer;
    valid = valid < end - pointer ? valid : end - pointer;
    uint64_t kept = ((valid + 7) & ~UINT64_C(7)) + (is_cut && valid % 8 == 0 ? 8 : 0);
    kept = kept < copied ? kept : copied;
    if (!kept) { /* nothing was readable there; a size of 0 has no end behind it */
        kept = copied < 8 ? copied : 8;
    }
    /* The record, with a smaller copy and what is valid of that. */
    uint8_t *record = turn->record;
    uint64_t behind = CHAIN_AT + 8 + 8 * chain;
    ring_copy(ring, at, record, behind);
    uint64_t moved = put_compared(turn, ring, at, chain, registers, stack - behind + 16 + kept);
    moved = moved ? moved : behind;
    ring_copy(ring, at + behind, record + moved, stack - behind + 8 + kept);
    stack += moved - behind;
    struct perf_event_header cut = *header;
    cut.size = (uint16_t)(stack + 16 + kept);
    memcpy(record, &cut, sizeof cut);
    memcpy(record + stack, &kept, sizeof kept);
    memcpy(record + stack + 8 + kept, &valid, sizeof valid);
    put_sample(turn, cut.size, event, count);
}

/* ---- Stacks that were walked ---- */

/* IDENTIFIER, TID, TIME, CPU, and the size of what was walked, in 4 bytes, with that. */
enum { WALKED_TID_AT = 16, WALKED_TIME_AT = 24, WALKED_CPU_AT = 32, WALKED_AT = 44 };

/* What was walked is kept for the copy that the kernel writes next. */
static void keep_compared(struct turn *turn, const struct ring *ring, uint32_t tid,
                          struct walked *walked)
{
    struct walked_frame frame;
    turn->compared.ring = ring;
    turn->compared.tid = tid;
    turn->compared.count = 0;
    while (turn->compared.count < WALKED_WORDS_MAX && walked_next(walked, &frame)) {
        if (!frame.frozen) { /* its copy has none of these */
            turn->compared.chain[turn->compared.count++] = walked_packed(frame.pc, frame.assumed);
        }
    }
}

/* A sample as if the kernel had written it: the call chain has the kernel's part, there are no
 * registers, and what was walked stands where the copy would. */
static void put_walked(struct turn *turn, const uint8_t *bytes, const struct walked *walked)
{
    struct walked_head head = walked->head;
    const struct turn_event *event = &turn->events[head.event];
    const uint8_t *raw = bytes + sizeof head;
    uint64_t kernel[WALKED_KERNEL_MAX + 1] = {PERF_CONTEXT_KERNEL};
    memcpy(kernel + 1, raw + head.raw, (size_t)8 * head.kernel);
    uint64_t chain = head.kernel ? UINT64_C(1) + head.kernel : 0;
    const uint32_t raw_size = head.raw;
    size_t told = event->has_raw ? sizeof raw_size + raw_size : 0;
    size_t words_size = (size_t)4 * head.words;
    head.kernel = head.raw = head.event = 0;
    uint64_t valid = sizeof head + words_size;
    uint64_t kept = (valid + 7) & ~UINT64_C(7);
    bool in_kernel = head.flags & WALKED_IN_KERNEL;
    struct walked leaf = *walked;
    struct walked_frame frame = {0};
    (void)walked_next(&leaf, &frame);
    const struct perf_event_header header = {
        .type = PERF_RECORD_SAMPLE,
        .misc = in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
        .size = (uint16_t)(CHAIN_AT + 8 + 8 * chain + told + 8 + 8 + kept + 8),
    };
    uint64_t first[7] = {event->id, chain ? kernel[1] : frame.pc,  0,    0,
                         0,         head.period ? head.period : 1, chain};
    memcpy(&first[2], turn->walked + WALKED_TID_AT, 8);
    memcpy(&first[3], turn->walked + WALKED_TIME_AT, 8);
    memcpy(&first[4], turn->walked + WALKED_CPU_AT, 8);
    const uint64_t user[2] = {PERF_SAMPLE_REGS_ABI_NONE, kept};
    uint8_t *to = turn->record;
    memcpy(to, &header, sizeof header);
    memcpy(to + sizeof header, first, sizeof first);
    to += sizeof header + sizeof first;
    memcpy(to, kernel, 8 * chain);
    to += 8 * chain;
    if (told) {
        memcpy(to, &raw_size, sizeof raw_size);
        memcpy(to + sizeof raw_size, raw, raw_size);
        to += told;
    }
    memcpy(to, user, sizeof user);
    to += sizeof user;
    memset(to + kept - 8, 0, 8);
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, walked->words, words_size);
    memcpy(to + kept, &valid, sizeof valid);
    perf_pipe_put(&turn->pipe, turn->record, header.size);
}

/* Whether what the event tells is there, and stands as in a sample: whole words with its size. */
static bool is_as_told(const struct turn *turn, const struct walked_head *head)
{
    const struct turn_event *event =
        head->event < turn->event_count ? &turn->events[head->event] : NULL;
    return event && event->has_copies &&
           (event->has_raw ? head->raw % 8 == 4 && head->raw <= WALKED_RAW_MAX : !head->raw);
}

static void take_walked(struct turn *turn, struct turn_rings *rings, uint64_t at,
                        const struct perf_event_header *header)
{
    const struct ring *ring = &rings->samples;
    uint64_t ids = ring_u64(ring, at + WALKED_TID_AT);
    struct walked walked;
    if (header->size <= WALKED_AT || !is_wanted(turn, ids, ring_u64(ring, at + WALKED_TIME_AT))) {
        return;
    }
    ring_copy(ring, at, turn->walked, header->size);
    const uint8_t *bytes = turn->walked + WALKED_AT;
    bool is_one = walked_begin(bytes, header->size - (size_t)WALKED_AT, &walked);
    if (is_one && walked.head.flags & WALKED_WEIGHS) {
        rings->weighed = (uint32_t)(ids >> 32);
        rings->weight = walked.head.period;
        return;
    }
    if (!is_one || walked.head.kernel > WALKED_KERNEL_MAX || walked.head.words > WALKED_WORDS_MAX ||
        !is_as_told(turn, &walked.head)) {
        return; /* the program does not write such */
    }
    if (turn->compares) {
        keep_compared(turn, ring, (uint32_t)(ids >> 32), &walked);
    } else {
        put_walked(turn, bytes, &walked);
    }
}

static const struct turn_event *event_of(const struct turn *turn, const struct turn_rings *rings,
                                         uint64_t id)
{
    uint32_t at = turn->event_count;
    while (--at > 0 && rings->ids[at] != id) {
    }
    return &turn->events[at];
}

static void drain(struct turn *turn, struct turn_rings *rings, struct ring *ring, uint64_t end)
{
    bool is_of_samples = ring == &rings->samples;
    uint64_t at = ring->page ? ring_from(ring) : end;
    while (at < end) {
        struct perf_event_header header = header_at(ring, at, end);
        if (!header.size) {
            at = end;
        } else if (header.type == PERF_RECORD_SAMPLE && rings->walked_id &&
                   ring_u64(ring, at + sizeof header) == rings->walked_id) {
            take_walked(turn, rings, at, &header);
        } else if (header.type == PERF_RECORD_SAMPLE) {
            take_sample(turn, rings, at, &header,
                        event_of(turn, rings, ring_u64(ring, at + sizeof header)));
        } else if (header.type == PERF_RECORD_LOST && is_of_samples &&
                   header.size >= 24 + TRAILER_SIZE) {
            take_loss(turn, ring, at, &header);
        } else if (header.size >= sizeof header + TRAILER_SIZE) {
            take_side_band(turn, ring, at, &header);
        }
        at += header.size;
        ring_release(ring, at);
    }
}

/* So much is gathered for a reader that is slow, some thousand samples; then they wait in their
 * rings. A side-band's ring is small, and what is lost of it is lost for all samples behind it. */
#define SAMPLES_WAITING   ((size_t)32 << 20)
#define SIDE_BAND_WAITING ((size_t)64 << 20)

int turn_take(struct turn *turn, struct turn_rings *rings, uint32_t count)
{
    bool has_samples = perf_pipe_waiting(&turn->pipe) < SAMPLES_WAITING;
    for (uint32_t i = 0; i < count; i++) {
        rings[i].side_band_end = rings[i].side_band.page ? ring_until(&rings[i].side_band) : 0;
        rings[i].samples_end = rings[i].samples.page ? ring_until(&rings[i].samples) : 0;
    }
    turn_take_forks(turn, rings, count);
    for (uint32_t i = 0; i < count && perf_pipe_waiting(&turn->pipe) < SIDE_BAND_WAITING; i++) {
        drain(turn, &rings[i], &rings[i].side_band, rings[i].side_band_end);
    }
    for (uint32_t i = 0; i < count && has_samples; i++) {
        drain(turn, &rings[i], &rings[i].samples, rings[i].samples_end);
    }
    forget_ended(turn);
    if (has_samples) { /* else it is no round: older samples will come */
        perf_pipe_round(&turn->pipe);
    }
    return perf_pipe_flush(&turn->pipe);
}
