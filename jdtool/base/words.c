#include "jdtool/base/words.h"

#include "jdtool/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void words_add(struct words *words, const char *format, const char *text)
{
    const char *mark = strstr(format, "%s");
    char *word = NULL;
    if (array_reserve(&words->list, words->count + 1, &words->room, sizeof *words->list) ||
        (mark ? asprintf(&word, "%.*s%s%s", (int)(mark - format), format, text, mark + 2)
              : asprintf(&word, "%s", format)) < 0) {
        words->failed = true;
        return;
    }
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

void words_free(struct words *words)
{
    for (uint32_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
    free(words->list);
    *words = (struct words){0};
}
