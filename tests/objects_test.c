/*
 * Which file an object accepts, what it knows about addresses, and that no file makes it wait or
 * use memory without limit.
 */
#include "test.h"

#include "jdtool/objects/build_id.h"
#include "jdtool/objects/frame_row.h"
#include "jdtool/objects/kallsyms.h"
#include "jdtool/objects/objects.h"
#include "random.h"
#include "scratch.h"
#include "tests/objects_counts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <lzma.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

OWNED(struct objects *, objects_free)

#if defined __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static char directory[] = "/tmp/jdagent-objects-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    memcpy(directory + sizeof directory - 7, "XXXXXX", 6);
    return mkdtemp(directory) ? 0 : -1;
}

__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
    char command[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command); /* NOLINT(cert-env33-c) */
}

static int remove_directory(void **state)
{
    (void)state;
    return run("rm -rf '%s'", directory);
}

/* Below the test's directory; valid until the eighth next call. */
static const char *in_directory(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static struct objects *new_objects(bool here)
{
    static struct utsname own;
    struct objects *objects;
    uname(&own);
    struct objects_options options = {.machine = MACHINE,
                                      .build_id_dir = in_directory("cache"),
                                      .os_release = here ? own.release : "6.1.0-other",
                                      .here = here};
    assert_int_equal(objects_new(&options, &objects), 0);
    return objects;
}

static void copy(const char *from, const char *to)
{
    assert_int_equal(run("cp -f --remove-destination '%s' '%s'", from, to), 0);
}

struct id {
    uint8_t bytes[BUILD_ID_MAX];
    uint8_t size;
    char text[BUILD_ID_MAX * 2 + 1];
};

static struct id id_of(const char *path)
{
    struct id id = {.size = 0};
    struct objects *objects = new_objects(true);
    struct object_place place = {.file.path = path};
    struct object *object = objects_find(objects, &place);
    assert_true(object_open(object));
    id.size = (uint8_t)object_build_id(object, id.bytes);
    assert_int_equal(id.size, 20);
    for (int i = 0; i < 20; i++) {
        snprintf(id.text + i * 2, 3, "%02x", id.bytes[i]);
    }
    objects_free(objects);
    return id;
}

static void set_id(struct object_place *place, const uint8_t id[BUILD_ID_MAX])
{
    memcpy(place->file.build_id, id, BUILD_ID_MAX);
    place->file.build_id_size = BUILD_ID_MAX;
}

static size_t build_id_alone(const uint8_t *bytes, size_t size, uint8_t id[BUILD_ID_MAX])
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    size_t found = build_id_read(fd, id);
    close(fd);
    return found;
}

/* Without a library: the same build-id, and none in what is cut or lies. */
TEST_WITH(a_build_id_is_read_alone, make_directory, remove_directory)
{
    struct id known = id_of("/proc/self/exe");
    uint8_t id[BUILD_ID_MAX] = {0};
    static uint8_t bytes[65536];
    struct stat status;
    assert_int_equal(stat("/proc/self/exe", &status), 0);
    assert_int_equal(build_id_find(-1, "/proc/self/exe", status.st_ino, id), known.size);
    assert_memory_equal(id, known.bytes, known.size);
    assert_int_equal(build_id_find(-1, "/proc/self/exe", status.st_ino + 1, id), 0);
    assert_int_equal(build_id_find(-1, "/dev/zero", 0, id), 0);

    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    assert_int_equal(build_id_alone(bytes, sizeof bytes, id), known.size);
    uint8_t *note = memmem(bytes, sizeof bytes, known.bytes, known.size);
    assert_non_null(note);
    note -= 16; /* sizes of the name and of the id, the type, "GNU" */
    assert_int_equal(build_id_alone(bytes, (size_t)(note - bytes) + 20, id), 0);
    for (int field = 0; field < 2; field++) {
        uint32_t before;
        memcpy(&before, note + 4 * field, 4);
        memset(note + 4 * field, 0xff, 4);
        assert_int_equal(build_id_alone(bytes, sizeof bytes, id), 0);
        memcpy(note + 4 * field, &before, 4);
    }
    for (int byte = 0; byte < 8;
         byte += 7) { /* out of the file, and beyond what an offset can be */
        bytes[offsetof(Elf64_Ehdr, e_phoff) + byte] ^= 0xff;
        assert_int_equal(build_id_alone(bytes, sizeof bytes, id), 0);
        bytes[offsetof(Elf64_Ehdr, e_phoff) + byte] ^= 0xff;
    }
    bytes[EI_DATA] ^= 3;
    assert_int_equal(build_id_alone(bytes, sizeof bytes, id), 0);
}

/* A file of 32 bits says it by the same rules. */
TEST_WITH(a_build_id_of_32_bits_is_read, make_directory, remove_directory)
{
    struct {
        Elf32_Ehdr file;
        Elf32_Phdr segments[2];
        Elf32_Nhdr note;
        char name[4];
        uint8_t id[20];
    } elf = {.file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB},
                      .e_phoff = sizeof elf.file,
                      .e_phentsize = sizeof elf.segments[0],
                      .e_phnum = 2},
             .segments = {{.p_type = PT_LOAD}, {.p_type = PT_NOTE, .p_align = 4}},
             .note = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID},
             .name = ELF_NOTE_GNU};
    memcpy(elf.id, "twenty bytes, enough", sizeof elf.id);
    uint8_t id[BUILD_ID_MAX] = {0};
    elf.segments[1].p_offset = sizeof elf.file + sizeof elf.segments;
    elf.segments[1].p_filesz = (Elf32_Word)(sizeof elf - elf.segments[1].p_offset);
    assert_int_equal(build_id_alone((uint8_t *)&elf, sizeof elf, id), 20);
    assert_memory_equal(id, elf.id, 20);
    assert_int_equal(build_id_alone((uint8_t *)&elf, sizeof elf - 1, id), 0);
    elf.file.e_phoff = UINT32_MAX;
    assert_int_equal(build_id_alone((uint8_t *)&elf, sizeof elf, id), 0);
    elf.file.e_phoff = sizeof elf.file;
    elf.file.e_phentsize = sizeof(Elf64_Phdr);
    assert_int_equal(build_id_alone((uint8_t *)&elf, sizeof elf, id), 0);
    elf.file.e_phentsize = sizeof elf.segments[0];
    elf.file.e_ident[EI_CLASS] = 3;
    assert_int_equal(build_id_alone((uint8_t *)&elf, sizeof elf, id), 0);
}

/* Puts a file into the build-id cache, as perf record does. */
static void put_into_cache(const char *file, const struct id *id, const char *name)
{
    assert_int_equal(run("mkdir -p '%s/cache/.build-id/%.2s/%s' && cp '%s' "
                         "'%s/cache/.build-id/%.2s/%s/%s'",
                         directory, id->text, id->text + 2, file, directory, id->text, id->text + 2,
                         name),
                     0);
}

/* The executable mapping of a library in this process, as perf would record it. */
struct mapped {
    char path[256];
    struct object_place place;
    uint64_t file_offset;
    void *handle;
};

static void map_library(const char *path, struct mapped *mapped)
{
    char line[512];
    memset(mapped, 0, sizeof *mapped);
    snprintf(mapped->path, sizeof mapped->path, "%s", path);
    mapped->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(mapped->handle);
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps)) {
        struct object_place *place = &mapped->place;
        char protection[8];
        char name[256] = "";
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %255s",
                   &place->start, &place->end, protection, &mapped->file_offset, &place->file.major,
                   &place->file.minor, &place->file.inode, name) == 8 &&
            strcmp(name, path) == 0 && protection[2] == 'x') {
            break;
        }
    }
    fclose(maps);
    mapped->place.file.path = mapped->path;
    mapped->place.pid = (uint32_t)getpid();
}

static uint64_t address_of(struct object *object, const struct mapped *mapped, const char *symbol)
{
    uint64_t address = 0;
    uint64_t at = (uint64_t)(uintptr_t)dlsym(mapped->handle, symbol);
    assert_true(at >= mapped->place.start && at < mapped->place.end);
    assert_true(object_address(object, at - mapped->place.start + mapped->file_offset, &address));
    return address;
}

static void check_name(struct object *object, const struct mapped *mapped, const char *name)
{
    struct object_symbol symbol;
    uint64_t address = address_of(object, mapped, name);
    assert_true(object_symbol(object, address + 1, &symbol));
    assert_string_equal(symbol.name, name);
    assert_true(symbol.address == address);
    assert_true(symbol.size > 1);
    assert_null(symbol.module);
    assert_true(object_row(object, address + 1)->found);
}

/* The library is replaced while the process lives: what it runs is the old one. */
TEST_WITH(a_replaced_library_is_read_as_it_was_mapped, make_directory, remove_directory)
{
    const char *path = in_directory("lib.so");
    struct mapped mapped;
    copy(LIBRARY_OLD, path);
    map_library(path, &mapped);
    copy(LIBRARY_NEW, path);
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object *object = objects_find(objects, &mapped.place);
    if (geteuid() == 0) { /* others may not follow map_files */
        check_name(object, &mapped, "library_work");
        check_name(object, &mapped, "library_root");
        assert_int_equal(object_state(object), OBJECT_SOUND);
    } else {
        assert_false(object_open(object));
        assert_int_equal(object_state(object), OBJECT_REFUSED);
    }
    /* The same with perf's list, made when the new file was there already. */
    struct id listed = id_of(LIBRARY_NEW);
    assert_int_equal(objects_list_build_id(objects, path, listed.bytes, listed.size), 0);
    struct object *listed_object = objects_find(objects, &mapped.place);
    assert_ptr_not_equal(listed_object, object);
    if (geteuid() == 0) {
        check_name(listed_object, &mapped, "library_work");
    }
    dlclose(mapped.handle);
}

/* It was removed as soon as it was loaded, as Netty and JNA do with theirs; and what was recorded
 * is the room that the loader had taken for all of its segments, with the file's inode or with its
 * build-id instead. */
TEST_WITH(a_removed_library_is_found_by_where_it_begins, make_directory, remove_directory)
{
    const char *path = in_directory("removed.so");
    struct mapped mapped;
    struct id id = id_of(LIBRARY_OLD);
    copy(LIBRARY_OLD, path);
    map_library(path, &mapped);
    assert_int_equal(unlink(path), 0);
    mapped.place.end += 0x200000;
    for (int with_id = 0; with_id < 2; with_id++) {
        if (with_id) {
            mapped.place.file.inode = 0;
            set_id(&mapped.place, id.bytes);
        }
        OWN(objects_free) struct objects *objects = new_objects(true);
        struct object *object = objects_find(objects, &mapped.place);
        if (geteuid() == 0) { /* others may not follow map_files */
            check_name(object, &mapped, "library_work");
        } else {
            assert_false(object_open(object));
        }
    }
    dlclose(mapped.handle);
}

/* Who is not root is told that it was removed, and who can read it. */
TEST_WITH(a_removed_library_needs_root, make_directory, remove_directory)
{
    const char *path = in_directory("root.so");
    struct mapped mapped;
    int status = 0;
    copy(LIBRARY_OLD, path);
    map_library(path, &mapped);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(in_directory("."), 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        mapped.place.pid = (uint32_t)getpid();
        bool is_nobody = geteuid() != 0 || setresuid(65534, 65534, 65534) == 0;
        (void)prctl(PR_SET_DUMPABLE, 1); /* else its own /proc is closed to it */
        struct objects *objects = new_objects(true);
        struct object *object = objects_find(objects, &mapped.place);
        _exit(is_nobody && !object_open(object) && object_state(object) == OBJECT_DENIED &&
                      strstr(object_why(object), "was removed, and only root may read")
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dlclose(mapped.handle);
}

/* It was replaced, and the process has ended: perf's list, and its copy, have the new one. */
TEST_WITH(a_listed_file_that_came_later_is_refused, make_directory, remove_directory)
{
    const char *path = in_directory("late.so");
    struct mapped mapped;
    copy(LIBRARY_OLD, path);
    map_library(path, &mapped);
    mapped.place.pid = 0x7fffffff;
    assert_int_equal(rename(path, in_directory("kept.so")), 0); /* its inode stays in use */
    copy(LIBRARY_NEW, path);
    struct id listed = id_of(LIBRARY_NEW);
    put_into_cache(LIBRARY_NEW, &listed, "elf");
    struct objects *objects = new_objects(true);
    assert_int_equal(objects_list_build_id(objects, path, listed.bytes, listed.size), 0);
    struct object *object = objects_find(objects, &mapped.place);
    assert_false(object_open(object));
    assert_int_equal(object_state(object), OBJECT_REFUSED);
    assert_non_null(strstr(object_why(object), "took its place"));
    objects_free(objects);

    /* Of another machine's recording the inode tells nothing. */
    objects = new_objects(false);
    assert_int_equal(objects_list_build_id(objects, path, listed.bytes, listed.size), 0);
    assert_true(object_open(objects_find(objects, &mapped.place)));
    objects_free(objects);
    dlclose(mapped.handle);
}

TEST_WITH(of_several_names_the_plainest_is_shown, make_directory, remove_directory)
{
    const char *path = in_directory("names.so");
    struct mapped mapped;
    copy(LIBRARY_OLD, path);
    map_library(path, &mapped);
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object *object = objects_find(objects, &mapped.place);
    check_name(object, &mapped, "library_plain");
    check_name(object, &mapped, "library_strong");
    dlclose(mapped.handle);
}

/* A file of another processor in the place of ours tells nothing of what ran. */
TEST_WITH(a_file_of_another_machine_is_refused, make_directory, remove_directory)
{
    const char *path = in_directory("other.so");
    copy(LIBRARY_OLD, path);
    struct objects *objects = new_objects(true);
    struct object_place place = {.file.path = path};
    assert_true(object_open(objects_find(objects, &place)));
    objects_free(objects);
    FILE *file = fopen(path, "r+be");
    assert_non_null(file);
    const Elf64_Half machine = EM_PPC64;
    assert_int_equal(fseek(file, offsetof(Elf64_Ehdr, e_machine), SEEK_SET), 0);
    assert_int_equal(fwrite(&machine, sizeof machine, 1, file), 1);
    fclose(file);
    objects = new_objects(true);
    struct object *object = objects_find(objects, &place);
    assert_false(object_open(object));
    assert_int_equal(object_state(object), OBJECT_UNSOUND);
    objects_free(objects);
}

/* It was replaced, and the process has ended: perf's copy has the old one. */
TEST_WITH(a_replaced_library_is_found_in_the_cache, make_directory, remove_directory)
{
    const char *path = in_directory("lib.so");
    struct mapped mapped;
    copy(LIBRARY_OLD, path);
    struct id id = id_of(path);
    map_library(path, &mapped);
    copy(LIBRARY_NEW, path);
    mapped.place.pid = 0x7fffffff;
    mapped.place.file.inode = 0;
    set_id(&mapped.place, id.bytes);
    struct objects *objects = new_objects(true);
    struct object *object = objects_find(objects, &mapped.place);
    assert_false(object_open(object));
    assert_int_equal(object_state(object), OBJECT_REFUSED);
    assert_non_null(strstr(object_why(object), id.text));
    assert_non_null(strstr(object_why(object), id_of(LIBRARY_NEW).text));
    assert_non_null(strstr(object_why(object), "buildid-cache --add"));
    objects_free(objects);

    put_into_cache(LIBRARY_OLD, &id, "elf");
    objects = new_objects(true);
    object = objects_find(objects, &mapped.place);
    check_name(object, &mapped, "library_work");
    /* The list of the recording serves mappings without an id. */
    assert_int_equal(objects_list_build_id(objects, path, id.bytes, id.size), 0);
    mapped.place.file.build_id_size = 0;
    check_name(objects_find(objects, &mapped.place), &mapped, "library_root");
    objects_free(objects);

    /* A copy that lies under a wrong name is no use. */
    put_into_cache(LIBRARY_NEW, &id, "elf");
    objects = new_objects(true);
    mapped.place.file.build_id_size = id.size;
    assert_false(object_open(objects_find(objects, &mapped.place)));
    objects_free(objects);
    dlclose(mapped.handle);
}

TEST_WITH(an_inode_must_do_where_no_id_is_known, make_directory, remove_directory)
{
    const char *path = in_directory("lib.so");
    struct mapped mapped;
    copy(LIBRARY_OLD, path);
    map_library(path, &mapped);
    mapped.place.pid = 0x7fffffff;
    struct objects *objects = new_objects(true);
    check_name(objects_find(objects, &mapped.place), &mapped, "library_work");
    objects_free(objects);
    struct stat status;
    assert_int_equal(rename(path, in_directory("kept.so")), 0); /* its inode stays in use */
    copy(LIBRARY_NEW, path);
    assert_int_equal(stat(path, &status), 0);
    objects = new_objects(true);
    struct object *object = objects_find(objects, &mapped.place);
    assert_false(object_open(object));
    assert_int_equal(object_state(object), OBJECT_REFUSED);
    assert_non_null(strstr(object_why(object), "inode"));
    objects_tell(objects);
    objects_free(objects);
    dlclose(mapped.handle);
}

TEST_WITH(one_object_for_one_file, make_directory, remove_directory)
{
    OWN(objects_free) struct objects *objects = new_objects(true);
    uint8_t ids[2][BUILD_ID_MAX] = {{1}, {2}};
    struct object_place place = {.file.path = "/no/lib.so", .pid = 1};
    set_id(&place, ids[0]);
    struct object *first = objects_find(objects, &place);
    place.pid = 2; /* another process: by its id it is the same */
    place.start = 4096;
    assert_ptr_equal(objects_find(objects, &place), first);
    set_id(&place, ids[1]);
    struct object *second = objects_find(objects, &place);
    assert_ptr_not_equal(second, first);
    assert_int_equal(object_id(first), 0);
    assert_int_equal(object_id(second), 1);
    place.file.build_id_size = 0;
    place.file.inode = 7;
    struct object *third = objects_find(objects, &place);
    place.pid = 3;
    assert_ptr_equal(objects_find(objects, &place), third);
    place.file.inode = 8;
    assert_ptr_not_equal(objects_find(objects, &place), third);
    place.file.inode = 0; /* a path alone: each process may have another file there */
    struct object *fourth = objects_find(objects, &place);
    place.pid = 4;
    assert_ptr_not_equal(objects_find(objects, &place), fourth);
    /* A path with two ids serves none. */
    assert_int_equal(objects_list_build_id(objects, "/no/two.so", ids[0], 20), 0);
    assert_int_equal(objects_list_build_id(objects, "/no/two.so", ids[1], 20), 0);
    place.file.path = "/no/two.so";
    uint8_t id[BUILD_ID_MAX];
    assert_int_equal(object_build_id(objects_find(objects, &place), id), 0);
}

TEST_WITH(memory_is_no_file, make_directory, remove_directory)
{
    static const char *const paths[] = {"//anon", "[heap]",      "/memfd:x (deleted)", "[stack]",
                                        "",       "relative.so", "/anon_hugepage"};
    OWN(objects_free) struct objects *objects = new_objects(true);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct object_place place = {.file.path = paths[i]};
        struct object *object = objects_find(objects, &place);
        struct object_symbol symbol;
        assert_int_equal(object_state(object), OBJECT_NONE);
        assert_false(object_symbol(object, 1, &symbol));
        assert_false(object_row(object, 1)->found);
    }
}

static struct object *vdso(struct objects *objects, const struct id *id)
{
    struct object_place place = {.file.path = "[vdso]"};
    if (id) {
        set_id(&place, id->bytes);
    }
    return objects_find(objects, &place);
}

static bool has_clock_gettime(struct object *object)
{
    struct object_symbol symbol;
    for (uint64_t address = 0; address < 0x4000; address += 8) {
        if (object_symbol(object, address, &symbol) && strstr(symbol.name, "clock_gettime")) {
            return true;
        }
    }
    return false;
}

/* The vdso is the kernel's, and ours is that of our kernel. */
TEST_WITH(a_foreign_vdso_is_not_ours, make_directory, remove_directory)
{
    if (!getauxval(AT_SYSINFO_EHDR)) {
        skip(); /* no vdso here (qemu) */
    }
    struct objects *objects = new_objects(true);
    struct object *own = vdso(objects, NULL);
    assert_true(has_clock_gettime(own));
    struct id id = {.size = 0};
    id.size = (uint8_t)object_build_id(own, id.bytes);
    assert_int_equal(id.size, 20);
    assert_true(has_clock_gettime(vdso(objects, &id)));
    id.bytes[3] ^= 1;
    struct object *other = vdso(objects, &id);
    assert_false(has_clock_gettime(other));
    assert_non_null(strstr(object_why(other), "another kernel"));
    objects_free(objects);

    objects = new_objects(false);
    assert_false(has_clock_gettime(vdso(objects, NULL)));
    objects_free(objects);

    /* perf record put a copy aside. */
    id.bytes[3] ^= 1;
    for (int i = 0; i < 20; i++) {
        snprintf(id.text + i * 2, 3, "%02x", id.bytes[i]);
    }
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    write_bytes(in_directory("vdso"), image,
                header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
    struct id library = id_of(LIBRARY_OLD);
    put_into_cache(LIBRARY_OLD, &library, "vdso");
    put_into_cache(in_directory("vdso"), &id, "vdso");
    objects = new_objects(false);
    assert_true(has_clock_gettime(vdso(objects, &id)));
    assert_true(object_open(vdso(objects, &library))); /* any file, by its id */
    objects_free(objects);
}

/* The symbols of a stripped file: beside it, in a cache, packed into it. */
TEST_WITH(a_stripped_file_has_its_symbols_elsewhere, make_directory, remove_directory)
{
    if (run("command -v objcopy >/dev/null")) {
        skip(); /* binutils are not installed */
    }
    const char *path = in_directory("lib.so");
    struct mapped mapped;
    copy(LIBRARY_OLD, path);
    map_library(LIBRARY_OLD, &mapped);
    mapped.place.file.path = path;
    mapped.place.file.inode = 0;
    mapped.place.pid = 0;
    assert_int_equal(run("cd '%s' && objcopy --only-keep-debug lib.so lib.debug && "
                         "objcopy -S -R .comment lib.so stripped && "
                         "objcopy --add-gnu-debuglink=lib.debug stripped lib.so",
                         directory),
                     0);
    struct objects *objects = new_objects(true);
    struct object *object = objects_find(objects, &mapped.place);
    uint64_t address = address_of(object, &mapped, "library_work");
    struct object_symbol symbol;
    const struct object_inline *inlines;
    check_name(object, &mapped, "library_work"); /* .dynsym has it, too */
    assert_true(object_inlines(object, address, &inlines) > 0);

    /* What nobody asks for a while is closed, and there again when it is asked for. */
    struct objects_counts used;
    struct objects_counts rested;
    objects_count(objects, &used);
    objects_rest(objects);
    objects_count(objects, &rested);
    assert_int_equal(rested.bytes, used.bytes);
    objects_rest(objects);
    objects_count(objects, &rested);
    assert_true(rested.bytes < used.bytes);
    check_name(object, &mapped, "library_work");
    assert_true(object_inlines(object, address, &inlines) > 0);
    objects_count(objects, &rested);
    assert_int_equal(rested.bytes, used.bytes);
    objects_free(objects);

    /* A link to a file of another build. */
    assert_int_equal(
        run("cd '%s' && objcopy --only-keep-debug '%s' lib.debug", directory, LIBRARY_NEW), 0);
    objects = new_objects(true);
    object = objects_find(objects, &mapped.place);
    check_name(object, &mapped, "library_work");
    assert_int_equal(object_inlines(object, address, &inlines), 0);
    objects_free(objects);

    /* In the cache of perf record. */
    struct id id = id_of(LIBRARY_OLD);
    assert_int_equal(
        run("cd '%s' && objcopy --only-keep-debug '%s' lib.debug", directory, LIBRARY_OLD), 0);
    put_into_cache(in_directory("lib.debug"), &id, "debug");
    assert_int_equal(unlink(in_directory("lib.debug")), 0);
    objects = new_objects(true);
    object = objects_find(objects, &mapped.place);
    assert_true(object_inlines(object, address, &inlines) > 0);
    objects_free(objects);
    /* Alone, without the file: names, no frames. */
    assert_int_equal(unlink(path), 0);
    set_id(&mapped.place, id.bytes);
    objects = new_objects(true);
    object = objects_find(objects, &mapped.place);
    assert_true(object_symbol(object, address, &symbol));
    assert_string_equal(symbol.name, "library_work");
    assert_false(object_row(object, address)->found);
    objects_free(objects);
    dlclose(mapped.handle);
}

/* Of the C library with its debug information elsewhere the names are taken, and no lines. */
TEST_WITH(lines_of_the_c_library_are_not_unpacked, make_directory, remove_directory)
{
    if (run("command -v objcopy >/dev/null")) {
        skip(); /* binutils are not installed */
    }
    static const char *const names[] = {"libc.so.6", "libother.so.6"};
    for (size_t i = 0; i < 2; i++) {
        for (int apart = 0; apart < 2; apart++) {
            char path[PATH_MAX];
            struct mapped mapped;
            snprintf(path, sizeof path, "%s", in_directory(names[i]));
            copy(LIBRARY_OLD, path);
            map_library(LIBRARY_OLD, &mapped);
            mapped.place.file.path = path;
            mapped.place.file.inode = 0;
            mapped.place.pid = 0;
            assert_int_equal(
                apart ? run("cd '%s' && objcopy --only-keep-debug %s lib.debug && objcopy -S "
                            "--add-gnu-debuglink=lib.debug %s",
                            directory, names[i], names[i])
                      : 0,
                0);
            OWN(objects_free) struct objects *objects = new_objects(true);
            struct object *object = objects_find(objects, &mapped.place);
            const struct object_inline *inlines;
            check_name(object, &mapped, "library_work");
            uint64_t address = address_of(object, &mapped, "library_work");
            assert_int_equal(object_inlines(object, address, &inlines) > 0, i == 1 || !apart);
            dlclose(mapped.handle);
        }
    }
}

/* Fedora's .gnu_debugdata. */
TEST_WITH(packed_symbols_are_unpacked, make_directory, remove_directory)
{
    if (run("command -v objcopy >/dev/null")) {
        skip(); /* binutils are not installed */
    }
    size_t size = 0;
    size_t packed_size = 0;
    /* -K would need a list; the whole symbol table will do. */
    assert_int_equal(run("cd '%s' && cp '%s' lib.so && objcopy --only-keep-debug "
                         "-R '.debug*' lib.so mini",
                         directory, LIBRARY_OLD),
                     0);
    uint8_t *plain = scratch_read(in_directory("mini"), &size);
    uint8_t *packed = malloc(size + 4096);
    assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, plain, size, packed,
                                             &packed_size, size + 4096),
                     LZMA_OK);
    write_bytes(in_directory("mini.xz"), packed, packed_size);
    assert_int_equal(run("cd '%s' && objcopy -S lib.so stripped && objcopy "
                         "--add-section .gnu_debugdata=mini.xz stripped lib.so",
                         directory),
                     0);
    struct objects *objects = new_objects(true);
    struct object_place place = {.file.path = in_directory("lib.so")};
    struct object *object = objects_find(objects, &place);
    struct object_symbol symbol;
    bool found = false; /* a function of the start-up code, local to the file */
    /* x86-64's linker gives code pages of its own, aarch64's begins behind the headers. */
    for (uint64_t address = 0; address < 0x2000 && !found; address++) {
        found = object_symbol(object, address, &symbol) && strcmp(symbol.name, "frame_dummy") == 0;
    }
    assert_true(found);
    objects_free(objects);

    /* 200 MB of zeroes in a few kilobytes: refused, and .dynsym serves. */
    size_t bomb = (size_t)200 << 20;
    free(plain);
    plain = calloc(1, bomb);
    packed_size = 0;
    packed = realloc(packed, (size_t)1 << 20);
    assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, plain, bomb, packed,
                                             &packed_size, (size_t)1 << 20),
                     LZMA_OK);
    write_bytes(in_directory("mini.xz"), packed, packed_size);
    assert_int_equal(
        run("cd '%s' && objcopy --add-section .gnu_debugdata=mini.xz stripped lib.so", directory),
        0);
    objects = new_objects(true);
    object = objects_find(objects, &place);
    assert_true(object_open(object));
    struct objects_counts counts;
    for (uint64_t address = 0; address < 0x2000; address++) {
        (void)object_symbol(object, address, &symbol);
    }
    objects_count(objects, &counts);
    assert_true(counts.bytes < (1 << 20));
    objects_free(objects);
    free(plain);
    free(packed);
}

TEST_WITH(inlined_functions_and_lines, make_directory, remove_directory)
{
    struct mapped mapped;
    map_library(LIBRARY_OLD, &mapped);
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object *object = objects_find(objects, &mapped.place);
    struct object_symbol symbol;
    uint64_t address = address_of(object, &mapped, "library_work");
    assert_true(object_symbol(object, address, &symbol));
    bool found = false;
    for (uint64_t at = address; at < address + symbol.size; at++) {
        const struct object_inline *inlines;
        size_t count = object_inlines(object, at, &inlines);
        assert_true(count >= 1);
        assert_string_equal(inlines[count - 1].name, "library_work");
        assert_int_equal(inlines[count - 1].first_line, 110);
        if (count == 3) {
            found = true;
            assert_string_equal(inlines[0].name, "innermost");
            assert_int_equal(inlines[0].line, 102);
            assert_string_equal(inlines[1].name, "between");
            assert_int_equal(inlines[1].line, 107);
            assert_int_equal(inlines[2].line, 112);
            assert_non_null(strstr(inlines[1].file, "library.c"));
        }
    }
    assert_true(found);
    const struct object_inline *inlines;
    assert_int_equal(object_inlines(object, 1, &inlines), 0);
    dlclose(mapped.handle);
}

/*
 * The JVM's debug package has 300 MB of DWARF, packed: reading that holds samples up for seconds,
 * and drives other files out of memory again and again.
 */
TEST_WITH(too_much_packed_dwarf_is_left_out, make_directory, remove_directory)
{
    if (run("command -v objcopy >/dev/null")) {
        skip(); /* binutils are not installed */
    }
    /* The library with its lines; with a section of zeros beside them; and that not packed. */
    static const struct {
        const char *section;
        const char *pack;
        bool sparing;
        bool left_out;
    } cases[] = {
        {"", "--compress-debug-sections=zlib", true, false},
        {"--add-section .debug_types=zeros", "--compress-debug-sections=zlib", false, true},
        {"--add-section .debug_types=zeros", "", false, false},
        {"--add-section .debug_types=zeros", "", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mapped mapped;
        const struct object_inline *inlines;
        struct objects_counts counts;
        const char *path = in_directory("lib.so");
        map_library(LIBRARY_OLD, &mapped);
        mapped.place.file.path = path;
        mapped.place.file.inode = 0;
        mapped.place.pid = 0;
        assert_int_equal(run("cd '%s' && truncate -s %d zeros && objcopy %s '%s' plain.so && "
                             "objcopy %s plain.so lib.so",
                             directory, 65 << 20, cases[i].section, LIBRARY_OLD, cases[i].pack),
                         0);
        struct objects_options options = {.machine = MACHINE,
                                          .build_id_dir = in_directory("cache"),
                                          .here = true,
                                          .sparing = cases[i].sparing};
        struct objects *objects;
        assert_int_equal(objects_new(&options, &objects), 0);
        struct object *object = objects_find(objects, &mapped.place);
        uint64_t address = address_of(object, &mapped, "library_work");
        assert_int_equal(object_inlines(object, address, &inlines) > 0, !cases[i].left_out);
        assert_int_equal(object_inlines(object, address, &inlines) > 0, !cases[i].left_out);
        check_name(object, &mapped, "library_work");
        objects_count(objects, &counts);
        assert_int_equal(counts.opened, 1);
        assert_true(counts.bytes < (4 << 20));
        assert_int_equal(counts.without_lines, cases[i].left_out);
        objects_free(objects);
        dlclose(mapped.handle);
    }
}

TEST_WITH(names_are_demangled_as_perf_does, make_directory, remove_directory)
{
    static const char *const names[][2] = {
        {"_ZN11G1Allocator21unsafe_max_tlab_allocEv", "G1Allocator::unsafe_max_tlab_alloc"},
        {"_ZN3foo3barEi.constprop.0", "foo::bar"},
        {"_ZNK3FoocvbEv", "Foo::operator bool"},
        {"_Z3addIiET_S0_S0_", "add<int>"},
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
        {"_ZN3foo3barEi@plt", "foo::bar@plt"},
        {"JVM_Sleep", "JVM_Sleep"},
        {"_Zebra", "_Zebra"},
        {"", ""},
    };
    OWN(objects_free) struct objects *objects = new_objects(true);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(objects_demangle(objects, names[i][0]), names[i][1]);
    }
    /* Each S_ doubles what stands before: a short name for gigabytes. */
    char name[512] = "_Z1fI";
    for (int i = 0; i < 24; i++) {
        char *end = name + strlen(name);
        if (i == 0) {
            strcpy(end, "1AIiiE");
        } else {
            snprintf(end, sizeof name - (size_t)(end - name), "1AIS%c_S%c_E",
                     i == 1 ? '0' : (char)(i - 1 < 10 ? '0' + i - 1 : 'A' + i - 11),
                     i == 1 ? '0' : (char)(i - 1 < 10 ? '0' + i - 1 : 'A' + i - 11));
        }
    }
    strcat(name, "EvT_");
    assert_true(strlen(objects_demangle(objects, name)) < 4096);
}

/* What others can put in a file's place. */
TEST_WITH(hostile_files_are_refused_at_once, make_directory, remove_directory)
{
    const char *names[] = {"fifo", "directory", "empty", "text", "loop", "header", "device", "cut"};
    assert_int_equal(run("cd '%s' && mkfifo fifo && mkdir directory && : >empty && echo text >text "
                         "&& ln -s loop loop && head -c 64 '%s' >header && ln -s /dev/zero device "
                         "&& head -c 3000 '%s' >cut",
                         directory, LIBRARY_OLD, LIBRARY_OLD),
                     0);
    OWN(objects_free) struct objects *objects = new_objects(true);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct object_place place = {.file.path = in_directory(names[i])};
        struct object *object = objects_find(objects, &place);
        struct object_symbol symbol;
        const struct object_inline *inlines;
        uint64_t address;
        for (uint64_t at = 0; at < 0x3000; at += 256) {
            assert_false(object_symbol(object, at, &symbol));
            assert_int_equal(object_inlines(object, at, &inlines), 0);
            (void)object_address(object, at, &address);
            (void)object_row(object, at);
        }
        if (i < 5) {
            assert_int_not_equal(object_state(object), OBJECT_SOUND);
            assert_string_not_equal(object_why(object), "");
        }
    }
}

/* ---- Call-frame information that is not a compiler's ---- */

/* Where the file has the section, and the linker's list of it. */
enum { FRAME_BYTES = 1 << 20, CODE = 0x10000000, AT = 4096, LIST_AT = 2048 };

struct frame_section {
    uint8_t bytes[FRAME_BYTES];
    uint32_t size;
    const void *list; /* .eh_frame_hdr; NULL: none */
    uint32_t list_size;
};

static void put(struct frame_section *frame, const void *bytes, size_t size)
{
    assert_true(frame->size + size <= sizeof frame->bytes);
    memcpy(frame->bytes + frame->size, bytes, size);
    frame->size += (uint32_t)size;
}

/* An entry whose fields behind its length are `head`, then its program. Returns its offset. */
static uint32_t put_entry(struct frame_section *frame, const void *head, size_t head_size,
                          const void *program, size_t size)
{
    uint32_t offset = frame->size;
    uint32_t length = (uint32_t)(head_size + size);
    put(frame, &length, sizeof length);
    put(frame, head, head_size);
    put(frame, program, size);
    return offset;
}

/* return_address: LEB128 of one byte and, with a second one, of two. */
static uint32_t put_cie(struct frame_section *frame, bool eh_frame, const char *return_address,
                        const void *program, size_t size)
{
    uint32_t id = eh_frame ? 0 : UINT32_MAX;
    uint8_t head[16];
    memcpy(head, &id, 4);
    memcpy(head + 4, "\x01\0\x01\x78", 4); /* version, augmentation, factors 1 and -8 */
    strcpy((char *)head + 8, return_address);
    return put_entry(frame, head, 8 + strlen(return_address), program, size);
}

static uint32_t put_fde(struct frame_section *frame, bool eh_frame, uint32_t cie, uint64_t address,
                        const void *program, size_t size)
{
    uint8_t head[20];
    uint64_t bytes = 256;
    uint32_t pointer = eh_frame ? frame->size + 4 - cie : cie;
    memcpy(head, &pointer, 4);
    memcpy(head + 4, &address, 8);
    memcpy(head + 12, &bytes, 8);
    return put_entry(frame, head, sizeof head, program, size);
}

/* A file with this section. */
static struct object *write_frames(struct objects *objects, const struct frame_section *frame,
                                   bool eh_frame)
{
    static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab\0.eh_frame_hdr";
    enum { NAMES = 3072, HEADERS = 1024 };
    Elf64_Ehdr file = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = MACHINE,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof file,
        .e_shoff = HEADERS,
        .e_ehsize = sizeof file,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = frame->list ? 4 : 3,
        .e_shstrndx = 2};
    Elf64_Phdr segment = {.p_type = PT_LOAD, .p_filesz = AT, .p_memsz = AT, .p_flags = PF_R};
    Elf64_Shdr sections[4] = {
        {0},
        {.sh_name = eh_frame ? 1 : 11,
         .sh_type = SHT_PROGBITS,
         .sh_addr = AT,
         .sh_offset = AT,
         .sh_size = frame->size},
        {.sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof names},
        {.sh_name = 34,
         .sh_type = SHT_PROGBITS,
         .sh_addr = LIST_AT,
         .sh_offset = LIST_AT,
         .sh_size = frame->list_size}};
    const char *path = in_directory("frames.so");
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(fd, &file, sizeof file, 0), sizeof file);
    assert_int_equal(pwrite(fd, &segment, sizeof segment, sizeof file), sizeof segment);
    assert_int_equal(pwrite(fd, sections, sizeof sections, HEADERS), sizeof sections);
    assert_int_equal(pwrite(fd, names, sizeof names, NAMES), sizeof names);
    assert_int_equal(pwrite(fd, frame->list, frame->list_size, LIST_AT), frame->list_size);
    assert_int_equal(pwrite(fd, frame->bytes, frame->size, AT), frame->size);
    close(fd);
    return objects_find(objects, &(struct object_place){.file.path = path});
}

/* Whether the row of CODE is found. */
static bool has_row(const struct frame_section *frame, bool eh_frame)
{
    struct objects *objects = new_objects(true);
    struct object *object = write_frames(objects, frame, eh_frame);
    bool found = object_row(object, CODE + 16)->found;
    objects_free(objects);
    return found;
}

static const char plain_cie[] = "\x0c\x07\x08\x90\x01"; /* def_cfa, offset */

/* libdw would make rows of gigabytes, or run for minutes, again for each address. */
TEST_WITH(frames_beyond_a_bound_have_no_row, make_directory, remove_directory)
{
    static struct frame_section frame;
#define PROGRAM(text, is_sound)                                                                    \
    {                                                                                              \
        text, sizeof(text) - 1, is_sound                                                           \
    }
    static const struct {
        const char *program;
        size_t size;
        bool is_sound;
    } cases[] = {
        PROGRAM("", true),
        PROGRAM("\x02\x01\x03\0\0\x04\0\0\0\0", true), /* advances */
        PROGRAM("\x05\xff\x01\x01", true),             /* register 255 */
        PROGRAM("\x0a\x0e\x10\x0b", true),             /* remembered and restored */
        PROGRAM("\x16\x07\x02\x77\x08", true),         /* an expression */
        PROGRAM("\x05\x80\x02\x01", false),            /* register 256 */
        PROGRAM("\x05\xff\xff\xff\x01\x01", false),    /* a row of 64 MB */
        PROGRAM("\x06\xff\xff\xff\x01", false),
        PROGRAM("\x07\xff\xff\xff\x01", false),
        PROGRAM("\x08\xff\xff\xff\x01", false),
        PROGRAM("\x09\xff\xff\xff\x01\x01", false),
        PROGRAM("\x10\xff\xff\xff\x01\x01\x9c", false),
        PROGRAM("\x11\xff\xff\xff\x01\x01", false),
        PROGRAM("\x14\xff\xff\xff\x01\x01", false),
        PROGRAM("\x15\xff\xff\xff\x01\x01", false),
        PROGRAM("\x16\xff\xff\xff\x01\x01\x9c", false),
        PROGRAM("\x2f\xff\xff\xff\x01\x01", false),
        PROGRAM("\x05\xff\xff\xff", false), /* cut */
        PROGRAM("\x16\x07\x7f\x9c", false),
        PROGRAM("\x02", false),
        PROGRAM("\x3f", false), /* nobody's */
        PROGRAM("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a", false),
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int eh_frame = 0; eh_frame < 2; eh_frame++) {
            frame.size = 0;
            uint32_t cie = put_cie(&frame, eh_frame, "\x10", plain_cie, sizeof plain_cie);
            put_fde(&frame, eh_frame, cie, CODE, cases[i].program, cases[i].size);
            assert_int_equal(has_row(&frame, eh_frame), cases[i].is_sound);
        }
    }
    static uint8_t nops[(256 << 10) - 20 + 1]; /* behind an FDE's 20 bytes */
    for (size_t more = 0; more < 2; more++) {
        frame.size = 0;
        uint32_t cie = put_cie(&frame, true, "\x10", plain_cie, sizeof plain_cie);
        put_fde(&frame, true, cie, CODE, nops, sizeof nops - 1 + more);
        assert_int_equal(has_row(&frame, true), !more);
    }
    /* What the entry is based on: its program, and where the return address is. */
    frame.size = 0;
    put_fde(&frame, true, put_cie(&frame, true, "\x10", "\x07\xff\xff\x7f", 4), CODE, "", 0);
    assert_false(has_row(&frame, true));
}

/* An entry that begins in no entry's place: the one that names it as its CIE has no row. */
TEST_WITH(frames_that_name_what_is_no_entry_have_none, make_directory, remove_directory)
{
    for (int eh_frame = 0; eh_frame < 2; eh_frame++) {
        static struct frame_section frame;
        frame.size = 0;
        uint32_t cie = put_cie(&frame, eh_frame, "\x10", plain_cie, sizeof plain_cie);
        uint32_t plain = put_fde(&frame, eh_frame, cie, CODE + 4096, "", 0);
        put_fde(&frame, eh_frame, plain, CODE, "", 0);
        put_fde(&frame, eh_frame, UINT32_MAX - 8, CODE, "", 0);
        assert_false(has_row(&frame, eh_frame));
        put_fde(&frame, eh_frame, cie, CODE, "", 0);
        assert_true(has_row(&frame, eh_frame));
    }
}

static int take_first_row(void *context, uint64_t address, const struct native_row *row)
{
    struct native_row *first = context;
    if (address == CODE) {
        *first = *row;
    }
    return 0;
}

/* A file may have as many CIEs as it was compiled of: each function has its own, also where the
 * next one's is kept in the same place. */
TEST_WITH(each_function_has_the_rows_of_its_own_cie, make_directory, remove_directory)
{
    static const char other_cie[] = "\x0c\x07\x10\x90\x02"; /* def_cfa: 16 */
    static const char nops[64];
    static struct frame_section frame;
    struct native_row first = {0};
    uint32_t cie = put_cie(&frame, true, "\x10", plain_cie, sizeof plain_cie);
    uint32_t next = frame.size + 24; /* behind an FDE without a program */
    put_fde(&frame, true, cie, CODE, nops, -next & 63);
    uint32_t other = put_cie(&frame, true, "\x10", other_cie, sizeof other_cie);
    assert_int_equal((other - cie) % 64, 0);
    put_fde(&frame, true, other, CODE + 256, "", 0);
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object *object = write_frames(objects, &frame, true);
    assert_int_equal(object_rows(object, CODE, CODE + 512, take_first_row, &first), 0);
    assert_int_equal(first.cfa.offset, 8);
}

/* The linker's list is taken where it is in order, and each entry where it tells the truth. */
TEST_WITH(an_own_list_is_believed_as_far_as_it_is_true, make_directory, remove_directory)
{
    static struct frame_section frame;
    uint32_t cie = put_cie(&frame, true, "\x10", plain_cie, sizeof plain_cie);
    int32_t at[] = {AT - LIST_AT + (int32_t)put_fde(&frame, true, cie, CODE, "", 0),
                    AT - LIST_AT + (int32_t)put_fde(&frame, true, cie, CODE + 4096, "", 0)};
    enum { START = CODE - LIST_AT, ABSENT = AT - LIST_AT + 4096 };
    const struct {
        uint8_t head[4];
        int32_t section, count, entries[2][2];
        bool has_rows[2];
    } lists[] = {
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 2, {{START, at[0]}, {START + 4096, at[1]}}, {1, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 1, {{START, at[0]}}, {1, 0}}, /* it is used */
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 2, {{START, at[1]}, {START + 4096, at[1]}}, {0, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 2, {{START, ABSENT}, {START + 4096, at[1]}}, {0, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 2, {{START, -1}, {START + 4096, at[1]}}, {0, 1}},
        /* In no order, of another section, too long, of none, in other words. */
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 2, {{START + 4096, at[1]}, {START, at[0]}}, {1, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 8, 1, {{START, at[0]}}, {1, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 3, {{START, at[0]}, {START + 4096, at[1]}}, {1, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, -1, {{START, at[0]}}, {1, 1}},
        {{1, 0x1b, 3, 0x3b}, AT - LIST_AT - 4, 0, {{0}}, {1, 1}},
        {{1, 0x1b, 3, 0x1b}, AT - LIST_AT - 4, 1, {{START, at[0]}}, {1, 1}},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        OWN(objects_free) struct objects *objects = new_objects(true);
        frame.list = &lists[i];
        frame.list_size = sizeof lists[i].head + 6 * sizeof(int32_t);
        struct object *object = write_frames(objects, &frame, true);
        for (unsigned row = 0; row < 2; row++) {
            assert_int_equal(object_row(object, CODE + row * 4096 + 16)->found,
                             lists[i].has_rows[row]);
        }
    }
    frame.list_size = 11; /* cut */
    assert_true(has_row(&frame, true));
}

static int count_signal_rows(void *context, uint64_t address, const struct native_row *row)
{
    uint64_t *found = context;
    found[row->signal ? 0 : 1] += 1;
    found[2] = row->signal ? address : found[2];
    return 0;
}

/* The arm64 kernel's vdso says nothing of where signal handlers return: its instructions tell. */
TEST_WITH(a_way_back_from_signals_is_known_by_its_code, make_directory, remove_directory)
{
    static const char source[] = ".globl before\nbefore: .fill 16, 1, 0\n"
                                 ".byte 0x68,0x11,0x80,0xd2, 1,0,0,0xd4\n.fill 16, 1, 0\n";
    scratch_write(in_directory("vdso.s"), source);
    if (run("cd '%s' && cc -shared -nostdlib -o vdso.so vdso.s 2>/dev/null &&"
            " printf '\\267\\0' | dd of=vdso.so bs=1 seek=18 conv=notrunc 2>/dev/null",
            directory)) {
        skip(); /* there is no assembler */
    }
    struct objects *objects;
    struct objects_options options = {.machine = EM_AARCH64, .here = true};
    struct object_symbol symbol;
    assert_int_equal(objects_new(&options, &objects), 0);
    struct object *object =
        objects_find(objects, &(struct object_place){.file.path = in_directory("vdso.so")});
    uint64_t before = 0;
    while (!object_symbol(object, before, &symbol)) {
        assert_true(++before < 1 << 20);
    }
    assert_false(object_row(object, before + 11)->found);
    assert_true(object_row(object, before + 15)->signal); /* before the return address */
    assert_true(object_row(object, before + 24)->signal); /* in its system call */
    assert_false(object_row(object, before + 25)->found);
    uint64_t found[3] = {0};
    assert_int_equal(object_rows(object, before, before + 40, count_signal_rows, found), 0);
    assert_int_equal(found[0], 1);
    assert_int_equal(found[1], 2);
    assert_int_equal(found[2], before + 12);
    objects_free(objects);
}

/* Its system call is the last instruction of glibc's __restore_rt: the pc is behind it then. */
TEST_WITH(a_system_call_that_returns_from_a_signal_has_its_row, make_directory, remove_directory)
{
    static const char source[] = ".globl back\nback: .cfi_startproc\n.cfi_signal_frame\n"
                                 ".fill 16, 1, 0\n.cfi_endproc\n.fill 16, 1, 0\n";
    scratch_write(in_directory("back.s"), source);
    if (run("cd '%s' && cc -shared -nostdlib -o back.so back.s 2>/dev/null", directory)) {
        skip(); /* there is no assembler */
    }
    struct objects *objects = new_objects(true);
    struct object *object =
        objects_find(objects, &(struct object_place){.file.path = in_directory("back.so")});
    struct object_symbol symbol;
    uint64_t back = 0;
    while (!object_symbol(object, back, &symbol)) {
        assert_true(++back < 1 << 20);
    }
    assert_true(object_row(object, back + 15)->signal);
    assert_true(object_row(object, back + 16)->signal);
    assert_false(object_row(object, back + 17)->found);
    uint64_t found[3] = {0};
    assert_int_equal(object_rows(object, back + 16, back + 40, count_signal_rows, found), 0);
    assert_int_equal(found[0], 1);
    assert_int_equal(found[1], 1);
    assert_int_equal(found[2], back + 16);
    objects_free(objects);
}

/* Many blocks of a function, each of which names the same long list of ranges. */
TEST_WITH(lines_that_take_too_long_are_given_up, make_directory, remove_directory)
{
    static const char source[] =
        ".globl work\nwork: .fill 64, 1, 0x90\nend:\n"
        ".section .debug_abbrev,\"\",@progbits\n"
        ".byte 1,0x11,1,0x11,1,0x12,1,0,0\n" /* unit: low_pc, high_pc */
        ".byte 2,0x2e,1,0x11,1,0x12,1,0,0\n" /* function: the same */
        ".byte 3,0x0b,0,0x55,0x17,0,0, 0\n"  /* block: ranges */
        ".section .debug_info,\"\",@progbits\n"
        ".long 2f-1f\n1: .short 4\n.long .debug_abbrev\n.byte 8\n"
        ".byte 1\n.quad work, end\n.byte 2\n.quad work, end\n"
        ".rept 1000\n.byte 3\n.long .debug_ranges\n.endr\n.byte 0,0\n2:\n"
        ".section .debug_ranges,\"\",@progbits\n.rept 20000\n.quad 1,1\n.endr\n.quad 0,0\n";
    scratch_write(in_directory("slow.s"), source);
    if (run("cd '%s' && cc -shared -nostdlib -Wl,--build-id -o slow.so slow.s 2>/dev/null",
            directory)) {
        skip(); /* there is no assembler */
    }
    for (int patient = 0; patient < 2; patient++) {
        struct objects_options options = {.machine = MACHINE,
                                          .build_id_dir = in_directory("cache"),
                                          .here = true,
                                          .patience = patient ? 0 : 3000000};
        struct objects *objects;
        struct objects_counts counts;
        const struct object_inline *inlines;
        struct object_symbol symbol;
        assert_int_equal(objects_new(&options, &objects), 0);
        struct object *object =
            objects_find(objects, &(struct object_place){.file.path = in_directory("slow.so")});
        uint64_t address = 0;
        while (!object_symbol(object, address, &symbol)) {
            assert_true(++address < 1 << 20);
        }
        (void)object_inlines(object, address + 1, &inlines);
        objects_count(objects, &counts);
        assert_int_equal(counts.slow, !patient);
        assert_int_equal(object_inlines(object, address + 2, &inlines) > 0, patient);
        assert_true(object_symbol(object, address + 1, &symbol));
        objects_free(objects);
    }
}

/* A file that others can shorten is not mapped. */
TEST_WITH(a_file_of_others_may_shrink, make_directory, remove_directory)
{
    struct mapped mapped;
    struct object_symbol symbol;
    const struct object_inline *inlines;
    const char *path = in_directory("lib.so");
    map_library(LIBRARY_OLD, &mapped);
    copy(LIBRARY_OLD, path);
    assert_int_equal(chmod(path, 0666), 0);
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object_place place = {.file.path = path};
    struct object *object = objects_find(objects, &place);
    uint64_t address = address_of(object, &mapped, "library_work");
    assert_int_equal(truncate(path, 4096), 0);
    (void)object_symbol(object, address, &symbol);
    (void)object_inlines(object, address, &inlines);
    (void)object_row(object, address);
    dlclose(mapped.handle);
}

TEST_WITH(few_files_are_open_at_a_time, make_directory, remove_directory)
{
    enum { FILES = OBJECTS_OPEN_MAX + 40 };
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct mapped mapped;
    map_library(LIBRARY_OLD, &mapped);
    static struct object *all[FILES];
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "lib%d.so", i);
        assert_int_equal(link(i ? in_directory("lib0.so") : LIBRARY_OLD, in_directory(name)) == 0 ||
                             run("cp '%s' '%s'", LIBRARY_OLD, in_directory(name)) == 0,
                         true);
        struct object_place place = {.file.path = in_directory(name)};
        all[i] = objects_find(objects, &place);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < FILES; i++) {
            check_name(all[i], &mapped, "library_work");
        }
    }
    struct objects_counts counts;
    objects_count(objects, &counts);
    assert_int_equal(counts.files[OBJECT_SOUND], FILES);
    assert_true(counts.opened > FILES);
    DIR *open_files = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(open_files)) {
        count++;
    }
    closedir(open_files);
    assert_true(count < OBJECTS_OPEN_MAX + 40);
    dlclose(mapped.handle);
}

TEST_WITH(endless_files_share_one_object, make_directory, remove_directory)
{
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object *last = NULL;
    for (uint64_t i = 0; i < OBJECTS_MAX + 10; i++) {
        struct object_place place = {.file.path = "/no/such.so", .file.inode = i + 1};
        last = objects_find(objects, &place);
    }
    assert_int_equal(object_state(last), OBJECT_TOO_MANY);
    assert_false(object_open(last));
    objects_tell(objects);
}

/* J9: with DEBUGINFOD_URLS set, libdw would ask there for the debug file of a stripped one. */
TEST_WITH(nothing_is_asked_over_the_network, make_directory, remove_directory)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    setenv("DEBUGINFOD_URLS", url, 1);
    setenv("DEBUGINFOD_CACHE_PATH", directory, 1);
    setenv("DEBUGINFOD_TIMEOUT", "1", 1);
    assert_int_equal(run("cp '%s' '%s'", LIBRARY_OLD, in_directory("lib.so")), 0);
    (void)run("strip -S -x '%s'", in_directory("lib.so"));
    struct objects *objects = new_objects(true);
    assert_null(getenv("DEBUGINFOD_URLS"));
    struct object_place place = {.file.path = in_directory("lib.so")};
    struct object *object = objects_find(objects, &place);
    for (uint64_t at = 0x1000; at < 0x1400; at += 16) {
        const struct object_inline *inlines;
        (void)object_is_root(object, at);
        (void)object_inlines(object, at, &inlines);
        (void)object_row(object, at);
    }
    objects_free(objects);
    struct pollfd asked = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&asked, 1, 0), 0);
    close(listener);
    unsetenv("DEBUGINFOD_CACHE_PATH");
}

/* ---- The kernel ---- */

static const struct kernel_place nowhere;

TEST_WITH(the_running_kernel_is_named, make_directory, remove_directory)
{
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct object *kernel = objects_kernel(objects, &nowhere);
    FILE *file = fopen("/proc/kallsyms", "re");
    char line[512];
    uint64_t address = 0;
    char name[256] = "";
    while (fgets(line, sizeof line, file)) {
        char type;
        if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) == 3 && type == 'T' &&
            strcmp(name, "do_exit") == 0) {
            break;
        }
        name[0] = '\0';
    }
    fclose(file);
    struct object_symbol symbol;
    if (address && name[0]) {
        assert_true(object_symbol(kernel, address + 4, &symbol));
        assert_string_equal(symbol.name, "do_exit");
        assert_true(symbol.address == address);
        assert_int_equal(object_state(kernel), OBJECT_SOUND);
    } else {
        assert_false(object_symbol(kernel, 0xffffffff81000000, &symbol));
        assert_non_null(strstr(object_why(kernel), "kptr_restrict"));
    }
}

static const char kallsyms[] = "ffffffff81000000 T _stext\n"
                               "ffffffff81000000 T _text\n"
                               "ffffffff81000100 t first\n"
                               "ffffffff81000200 D data\n"
                               "ffffffff81000300 W second\n"
                               "ffffffffc0000000 t in_module\t[mod]\n"
                               "ffffffffc0000040 t other\t[second_mod]\n";

static void write_kallsyms(void)
{
    scratch_write(in_directory("kallsyms"), kallsyms);
}

static struct object *kernel_from_cache(struct objects *objects, const struct id *id,
                                        const char *reference, uint64_t at)
{
    struct kernel_place place = {
        .id = id->bytes, .id_size = id->size, .reference = reference, .reference_address = at};
    return objects_kernel(objects, &place);
}

/* The kernel of a recording from elsewhere is in perf's cache. */
TEST_WITH(another_kernel_is_read_from_the_cache, make_directory, remove_directory)
{
    struct id id = {.bytes = {0xab, 0xcd}, .size = 20};
    struct object_symbol symbol;
    for (int i = 0; i < 20; i++) {
        snprintf(id.text + i * 2, 3, "%02x", id.bytes[i]);
    }
    struct objects *objects = new_objects(false);
    struct object *kernel = kernel_from_cache(objects, &id, NULL, 0);
    assert_false(object_symbol(kernel, 0xffffffff81000110, &symbol));
    assert_non_null(strstr(object_why(kernel), "another kernel"));
    objects_free(objects);

    write_kallsyms();
    put_into_cache(in_directory("kallsyms"), &id, "kallsyms");
    objects = new_objects(true);
    kernel = kernel_from_cache(objects, &id, "_text", 0xffffffff81000000);
    assert_true(object_symbol(kernel, 0xffffffff81000110, &symbol));
    assert_string_equal(symbol.name, "first");
    assert_true(symbol.size == 0x200); /* data is no function */
    assert_null(symbol.module);
    assert_true(object_symbol(kernel, 0xffffffff81000000, &symbol));
    assert_string_equal(symbol.name, "_text");
    assert_true(object_symbol(kernel, 0xffffffffc0000004, &symbol));
    assert_string_equal(symbol.module, "[mod]");
    assert_true(object_symbol(kernel, 0xffffffffc0000041, &symbol));
    assert_string_equal(symbol.module, "[second_mod]");
    assert_false(object_symbol(kernel, 0xffffffffc0010000, &symbol));
    /* What it made at run time. */
    assert_int_equal(objects_add_ksymbol(objects, 0xffffffffc0020000, 64, "bpf_prog_1234_x"), 0);
    assert_true(object_symbol(kernel, 0xffffffffc0020010, &symbol));
    assert_string_equal(symbol.name, "bpf_prog_1234_x");
    assert_int_equal(objects_add_ksymbol(objects, 0xffffffffc0001000, 64, "bpf_prog_0_y"), 0);
    assert_true(object_symbol(kernel, 0xffffffffc0001010, &symbol));
    assert_string_equal(symbol.name, "bpf_prog_0_y");
    assert_false(object_symbol(kernel, 0xffffffffc0020040, &symbol));
    objects_free(objects);

    /* Of another boot: the kernel lies elsewhere. */
    objects = new_objects(false);
    kernel = kernel_from_cache(objects, &id, "_text", 0xffffffff9a000000);
    assert_false(object_symbol(kernel, 0xffffffff9a000110, &symbol));
    assert_non_null(strstr(object_why(kernel), "another boot"));
    objects_free(objects);

    static const char *const broken[] = {"", "0000000000000000 T _text\n", "what is this\n",
                                         "ffffffff81000000\n", "ffffffff81000000 T"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        scratch_write(in_directory("kallsyms"), broken[i]);
        put_into_cache(in_directory("kallsyms"), &id, "kallsyms");
        objects = new_objects(false);
        kernel = kernel_from_cache(objects, &id, NULL, 0);
        assert_false(object_symbol(kernel, 0xffffffff81000110, &symbol));
        assert_string_not_equal(object_why(kernel), "");
        objects_free(objects);
    }
}

static const char *name_at(const struct kallsyms *names, uint64_t address)
{
    const struct symbol *symbol = symbols_at(&names->symbols, address);
    return symbol ? symbol_name(&names->symbols, symbol) : "";
}

/* What root's recordings keep: the same answers, without those of modules. */
TEST_WITH(the_kernels_own_names_are_kept_ready_to_be_asked, make_directory, remove_directory)
{
    struct kallsyms names;
    struct output_file *file;
    char path[PATH_MAX];
    write_kallsyms();
    assert_int_equal(kallsyms_read(in_directory("kallsyms"), &names), 0);
    snprintf(path, sizeof path, "%s", in_directory("ready"));
    assert_int_equal(output_file_open(path, &file), 0);
    kallsyms_put(&names, file);
    assert_int_equal(output_file_finish(file), 0);
    kallsyms_free(&names);
    assert_int_equal(kallsyms_map(path, &names), 0);
    assert_true(names.begin == 0xffffffff81000000);
    assert_string_equal(name_at(&names, 0xffffffff81000000), "_text");
    assert_string_equal(name_at(&names, 0xffffffff810002ff), "first");
    assert_string_equal(name_at(&names, 0xffffffff81000300), "second");
    assert_string_equal(name_at(&names, 0xffffffff81001fff), "second");
    assert_string_equal(name_at(&names, 0xffffffff81002000), "");
    assert_string_equal(name_at(&names, 0xffffffffc0000004), "");
    kallsyms_free(&names);

    /* Cut, out of order, with a name or a group that is not there. */
    uint8_t whole[4096];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ssize_t size = read(fd, whole, sizeof whole);
    assert_true(size > 0);
    const size_t first = 32;
    const struct {
        size_t at;
        uint8_t byte;
    } broken[] = {
        {0, 'x'},
        {12, 4}, /* one symbol more than there is room for */
        {first + sizeof(struct symbol) + offsetof(struct symbol, address) + 7, 0x0f},
        {first + offsetof(struct symbol, name) + 2, 1},
        {first + offsetof(struct symbol, group), 1},
        {first + offsetof(struct symbol, module), 1},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(pwrite(fd, &broken[i].byte, 1, (off_t)broken[i].at), 1);
        assert_int_equal(kallsyms_map(path, &names), -EINVAL);
        assert_int_equal(pwrite(fd, &whole[broken[i].at], 1, (off_t)broken[i].at), 1);
    }
    for (off_t cut = 0; cut < size; cut++) {
        assert_int_equal(ftruncate(fd, cut), 0);
        assert_int_equal(kallsyms_map(path, &names), -EINVAL);
        assert_int_equal(pwrite(fd, whole, (size_t)size, 0), size);
    }
    close(fd);
    assert_int_equal(kallsyms_map(in_directory("none"), &names), -ENOENT);
}

/* Where the running kernel has its _text; 0: it does not tell. */
static uint64_t own_text(void)
{
    char line[512];
    char name[256];
    uint64_t address = 0;
    bool found = false;
    FILE *file = fopen("/proc/kallsyms", "re");
    while (!found && fgets(line, sizeof line, file)) {
        found = sscanf(line, "%" SCNx64 " %*c %255s", &address, name) == 2 &&
                strcmp(name, "_text") == 0;
    }
    fclose(file);
    return found ? address : 0;
}

/* Of the running kernel itself a copy has what is always there, and modules are asked for anew. */
TEST_WITH(the_running_kernel_may_be_read_from_a_copy, make_directory, remove_directory)
{
    static const char note[] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU"; /* a build-id of 20 bytes */
    uint8_t notes[4096];
    struct id id = {.size = 20};
    FILE *file = fopen("/sys/kernel/notes", "re");
    size_t size = file ? fread(notes, 1, sizeof notes, file) : 0;
    const uint8_t *own = memmem(notes, size, note, sizeof note);
    if (file) {
        fclose(file);
    }
    if (!own) {
        skip();
    }
    for (int i = 0; i < 20; i++) {
        id.bytes[i] = own[sizeof note + (size_t)i];
        snprintf(id.text + i * 2, 3, "%02x", id.bytes[i]);
    }
    /* No kernel begins at the first: /proc/kallsyms is then of another boot. */
    const uint64_t texts[] = {0xffffffff80fffff1, own_text()};
    for (int i = 0; i < 2 && texts[i]; i++) {
        file = fopen(in_directory("kallsyms"), "we");
        fprintf(file,
                "%" PRIx64 " T _text\n%" PRIx64 " t only_in_copy\nffffffffff000000 t x\t[mod]\n",
                texts[i], texts[i] + 4);
        fclose(file);
        put_into_cache(in_directory("kallsyms"), &id, "kallsyms");
        OWN(objects_free) struct objects *objects = new_objects(true);
        struct object *kernel = kernel_from_cache(objects, &id, "_text", texts[i]);
        struct object_symbol symbol;
        assert_true(object_symbol(kernel, texts[i] + 4, &symbol));
        assert_string_equal(symbol.name, "only_in_copy");
        bool of_copy = object_symbol(kernel, 0xffffffffff000000, &symbol) && symbol.module &&
                       strcmp(symbol.module, "[mod]") == 0;
        assert_int_equal(of_copy, i == 0);
        assert_int_equal(object_state(kernel), OBJECT_SOUND);
        of_copy = object_symbol(kernel, texts[i] + 4, &symbol) &&
                  strcmp(symbol.name, "only_in_copy") == 0;
        assert_int_equal(of_copy, i == 0);
    }
}

TEST_WITH(stacks_end_in_start_routines, make_directory, remove_directory)
{
    OWN(objects_free) struct objects *objects = new_objects(true);
    struct mapped mapped;
    map_library(LIBRARY_OLD, &mapped);
    struct object *object = objects_find(objects, &mapped.place);
    assert_false(object_is_root(object, address_of(object, &mapped, "library_work")));
    /* By a handle of libc's: a sanitizer has functions of its own before libc's. */
    void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(handle);
    Dl_info info;
    assert_int_not_equal(dladdr(dlsym(handle, "gnu_get_libc_version"), &info), 0);
    char path[PATH_MAX];
    struct object_place place = {.file.path = realpath(info.dli_fname, path)};
    struct object *libc = objects_find(objects, &place);
    uint64_t clone_at = (uint64_t)(uintptr_t)dlsym(handle, "clone");
    uint64_t other_at = (uint64_t)(uintptr_t)dlsym(handle, "gnu_get_libc_version");
    uint64_t base = (uint64_t)(uintptr_t)info.dli_fbase;
    assert_true(object_is_root(libc, clone_at - base + 1));
    assert_false(object_is_root(libc, other_at - base + 1));
    dlclose(handle);
    dlclose(mapped.handle);
}

/* The CFA and what is saved at it, as libdw has them. */
static void hold_against_libdw(Dwarf_CFI *cfi, uint64_t address, const struct native_row *row)
{
    Dwarf_Frame *frame;
    Dwarf_Op memory[3];
    Dwarf_Op *ops;
    size_t count;
    if (row->signal) {
        return; /* behind its end, too */
    }
    assert_int_equal(row->found, dwarf_cfi_addrframe(cfi, address, &frame) == 0);
    if (!row->found) {
        return;
    }
    assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
    if (row->cfa.rule == NATIVE_REG) {
        assert_int_equal(ops->atom, DW_OP_bregx);
        assert_int_equal(ops->number, row->cfa.reg);
        assert_int_equal((int64_t)ops->number2, row->cfa.offset);
    }
    assert_int_equal(count, row->cfa.rule == NATIVE_REG ? 1 : row->cfa.length);
    for (unsigned i = 0; i < NATIVE_PLACES; i++) {
        int reg = (int)native_place_register(MACHINE, i);
        assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &count), 0);
        bool is_saved = count > 0 && ops[0].atom == DW_OP_call_frame_cfa;
        assert_int_equal(is_saved, row->places[i].rule == NATIVE_AT_CFA);
        if (is_saved) {
            assert_int_equal(count > 1 ? (int64_t)ops[1].number : 0, row->places[i].offset);
        }
    }
    free(frame);
}

/* What object_rows has said of a range up to there. */
struct rows_of_range {
    struct object *object;
    Dwarf_CFI *cfi; /* libdw's of the same file */
    struct native_row last;
    uint64_t at;
    unsigned changes, bare;
};

static int hold_against_addresses(void *context, uint64_t address, const struct native_row *row)
{
    struct rows_of_range *range = context;
    for (; range->at < address; range->at++) {
        const struct native_row *own = object_row(range->object, range->at);
        assert_int_equal(own->found, range->last.found);
        assert_int_equal(own->cfa.rule, range->last.cfa.rule);
        assert_int_equal(own->cfa.reg, range->last.cfa.reg);
        assert_int_equal(own->cfa.offset, range->last.cfa.offset);
        hold_against_libdw(range->cfi, range->at, own);
        for (int i = 0; own->found && i < NATIVE_PLACES; i++) {
            assert_int_equal(own->places[i].rule, range->last.places[i].rule);
            assert_int_equal(own->places[i].reg, range->last.places[i].reg);
            assert_int_equal(own->places[i].offset, range->last.places[i].offset);
        }
    }
    range->last = *row;
    range->changes++;
    range->bare += !row->found;
    return 0;
}

/* And libdw's. */
TEST_WITH(rows_of_a_range_are_those_of_its_addresses, make_directory, remove_directory)
{
    struct mapped mapped;
    Dl_info info;
    char path[PATH_MAX];
    assert_int_not_equal(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info), 0);
    assert_non_null(realpath(info.dli_fname, path));
    map_library(path, &mapped);
    OWN(objects_free) struct objects *objects = new_objects(true);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    struct rows_of_range range = {.object = objects_find(objects, &mapped.place),
                                  .cfi = dwarf_getcfi_elf(elf)};
    assert_non_null(range.cfi);
    uint64_t from = address_of(range.object, &mapped, "gnu_get_libc_version");
    uint64_t to = from + 0x4000;
    range.at = from;
    assert_int_equal(object_rows(range.object, from, to, hold_against_addresses, &range), 0);
    (void)hold_against_addresses(&range, to, &range.last);
    assert_true(range.changes > 100 && range.bare > 10);
    (void)dwarf_cfi_end(range.cfi);
    (void)elf_end(elf);
    close(fd);
    dlclose(mapped.handle);
}

/* As glibc 2.41 has them around its system call. */
TEST(labels_in_functions_are_no_names)
{
    static const char names[] = "\0function\0label\0behind\0next";
    struct symbols symbols = {.names[0] = {names, sizeof names}};
    symbols_add(&symbols, &(struct symbol){.address = 0x12e, .name = 10}); /* label */
    symbols_add(&symbols, &(struct symbol){.address = 0x100, .size = 0x2f, .name = 1});
    symbols_add(&symbols, &(struct symbol){.address = 0x12f, .name = 16}); /* behind */
    symbols_add(&symbols, &(struct symbol){.address = 0x140, .size = 8, .name = 23});
    symbols_finish(&symbols, 0x200, false);
    assert_string_equal(symbol_name(&symbols, symbols_at(&symbols, 0x12d)), "function");
    assert_string_equal(symbol_name(&symbols, symbols_at(&symbols, 0x12e)), "function");
    assert_string_equal(symbol_name(&symbols, symbols_at(&symbols, 0x12f)), "behind");
    assert_string_equal(symbol_name(&symbols, symbols_at(&symbols, 0x13f)), "behind");
    assert_string_equal(symbol_name(&symbols, symbols_at(&symbols, 0x140)), "next");
    symbols_free(&symbols);
}

/* In order up to some place, as the kernel's, and as a file's from the first on: of two at an
 * address the later one stays. */
TEST(symbols_are_in_order_and_the_later_of_two_wins)
{
    static const char names[] = "\0name";
    uint64_t seed = random_seed();
    for (int round = 0; round < 2000; round++) {
        struct symbols symbols = {.names[0] = {names, sizeof names}};
        uint16_t last[64] = {0}; /* by address */
        uint32_t count = 1 + random_below(&seed, 40);
        uint32_t ordered = random_below(&seed, count + 1);
        uint64_t address = 1;
        for (uint32_t i = 0; i < count; i++) {
            address = i >= ordered   ? 1 + random_below(&seed, 60)
                      : address < 60 ? address + random_below(&seed, 3)
                                     : address;
            last[address] = (uint16_t)(i + 1);
            symbols_add(&symbols,
                        &(struct symbol){
                            .address = address, .size = 1, .name = 1, .module = (uint16_t)(i + 1)});
        }
        symbols_finish(&symbols, 0x200, true);
        uint32_t at = 0;
        for (uint64_t k = 0; k < 64; k++) {
            if (last[k]) {
                assert_true(at < symbols.count);
                assert_int_equal(symbols.list[at].address, k);
                assert_int_equal(symbols.list[at++].module, last[k]);
            }
        }
        assert_int_equal(at, symbols.count);
        symbols_free(&symbols);
    }
}

/* The symbol at an address as all of them in a row tell it: slots[i] is what was added last at
 * BEGIN + 4 * i, with its number from 1 on. */
enum { SLOTS = 2000, BEGIN = 0x1000, END = 0x4000 };

static uint16_t sought(const struct symbol *slots, uint64_t address)
{
    uint64_t end = 0;
    const struct symbol *kept[SLOTS + 1];
    struct symbol behind = {.address = END};
    uint32_t count = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (slots[i].module && (slots[i].size || slots[i].address >= end)) {
            kept[count++] = &slots[i];
            end = slots[i].address + slots[i].size > end ? slots[i].address + slots[i].size : end;
        }
    }
    kept[count] = &behind;
    for (uint32_t i = count, left = 32; i-- > 0 && left;) {
        uint64_t size = kept[i]->size ? kept[i]->size : kept[i + 1]->address - kept[i]->address;
        if (address >= kept[i]->address && address - kept[i]->address < size) {
            return kept[i]->module;
        }
        left -= address >= kept[i]->address;
    }
    return 0;
}

/* What is put in order as it is asked for is what all in order tell: one name an address, nested
 * ones, ends of those without a size. */
TEST(symbols_asked_for_one_by_one_are_those_of_all)
{
    static const char names[] = "\0name";
    static struct symbol slots[SLOTS];
    uint64_t seed = random_seed();
    for (int round = 0; round < 200; round++) {
        struct symbols symbols = {.names[0] = {names, sizeof names}};
        uint32_t count = 1 + random_below(&seed, round % 10 ? 300 : 5000);
        uint32_t dense = 1 + random_below(&seed, round % 3 ? SLOTS : 20);
        memset(slots, 0, sizeof slots);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = random_below(&seed, dense);
            struct symbol *slot = &slots[at];
            *slot = (struct symbol){.address = BEGIN + 4 * (uint64_t)at,
                                    .size = slot->module
                                                ? slot->size
                                                : random_below(&seed, 3) * random_below(&seed, 40),
                                    .name = 1,
                                    .module = (uint16_t)(i + 1)};
            symbols_add(&symbols, slot);
        }
        symbols_ready(&symbols, END, true);
        for (uint32_t i = 0; i < 100; i++) {
            uint64_t address = BEGIN - 8 + random_below(&seed, 4 * dense + 200);
            const struct symbol *found = symbols_at(&symbols, address);
            assert_int_equal(found ? found->module : 0, sought(slots, address));
        }
        symbols_free(&symbols);
    }
}

/* Thousands at one place, and others as far away as there is: the work stays bounded. */
TEST(symbols_of_one_place_are_found)
{
    static const char names[] = "\0name";
    struct symbols symbols = {.names[0] = {names, sizeof names}};
    for (uint32_t i = 0; i < 300000; i++) {
        symbols_add(&symbols,
                    &(struct symbol){.address = i % 1000 ? i * UINT64_C(7) % 4096 : UINT64_MAX - i,
                                     .size = 1,
                                     .name = 1,
                                     .module = (uint16_t)(i % 1000 + 1)});
    }
    symbols_ready(&symbols, UINT64_MAX, true);
    assert_int_equal(symbols_at(&symbols, 7)->module, 10); /* 299,009 is the last one there */
    assert_int_equal(symbols_at(&symbols, UINT64_MAX - 5000)->module, 1);
    assert_null(symbols_at(&symbols, 5000));
    symbols_free(&symbols);
}

TEST_MAIN(NULL, NULL)
