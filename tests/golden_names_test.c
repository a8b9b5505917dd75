/* names=source gives the names that real compilers gave. */
#include "test.h"

#include "agent/methods/method_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE, CLASS, METHOD, DESCRIPTOR, FLAGS, EXPECTED, FIELDS };

/* Cuts a line into its fields. False: it is none. */
static bool fields_of(char *line, char *fields[FIELDS])
{
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '#') {
        return false;
    }
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = strsep(&line, "\t");
        assert_non_null(fields[i]);
    }
    return true;
}

TEST(every_name)
{
    const struct method_cache_options options = {.names = NAMES_SOURCE};
    FILE *file = fopen(GOLDEN_NAMES, "re");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0;
    unsigned names = 0;
    unsigned wrong = 0;
    while (getline(&line, &room, file) > 0) {
        char *fields[FIELDS];
        if (!fields_of(line, fields)) {
            continue;
        }
        char name[SYMBOL_MAX];
        const struct fetched_method fetched = {
            .name = fields[METHOD],
            .descriptor = fields[DESCRIPTOR],
            .is_private_static = strcmp(fields[FLAGS], "private static") == 0,
        };
        method_symbol(name, &options, fields[CLASS], fields[SOURCE], &fetched);
        names++;
        if (strcmp(name, fields[EXPECTED]) != 0) {
            wrong++;
            print_error("%s.%s: %s instead of %s\n", fields[CLASS], fields[METHOD], name,
                        fields[EXPECTED]);
        }
    }
    free(line);
    fclose(file);
    assert_true(names > 400);
    assert_int_equal(wrong, 0);
}

TEST_MAIN(NULL, NULL)
