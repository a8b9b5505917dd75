#include "jdtool/pipeline/replay.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/packed_input.h"
#include "jdtool/pipeline/replayed.h"
#include "jdtool/profile/saved_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct replay {
    const struct replay_options *options;
    struct sample_sink *const *sinks;
    uint32_t sink_count;
    bool has_begun;
    struct packed_input *input;
    struct replayed things;
    struct recording recording;
    uint64_t time; /* of the sample before */
};

static int broken(const struct replay *replay, const char *what)
{
    int err = packed_input_error(replay->input);
    if (err && err != -EBADMSG) {
        error_message("failed to read %s: %s", replay->options->input, strerror(-err));
        return err;
    }
    error_message("failed to read %s: it is damaged: %s", replay->options->input,
                  err ? "it is cut or changed" : what);
    return -EBADMSG;
}

static int no_memory(const struct replay *replay)
{
    error_message("failed to read %s: %s", replay->options->input, strerror(ENOMEM));
    return -ENOMEM;
}

static bool read_signed(struct packed_input *input, int64_t *value)
{
    uint64_t number;
    bool read = packed_input_number(input, &number);
    *value = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
    return read;
}

/* ---- Samples ---- */

static int begin(struct replay *replay)
{
    int err = 0;
    replay->has_begun = true;
    replay->recording.events = replay->things.events;
    replay->recording.event_count = replay->things.event_count;
    for (uint32_t i = 0; i < replay->sink_count && !err; i++) {
        err = replay->sinks[i]->ops->begin(replay->sinks[i], &replay->recording);
    }
    return err;
}

static int give_sample(struct replay *replay)
{
    struct packed_input *input = replay->input;
    const struct replayed *things = &replay->things;
    int64_t behind;
    uint64_t fields[6]; /* event, thread, node, weight, cpu, end */
    bool read = read_signed(input, &behind);
    for (int i = 0; i < 6; i++) {
        read = read && packed_input_number(input, &fields[i]);
    }
    if (!read || fields[0] >= things->event_count || fields[1] >= things->thread_count ||
        fields[2] >= things->stacks->node_count || fields[5] >= STACK_ENDS) {
        return broken(replay, "a sample refers to what is not there");
    }
    int err = replay->has_begun ? 0 : begin(replay);
    replay->time += (uint64_t)behind;
    struct recording *recording = &replay->recording;
    struct resolved_sample sample = {
        .event = &recording->events[fields[0]],
        .time = replay->time,
        .weight = fields[3],
        .cpu = (uint32_t)fields[4],
        .thread = things->threads[fields[1]],
        .stacks = things->stacks,
        .node = (uint32_t)fields[2],
        .end = (enum stack_end)fields[5],
    };
    if (recording->counts.samples++ == 0 || sample.time < recording->from) {
        recording->from = sample.time;
    }
    recording->until = sample.time > recording->until ? sample.time : recording->until;
    for (uint32_t i = 0; i < replay->sink_count && !err; i++) {
        err = replay->sinks[i]->ops->sample(replay->sinks[i], &sample);
    }
    return err;
}

static int give_mark(struct replay *replay)
{
    struct packed_input *input = replay->input;
    const struct replayed *things = &replay->things;
    int64_t behind = 0;
    uint64_t kind = 0;
    uint64_t fields[6]; /* duration, is_open, number, thread, text, subject */
    bool read = packed_input_number(input, &kind) && read_signed(input, &behind);
    for (int i = 0; i < 6; i++) {
        read = read && packed_input_number(input, &fields[i]);
    }
    if (!read || kind >= MARK_KINDS || fields[3] >= things->thread_count ||
        fields[4] > things->text_count || fields[5] > things->text_count) {
        return broken(replay, "a mark refers to what is not there");
    }
    uint64_t from = replay->time + (uint64_t)behind;
    struct resolved_mark mark = {
        .kind = (enum mark_kind)kind,
        .from = from,
        .until = fields[0] <= UINT64_MAX - from ? from + fields[0] : UINT64_MAX,
        .is_open = fields[1] != 0,
        .thread = &things->threads[fields[3]],
        .text = fields[4] ? things->texts[fields[4] - 1] : NULL,
        .subject = fields[5] ? things->texts[fields[5] - 1] : NULL,
        .number = fields[2],
    };
    int err = replay->has_begun ? 0 : begin(replay);
    for (uint32_t i = 0; i < replay->sink_count && !err; i++) {
        const struct sample_sink_ops *ops = replay->sinks[i]->ops;
        err = ops->mark ? ops->mark(replay->sinks[i], &mark) : 0;
    }
    return err;
}

/* ---- The end ---- */

static int take_verdict(struct replay *replay)
{
    uint64_t number;
    if (!packed_input_number(replay->input, &number) || number == 0 ||
        number > replay->things.text_count) {
        return broken(replay, "a verdict refers to what is not there");
    }
    replay->recording.verdict = replay->things.texts[number - 1];
    return 0;
}

static int take_end(struct replay *replay)
{
    struct recording *recording = &replay->recording;
    const char **const strings[] = {&recording->hostname,     &recording->os_release,
                                    &recording->arch,         &recording->cpu,
                                    &recording->command_line, &recording->perf_version};
    uint64_t number = 0;
    uint64_t cpus = 0;
    uint64_t has_wall = 0;
    bool read = true;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        read = read && packed_input_number(replay->input, &number) &&
               number <= replay->things.text_count;
        *strings[i] = read && number ? replay->things.texts[number - 1] : NULL;
    }
    read = read && packed_input_number(replay->input, &cpus) &&
           packed_input_number(replay->input, &has_wall) &&
           read_signed(replay->input, &recording->wall_offset) &&
           packed_input_number(replay->input, &number);
    if (!read || number != recording->counts.samples) {
        return broken(replay, "its end does not fit to what came before");
    }
    recording->cpu_count = (uint32_t)cpus;
    recording->has_wall = has_wall != 0;
    return replay->has_begun ? 0 : begin(replay);
}

/* ---- All of it ---- */

static int read_all(struct replay *replay)
{
    char magic[SAVED_MAGIC_SIZE];
    uint8_t tag;
    if (!packed_input_bytes(replay->input, magic, sizeof magic) ||
        memcmp(magic, SAVED_MAGIC, sizeof magic) != 0) {
        error_message("failed to read %s: it contains no saved samples", replay->options->input);
        return -EBADMSG;
    }
    for (;;) {
        if (!packed_input_byte(replay->input, &tag)) {
            return broken(replay, "it ends too early");
        }
        int err;
        if (tag == SAVED_END) {
            return take_end(replay);
        }
        if (tag == SAVED_SAMPLE || tag == SAVED_MARK || tag == SAVED_VERDICT) {
            err = tag == SAVED_SAMPLE ? give_sample(replay)
                  : tag == SAVED_MARK ? give_mark(replay)
                                      : take_verdict(replay);
            if (err) {
                return err;
            }
            continue;
        }
        if (tag == SAVED_EVENT && replay->has_begun) {
            return broken(replay, "an event comes behind samples");
        }
        const char *why = "";
        err = replayed_take(&replay->things, tag, replay->input, &why);
        if (err) {
            return err == -ENOMEM ? no_memory(replay) : broken(replay, why);
        }
    }
}

bool replay_knows(const char *path)
{
    /* The gzip's first two bytes: perf's files have others, and pipes are never asked. */
    uint8_t first[2] = {0};
    struct stat status = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool known = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                 pread(fd, first, sizeof first, 0) == (ssize_t)sizeof first && first[0] == 0x1f &&
                 first[1] == 0x8b;
    close(fd);
    return known;
}

int replay_run(const struct replay_options *options, struct sample_sink *const *sinks,
               uint32_t count)
{
    struct replay replay = {.options = options, .sinks = sinks, .sink_count = count};
    replay.recording.path = options->input;
    replay.recording.has_chains = true;
    int err = replayed_start(&replay.things, options->input, options->wants_code);
    err = err ? no_memory(&replay) : packed_input_open(options->input, &replay.input);
    if (!err) {
        err = read_all(&replay);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (err) {
            sinks[i]->ops->abort(sinks[i]);
        } else {
            err = sinks[i]->ops->end(sinks[i]);
        }
    }
    packed_input_close(replay.input);
    replayed_free(&replay.things);
    return err;
}
