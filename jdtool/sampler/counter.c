#include "jdtool/sampler/counter.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct named {
    const char *name;
    uint32_t type;
    uint64_t config;
};

static const struct named events[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
};

/* In the order of enum perf_hw_cache_id, and of perf_hw_cache_op_id and perf_hw_cache_op_result_id.
 */
static const char *const caches[] = {"L1-dcache-", "L1-icache-", "LLC-", "dTLB-",
                                     "iTLB-",      "branch-",    "node-"};
static const char *const accesses[] = {"loads",        "load-misses", "stores",
                                       "store-misses", "prefetches",  "prefetch-misses"};

static bool is_cache_event(const char *text, size_t length, uint64_t *config)
{
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        size_t begins = strlen(caches[i]);
        for (size_t k = 0; k < sizeof accesses / sizeof *accesses; k++) {
            if (length == begins + strlen(accesses[k]) && memcmp(text, caches[i], begins) == 0 &&
                memcmp(text + begins, accesses[k], length - begins) == 0) {
                *config = i | (k / 2) << 8 | (k % 2) << 16;
                return true;
            }
        }
    }
    return false;
}

static bool is_raw_event(const char *text, size_t length, uint64_t *config)
{
    char *end;
    if (*text != 'r' || length < 2 || length > 17 ||
        strspn(text + 1, "0123456789abcdefABCDEF") != length - 1) {
        return false;
    }
    *config = strtoull(text + 1, &end, 16);
    return end == text + length;
}

static bool find(const char *text, size_t length, struct counter *out)
{
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (strlen(events[i].name) == length && memcmp(events[i].name, text, length) == 0) {
            out->type = events[i].type;
            out->config = events[i].config;
            return true;
        }
    }
    out->type = PERF_TYPE_HW_CACHE;
    if (is_cache_event(text, length, &out->config)) {
        return true;
    }
    out->type = PERF_TYPE_RAW;
    return is_raw_event(text, length, &out->config);
}

/* With u or k the other one is left out. */
static bool take_modifiers(const char *text, struct counter *out)
{
    size_t count = strspn(text, "ukp");
    bool user = strchr(text, 'u');
    bool kernel = strchr(text, 'k');
    for (const char *at = text; *at; at++) {
        out->precise += *at == 'p';
    }
    out->exclude_user = kernel && !user;
    out->exclude_kernel = user && !kernel;
    return count > 0 && !text[count] && out->precise <= 3;
}

bool counter_parse(const char *name, struct counter *out)
{
    size_t length = strcspn(name, ":");
    *out = (struct counter){.name = name};
    if (!find(name, length, out)) {
        return false;
    }
    bool is_right = !name[length] || take_modifiers(name + length + 1, out);
    /* As perf: of cycles where an interrupt would be late, if nothing else is said. */
    out->precise = out->precise || !counter_is_cycles(out) ? out->precise : 3;
    out->is_known = is_right;
    return is_right;
}

bool counter_is_cycles(const struct counter *counter)
{
    return counter->type == PERF_TYPE_HARDWARE && counter->config == PERF_COUNT_HW_CPU_CYCLES;
}

bool counter_is_timer(const struct counter *counter)
{
    return counter->is_known && counter->type == PERF_TYPE_SOFTWARE &&
           counter->config == PERF_COUNT_SW_CPU_CLOCK;
}

bool counter_is_software(const struct counter *counter)
{
    return counter->is_known && counter->type == PERF_TYPE_SOFTWARE && !counter_is_timer(counter);
}

/* ---- The kernel's tick ---- */

/* As many moments of a tick are enough. */
#define MOMENTS 16

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool counter_is_in_step(const struct counter *counter, uint64_t period, uint64_t second)
{
    static const unsigned ticks[] = {100, 250, 300, 1000}; /* CONFIG_HZ */
    bool is_in_step = false;
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        is_in_step |= second / common_divisor(period * ticks[i], second) < MOMENTS;
    }
    return is_in_step && counter_is_timer(counter);
}

unsigned counter_frequency(const struct counter *counter, unsigned wanted)
{
    unsigned frequency = wanted;
    while (frequency >= MOMENTS && counter_is_in_step(counter, 1, frequency)) {
        frequency--;
    }
    return frequency < MOMENTS ? wanted : frequency;
}
