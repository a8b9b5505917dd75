/* Writes a profile into a file of saved samples (saved_format.h), while it is made. */
#ifndef JD_TOOL_SAVED_H
#define JD_TOOL_SAVED_H

#include "jdtool/profile/profile.h"

struct saved;

/* path is kept, not copied. 0 or a negative errno after a message. */
int saved_open(const char *path, struct saved **out);

/*
 * The profile, which keeps identities, as soon as there is one; then each sample and mark when the
 * profile has what it needs (profile_intern, profile_intern_thread), in the order of their coming.
 * 0 or -ENOMEM.
 */
int saved_begin(struct saved *saved, const struct profile *profile);
int saved_sample(struct saved *saved, const struct profile_sample *made,
                 const struct resolved_sample *sample);
int saved_mark(struct saved *saved, const struct resolved_mark *mark, uint32_t thread);

/* Completes the file and frees it. 0 or a negative errno after a message; it is then not there. */
int saved_close(struct saved *saved);

/* Frees it and leaves no file. NULL is fine. */
void saved_abort(struct saved *saved);

#endif
