#include "writer/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool array_grow(void *array, size_t *room, size_t count, size_t size)
{
    enum { FIRST = 16 };
    size_t more = *room < FIRST / 2 ? FIRST : *room * 2;
    while (more < count && more <= SIZE_MAX / 2) {
        more *= 2;
    }
    void *before;
    memcpy(&before, array, sizeof(before)); /* a pointer to whatever it is */
    void *grown = more >= count && more <= SIZE_MAX / size ? realloc(before, more * size) : NULL;
    if (!grown) {
        return false;
    }
    memcpy(array, &grown, sizeof(grown));
    *room = more;
    return true;
}
