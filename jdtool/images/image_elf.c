/*
 * The file: ELF headers and the build-id in its first page, code at its offsets, behind the last
 * code call-frame information, then symbols, debugging information and the section headers.
 */
#include "jdtool/images/image_elf.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/packed_output.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Code that is further apart is in different sections: a disassembler reads whole ones. There are
 * not too many of them, whatever the distances. */
#define SECTION_GAP   (UINT64_C(1) << 20)
#define TEXT_SECTIONS 256

/* Holes stay holes: code is written by blocks, and not those that are all zeros. */
#define BLOCK 4096

struct code_range {
    uint64_t offset;
    uint64_t size;
};

struct symbol {
    uint64_t offset;
    uint64_t size;
    uint32_t name;
};

struct image_elf {
    char *path;
    uint16_t machine;
    struct output_file *file;
    uint64_t end; /* of the code */
    bool hides_code;
    struct symbol *symbols;
    uint32_t symbol_count;
    uint32_t symbol_room;
    struct bytes names; /* .strtab */
    struct content_hash hash;
    int error;

    uint64_t frames_at;
    const struct bytes *eh_frame; /* NULL: none */
    struct image_elf_fde *fdes;
    uint32_t fde_count;

    struct bytes section_names;
    struct bytes sections; /* Elf64_Shdr */
};

struct build_id_note {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[BUILD_ID_MAX];
};

enum { SEGMENTS = 3 };

#define NOTE_AT (sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr))
_Static_assert(NOTE_AT + sizeof(struct build_id_note) <= IMAGE_ELF_TEXT, "the first page");

int image_elf_open(const char *path, uint16_t machine, struct image_elf **out)
{
    struct image_elf *elf = calloc(1, sizeof *elf);
    int err = -ENOMEM;
    if (elf) {
        elf->path = strdup(path);
        elf->machine = machine;
        elf->end = IMAGE_ELF_TEXT;
        bytes_u8(&elf->names, 0);
    }
    if (!elf || !elf->path || elf->names.failed) {
        failed_to(-ENOMEM, "write %s", path);
    } else {
        err = output_file_open(path, &elf->file);
    }
    if (err) {
        image_elf_abort(elf);
        return err;
    }
    *out = elf;
    return 0;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static void put_code(struct image_elf *elf, uint64_t offset, const uint8_t *bytes, uint64_t size)
{
    while (size > 0) {
        size_t n = BLOCK - offset % BLOCK;
        n = n < size ? n : (size_t)size;
        if (!is_zero(bytes, n)) {
            size_t more = n; /* the run of blocks to be written */
            while (more < size &&
                   !is_zero(bytes + more, size - more < BLOCK ? size - more : BLOCK)) {
                more += size - more < BLOCK ? size - more : BLOCK;
            }
            n = more;
            output_file_put_at(elf->file, offset, bytes, n);
        }
        offset += n;
        bytes += n;
        size -= n;
    }
}

void image_elf_add(struct image_elf *elf, uint64_t offset, uint64_t size, const uint8_t *bytes,
                   const char *name)
{
    if (elf->names.size > UINT32_MAX / 2 ||
        ARRAY_RESERVE(elf->symbols, elf->symbol_count, elf->symbol_room)) {
        image_elf_fail(elf, -ENOMEM);
        return;
    }
    elf->symbols[elf->symbol_count++] = (struct symbol){offset, size, (uint32_t)elf->names.size};
    bytes_string(&elf->names, name);
    content_hash_add(&elf->hash, &offset, sizeof offset);
    if (bytes) {
        content_hash_add(&elf->hash, bytes, size);
        put_code(elf, offset, bytes, size);
    }
    elf->end = offset + size > elf->end ? offset + size : elf->end;
}

void image_elf_hide_code(struct image_elf *elf)
{
    elf->hides_code = true;
}

void image_elf_fail(struct image_elf *elf, int err)
{
    elf->error = elf->error ? elf->error : err;
}

void image_elf_set_frames(struct image_elf *elf, uint64_t offset, const struct bytes *eh_frame,
                          struct image_elf_fde *fdes, uint32_t fde_count)
{
    elf->frames_at = offset;
    elf->eh_frame = eh_frame;
    elf->fdes = fdes;
    elf->fde_count = fde_count;
}

void image_elf_abort(struct image_elf *elf)
{
    if (elf) {
        output_file_abort(elf->file);
        bytes_free(&elf->names);
        bytes_free(&elf->section_names);
        bytes_free(&elf->sections);
        free(elf->symbols);
        free(elf->path);
        free(elf);
    }
}

/* ---- Sections ---- */

/* Enters a section; returns its number. */
static uint32_t add_section(struct image_elf *elf, const char *name, Elf64_Shdr header)
{
    header.sh_name = (Elf64_Word)elf->section_names.size;
    header.sh_addr = header.sh_flags & SHF_ALLOC ? header.sh_offset : 0;
    bytes_string(&elf->section_names, name);
    bytes_put(&elf->sections, &header, sizeof header);
    return (uint32_t)(elf->sections.size / sizeof header) - 1;
}

/* Puts what no mapping has behind all that was put before. Returns its number. */
static uint32_t put_section(struct image_elf *elf, const char *name, Elf64_Shdr header,
                            const void *bytes, size_t size)
{
    static const uint8_t zeros[16];
    uint64_t at = output_file_tell(elf->file);
    uint64_t align = header.sh_addralign ? header.sh_addralign : 1;
    output_file_put(elf->file, zeros, (align - at % align) % align);
    header.sh_offset = output_file_tell(elf->file);
    header.sh_size = size;
    output_file_put(elf->file, bytes, size);
    return add_section(elf, name, header);
}

static int by_offset(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    return ORDER(a->offset, b->offset);
}

static uint32_t add_text(struct image_elf *elf, const struct code_range *text)
{
    return add_section(elf, ".text",
                       (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                    .sh_offset = text->offset,
                                    .sh_size = text->size,
                                    .sh_addralign = 1});
}

/*
 * Two symbols without a name behind the code, at different places; perf and nm leave them out.
 *
 * KDAB hotspot 1.6 (perfparser, PerfAddressCache::findSymbol) orders symbols by their address less
 * the file's base and searches them by their value. The null symbol has neither, is ordered last
 * by that and looks like the first: a search that comes to it finds nothing, and those for what
 * lies in the last two do. These are in nobody's samples.
 */
static void put_search_stops(const struct image_elf *elf, Elf64_Section section,
                             struct bytes *table)
{
    for (uint64_t i = 0; i < 2; i++) {
        Elf64_Sym entry = {
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE),
            .st_shndx = section,
            .st_value = elf->end + i,
        };
        bytes_put(table, &entry, sizeof entry);
    }
}

/* The code's sections, and the symbols, each in its section. */
static void put_symbols(struct image_elf *elf)
{
    struct bytes table = {0};
    Elf64_Sym none = {0};
    struct code_range text = {IMAGE_ELF_TEXT, 0};
    uint64_t gap = SECTION_GAP;
    if (elf->symbol_count) {
        qsort(elf->symbols, elf->symbol_count, sizeof *elf->symbols, by_offset);
        text.offset = elf->symbols[0].offset;
    }
    while (elf->end / gap > TEXT_SECTIONS) {
        gap *= 2;
    }
    bytes_put(&table, &none, sizeof none);
    for (uint32_t i = 0; i < elf->symbol_count; i++) {
        const struct symbol *symbol = &elf->symbols[i];
        if (symbol->offset - text.offset > text.size + gap) {
            add_text(elf, &text);
            text = (struct code_range){symbol->offset, 0};
        }
        uint64_t size = symbol->offset + symbol->size - text.offset;
        text.size = size > text.size ? size : text.size;
        Elf64_Sym entry = {
            .st_name = symbol->name,
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
            .st_shndx = (Elf64_Section)(elf->sections.size / sizeof(Elf64_Shdr)),
            .st_value = symbol->offset,
            .st_size = symbol->size,
        };
        bytes_put(&table, &entry, sizeof entry);
    }
    uint32_t last = add_text(elf, &text);
    put_search_stops(elf, (Elf64_Section)last, &table);
    content_hash_add(&elf->hash, table.at, table.size);
    content_hash_add(&elf->hash, elf->names.at, elf->names.size);
    put_section(elf, ".symtab",
                (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                             .sh_link = last + 2, /* the names, next */
                             .sh_info = 1,        /* the first that is not local */
                             .sh_entsize = sizeof(Elf64_Sym),
                             .sh_addralign = 8},
                table.at, table.size);
    put_section(elf, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, elf->names.at,
                elf->names.size);
    if (table.failed) {
        image_elf_fail(elf, -ENOMEM);
    }
    bytes_free(&table);
}

static int by_code(const void *left, const void *right)
{
    const struct image_elf_fde *a = left;
    const struct image_elf_fde *b = right;
    return ORDER(a->code, b->code);
}

/*
 * The table by which unwinders find an entry (Linux Standard Base, 10.6.2): version and encodings,
 * where .eh_frame is, relative to this very field; the entries count from the table's start.
 */
static void make_header(struct image_elf *elf, uint64_t at, struct bytes *out)
{
    static const uint8_t encodings[] = {1, 0x1b /* pcrel, sdata4 */, 0x03 /* udata4 */,
                                        0x3b /* datarel, sdata4 */};
    uint64_t eh_frame = elf->frames_at;
    if (elf->fde_count) {
        qsort(elf->fdes, elf->fde_count, sizeof *elf->fdes, by_code);
    }
    bytes_put(out, encodings, sizeof encodings);
    bytes_u32(out, (uint32_t)(eh_frame - (at + 4)));
    bytes_u32(out, elf->fde_count);
    for (uint32_t i = 0; i < elf->fde_count; i++) {
        bytes_u32(out, (uint32_t)(elf->fdes[i].code - at));
        bytes_u32(out, (uint32_t)(eh_frame + elf->fdes[i].entry - at));
    }
}

/* *header_at and *header_size tell of the table; 0: there is none. */
static void put_frames(struct image_elf *elf, uint64_t *header_at, uint64_t *header_size)
{
    *header_at = *header_size = 0;
    if (!elf->eh_frame) {
        return;
    }
    output_file_seek(elf->file, elf->frames_at);
    struct bytes header = {0};
    const Elf64_Shdr shape = {
        .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addralign = IMAGE_ELF_FRAME_ALIGN};
    put_section(elf, ".eh_frame", shape, elf->eh_frame->at, elf->eh_frame->size);
    *header_at = (output_file_tell(elf->file) + IMAGE_ELF_FRAME_ALIGN - 1) / IMAGE_ELF_FRAME_ALIGN *
                 IMAGE_ELF_FRAME_ALIGN;
    make_header(elf, *header_at, &header);
    *header_size = header.size;
    put_section(elf, ".eh_frame_hdr", shape, header.at, header.size);
    content_hash_add(&elf->hash, elf->eh_frame->at, elf->eh_frame->size);
    if (elf->eh_frame->failed || header.failed) {
        image_elf_fail(elf, -ENOMEM);
    }
    bytes_free(&header);
}

/* Smaller sections are not worth it. */
#define PACKED_LEAST 4096

/* As all readers of debugging information unpack it. */
static void put_packed(struct image_elf *elf, const char *name, Elf64_Shdr header,
                       const struct bytes *plain)
{
    struct bytes packed = {0};
    const Elf64_Chdr about = {
        .ch_type = ELFCOMPRESS_ZLIB, .ch_size = plain->size, .ch_addralign = header.sh_addralign};
    bytes_put(&packed, &about, sizeof about);
    if (plain->size >= PACKED_LEAST && !packed.failed &&
        packed_output_whole(plain->at, plain->size, &packed)) {
        header.sh_flags |= SHF_COMPRESSED;
        header.sh_addralign = 8; /* of what is in front of it */
        put_section(elf, name, header, packed.at, packed.size);
    } else {
        put_section(elf, name, header, plain->at, plain->size);
    }
    bytes_free(&packed);
}

static int put_debug(struct image_elf *elf, struct dwarf *dwarf)
{
    struct dwarf_section sections[DWARF_SECTIONS];
    int err = dwarf_sections(dwarf, sections);
    for (unsigned i = 0; i < DWARF_SECTIONS && !err; i++) {
        bool strings = strcmp(sections[i].name, ".debug_str") == 0;
        put_packed(elf, sections[i].name,
                   (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                .sh_flags = strings ? SHF_MERGE | SHF_STRINGS : 0,
                                .sh_entsize = strings ? 1 : 0,
                                .sh_addralign = 1},
                   sections[i].bytes);
        content_hash_add(&elf->hash, sections[i].bytes->at, sections[i].bytes->size);
    }
    return err;
}

/* ---- Headers ---- */

static Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t offset, uint64_t size,
                          uint64_t align)
{
    return (Elf64_Phdr){
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

static void put_headers(struct image_elf *elf, uint64_t load_end, uint64_t header_at,
                        uint64_t header_size, uint32_t names, const struct build_id_note *note)
{
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    Elf64_Phdr segments[SEGMENTS] = {
        segment(PT_LOAD, PF_R | PF_X, 0, load_end, 0x1000),
        segment(PT_NOTE, PF_R, NOTE_AT, sizeof *note, 4),
        segment(PT_GNU_EH_FRAME, PF_R, header_at, header_size, 4),
    };
    Elf64_Ehdr ehdr = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                    little ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = elf->machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof ehdr,
        .e_shoff = output_file_tell(elf->file),
        .e_ehsize = sizeof ehdr,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = header_size ? SEGMENTS : SEGMENTS - 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)(elf->sections.size / sizeof(Elf64_Shdr)),
        .e_shstrndx = (Elf64_Half)names,
    };
    output_file_put(elf->file, elf->sections.at, elf->sections.size);
    output_file_put_at(elf->file, 0, &ehdr, sizeof ehdr);
    output_file_put_at(elf->file, sizeof ehdr, segments, sizeof segments);
    output_file_put_at(elf->file, NOTE_AT, note, sizeof *note);
}

/*
 * The id is over all of it: a hash of the code alone would let a file with other names or lines
 * stand in for this one.
 */
static struct build_id_note make_note(const struct image_elf *elf)
{
    struct build_id_note note = {
        .header = {.n_namesz = 4, .n_descsz = BUILD_ID_MAX, .n_type = NT_GNU_BUILD_ID},
        .name = "GNU",
    };
    _Static_assert(sizeof elf->hash + sizeof elf->symbol_count == BUILD_ID_MAX, "the id's parts");
    memcpy(note.id, &elf->hash, sizeof elf->hash);
    memcpy(note.id + sizeof elf->hash, &elf->symbol_count, sizeof elf->symbol_count);
    return note;
}

int image_elf_finish(struct image_elf *elf, struct dwarf *dwarf, uint8_t build_id[BUILD_ID_MAX])
{
    uint64_t header_at, header_size;
    add_section(elf, "", (Elf64_Shdr){0});
    add_section(elf, ".note.gnu.build-id",
                (Elf64_Shdr){.sh_type = SHT_NOTE,
                             .sh_flags = SHF_ALLOC,
                             .sh_offset = NOTE_AT,
                             .sh_size = sizeof(struct build_id_note),
                             .sh_addralign = 4});
    put_frames(elf, &header_at, &header_size);
    output_file_seek(elf->file, (elf->end + 15) / 16 * 16); /* what follows is behind the code */
    uint64_t load_end = elf->hides_code ? IMAGE_ELF_TEXT : output_file_tell(elf->file);
    put_symbols(elf);
    int err = dwarf ? put_debug(elf, dwarf) : 0;
    uint32_t names_at = (uint32_t)elf->section_names.size;
    bytes_string(&elf->section_names, ".shstrtab");
    uint32_t names = put_section(elf, ".shstrtab", (Elf64_Shdr){.sh_type = SHT_STRTAB},
                                 elf->section_names.at, elf->section_names.size);
    uint8_t *last = elf->sections.at + names * sizeof(Elf64_Shdr);
    if (!elf->sections.failed && !elf->section_names.failed) {
        memcpy(last + offsetof(Elf64_Shdr, sh_name), &names_at, sizeof names_at);
    }
    output_file_put(elf->file, "\0\0\0\0\0\0\0", -output_file_tell(elf->file) % 8);

    struct build_id_note note = make_note(elf);
    memcpy(build_id, note.id, BUILD_ID_MAX);
    put_headers(elf, load_end, header_at, header_size, names, &note);
    if (elf->names.failed || elf->sections.failed || elf->section_names.failed) {
        err = -ENOMEM;
    }
    err = err ? err : elf->error;
    if (err) {
        output_file_fail(elf->file, err);
    }
    /* ext4 writes a file to the disk at once that replaces another one, seconds for one with holes;
     * and the recording that an earlier image belongs to is about to go, too. */
    (void)unlink(elf->path);
    err = output_file_finish(elf->file);
    elf->file = NULL;
    image_elf_abort(elf);
    return err;
}

/* ---- A hash of contents ---- */

#define C1 UINT64_C(0x87c37b91114253d5)
#define C2 UINT64_C(0x4cf5ad432745937f)

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t mix_low(uint64_t word)
{
    return rotate(word * C1, 31) * C2;
}

static uint64_t mix_high(uint64_t word)
{
    return rotate(word * C2, 33) * C1;
}

static uint64_t finish(uint64_t value)
{
    value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
    value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return value ^ value >> 33;
}

void content_hash_add(struct content_hash *hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t low = hash->low;
    uint64_t high = hash->high;
    uint64_t words[2];
    for (size_t left = size; left >= sizeof words; left -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        low = (rotate(low ^ mix_low(words[0]), 27) + high) * 5 + 0x52dce729;
        high = (rotate(high ^ mix_high(words[1]), 31) + low) * 5 + 0x38495ab5;
    }
    words[0] = words[1] = 0;
    if (size % sizeof words) {
        memcpy(words, at, size % sizeof words);
    }
    low ^= mix_low(words[0]) ^ size;
    high ^= mix_high(words[1]) ^ size;
    low += high;
    high += low;
    low = finish(low);
    high = finish(high);
    hash->low = low + high;
    hash->high = high + hash->low;
}
