#include "jdtool/watch/finder.h"

#include "jdtool/base/array.h"
#include "jdtool/base/processes.h"
#include "jdtool/live/wait.h"

#include <stdlib.h>

/* A process is looked at again after these, in ms, and then each time after the last. */
static const int64_t looks[] = {500, 1000, 2000, 4000, 8000, 15000, 30000, 60000, 300000};
#define LOOKS (sizeof looks / sizeof *looks)

struct seen {
    pid_t pid;
    uint32_t looked;
    int64_t next;
    bool taken;
};

struct finder {
    struct seen *list; /* by pid, ascending */
    uint32_t count, room;
    struct seen *next_list;
    uint32_t next_count, next_room;
};

struct finder *finder_new(void)
{
    return calloc(1, sizeof(struct finder));
}

void finder_free(struct finder *finder)
{
    if (finder) {
        free(finder->list);
        free(finder->next_list);
        free(finder);
    }
}

static int compare(const void *a, const void *b)
{
    const struct seen *first = a;
    const struct seen *second = b;
    return ORDER(first->pid, second->pid);
}

static bool add_process(void *context, pid_t pid)
{
    struct finder *finder = context;
    if (ARRAY_RESERVE(finder->next_list, finder->next_count, finder->next_room)) {
        return false;
    }
    finder->next_list[finder->next_count++] = (struct seen){.pid = pid};
    return true;
}

/* The processes that there are now, with what is known of them. */
static void list_processes(struct finder *finder)
{
    finder->next_count = 0;
    processes_walk(add_process, finder);
    if (finder->next_count > 0) {
        qsort(finder->next_list, finder->next_count, sizeof *finder->next_list, compare);
    }
    uint32_t k = 0;
    for (uint32_t i = 0; i < finder->next_count; i++) {
        while (k < finder->count && finder->list[k].pid < finder->next_list[i].pid) {
            k++;
        }
        if (k < finder->count && finder->list[k].pid == finder->next_list[i].pid) {
            finder->next_list[i] = finder->list[k];
        }
    }
    struct seen *list = finder->list;
    uint32_t room = finder->room;
    finder->list = finder->next_list;
    finder->room = finder->next_room;
    finder->count = finder->next_count;
    finder->next_list = list;
    finder->next_room = room;
}

void finder_look(struct finder *finder, bool (*take)(void *context, pid_t pid, const char *name),
                 void *context)
{
    static const struct mapped_name libjvm = {.prefix = "libjvm", .suffix = ".so"};
    int64_t now = now_ms();
    list_processes(finder);
    for (uint32_t i = 0; i < finder->count; i++) {
        struct seen *seen = &finder->list[i];
        struct live_process process;
        char text[PATH_MAX];
        if (seen->taken || now < seen->next) {
            continue;
        }
        seen->next = now + looks[seen->looked < LOOKS ? seen->looked : LOOKS - 1];
        seen->looked++;
        if (process_open(seen->pid, &process) != 0) {
            continue;
        }
        if (process_mapped(&process, &libjvm, text)) {
            process_java_name(&process, text, sizeof text);
            seen->taken = take(context, seen->pid, text);
        }
        process_close(&process);
    }
}

void finder_forget(struct finder *finder, pid_t pid)
{
    for (uint32_t i = 0; i < finder->count; i++) {
        if (finder->list[i].pid == pid) {
            finder->list[i] = (struct seen){.pid = pid};
        }
    }
}
