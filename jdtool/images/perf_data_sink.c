#include "jdtool/images/perf_data_sink.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/images/image_maps.h"
#include "jdtool/perf/perf_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * perf sorts records by time within what it has read when a round ends, then lets go of all that
 * are not later than the end of the round before. Here all come by time, so a round may end
 * anywhere; it must end now and then, or perf keeps everything in memory.
 */
#define ROUND_SIZE (UINT64_C(4) << 20)

/* Code that a sample touches. */
struct touched {
    const struct resolved_code *code;
    struct jvm_images *images;
};

struct perf_data_sink {
    struct sample_sink sink;
    struct perf_data_sink_options options;
    const struct recording *recording;
    bool drop_stacks; /* samples have no copies of stacks in the result */
    struct image_set *images;
    struct image_maps *maps;
    struct perf_writer *writer;
    uint64_t time;  /* of the latest record */
    uint64_t round; /* bytes since the last end of one */

    struct touched *touched; /* by a sample */
    uint32_t touched_room;
    struct stack_notes mapped;   /* of locations: the state in which the code there was mapped */
    const struct module *framed; /* by this sample: the JVM whose frames are mapped */
    struct stack_notes parts;    /* of locations: what it puts into a chain, see enum part */
    uint64_t *addresses;         /* of PART_ADDRESSES: their count, and themselves */
    uint32_t address_count;
    uint32_t address_room;
    uint64_t *chain; /* the one being made */
    uint32_t chain_count;
    uint32_t chain_room;
    uint64_t cut_samples; /* that had more frames than a record has room for */
    uint64_t cut_frames;
    uint8_t record[PERF_RECORD_SIZE_MAX];
};

/* What a location puts into a chain: a note of 32 bits. */
enum part {
    PART_UNKNOWN,   /* not made yet */
    PART_RECORDED,  /* what was there; of an unwound stack its own address */
    PART_BEFORE,    /* its own address, which is the one before what was there: a caller's */
    PART_OWN,       /* its own address */
    PART_BY_SAMPLE, /* that depends */
    PART_ADDRESSES, /* and what is more: those at this place in sink->addresses, plus this */
};

static struct perf_data_sink *self(struct sample_sink *sink)
{
    return (struct perf_data_sink *)sink;
}

static void close_sink(struct perf_data_sink *sink)
{
    perf_writer_abort(sink->writer);
    image_maps_free(sink->maps);
    image_set_close(sink->images);
    stack_notes_free(&sink->mapped);
    stack_notes_free(&sink->parts);
    free(sink->addresses);
    free(sink->touched);
    free(sink->chain);
    free(sink);
}

static int no_memory(const struct perf_data_sink *sink)
{
    return failed_to(-ENOMEM, "write %s", sink->options.output);
}

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct perf_data_sink *sink = self(base);
    sink->drop_stacks = recording->unwound && !sink->options.keep_stacks;
    sink->recording = recording;
    int err =
        perf_writer_open(sink->options.output, recording->data, sink->drop_stacks, &sink->writer);
    if (err) {
        return err;
    }
    if (sink->options.pack && perf_writer_pack(sink->writer)) {
        return no_memory(sink);
    }
    sink->maps = image_maps_new(recording->data, sink->writer);
    return sink->maps ? 0 : no_memory(sink);
}

static void put(struct perf_data_sink *sink, const void *record, size_t size)
{
    perf_writer_put(sink->writer, record, size);
    sink->round += size;
    if (sink->round >= ROUND_SIZE) {
        const struct perf_event_header end = {.type = PERF_USER_FINISHED_ROUND, .size = sizeof end};
        perf_writer_put(sink->writer, &end, sizeof end);
        sink->round = 0;
    }
}

static int take_record(struct sample_sink *base, const struct perf_record *record, bool superseded)
{
    struct perf_data_sink *sink = self(base);
    uint64_t time = record->id.time;
    int err = image_maps_record(sink->maps, record, superseded);
    if (time > sink->time && time != UINT64_MAX) {
        sink->time = time;
    }
    if (!err && !superseded) {
        put(sink, record->bytes, record->size);
    }
    return err;
}

/* ---- Call chains ---- */

static int put_ip(struct perf_data_sink *sink, uint64_t ip)
{
    if (ARRAY_RESERVE(sink->chain, sink->chain_count, sink->chain_room)) {
        return no_memory(sink);
    }
    sink->chain[sink->chain_count++] = ip;
    return 0;
}

static bool is_frame_address(uint64_t address)
{
    return address >= IMAGE_FRAMES_BASE && address < IMAGE_FRAMES_BASE * 2;
}

/* What was recorded. C code without frame pointers leaves any number in a chain: one that would be
 * an address in the image of frames is moved to where nothing is, or it would have a method's name.
 */
static int put_recorded(struct perf_data_sink *sink, uint64_t ip)
{
    return put_ip(sink, is_frame_address(ip) ? ip + IMAGE_FRAMES_BASE : ip);
}

/* Has it an address in the image of frames? Such a frame knows the code it ran in, the
 * interpreter's or the compiled method's. */
static bool is_without_code(const struct location *location, const struct resolved_frame *frame)
{
    return location->code && (frame->kind == RESOLVED_INLINED ||
                              (frame->kind == RESOLVED_INTERPRETED && frame->method &&
                               frame->method->kind == RESOLVED_INTERPRETED));
}

/* Of the JVM of that code. */
static int put_frame_without_code(struct perf_data_sink *sink, const struct resolved_sample *sample,
                                  const struct location *location,
                                  const struct resolved_frame *frame,
                                  const struct resolved_code *code)
{
    struct jvm_images *images = image_set_of(sink->images, sink->recording, code);
    int err = 0;
    if (!images) {
        return -ENOMEM;
    }
    uint64_t address = image_frames_address(images->frames, frame, &err);
    if (err) {
        return no_memory(sink);
    }
    if (!address) { /* no room: counted there */
        return frame->kind == RESOLVED_INTERPRETED ? put_ip(sink, location->address) : 0;
    }
    err = image_maps_touch_frames(sink->maps, images, sample->thread.pid, sample->time);
    return err ? err : put_ip(sink, address);
}

/* What an event is about has an address in the image of frames of the JVM whose code is in the
 * stack; without such code perf is not told of it. */
static int put_subject(struct perf_data_sink *sink, const struct resolved_sample *sample,
                       const struct location *location, const struct resolved_frame *frame)
{
    const struct resolved_code *code = NULL;
    for (uint32_t at = sample->node; at && !code; at = sample->stacks->nodes[at].caller) {
        code = stack_table_at(sample->stacks, at)->code;
    }
    return code ? put_frame_without_code(sink, sample, location, frame, code) : 0;
}

/* The frames of a location. `ip` is what the chain had; an unwound stack's have none. */
static int put_frames(struct perf_data_sink *sink, const struct resolved_sample *sample,
                      const struct location *location, const uint64_t *ip)
{
    const struct resolved_frame *frame = location->lines;
    const struct resolved_frame *end = frame + location->line_count;
    for (; frame < end && frame->kind == RESOLVED_INLINED; frame++) {
        int err = sink->options.expand && is_without_code(location, frame)
                      ? put_frame_without_code(sink, sample, location, frame, location->code)
                      : 0;
        if (err) {
            return err;
        }
    }
    if (frame == end) { /* of a stack that is cut */
        return ip ? put_recorded(sink, *ip) : 0;
    }
    if (frame->kind == RESOLVED_SUBJECT) {
        return put_subject(sink, sample, location, frame);
    }
    if (is_without_code(location, frame)) {
        return put_frame_without_code(sink, sample, location, frame, location->code);
    }
    return put_recorded(sink, location->code || !ip ? location->address : *ip);
}

/* The place for the addresses of PART_ADDRESSES; HASH_MAP_NONE: no memory. */
static uint32_t keep_addresses(struct perf_data_sink *sink, const uint64_t *addresses,
                               uint32_t count)
{
    uint32_t at = sink->address_count;
    for (uint32_t i = 0; i <= count; i++) {
        if (ARRAY_RESERVE(sink->addresses, sink->address_count, sink->address_room)) {
            return HASH_MAP_NONE;
        }
        sink->addresses[sink->address_count++] = i == 0 ? count : addresses[i - 1];
    }
    return at;
}

/* Puts the frames of a location that was not seen yet, and notes what became of them. */
static int make_part(struct perf_data_sink *sink, const struct resolved_sample *sample,
                     const struct location *location, const uint64_t *ip, uint32_t *part)
{
    const struct resolved_frame *own = location_own(location);
    uint32_t from = sink->chain_count;
    uint64_t lost = 0;
    if (!location->code) {
        bool is_plain = own->kind != RESOLVED_INLINED && own->kind != RESOLVED_SUBJECT &&
                        !is_frame_address(location->address);
        *part = is_plain ? PART_RECORDED : PART_BY_SAMPLE;
        return put_frames(sink, sample, location, ip);
    }
    struct jvm_images *images = image_set_of(sink->images, sink->recording, location->code);
    if (!images) {
        return -ENOMEM;
    }
    lost = image_frames_lost(images->frames);
    int err = put_frames(sink, sample, location, ip);
    uint32_t count = sink->chain_count - from;
    if (err || own->kind == RESOLVED_INLINED || own->kind == RESOLVED_SUBJECT ||
        image_frames_lost(images->frames) != lost) {
        *part = PART_BY_SAMPLE;
    } else if (count == 1 && sink->chain[from] == location->address) {
        *part = location->is_caller && ip && *ip - 1 == location->address ? PART_BEFORE : PART_OWN;
    } else {
        uint32_t at = keep_addresses(sink, sink->chain + from, count);
        *part = PART_ADDRESSES + at;
        err = at == HASH_MAP_NONE ? no_memory(sink) : 0;
    }
    return err;
}

static int put_kept(struct perf_data_sink *sink, const struct resolved_sample *sample,
                    const struct location *location, uint32_t part)
{
    const uint64_t *addresses = &sink->addresses[part - PART_ADDRESSES];
    int err = 0;
    if (sink->framed != location->code->module) { /* in this sample */
        struct jvm_images *images = image_set_of(sink->images, sink->recording, location->code);
        err = image_maps_touch_frames(sink->maps, images, sample->thread.pid, sample->time);
        sink->framed = location->code->module;
    }
    uint64_t count = addresses[0];
    while (!err && sink->chain_room - sink->chain_count < count) {
        err = ARRAY_RESERVE(sink->chain, sink->chain_room, sink->chain_room) ? no_memory(sink) : 0;
    }
    if (!err) {
        memcpy(sink->chain + sink->chain_count, addresses + 1, count * sizeof *addresses);
        sink->chain_count += (uint32_t)count;
    }
    return err;
}

/*
 * The frames of one address, that of the node *at, which is then its caller's. What was made of its
 * location before is not made again.
 */
static int put_address(struct perf_data_sink *sink, const struct resolved_sample *sample,
                       uint32_t *at, const uint64_t *ip)
{
    if (!*at) {
        return ip ? put_recorded(sink, *ip) : 0;
    }
    const struct stack_node *node = &sample->stacks->nodes[*at];
    uint32_t *part = (uint32_t *)sink->parts.list + node->location;
    *at = node->caller;
    switch (*part) {
    case PART_UNKNOWN:
        return make_part(sink, sample, node->at, ip, part);
    case PART_RECORDED:
        return put_ip(sink, ip ? *ip : node->at->address);
    case PART_BEFORE:
        return put_ip(sink, ip ? *ip - 1 : node->at->address);
    case PART_OWN:
        return put_ip(sink, node->at->address);
    case PART_BY_SAMPLE:
        return put_frames(sink, sample, node->at, ip);
    default:
        return put_kept(sink, sample, node->at, *part);
    }
}

/*
 * Puts the frames of as many addresses as are known and make one address each, which most are.
 * How many that were; *at is then the node behind them.
 */
static uint64_t put_plain(struct perf_data_sink *sink, const struct resolved_sample *sample,
                          uint32_t *at, const uint64_t *ips, uint64_t count)
{
    const struct stack_node *nodes = sample->stacks->nodes;
    const uint32_t *parts = sink->parts.list;
    uint64_t *chain = sink->chain + sink->chain_count;
    uint64_t room = sink->chain_room - sink->chain_count;
    uint64_t i = 0;
    for (; i < count && i < room && *at && ips[i] < PERF_CONTEXT_MAX; i++) {
        const struct stack_node *node = &nodes[*at];
        uint32_t part = parts[node->location];
        if (part == PART_RECORDED || part == PART_BEFORE) { /* the location itself is not read */
            chain[i] = ips[i] - (part == PART_BEFORE);
        } else if (part == PART_OWN) {
            chain[i] = node->at->address;
        } else {
            break;
        }
        *at = node->caller;
    }
    sink->chain_count += (uint32_t)i;
    return i;
}

/* Makes sink->chain. *leaf: the first that stands for the innermost user frame; 0: there is none.
 */
static int make_chain(struct perf_data_sink *sink, const struct resolved_sample *sample,
                      uint64_t *leaf)
{
    const struct perf_sample *recorded = sample->recorded;
    bool unwound = recorded->unwound;
    bool is_user = false;
    bool has_leaf = false;
    uint32_t next = sample->node;
    uint32_t at = 0;
    int err = 0;
    sink->chain_count = 0;
    *leaf = 0;
    for (uint64_t i = 0; i < recorded->chain_count && !err; i++) {
        uint64_t ip = recorded->chain[i];
        if (unwound && ip == PERF_CONTEXT_USER) {
            break;
        }
        if (perf_chain_is_garbage(ip)) {
            continue;
        }
        at = sink->chain_count;
        if (ip >= PERF_CONTEXT_MAX) {
            is_user = ip == PERF_CONTEXT_USER;
            err = put_ip(sink, ip);
            continue;
        }
        err = put_address(sink, sample, &next, &ip);
        if (is_user && !has_leaf && !err) {
            *leaf = sink->chain[at];
            has_leaf = true;
        }
        if (has_leaf && !err) {
            i += put_plain(sink, sample, &next, recorded->chain + i + 1,
                           recorded->chain_count - i - 1);
        }
    }
    if (unwound && !err) {
        err = put_ip(sink, PERF_CONTEXT_USER);
        at = sink->chain_count;
        while (next && !err) {
            err = put_address(sink, sample, &next, NULL);
        }
        *leaf = !err && sink->chain_count > at ? sink->chain[at] : 0;
    }
    return err;
}

/* Without a chain the sample's own address is all there is. */
static int make_leaf(struct perf_data_sink *sink, const struct resolved_sample *sample,
                     uint64_t *leaf)
{
    uint32_t next = sample->node;
    sink->chain_count = 0;
    int err = put_address(sink, sample, &next, &sample->recorded->ip);
    *leaf = !err && sink->chain_count ? sink->chain[0] : 0;
    return err;
}

static int follow_locations(struct perf_data_sink *sink, const struct stack_table *stacks)
{
    uint32_t count = stacks->locations.count;
    if (sink->parts.epoch != stacks->location_epoch) {
        sink->address_count = 0;
    }
    return stack_notes_follow(&sink->parts, stacks->location_epoch, count) ||
                   stack_notes_follow(&sink->mapped, stacks->location_epoch, count)
               ? no_memory(sink)
               : 0;
}

static int rewrite(struct perf_data_sink *sink, const struct resolved_sample *sample,
                   struct perf_sample *out)
{
    bool in_user = (out->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    uint64_t leaf = 0;
    int err = 0;
    sink->framed = NULL;
    if (out->has & PERF_SAMPLE_CALLCHAIN || out->unwound) {
        err = make_chain(sink, sample, &leaf);
        out->chain = sink->chain;
        out->chain_count = sink->chain_count;
    } else if (sink->options.leaf && in_user) {
        err = make_leaf(sink, sample, &leaf);
    }
    /* An event's own address is the probe's, the same for all: what it is about tells more. */
    const struct resolved_frame *first = stack_table_innermost(sample->stacks, sample->node);
    bool has_subject = first && first->kind == RESOLVED_SUBJECT;
    if ((sink->options.leaf || has_subject) && in_user && is_frame_address(leaf)) {
        out->ip = leaf;
    }
    return err;
}

static void put_sample(struct perf_data_sink *sink, struct perf_sample *sample)
{
    bool keep_user = !sink->drop_stacks;
    uint64_t count = sample->chain_count;
    size_t size = perf_sample_encode(sample, keep_user, sink->record);
    while (size == 0 && sample->chain_count > 0) { /* too long: without the outermost frames */
        sample->chain_count -= sample->chain_count > 256 ? 256 : sample->chain_count;
        size = perf_sample_encode(sample, keep_user, sink->record);
    }
    if (sample->chain_count < count) {
        sink->cut_samples++;
        sink->cut_frames += count - sample->chain_count;
    }
    put(sink, sink->record, size);
}

/* ---- Code ---- */

static int by_age(const void *left, const void *right)
{
    const struct touched *a = left;
    const struct touched *b = right;
    return ORDER(a->code->from, b->code->from);
}

/* *missing: whether it is not mapped; left alone where it is. */
static int look_at(struct perf_data_sink *sink, uint32_t pid, const struct resolved_code *code,
                   bool *missing)
{
    struct jvm_images *images = code ? image_set_of(sink->images, sink->recording, code) : NULL;
    *missing = *missing || (images && !image_maps_has(sink->maps, images, pid, code));
    return images || !code ? 0 : -ENOMEM;
}

/* The same of all that a sample touches. A location whose code is mapped is not looked at again
 * until something is hidden. */
static int look_at_all(struct perf_data_sink *sink, const struct resolved_sample *sample,
                       bool *missing)
{
    const struct stack_node *nodes = sample->stacks->nodes;
    uint32_t pid = sample->thread.pid;
    uint32_t state = image_maps_state(sink->maps, pid);
    uint32_t *mapped = sink->mapped.list;
    int err = 0;
    for (uint32_t at = sample->node; at && !*missing && !err; at = nodes[at].caller) {
        uint32_t *its = &mapped[nodes[at].location];
        if (*its != state) {
            err = look_at(sink, pid, nodes[at].at->code, missing);
            *its = err || *missing ? *its : state;
        }
    }
    for (uint32_t i = 0; i < sample->branch_count && !err; i++) {
        err = look_at(sink, pid, sample->branches[i], missing);
    }
    return err;
}

/* Adds it to sink->touched, where `count` are. */
static int touch(struct perf_data_sink *sink, const struct resolved_code *code, uint32_t *count)
{
    if (!code || (*count && sink->touched[*count - 1].code == code)) {
        return 0;
    }
    struct jvm_images *images = image_set_of(sink->images, sink->recording, code);
    if (!images) {
        return -ENOMEM;
    }
    if (ARRAY_RESERVE(sink->touched, *count, sink->touched_room)) {
        return no_memory(sink);
    }
    sink->touched[(*count)++] = (struct touched){code, images};
    return 0;
}

/*
 * Maps the code that a sample touches, where it is not mapped already. The youngest comes last: a
 * stack may also show what is left of code that other code took a part of, and where both are
 * mapped, the other one must not be hidden.
 */
static int touch_codes(struct perf_data_sink *sink, const struct resolved_sample *sample)
{
    const struct stack_node *nodes = sample->stacks->nodes;
    uint32_t count = 0;
    bool missing = false;
    int err = look_at_all(sink, sample, &missing);
    if (err || !missing) {
        return err;
    }
    for (uint32_t at = sample->node; at && !err; at = nodes[at].caller) {
        err = touch(sink, nodes[at].at->code, &count);
    }
    for (uint32_t i = 0; i < sample->branch_count && !err; i++) {
        err = touch(sink, sample->branches[i], &count);
    }
    if (count) {
        qsort(sink->touched, count, sizeof *sink->touched, by_age);
    }
    for (uint32_t i = 0; i < count && !err; i++) {
        const struct touched *touched = &sink->touched[i];
        err = image_maps_touch(sink->maps, touched->images, sample->thread.pid, sample->time,
                               touched->code);
    }
    return err;
}

static int hit(struct perf_data_sink *sink, const struct resolved_code *code)
{
    struct jvm_images *images = code ? image_set_of(sink->images, sink->recording, code) : NULL;
    return images ? image_set_hit(sink->images, images, code) : code ? -ENOMEM : 0;
}

/* The code that a sample was taken in, and that it branched through. */
static int hit_codes(struct perf_data_sink *sink, const struct resolved_sample *sample)
{
    int err = sample->node ? hit(sink, stack_table_at(sample->stacks, sample->node)->code) : 0;
    for (uint32_t i = 0; i < sample->branch_count && !err; i++) {
        err = hit(sink, sample->branches[i]);
    }
    return err;
}

static int take_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct perf_data_sink *sink = self(base);
    struct perf_sample out = *sample->recorded;
    int err = sample->node ? follow_locations(sink, sample->stacks) : 0;
    err = err ? err : touch_codes(sink, sample);
    err = err ? err : hit_codes(sink, sample);
    if (!err) {
        err = rewrite(sink, sample, &out);
    }
    if (!err) {
        sink->time = sample->time > sink->time ? sample->time : sink->time;
        put_sample(sink, &out);
    }
    return err;
}

static int take_code(struct sample_sink *base, const struct resolved_code *code)
{
    struct perf_data_sink *sink = self(base);
    struct jvm_images *images = image_set_of(sink->images, sink->recording, code);
    uint64_t time = code->from > sink->time ? code->from : sink->time;
    return images ? image_maps_touch(sink->maps, images, code->module->pid, time, code) : -ENOMEM;
}

/* ---- The end ---- */

static void add_build_id(void *writer, const char *path, const uint8_t build_id[BUILD_ID_MAX])
{
    perf_writer_add_build_id(writer, path, build_id);
}

static int end(struct sample_sink *base)
{
    struct perf_data_sink *sink = self(base);
    int err =
        image_set_write(sink->images, sink->recording->counts.samples, add_build_id, sink->writer);
    if (!err) {
        err = perf_writer_finish(sink->writer);
        sink->writer = NULL;
        if (err) {
            image_set_remove(sink->images);
        }
    }
    if (!err && sink->options.written) {
        image_set_tell(sink->images, sink->options.written, sink->options.written_context);
    }
    if (!err && sink->cut_samples) {
        warning_message("%llu samples have more frames than a record has room for; %llu of their "
                        "outermost ones are not in %s",
                        (unsigned long long)sink->cut_samples, (unsigned long long)sink->cut_frames,
                        sink->options.output);
    }
    close_sink(sink);
    return err;
}

static void abort_sink(struct sample_sink *base)
{
    close_sink(self(base));
}

struct sample_sink *perf_data_sink_new(const struct perf_data_sink_options *options)
{
    static const struct sample_sink_ops ops = {
        .begin = begin,
        .record = take_record,
        .sample = take_sample,
        .end = end,
        .abort = abort_sink,
    };
    static const struct sample_sink_ops ops_all = {
        .begin = begin,
        .record = take_record,
        .code = take_code,
        .sample = take_sample,
        .end = end,
        .abort = abort_sink,
    };
    struct perf_data_sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        failed_to(-ENOMEM, "write %s", options->output);
        return NULL;
    }
    /* Which code a copy of a stack shows is known when somebody unwinds it. */
    sink->sink.ops = options->keep_all || options->keep_stacks ? &ops_all : &ops;
    sink->sink.reads_code = true;
    sink->options = *options;
    sink->mapped.element = sink->parts.element = sizeof(uint32_t);
    struct image_set_options images = {
        .result = options->output,
        .inlines = options->inlines,
        .frame_info = options->keep_stacks,
        .all_code = options->keep_all || options->keep_stacks,
        .inlined_suffix = options->inlined_suffix,
        .interpreted_suffix = options->interpreted_suffix,
        .source_path = options->source_path,
    };
    if (image_set_open(&images, &sink->images)) {
        free(sink);
        return NULL;
    }
    return &sink->sink;
}
