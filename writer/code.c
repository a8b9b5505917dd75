#include "writer/code.h"

#include "format/fnv1a.h"

uint64_t code_identity_compiled(int32_t compile_id)
{
    return (uint64_t)compile_id << 1 | 1;
}

uint64_t code_identity(const struct code *code)
{
    if (code->facts.compile_id >= 0) {
        return code_identity_compiled(code->facts.compile_id);
    }
    return fnv1a(FNV1A_START, code->name) << 1;
}
