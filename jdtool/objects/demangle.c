#include "jdtool/objects/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

struct text {
    char *out;
    size_t room;
    size_t size;
    jmp_buf full;
};

/*
 * A short name can stand for an endless one (substitutions of substitutions). Nothing but a jump
 * ends libiberty's printing early; it holds no memory but its stack.
 */
static void take(const char *piece, size_t size, void *context)
{
    struct text *text = context;
    size_t fits = text->room - 1 - text->size;
    memcpy(text->out + text->size, piece, size < fits ? size : fits);
    text->size += size < fits ? size : fits;
    if (size > fits) {
        longjmp(text->full, 1);
    }
}

/* Rust's older scheme is C++'s with a hash behind the name. */
static void drop_rust_hash(char *name)
{
    enum { HASH = 19 }; /* "::h" and 16 digits */
    size_t size = strlen(name);
    if (size <= HASH || strncmp(name + size - HASH, "::h", 3) != 0) {
        return;
    }
    for (size_t i = size - 16; i < size; i++) {
        if (!isxdigit((unsigned char)name[i])) {
            return;
        }
    }
    name[size - HASH] = '\0';
}

bool demangle(const char *name, char *out, size_t room)
{
    static const char plt[] = "@plt";
    struct text text = {.out = out, .room = room};
    if (strncmp(name, "_Z", 2) != 0 || strnlen(name, DEMANGLE_INPUT_MAX) == DEMANGLE_INPUT_MAX) {
        return false;
    }
    /* Without parameters or options it is what perf asks for (symbol-elf.c, demangle_sym). */
    if (setjmp(text.full) == 0 && !cplus_demangle_v3_callback(name, DMGL_NO_OPTS, take, &text)) {
        return false;
    }
    out[text.size] = '\0';
    drop_rust_hash(out);
    /* What stands behind a mangled name is dropped, but not this mark of ours. */
    size_t size = strlen(name);
    size_t end = strlen(out);
    if (size >= sizeof plt && strcmp(name + size - (sizeof plt - 1), plt) == 0 &&
        end + sizeof plt <= room) {
        memcpy(out + end, plt, sizeof plt);
    }
    return true;
}
