#include "jdtool/base/descriptor.h"
#include "jdtool/record/recorder.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/packed_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/runtime_dir.h"
#include "jdtool/live/verbs.h"
#include "jdtool/objects/kallsyms.h"
#include "jdtool/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *quoted_command(char *const *words)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (char *const *word = words; out && *word; word++) {
        fputs(word > words ? " '" : "'", out);
        for (const char *at = *word; *at; at++) {
            if (*at == '\'') {
                fputs("'\\''", out);
            } else {
                putc(*at, out);
            }
        }
        putc('\'', out);
    }
    if (out) {
        fclose(out);
    }
    return text;
}

int recorder_open_pipe(struct recorder *recorder)
{
    int ends[2];
    if (!recorder->piped) {
        return STATUS_DONE;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        failed_to(-errno, "make a pipe");
        return STATUS_FAILED;
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20); /* as much as anybody may have */
    recorder->naming_in = ends[0];
    recorder->pipe_end = ends[1];
    return STATUS_DONE;
}

static int start_naming(struct recorder *recorder)
{
    struct words dumps = {0};
    int *keep = calloc(recorder->jvm_count + 1, sizeof *keep);
    for (uint32_t i = 0; i < recorder->jvm_count && keep && !dumps.failed; i++) {
        const struct fetch *fetch = &recorder->jvms[i].joining.fetch;
        if (fetch->dump >= 0) {
            char path[PATH_MAX];
            snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fetch->directory, fetch->name);
            keep[dumps.count] = fetch->directory;
            words_add(&dumps, "%s", path);
        }
    }
    struct naming_options options = {
        .profile = recorder->profile.path,
        .directory = recorder->profile.directory,
        .in = recorder->naming_in,
        .dumps = (const char *const *)dumps.list,
        .dump_count = dumps.count,
        .keep = keep,
        .keep_count = dumps.count,
        .more = recorder->options->inject_options,
    };
    int err = keep && !dumps.failed ? naming_start(&recorder->naming, &options) : -ENOMEM;
    words_free(&dumps);
    free(keep);
    return err ? STATUS_FAILED : STATUS_DONE;
}

int recorder_start_naming(struct recorder *recorder)
{
    int in = recorder->naming_in;
    if (in < 0) {
        return STATUS_DONE;
    }
    int status =
        recorder->start_reader ? recorder->start_reader(recorder, in) : start_naming(recorder);
    close(in);
    recorder->naming_in = -1;
    return status;
}

static int name_from_file(struct recorder *recorder)
{
    size_t dump_count;
    return naming_of_file(&recorder->naming,
                          (struct naming_options){.profile = recorder->profile.path,
                                                  .directory = recorder->profile.directory,
                                                  .more = recorder->options->inject_options},
                          &recorder->waiting, &recorder->command.child, &dump_count);
}

static void tell_missing_dumps(const struct recorder *recorder)
{
    struct words dumps;
    if (!recorder->options->command[0] ||
        dump_list_read(&dumps, recorder->profile.at, recorder->profile.path) != 0) {
        return;
    }
    if (dumps.count == 0) {
        info_message("no dump in %s: no JVM loaded the agent, so generated code has no names",
                     recorder->profile.path);
        info_message(
            "  if a JVM ran: for a daemon that already runs (gradle), or one that lives on "
            "its own, use jdperf record PID; in a script that sets JAVA_TOOL_OPTIONS, keep "
            "it (JAVA_TOOL_OPTIONS=\"$JAVA_TOOL_OPTIONS …\")");
    }
    words_free(&dumps);
}

static void tell_results(const struct record_options *options)
{
    static const char by_file[] = "--export=";
    for (char **word = options->inject_options; *word; word++) {
        const char *file = strncmp(*word, by_file, sizeof by_file - 1) == 0
                               ? strchr(*word + sizeof by_file, '=')
                               : NULL;
        if (file) {
            info_message("wrote %s", file + 1);
        }
    }
    if (strcmp(options->out, PROFILE_DEFAULT_DIR) == 0) {
        info_message("look at it with: jdperf report");
        return;
    }
    char *quoted = quoted_command((char *const[]){(char *)options->out, NULL});
    bool plain = strspn(options->out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_./-+=@") == strlen(options->out);
    info_message("look at it with: jdperf report %s", plain || !quoted ? options->out : quoted);
    free(quoted);
}

/* ---- Packing ---- */

/* How often what the JVMs' agents write is looked at, in ms: less often each time. */
enum { PACK_LEAST = 200, PACK_MOST = 5000 };

static bool is_packing(const struct recorder *recorder, const char *path)
{
    for (uint32_t i = 0; i < recorder->packing_count; i++) {
        if (strcmp(packing_path(recorder->packing[i]), path) == 0) {
            return true;
        }
    }
    return false;
}

static void find_to_pack(struct recorder *recorder)
{
    char pattern[sizeof recorder->profile.at + 64];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/{,jvm-*/}jit-*.{dump,methods,threads}",
             recorder->profile.at);
    (void)glob(pattern, GLOB_BRACE, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat status;
        if (stat(found.gl_pathv[i], &status) == 0 && status.st_size >= (off_t)PACKED_FILE_MIN &&
            !is_packing(recorder, found.gl_pathv[i]) &&
            !ARRAY_RESERVE(recorder->packing, recorder->packing_count, recorder->packing_room)) {
            struct packing *packing = packing_new(found.gl_pathv[i]);
            recorder->packing[recorder->packing_count] = packing;
            recorder->packing_count += packing != NULL;
        }
    }
    globfree(&found);
}

int64_t recorder_pack(struct recorder *recorder)
{
    bool is_more = false;
    find_to_pack(recorder);
    for (uint32_t i = 0; i < recorder->packing_count && !is_more; i++) {
        is_more = packing_go_on(recorder->packing[i]);
    }
    int *every = &recorder->pack_every;
    if (!is_more) {
        *every = *every == 0 ? PACK_LEAST : *every * 2 < PACK_MOST ? *every * 2 : PACK_MOST;
    }
    return is_more ? 1 : *every;
}

/* Those that are packed as a whole; a list of recorder->packing_count for put_packed. */
static struct output_file **end_packing(struct recorder *recorder)
{
    find_to_pack(recorder);
    struct output_file **files = calloc(recorder->packing_count + 1, sizeof(struct output_file *));
    for (uint32_t i = 0; i < recorder->packing_count && files; i++) {
        files[i] = packing_end(recorder->packing[i]);
        recorder->packing[i] = NULL;
    }
    return files;
}

static void put_packed(const struct recorder *recorder, struct output_file **files)
{
    for (uint32_t i = 0; i < recorder->packing_count && files; i++) {
        if (files[i]) {
            (void)output_file_finish(files[i]);
        }
    }
    free((void *)files);
}

/* Names of the kernel that is here, for the next recording: to make them the kernel takes longer
 * than all the rest of a short one. What another version has left is replaced. Where addresses are
 * hidden, as in containers, there are none. */
static void keep_kernel_names(void)
{
    char path[PATH_MAX];
    struct kallsyms names = {0};
    struct output_file *file = NULL;
    if (geteuid() != 0 || !objects_kernel_copy(path) || kallsyms_is_put(path)) {
        return;
    }
    int directory = runtime_dir_open(true);
    if (directory >= 0 && kallsyms_read("/proc/kallsyms", &names) == 0 &&
        output_file_open(path, &file) == 0) {
        kallsyms_put(&names, file);
        (void)output_file_finish(file);
    }
    kallsyms_free(&names);
    descriptor_close(directory);
}

int recorder_name(struct recorder *recorder)
{
    const struct record_options *options = recorder->options;
    char path[PATH_MAX + 16];
    if (recorder->pipe_end >= 0) {
        close(recorder->pipe_end);
        recorder->pipe_end = -1;
    }
    if (options->no_inject) {
        return STATUS_DONE;
    }
    tell_missing_dumps(recorder);
    /* While it is named. */
    struct output_file **packed = recorder->piped ? end_packing(recorder) : NULL;
    int status = recorder->piped ? naming_finish(&recorder->naming, &recorder->waiting,
                                                 &recorder->command.child)
                                 : name_from_file(recorder);
    put_packed(recorder, packed);
    snprintf(path, sizeof path, "%s/src", recorder->profile.path);
    (void)profile_set(recorder->profile.directory, "injector", "jdtool");
    (void)profile_set(recorder->profile.directory, "source_root", path);
    if (recorder->discards && !recorder->piped) {
        if (status == STATUS_DONE) {
            (void)unlinkat(recorder->profile.directory, "perf.data", 0);
        } else {
            info_message("perf.data is kept: jdperf inject %s names it once the cause is fixed",
                         options->out);
        }
    }
    if (recorder->piped) {
        keep_kernel_names();
    }
    if (status == STATUS_DONE || status == STATUS_BAD_PROFILE) {
        tell_results(options);
    }
    return status;
}
