/* Recordings of JVMs' own (.jfr) beside the samples: a sink in front of another one, which gets
 * their events as marks behind the last sample, on the samples' clock. */
#ifndef JD_TOOL_PIPELINE_JFR_MARKS_H
#define JD_TOOL_PIPELINE_JFR_MARKS_H

#include "jdtool/base/verb.h"
#include "jdtool/resolve/sample_sink.h"

/* The most files of one profile. */
#define JFR_FILES_MAX 64

struct jfr_files {
    const char *list[JFR_FILES_MAX];
    uint32_t count;
};

/* --jfr FILE, for OPTION_TABLE. */
extern const struct verb_option jfr_files_options[];

/* The files are kept, not copied, and read when the recording has ended. `behind` is used up on
 * failure, too. 0 or a negative errno after a message. */
int jfr_marks_new(const struct jfr_files *files, struct sample_sink *behind,
                  struct sample_sink **out);

#endif
