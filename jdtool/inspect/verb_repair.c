/* jdtool repair: a sound dump made of a torn, broken or mixed-up one. */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/inspect/repair.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A dump in pieces has thousands of faults of one kind; what is behind these is counted. */
#define MAX_LINES 100

struct report {
    const char *path;
    uint64_t lines;
};

static void print_line(void *context, uint64_t offset, const char *what)
{
    struct report *report = context;
    if (report->lines++ < MAX_LINES) {
        printf("%s: offset %#" PRIx64 ": %s\n", report->path, offset, what);
    }
}

/* 0, or a negative errno after a message: OUT must be a new or a regular file, and another one than
 * FILE. */
static int check_output(const char *in, const char *out)
{
    struct stat in_status;
    struct stat out_status;
    int error = output_path_check(out);
    if (error) {
        return error;
    }
    if (stat(in, &in_status) == 0 && stat(out, &out_status) == 0 &&
        in_status.st_dev == out_status.st_dev && in_status.st_ino == out_status.st_ino) {
        error_message("failed to write %s: it is the input", out);
        return -EINVAL;
    }
    return 0;
}

/* An exit_status. The dump appears under its name when it is complete. */
static int repair_file(const char *in, const char *out)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", out) >= (int)sizeof(temporary)) {
        error_message("failed to write %s: %s", out, strerror(ENAMETOOLONG));
        return STATUS_FAILED;
    }
    struct jitdump_reader *reader;
    if (check_output(in, out) < 0 || jitdump_reader_open(in, &reader) < 0) {
        return STATUS_FAILED;
    }
    int fd = mkstemp(temporary); /* 0600 */
    if (fd < 0) {
        error_message("failed to write %s: %s", out, strerror(errno));
        jitdump_reader_close(reader);
        return STATUS_FAILED;
    }
    struct report report = {.path = in};
    struct repair_result result;
    int error = repair_dump(reader, fd, print_line, &report, &result);
    jitdump_reader_close(reader);
    if (!error && (fsync(fd) < 0 || rename(temporary, out) < 0)) {
        error = -errno;
    }
    close(fd);
    if (error) {
        unlink(temporary);
        error_message("failed to repair %s as %s: %s", in, out, strerror(-error));
        return STATUS_FAILED;
    }
    if (report.lines > MAX_LINES) {
        printf("%s: %" PRIu64 " more lines\n", in, report.lines - MAX_LINES);
    }
    printf("%s: kept %" PRIu64 " LOADs and %" PRIu64 " MOVEs; left out %" PRIu64
           " LOADs and %" PRIu64 " bytes that are no record\n",
           in, result.loads, result.moves, result.dropped_loads, result.dropped_bytes);
    return finish_output();
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {{OPTION("output", 'o', OPTION_KEEPS)}, OPTION_END};
    const char *out = NULL;
    int status = verb_options(verb, argc, argv, options, &out);
    if (status) {
        return status;
    }
    if (!out) {
        return wrong_usage(verb, "-o OUT is needed");
    }
    if (argc - optind != 1) {
        return wrong_usage(verb, "one FILE is needed");
    }
    return repair_file(argv[optind], out);
}

const struct verb verb_repair = {
    .name = "repair",
    .run = run,
    .confined = true,
    .usage = "FILE -o OUT",
    .help =
        "Makes a sound jitdump of a torn or broken one, or of one that two processes wrote into:\n"
        "keeps every method whose records are sound, behind broken bytes too, and says what is\n"
        "left out and why. OUT passes jdtool verify. perf wants it to be named jit-PID.dump.\n"
        "  -o, --output OUT   the file to write; an older one is replaced\n",
};
