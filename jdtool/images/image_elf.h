/*
 * A shared object that no linker made: code at the addresses at which it stands in the file
 * (sh_addr == sh_offset, so that a mapping's file offset is all that is needed to find a symbol),
 * symbols, debugging and call-frame information and a build-id over all of these.
 *
 * Code keeps the distances it had in memory, so the file is mostly holes: as long as the code cache
 * and as small as the code. Code goes to the disk when it is added; the rest stays in memory until
 * the end.
 */
#ifndef JD_TOOL_IMAGE_ELF_H
#define JD_TOOL_IMAGE_ELF_H

#include "jdtool/images/dwarf.h"
#include "jdtool/perf/perf_data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before this offset stand the ELF headers. */
#define IMAGE_ELF_TEXT 0x1000

struct image_elf;

/* Starts a file that will stand at `path`; machine is e_machine. 0 or a negative errno after a
 * message. */
int image_elf_open(const char *path, uint16_t machine, struct image_elf **out);

/*
 * Puts code at an offset not below IMAGE_ELF_TEXT, in any order, none over another. bytes NULL:
 * zeros, which take no room on the disk. The name is copied; it becomes the code's symbol. An error
 * is remembered and reported by image_elf_finish.
 */
void image_elf_add(struct image_elf *elf, uint64_t offset, uint64_t size, const uint8_t *bytes,
                   const char *name);

/* For a caller's own errors: remembered like those of a write; err is a negative errno. */
void image_elf_fail(struct image_elf *elf, int err);

/* Where a function's entry is in the table of call-frame information. */
struct image_elf_fde {
    uint64_t code;  /* offset of the function in the file */
    uint64_t entry; /* offset of its FDE, from that of .eh_frame on */
};

/* Bytes of .eh_frame_hdr, and what it is aligned to. */
#define IMAGE_ELF_FRAME_HEADER(fde_count) (UINT64_C(12) + UINT64_C(8) * (fde_count))
#define IMAGE_ELF_FRAME_ALIGN             8

/*
 * Call-frame information: a complete .eh_frame for an offset where no code is, and where its
 * entries are, in any order; the table of these comes behind it, and no code is there either. They
 * are taken as they are and must live until image_elf_finish.
 */
void image_elf_set_frames(struct image_elf *elf, uint64_t offset, const struct bytes *eh_frame,
                          struct image_elf_fde *fdes, uint32_t fde_count);

/*
 * Leaves the code out of the one segment, which then has the headers alone. Readers built on
 * libdwfl know one file at an address, and take a file to cover all that its segments do; they find
 * code outside of it through the mapping at offset 0 (KDAB hotspot: perfsymboltable.cpp, module).
 * So files that cover the same addresses must not say so.
 */
void image_elf_hide_code(struct image_elf *elf);

/*
 * Puts the file in its place, mode 0600, and frees it; dwarf may be NULL. 0 or a negative errno
 * after a message; there is then no file.
 */
int image_elf_finish(struct image_elf *elf, struct dwarf *dwarf, uint8_t build_id[BUILD_ID_MAX]);

/* Frees it and leaves no file. NULL is fine. */
void image_elf_abort(struct image_elf *elf);

/* ---- A hash of contents ---- */

/*
 * A fast hash that tells contents apart, for build-ids: MurmurHash3's x64 variant of 128 bits
 * (Austin Appleby, public domain). It protects nothing.
 */

struct content_hash {
    uint64_t low;
    uint64_t high;
};

/* Takes in a run of bytes, with its length: where one ends counts (but for
 * an empty one at the start). Zero a hash to start. */
void content_hash_add(struct content_hash *hash, const void *bytes, size_t size);

#endif
