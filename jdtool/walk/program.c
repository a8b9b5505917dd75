#include "jdtool/walk/program.h"

#include "jdtool/walk/libbpf.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

LIBBPF_OBJECT(jd_walk_object);

static const char *const names[WALK_PROGRAMS] = {
    [WALK_OF_CLOCK] = "sample", [WALK_OF_PROBES] = "probe", [WALK_OF_SWITCHES] = "switched"};

static struct bpf_map *find(const struct walk_program *program, const char *name)
{
    return bpf.find_map(program->object, name);
}

static int map_fd(const struct walk_program *program, const char *name)
{
    return bpf.map_fd(find(program, name));
}

/* What is mapped, and where in struct walk_program that is told; all but the last by who fills it.
 */
static const struct {
    const char *name;
    size_t at;
} mapped[] = {
    {"pages", offsetof(struct walk_program, pages)},
    {"blobs", offsetof(struct walk_program, blobs)},
    {"rows", offsetof(struct walk_program, rows)},
    {"full_rows", offsetof(struct walk_program, full_rows)},
    {"mappings", offsetof(struct walk_program, mappings)},
    {"jvms", offsetof(struct walk_program, jvms)},
    {"wanted", offsetof(struct walk_program, wanted)},
    {"configs", offsetof(struct walk_program, config)},
};
#define MAPPED (sizeof mapped / sizeof *mapped)
#define TABLES (MAPPED - 1)

/* What a table takes in memory: values stand at multiples of 8, and pages are whole. */
static size_t size_of(const struct bpf_map *map)
{
    size_t size = ((size_t)bpf.value_size(map) + 7) / 8 * 8 * bpf.max_entries(map);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

static bool map(struct walk_program *program, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct bpf_map *map = find(program, mapped[i].name);
        void *at = mmap(NULL, size_of(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf.map_fd(map), 0);
        if (at == MAP_FAILED) {
            return false;
        }
        memcpy((char *)program + mapped[i].at, &at, sizeof at);
    }
    return true;
}

static void unmap_tables(const struct walk_program *program)
{
    for (size_t i = 0; i < MAPPED; i++) {
        void *at;
        memcpy(&at, (const char *)program + mapped[i].at, sizeof at);
        if (at) {
            (void)munmap(at, size_of(find(program, mapped[i].name)));
        }
    }
}

/* False: the object has no such tables. */
static bool set_room(const struct walk_program *program, uint32_t processors, bool has_probes)
{
    const struct walk_room *room = &program->room;
    const uint32_t probes = has_probes ? processors * WALK_PROBE_ROOMS : 0;
    const struct {
        const char *name;
        uint32_t count;
    } tables[] = {{"pages", room->pages},
                  {"blobs", room->blobs},
                  {"rows", room->rows},
                  {"jvms", room->jvms},
                  {"scratches", processors + probes},
                  {"rooms", probes ? probes : 1},
                  {"mappings", room->jvms * 2 * WALK_MAPPINGS}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (bpf.set_max_entries(find(program, tables[i].name), tables[i].count)) {
            return false;
        }
    }
    return true;
}

/* Its programs for what is recorded, and what they have of the sampler's. */
static bool choose(const struct walk_program *program, const struct walk_maps *maps)
{
    const bool has_switches = maps->told > 0;
    return !bpf.set_autoload(bpf.find_program(program->object, names[WALK_OF_PROBES]),
                             maps->has_probes) &&
           !bpf.set_autoload(bpf.find_program(program->object, names[WALK_OF_SWITCHES]),
                             has_switches) &&
           (!maps->processes || !bpf.reuse_fd(find(program, "processes"), maps->processes)) &&
           (!maps->limits || (!bpf.reuse_fd(find(program, "output"), maps->output) &&
                              !bpf.reuse_fd(find(program, "limits"), maps->limits) &&
                              !bpf.reuse_fd(find(program, "limit_states"), maps->limit_states))) &&
           (!has_switches || (!bpf.reuse_fd(find(program, "told"), maps->told) &&
                              !bpf.reuse_fd(find(program, "blocked"), maps->blocked) &&
                              !bpf.reuse_fd(find(program, "waking"), maps->waking)));
}

const char *walk_program_load(struct walk_program *program, const struct walk_room *room,
                              const struct walk_maps *maps)
{
    *program = (struct walk_program){.programs = {-1, -1, -1}, .room = *room};
    const char *lacks =
        libbpf_open(jd_walk_object, jd_walk_object_end, "jdperf_walk", &program->object);
    if (lacks) {
        return lacks;
    }
    int processors = bpf.processors();
    if (processors <= 0 || !set_room(program, (uint32_t)processors, maps->has_probes) ||
        !choose(program, maps)) {
        walk_program_close(program);
        return "there is no memory";
    }
    int err = bpf.load(program->object);
    if (err) {
        walk_program_close(program);
        return libbpf_refusal(err, "this kernel does not take the program that walks (Linux 5.17)");
    }
    if (!map(program, TABLES, MAPPED)) {
        walk_program_close(program);
        return "there is no memory";
    }
    for (int i = 0; i < WALK_PROGRAMS; i++) {
        program->programs[i] = bpf.program_fd(bpf.find_program(program->object, names[i]));
    }
    program->processes = maps->processes;
    program->config->processors = (uint32_t)processors;
    program->output = map_fd(program, "output");
    program->ends = map_fd(program, "ends");
    (void)pid_namespace_read(&program->config->ours);
    return NULL;
}

bool walk_program_map(struct walk_program *program)
{
    return map(program, 0, TABLES);
}

void walk_program_close(struct walk_program *program)
{
    if (program->object) {
        unmap_tables(program);
        bpf.close(program->object);
    }
    *program = (struct walk_program){.programs = {-1, -1, -1}};
}

const char *walk_program_lacks(void)
{
    static const struct walk_room least = {1, 1, 1, 1};
    static const struct walk_maps none;
    struct walk_program program;
    const char *lacks = walk_program_load(&program, &least, &none);
    if (!lacks) {
        walk_program_close(&program);
    }
    return lacks;
}

int walk_program_walk(const struct walk_program *program, uint32_t process, uint32_t value)
{
    return bpf.update(program->processes, &process, &value, BPF_EXIST);
}

void walk_program_ends(const struct walk_program *program, uint64_t ends[WALKED_ENDS + 1])
{
    int processors = bpf.processors();
    uint64_t *each = calloc((size_t)processors, sizeof *each);
    for (uint32_t end = 0; end <= WALKED_ENDS; end++) {
        ends[end] = 0;
        bool is = each && bpf.look_up(program->ends, &end, each) == 0;
        for (int i = 0; is && i < processors; i++) {
            ends[end] += each[i];
        }
    }
    free(each);
}
