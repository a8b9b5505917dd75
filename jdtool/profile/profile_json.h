/*
 * What the JSON documents about a profile have in common:
 *
 *   {"version": 1, "recording": …, "command": …, "arch": …, "samples": N,
 *    "events": [{"name", "unit", "samples", "weight"}], …
 */
#ifndef JD_TOOL_PROFILE_JSON_H
#define JD_TOOL_PROFILE_JSON_H

#include "jdtool/base/json_writer.h"
#include "jdtool/profile/profile.h"

/* Begins a document, in an object that stays open. What is written goes to output, which stays the
 * caller's. */
void profile_json_begin(struct json_writer *json, const struct profile *profile,
                        struct packed_output *output);

/* The array "events" alone, for documents that begin otherwise. */
void profile_json_events(struct json_writer *json, const struct profile *profile);

/* Ends it, with a newline. */
void profile_json_end(struct json_writer *json);

#endif
