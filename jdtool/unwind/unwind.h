/*
 * Unwinds the stack of one sample from its registers and the copy of its stack: native frames by
 * the call-frame information of their files, generated code by the rows that were worked out from
 * its bytes, interpreted frames by their layout.
 *
 * What it knows of the process comes through struct unwind_process, so that it can be tested and
 * fuzzed without a recording. Registers and stack copy are taken for hostile: every word is read
 * inside the copy, and a stack that does not grow towards its root ends the walk.
 */
#ifndef JD_TOOL_UNWIND_H
#define JD_TOOL_UNWIND_H

#include "jdtool/jitdump/method_names.h"
#include "jdtool/objects/frame_row.h"
#include "jdtool/objects/objects.h"
#include "jdtool/unwind/code_frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unwind_kind {
    UNWIND_NATIVE,      /* code of a file */
    UNWIND_GENERATED,   /* code of a dump, entered like any other */
    UNWIND_INTERPRETED, /* code of the interpreter: method and bcp tell what it interprets */
    UNWIND_UNKNOWN,     /* only as the last frame: nobody knows this address */
};

struct unwind_place;

struct unwind_frame {
    /*
     * Where the frame's code was. For a caller it is the address behind the call minus one, which
     * lies in the call (as perf's own unwinder reports it), and may not be an instruction's start.
     */
    uint64_t ip;
    const struct unwind_place *place; /* what `find` gave for it */
    uint8_t kind;                     /* enum unwind_kind */
    bool caller;
    /*
     * UNWIND_INTERPRETED: HotSpot's Method* and the address of the bytecode; 0: not in the copy.
     * In the leaf, bcp_register and method_register are what the registers for them hold: more
     * recent than the frame, which may be under construction, but free for other uses at times.
     */
    uint64_t method;
    uint64_t bcp;
    uint64_t bcp_above; /* the word above: that is where JDK 8 keeps it */
    uint64_t bcp_register;
    uint64_t method_register;
};

/* Why a walk ended. */
enum unwind_end {
    UNWIND_ROOT,          /* at the thread's or the process' entry */
    UNWIND_COPY_ENDS,     /* the next frame lies behind the end of the stack copy */
    UNWIND_UNKNOWN_CODE,  /* an address that belongs to no file and no dump */
    UNWIND_NO_FRAME_INFO, /* a file, or a piece of generated code, without call-frame rows */
    UNWIND_BROKEN,        /* no sane next frame */
    UNWIND_TOO_DEEP,      /* no room for more frames */
    UNWIND_END_COUNT,
};

/*
 * What a pc is in, and how to step from there. Somebody who knows the process fills in the first
 * part for an address; unwind_place_of works out the rest for a pc.
 */
struct unwind_place {
    /* Generated code. */
    const struct blob_frames *code; /* NULL: none */
    uint64_t code_start;
    uint64_t code_size;
    /* A file. */
    struct object *object; /* NULL: none that can be read */
    uint64_t file_address; /* in the object */

    uint64_t address;  /* of the frame, as struct unwind_frame has it */
    bool mapped;       /* a file is mapped there, readable or not; of the first part, too */
    bool is_stepped;   /* the kernel's page where it steps over what uprobes stand on */
    bool is_called;    /* its page that uprobes on a nop of five bytes are calls of */
    bool barrier;      /* the pc is a return to the start of cont_returnBarrier */
    bool stub_section; /* behind the code, which is a method's; see unwind.c */
};

/* Whether callers are frozen further out: the place is in cont_returnBarrier or cont_thaw, which
 * thaw them. From JDK 24 on cont_thaw tells agents that a virtual thread has entered a monitor
 * (JEP 491). */
static inline bool unwind_place_hides(const struct unwind_place *place)
{
    return place->code && place->code->shape == FRAMES_CONTINUATION;
}

/* Fills the first part of *place, zeroed before, for an address. */
typedef void unwind_find_fn(void *context, uint64_t address, struct unwind_place *place);

/* Fills all of *place for a pc; caller: it is a return address. The answer stays right as long as
 * those of `find` do. */
void unwind_place_of(unwind_find_fn *find, void *context, uint64_t pc, bool caller,
                     struct unwind_place *place);

/* The row at a place in code whose rows are known; NULL: none. */
const struct frame_row *unwind_place_row(const struct unwind_place *place);

struct unwind_process {
    /* The place of a pc at the time of the sample, as unwind_place_of makes it. Never NULL; lives
     * until the walk's frames are done with. */
    const struct unwind_place *(*find)(void *context, uint64_t pc, bool caller);
    /* The row at the place's address in its object. Never NULL; lives until the next call. */
    const struct native_row *(*row)(void *context, const struct unwind_place *place);
    /* The row at the place's address in its code, NULL: it has none; lives as the place does. Not
     * asked where the method's frame size tells all, so that most code need not be analysed. */
    const struct frame_row *(*code_row)(void *context, const struct unwind_place *place);
    void *context;
    unsigned machine; /* e_machine: EM_X86_64, EM_AARCH64 */
};

struct unwind_sample {
    struct native_regs regs; /* by DWARF number, see unwind_take_registers */
    uint64_t pc;
    uint64_t sp;
    const uint8_t *stack; /* begins at sp */
    size_t stack_size;
};

/* Turns a sample's registers, those of the bits of mask (PERF_REG_*), into *sample. False when pc
 * or sp is missing, or the process was a 32-bit one. */
bool unwind_take_registers(unsigned machine, uint64_t abi, uint64_t mask, const uint64_t *values,
                           uint32_t count, struct unwind_sample *sample);

/*
 * Writes the frames, innermost first, into [frames, frames + room), and their number into *count:
 * at least one. Returns why it ended there.
 */
enum unwind_end unwind(const struct unwind_process *process, const struct unwind_sample *sample,
                       struct unwind_frame *frames, uint32_t room, uint32_t *count);

/* ---- What an interpreted frame runs ---- */

/*
 * Names interpreted frames: from the addresses that HotSpot's interpreter keeps in its frame, by
 * the table of methods.
 */

struct interpreted_frame {
    const struct method_detail *method;
    uint32_t line;  /* 0: unknown, or native */
    int64_t bci;    /* -1: unknown, or native */
    uint64_t until; /* so long the same frame runs that */
};

/*
 * What an UNWIND_INTERPRETED frame runs at that time. False: the table does not tell of its method,
 * or the frame contradicts it.
 */
bool interpreter_name(struct method_names *names, const struct unwind_frame *frame, uint64_t time,
                      struct interpreted_frame *out);

#endif
