#include "inject/message.h"
#include "inject/verb.h"

#include <stdio.h>
#include <string.h>

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage;
} verbs[] = {
    /* name, function, usage */
    {0},
};

static void usage(FILE *out)
{
    fputs("usage: jdtool VERB ...\n", out);
    for (const struct verb *verb = verbs; verb->name; verb++) {
        fprintf(out, "  jdtool %s %s\n", verb->name, verb->usage);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return STATUS_DONE;
    }
    for (const struct verb *verb = verbs; verb->name; verb++) {
        if (strcmp(verb->name, argv[1]) == 0) {
            return verb->run(argc - 2, argv + 2);
        }
    }
    error_message("unknown verb '%s'; see jdtool --help", argv[1]);
    return STATUS_USAGE;
}
