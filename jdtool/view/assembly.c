#include "jdtool/view/assembly.h"

#include "jdtool/base/json_writer.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/objects/elf_file.h"
#include "jdtool/view/disassembly.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Code, and where it is. */
struct stretch {
    const uint8_t *bytes;
    size_t size;
    uint64_t address;         /* in the process; of a file in the file */
    struct code_index *index; /* names what is called; NULL: of a file */
    const bool *begins;       /* by offset: an instruction surely begins there; NULL: not known */
};

/* Generated code's own addresses are what the reader sees, and what it calls has a name. */
static void put_instructions(const struct profile *profile, const struct assembly_wanted *wanted,
                             const struct stretch *code, struct json_writer *json)
{
    const char *arch = profile->recording->arch;
    for (uint32_t at = 0; at < code->size;) {
        struct instruction instruction =
            disassemble_in_step(arch, code->bytes, code->size, code->begins, at, code->address);
        bool is_inside =
            instruction.target >= code->address && instruction.target < code->address + code->size;
        char text[INSTRUCTION_TEXT_MAX + 512];
        const struct code_stay *stay = NULL;
        if (instruction.target && !is_inside && code->index) {
            stay = code_index_at(code->index, instruction.target, UINT64_MAX - 1, NULL);
        }
        if (stay) {
            snprintf(text, sizeof text, "%s ; %.400s", instruction.text,
                     code_index_blob(code->index, stay->blob)->name);
        } else if (is_inside && code->index) {
            /* The front end numbers lines by the library's addresses. */
            snprintf(text, sizeof text, "%s ; 0x%" PRIx64, instruction.text,
                     wanted->start + (instruction.target - code->address));
        } else {
            snprintf(text, sizeof text, "%s", instruction.text);
        }
        json_array(json, NULL);
        json_uint(json, NULL, at);
        json_text(json, NULL, text);
        json_end(json);
        at += instruction.size;
    }
}

static void put_answer(const struct profile *profile, const struct assembly_wanted *wanted,
                       const struct stretch *code, struct packed_output *output)
{
    struct json_writer json;
    char text[32];
    json_start(&json, output);
    json_object(&json, NULL);
    snprintf(text, sizeof text, "0x%" PRIx64, wanted->start);
    json_text(&json, "startAddress", text);
    snprintf(text, sizeof text, "0x%zx", code->size);
    json_text(&json, "size", text);
    json_text(&json, "arch", profile->recording->arch ? profile->recording->arch : "x86_64");
    json_array(&json, "syntax");
    json_text(&json, NULL, "Intel");
    json_end(&json);
    json_array(&json, "instructions");
    put_instructions(profile, wanted, code, &json);
    json_end(&json);
    json_end(&json);
}

/* ---- Generated code ---- */

/* By offset in the code from `skipped` on, where samples say that an instruction begins; a caller's
 * address lies in its call. NULL: no memory, which leaves them out. */
static bool *sampled_starts(const struct profile *profile, const struct resolved_code *code,
                            uint64_t skipped, size_t size)
{
    bool *begins = calloc(size + 1, sizeof *begins);
    for (uint32_t i = 0; begins && i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        uint64_t offset = location->address - code->module_address - skipped;
        if (location->code == code && !location->is_caller && offset < size) {
            begins[offset] = true;
        }
    }
    return begins;
}

static const char *write_generated(const struct profile *profile, const struct code_places *codes,
                                   const struct assembly_wanted *wanted,
                                   struct packed_output *output)
{
    uint64_t skipped = 0;
    const struct resolved_code *code =
        code_places_at(codes, wanted->module, wanted->start, &skipped);
    struct code_details details = {0};
    const char *why = NULL;
    if (!code || !code->index || code_index_fetch(code->index, code->blob, &details) < 0) {
        why = "no code of the profile lies there";
    } else if (!details.bytes) {
        why = "the dump has no bytes of this code: the agent ran with code=off";
    } else {
        uint64_t left = code->size - skipped;
        struct stretch stretch = {
            .bytes = details.bytes + skipped,
            .size = (size_t)(wanted->to_end || wanted->size > left ? left : wanted->size),
            .address = code->address + skipped,
            .index = code->index,
        };
        bool *begins = sampled_starts(profile, code, skipped, stretch.size);
        stretch.begins = begins;
        put_answer(profile, wanted, &stretch, output);
        free(begins);
    }
    code_details_free(&details);
    return why;
}

/* ---- Code of files ---- */

/* Where in the file an address is, and how much of its segment is left; false: in none. */
static bool find_segment(Elf *elf, uint64_t address, uint64_t *offset, uint64_t *left)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count && i < INT32_MAX; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            (segment.p_flags & PF_X) && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            *offset = segment.p_offset + (address - segment.p_vaddr);
            *left = segment.p_filesz - (address - segment.p_vaddr);
            return true;
        }
    }
    return false;
}

static const char *write_of_file(const struct profile *profile,
                                 const struct assembly_wanted *wanted, struct packed_output *output)
{
    const struct module *module = wanted->module;
    struct elf_file file = ELF_FILE_NONE;
    uint8_t id[OBJECT_ID_MAX];
    uint64_t address = wanted->start;
    uint64_t offset = 0;
    uint64_t left = 0;
    const char *why = NULL;
    uint8_t *bytes = NULL;
    if (elf_file_open(-1, module->path, &file) != OBJECT_SOUND) {
        return "the file cannot be read here";
    }
    size_t id_size = elf_file_build_id(&file, id);
    if (module->build_id_size && (id_size < module->build_id_size ||
                                  memcmp(id, module->build_id, module->build_id_size) != 0)) {
        why = "the file that is here is not the one that was recorded: its build-id differs";
    } else if (!find_segment(file.elf, address, &offset, &left)) {
        why = "the file has no code there";
    } else {
        uint64_t size = wanted->size < left ? wanted->size : left;
        size = size < ASSEMBLY_MAX ? size : ASSEMBLY_MAX;
        bytes = malloc((size_t)size + 1);
        ssize_t got = bytes ? pread(file.fd, bytes, (size_t)size, (off_t)offset) : -1;
        if (got <= 0) {
            why = "the file cannot be read here";
        } else {
            struct stretch stretch = {.bytes = bytes, .size = (size_t)got, .address = address};
            put_answer(profile, wanted, &stretch, output);
        }
    }
    free(bytes);
    elf_file_close(&file);
    return why;
}

const char *assembly_write(const struct profile *profile, const struct code_places *codes,
                           const struct assembly_wanted *wanted, struct packed_output *output)
{
    switch (wanted->module->kind) {
    case MODULE_JVM:
        return write_generated(profile, codes, wanted, output);
    case MODULE_FILE:
        return write_of_file(profile, wanted, output);
    default:
        return "the kernel's code is not at hand";
    }
}
