/*
 * Call-frame rows as standard call-frame information: an .eh_frame with one CIE and one FDE, and an
 * .eh_frame_hdr behind it (System V ABI, x86-64, 4.2.4; Linux Standard Base, 10.6), in the narrow
 * form that perf 6.1 and libunwind 1.6 read: pc-relative sdata4 everywhere, no DW_CFA_val_offset.
 */
#ifndef JD_TOOL_EH_FRAME_H
#define JD_TOOL_EH_FRAME_H

#include "jdtool/base/bytes.h"
#include "jdtool/unwind/frames.h"

/* Start zeroed, use again and again, free it with eh_frame_free. */
struct eh_frame {
    struct bytes bytes; /* .eh_frame, then .eh_frame_hdr; a multiple of 8 up to the header */
    size_t hdr_size;
};

/*
 * machine: EM_X86_64 or EM_AARCH64. Writes the rows of code at code_address into a table that will
 * be found at table_address, less than 2 GB away. 0, -ENOMEM, or -ERANGE when it is further away.
 */
int eh_frame_build(unsigned machine, const struct frames *frames, uint64_t code_address,
                   uint64_t code_size, uint64_t table_address, struct eh_frame *table);

void eh_frame_free(struct eh_frame *table);

#endif
