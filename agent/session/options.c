/*
 * One table, one row a key. A row has the words that it takes and the field that gets what they
 * stand for, or a function that gets the value as a string and says whether it is one; `allowed` is
 * what the user is told when it is not.
 */
#include "agent/session/options.h"

#include "writer/disk_room.h"
#include "writer/message.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than every option at its longest; what is longer is a mistake. */
#define MAX_TEXT ((size_t)3 * PATH_MAX)
/* A segment has to hold what is told once in each, and then some. */
#define SEGMENT_MIN (UINT64_C(64) << 10)
/* What the default directory and the file's name append to a path. */
#define ROOM_FOR_NAMES 128

/* Writes the message, for `return FAIL(error, ...)`. */
#define FAIL(error, ...) (snprintf(error, OPTIONS_ERROR_MAX, __VA_ARGS__), -EINVAL)

/* A word of a value and what it stands for. */
struct word {
    const char *word;
    int value;
};

static bool find_word(const struct word *words, const char *value, int *found)
{
    for (; words->word; words++) {
        if (strcmp(words->word, value) == 0) {
            *found = words->value;
            return true;
        }
    }
    return false;
}

static const struct word on_off[] = {{"on", 1}, {"off", 0}, {NULL, 0}};

static bool parse_switch(const char *value, bool *out)
{
    int found = 0;
    if (!find_word(on_off, value, &found)) {
        return false;
    }
    *out = found != 0;
    return true;
}

/* A decimal number of at most `max`; *end is what follows it. */
static bool parse_number(const char *value, uint64_t max, uint64_t *out, const char **end)
{
    uint64_t number = 0;
    const char *p = value;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (number > (max - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *out = number;
    *end = p;
    return p != value;
}

static bool set_mode(struct options *options, const char *value)
{
    static const struct word words[] = {
        {"jitdump", MODE_JITDUMP}, {"map", MODE_MAP}, {"itt", MODE_ITT}, {NULL, 0}};
    unsigned modes = 0;
    for (;;) {
        char word[16];
        size_t n = strcspn(value, "+");
        int mode = 0;
        if (n >= sizeof(word)) {
            return false;
        }
        memcpy(word, value, n);
        word[n] = '\0';
        if (!find_word(words, word, &mode) || (modes & (unsigned)mode)) {
            return false;
        }
        modes |= (unsigned)mode;
        if (value[n] == '\0') {
            options->modes = modes;
            return true;
        }
        value += n + 1;
    }
}

static bool set_path(char out[PATH_MAX], const char *value)
{
    size_t n = strlen(value);
    if (n == 0 || n >= PATH_MAX) {
        return false;
    }
    memcpy(out, value, n + 1);
    return true;
}

static bool set_dir(struct options *options, const char *value)
{
    return set_path(options->dir, value);
}

static bool parse_size(const char *value, uint64_t *bytes)
{
    static const struct word units[] = {{"", 0},   {"K", 10}, {"k", 10}, {"M", 20},
                                        {"m", 20}, {"G", 30}, {"g", 30}, {NULL, 0}};
    const char *unit = NULL;
    int shift = 0;
    if (!parse_number(value, UINT64_MAX >> 31, bytes, &unit) || !find_word(units, unit, &shift)) {
        return false;
    }
    *bytes <<= shift;
    return true;
}

static bool set_max(struct options *options, const char *value)
{
    return parse_size(value, &options->max_bytes) && options->max_bytes > 0;
}

static bool set_segment(struct options *options, const char *value)
{
    return parse_size(value, &options->segment) && options->segment >= SEGMENT_MIN;
}

/* A bare number counts segments, one with a unit their bytes. */
static bool set_keep(struct options *options, const char *value)
{
    uint64_t number = 0;
    const char *end = NULL;
    if (parse_number(value, INT32_MAX, &number, &end) && !*end) {
        options->keep = (uint32_t)number;
        return number > 0;
    }
    return parse_size(value, &options->keep_bytes) && options->keep_bytes > 0;
}

static bool set_reserve(struct options *options, const char *value)
{
    return parse_size(value, &options->reserve);
}

/* Bytes between samples, which JVMTI takes as a jint. */
static bool set_alloc(struct options *options, const char *value)
{
    enum { DEFAULT_BYTES = 512 * 1024 }; /* HotSpot's own */
    static const struct word units[] = {{"", 0},   {"K", 10}, {"k", 10},
                                        {"M", 20}, {"m", 20}, {NULL, 0}};
    const char *unit = NULL;
    int shift = 0;
    bool on = false;
    if (parse_switch(value, &on)) {
        options->alloc_bytes = on ? DEFAULT_BYTES : 0;
        return true;
    }
    return parse_number(value, INT32_MAX, &options->alloc_bytes, &unit) &&
           find_word(units, unit, &shift) && (options->alloc_bytes <<= shift) > 0 &&
           options->alloc_bytes <= INT32_MAX;
}

static bool set_locks(struct options *options, const char *value)
{
    enum { DEFAULT_NS = 1000000 };
    static const struct word units[] = {
        {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
    const char *unit = NULL;
    int scale = 0;
    bool on = false;
    if (parse_switch(value, &on)) {
        options->lock_ns = on ? DEFAULT_NS : 0;
        return true;
    }
    return parse_number(value, INT32_MAX, &options->lock_ns, &unit) &&
           find_word(units, unit, &scale) && (options->lock_ns *= (uint64_t)scale) > 0;
}

static bool set_duration(struct options *options, const char *value)
{
    const char *end = NULL;
    uint64_t seconds = 0;
    if (!parse_number(value, INT32_MAX, &seconds, &end) || *end || seconds == 0) {
        return false;
    }
    options->duration = (uint32_t)seconds;
    return true;
}

static bool set_lease(struct options *options, const char *value)
{
    return value[0] == '/' && set_path(options->lease, value);
}

static bool set_threads(struct options *options, const char *value)
{
    options->waits = strcmp(value, "waits") == 0;
    options->threads = true;
    return options->waits || parse_switch(value, &options->threads);
}

static bool set_lines(struct options *options, const char *value)
{
    options->tree_lines = strcmp(value, "tree") == 0;
    options->lines = true;
    return options->tree_lines || parse_switch(value, &options->lines);
}

static bool set_status(struct options *options, const char *value)
{
    options->command = COMMAND_STATUS;
    return strcmp(value, "on") == 0 || (value[0] == '/' && set_path(options->status_path, value));
}

static const struct word name_styles[] = {{"java", NAMES_JAVA},
                                          {"short", NAMES_SHORT},
                                          {"jvm", NAMES_JVM},
                                          {"source", NAMES_SOURCE},
                                          {NULL, 0}};
static const struct word depths[] = {
    {"full", INLINE_FULL}, {"leaf", INLINE_LEAF}, {"off", INLINE_OFF}, {NULL, 0}};
static const struct word unfold_modes[] = {{"off", UNFOLD_OFF},
                                           {"leaf", UNFOLD_LEAF},
                                           {"all", UNFOLD_ALL},
                                           {"simple", UNFOLD_SIMPLE},
                                           {"on", UNFOLD_LEAF}, /* perf-map-agent's bare `unfold` */
                                           {NULL, 0}};
static const struct word clocks[] = {{"monotonic", 0}, {"tsc", 1}, {NULL, 0}};
static const struct word levels[] = {
    {"on", MESSAGE_INFO}, {"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}, {"4", 4}, {"5", 5}, {NULL, 0}};
/* The only value of a key that takes none. */
static const struct word java_names[] = {{"on", NAMES_JAVA}, {NULL, 0}};
static const struct word unfold_all[] = {{"on", UNFOLD_ALL}, {NULL, 0}};
static const struct word unfold_simple[] = {{"on", UNFOLD_SIMPLE}, {NULL, 0}};
static const struct word start[] = {{"on", COMMAND_START}, {NULL, 0}};
static const struct word stop[] = {{"on", COMMAND_STOP}, {NULL, 0}};

/* A bool, or an int or enum. */
#define WORDS(takes, member)                                                                       \
    .words = (takes), .field = offsetof(struct options, member),                                   \
    .width = sizeof(((struct options *)NULL)->member)
_Static_assert(sizeof(enum name_style) == sizeof(int) && sizeof(enum inline_depth) == sizeof(int) &&
                   sizeof(enum unfold_mode) == sizeof(int) && sizeof(enum command) == sizeof(int),
               "a word stands for an int");

/* From unfoldall on: perf-map-agent's words, which people have in their scripts. What three of them
 * ask for is what names=java is anyway. */
static const struct option {
    const char *key;
    const char *allowed;
    bool (*set)(struct options *options, const char *value); /* NULL: the field gets a word's */
    const struct word *words;
    size_t field, width;
    const char *same_as; /* the key whose alias this is: both at once contradict each other */
    bool needs_value;    /* anything is a path, "on" too */
} table[] = {
    {"mode", "jitdump, map, itt, joined by '+'", .set = set_mode},
    {"dir", "a path", .set = set_dir, .needs_value = true},
    {"directory", "a path", .set = set_dir, .same_as = "dir", .needs_value = true},
    {"names", "java, short, jvm, source", WORDS(name_styles, names)},
    {"tier", "on, off", WORDS(on_off, tier)},
    {"normalize", "on, off", WORDS(on_off, normalize)},
    {"inline", "full, leaf, off", WORDS(depths, inlines)},
    {"lines", "on, off, tree", .set = set_lines},
    {"code", "on, off", WORDS(on_off, code)},
    {"unfold", "off, leaf, all, simple", WORDS(unfold_modes, unfold.mode)},
    {"methods", "on, off", WORDS(on_off, methods)},
    {"threads", "on, off, waits", .set = set_threads},
    {"log", "on, off", WORDS(on_off, log)},
    {"samply", "on, off", WORDS(on_off, samply)},
    {"alloc", "a number of bytes, perhaps with K or M behind it, on, off", .set = set_alloc},
    {"locks", "a duration such as 100us or 1ms, on, off", .set = set_locks},
    {"clock", "monotonic, tsc", WORDS(clocks, tsc)},
    {"max", "a number of bytes, perhaps with K, M or G behind it", .set = set_max},
    {"segment", "a number of bytes from 64K up, perhaps with K, M or G behind it",
     .set = set_segment, .needs_value = true},
    {"keep", "a number of segments, or of bytes with K, M or G behind it", .set = set_keep,
     .needs_value = true},
    {"reserve", "a number of bytes, perhaps with K, M or G behind it", .set = set_reserve,
     .needs_value = true},
    {"duration", "a number of seconds from 1 up", .set = set_duration},
    {"lease", "the absolute path of a file that is locked", .set = set_lease, .needs_value = true},
    {"verbose", "0 to 5", WORDS(levels, verbose)},
    {"strict", "on, off", WORDS(on_off, strict)},
    {"start", "no value", WORDS(start, command)},
    {"stop", "no value", WORDS(stop, command), .same_as = "start"},
    {"status", "no value, or the absolute path of a new file", .set = set_status,
     .same_as = "start"},
    {"unfoldall", "no value", WORDS(unfold_all, unfold.mode), .same_as = "unfold"},
    {"unfoldsimple", "no value", WORDS(unfold_simple, unfold.mode), .same_as = "unfold"},
    {"msig", "no value", WORDS(java_names, names)},
    {"dottedclass", "no value", WORDS(java_names, names)},
    {"cleanclass", "no value", WORDS(java_names, names)},
    {"sourcepos", "on, off", WORDS(on_off, unfold.positions)},
    {"suffixes", "on, off", WORDS(on_off, unfold.suffixes)},
};
#define OPTION_COUNT (sizeof(table) / sizeof(*table))

/* The row by which two keys that mean the same thing are recognized. */
static size_t family(size_t row)
{
    const char *key = table[row].same_as;
    for (size_t i = 0; key && i < OPTION_COUNT; i++) {
        if (strcmp(table[i].key, key) == 0) {
            return i;
        }
    }
    return row;
}

static bool set(const struct option *row, struct options *options, const char *value)
{
    int found = 0;
    if (row->set) {
        return row->set(options, value);
    }
    if (!find_word(row->words, value, &found)) {
        return false;
    }
    char *field = (char *)options + row->field;
    if (row->width == sizeof(bool)) {
        *(bool *)field = found != 0;
    } else {
        memcpy(field, &found, sizeof(found));
    }
    return true;
}

/* Bytes of the valid UTF-8 character at p, 0 when there is none. The string ends with a NUL. */
static size_t utf8_length(const unsigned char *p)
{
    size_t n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xf0 && p[1] < 0x90);
    bool none = (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf4 && p[1] >= 0x90);
    return overlong || none ? 0 : n;
}

/* 0, or -EINVAL with a message when the string holds control characters or is no UTF-8. */
static int check_characters(const char *what, const char *text, char error[OPTIONS_ERROR_MAX])
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t n; *p; p += n) {
        size_t at = (size_t)(p - (const unsigned char *)text);
        n = utf8_length(p);
        if (n == 0) {
            return FAIL(error, "%s: byte 0x%02x at position %zu is not valid UTF-8", what, *p, at);
        }
        if (*p < 0x20 || *p == 0x7f) {
            return FAIL(error, "%s: control character 0x%02x at position %zu (%s)", what, *p, at,
                        *p == '\n' ? "a newline" : "none is allowed");
        }
    }
    return 0;
}

int options_check_path(const char *what, const char *path, char error[OPTIONS_ERROR_MAX])
{
    if (strlen(path) >= PATH_MAX - ROOM_FOR_NAMES) {
        return FAIL(error, "%s: the path of %zu bytes is longer than %d", what, strlen(path),
                    PATH_MAX - ROOM_FOR_NAMES - 1);
    }
    if (check_characters(what, path, error)) {
        return -EINVAL;
    }
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0')) {
            return FAIL(error, "%s: '..' is not allowed in the path '%.200s'", what, path);
        }
    }
    return 0;
}

/* Appends to a message, as far as there is room. */
static void add(char error[OPTIONS_ERROR_MAX], const char *text)
{
    size_t length = strlen(error);
    snprintf(error + length, OPTIONS_ERROR_MAX - length, "%s", text);
}

static int unknown_option(const char *key, char error[OPTIONS_ERROR_MAX])
{
    (void)FAIL(error, "unknown option '%.40s'; allowed are", key);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        add(error, i ? ", " : " ");
        add(error, table[i].key);
    }
    add(error, " (a value cannot contain a comma)");
    return -EINVAL;
}

/* Applies one "key=value" or "key"; `given` holds a mark for each family seen. */
static int apply(char *pair, struct options *options, const char *given[OPTION_COUNT],
                 char error[OPTIONS_ERROR_MAX])
{
    if (*pair == '\0') {
        return FAIL(error, "an empty option: two commas in a row, or one at the end");
    }
    char *value = strchr(pair, '=');
    if (value) {
        *value++ = '\0';
    }
    size_t row = 0;
    while (row < OPTION_COUNT && strcmp(table[row].key, pair) != 0) {
        row++;
    }
    if (row == OPTION_COUNT) {
        return unknown_option(pair, error);
    }
    const char **mark = &given[family(row)];
    if (*mark) {
        return strcmp(*mark, table[row].key) == 0
                   ? FAIL(error, "option '%s' is given twice", *mark)
                   : FAIL(error, "options '%s' and '%s' contradict each other", *mark,
                          table[row].key);
    }
    *mark = table[row].key;
    if ((!value && table[row].needs_value) || !set(&table[row], options, value ? value : "on")) {
        if (!value) {
            return FAIL(error, "option '%s' needs a value: %s", pair, table[row].allowed);
        }
        return FAIL(error, "wrong value '%.100s' for option '%s'; allowed: %s", value, pair,
                    table[row].allowed);
    }
    return 0;
}

static bool is_given(const char *given[OPTION_COUNT], const char *key)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (given[i] && strcmp(given[i], key) == 0) {
            return true;
        }
    }
    return false;
}

/* What one row cannot see alone. */
static int check_together(const struct options *options, const char *given[OPTION_COUNT],
                          char error[OPTIONS_ERROR_MAX])
{
    for (size_t i = 0; options->command != COMMAND_START && i < OPTION_COUNT; i++) {
        bool stops = options->command == COMMAND_STOP;
        bool fits = strcmp(table[i].key, "start") == 0 || strcmp(table[i].key, "verbose") == 0 ||
                    (stops && strcmp(table[i].key, "lease") == 0);
        if (given[i] && !fits) {
            return FAIL(error, "option '%s' has no meaning with '%s'; allowed: verbose%s", given[i],
                        stops ? "stop" : "status", stops ? ", lease" : "");
        }
    }
    if (is_given(given, "keep") && !options->segment) {
        return FAIL(error, "option 'keep' needs 'segment'");
    }
    if (options->segment && options->max_bytes) {
        return FAIL(error, "options 'segment' and 'max' contradict each other");
    }
    if (options->segment && options->samply) {
        return FAIL(error, "options 'segment' and 'samply' contradict each other");
    }
    if (options->threads && !(options->modes & MODE_JITDUMP)) {
        return FAIL(error, "option 'threads' needs mode=jitdump: the journal stands beside a dump");
    }
#ifndef __x86_64__
    if (options->tsc) {
        return FAIL(error, "clock=tsc works on x86-64 only; allowed here: monotonic");
    }
#endif
    if (options->status_path[0] &&
        options_check_path("option 'status'", options->status_path, error)) {
        return -EINVAL;
    }
    if (options->lease[0] && options_check_path("option 'lease'", options->lease, error)) {
        return -EINVAL;
    }
    if (options->dir[0] && options_check_path("option 'dir'", options->dir, error)) {
        return -EINVAL;
    }
    return 0;
}

int options_parse(const char *text, struct options *options, char error[OPTIONS_ERROR_MAX])
{
    const char *arch_timestamp = getenv("JITDUMP_USE_ARCH_TIMESTAMP");
    *options = (struct options){
        .modes = MODE_JITDUMP,
        .lines = true,
        .code = true,
        .verbose = MESSAGE_WARNING,
        .reserve = DISK_ROOM_DEFAULT,
        .tsc = arch_timestamp && strcmp(arch_timestamp, "1") == 0,
    };
    error[0] = '\0';
    if (!text || !*text) {
        return 0;
    }
    size_t length = strnlen(text, MAX_TEXT + 1);
    if (length > MAX_TEXT) {
        return FAIL(error, "the options are longer than %zu bytes", MAX_TEXT);
    }
    if (check_characters("the options", text, error)) {
        return -EINVAL;
    }
    char *copy = strdup(text);
    if (!copy) {
        return FAIL(error, "no memory for the options");
    }
    const char *given[OPTION_COUNT] = {NULL};
    int result = 0;
    for (char *pair = copy, *next = NULL; pair && result == 0; pair = next) {
        next = strchr(pair, ',');
        if (next) {
            *next++ = '\0';
        }
        result = apply(pair, options, given, error);
    }
    free(copy);
    if (options->command != COMMAND_START && !is_given(given, "verbose")) {
        options->verbose = -1;
    }
    return result ? result : check_together(options, given, error);
}
