/*
 * Files by identity: which ELF file was mapped into a process, the kernel included, and what it
 * says of an address: the function, the source line, what was inlined there, the caller's frame.
 *
 * A path is not a file. A library is replaced while its process lives, a container has other files
 * under the same names, and a recording is read days later. So a file is what its build-id says,
 * and one that does not bear it is refused: names and frames of another file are worse than none.
 *
 * Where a file is looked for, in this order, each checked before it is believed:
 *
 *     /proc/PID/map_files/START-END    the very file, while the process lives (root only)
 *     /proc/PID/root/PATH              as the process sees it, a container's included
 *     PATH                             of this machine
 *     DIR/.build-id/xx/yyy/            what perf record put aside (~/.debug, --buildid-dir)
 *     /usr/lib/debug/.build-id/xx/yyy.debug, .gnu_debuglink    symbols and DWARF of a stripped file
 *     .gnu_debugdata                   the symbols that Fedora leaves in it
 *
 * Nothing is ever asked over the network. Files are taken for hostile: opened without waiting, only
 * regular ones, mapped only when nobody but root and ourselves can shorten them, bounds and limits
 * everywhere.
 *
 * Memory: a struct object is small and lives as long as somebody has it from objects_find, and of
 * those that nobody has any more the last OBJECTS_IDLE_MAX, for files that short-lived processes
 * map come again (at most OBJECTS_MAX; what comes then shares one that cannot be read). Behind it
 * an open file with its tables, of which the least recently used are closed and opened again when
 * they are asked for: OBJECTS_OPEN_MAX files and about OBJECTS_BYTES_MAX bytes. Nothing is kept per
 * sample.
 *
 * Addresses are the file's own (ELF virtual addresses, as nm prints them); object_address makes one
 * of an offset in the file. The kernel's are those it ran at. One thread at a time.
 */
#ifndef JD_TOOL_OBJECTS_H
#define JD_TOOL_OBJECTS_H

#include "jdtool/base/file_identity.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECTS_MAX       65536
#define OBJECTS_IDLE_MAX  1024
#define OBJECTS_OPEN_MAX  256
#define OBJECTS_BYTES_MAX (UINT64_C(192) << 20)

/* DWARF that lies compressed in a file and takes more unpacked is not read, and that is told. So is
 * what is not compressed where objects are sparing; else it is mapped and has no such bound. */
#define OBJECT_DWARF_MAX (UINT64_C(64) << 20)

#define OBJECT_PATIENCE (UINT64_C(60) * 1000000000)

struct objects;
struct object;

/* The e_machine of what runs here. */
#ifdef __aarch64__
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_X86_64
#endif

struct objects_options {
    unsigned machine;         /* e_machine of the recording; a file of another one is refused */
    const char *build_id_dir; /* where perf record put copies; NULL: $HOME/.debug */
    /* The recording's kernel (HEADER_OSRELEASE); NULL: not known, then our own is not believed. */
    const char *os_release;
    /* The processes are this machine's and may live: /proc is asked. False for a recording that was
     * brought here from elsewhere (another HEADER_HOSTNAME), whose pids mean nothing. */
    bool here;
    bool live;    /* it is being made: what is kept of the running kernel is of its kernel */
    bool sparing; /* memory matters more than the lines of the largest files */
    /* ns of the processor's time for the lines of one file, beyond which it has none, as is told.
     * 0: OBJECT_PATIENCE. */
    uint64_t patience;
};

/* Strings are copied. 0 or -ENOMEM. Takes DEBUGINFOD_URLS out of the environment (nothing here
 * asks the network, and the libraries below shall not either). */
int objects_new(const struct objects_options *options, struct objects **out);
void objects_free(struct objects *objects); /* NULL is fine */

/*
 * An entry of the recording's list of build-ids (HEADER_BUILD_ID, or PERF_RECORD_HEADER_BUILD_ID of
 * a pipe): what perf found under this path when it had ended. Serves mappings that carry no id of
 * their own; a path with several ids serves none. Objects found before stay as they are. 0 or
 * -ENOMEM.
 */
int objects_list_build_id(struct objects *objects, const char *path, const uint8_t *id,
                          size_t size);

/* What a mapping tells of its file. */
struct object_place {
    struct file_identity file;
    uint32_t pid;        /* as perf saw it; 0: of no process */
    uint64_t start, end; /* where it was mapped; 0: not known */
    /* Set by objects_find: the build-id is not the mapping's: the path had it when the recording
     * ended. */
    bool id_is_listed;
};

/*
 * The object of a mapping: always the same one for the same build-id and path, or without an id for
 * the same device, inode and path. Opens nothing, costs one look into a map. Never NULL; keep it
 * with the mapping, and let it go with that.
 */
struct object *objects_find(struct objects *objects, const struct object_place *place);
void objects_let_go(struct objects *objects, struct object *object);

/*
 * Finds and opens the file now instead of at the first question: for a process that may end soon,
 * and whose files may then be out of reach. False: it cannot be read, object_why tells.
 */
bool object_open(struct object *object);

/* ---- The kernel ---- */

/* What a recording tells of its kernel: the MMAP record of "[kernel.kallsyms]_text". */
struct kernel_place {
    const uint8_t *id; /* NULL with size 0: not recorded */
    uint8_t id_size;
    const char *reference;      /* the symbol it names, "_text", "_stext"; NULL: not known */
    uint64_t reference_address; /* where that was, moved by KASLR; 0: not known */
};

/*
 * The kernel and its modules as one object. Names come from /proc/kallsyms when the recording is of
 * the kernel that runs here (its build-id, else its release; and the reference symbol lies where it
 * did), else from the kallsyms that perf put aside, else from a vmlinux of that build-id. Where
 * that copy is of the same boot, the running kernel's own functions are read from it. Never NULL.
 * Ask once, and again when the place becomes known: the same object then gets it.
 */
struct object *objects_kernel(struct objects *objects, const struct kernel_place *place);

#define KERNEL_COPY "/run/jdagent/kernel-names-" /* and the kernel's build-id */

/* Where root's recordings keep the running kernel's names for as long as it runs (kallsyms_map).
 * False: that is not known. */
bool objects_kernel_copy(char path[PATH_MAX]);

/* A function that the kernel made at run time (PERF_RECORD_KSYMBOL: BPF programs, trampolines).
 * 0 or -ENOMEM; the name is copied. */
int objects_add_ksymbol(struct objects *objects, uint64_t address, uint32_t size, const char *name);

/* ---- What an object is ---- */

enum object_state {
    OBJECT_UNTRIED,  /* not opened yet */
    OBJECT_SOUND,    /* its file was found */
    OBJECT_NONE,     /* anonymous memory, "[stack]", "//anon": there is no file */
    OBJECT_MISSING,  /* nothing is at any of the places */
    OBJECT_REFUSED,  /* what is there is another file: its build-id or inode differs */
    OBJECT_DENIED,   /* we may not read it */
    OBJECT_UNSOUND,  /* no regular file, no ELF file of that machine, or beyond a limit */
    OBJECT_TOO_MANY, /* more than OBJECTS_MAX files */
    OBJECT_STATES,
};

/* In words, with what would help ("... record with --buildid-all ..."); "" for one that is sound.
 * Lives as long as the object. */
const char *object_why(const struct object *object);

/* No other object has it, had it or will have it: from 0, in the order of objects_find. */
uint32_t object_id(const struct object *object);

/* The build-id, as recorded or else as the file has it. Returns its size; 0: none. */
size_t object_build_id(const struct object *object, uint8_t id[BUILD_ID_MAX]);

/*
 * The file's address of a byte that is `file_offset` bytes into it (for a mapping: address - start
 * + its file offset). False: no segment of the file holds it, or the file cannot be read.
 */
bool object_address(struct object *object, uint64_t file_offset, uint64_t *address);

/* ---- Names ---- */

struct object_symbol {
    uint64_t address; /* where the function begins */
    uint64_t size;    /* never 0: of symbols without one, up to the next symbol */
    const char *name; /* as the file has it; lives until the next call for any of the objects */
    const char
        *module; /* the kernel's: "[nf_tables]", "[bpf]"; NULL: the kernel proper, or a file */
};

/* The function an address lies in. False: none is known. */
bool object_symbol(struct object *object, uint64_t address, struct object_symbol *symbol);

/*
 * The text that an array of pointers ("const char *names[]") holds at an index, by the name of its
 * symbol in .symtab. Copied with its end. False: there is none, or no room. Costs a walk through
 * the file's symbols.
 */
bool object_table_text(struct object *object, const char *symbol, uint32_t index, char *out,
                       size_t room);

/*
 * A symbol's name as people read it, C++ and Rust demangled with their parameters
 * ("G1Allocator::unsafe_max_tlab_alloc()"); names that are not mangled are returned as they are.
 * Costs microseconds: ask once per function. Lives until the next call.
 */
const char *objects_demangle(struct objects *objects, const char *name);

/* A function or what was inlined into it. */
struct object_inline {
    const char *name;    /* as objects_demangle has it; NULL: the DWARF does not tell */
    const char *file;    /* of the line; NULL: not known */
    uint32_t line;       /* in this function, at the address; 0: not known */
    uint32_t first_line; /* where it is declared; 0: not known */
};

#define OBJECT_INLINES_MAX 64 /* what lies deeper is joined with its caller */

/*
 * The functions that an address belongs to by the DWARF, innermost first, the last one being the
 * function itself, which object_symbol names, too. Returns their number; 0: no DWARF for it.
 * *inlines lives until the next call for any of the objects. Answers are kept, in bounds, so the
 * same address is cheap when asked again.
 */
size_t object_inlines(struct object *object, uint64_t address,
                      const struct object_inline **inlines);

/* ---- Frames ---- */

struct native_row; /* frame_row.h */

/* The call-frame row at an address: of .eh_frame, else .debug_frame. Never NULL, `found` tells
 * whether there is one, `lasts` whether it lives as long as the objects; else it does until the
 * next call for any of them. */
const struct native_row *object_row(struct object *object, uint64_t address);

/*
 * Gives the rows of .eh_frame for a range of its addresses: in the order of addresses (cfi_rows.h).
 * -ENOENT: the file cannot be read, is of another machine, or has none.
 */
int object_rows(struct object *object, uint64_t from, uint64_t to,
                int (*take)(void *context, uint64_t address, const struct native_row *row),
                void *context);

/* Whether threads or processes begin there: start_thread, clone, _start and the like. A stack that
 * ends anywhere else was cut short. A stripped C library is judged by where it was found. */
bool object_is_root(struct object *object, uint64_t address);

/* Closes the debug information that nobody asked since the last call, which for a large file is
 * most of what it takes; it is opened again when it is asked for. */
void objects_rest(struct objects *objects);

/* ---- What went wrong ---- */

/*
 * Tells the user, once per file and most asked for first, which files could not be used and what
 * would help; a line counts those beyond the first few. So it does of files whose DWARF was left
 * out. For the end of a run.
 */
void objects_tell(struct objects *objects);

#endif
