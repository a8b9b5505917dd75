#include "jdtool/sinks/elf_image.h"

#include "jdtool/base/message.h"
#include "jdtool/sinks/content_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS 2

uint64_t elf_image_add_code(struct elf_image *image, const uint8_t *bytes, size_t size)
{
    bytes_align(&image->text, 16);
    uint64_t address = ELF_IMAGE_TEXT + image->text.size;
    if (bytes) {
        bytes_put(&image->text, bytes, size);
    } else {
        uint8_t *to = size ? bytes_grow(&image->text, size) : NULL;
        if (to) {
            memset(to, 0, size);
        }
    }
    return address;
}

static void start_symbols(struct elf_image *image)
{
    static const Elf64_Sym none;
    bytes_put(&image->symbols, &none, sizeof none);
    bytes_u8(&image->names, 0);
}

void elf_image_add_symbol(struct elf_image *image, const char *name, uint64_t address,
                          uint64_t size)
{
    if (image->symbols.size == 0) {
        start_symbols(image);
    }
    Elf64_Sym symbol = {
        .st_name = (Elf64_Word)image->names.size,
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = 2, /* .text: see write_sections */
        .st_value = address,
        .st_size = size,
    };
    bytes_string(&image->names, name);
    bytes_put(&image->symbols, &symbol, sizeof symbol);
}

void elf_image_free(struct elf_image *image)
{
    bytes_free(&image->text);
    bytes_free(&image->symbols);
    bytes_free(&image->names);
}

/* ---- Writing ---- */

struct build_id_note {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[BUILD_ID_MAX];
};

/* The file while it is laid out; section numbers are those of the calls of add_section. */
struct layout {
    Elf *elf;
    struct bytes section_names;
    uint64_t at; /* end of what is laid out */
    bool failed;
};

/* Puts a section's name where sh_name can tell of it. */
static uint32_t name_at(struct layout *layout, const char *name)
{
    uint32_t at = (uint32_t)layout->section_names.size;
    bytes_string(&layout->section_names, name);
    return at;
}

/* Lays a section out behind the ones before it. Returns its number. */
static size_t add_section(struct layout *layout, uint32_t name, GElf_Shdr header, const void *bytes,
                          size_t size)
{
    Elf_Scn *section = elf_newscn(layout->elf);
    Elf_Data *data = section ? elf_newdata(section) : NULL;
    if (!data) {
        layout->failed = true;
        return 0;
    }
    uint64_t align = header.sh_addralign ? header.sh_addralign : 1;
    layout->at = (layout->at + align - 1) / align * align;
    *data = (Elf_Data){
        .d_buf = (void *)bytes,
        .d_type = ELF_T_BYTE,
        .d_size = size,
        .d_align = align,
        .d_version = EV_CURRENT,
    };
    header.sh_name = name;
    header.sh_offset = layout->at;
    header.sh_addr = header.sh_flags & SHF_ALLOC ? layout->at : 0;
    header.sh_size = size;
    layout->at += size;
    if (!gelf_update_shdr(section, &header)) {
        layout->failed = true;
    }
    return elf_ndxscn(section);
}

static GElf_Phdr segment(uint32_t type, uint32_t flags, uint64_t offset, uint64_t size,
                         uint64_t align)
{
    return (GElf_Phdr){
        .p_type = type,
        .p_flags = flags,
        .p_offset = offset,
        .p_vaddr = offset,
        .p_paddr = offset,
        .p_filesz = size,
        .p_memsz = size,
        .p_align = align,
    };
}

static int fill(struct layout *layout, const struct elf_image *image,
                const struct build_id_note *note, const struct dwarf_section *debug,
                unsigned debug_count)
{
    Elf64_Ehdr *ehdr = elf64_newehdr(layout->elf);
    if (!ehdr || !elf64_newphdr(layout->elf, SEGMENTS)) {
        return -ENOMEM;
    }
    elf_flagelf(layout->elf, ELF_C_SET, ELF_F_LAYOUT);
    ehdr->e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    ehdr->e_type = ET_DYN;
    ehdr->e_machine = image->machine;
    ehdr->e_version = EV_CURRENT;

    bytes_u8(&layout->section_names, 0);
    layout->at = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);
    uint64_t note_at = layout->at;
    add_section(layout, name_at(layout, ".note.gnu.build-id"),
                (GElf_Shdr){.sh_type = SHT_NOTE, .sh_flags = SHF_ALLOC, .sh_addralign = 4}, note,
                sizeof *note);
    add_section(layout, name_at(layout, ".text"),
                (GElf_Shdr){.sh_type = SHT_PROGBITS,
                            .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                            .sh_addralign = ELF_IMAGE_TEXT},
                image->text.at, image->text.size);
    add_section(layout, name_at(layout, ".symtab"),
                (GElf_Shdr){.sh_type = SHT_SYMTAB,
                            .sh_link = 4, /* the names, next */
                            .sh_info = 1, /* the first that is not local */
                            .sh_entsize = sizeof(Elf64_Sym),
                            .sh_addralign = 8},
                image->symbols.at, image->symbols.size);
    add_section(layout, name_at(layout, ".strtab"),
                (GElf_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1}, image->names.at,
                image->names.size);
    for (unsigned i = 0; i < debug_count; i++) {
        bool strings = strcmp(debug[i].name, ".debug_str") == 0;
        add_section(layout, name_at(layout, debug[i].name),
                    (GElf_Shdr){.sh_type = SHT_PROGBITS,
                                .sh_flags = strings ? SHF_MERGE | SHF_STRINGS : 0,
                                .sh_entsize = strings ? 1 : 0,
                                .sh_addralign = 1},
                    debug[i].bytes->at, debug[i].bytes->size);
    }
    uint32_t name = name_at(layout, ".shstrtab");
    const struct bytes *names = &layout->section_names; /* complete now */
    ehdr->e_shstrndx =
        (Elf64_Half)add_section(layout, name, (GElf_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1},
                                names->at, names->size);
    ehdr->e_phoff = sizeof(Elf64_Ehdr);
    ehdr->e_shoff = (layout->at + 7) / 8 * 8;

    GElf_Phdr load =
        segment(PT_LOAD, PF_R | PF_X, 0, ELF_IMAGE_TEXT + image->text.size, ELF_IMAGE_TEXT);
    GElf_Phdr note_segment = segment(PT_NOTE, PF_R, note_at, sizeof *note, 4);
    if (layout->failed || names->failed || !gelf_update_phdr(layout->elf, 0, &load) ||
        !gelf_update_phdr(layout->elf, 1, &note_segment)) {
        return -ENOMEM;
    }
    return 0;
}

/*
 * Over all of it: a hash of the code alone would let a file with other names or lines stand in for
 * this one.
 */
static void make_build_id(const struct elf_image *image, const struct dwarf_section *debug,
                          unsigned debug_count, struct build_id_note *note)
{
    struct content_hash hash = {0};
    content_hash_add(&hash, image->text.at, image->text.size);
    content_hash_add(&hash, image->symbols.at, image->symbols.size);
    content_hash_add(&hash, image->names.at, image->names.size);
    for (unsigned i = 0; i < debug_count; i++) {
        content_hash_add(&hash, debug[i].bytes->at, debug[i].bytes->size);
    }
    *note = (struct build_id_note){
        .header = {.n_namesz = 4, .n_descsz = BUILD_ID_MAX, .n_type = NT_GNU_BUILD_ID},
        .name = "GNU",
    };
    uint32_t size = (uint32_t)image->text.size;
    memcpy(note->id, &hash, sizeof hash);
    memcpy(note->id + sizeof hash, &size, sizeof size);
}

static int write_file(const struct elf_image *image, int fd, const struct build_id_note *note,
                      const struct dwarf_section *debug, unsigned debug_count)
{
    struct layout layout = {0};
    elf_version(EV_CURRENT);
    layout.elf = elf_begin(fd, ELF_C_WRITE, NULL);
    int err = layout.elf ? fill(&layout, image, note, debug, debug_count) : -ENOMEM;
    errno = 0;
    if (!err && elf_update(layout.elf, ELF_C_WRITE) < 0) {
        err = errno ? -errno : -EIO;
    }
    elf_end(layout.elf);
    bytes_free(&layout.section_names);
    return err;
}

int elf_image_write(const struct elf_image *image, const char *path, uint8_t build_id[BUILD_ID_MAX])
{
    struct dwarf_section debug[DWARF_SECTIONS];
    struct build_id_note note;
    unsigned debug_count = image->dwarf ? DWARF_SECTIONS : 0;
    char *temporary = NULL;
    int fd = -1;
    int err = image->dwarf ? dwarf_sections(image->dwarf, debug) : 0;

    if (image->text.failed || image->symbols.failed || image->names.failed ||
        asprintf(&temporary, "%s.XXXXXX", path) < 0) {
        err = -ENOMEM;
        temporary = NULL;
    }
    if (!err) {
        make_build_id(image, debug, debug_count, &note);
        memcpy(build_id, note.id, BUILD_ID_MAX);
        fd = mkstemp(temporary); /* mode 0600 */
        err = fd < 0 ? -errno : write_file(image, fd, &note, debug, debug_count);
    }
    if (fd >= 0) {
        if (close(fd) && !err) {
            err = -errno;
        }
        if (!err && rename(temporary, path)) {
            err = -errno;
        }
        if (err) {
            unlink(temporary);
        }
    }
    if (err) {
        error_message("failed to write %s: %s", path, strerror(-err));
    }
    free(temporary);
    return err;
}
