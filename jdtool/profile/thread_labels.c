#include "jdtool/profile/thread_labels.h"

#include "jdtool/base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

int labels_each(const char *labels, int (*take)(void *context, const char *key, const char *value),
                void *context)
{
    char key[THREAD_LABEL_MAX];
    char value[THREAD_LABEL_MAX];
    int err = 0;
    size_t length;
    for (const char *line; labels && !err && (line = text_line(&labels, &length));) {
        const char *equals = memchr(line, '=', length);
        size_t size = equals ? (size_t)(equals - line) : length;
        snprintf(key, sizeof key, "%.*s", (int)size, line);
        snprintf(value, sizeof value, "%.*s", equals ? (int)(length - size - 1) : 0,
                 equals ? equals + 1 : "");
        err = *key ? take(context, key, value) : 0;
    }
    return err;
}

struct search {
    const char *wanted;
    char *value;
};

static int take_value(void *context, const char *key, const char *value)
{
    struct search *search = context;
    if (strcmp(key, search->wanted) != 0) {
        return 0;
    }
    memcpy(search->value, value, strlen(value) + 1);
    return 1;
}

bool labels_value(const char *labels, const char *key, char value[THREAD_LABEL_MAX])
{
    struct search search = {key, value};
    return labels_each(labels, take_value, &search) != 0;
}

static int take_line(void *context, const char *key, const char *value)
{
    const struct search *search = context;
    char line[2 * THREAD_LABEL_MAX];
    snprintf(line, sizeof line, "%s=%s", key, value);
    return strcmp(key, search->wanted) == 0 || fnmatch(search->wanted, line, 0) == 0;
}

bool labels_fit(const char *labels, const char *pattern)
{
    struct search search = {pattern, NULL};
    return labels_each(labels, take_line, &search) != 0;
}
