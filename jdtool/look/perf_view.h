/*
 * perf as it looks at a profile: report --perf, annotate --perf, script. It reads others' data by
 * itself, so it is confined (perf_files.h), unless the user says that his own profile is to be
 * trusted; it finds files by their build-ids inside the profile, never in ~/.debug, and has a
 * directory for files of its own, which goes away with it.
 */
#ifndef JD_TOOL_PERF_VIEW_H
#define JD_TOOL_PERF_VIEW_H

#include "jdtool/base/text.h"
#include "jdtool/look/look.h"
#include "jdtool/look/perf_files.h"

struct perf_view {
    const struct opened_profile *profile;
    int held;            /* its directory, as perf reaches it */
    int place, scratch;  /* the directory for perf's files, and where it lies */
    int directory;       /* perf works here; -1: where we do */
    char path[PATH_MAX]; /* of the former */
    char data[64];       /* perf's path of the recording */
    struct perf_files *files;
    struct confined_program confined;
    bool is_confined;
    bool drop; /* perf is run as who called sudo, whose profile it is */
    uid_t uid;
    gid_t gid;
    struct waiting waiting;
};

/* Opens the profile for `look`, and all that perf needs. What the words name, for perf, it may
 * read. An exit status, after a message. Close it in any case. */
int perf_view_open(struct perf_view *view, struct look *look, const char *given,
                   char *const *words);
void perf_view_close(struct perf_view *view);

/* It may read these directories besides, parted by ':'; NULL: none. */
void perf_view_allow(struct perf_view *view, const char *paths);

/* The same, and gives each line that it prints to `take`, until that returns false. */
typedef bool perf_view_take(void *context, char *line);
int perf_view_read(struct perf_view *view, const char *verb, struct words *more,
                   perf_view_take *take, void *context, int err);

/* The same for the user: of an option that perf does not know he sees the name, not perf's whole
 * help. */
int perf_view_show(struct perf_view *view, const char *verb, struct words *more, bool as_text);

/* Has a function of ours work where perf does, and with no more rights. */
int perf_view_work(struct perf_view *view, int (*work)(void *context), void *context);

#endif
