/*
 * What HotSpot knows of its code and its methods beyond what it tells through JVMTI: tier, on-stack
 * replacement, frame size, entry points, which Method a piece of code was compiled from and which
 * it inlined, where the bytecodes of a class's methods are. Read out of the JVM's own structures by
 * the layout tables that it exports for the serviceability agent (gHotSpotVMStructs and its like).
 *
 * Nothing depends on it: in a JVM that has no tables, or has other fields or types than those we
 * know, the facts stay unknown, and JVMTI tells the rest. Nor does it depend on the tables being
 * true: every pointer is followed by way of the kernel, which
 * survives any, and what is found is held against what JVMTI says (agent/methods/proof.h). No
 * jmethodID is ever followed: from JDK 26 on it is a number.
 *
 * This room knows neither JVMTI nor JNI: from outside of a JVM there are none. Addresses are the
 * JVM's, of 64 bits, and read by way of one interface (hotspot/memory.h).
 *
 * Every function may be called on any thread. Where a parameter may be NULL it says so.
 */
#ifndef JD_AGENT_HOTSPOT_H
#define JD_AGENT_HOTSPOT_H

#include "agent/hotspot/line_table.h"
#include "hotspot/memory.h"
#include "writer/code.h"

/* This process's memory. Takes two file descriptors for as long as it lives. NULL: no memory or no
 * descriptors. */
struct memory *memory_own_new(void);

/*
 * What is mapped from an address on, in whole pages, stays for as long as the process lives, though
 * some of it may not be readable. Of this process's memory, told once: the kernel is asked for each
 * page of it once, and it is copied without the kernel from then on.
 */
void memory_lasts(struct memory *memory, uint64_t from, uint64_t until);
void memory_free(struct memory *memory); /* NULL is fine */

struct hotspot;

/* Finds the tables of this process's JVM of that major version, `function` being one of its
 * library's. NULL: it has none that we understand, or no memory. */
struct hotspot *hotspot_new(const void *function, int major);
void hotspot_free(struct hotspot *hotspot); /* NULL is fine */

/*
 * Which memory a callback, or all of a replay's, may read where it is (hotspot_nearby.c). It
 * belongs to one callback at a time. NULL, where one is asked for, is as good but slower.
 */
struct hotspot_nearby;
struct hotspot_nearby *hotspot_nearby_new(void);         /* NULL: no memory */
void hotspot_nearby_free(struct hotspot_nearby *nearby); /* NULL is fine */

/*
 * A callback begins that tells of the code of `size` bytes at `code`, which can be read, and which
 * the JVM keeps for as long as the callback lasts, with all that it mentions. hotspot may be NULL.
 * `replay`: what the callbacks of one replay have in common and those of no other, where the JVM
 * gathered all code before it told of the first, and keeps all of it alive until it has told of it;
 * 0: one that is not so, and the replay before has ended.
 */
void hotspot_nearby_begin(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                          uint64_t replay, uint64_t code, uint64_t size);

/* Whether what the code mentions is read where it is, and HotSpot's own word for a method costs
 * less than JVMTI's. */
bool hotspot_nearby_in_place(const struct hotspot_nearby *nearby);

/* ---- Code (hotspot.c, hotspot_scopes.c) ---- */

/*
 * Fills in what can be known of the code at `address`, which must be alive: call it in the JVMTI
 * callback that tells of the code. Leaves the rest of *facts as it is. hotspot may be NULL.
 */
void hotspot_facts(struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t address,
                   uint64_t size, struct code_facts *facts);

/* What the code of a Java method is made of. All zeroes: not known. */
struct hotspot_nmethod {
    uint64_t method; /* HotSpot's Method that it was compiled from */
    uint64_t data;   /* PcDescs and scopes, in whatever order, at these offsets */
    size_t data_size;
    size_t pcs_at;
    size_t scopes_at;
    uint64_t metadata; /* an array of pointers, Methods among them */
    size_t metadata_count;
};

/* The same for code that belongs to a Java method, and what it is made of. */
void hotspot_compiled_facts(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                            uint64_t address, uint64_t size, struct code_facts *facts,
                            struct hotspot_nmethod *nmethod);

/*
 * The number of the compilation whose code starts at `address`, and which calls of its method go
 * to. -1: there is none, nothing is in use, only code that was entered in mid-method is, or it is
 * not to be had. The address may be anybody's by now. hotspot may be NULL.
 */
int32_t hotspot_compilation_in_use(struct hotspot *hotspot, uint64_t address);

/*
 * What an nmethod says of its places, as it is read: each place has an innermost scope, a method at
 * a bytecode, and each scope has a sender. Set it to all zeroes at first; it keeps its memory from
 * one nmethod to the next.
 */
struct hotspot_scopes {
    const struct hotspot *hotspot;
    const struct hotspot_nmethod *nmethod;
    const char *data;     /* of the nmethod: where it is, or a copy */
    const char *metadata; /* likewise */
    size_t at, end;       /* of the places in the data */
    unsigned excluded;    /* see unsigned5.h */
    int bare;             /* places without a scope so far */
    bool believed;        /* others have been as JVMTI told it */
    char *copy;           /* of PcDescs and scopes, and behind them the metadata */
    size_t copy_room;
};

struct hotspot_scope {
    uint32_t sender; /* 0: none */
    int32_t bci;     /* -1: none */
    uint64_t method; /* a Method */
};

/* Whether an nmethod's may be read. hotspot may be NULL. */
bool hotspot_knows_scopes(const struct hotspot *hotspot, const struct hotspot_nmethod *nmethod);

/* Begins to read them, while the nmethod lives. False: they are not to be had, or no memory. */
bool hotspot_scopes_begin(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                          const struct hotspot_nmethod *nmethod, struct hotspot_scopes *scopes);

/* The next place: the offset of its pc, which ends the range that it stands for, and its innermost
 * scope; 0: there was none left. False: that makes no sense. */
bool hotspot_scopes_next(struct hotspot_scopes *scopes, int32_t *end, uint32_t *scope);

/* What a scope says. False: that makes no sense. */
bool hotspot_scopes_at(const struct hotspot_scopes *scopes, uint32_t number,
                       struct hotspot_scope *scope);

void hotspot_scopes_free(struct hotspot_scopes *scopes);

/* Whether what was read was as JVMTI told it. When it is not so at first nothing is read any more,
 * and a message says so; when it has been so of several, not all of it is compared any more. */
void hotspot_scopes_were(struct hotspot *hotspot, bool as_told);

/* ---- Methods (hotspot_class.c, hotspot_method.c) ---- */

/*
 * Until somebody has held what we read of a class against what JVMTI says of it, nothing below is
 * to be believed; when the two differ it never is, and a message says so. Only the first word
 * counts, but for a later one that they differ.
 */
void hotspot_methods_were(struct hotspot *hotspot, bool as_told);

/* Whether it has been: so interpreted frames can be named. hotspot may be NULL. */
bool hotspot_knows_methods(const struct hotspot *hotspot);

/* Whether it may come to be, or has been. hotspot may be NULL. */
bool hotspot_may_know_methods(const struct hotspot *hotspot);

/* One method as HotSpot has it. The text is modified UTF-8. */
struct hotspot_method {
    uint64_t address;   /* of the Method, as an interpreted frame has it */
    uint64_t bytecodes; /* address of the first one, as an interpreted frame has it */
    uint32_t bytecode_size;
    bool native;
    bool private_static; /* see agent/methods/source_name.h */
    uint64_t pool;       /* its ConstantPool, which the methods of its version of the class share */
    const char *name;
    const char *descriptor;
    struct line_entry *lines; /* in the order of line_table_sort */
    uint32_t line_count;
    uint64_t identity; /* a hash: another method at the address has another one */
};

/* What has been read; it keeps its memory from one call to the next. Set it to all zeroes at first.
 */
struct hotspot_methods {
    struct hotspot_method *methods;
    size_t count;
    struct hotspot_workspace *workspace;
};

/* So many classes are read at once at most; what costs is not the bytes but the number of reads. */
enum { HOTSPOT_CLASSES_MAX = 32 };

/*
 * Reads the methods that classes have now, by their Klasses, with those that no id was ever made
 * for: those of one class behind those of another, counts[i] of them the i-th class's. The classes
 * are prepared, no arrays and no primitive types. `brief`: no more than addresses and identities,
 * in a fraction of the time. False: those of one of them are not to be had; each alone may tell
 * which. hotspot may be NULL.
 */
bool hotspot_class_methods(struct hotspot *hotspot, const uint64_t *klasses, size_t count,
                           bool brief, struct hotspot_methods *methods, size_t *counts);

/*
 * Of each class, or earlier version of one, the version that a redefinition has replaced and
 * threads still run, another Klass; 0: there is none. False: not to be had. hotspot may be NULL.
 */
bool hotspot_versions_before(struct hotspot *hotspot, const uint64_t *klasses, size_t count,
                             uint64_t *versions);

/* hotspot_class_methods, not brief, of an earlier version of the class with that Klass. */
bool hotspot_version_methods(struct hotspot *hotspot, uint64_t version, uint64_t klass,
                             struct hotspot_methods *methods);

/* Reads one method that is kept alive by code that was compiled from it. False: not to be had. */
bool hotspot_one_method(struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t method,
                        struct hotspot_methods *methods);

void hotspot_methods_free(struct hotspot_methods *methods);

/* How a Method that code was compiled from and the id that JVMTI tells of it go together. */
enum hotspot_bond {
    HOTSPOT_UNKNOWN,
    HOTSPOT_SAME,    /* JVMTI's answers about the id are about that Method */
    HOTSPOT_ANOTHER, /* they are about another one: see agent/methods/method_cache.c */
};

/*
 * Tells it for a Method that is alive, and the number that a jmethodID is. *class_key is something
 * that the methods of its class have in common, and those of no other class or version of it, for
 * as long as one of them is alive; 0: unknown. hotspot may be NULL, and method 0.
 */
enum hotspot_bond hotspot_bond(struct hotspot *hotspot, struct hotspot_nearby *nearby,
                               uint64_t method, uint64_t id, uint64_t *class_key);

/* The same for who finds out whether it is to be believed: of a class's method, not of code's. */
enum hotspot_bond hotspot_bond_in_class(struct hotspot *hotspot, uint64_t method, uint64_t id);

/* The offset in a java.lang.Class at which its Klass is; 0: not to be had. */
int64_t hotspot_klass_offset(const struct hotspot *hotspot);

/* Bytes of an object of the class with that Klass; -1: not to be had. */
int32_t hotspot_object_size(const struct hotspot *hotspot, uint64_t klass);

/* Whether the JVM's flag of that name is on, as far as can be told; else what is said here. */
bool hotspot_flag_is_on(const struct hotspot *hotspot, const char *name, bool otherwise);

/* ---- Threads ---- */

/*
 * The kernel's id of the thread that a JavaThread (Thread.eetop in Java) stands for, which may be
 * about to end: it did exist if eetop is still the same afterwards. 0: not to be had. hotspot may
 * be NULL.
 */
uint32_t hotspot_thread_id(const struct hotspot *hotspot, uint64_t java_thread);

/*
 * Where the frame record stands, frame pointer and return address, that leads to the innermost Java
 * frame of a thread which is in the JVM or in native code: below that frame, by its frame anchor,
 * where the anchor says the same as stands there. 0: it is not so. hotspot may be NULL.
 */
uint64_t hotspot_thread_record(const struct hotspot *hotspot, uint64_t java_thread);

#endif
