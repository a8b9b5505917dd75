/*
 * Takes a method's name apart, in whatever form the agent wrote it:
 *
 *     names=java    pkg.Cls.m(int,java.lang.String)
 *     names=short   Cls.m
 *     names=jvm     Lpkg/Cls;m(ILjava/lang/String;)V
 */
#ifndef JD_TOOL_JAVA_NAME_H
#define JD_TOOL_JAVA_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Pieces of the name; a missing one has size 0. */
struct java_name {
    const char *class_name; /* as written: of names=jvm with slashes */
    size_t class_size;
    const char *method;
    size_t method_size;
    const char *descriptor; /* from the parenthesis on */
    size_t descriptor_size;
};

/* False: it has none of these forms; *out is then all zero. */
bool java_name_split(const char *name, struct java_name *out);

#endif
