/* What jdtool inject --save does beside the perf.data it makes. */
#ifndef JD_TOOL_SAVE_H
#define JD_TOOL_SAVE_H

struct inject_options;

/* Reads the recording once more, and writes its samples with their names to options->save. 0 or a
 * negative errno after a message. */
int save_samples(const struct inject_options *options);

#endif
