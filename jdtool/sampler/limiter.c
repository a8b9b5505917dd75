#include "jdtool/sampler/limiter.h"

#include "jdtool/sampler/limit_shared.h"
#include "jdtool/walk/libbpf.h"

#include <stdlib.h>
#include <unistd.h>

LIBBPF_OBJECT(jd_limit_object);

struct limiter {
    struct bpf_object *object;
};

int limiter_map(const struct limiter *limiter, const char *name)
{
    return bpf.map_fd(bpf.find_map(limiter->object, name));
}

static int configure(const struct limiter *limiter, bool is_for_all)
{
    const uint32_t zero = 0;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long second = processors > 0 ? LIMIT_SECOND / processors : LIMIT_SECOND;
    second = second > LIMIT_PROCESSOR ? second : LIMIT_PROCESSOR;
    struct limit_config config = {.is_for_all = is_for_all,
                                  .most = (uint32_t)(second / LIMIT_WINDOWS_SECOND + 1) & ~1U};
    (void)pid_namespace_read(&config.ours);
    return bpf.update(limiter_map(limiter, "limits"), &zero, &config, BPF_ANY);
}

static int start(const struct limiter *limiter, struct filter *filter)
{
    bool is_for_all = filter->processes < 0;
    int err = is_for_all
                  ? 0
                  : bpf.reuse_fd(bpf.find_map(limiter->object, "processes"), filter->processes);
    err = err ? err : bpf.load(limiter->object);
    err = err ? err : configure(limiter, is_for_all);
    return err ? err
               : filter_replace_probes(filter,
                                       bpf.program_fd(bpf.find_program(limiter->object, "limited")),
                                       limiter_map(limiter, "next"));
}

const char *limiter_new(struct filter *filter, struct limiter **out)
{
    struct limiter *limiter = calloc(1, sizeof *limiter);
    *out = NULL;
    if (!limiter) {
        return "there is no memory";
    }
    const char *lacks =
        libbpf_open(jd_limit_object, jd_limit_object_end, "jdperf_limit", &limiter->object);
    int err = lacks ? 0 : start(limiter, filter);
    if (lacks || err) {
        limiter_free(limiter);
        return lacks ? lacks
                     : libbpf_refusal(err, "this kernel does not take the program that limits them "
                                           "(Linux 5.15)");
    }
    *out = limiter;
    return NULL;
}

void limiter_free(struct limiter *limiter)
{
    if (limiter && limiter->object) {
        bpf.close(limiter->object);
    }
    free(limiter);
}

int limiter_output(const struct limiter *limiter, uint32_t processor, int event)
{
    return bpf.update(limiter_map(limiter, "output"), &processor, &event, BPF_ANY);
}
