/* The parent's part: what a confined process asks for, and what it gets. */
#ifndef JD_TOOL_REQUESTS_H
#define JD_TOOL_REQUESTS_H

#include "jdtool/confined/rights.h"

#include <sys/types.h>

struct requests {
    int listener;
    int pidfd;
    pid_t pid;
    const struct rights *rights;
};

/* Whether we may look into that process, whose memory holds this value at this address. */
bool requests_can(const struct requests *requests, uint64_t address, uint32_t value);

/* Answers one. False: there will be no more. */
bool requests_answer(const struct requests *requests);

#endif
