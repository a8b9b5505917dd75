/*
 * The modules and methods of a recording, each once: whoever has the same pointer has the same
 * thing. They live as long as the recording is read, or until all of them go.
 */
#ifndef JD_TOOL_METHODS_H
#define JD_TOOL_METHODS_H

#include "jdtool/resolve/frame.h"

struct methods;

struct methods *methods_new(void);          /* NULL: no memory */
void methods_free(struct methods *methods); /* NULL is fine */

/* All go, modules and strings too; those that come are numbered from 0 again. */
void methods_clear(struct methods *methods);

uint32_t methods_count(const struct methods *methods);

/* A new module; the path is copied. NULL: no memory. */
struct module *methods_add_module(struct methods *methods, enum module_kind kind, const char *path);

/* The module of a file with this path and build-id (size 0: not known). NULL: no memory. */
struct module *methods_file_module(struct methods *methods, const char *path,
                                   const uint8_t *build_id, size_t size);

/* What a method is known by. Strings are copied. */
struct method_facts {
    enum resolved_kind kind; /* COMPILED for inlined ones, too */
    const char *name;
    const char *file; /* NULL: not known */
    uint32_t first_line;
    const struct module *module; /* may be NULL */
    uint64_t address;            /* of native functions; 0 for others */
    uint64_t size;
};

/*
 * The method with these facts, but for line and size, which are those of the first. A Java method's
 * name is taken apart. NULL: no memory.
 */
const struct resolved_method *methods_of(struct methods *methods, const struct method_facts *facts);

/* A string, kept once. NULL: no memory. */
const char *methods_string(struct methods *methods, const char *text);

/* Pieces of the name; a missing one has size 0. */
struct java_name {
    const char *class_name; /* as written: of names=jvm with slashes */
    size_t class_size;
    const char *method;
    size_t method_size;
    const char *descriptor; /* from the parenthesis on */
    size_t descriptor_size;
};

/*
 * Takes a method's name apart, in whatever form the agent wrote it:
 *
 *     names=java    pkg.Cls.m(int,java.lang.String)
 *     names=short   Cls.m
 *     names=jvm     Lpkg/Cls;m(ILjava/lang/String;)V
 *
 * False: it has none of these forms; *out is then all zero.
 */
bool java_name_split(const char *name, struct java_name *out);

#endif
