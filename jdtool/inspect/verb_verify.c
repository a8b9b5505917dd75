/* jdtool verify: one line for each broken rule, nothing for a sound dump. */
#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/inspect/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A rule that is broken more often is counted from there on. */
#define LINES_PER_RULE 20

struct findings {
    const char *path;
    uint64_t count[RULE_COUNT];
};

static void print_finding(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    struct findings *findings = context;
    if (++findings->count[rule] <= LINES_PER_RULE) {
        printf("%s: offset %#" PRIx64 ": %s\n", findings->path, offset, what);
    }
}

/* An exit_status. */
static int verify_file(const char *path)
{
    struct jitdump_reader *reader;
    if (jitdump_reader_open(path, &reader) < 0) {
        return STATUS_FAILED;
    }
    struct findings findings = {.path = path};
    int status = STATUS_DONE;
    int error = verify_dump(reader, print_finding, &findings);
    if (error) {
        error_message("failed to verify %s: %s", path, strerror(-error));
        status = STATUS_FAILED;
    }
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        if (findings.count[rule] > 0) {
            status = STATUS_FAILED;
        }
        if (findings.count[rule] > LINES_PER_RULE) {
            printf("%s: %" PRIu64 " more of: %s\n", path, findings.count[rule] - LINES_PER_RULE,
                   verify_rule_text(rule));
        }
    }
    jitdump_reader_close(reader);
    return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    int status = verb_options(verb, argc, argv, NULL, NULL);
    if (status) {
        return status;
    }
    if (optind == argc) {
        return wrong_usage(verb, "a FILE is needed");
    }
    for (int i = optind; i < argc; i++) {
        int one = verify_file(argv[i]);
        status = one ? one : status;
    }
    int output = finish_output();
    return output ? output : status;
}

const struct verb verb_verify = {
    .name = "verify",
    .run = run,
    .confined = true,
    .usage = "FILE...",
    .help =
        "Checks jitdumps against the rules of the specification, of its readers and of the "
        "trailer.\n"
        "Says nothing and exits with 0 when all are kept, else prints a line for each broken rule\n"
        "and exits with 1.\n",
};
