/* Fuzzes the table of methods and the names of interpreted frames. */
#include "fuzz_directory.h"

#include "jdtool/unwind/unwind.h"
#include "tests/fuzz/silent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int file;

static void begin(void)
{
    file = make_file("methods");
}

static void ask(struct method_names *names, uint64_t address, uint64_t time)
{
    struct interpreted_frame out;
    struct unwind_frame frame = {
        .caller = time & 1, .method = address, .method_register = address, .bcp = address + time};
    if (interpreter_name(names, &frame, time, &out) && strlen(out.method->name) > 1u << 20) {
        abort();
    }
    struct named_method *method = method_names_at(names, address, time);
    if (method && (method->address != address || (method->from > time && !method->found))) {
        fprintf(stderr, "a method of another place or time\n");
        abort();
    }
    if (method) {
        frame.bcp = method->bytecodes;
        (void)interpreter_name(names, &frame, time, &out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fill_file(file, data, size);
    struct method_names *names;
    if (method_names_open("methods", NULL, NULL, &names) != 0) {
        return 0;
    }
    for (uint64_t address = 0; address < 4096; address += 8) {
        ask(names, address, address * 3);
    }
    if (size >= 16) {
        uint64_t words[2];
        memcpy(words, data + size - 16, sizeof words);
        ask(names, words[0], words[1]);
    }
    method_names_close(names);
    return 0;
}
