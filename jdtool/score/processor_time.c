#include "jdtool/score/processor_time.h"

#include "jdtool/base/array.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/packed_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MAX = 65536 };

static const char without[] = "without";

static const struct {
    enum left_out bit;
    const char *word;
} options[] = {
    {LEFT_OUT_ALLOC, " --alloc"},           {LEFT_OUT_LOCKS, " --locks"},
    {LEFT_OUT_EXCEPTIONS, " --exceptions"}, {LEFT_OUT_OFF_CPU, " --off-cpu"},
    {LEFT_OUT_TIMELINE, " --timeline"},
};

void left_out_words(unsigned left_out, char words[LEFT_OUT_WORDS_MAX])
{
    size_t used = 0;
    words[0] = '\0';
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (left_out & options[i].bit) {
            used +=
                (size_t)snprintf(words + used, LEFT_OUT_WORDS_MAX - used, "%s", options[i].word);
        }
    }
}

static unsigned read_left_out(const char *line)
{
    unsigned left_out = 0;
    bool is = strncmp(line, without, sizeof without - 1) == 0;
    for (size_t i = 0; is && i < sizeof options / sizeof *options; i++) {
        left_out |= strstr(line, options[i].word) ? options[i].bit : 0;
    }
    return left_out;
}

/* The number that `*at` begins with, and puts *at behind it. False: there is none, or too large. */
static bool read_number(const char **at, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*at, &end, 10);
    bool is = **at >= '0' && **at <= '9' && errno == 0 && *number <= most;
    *at = *end == ' ' ? end + 1 : end;
    return is;
}

static bool read_line(const char *line, struct processor_time *time)
{
    uint64_t pid;
    bool has_pid = read_number(&line, UINT32_MAX, &pid);
    *time = (struct processor_time){.pid = (uint32_t)pid};
    if (has_pid && strcmp(line, "unknown\n") == 0) {
        return true;
    }
    /* Sums of all lines stay below 2^64. */
    time->is_known = has_pid && read_number(&line, UINT64_MAX / LINES_MAX, &time->ns) &&
                     read_number(&line, UINT64_MAX / LINES_MAX, &time->more);
    time->is_unprobed = strcmp(line, "unprobed\n") == 0;
    return time->is_known && (time->is_unprobed || strcmp(line, "\n") == 0);
}

int64_t processor_times_read(const char *path, struct processor_time **times, unsigned *left_out)
{
    char line[128];
    uint32_t count = 0;
    uint32_t room = 0;
    int err = 0;
    *times = NULL;
    *left_out = 0;
    int fd = open_regular(path); /* it may be in somebody else's profile */
    if (fd < 0) {
        return fd;
    }
    FILE *in = fdopen(fd, "r");
    if (!in) {
        close(fd);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < LINES_MAX && !err && fgets(line, sizeof line, in); i++) {
        err = array_reserve(times, count, &room, sizeof **times);
        count += !err && read_line(line, &(*times)[count]);
        *left_out |= read_left_out(line);
    }
    fclose(in);
    if (err) {
        free(*times);
        *times = NULL;
        return err;
    }
    return count;
}

int processor_times_write(const char *path, const struct processor_time *times, uint32_t count,
                          unsigned left_out)
{
    struct packed_output *file;
    char words[LEFT_OUT_WORDS_MAX];
    int err = packed_output_open(path, false, &file);
    if (err) {
        return err;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (times[i].is_known) {
            packed_output_printf(file, "%" PRIu32 " %" PRIu64 " %" PRIu64 "%s\n", times[i].pid,
                                 times[i].ns, times[i].more,
                                 times[i].is_unprobed ? " unprobed" : "");
        } else {
            packed_output_printf(file, "%" PRIu32 " unknown\n", times[i].pid);
        }
    }
    if (left_out) {
        left_out_words(left_out, words);
        packed_output_printf(file, "%s%s\n", without, words);
    }
    return packed_output_finish(file);
}
