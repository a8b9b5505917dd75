/*
 * HotSpot's disassembler plugin (hsdis-amd64.so), which -XX:+PrintAssembly and so JMH's perfasm ask
 * for. The one that Debian has (libhsdis0-fcml 1.2.2) is of no use: it offers JDK 6's entry alone,
 * and on some bytes of real code it reads where nothing is (SIGSEGV in fcml_fn_disassemble):
 * probably why a fork once ended with 134. Zydis tells what it cannot decode, and keeps nothing
 * between calls, so that compiler threads may decode at a time.
 *
 * The interface is what HotSpot's share/compiler/disassembler.cpp calls: the plugin tells of the
 * beginning and the end of each instruction as events and prints its text; addresses and comments
 * are HotSpot's own.
 */
#include "jdtool/unwind/disassembly.h"

#include <inttypes.h>

typedef void *(*event_function)(void *stream, const char *event, void *argument);
typedef int (*print_function)(void *stream, const char *format, ...);

__attribute__((visibility("default"))) void *
decode_instructions_virtual(uintptr_t start, uintptr_t end, unsigned char *buffer, uintptr_t length,
                            event_function tell, void *event_stream, print_function print,
                            void *print_stream, const char *options, int newline);

/*
 * Decodes the `length` bytes at `buffer`, which are code for [start, end). Gives back where it
 * ended; HotSpot takes anything else than `end` for a failure of the plugin's.
 */
void *decode_instructions_virtual(uintptr_t start, uintptr_t end, unsigned char *buffer,
                                  uintptr_t length, event_function tell, void *event_stream,
                                  print_function print, void *print_stream, const char *options,
                                  int newline)
{
    (void)options;
    uint32_t offset = 0;
    tell(event_stream, "insns", (void *)start);
    while (offset < length && start + offset < end) {
        void *at = (void *)(start + offset);
        const struct instruction instruction = disassemble("x86_64", buffer, length, offset, start);
        tell(event_stream, "insn", at);
        print(print_stream, "%s", instruction.text);
        offset += instruction.size;
        at = (void *)(start + offset);
        tell(event_stream, "/insn", at);
        if (newline) {
            print(print_stream, "\n");
        }
    }
    void *until = (void *)(start + offset);
    tell(event_stream, "/insns", until);
    return until;
}
