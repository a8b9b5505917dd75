/*
 * A shared object that no linker made: code at the addresses at which it stands in the file
 * (sh_addr == sh_offset, so that a mapping's file offset is all that is needed to find a symbol),
 * symbols, debugging information and a build-id over all of these.
 */
#ifndef JD_TOOL_ELF_IMAGE_H
#define JD_TOOL_ELF_IMAGE_H

#include "jdtool/base/bytes.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/sinks/dwarf.h"

/* Where the code starts in the file. */
#define ELF_IMAGE_TEXT 0x1000

struct elf_image {
    uint16_t machine; /* e_machine */
    struct bytes text;
    struct bytes symbols; /* Elf64_Sym */
    struct bytes names;   /* of the symbols */
    struct dwarf *dwarf;  /* NULL: none */
};

/* Adds code behind what is there, 16-aligned; bytes NULL: zeros. Returns its address. */
uint64_t elf_image_add_code(struct elf_image *image, const uint8_t *bytes, size_t size);
void elf_image_add_symbol(struct elf_image *image, const char *name, uint64_t address,
                          uint64_t size);

/*
 * Writes the file, mode 0600, replacing another one as a whole. 0 or a negative errno after a
 * message.
 */
int elf_image_write(const struct elf_image *image, const char *path,
                    uint8_t build_id[BUILD_ID_MAX]);
void elf_image_free(struct elf_image *image); /* not the dwarf */

#endif
