/* The registers that a sample with a copy of its stack has: all that there are for general use. */
#ifndef JD_TOOL_SAMPLER_REGISTERS_H
#define JD_TOOL_SAMPLER_REGISTERS_H

#include <stdint.h>

#if defined __x86_64__
/* ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15 (asm/perf_regs.h). */
#define REGISTERS      UINT64_C(0xff01ff)
#define REGISTER_COUNT 17
#define STACK_POINTER  7
#define CODE_POINTER   8
#elif defined __aarch64__
/* x0 to x29, lr, sp, pc. */
#define REGISTERS      ((UINT64_C(1) << 33) - 1)
#define REGISTER_COUNT 33
#define STACK_POINTER  31
#define CODE_POINTER   32
#else
#error "the registers of this machine are not known here"
#endif

#endif
