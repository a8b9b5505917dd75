#include "jdtool/base/intern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct intern_string {
    uint32_t hash;
    char text[];
};

static struct intern_string **find(const struct intern *strings, uint32_t hash, const char *text)
{
    uint32_t mask = strings->room - 1;
    uint32_t slot = hash & mask;
    while (strings->slots[slot] && (strings->slots[slot]->hash != hash || !text ||
                                    strcmp(strings->slots[slot]->text, text) != 0)) {
        slot = (slot + 1) & mask;
    }
    return &strings->slots[slot];
}

static bool grow(struct intern *strings)
{
    struct intern bigger = {.count = strings->count,
                            .room = strings->room ? strings->room * 2 : 256};
    bigger.slots = calloc(bigger.room, sizeof(struct intern_string *));
    if (!bigger.slots) {
        return false;
    }
    for (uint32_t i = 0; i < strings->room; i++) {
        if (strings->slots[i]) {
            *find(&bigger, strings->slots[i]->hash, NULL) = strings->slots[i];
        }
    }
    free(strings->slots);
    *strings = bigger;
    return true;
}

const char *intern(struct intern *strings, const char *text)
{
    if (strings->count * 2 >= strings->room && !grow(strings)) {
        return NULL;
    }
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = text; *c; c++) {
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    }
    struct intern_string **slot = find(strings, hash, text);
    if (!*slot) {
        size_t size = strlen(text) + 1;
        *slot = malloc(sizeof(struct intern_string) + size);
        if (!*slot) {
            return NULL;
        }
        (*slot)->hash = hash;
        memcpy((*slot)->text, text, size);
        strings->count++;
    }
    return (*slot)->text;
}

void intern_free(struct intern *strings)
{
    for (uint32_t i = 0; i < strings->room; i++) {
        free(strings->slots[i]);
    }
    free(strings->slots);
    *strings = (struct intern){0};
}
