/*
 * names=source: what Kotlin, Scala, Clojure and Groovy code is called in its source. Their
 * compilers spell what the class file format or Java would not have as '$plus', '-impl', '_BANG_'
 * and the like; this undoes it, as far as the spelling tells. The class's SourceFile attribute says
 * which language it was. What the compiler made and nobody named stands in braces.
 *
 *   Scala    pkg.Vec$.$plus$plus(int)              pkg.Vec.++(int)
 *            pkg.Vec.$anonfun$map$3(int)           pkg.Vec.map.{lambda#3}(int)
 *   Kotlin   pkg.UtilKt.greet(int)                 pkg.greet(int)
 *            pkg.Shop$sell$1.invokeSuspend(...)    pkg.Shop.sell.{lambda#1}(...)
 *   Clojure  my_app.core$valid_QMARK_.invoke(...)  my-app.core/valid?
 *   Groovy   pkg.Shop$_sell_closure2.doCall(int)   pkg.Shop.sell.{closure#2}(int)
 *
 * tests/golden/source_names.tsv has what their compilers really make, and what becomes of it.
 */
#ifndef JD_AGENT_SOURCE_NAME_H
#define JD_AGENT_SOURCE_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum source_language {
    SOURCE_OTHER, /* Java, or one whose names are left alone */
    SOURCE_KOTLIN,
    SOURCE_SCALA,
    SOURCE_CLOJURE,
    SOURCE_GROOVY,
};

/* By the file's extension. NULL: SOURCE_OTHER. */
enum source_language source_language(const char *source_file);

/* A method, in the parts that names=java has: "pkg.Cls", "m", "(int, long)". Valid UTF-8. */
struct source_method {
    const char *class_name;
    const char *method;
    const char *parameters;
    bool is_private_static; /* as Kotlin makes functions inside of functions, and no others whose
                               names have a '$' */
};

/*
 * Writes the method's name, valid UTF-8, at most `room` bytes with the NUL, and returns the whole
 * result's bytes without it, as snprintf does.
 */
size_t source_name(char *out, size_t room, enum source_language language,
                   const struct source_method *method);

#endif
