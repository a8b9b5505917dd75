/*
 * What the frames of samples are made of. What a frame is is decided once, in this room; every sink
 * takes it from here and looks nothing up again. Stacks are in stack_table.h.
 *
 * One machine address is one location (stack_table.h) with one frame, or several where methods were
 * inlined there: first the inlined ones, innermost first, then the compiled method that they were
 * inlined into.
 *
 * Equal things are one object: two frames in the same method have the same struct resolved_method
 * pointer, two in the same file the same struct module, and these live as long as the recording
 * does (struct recording). So a sink may use the pointer, or the small dense `id`, as its key.
 */
#ifndef JD_TOOL_FRAME_H
#define JD_TOOL_FRAME_H

#include "jdtool/base/file_identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_index;

enum resolved_kind {
    RESOLVED_UNKNOWN,     /* an address, and at best the module it lies in */
    RESOLVED_KERNEL,      /* the kernel or one of its modules */
    RESOLVED_NATIVE,      /* code of a file */
    RESOLVED_STUB,        /* generated code that is no method: stubs, adapters, the interpreter */
    RESOLVED_COMPILED,    /* a method that the JVM compiled */
    RESOLVED_INLINED,     /* a method inlined into the compiled one that follows */
    RESOLVED_INTERPRETED, /* a method that the interpreter was running */
    RESOLVED_SUBJECT,     /* no frame of the machine: what an event is about, such as a class */
    RESOLVED_KINDS,
};

enum module_kind {
    MODULE_FILE,   /* an ELF file, the vdso included */
    MODULE_KERNEL, /* the kernel and its modules */
    MODULE_JVM,    /* the generated code of one JVM: there is one such module for each dump */
};

/*
 * Why a frame in generated code has no name. UNNAMED_NO_DUMP is said of any process, for it may map
 * its dump later; whether it did (the frame was then before it) is known at the end.
 */
enum unnamed_reason {
    UNNAMED_NOT,         /* it has one, or is no generated code */
    UNNAMED_NO_DUMP,     /* the process had no dump until then, or none that can be used */
    UNNAMED_BEFORE_DUMP, /* sampled before the agent was there */
    UNNAMED_AFTER_DUMP,  /* sampled behind the last record: the dump ended, or was torn */
    UNNAMED_BEFORE_LOAD, /* the code's record bears a later time */
    UNNAMED_UNKNOWN,     /* nothing was ever reported there */
    UNNAMED_REASONS,
};

struct module {
    uint32_t id; /* from 0, dense, in the order of first use */
    enum module_kind kind;
    const char *path; /* as the process sees it; "[kernel.kallsyms]", "[vdso]"; of a JVM the path of
                         the image that the perf.data sink writes, or "[java PID]" without one */
    uint8_t build_id[BUILD_ID_MAX];
    uint8_t build_id_size; /* 0: not known (of a JVM's image it is known at the end only) */
    uint32_t pid;          /* MODULE_JVM: whose */
};

/* A method or function. Strings live as long as the recording and are never NULL but where said. */
struct resolved_method {
    uint32_t id;             /* from 0, dense, in the order of first use */
    enum resolved_kind kind; /* COMPILED and INLINED frames of one Java method share one object, of
                                kind COMPILED; an interpreted one has its own */
    const char *name;        /* as perf shows it, "java.util.ArrayList.add(java.lang.Object)" */
    const char *class_name;  /* "java.util.ArrayList"; NULL: no Java method */
    const char *method_name; /* "add"; NULL: no Java method */
    const char *descriptor;  /* "(java.lang.Object)" as the name has it; NULL: not known */
    const char *file;        /* source: package path + SourceFile; NULL: not known */
    uint32_t first_line;     /* 0: not known */
    const struct module *module; /* NULL: not in one */
    uint64_t address;            /* of native functions: the symbol's address in the module */
    uint64_t size;               /* 0: not known */
};

/*
 * One stay of a piece of generated code at one place. Its bytes, lines and inline tree are fetched
 * from the dump when they are wanted: code_index_fetch(code->index, code->blob, &details), names
 * by code_index_names. The index lives as long as the recording; it grows with the dump, so it may
 * have more blobs at each call.
 */
struct resolved_code {
    uint32_t id;      /* from 0, dense in its module, in the order of first use */
    uint32_t stay;    /* its number in the index */
    uint64_t address; /* in the process, while it was there */
    uint64_t size;
    /* In the JVM's module: unique, also after reuse. It is `address` for what was first there. */
    uint64_t module_address;
    uint64_t from;       /* when it came, on the recording's clock */
    bool is_interpreter; /* HotSpot's, with all its codelets */
    const char *symbol;  /* the name as the dump has it, with a tier where the agent wrote one */
    const struct resolved_method *method;
    const struct module *module;
    struct code_index *index;
    uint32_t blob;
};

/* What it shares with its location's other frames is told there. There is no padding: equal ones
 * have equal bytes. */
struct resolved_frame {
    /* NULL: UNKNOWN, or a module without a symbol there, or nobody wants native names. Of an
     * INTERPRETED frame that the table of methods does not tell of, the interpreter's own stub. */
    const struct resolved_method *method;
    uint32_t line;    /* 0: not known */
    uint16_t bci_ref; /* of an interpreted frame: its bytecode index + 1; 0: not known */
    uint8_t tier;     /* 0: not known or none; 1 to 3: C1, 4: C2 (HotSpot's CompLevel), 5: Graal */
    uint8_t kind : 4; /* enum resolved_kind */
    uint8_t unnamed : 3; /* enum unnamed_reason; only an UNKNOWN frame has one */
    uint8_t is_osr : 1;  /* on-stack replacement */
};

/* How a stack ends, and what its scorecard entry is. */
enum stack_end {
    STACK_ROOT,        /* at its thread's or process' entry */
    STACK_COPY_ENDS,   /* the next frame lies behind the end of the stack copy: too little asked */
    STACK_COPY_CUT,    /* the same, where the kernel found a page that was never touched */
    STACK_UNKNOWN,     /* in code that belongs to no file and no dump */
    STACK_NO_INFO,     /* in code without call-frame information */
    STACK_BROKEN,      /* no sane next frame */
    STACK_CUT,         /* too deep: frames were left out, which is counted */
    STACK_FROZEN,      /* at cont_returnBarrier: a virtual thread's callers lie in the heap */
    STACK_KERNEL_ONLY, /* a kernel thread, or no user part was recorded */
    STACK_NONE,        /* samples have no stacks: nothing but the sample's own address */
    STACK_ENDS,
};

#endif
