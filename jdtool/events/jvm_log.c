#include "jdtool/events/jvm_log.h"

#include <stdlib.h>
#include <string.h>

/* "[  text ]" at *at, without what pads it; *at goes behind it. NULL: it is not there. */
static char *bracketed(char **at)
{
    char *end = **at == '[' ? strchr(*at, ']') : NULL;
    if (!end) {
        return NULL;
    }
    char *text = *at + 1 + strspn(*at + 1, " ");
    *at = end + 1;
    while (end > text && end[-1] == ' ') {
        end--;
    }
    *end = '\0';
    return text;
}

/* The number behind a word of the line, in ns. False: the word is not there. */
static bool number_behind(const char *line, const char *word, uint64_t *number)
{
    const char *at = strstr(line, word);
    char *end = NULL;
    *number = at ? strtoull(at + strlen(word), &end, 10) : 0;
    return at && end > at + strlen(word) && strncmp(end, " ns", 3) == 0;
}

static void last_for(struct resolved_mark *mark, uint64_t until, uint64_t duration)
{
    mark->until = until;
    mark->from = duration < until ? until - duration : 0;
}

/*
 * Safepoint "G1CollectForAllocation", Time since last: 1 ns, Reaching safepoint: 2 ns, …, Total: 9
 * ns (JDK 13 and later: SafepointTracing::end). It is written when threads go on.
 */
static bool read_safepoint(char *text, uint64_t time, struct resolved_mark *mark)
{
    static const char head[] = "Safepoint \"";
    uint64_t total;
    char *name = text + sizeof head - 1;
    char *end = strncmp(text, head, sizeof head - 1) == 0 ? strchr(name, '"') : NULL;
    if (!end || !number_behind(end, "Reaching safepoint: ", &mark->number) ||
        !number_behind(end, "Total: ", &total)) {
        return false;
    }
    *end = '\0';
    mark->kind = MARK_SAFEPOINT;
    mark->text = name;
    last_for(mark, time, total);
    return true;
}

/* GC(3) Pause Young (Normal) (G1 Evacuation Pause) 23M->4M(96M) 3.456ms. Written at the end. */
static bool read_collection(const char *text, uint64_t time, struct resolved_mark *mark)
{
    static const char pause[] = " Pause ";
    const char *at = strncmp(text, "GC(", 3) == 0 ? strstr(text, pause) : NULL;
    const char *last = at ? strrchr(at, ' ') : NULL;
    char *end = NULL;
    double took = last ? strtod(last + 1, &end) : 0;
    if (!last || end == last + 1 || strcmp(end, "ms") != 0 || !(took >= 0 && took < 1e9)) {
        return false;
    }
    mark->kind = MARK_GC;
    mark->number = strncmp(at + sizeof pause - 1, "Full", 4) == 0;
    last_for(mark, time, (uint64_t)(took * 1e6));
    return true;
}

bool jvm_log_line(char *line, struct resolved_mark *mark, uint32_t *tid)
{
    char *at = line;
    char *end;
    const char *stamp = bracketed(&at);
    const char *thread = stamp ? bracketed(&at) : NULL;
    const char *tags = thread ? bracketed(&at) : NULL;
    *mark = (struct resolved_mark){0};
    if (!tags) {
        return false;
    }
    uint64_t time = strtoull(stamp, &end, 10);
    if (end == stamp || strcmp(end, "ns") != 0) {
        return false;
    }
    *tid = (uint32_t)strtoul(thread, NULL, 10);
    at += strspn(at, " ");
    at[strcspn(at, "\r\n")] = '\0';
    for (char *c = at; *c; c++) {
        if ((unsigned char)*c < ' ') {
            *c = '?';
        }
    }
    return strcmp(tags, "safepoint") == 0 ? read_safepoint(at, time, mark)
           : strcmp(tags, "gc") == 0      ? read_collection(at, time, mark)
                                          : false;
}

int jvm_log_read(FILE *file,
                 int (*take)(void *context, uint32_t tid, const struct resolved_mark *mark),
                 void *context)
{
    char line[JVM_LOG_LINE_MAX];
    bool begins = true;
    int err = 0;
    while (!err && fgets(line, sizeof line, file)) {
        struct resolved_mark mark;
        uint32_t tid;
        bool ends = strchr(line, '\n') != NULL;
        if (begins && ends && jvm_log_line(line, &mark, &tid)) {
            err = take(context, tid, &mark);
        }
        begins = ends;
    }
    return err;
}
