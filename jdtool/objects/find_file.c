#include "jdtool/objects/find_file.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/processes.h"
#include "jdtool/base/text.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A search while it is under way: the most telling failure is the one that is reported. */
struct search {
    const struct file_places *places;
    const struct object_place *wanted;
    struct found_file *out;
    enum object_state worst;
    bool replaced;             /* the listed build-id is not that of what was mapped */
    bool only_root;            /* what is mapped may not be read by us */
    char what[PATH_MAX + 256]; /* of `worst`, in words */
};

bool elf_file_has_id(const struct elf_file *file, const uint8_t *id, size_t size)
{
    uint8_t its[BUILD_ID_MAX];
    return elf_file_build_id(file, its) == size && memcmp(its, id, size) == 0;
}

/* `where` is wrong in that way. */
static void note(struct search *search, enum object_state state, const char *where, const char *how)
{
    static const int weight[OBJECT_STATES] = {
        [OBJECT_MISSING] = 1, [OBJECT_UNSOUND] = 2, [OBJECT_DENIED] = 3, [OBJECT_REFUSED] = 4};
    if (weight[state] > weight[search->worst]) {
        snprintf(search->what, sizeof search->what, "%s %s", where, how);
        search->worst = state;
    }
}

/* A program of 32 bits may run on a machine of 64. */
static bool fits_machine(unsigned recorded, unsigned file)
{
    return file == recorded || (recorded == EM_X86_64 && file == EM_386) ||
           (recorded == EM_AARCH64 && file == EM_ARM);
}

static bool has_recorded_inode(const struct search *search, const struct elf_file *file)
{
    const struct file_identity *wanted = &search->wanted->file;
    return wanted->inode && file->inode == wanted->inode && major(file->device) == wanted->major &&
           minor(file->device) == wanted->minor;
}

/*
 * Whether it is the file that was mapped. Where no build-id was recorded its inode must do. That
 * tells nothing on an overlay, whose mappings have the inode of the layer below.
 */
static bool is_wanted(struct search *search, const struct elf_file *file, const char *where)
{
    const struct file_identity *wanted = &search->wanted->file;
    uint8_t id[BUILD_ID_MAX];
    char text[BUILD_ID_TEXT];
    char how[160];
    if (!fits_machine(search->places->machine, file->machine)) {
        note(search, OBJECT_UNSOUND, where, "is of another machine");
        return false;
    }
    if (wanted->build_id_size) {
        size_t size = elf_file_build_id(file, id);
        if (build_id_same(id, size, wanted->build_id, wanted->build_id_size)) {
            return true;
        }
        text_hex(id, size, text);
        snprintf(how, sizeof how, "is another file (its build-id is %s)", size ? text : "missing");
        note(search, OBJECT_REFUSED, where, how);
        return false;
    }
    if (wanted->inode && file->inode != wanted->inode && !file->overlay) {
        snprintf(how, sizeof how,
                 "is another file than the one that was mapped (inode %ju instead of %" PRIu64 ")",
                 (uintmax_t)file->inode, wanted->inode);
        note(search, OBJECT_REFUSED, where, how);
        return false;
    }
    return true;
}

static bool try_path(struct search *search, int root, const char *path, const char *where)
{
    struct elf_file *file = &search->out->file;
    enum object_state state = elf_file_open(root, path, file);
    if (state == OBJECT_MISSING && root >= 0) {
        return false; /* our own file of that name tells more */
    }
    if (state != OBJECT_SOUND) {
        note(search, state, where,
             state == OBJECT_DENIED    ? "may not be read"
             : state == OBJECT_MISSING ? "is not there"
                                       : "is no regular ELF file, or too large");
        return false;
    }
    if (is_wanted(search, file, where)) {
        return true;
    }
    elf_file_close(file);
    return false;
}

/*
 * perf lists what lies under a path when it ends. Where the path has another inode than the
 * mapping, that is a file which took the place of the mapped one, and the listed build-id is its
 * own.
 */
static bool was_put_there_since(const struct search *search)
{
    const struct object_place *wanted = search->wanted;
    const struct elf_file *file = &search->out->file;
    return wanted->id_is_listed && search->places->here && wanted->file.inode && !file->overlay &&
           file->inode != wanted->file.inode && major(file->device) == wanted->file.major &&
           minor(file->device) == wanted->file.minor;
}

/* The path that was recorded. */
static bool try_own_path(struct search *search, int root, const char *path, const char *where)
{
    if (!try_path(search, root, path, where)) {
        return false;
    }
    if (was_put_there_since(search)) {
        note(search, OBJECT_REFUSED, where,
             "is another file than the one that was mapped, and took its place meanwhile");
        search->replaced = true;
        elf_file_close(&search->out->file);
        return false;
    }
    return true;
}

static bool take_end(void *context, struct process_mapping *mapping)
{
    struct process_mapping *wanted = context;
    if (mapping->start == wanted->start &&
        (!wanted->file.inode || mapping->file.inode == wanted->file.inode)) {
        wanted->end = mapping->end;
    }
    return mapping->start < wanted->start;
}

/* Where a mapping ends by now; 0: it is not there. A loader maps room for all of a library's
 * segments first, which is what was recorded, and puts the others over it (_dl_map_segments). */
static uint64_t mapping_end(const struct object_place *wanted)
{
    struct process_mapping mapping = {.start = wanted->start, .file.inode = wanted->file.inode};
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/maps", wanted->pid);
    process_mappings(open(path, O_RDONLY | O_CLOEXEC), take_end, &mapping);
    return mapping.end;
}

static enum object_state open_mapping(const struct object_place *wanted, uint64_t end,
                                      struct elf_file *file)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, wanted->pid,
             wanted->start, end);
    return elf_file_open(-1, path, file);
}

/* The kernel's own link to what is mapped there: right even when the path has another file, or
 * none. Only root may follow it. A listed build-id does not count against it. */
static bool try_mapping(struct search *search)
{
    const struct object_place *wanted = search->wanted;
    struct elf_file *file = &search->out->file;
    if (!wanted->start || (!wanted->file.inode && !wanted->file.build_id_size)) {
        return false; /* the pid may be another process' by now, and nothing would tell */
    }
    enum object_state state = open_mapping(wanted, wanted->end, file);
    uint64_t end = state == OBJECT_SOUND ? 0 : mapping_end(wanted);
    if (end && end != wanted->end) {
        state = open_mapping(wanted, end, file);
    }
    search->only_root = state == OBJECT_DENIED && end;
    if (state != OBJECT_SOUND) {
        return false;
    }
    if (fits_machine(search->places->machine, file->machine) &&
        (has_recorded_inode(search, file) ||
         (wanted->file.build_id_size &&
          elf_file_has_id(file, wanted->file.build_id, wanted->file.build_id_size)))) {
        return true;
    }
    elf_file_close(file);
    return false;
}

static bool keep_path(struct search *search, uint32_t pid, const char *path)
{
    search->out->pid = pid;
    search->out->path = strdup(path); /* NULL: no debug file beside it is found */
    return true;
}

static bool try_process(struct search *search, const char *path)
{
    uint32_t pid = search->wanted->pid;
    if (!search->places->here || !pid) {
        return false;
    }
    if (try_mapping(search)) {
        return keep_path(search, pid, path);
    }
    int root = process_root_open((pid_t)pid);
    if (root < 0) {
        return false;
    }
    char where[PATH_MAX + 32];
    snprintf(where, sizeof where, "/proc/%u/root%s", pid, path);
    bool found = try_own_path(search, root, path, where);
    (void)close(root);
    return found && keep_path(search, pid, path);
}

/* A file under a name that is made of the build-id. */
static bool try_by_id(struct search *search, const char *directory, const char *name)
{
    char id[BUILD_ID_TEXT];
    char path[PATH_MAX];
    text_hex(search->wanted->file.build_id, search->wanted->file.build_id_size, id);
    int size = snprintf(path, sizeof path, "%s/.build-id/%.2s/%s%s", directory, id, id + 2, name);
    return size > 0 && size < PATH_MAX && try_path(search, -1, path, path);
}

static bool try_ids(struct search *search)
{
    if (search->wanted->file.build_id_size < 2) {
        return false;
    }
    if (try_by_id(search, search->places->build_id_dir, "/elf")) {
        return true;
    }
    if (try_by_id(search, "/usr/lib", "")) { /* Fedora's links to what is installed */
        return true;
    }
    search->out->only_debug = try_by_id(search, search->places->build_id_dir, "/debug") ||
                              try_by_id(search, "/usr/lib/debug", ".debug");
    return search->out->only_debug;
}

/* The kernel maps the same vdso into every process. */
static bool try_own_vdso(struct search *search)
{
    const struct file_identity *wanted = &search->wanted->file;
    const char *image =
        (const char *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
    Elf64_Ehdr header;
    if (!image || memcmp(image, ELFMAG, SELFMAG) != 0) {
        return false;
    }
    memcpy(&header, image, sizeof header);
    size_t size = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
    void *copy = malloc(size);
    if (!copy) {
        return false;
    }
    memcpy(copy, image, size);
    struct elf_file *file = &search->out->file;
    if (elf_file_take(copy, size, file) != OBJECT_SOUND) {
        return false;
    }
    if (file->machine == search->places->machine &&
        (wanted->build_id_size ? elf_file_has_id(file, wanted->build_id, wanted->build_id_size)
                               : search->places->same_kernel)) {
        return true;
    }
    elf_file_close(file);
    return false;
}

static bool find_vdso(struct search *search)
{
    return try_own_vdso(search) || (search->wanted->file.build_id_size >= 2 &&
                                    (try_by_id(search, search->places->build_id_dir, "/vdso") ||
                                     try_by_id(search, search->places->build_id_dir, "/elf")));
}

static bool find_path(struct search *search)
{
    char path[PATH_MAX];
    const char *wanted = search->wanted->file.path;
    if (snprintf(path, sizeof path, "%.*s", (int)process_path_length(wanted), wanted) >= PATH_MAX) {
        return false;
    }
    if (try_process(search, path)) {
        return true;
    }
    if (try_own_path(search, -1, path, path)) {
        return keep_path(search, 0, path);
    }
    if (!search->replaced && try_ids(search)) {
        return true;
    }
    if (search->only_root && search->worst == OBJECT_MISSING) {
        note(search, OBJECT_DENIED, path,
             "was removed, and only root may read what a process has mapped of it: run as root");
    }
    return false;
}

/* What was wrong and what would help. */
static char *explain(const struct search *search)
{
    const struct file_identity *wanted = &search->wanted->file;
    char id[BUILD_ID_TEXT];
    char *why = NULL;
    int size;
    text_hex(wanted->build_id, wanted->build_id_size, id);
    if (strcmp(wanted->path, "[vdso]") == 0) {
        size = asprintf(&why, "it is another kernel's (%s) and perf record put no copy into %s",
                        search->places->kernel ? search->places->kernel : "an unknown release",
                        search->places->build_id_dir);
    } else if (search->worst == OBJECT_DENIED || search->worst == OBJECT_UNSOUND) {
        size = asprintf(&why, "%s", search->what);
    } else if (search->replaced) {
        size =
            asprintf(&why, "%s; a recording without --keep-raw reads files while they are mapped",
                     search->what);
    } else if (wanted->build_id_size) {
        size = asprintf(&why,
                        "%s; the recording's has the build-id %s, and no copy is in %s ('perf "
                        "buildid-cache --add FILE' puts one there), nor its debug file here",
                        search->what, id, search->places->build_id_dir);
    } else {
        size = asprintf(&why, "%s; record with --buildid-mmap, so that a copy can be told",
                        search->what);
    }
    return size < 0 ? NULL : why;
}

enum object_state find_file(const struct file_places *places, const struct object_place *wanted,
                            struct found_file *out, char **why)
{
    struct search search = {
        .places = places, .wanted = wanted, .out = out, .worst = OBJECT_UNTRIED};
    *out = (struct found_file){.file = ELF_FILE_NONE};
    *why = NULL;
    if (strcmp(wanted->file.path, "[vdso]") == 0 ? find_vdso(&search) : find_path(&search)) {
        return OBJECT_SOUND;
    }
    *why = explain(&search);
    return search.worst == OBJECT_UNTRIED ? OBJECT_MISSING : search.worst;
}

void found_file_close(struct found_file *found)
{
    elf_file_close(&found->file);
    free(found->path);
    found->path = NULL;
}

/* ---- Separate files ---- */

/* The CRC-32 of zlib, which .gnu_debuglink names a file by that bears no build-id. */
static uint32_t crc_of(int fd)
{
    uint8_t buffer[16384];
    uint32_t crc = UINT32_MAX;
    off_t at = 0;
    for (ssize_t size; (size = pread(fd, buffer, sizeof buffer, at)) > 0; at += size) {
        for (ssize_t i = 0; i < size; i++) {
            crc ^= buffer[i];
            for (int bit = 0; bit < 8; bit++) {
                crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
            }
        }
    }
    return ~crc;
}

static bool open_with_id(int root, const char *path, const uint8_t *id, size_t size,
                         struct elf_file *out)
{
    if (elf_file_open(root, path, out) != OBJECT_SOUND) {
        return false;
    }
    if (elf_file_has_id(out, id, size)) {
        return true;
    }
    elf_file_close(out);
    return false;
}

static bool open_by_id(const char *directory, const char *ending, const uint8_t *id, size_t size,
                       struct elf_file *out)
{
    char text[BUILD_ID_TEXT];
    char path[PATH_MAX];
    text_hex(id, size, text);
    int length =
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s%s", directory, text, text + 2, ending);
    return length > 0 && length < PATH_MAX && open_with_id(-1, path, id, size, out);
}

/* A candidate for what .gnu_debuglink names; without a build-id its content must have the CRC. */
static bool try_linked(int root, const char *path, const uint8_t *id, size_t id_size, uint32_t crc,
                       struct elf_file *out)
{
    if (id_size) {
        return open_with_id(root, path, id, id_size, out);
    }
    if (elf_file_open(root, path, out) != OBJECT_SOUND) {
        return false;
    }
    if (crc_of(out->fd) == crc) {
        return true;
    }
    elf_file_close(out);
    return false;
}

/* Where gdb looks, too: beside the file, in .debug beside it, below /usr/lib/debug. */
static bool follow_link(const struct found_file *found, const uint8_t *id, size_t id_size,
                        struct elf_file *out)
{
    GElf_Word crc;
    const char *name = found->path ? dwelf_elf_gnu_debuglink(found->file.elf, &crc) : NULL;
    const char *slash = found->path ? strrchr(found->path, '/') : NULL;
    if (!name || !slash || strchr(name, '/') || name[0] == '\0' || name[0] == '.') {
        return false;
    }
    int root = found->pid ? process_root_open((pid_t)found->pid) : -1;
    int length = (int)(slash - found->path);
    bool is_found = false;
    for (int i = 0; i < 3 && !is_found && (root >= 0 || !found->pid); i++) {
        char path[PATH_MAX];
        int size = snprintf(path, sizeof path, "%s%.*s%s/%s", i == 2 ? "/usr/lib/debug" : "",
                            length, found->path, i == 1 ? "/.debug" : "", name);
        is_found = size < PATH_MAX && try_linked(root, path, id, id_size, crc, out);
    }
    descriptor_close(root);
    return is_found;
}

bool debug_file_find(const struct file_places *places, const struct found_file *found,
                     struct elf_file *out)
{
    uint8_t id[BUILD_ID_MAX];
    size_t size = elf_file_build_id(&found->file, id);
    *out = ELF_FILE_NONE;
    if (size >= 2 && (open_by_id(places->build_id_dir, "/debug", id, size, out) ||
                      open_by_id("/usr/lib/debug", ".debug", id, size, out))) {
        return true;
    }
    return follow_link(found, id, size, out);
}

bool debug_file_find_shared(const struct file_places *places, const char *name, const uint8_t *id,
                            size_t id_size, struct elf_file *out)
{
    *out = ELF_FILE_NONE;
    if (id_size < 2 || id_size > BUILD_ID_MAX) {
        return false;
    }
    return open_by_id("/usr/lib/debug", ".debug", id, id_size, out) ||
           open_by_id(places->build_id_dir, "/elf", id, id_size, out) ||
           (name[0] == '/' && open_with_id(-1, name, id, id_size, out));
}

/* All of it, or NULL: broken, no memory, or larger than is sane. */
static void *unpack(const void *packed, size_t packed_size, size_t *size)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    size_t room = packed_size < DEBUG_DATA_MAX / 8 ? packed_size * 8 + 4096 : DEBUG_DATA_MAX;
    uint8_t *out = malloc(room);
    if (!out || lzma_stream_decoder(&stream, DEBUG_DATA_MAX, 0) != LZMA_OK) {
        free(out);
        return NULL;
    }
    stream.next_in = packed;
    stream.avail_in = packed_size;
    stream.next_out = out;
    stream.avail_out = room;
    lzma_ret state;
    while ((state = lzma_code(&stream, LZMA_FINISH)) == LZMA_OK && stream.avail_out == 0) {
        uint8_t *grown = room < DEBUG_DATA_MAX ? realloc(out, room * 2) : NULL;
        if (!grown) {
            break;
        }
        out = grown;
        stream.next_out = out + room;
        stream.avail_out = room;
        room *= 2;
    }
    *size = stream.total_out;
    lzma_end(&stream);
    if (state != LZMA_STREAM_END || *size == 0) {
        free(out);
        return NULL;
    }
    return out;
}

bool debug_file_unpack(const struct elf_file *file, struct elf_file *out)
{
    size_t size;
    *out = ELF_FILE_NONE;
    Elf_Scn *section = elf_file_section(file, ".gnu_debugdata", &size);
    Elf_Data *packed = section ? elf_rawdata(section, NULL) : NULL;
    if (!packed || !packed->d_buf) {
        return false;
    }
    void *image = unpack(packed->d_buf, packed->d_size, &size);
    return image && elf_file_take(image, size, out) == OBJECT_SOUND;
}
