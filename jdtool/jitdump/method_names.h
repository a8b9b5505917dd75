/*
 * Reads a table of methods (format/methods.h) and tells which method HotSpot's Method at an address
 * was at a time. The file is taken for hostile; what of it is broken ends the reading with a
 * warning. In memory is an index; names and line tables are fetched when they are asked for.
 *
 * The table grows while its JVM runs: method_names_update takes in what has come. A named_method
 * never moves.
 */
#ifndef JD_TOOL_METHOD_NAMES_H
#define JD_TOOL_METHOD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct method_names;

/* One method while its class was there. */
struct named_method {
    uint64_t address;   /* of the Method */
    uint64_t from;      /* stamp of its record */
    uint64_t bytecodes; /* address of the first one */
    uint32_t bytecode_size;
    bool found; /* METHODS_FOUND: was there before */
    uint32_t detail_size;
    uint64_t detail_offset; /* in the file: name, line table */
    uint64_t source_offset; /* of its class's source file */
    struct method_detail *detail;
    uint32_t number; /* in the file's order */
    uint32_t file;   /* that the offsets are of: of segments the latest that told of it */
};

/* Name and lines of a method. Strings and rows live as long as the names. */
struct method_detail {
    const char *name;
    const char *file; /* NULL: unknown */
    uint32_t line_count;
    struct {
        uint32_t bci;
        uint32_t line;
    } lines[];
};

/* The most methods that are kept of a table; what comes then is left out, which is told. */
#define METHOD_NAMES_MAX (UINT32_C(1) << 24)

/*
 * Opens the table at `path`, which may be packed (packed_file.h), and reads it. `clock` translates
 * its stamps to those that will be asked with; NULL: they are the same. 0; -ENOENT without a
 * message when there is none; or a negative errno after a message.
 */
int method_names_open(const char *path, uint64_t (*clock)(const void *context, uint64_t stamp),
                      const void *context, struct method_names **out);
void method_names_close(struct method_names *names); /* NULL is fine */

/* Opens it as method_names_open does, but an end inside a record is no fault: the rest may be on
 * its way. fd: open already and taken over, on failure too; negative: none. */
int method_names_follow(const char *path, int fd,
                        uint64_t (*clock)(const void *context, uint64_t stamp), const void *context,
                        struct method_names **out);

/* Reads what was appended since; with is_all an end inside a record is told of. 1: it has grown; 0:
 * it has not; or a negative errno after a message. */
int method_names_update(struct method_names *names, bool is_all);

/* Goes on with the table of the next segment of the same session, which tells of the living methods
 * once more; until: the last moment that the one before it is about. 1: it has been read; 0: there
 * is none; or a negative errno after a message. */
int method_names_continue(struct method_names *names, const char *path, uint64_t until,
                          bool is_all);

/* Nobody will ask any more for methods that were gone by then: closes tables of segments that ended
 * before, when one behind them has told of all that live. */
void method_names_let_go(struct method_names *names, uint64_t time);

/*
 * Most of what is kept is of tables that were let go. The latter forgets that, and numbers what is
 * left anew: nobody may have a named_method or its detail any more. 0 or -ENOMEM after a message.
 */
bool method_names_outgrown(const struct method_names *names);
int method_names_forget(struct method_names *names);

/* What the JVM runs, its main class or jar; "": not known. Lives as long as the names. */
const char *method_names_program(const struct method_names *names);

/* The events that were asked for and that the JVM does not provide: a set of enum methods_lack. */
unsigned method_names_lacks(const struct method_names *names);

uint32_t method_names_count(const struct method_names *names);

/* Whether it has told of all methods that the JVM had when the table began. */
bool method_names_is_whole(const struct method_names *names);

/* Which method was at this address at that time; NULL: none that the table tells of. Logarithmic.
 */
struct named_method *method_names_at(struct method_names *names, uint64_t address, uint64_t time);

/* Until when that is so: from then on it may be another. */
uint64_t method_names_until(struct method_names *names, uint64_t address, uint64_t time);

/*
 * The method that was found at the same address after that one, nobody knows since when: perhaps
 * earlier than it was found. NULL: the next one there, if there is one, came at a known time.
 */
struct named_method *method_names_found_after(struct method_names *names,
                                              const struct named_method *method);

/* The method that had a bytecode at this address at that time, or NULL. */
struct named_method *method_names_by_bytecode(struct method_names *names, uint64_t bcp,
                                              uint64_t time);

/* Its name and lines; NULL: after a message, or its table was let go. */
const struct method_detail *method_names_detail(struct method_names *names,
                                                struct named_method *method);

/* The line of a bytecode; 0: not known. */
uint32_t method_detail_line(const struct method_detail *detail, uint32_t bci);

#endif
