/*
 * Recordings and the dumps of their JVMs, made by hand: on top of perf_file.h what perf record -g
 * writes of one event.
 */
#ifndef JD_TESTS_RECORDING_BUILDER_H
#define JD_TESTS_RECORDING_BUILDER_H

#include "tests/dump_builder.h"
#include "tests/perf_file.h"
#include "tests/scratch.h"

#include <sys/mman.h>
#include <time.h>

#define PID        BUILDER_PID
#define CODE       UINT64_C(0x7f0000010000) /* of the dump's code */
#define OTHER_CODE UINT64_C(0x7f0000020000)

static inline struct perf_file recording(void)
{
    struct perf_file file = {.attr_count = 1};
    file.attrs[0] = (struct perf_event_attr){
        .size = sizeof file.attrs[0],
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return file;
}

static inline void put_sample_id(uint8_t *at, uint32_t pid, uint64_t time)
{
    uint32_t ids[2] = {pid, pid};
    memcpy(at, ids, sizeof ids);
    memcpy(at + 8, &time, sizeof time);
}

static inline void put_mmap2_of(struct perf_file *file, uint32_t pid, uint64_t time,
                                uint64_t address, uint64_t size, uint64_t offset, const char *path)
{
    uint8_t payload[512] = {0};
    uint32_t ids[2] = {pid, pid};
    uint64_t place[3] = {address, size, offset};
    uint32_t flags[2] = {PROT_READ | PROT_EXEC, MAP_PRIVATE};
    size_t path_size = (strlen(path) + 8) / 8 * 8;
    memcpy(payload, ids, 8);
    memcpy(payload + 8, place, 24);
    memcpy(payload + 56, flags, 8);
    memcpy(payload + 64, path, strlen(path) + 1);
    put_sample_id(payload + 64 + path_size, pid, time);
    perf_file_record(file, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, payload, 64 + path_size + 16);
}

static inline void put_mmap2(struct perf_file *file, uint32_t pid, uint64_t time, uint64_t address,
                             uint64_t size, const char *path)
{
    put_mmap2_of(file, pid, time, address, size, 0, path);
}

/* PERF_RECORD_FORK or _EXIT. */
static inline void put_task(struct perf_file *file, uint32_t type, uint32_t pid, uint32_t parent,
                            uint32_t tid, uint64_t time)
{
    uint32_t ids[4] = {pid, parent, tid, parent};
    uint8_t payload[40];
    memcpy(payload, ids, sizeof ids);
    memcpy(payload + 16, &time, 8);
    put_sample_id(payload + 24, pid, time);
    perf_file_record(file, type, 0, payload, sizeof payload);
}

static inline void put_comm(struct perf_file *file, uint32_t pid, uint32_t tid, uint64_t time,
                            const char *name, bool exec)
{
    uint8_t payload[48] = {0};
    uint32_t ids[2] = {pid, tid};
    memcpy(payload, ids, sizeof ids);
    memcpy(payload + 8, name, strlen(name));
    put_sample_id(payload + 24, pid, time);
    perf_file_record(file, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, payload, 40);
}

static inline void put_sample_of(struct perf_file *file, uint32_t pid, uint32_t tid, uint64_t time,
                                 const uint64_t *chain, uint64_t count)
{
    uint64_t payload[1024] = {chain[0] >= PERF_CONTEXT_MAX ? chain[1] : chain[0],
                              pid | (uint64_t)tid << 32, time, count};
    memcpy(payload + 4, chain, count * 8);
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, (4 + count) * 8);
}

static inline void put_sample(struct perf_file *file, uint32_t pid, uint64_t time,
                              const uint64_t *chain, uint64_t count)
{
    put_sample_of(file, pid, pid, time, chain, count);
}

/* A thread's user part of call chains, which completes samples of that cookie. */
static inline void put_late_chain(struct perf_file *file, uint32_t pid, uint64_t time,
                                  uint64_t cookie, const uint64_t *chain, uint64_t count)
{
    uint64_t payload[64] = {cookie, count};
    memcpy(payload + 2, chain, count * 8);
    put_sample_id((uint8_t *)(payload + 2 + count), pid, time);
    perf_file_record(file, PERF_RECORD_CALLCHAIN_DEFERRED, 0, payload, (4 + count) * 8);
}

static inline void put_round(struct perf_file *file)
{
    perf_file_record(file, PERF_USER_FINISHED_ROUND, 0, NULL, 0);
}

/* Code at CODE, 16 bytes: a.A.m() line 10, from 4 on b.B.inlined() line 11, called at line 10. */
static inline void build_simple_dump(struct dump_builder *dump)
{
    dump_header(dump);
    dump_group(dump, 1000100, CODE, 16, 2, "a.A.m()");
    dump_load(dump, 1000300, CODE + 64, 16, 3, "stub");
    dump_load(dump, 1000500, CODE, 16, 4, "a.A.later()"); /* where a.A.m() was */
    dump_load(dump, 1000600, OTHER_CODE, 16, 5, "untouched");
}

#endif
