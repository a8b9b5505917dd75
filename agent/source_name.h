/*
 * names=source: what Kotlin, Scala and Clojure code is called in its source. Their compilers spell
 * what the class file format or Java would not have as '$plus', '-impl', '_BANG_' and the like;
 * this undoes it, as far as the spelling tells. The class's SourceFile attribute says which
 * language it was.
 *
 *   Scala    pkg.Vec$.$plus$plus(int)              pkg.Vec.++(int)
 *            pkg.Vec.$anonfun$map$3(int)           pkg.Vec.map.{lambda#3}(int)
 *   Kotlin   pkg.UtilKt.greet(int)                 pkg.greet(int)
 *            pkg.Shop$sell$1.invokeSuspend(...)    pkg.Shop.sell.{lambda#1}(...)
 *   Clojure  my_app.core$valid_QMARK_.invoke(...)  my-app.core/valid?
 */
#ifndef JD_AGENT_SOURCE_NAME_H
#define JD_AGENT_SOURCE_NAME_H

#include <stddef.h>

enum source_language {
    SOURCE_OTHER, /* Java, or one whose names are left alone */
    SOURCE_KOTLIN,
    SOURCE_SCALA,
    SOURCE_CLOJURE,
};

/* By the file's extension. NULL: SOURCE_OTHER. */
enum source_language source_language(const char *source_file);

/*
 * The name of a method, from its parts as names=java has them: "pkg.Cls", "m", "(int, long)". Valid
 * UTF-8 in, valid UTF-8 out; writes at most `room` bytes with the NUL, and returns the whole
 * result's bytes without it, as snprintf does.
 */
size_t source_name(char *out, size_t room, enum source_language language, const char *class_name,
                   const char *method, const char *parameters);

#endif
