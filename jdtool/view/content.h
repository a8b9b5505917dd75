/*
 * What jdtool view serves, below a path that only its user knows:
 *
 *     GET  /TOKEN/profile.json   the profile in Firefox Profiler's format
 *     POST /TOKEN/source/v1      a source file
 *     POST /TOKEN/asm/v1         machine code as text
 *
 * The last two are those of samply's and profiler-get-symbols' API, which the front end asks. Only
 * files that the profile names are read, and code of functions in it.
 */
#ifndef JD_TOOL_CONTENT_H
#define JD_TOOL_CONTENT_H

#include "jdtool/exports/export.h"
#include "jdtool/view/http.h"

struct content;

#define CONTENT_TOKEN_SIZE 33 /* 32 hexadecimal digits: 128 random bits */

/* Makes the profile's file. Both are kept, not copied. 0 or a negative errno after a message. */
int content_new(const struct profile *profile, const struct export_settings *settings,
                struct content **out);
void content_free(struct content *content); /* NULL is fine */

const char *content_token(const struct content *content);

/* The server's `answer`; context is the content. */
void content_answer(void *context, const struct http_request *request,
                    struct http_response *response);

#endif
