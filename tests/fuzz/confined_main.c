/*
 * A fuzz target in a process without rights, as what it tries is in jdtool: what the filter
 * refuses shows there, too. libFuzzer has no threads, no timer and no new files then.
 */
#include "confined_fuzz.h"

#include "jdtool/confined/confined.h"

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*run)(const uint8_t *data, size_t size));
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* LLVMFuzzerInitialize of the targets that have one: files are made before rights are given up. */
int fuzzer_prepare(int *argc, char ***argv) __attribute__((weak));

struct words {
    int count;
    char **list;
};

static int work(void *context)
{
    struct words *words = context;
    if (!confined_here()) {
        return 1;
    }
    return LLVMFuzzerRunDriver(&words->count, &words->list, LLVMFuzzerTestOneInput);
}

int main(int argc, char **argv)
{
    struct words words = {argc, argv};
    struct rights *rights = rights_new();
    if (!rights || (fuzzer_prepare && fuzzer_prepare(&argc, &argv))) {
        return 1;
    }
    rights_of_words(rights, argv + 1); /* the corpus, the dictionary */
    if (fuzz_rights) {
        fuzz_rights(rights);
    }
    int status = confined_run(&(struct confined_options){
        .rights = rights, .what = "the corpus", .work = work, .context = &words});
    rights_free(rights);
    return status;
}
