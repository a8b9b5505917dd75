#include "jdtool/profile/string_table.h"

#include "jdtool/base/array.h"
#include "jdtool/base/text.h"

#include <errno.h>

static uint32_t add(struct string_table *table, const char *text)
{
    const char *copy = intern(&table->strings, text);
    if (!copy) {
        table->error = -ENOMEM;
        return 0;
    }
    uint64_t hash = (uintptr_t)copy;
    struct hash_map_cursor cursor = hash_map_start(&table->numbers, hash);
    uint32_t number;
    while ((number = hash_map_next(&table->numbers, &cursor)) != HASH_MAP_NONE) {
        if (table->list[number] == copy) {
            return number;
        }
    }
    if (array_reserve(&table->list, table->count, &table->room, sizeof *table->list) ||
        hash_map_add(&table->numbers, hash, table->count)) {
        table->error = -ENOMEM;
        return 0;
    }
    table->list[table->count] = copy;
    return table->count++;
}

uint32_t string_table_add(struct string_table *table, const char *text)
{
    if (!text || text_is_utf8(text)) {
        return add(table, text ? text : "");
    }
    char *mended = text_mended(text);
    if (!mended) {
        table->error = -ENOMEM;
        return 0;
    }
    uint32_t number = add(table, mended);
    free(mended);
    return number;
}

void string_table_free(struct string_table *table)
{
    free(table->list);
    intern_free(&table->strings);
    hash_map_free(&table->numbers);
    *table = (struct string_table){0};
}
