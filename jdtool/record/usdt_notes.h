/*
 * The places that a file marks for tracers: <sys/sdt.h> puts a nop into the code and a note beside
 * it, in .note.stapsdt, that tells its address, its name and where its arguments are just then.
 * libjvm.so has some hundred of them (DTRACE_PROBE in HotSpot), live without any flag.
 *
 * perf probe could read them as well, but leaves out places with constant arguments, and fetches
 * pointers instead of what they point to.
 */
#ifndef JD_TOOL_USDT_NOTES_H
#define JD_TOOL_USDT_NOTES_H

#include "jdtool/objects/elf_file.h"

/* Strings live as long as the file is open. */
struct usdt_note {
    const char *provider, *name;
    const char *arguments; /* "8@%r12 -4@$1 1@37(%r14)": size, '@', an assembler's operand */
    uint64_t address;      /* the file's own */
};

/* Calls `take` with each sound note; it returns false to see no more. What is malformed ends the
 * walk. */
void usdt_notes_walk(const struct elf_file *file,
                     bool (*take)(void *context, const struct usdt_note *note), void *context);

/*
 * The operand of an argument, from 0 on, as a uprobe's definition has it: "%r12", "+37(%r14)",
 * "\\1". x86-64's and aarch64's. False: there are not so many, it is one that the kernel cannot
 * fetch (an index register, an address in the file), or there is no room.
 */
bool usdt_operand(const char *arguments, unsigned index, char *out, size_t size);

#endif
