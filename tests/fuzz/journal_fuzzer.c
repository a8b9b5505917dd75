/* Fuzzes the journal of threads while it grows. */
#include "fuzz_directory.h"

#include "jdtool/jitdump/thread_journal.h"
#include "tests/fuzz/silent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file;

static void begin(void)
{
    file = make_file("journal");
}

static void check_text(const char *text)
{
    if (text && strlen(text) > 1u << 20) {
        abort();
    }
}

static void check(const struct thread_identity *who)
{
    check_text(who->name);
    check_text(who->virtual_name);
    check_text(who->labels);
    if (who->virtual_name && !who->virtual_id) {
        fprintf(stderr, "a virtual thread's name without a virtual thread\n");
        abort();
    }
}

static void ask(struct thread_journal *journal, uint32_t tid, uint64_t time)
{
    struct thread_identity who;
    if (thread_journal_at(journal, tid, time, "main", "java", &who) == 0) {
        check(&who);
    }
    thread_journal_virtual_at(journal, time, time + tid, &who);
    check_text(who.virtual_name);
}

static void ask_all(struct thread_journal *journal, const uint8_t *data, size_t size)
{
    for (uint32_t tid = 0; tid < 16; tid++) {
        for (uint64_t time = 0; time < 64; time += 7) {
            ask(journal, tid, time);
        }
    }
    /* Numbers that it is likely to know. */
    for (size_t at = 0; at + 24 <= size && at < 1024; at += 24) {
        uint32_t tid;
        uint64_t time;
        memcpy(&tid, data + at, sizeof tid);
        memcpy(&time, data + at + 8, sizeof time);
        ask(journal, tid, time);
        ask(journal, tid, time + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct thread_journal *journal;
    size_t half = size ? size - data[size - 1] % size : 0;
    fill_file(file, data, half);
    if (thread_journal_open("journal", half == size, &journal) != 0) {
        return 0;
    }
    ask_all(journal, data, size);
    if (pwrite(file, data + half, size - half, (off_t)half) != (ssize_t)(size - half)) {
        abort();
    }
    if (thread_journal_update(journal, true) >= 0) {
        ask_all(journal, data, size);
    }
    thread_journal_close(journal);
    return 0;
}
