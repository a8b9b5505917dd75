/*
 * Readable names out of the JVM's: class signatures, method names and descriptors come in modified
 * UTF-8 (JVMS 4.4.7: NUL as C0 80, characters beyond the BMP as two surrogates of three bytes) and
 * go out as valid UTF-8 on one line.
 *
 * Every function here writes at most `room` bytes, the NUL included, never cuts a character in two,
 * and returns the bytes of the whole result without its NUL, as snprintf does: a return of `room`
 * or more says how much room to come back with. `room` may be 0.
 *
 * Control characters and line separators come out as \uXXXX, what is no UTF-8 of either kind as
 * U+FFFD.
 */
#ifndef JD_AGENT_SYMBOL_NAME_H
#define JD_AGENT_SYMBOL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Room for any symbol worth showing: a descriptor may have 64 KB, but perf keeps a name's length in
 * 16 bits. Callers cut here.
 */
enum { SYMBOL_MAX = 4096 };

enum name_style {
    NAMES_JAVA,   /* pkg.Cls.m(int, java.lang.String[]) */
    NAMES_SHORT,  /* Cls.m */
    NAMES_JVM,    /* Lpkg/Cls;m(I[Ljava/lang/String;)V */
    NAMES_SOURCE, /* as java, but for what source_name.h knows better */
};

/*
 * The symbol of a method. `class_signature` is JVMTI's ("Lpkg/Cls;"), `descriptor` the method's
 * ("(I)V"). With `normalize`, the parts of the class's name that differ from run to run are left
 * out, see symbol_class_name.
 */
size_t symbol_method_name(char *out, size_t room, enum name_style style, bool normalize,
                          const char *class_signature, const char *method, const char *descriptor);

/*
 * The class's name as Class.getName() gives it: "pkg.Cls", and for hidden classes
 * "pkg.Cls$$Lambda/0x00007f…". With `normalize` that suffix goes, and the running numbers of
 * $$Lambda$14, $Proxy7 and GeneratedMethodAccessor12 with it.
 */
size_t symbol_class_name(char *out, size_t room, bool normalize, const char *class_signature);

/* Package path + SourceFile: "java/util/HashMap.java". */
size_t symbol_source_path(char *out, size_t room, const char *class_signature,
                          const char *source_file);

/* Any text of the JVM's, such as a stub's name, as it is but for the characters. */
size_t symbol_text(char *out, size_t room, const char *text);

#endif
