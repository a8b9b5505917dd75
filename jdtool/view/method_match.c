#include "jdtool/view/method_match.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COMPARED_MAX 64 /* letters of a name that count for how near it is */

/* As a table wrote it that had no room for all of it (cell_fit_name, cell_put):
 * "j.util.Arrays.sort(…)" is "java.util.Arrays.sort(int[])". */
static bool is_short_for(const char *wanted, const char *name)
{
    for (; wanted[0] >= 'a' && wanted[0] <= 'z' && wanted[1] == '.'; wanted += 2) {
        size_t part = strcspn(name, ".(");
        if (name[0] != wanted[0] || name[part] != '.') {
            return false;
        }
        name += part + 1;
    }
    const char *cut = strstr(wanted, "…");
    size_t size = cut ? (size_t)(cut - wanted) : strlen(wanted);
    return strncmp(name, wanted, size) == 0 && (cut || name[size] == '(' || name[size] == '\0');
}

int method_match(const char *name, const char *wanted)
{
    size_t size = strlen(wanted);
    int rank = 0;
    if (strcmp(name, wanted) == 0) {
        return 3;
    }
    for (const char *at = name; (at = strstr(at, wanted)); at++) {
        bool starts = at == name || at[-1] == '.';
        rank = starts && (at[size] == '(' || at[size] == '\0') ? 2 : rank > 1 ? rank : 1;
    }
    if (rank == 0 && *wanted && is_short_for(wanted, name)) {
        rank = strstr(wanted, "…") && !strchr(wanted, '(') ? 1 : 2;
    }
    return rank;
}

uint32_t method_match_all(const struct profile *profile, const char *wanted, uint32_t **functions)
{
    uint32_t count = 0;
    *functions = calloc((size_t)profile->function_count + 1, sizeof **functions);
    for (int rank = 3; *functions && rank > 0 && count == 0; rank--) {
        for (uint32_t i = 0; i < profile->function_count; i++) {
            if (method_match(profile->functions[i].name, wanted) == rank) {
                (*functions)[count++] = i;
            }
        }
    }
    return count;
}

/* ---- The nearest ---- */

/* Class and method, "Cls.m" of "pkg.Cls.m(int)", or the method alone. Returns its size. */
static size_t last_parts(const char *name, int parts, const char **start)
{
    size_t size = strcspn(name, "(");
    size_t at = size;
    while (at > 0 && (name[at - 1] != '.' || --parts > 0)) {
        at--;
    }
    *start = name + at;
    return size - at < COMPARED_MAX ? size - at : COMPARED_MAX;
}

/* Letters to insert, remove or replace (Levenshtein), upper and lower case alike. */
static uint32_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    uint32_t row[COMPARED_MAX + 1];
    for (size_t k = 0; k <= b_size; k++) {
        row[k] = (uint32_t)k;
    }
    for (size_t i = 0; i < a_size; i++) {
        uint32_t corner = row[0]++;
        for (size_t k = 0; k < b_size; k++) {
            bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k]);
            uint32_t replaced = corner + !same;
            uint32_t one_more = (row[k] < row[k + 1] ? row[k] : row[k + 1]) + 1;
            corner = row[k + 1];
            row[k + 1] = replaced < one_more ? replaced : one_more;
        }
    }
    return row[b_size];
}

static uint32_t how_far(const char *name, const char *wanted)
{
    const char *tail, *wanted_tail;
    int parts = memchr(wanted, '.', strcspn(wanted, "(")) ? 2 : 1;
    size_t wanted_size = last_parts(wanted, parts, &wanted_tail);
    size_t size = last_parts(name, parts, &tail);
    return distance(tail, size, wanted_tail, wanted_size);
}

uint32_t method_match_nearest(const struct profile *profile, const char *wanted, uint32_t *nearest,
                              uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->function_count; i++) {
        const char *name = profile->functions[i].name;
        uint32_t far = how_far(name, wanted);
        uint32_t at = count;
        bool is_known = false;
        for (uint32_t k = 0; k < count && !is_known; k++) {
            is_known = strcmp(profile->functions[nearest[k]].name, name) == 0;
        }
        while (at > 0 && how_far(profile->functions[nearest[at - 1]].name, wanted) > far) {
            at--;
        }
        if (is_known || at == room) {
            continue;
        }
        count += count < room;
        memmove(&nearest[at + 1], &nearest[at], (count - 1 - at) * sizeof *nearest);
        nearest[at] = i;
    }
    return count;
}
