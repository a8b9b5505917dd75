/*
 * Makes marks of what libjvm's probes tell (format/event_probe.h): the beginning of a thing is kept
 * until the same thread tells of its end.
 */
#ifndef JD_TOOL_MARKS_H
#define JD_TOOL_MARKS_H

#include "jdtool/events/mark.h"
#include "jdtool/perf/perf_data.h"

#include <stdio.h>

/* So many things may have begun at once, in all threads; others are not told, which is counted. */
#define MARKS_OPEN_MAX (UINT32_C(1) << 20)

/* A mark that is complete but for its thread, of the process and thread that it says. 0 or a
 * negative errno, which ends the walk. */
struct mark_taker {
    int (*take)(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark);
    void *context;
};

struct marks;

struct marks *marks_new(void); /* NULL: no memory */
void marks_free(struct marks *marks);

/* A sample of the event "timeline". What its raw data tell wrongly is left out. 0, what the taker
 * returned, or -ENOMEM. */
int marks_add(struct marks *marks, const struct perf_sample *sample,
              const struct mark_taker *taker);

/* What a thread has not ended when it is gone: a JVM's last safepoint. The same. */
int marks_end_thread(struct marks *marks, uint32_t tid, uint64_t time,
                     const struct mark_taker *taker);

/* What has not ended, when the recording does. The same. */
int marks_end(struct marks *marks, uint64_t time, const struct mark_taker *taker);

/* Things whose end, or beginning, was not told though the recording should have it. */
uint64_t marks_lost(const struct marks *marks);

/* ---- A JVM's log ---- */

/*
 * The JVM's own log of its pauses (-Xlog, or the agent's log=on), made into marks: safepoints with
 * their operation, and collections. Its lines begin with "[NANOSECONDSns][TID][TAGS]", on
 * CLOCK_MONOTONIC; others are passed over.
 */

/* So long a line may be; the rest of a longer one is passed over. */
#define JVM_LOG_LINE_MAX 1024

/* One line's mark, which is without a thread, and that thread as the JVM numbers it. `line` is
 * changed, and what the mark points to lies in it. False: the line tells of nothing. */
bool jvm_log_line(char *line, struct resolved_mark *mark, uint32_t *tid);

/* Calls `take` with each mark of the file, from where it stands. 0 or what `take` returned. */
int jvm_log_read(FILE *file,
                 int (*take)(void *context, uint32_t tid, const struct resolved_mark *mark),
                 void *context);

#endif
