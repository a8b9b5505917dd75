#include "jdtool/sampler/processors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool processors_parse(const char *list, bool *online, uint32_t count)
{
    memset(online, 0, count * sizeof *online);
    const char *at = list;
    do {
        char *end;
        unsigned long first = strtoul(at, &end, 10);
        bool is_number = *at >= '0' && *at <= '9';
        unsigned long last = first;
        if (is_number && *end == '-') {
            at = end + 1;
            is_number = *at >= '0' && *at <= '9';
            last = strtoul(at, &end, 10);
        }
        if (!is_number || last < first) {
            return false;
        }
        for (unsigned long i = first; i <= last && i < count; i++) {
            online[i] = true;
        }
        at = end + (*end == ',');
    } while (at[-1] == ',');
    return *at == '\0' || *at == '\n';
}

bool processors_read(bool *online, uint32_t count)
{
    char list[4096];
    FILE *file = fopen("/sys/devices/system/cpu/online", "re");
    bool is_read = file && fgets(list, sizeof list, file);
    if (file) {
        fclose(file);
    }
    return is_read && processors_parse(list, online, count);
}
