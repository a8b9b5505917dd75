/*
 * Fuzzes everything that jdtool does with a dump. Beside what the sanitizers find: what repair
 * makes must pass verify, a map's entries must not overlap, and rows that are left to trees must
 * come back as they were.
 */
#include "fuzz_directory.h"

#include "jdtool/base/bytes.h"
#include "jdtool/base/verb.h"
#include "jdtool/inspect/convert.h"
#include "jdtool/inspect/repair.h"
#include "jdtool/inspect/verify.h"
#include "jdtool/jitdump/code_index.h"
#include "tests/fuzz/silent.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DUMP, OTHER, REPAIRED, FILES };
static const char *const names[] = {"dump", "other", "repaired"};
static int files[FILES];

static void begin(void)
{
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = make_file(names[i]);
    }
    if (!freopen("/dev/null", "w", stdout)) { /* listings go there */
        abort();
    }
}

/* The descriptor is the caller's. */
static int file_of(unsigned file, const uint8_t *data, size_t size)
{
    int fd = dup(files[file]);
    if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0) {
        abort();
    }
    fill_file(fd, data, size);
    return fd;
}

static void ignore_finding(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    (void)context;
    (void)rule;
    (void)offset;
    (void)what;
}

static void refuse_finding(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    (void)context;
    fprintf(stderr, "repaired, and yet %s at %#llx: %s\n", verify_rule_text(rule),
            (unsigned long long)offset, what);
    abort();
}

static void ignore_line(void *context, uint64_t offset, const char *what)
{
    (void)context;
    (void)offset;
    (void)what;
}

static void repair(struct jitdump_reader *reader)
{
    int fd = file_of(REPAIRED, NULL, 0);
    struct repair_result result;
    uint64_t start = jitdump_reader_offset(reader);
    if (repair_dump(reader, fd, ignore_line, NULL, &result) < 0) {
        fprintf(stderr, "not repaired\n");
        abort();
    }
    jitdump_reader_seek(reader, start);
    struct jitdump_reader *repaired;
    if (jitdump_reader_open_fd(fd, "repaired", &repaired) < 0) {
        abort();
    }
    verify_dump(repaired, refuse_finding, NULL);
    jitdump_reader_close(repaired);
}

static void put_bytes(void *context, const void *bytes, size_t size)
{
    bytes_put(context, bytes, size);
}

/* False: it cannot be converted. */
static bool convert(const uint8_t *data, size_t size, bool to_tree, struct bytes *made)
{
    struct jitdump_reader *reader;
    struct convert_result result;
    if (jitdump_reader_open_fd(file_of(OTHER, data, size), "dump", &reader) < 0) {
        return false;
    }
    int error = convert_dump(reader, "dump", to_tree, NULL, put_bytes, made, &result);
    jitdump_reader_close(reader);
    return error == 0;
}

/* Standard, to trees, and standard again. */
static void convert_there_and_back(const uint8_t *data, size_t size)
{
    struct bytes standard = {0};
    struct bytes trees = {0};
    struct bytes again = {0};
    if (convert(data, size, false, &standard) &&
        (!convert(standard.at, standard.size, true, &trees) ||
         !convert(trees.at, trees.size, false, &again) || again.size != standard.size ||
         memcmp(again.at, standard.at, again.size) != 0)) {
        fprintf(stderr, "rows that were left to trees are others\n");
        abort();
    }
    bytes_free(&standard);
    bytes_free(&trees);
    bytes_free(&again);
}

static void check_entry(void *context, uint64_t address, uint64_t size,
                        const struct code_stay *stay)
{
    uint64_t *end = context;
    if (address < *end || size == 0 || !stay || address + size < address) {
        abort();
    }
    *end = address + size;
}

static void look_up(void)
{
    struct code_index *index;
    if (code_index_open("dump", &index) < 0) {
        return;
    }
    struct code_details details = {0};
    for (uint32_t i = 0; i < code_index_blob_count(index); i++) {
        if (code_index_fetch(index, i, &details) < 0) {
            abort();
        }
        for (uint32_t k = 0; k < details.trailer.node_count; k++) {
            trailer_names_method(code_index_names(index), details.trailer.nodes[k].method);
        }
        trailer_range_at(&details.trailer, (uint32_t)code_index_blob(index, i)->size);
    }
    code_details_free(&details);
    for (uint32_t i = 0; i < code_index_stay_count(index) && i < 8; i++) {
        uint64_t end = 0;
        (void)code_index_map(index, code_index_stay(index, i)->from, check_entry, &end);
    }
    uint64_t end = 0;
    (void)code_index_map(index, UINT64_MAX, check_entry, &end);
    code_index_close(index);
}

static void print(const struct verb *verb, const char *option)
{
    char name[16];
    char flag[16];
    char path[] = "dump";
    snprintf(name, sizeof(name), "%s", verb->name);
    snprintf(flag, sizeof(flag), "%s", option);
    char *argv[] = {name, flag, path, NULL};
    optind = 0; /* glibc: start over */
    verb->run(verb, 3, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = file_of(DUMP, data, size);
    struct jitdump_reader *reader;
    if (jitdump_reader_open("dump", &reader) == 0) {
        uint64_t start = jitdump_reader_offset(reader);
        verify_dump(reader, ignore_finding, NULL);
        jitdump_reader_seek(reader, start);
        repair(reader);
        jitdump_reader_close(reader);
        look_up();
        convert_there_and_back(data, size);
        print(&verb_dump, "--");
        print(&verb_stat, "--json");
    }
    close(fd);
    return 0;
}
