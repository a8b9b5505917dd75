#include "jdtool/objects/elf_symbols.h"

#include "jdtool/base/bytes.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Sections by number: which hold code. */
static bool is_code(Elf *elf, size_t index)
{
    GElf_Shdr header;
    Elf_Scn *section = elf_getscn(elf, index);
    return section && gelf_getshdr(section, &header) && (header.sh_flags & SHF_EXECINSTR);
}

/* aarch64 marks where code and data begin ($x, $d, and with a suffix). Elsewhere no name is looked
 * at, of which a JVM's library has some megabytes. */
static bool is_mapping_mark(const struct symbols *symbols, const struct symbol *symbol,
                            unsigned machine)
{
    if (machine != EM_AARCH64) {
        return false;
    }
    const char *name = symbol_name(symbols, symbol);
    return name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
           (name[2] == '\0' || name[2] == '.');
}

static bool take(const GElf_Sym *symbol, bool code)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name == 0) {
        return false;
    }
    if (type == STT_NOTYPE) { /* a label in assembly */
        return code && symbol->st_shndx != SHN_ABS;
    }
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && code;
}

static bool add_table(struct symbols *symbols, const struct elf_file *file, Elf_Scn *section,
                      const GElf_Shdr *header, uint8_t group)
{
    Elf *elf = file->elf;
    Elf_Scn *strings_section = elf_getscn(elf, header->sh_link);
    Elf_Data *strings = strings_section ? elf_getdata(strings_section, NULL) : NULL;
    Elf_Data *table = elf_getdata(section, NULL);
    if (!table || !strings || !strings->d_buf || header->sh_entsize == 0) {
        return false;
    }
    symbols->names[group].bytes = strings->d_buf;
    symbols->names[group].size = strings->d_size;
    size_t count = table->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
    size_t known = SHN_UNDEF; /* the section asked for last */
    bool known_is_code = false;
    for (size_t i = 1; i < count && i <= INT32_MAX && !symbols->cut; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(table, (int)i, &symbol)) {
            break;
        }
        if (symbol.st_shndx != known) {
            known = symbol.st_shndx;
            known_is_code = known < SHN_LORESERVE && is_code(elf, known);
        }
        if (!take(&symbol, known_is_code)) {
            continue;
        }
        struct symbol kept = {
            .address = symbol.st_value,
            .size = symbol.st_size < UINT32_MAX ? (uint32_t)symbol.st_size : UINT32_MAX,
            .name = symbol.st_name,
            .group = group,
            .binding = GELF_ST_BIND(symbol.st_info),
        };
        if (!is_mapping_mark(symbols, &kept, file->machine)) {
            symbols_add(symbols, &kept);
        }
    }
    return true;
}

static bool add(struct symbols *symbols, const struct elf_file *file, unsigned type, uint8_t group)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) && header.sh_type == type) {
            return add_table(symbols, file, section, &header, group);
        }
    }
    return false;
}

bool elf_symbols_add(struct symbols *symbols, const struct elf_file *file, uint8_t group)
{
    return add(symbols, file, SHT_SYMTAB, group);
}

bool elf_symbols_add_dynamic(struct symbols *symbols, const struct elf_file *file, uint8_t group)
{
    return add(symbols, file, SHT_DYNSYM, group);
}

/* Where the entries are: behind a header in .plt, or without one in .plt.sec, which Intel's CET has
 * calls go to. False: there is none that is known. */
static bool find_plt(const struct elf_file *file, uint64_t *address, uint64_t *size)
{
    size_t bytes;
    GElf_Shdr header;
    Elf_Scn *section = elf_file_section(file, ".plt.sec", &bytes);
    bool second = section != NULL;
    if (!second) {
        section = elf_file_section(file, ".plt", &bytes);
    }
    if (!section || !gelf_getshdr(section, &header)) {
        return false;
    }
    uint64_t skip = second ? 0 : file->machine == EM_AARCH64 ? 32 : 16;
    *address = header.sh_addr + skip;
    *size = header.sh_size > skip ? header.sh_size - skip : 0;
    return file->machine == EM_X86_64 || file->machine == EM_AARCH64;
}

static Elf_Data *table_of(Elf_Scn *section, GElf_Shdr *header)
{
    return section && gelf_getshdr(section, header) ? elf_getdata(section, NULL) : NULL;
}

#define PLT_ENTRY 16

void elf_symbols_add_plt(struct symbols *symbols, const struct elf_file *file, uint8_t group,
                         char **names)
{
    Elf *elf = file->elf;
    size_t bytes;
    uint64_t address;
    uint64_t size;
    GElf_Shdr relocations_header;
    GElf_Shdr symbols_header;
    struct bytes text = {0};
    *names = NULL;
    Elf_Data *relocations =
        table_of(elf_file_section(file, ".rela.plt", &bytes), &relocations_header);
    Elf_Data *dynamic =
        relocations ? table_of(elf_getscn(elf, relocations_header.sh_link), &symbols_header) : NULL;
    if (!dynamic || relocations_header.sh_type != SHT_RELA || !find_plt(file, &address, &size)) {
        return;
    }
    bytes_u8(&text, 0);
    for (int i = 0; i < (int)(size / PLT_ENTRY) && i < UINT16_MAX; i++) {
        GElf_Rela relocation;
        GElf_Sym symbol;
        if (!gelf_getrela(relocations, i, &relocation)) {
            break;
        }
        size_t number = GELF_R_SYM(relocation.r_info);
        const char *name =
            number && number <= INT32_MAX && gelf_getsym(dynamic, (int)number, &symbol)
                ? elf_strptr(elf, symbols_header.sh_link, symbol.st_name)
                : NULL;
        if (name && name[0]) { /* those without are resolved by a function (IFUNC) */
            struct symbol entry = {.address = address + (uint64_t)i * PLT_ENTRY,
                                   .size = PLT_ENTRY,
                                   .name = (uint32_t)text.size,
                                   .group = group,
                                   .binding = STB_GLOBAL};
            bytes_put(&text, name, strnlen(name, SYMBOL_NAME_MAX - 8));
            bytes_string(&text, "@plt");
            symbols_add(symbols, &entry);
        }
    }
    symbols->names[group].bytes = (char *)text.at;
    symbols->names[group].size = text.failed ? 0 : text.size;
    *names = (char *)text.at;
}
