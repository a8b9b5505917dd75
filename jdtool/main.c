#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

static const struct verb *const verbs[] = {
    &verb_dump,     &verb_verify, &verb_stat,   &verb_map,    &verb_repair,
    &verb_convert,  &verb_inject, &verb_export, &verb_report, &verb_diff,
    &verb_annotate, &verb_view,   &verb_unwind, &verb_live,   NULL,
};

static void usage(FILE *out)
{
    fputs("usage: jdtool VERB ...\n", out);
    for (size_t i = 0; verbs[i]; i++) {
        fprintf(out, "  jdtool %s %s\n", verbs[i]->name, verbs[i]->usage);
    }
    fputs("jdtool VERB --help tells more of a verb.\n"
          "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
          out);
}

struct call {
    const struct verb *verb;
    int argc;
    char **argv;
};

static int call(void *context)
{
    const struct call *call = context;
    return call->verb->run(call->verb, call->argc, call->argv);
}

/* A dump may be another's: root looks at it, too. */
static int run_confined(struct call *it)
{
    struct rights *rights = rights_new();
    if (!rights) {
        failed_to(-ENOMEM, "start %s", it->verb->name);
        return STATUS_FAILED;
    }
    rights_of_words(rights, it->argv + 1);
    if (it->verb->prepare) {
        it->verb->prepare();
    }
    int status = confined_run(&(struct confined_options){.rights = rights,
                                                         .what = "it",
                                                         .cpu_seconds = CONFINED_SECONDS,
                                                         .work = call,
                                                         .context = it});
    rights_free(rights);
    return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0 && !verb->has_verbs; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return verb_help(verb);
        }
    }
    struct call it = {verb, argc, argv};
    return verb->confined ? run_confined(&it) : call(&it);
}

/*
 * glibc has what is large in pages of its own, but only until such a piece is freed: from then on
 * up to 32 MB come from the heap. An array that grows there is copied, and leaves a hole behind.
 */
static void keep_large_apart(void)
{
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 512 * 1024);
#endif
}

int main(int argc, char **argv)
{
    keep_large_apart();
    (void)setvbuf(stderr, NULL, _IOLBF, 0); /* messages are put together of pieces */
    if (argc < 2) {
        usage(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return finish_output();
    }
    for (size_t i = 0; verbs[i]; i++) {
        if (strcmp(verbs[i]->name, argv[1]) == 0) {
            return run(verbs[i], argc - 1, argv + 1);
        }
    }
    error_message("unknown verb '%s'; see jdtool --help", argv[1]);
    return STATUS_USAGE;
}
