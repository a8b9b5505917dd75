/*
 * The agent's options: "key=value,key=value…" as -agentpath and the attach commands pass them, and
 * the environment. Every key is in the table of options.c. Needs no JVM.
 *
 * A bare word is `word=on`; an unknown key or value, a key given twice or a wrong character is an
 * error: a misspelt option must not cost somebody the profile of an incident.
 */
#ifndef JD_AGENT_OPTIONS_H
#define JD_AGENT_OPTIONS_H

#include "agent/methods/inlines.h"
#include "agent/methods/symbol_name.h"
#include "writer/sinks/perf_map_sink.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum command {
    COMMAND_START,
    COMMAND_STOP,
    COMMAND_STATUS,
};

enum mode {
    MODE_JITDUMP = 1,
    MODE_MAP = 2,
    MODE_ITT = 4,
};

struct options {
    enum command command;
    char status_path[PATH_MAX]; /* of COMMAND_STATUS; "": on stderr */
    unsigned modes;             /* of enum mode, at least one */
    char dir[PATH_MAX];         /* "": none given, the default applies */
    enum name_style names;
    bool tier;
    bool normalize;
    enum inline_depth inlines;
    bool lines;
    bool tree_lines; /* lines, but no rows in the dump that its inline trees give as well */
    bool code;
    struct unfold_style unfold; /* perf maps */
    bool methods;
    bool threads; /* write the journal of threads */
    bool waits;   /* and tell where virtual threads wait */
    bool log;     /* have the JVM log its pauses */
    bool samply;
    uint64_t alloc_bytes; /* mean distance of sampled allocations; 0: none are told */
    uint64_t lock_ns;     /* waits for monitors from here on are all told; 0: none are */
    bool tsc;
    uint64_t max_bytes;   /* 0: no limit */
    uint64_t segment;     /* bytes; 0: one file */
    uint32_t keep;        /* segments; 0: any number */
    uint64_t keep_bytes;  /* of segments; 0: any number */
    uint64_t reserve;     /* bytes; writer/disk_room.h */
    uint32_t duration;    /* seconds, 0: no end */
    char lease[PATH_MAX]; /* of agent/session/session_clock.h; "": none */
    int verbose;          /* enum message_level; -1: as it is, of commands that start nothing */
    bool strict;
};

/* Room for the longest error message, its NUL included. */
#define OPTIONS_ERROR_MAX 1024

/*
 * Reads `text` (NULL is ""; else NUL-terminated, of any length and contents) into *options, which
 * start as the defaults, JITDUMP_USE_ARCH_TIMESTAMP among them. Returns 0, or -EINVAL with a
 * message in `error` that names the culprit and lists what is allowed; *options is then not to be
 * used.
 */
int options_parse(const char *text, struct options *options, char error[OPTIONS_ERROR_MAX]);

/*
 * 0 when `path` can name a file or directory of ours: short enough to have names appended, valid
 * UTF-8 without control characters, no ".." in it. Else -EINVAL with a message that begins with
 * `what`.
 */
int options_check_path(const char *what, const char *path, char error[OPTIONS_ERROR_MAX]);

#endif
