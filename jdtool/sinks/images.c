#include "jdtool/sinks/images.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int no_memory(const struct images_options *options)
{
    error_message("failed to write the images of %s: %s", options->result, strerror(ENOMEM));
    return -ENOMEM;
}

/* The absolute path of the result's directory, "" for the root. 0 or a negative errno. */
static int directory_of(const char *result, char directory[PATH_MAX])
{
    const char *slash = strrchr(result, '/');
    char *given = slash ? strndup(result, (size_t)(slash - result) + 1) : strdup(".");
    int err = given ? 0 : -ENOMEM;
    if (!err && !realpath(given, directory)) {
        err = -errno;
    }
    if (err) {
        error_message("failed to find the directory of %s: %s", result, strerror(-err));
    } else if (strcmp(directory, "/") == 0) {
        directory[0] = '\0';
    }
    free(given);
    return err;
}

/* What tells a dump from the others: "java", or a pid, and a number if there are several. */
static void tell_apart(const struct jvms *jvms, const struct jvm *jvm, char *text, size_t size)
{
    unsigned usable = 0;
    unsigned number = 0; /* of the dumps with this pid */
    bool before = true;
    for (uint32_t i = 0; i < jvms->count; i++) {
        const struct jvm *other = jvms->list[i];
        usable += other->index != NULL;
        number += before && other->process->pid == jvm->process->pid;
        before &= other != jvm;
    }
    if (usable == 1) {
        snprintf(text, size, "java");
    } else if (number == 1) {
        snprintf(text, size, "%u", jvm->process->pid);
    } else {
        snprintf(text, size, "%u-%u", jvm->process->pid, number);
    }
}

/*
 * The path is absolute, for perf report is run anywhere. perf takes files under /tmp/perf- for perf
 * maps, so such a path gets a detour.
 */
static char *image_path(const struct jvms *jvms, const struct jvm *jvm,
                        const struct images_options *options, const char *suffix)
{
    char directory[PATH_MAX];
    char which[32];
    const char *slash = strrchr(options->result, '/');
    const char *name = slash ? slash + 1 : options->result;
    size_t stem = strlen(name);
    char *path = NULL;
    if (directory_of(options->result, directory)) {
        return NULL;
    }
    if (stem > 5 && strcmp(name + stem - 5, ".data") == 0) {
        stem -= 5;
    }
    tell_apart(jvms, jvm, which, sizeof which);
    const char *detour = "";
    const char *rest = directory;
    if (strncmp(directory, "/tmp/perf-", 10) == 0 ||
        (strcmp(directory, "/tmp") == 0 && strncmp(name, "perf-", 5) == 0)) {
        detour = "/tmp/.";
        rest = directory + 4;
    }
    if (asprintf(&path, "%s%s/%.*s-%s%s.so", detour, rest, (int)stem, name, which, suffix) < 0) {
        (void)no_memory(options);
        return NULL;
    }
    return path;
}

static int write_of(const struct jvms *jvms, const struct jvm *jvm,
                    const struct images_options *options, struct image_files *files)
{
    files->code_path = image_path(jvms, jvm, options, "");
    if (!files->code_path) {
        return -EIO;
    }
    int err = code_image_write(jvm, files->code_path, &options->code, &files->code);
    if (err) {
        return err;
    }
    if (frame_table_lay_out(jvm->frames)) {
        return no_memory(options);
    }
    char *frames_path = image_path(jvms, jvm, options, "-frames");
    if (!frames_path) {
        return -EIO;
    }
    if (frame_table_count(jvm->frames) == 0) {
        unlink(frames_path); /* of an earlier result of this name */
        free(frames_path);
        return 0;
    }
    files->frames_path = frames_path;
    return frame_table_write(jvm->frames, (uint16_t)code_index_header(jvm->index)->elf_mach,
                             options->code.source_path, files->frames_path, files->frames_build_id);
}

int images_write(const struct jvms *jvms, const struct images_options *options,
                 struct image_files **out)
{
    struct image_files *files = calloc(jvms->count + (size_t)1, sizeof *files);
    int err = files ? 0 : no_memory(options);
    for (uint32_t i = 0; i < jvms->count && !err; i++) {
        if (jvms->list[i]->index) {
            err = write_of(jvms, jvms->list[i], options, &files[i]);
        }
    }
    *out = files;
    return err;
}

void images_free(struct image_files *files, uint32_t count)
{
    for (uint32_t i = 0; files && i < count; i++) {
        code_image_free(&files[i].code);
        free(files[i].code_path);
        free(files[i].frames_path);
    }
    free(files);
}

void images_remove(const struct image_files *files, uint32_t count)
{
    for (uint32_t i = 0; files && i < count; i++) {
        if (files[i].code_path) {
            unlink(files[i].code_path);
        }
        if (files[i].frames_path) {
            unlink(files[i].frames_path);
        }
    }
}

void images_add_build_ids(const struct image_files *files, uint32_t count,
                          struct perf_writer *writer)
{
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].code_path && files[i].code.count) {
            perf_writer_add_build_id(writer, files[i].code_path, files[i].code.build_id);
        }
        if (files[i].frames_path) {
            perf_writer_add_build_id(writer, files[i].frames_path, files[i].frames_build_id);
        }
    }
}
