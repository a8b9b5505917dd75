/*
 * The processor time that the kernel accounted to JVMs while they were sampled: jdperf record reads
 * their clocks and leaves what it read in a file, against which the scorecard holds the samples.
 * The file has a line for each JVM: its pid, nanoseconds, and how many more it may have had since
 * its clock was read for the last time; or its pid and "unknown". "unprobed" is behind them where
 * the probes were put on another JDK's libjvm.so. A line "without --alloc --locks" names what was
 * asked for and could not be recorded.
 */
#ifndef JD_TOOL_PROCESSOR_TIME_H
#define JD_TOOL_PROCESSOR_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESSOR_TIME_FILE "processor-time" /* in a profile */

struct processor_time {
    uint32_t pid;
    bool is_known;
    uint64_t ns;
    uint64_t more; /* it ended between two looks at its clock: at most so much was missed */
    bool is_unprobed;
};

/* Options of jdperf record, a bit each. */
enum left_out {
    LEFT_OUT_ALLOC = 1,
    LEFT_OUT_LOCKS = 2,
    LEFT_OUT_EXCEPTIONS = 4,
    LEFT_OUT_OFF_CPU = 8,
    LEFT_OUT_TIMELINE = 16
};

/* Room for the names of all of them. */
#define LEFT_OUT_WORDS_MAX 64

/* " --alloc --locks"; "": none. */
void left_out_words(unsigned left_out, char words[LEFT_OUT_WORDS_MAX]);

/*
 * Reads at most 65,536 lines; lines that are none are passed over. *times is for the caller to
 * free; their number, or a negative errno without a message: -ENOENT, nobody read clocks.
 * *left_out gets the bits of enum left_out.
 */
int64_t processor_times_read(const char *path, struct processor_time **times, unsigned *left_out);

/* 0 or a negative errno after a message. */
int processor_times_write(const char *path, const struct processor_time *times, uint32_t count,
                          unsigned left_out);

#endif
