/*
 * The table of methods, jit-PID.methods: which method of which class HotSpot's `Method` at an
 * address was, where its bytecodes lay, and its lines. An interpreted frame holds no more than
 * these two addresses, so this is what gives it a name. It stands beside the dump of the same
 * process; the agent writes it with methods=on, jdtool inject reads it.
 *
 * The file is a header, behind whose fixed part stands what the JVM runs (its main class or jar,
 * and a NUL; nothing: not known), and records, each one appended with one write. All integers of
 * fixed size are in the byte order of the machine that wrote the file; the magic tells which.
 * Behind a record's fixed part everything is LEB128 (leb128.h) and NUL-terminated UTF-8.
 *
 * A record tells of one class:
 *
 *   source file NUL   package path + SourceFile as in the dump; "" when unknown
 *   methods           until the record ends:
 *       sleb  address of the Method minus that of the record's previous one (the first: minus 0)
 *       sleb  address of its first bytecode minus that of the Method
 *       uleb  bytes of bytecode; 0: native
 *       name NUL      as symbols show it
 *       uleb  rows of the line table, then for each, in the order of bci:
 *           uleb  bci minus the previous row's (the first: minus 0)
 *           sleb  line minus the previous row's
 *
 * Classes are unloaded and their memory is used again: what an address means at a time is what the
 * last record up to then says of it, else the first one if that is METHODS_FOUND. A METHODS_FOUND
 * record that follows may be of that time, too: then the bytecodes' addresses tell.
 *
 * A METHODS_LACKS record is a byte of enum methods_lack: events that the session's options asked
 * for and that the JVM does not provide, because another agent has them, or it has none.
 *
 * The table of a later segment tells of all that live once more, which takes a while: a METHODS_ALL
 * record of a time behind the last record of the table before ends that.
 */
#ifndef JD_FORMAT_METHODS_H
#define JD_FORMAT_METHODS_H

#include <stddef.h>
#include <stdint.h>

#define METHODS_MAGIC         0x4A644D74u /* "JdMt" */
#define METHODS_MAGIC_SWAPPED 0x744D644Au
#define METHODS_VERSION       1

/* methods_header.flags: time stamps are the processor's own, as in the dump. */
#define METHODS_FLAGS_ARCH_TIMESTAMP (UINT64_C(1) << 0)

/* The most of what the JVM runs, NUL included. */
#define METHODS_PROGRAM_MAX 128

struct methods_header {
    uint32_t magic;
    uint32_t version;
    uint32_t total_size; /* bytes of this header; a reader skips what it does not know */
    uint32_t pid;        /* as the writing process sees itself */
    uint64_t timestamp;
    uint64_t flags;
};

enum methods_record_id {
    METHODS_PREPARED = 1, /* the class became ready to run at the record's time */
    METHODS_FOUND = 2,    /* it was there already, nobody knows since when */
    METHODS_ALL = 3,      /* no class: all that live have been told of since the record's time */
    METHODS_LACKS = 4,    /* no class: events that were asked for in vain */
};

enum methods_lack {
    METHODS_LACKS_ALLOC = 1,
    METHODS_LACKS_LOCK = 2,
};

struct methods_record {
    uint32_t id;         /* enum methods_record_id; a reader skips others */
    uint32_t total_size; /* bytes, this prefix included */
    uint64_t timestamp;
};

_Static_assert(sizeof(struct methods_header) == 32, "methods_header");
_Static_assert(offsetof(struct methods_header, timestamp) == 16, "methods_header.timestamp");
_Static_assert(sizeof(struct methods_record) == 16, "methods_record");

#endif
