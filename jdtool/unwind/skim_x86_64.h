/*
 * Most instructions of compiled code have nothing to do with the frame, and a full decoder spends
 * most of its time on what nobody asks for. This knows the common ones by their bytes.
 */
#ifndef JD_TOOL_SKIM_X86_64_H
#define JD_TOOL_SKIM_X86_64_H

#include "jdtool/unwind/frames_flow.h"

/*
 * Fills *insn (zeroed before) for the instruction at `bytes`, of which `size` are there, at that
 * offset in the code. Steps that matter only where a register holds the caller's sp or the return
 * address are left out. False: to be decoded by a full decoder; *insn is then unchanged.
 */
bool skim_x86_64(const uint8_t *bytes, uint32_t size, uint32_t offset, struct flow_insn *insn);

#endif
