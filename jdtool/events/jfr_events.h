/*
 * A recording of the JVM's own (JDK Flight Recorder, .jfr) as marks: collections, class loading,
 * sockets, files, waits, and what the program itself has written into it.
 *
 * A chunk has a header, events, constants that events point to, and metadata that tell how both are
 * laid out. Nothing of a layout is taken for granted but that: a chunk that does not hold together
 * is left out from where it does not.
 */
#ifndef JD_TOOL_JFR_EVENTS_H
#define JD_TOOL_JFR_EVENTS_H

#include "jdtool/events/mark.h"

#include <stddef.h>

/* Larger chunks are not read: the JDK's have 12 MB. */
#define JFR_CHUNK_MAX ((uint64_t)1 << 30)

/* A mark of MARK_JFR that is complete but for its thread: text is the kind of event ("ClassLoad"),
 * subject its fields ("loadedClass: Main, …"); times are ns since 1970. pid: the JVM's as it sees
 * itself, 0: not told; tid: 0: no thread. 0 or a negative errno, which ends the walk. */
typedef int jfr_take(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark);

/* Gives all marks of a chunk (a whole one, from "FLR" on). 0; -EBADMSG: it is damaged, and what was
 * told is all; -ENOMEM; or what take returned. No message. */
int jfr_chunk_read(const uint8_t *bytes, size_t size, jfr_take *take, void *context);

/* The same of all chunks of a file. A negative errno of its own is told. */
int jfr_file_read(const char *path, jfr_take *take, void *context);

#endif
