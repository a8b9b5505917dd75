/* For targets that also run without rights (confined_main.c). */
#ifndef JD_FUZZ_CONFINED_FUZZ_H
#define JD_FUZZ_CONFINED_FUZZ_H

#include "jdtool/confined/rights.h"

/* What the target's own files need. */
void fuzz_rights(struct rights *rights) __attribute__((weak));

#endif
