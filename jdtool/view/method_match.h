/*
 * Which method people mean by a name that they typed: all of it, the end of it, a part of it, or
 * what a table made of it that had no room ("j.util.Arrays.sort(…)").
 */
#ifndef JD_TOOL_METHOD_MATCH_H
#define JD_TOOL_METHOD_MATCH_H

#include "jdtool/profile/profile.h"

/* How well "pkg.Cls.m(int)" fits what is wanted: 3 it is the same; 2 it is a method of that name
 * ("m", "Cls.m", "p.Cls.m(…)"); 1 it contains it; 0 not at all. */
int method_match(const char *name, const char *wanted);

/* The functions of a profile that fit best, all of one rank. The caller frees *functions. Their
 * number; 0: none fits, or there is no memory. */
uint32_t method_match_all(const struct profile *profile, const char *wanted, uint32_t **functions);

/* Up to `room` functions whose names are nearest to what is wanted by the letters that differ, the
 * nearest first, each name once. Their number. */
uint32_t method_match_nearest(const struct profile *profile, const char *wanted, uint32_t *nearest,
                              uint32_t room);

#endif
