#include "jdtool/unwind/interpreter.h"

static bool is_inside(const struct named_method *method, uint64_t bcp)
{
    return bcp >= method->bytecodes && bcp - method->bytecodes < method->bytecode_size;
}

/*
 * The bytecode's address. A leaf keeps it in a register, and its frame's slot is as old as the last
 * call; but the register is free for other uses while the interpreter is out in the JVM. Of the two
 * slots one is the bytecode's, and the other holds an address of the stack: which one depends on
 * the JDK, and shows by what lies in the method.
 */
static bool find_bcp(const struct named_method *method, const struct unwind_frame *frame,
                     uint64_t *bcp)
{
    const uint64_t places[] = {frame->bcp_register, frame->bcp, frame->bcp_above};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (is_inside(method, places[i])) {
            *bcp = places[i];
            return true;
        }
    }
    return false;
}

/*
 * The method at an address. The table does not know when a class's memory was given to a method
 * that a redefinition brought: then the bytecode says which of the two it is.
 */
static struct named_method *method_of(struct method_names *names, uint64_t address,
                                      const struct unwind_frame *frame, uint64_t time)
{
    uint64_t bcp;
    struct named_method *method = method_names_at(names, address, time);
    if (!method || find_bcp(method, frame, &bcp)) {
        return method;
    }
    struct named_method *later = method;
    while ((later = method_names_found_after(names, later))) {
        if (find_bcp(later, frame, &bcp)) {
            return later;
        }
    }
    return method;
}

bool interpreter_name(struct method_names *names, const struct unwind_frame *frame, uint64_t time,
                      struct interpreted_frame *out)
{
    struct named_method *method = method_of(names, frame->method, frame, time);
    if (!method && frame->method_register) {
        /* A frame that is being built holds no Method yet; the register does. */
        method = method_of(names, frame->method_register, frame, time);
    }
    if (!method && frame->bcp_register) {
        /* Nor does one that has just been taken down; the bytecode's address is still there. */
        method = method_names_by_bytecode(names, frame->bcp_register, time);
    }
    const struct method_detail *detail = method ? method_names_detail(names, method) : NULL;
    if (!detail) {
        return false;
    }
    *out = (struct interpreted_frame){
        .method = detail, .bci = -1, .until = method_names_until(names, method->address, time)};
    uint64_t bcp;
    if (method->bytecode_size == 0) {
        return true; /* native */
    }
    if (find_bcp(method, frame, &bcp)) {
        out->bci = (int64_t)(bcp - method->bytecodes);
    } else if (!frame->caller) {
        out->bci = 0; /* not at its first bytecode yet, or on its way out */
    } else {
        return false; /* a caller has saved its bcp: this is not its method */
    }
    out->line = method_detail_line(detail, (uint32_t)out->bci);
    return true;
}
