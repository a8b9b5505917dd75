#include "writer/code.h"

#include "format/fnv1a.h"

uint64_t code_identity(const struct code *code)
{
    if (code->facts.compile_id >= 0) {
        return (uint64_t)code->facts.compile_id << 1 | 1;
    }
    return fnv1a(FNV1A_START, code->name) << 1;
}
