#include "jdtool/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND   UINT64_C(1000000000)
#define TIME_MAX UINT64_C(1000000000000000000)

bool units_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        double scale;
    } units[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                 {"ns", 1}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (!isdigit((unsigned char)*text) || errno) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) == 0) {
            double wanted = value * units[i].scale;
            *ns = wanted < (double)TIME_MAX ? (uint64_t)(wanted + 0.5) : TIME_MAX;
            return true;
        }
    }
    return false;
}

bool units_seconds(const char *text, unsigned most, unsigned *seconds)
{
    uint64_t ns;
    if (!units_time(text, &ns) || ns == 0 || ns % SECOND || ns / SECOND > most) {
        return false;
    }
    *seconds = (unsigned)(ns / SECOND);
    return true;
}

bool units_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (!isdigit((unsigned char)*text) || errno || (*end && (!unit || end[1])) || value == 0 ||
        value > (UINT64_MAX >> 1 >> shift)) {
        return false;
    }
    *bytes = (uint64_t)value << shift;
    return true;
}

bool units_number(const char *text, uint64_t most, unsigned *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value == 0 || value > most) {
        return false;
    }
    *number = (unsigned)value;
    return true;
}
