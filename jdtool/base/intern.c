#include "jdtool/base/intern.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/text.h"

#include <stdbool.h>
#include <stddef.h>

#define FOR_GOOD UINT32_MAX

struct intern_string {
    uint32_t hash;
    uint32_t holders; /* FOR_GOOD: it is never released */
    uint32_t number;  /* how many there were before it */
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

/* NULL: no memory. */
static struct intern_string *find_or_add(struct intern *strings, const char *text)
{
    if (strings->count * 2 >= strings->room && !grow(strings)) {
        return NULL;
    }
    size_t size = strlen(text);
    uint32_t hash = hash_map_tag(hash_bytes(text, size));
    struct intern_string **slot = find(strings, hash, text);
    if (!*slot) {
        *slot = malloc(sizeof(struct intern_string) + size + 1);
        if (!*slot) {
            return NULL;
        }
        (*slot)->hash = hash;
        (*slot)->holders = 0;
        (*slot)->number = strings->count++;
        memcpy((*slot)->text, text, size + 1);
    }
    return *slot;
}

const char *intern(struct intern *strings, const char *text)
{
    struct intern_string *string = find_or_add(strings, text);
    if (!string) {
        return NULL;
    }
    string->holders = FOR_GOOD;
    return string->text;
}

const char *intern_utf8(struct intern *strings, const char *text)
{
    if (text_is_utf8(text)) {
        return intern(strings, text);
    }
    char *mended = text_mended(text);
    const char *kept = mended ? intern(strings, mended) : NULL;
    free(mended);
    return kept;
}

const char *intern_hold(struct intern *strings, const char *text)
{
    struct intern_string *string = find_or_add(strings, text);
    if (!string) {
        return NULL;
    }
    string->holders += string->holders != FOR_GOOD;
    return string->text;
}

/* Frees a slot; what stands behind it because of it moves up, so that no search ends too early. */
static void take_out(struct intern *strings, uint32_t slot)
{
    uint32_t mask = strings->room - 1;
    strings->slots[slot] = NULL;
    strings->count--;
    for (uint32_t next = (slot + 1) & mask; strings->slots[next]; next = (next + 1) & mask) {
        struct intern_string *string = strings->slots[next];
        uint32_t home = string->hash & mask;
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            strings->slots[slot] = string;
            strings->slots[next] = NULL;
            slot = next;
        }
    }
}

static struct intern_string *string_of(const char *text)
{
    return (struct intern_string *)(text - offsetof(struct intern_string, text));
}

void intern_release(struct intern *strings, const char *text)
{
    if (!text) {
        return;
    }
    struct intern_string *string = string_of(text);
    if (string->holders == FOR_GOOD || --string->holders > 0) {
        return;
    }
    uint32_t mask = strings->room - 1;
    uint32_t slot = string->hash & mask;
    while (strings->slots[slot] != string) {
        slot = (slot + 1) & mask;
    }
    take_out(strings, slot);
    free(string);
}

void intern_free(struct intern *strings)
{
    for (uint32_t i = 0; i < strings->room; i++) {
        free(strings->slots[i]);
    }
    free(strings->slots);
    *strings = (struct intern){0};
}

/* ---- By number ---- */

uint32_t string_table_add(struct string_table *table, const char *text)
{
    const char *kept = intern_utf8(&table->strings, text ? text : "");
    uint32_t number = kept ? string_of(kept)->number : 0;
    if (kept && number < table->count) {
        return number;
    }
    if (!kept || number > table->count || ARRAY_RESERVE(table->list, number, table->room)) {
        table->error = -ENOMEM;
        return 0;
    }
    table->list[table->count++] = kept;
    return number;
}

void string_table_free(struct string_table *table)
{
    free(table->list);
    intern_free(&table->strings);
    *table = (struct string_table){0};
}
