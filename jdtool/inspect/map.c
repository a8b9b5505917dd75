/* jdtool map: the perf map of any moment. */
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/jitdump/code_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_entry(void *context, uint64_t address, uint64_t size,
                        const struct code_stay *stay)
{
    const struct code_index *index = context;
    printf("%" PRIx64 " %" PRIx64 " ", address, size);
    text_print(stdout, code_index_blob(index, stay->blob)->name);
    putchar('\n');
}

/* Nanoseconds, or seconds with a point as perf script prints them. 0 or -EINVAL. */
static int parse_time(const char *text, uint64_t *time)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9') {
        return -EINVAL;
    }
    *time = strtoull(text, &end, 10);
    if (errno || (*end && *end != '.')) {
        return -EINVAL;
    }
    if (*end == 0) {
        return 0;
    }
    uint64_t nanoseconds = 0;
    uint64_t unit = UINT64_C(100000000);
    for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10) {
        nanoseconds += (uint64_t)(*end - '0') * unit;
    }
    if (*end || *time > (UINT64_MAX - nanoseconds) / UINT64_C(1000000000)) {
        return -EINVAL;
    }
    *time = *time * UINT64_C(1000000000) + nanoseconds;
    return 0;
}

static int take_time(const struct verb *verb, void *time, const char *value)
{
    return parse_time(value, time) < 0 ? wrong_usage(verb, "'%s' is no time", value) : STATUS_DONE;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {OPTION_TAKE("at", 'a', take_time), OPTION_END};
    uint64_t time = UINT64_MAX;
    int status = verb_options(verb, argc, argv, options, &time);
    if (status) {
        return status;
    }
    struct code_index *index;
    if (code_index_open(argv[optind], &index) < 0) {
        return STATUS_FAILED;
    }
    if (code_index_warning(index)) {
        warning_message("%s: %s", argv[optind], code_index_warning(index));
    }
    int err = code_index_map(index, time, print_entry, index);
    failed_to(err, "map %s", argv[optind]);
    code_index_close(index);
    return err ? STATUS_FAILED : finish_output();
}

const struct verb verb_map = {
    .name = "map",
    .words = VERB_HAS_ONE_FILE,
    .run = run,
    .confined = true,
    .usage = "[--at NS] FILE",
    .help = "Prints the perf map (START SIZE NAME, hexadecimal) of what a jitdump had in memory at "
            "one\n"
            "moment: entries never overlap, and where code was overwritten the later one counts.\n"
            "  -a, --at NS   the moment, in nanoseconds of the dump's clock, or in seconds with a "
            "point\n"
            "                as perf script prints them; without it, the end of the dump\n",
};
