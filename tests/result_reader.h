/*
 * What jdtool made of a recording: the records of the result that map and sample, and the symbols
 * of its images.
 */
#ifndef JD_TESTS_RESULT_READER_H
#define JD_TESTS_RESULT_READER_H

#include "jdtool/perf/perf_data.h"

#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A record of the result, the facts tests ask for. */
struct seen {
    uint32_t type;
    uint32_t pid;
    uint64_t time;
    uint64_t address; /* of a mapping, or a sample's ip */
    uint64_t size;    /* of a mapping */
    uint64_t offset;  /* in its file */
    char path[256];
    uint64_t chain[32];
    uint64_t chain_count;
    uint64_t has; /* of a sample, as in perf_sample */
};

/* All records of the file at `path`, at most `room`; how many. */
static inline uint32_t read_result(const char *path, struct seen *all, uint32_t room)
{
    struct perf_data *data;
    struct perf_record record;
    uint32_t count = 0;
    assert_int_equal(perf_data_open(path, &data), 0);
    while (perf_data_next(data, &record) > 0) {
        struct seen *seen = &all[count++];
        assert_true(count <= room);
        *seen = (struct seen){.type = record.type};
        if (record.type == PERF_RECORD_SAMPLE) {
            struct perf_sample sample;
            assert_int_equal(perf_sample_decode(data, &record, &sample), 0);
            seen->time = sample.time;
            seen->address = sample.ip;
            seen->pid = sample.pid;
            seen->has = sample.has;
            seen->chain_count = sample.chain_count;
            memcpy(seen->chain, sample.chain, sample.chain_count * 8);
        } else if (record.type == PERF_RECORD_MMAP2) {
            seen->time = perf_record_id(data, &record).time;
            memcpy(&seen->pid, record.bytes + 8, 4);
            memcpy(&seen->address, record.bytes + 16, 8);
            memcpy(&seen->size, record.bytes + 24, 8);
            memcpy(&seen->offset, record.bytes + 32, 8);
            snprintf(seen->path, sizeof seen->path, "%s", (const char *)record.bytes + 72);
        }
    }
    perf_data_close(data);
    return count;
}

/* The name of the symbol over a file offset of an image, "" when there is none. Sections lie at
 * their offsets, and symbols inside of theirs. */
static inline const char *symbol_at(const char *path, uint64_t offset)
{
    static char name[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    assert_non_null(elf);
    name[0] = '\0';
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        GElf_Sym symbol;
        gelf_getshdr(section, &header);
        for (int i = 0;
             header.sh_type == SHT_SYMTAB && gelf_getsym(elf_getdata(section, NULL), i, &symbol);
             i++) {
            if (symbol.st_value <= offset && offset < symbol.st_value + symbol.st_size) {
                GElf_Shdr text;
                gelf_getshdr(elf_getscn(elf, symbol.st_shndx), &text);
                assert_int_equal(text.sh_addr, text.sh_offset);
                assert_true(symbol.st_value >= text.sh_addr &&
                            symbol.st_value + symbol.st_size <= text.sh_addr + text.sh_size);
                snprintf(name, sizeof name, "%s", elf_strptr(elf, header.sh_link, symbol.st_name));
            }
        }
    }
    elf_end(elf);
    close(fd);
    return name;
}

#endif
