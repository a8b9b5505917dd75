/* A class file: abstract class Cls with a field m and two methods m(), one without code. */
#ifndef JD_TESTS_CLASS_FILE_H
#define JD_TESTS_CLASS_FILE_H

#include <stdint.h>

// clang-format off
static const uint8_t class_bytes[] = {
    0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61, /* version */
    0, 8,                                /* the pool */
    1, 0, 3, 'C', 'l', 's',              /* 1 */
    7, 0, 1,                             /* 2: class */
    1, 0, 1, 'm',                        /* 3 */
    1, 0, 3, '(', ')', 'V',              /* 4 */
    1, 0, 4, 'C', 'o', 'd', 'e',         /* 5 */
    1, 0, 15, 'L', 'i', 'n', 'e', 'N', 'u', 'm', 'b', 'e', 'r', 'T', 'a', 'b', 'l', 'e', /* 6 */
    1, 0, 1, 'I',                              /* 7 */
    0, 0x20, 0, 2, 0, 2, 0, 1, 0, 2,           /* class, superclass, an interface */
    0, 1, 0, 0, 0, 3, 0, 7, 0, 0,              /* a field m:I */
    0, 2,                                      /* methods */
    0, 0, 0, 3, 0, 4, 0, 1,                    /* m()V */
    0, 5, 0, 0, 0, 38, 0, 1, 0, 1, 0, 0, 0, 2, /* its Code */
    0x2a, 0xb1,                                /* aload_0, return */
    0, 1, 0, 0, 0, 1, 0, 1, 0, 0,              /* a handler */
    0, 1, 0, 6, 0, 0, 0, 10, 0, 2,             /* LineNumberTable */
    0, 1, 0, 9, 0, 0, 0, 8,                    /* 1: line 9, 0: line 8 */
    4, 0, 0, 3, 0, 4, 0, 0,                    /* abstract */
    0, 0,                                      /* no attributes */
};
// clang-format on

#define CLASS_LISTING "m()V\n    0: aload_0  // line 8\n    1: return  // line 9\n"

#endif
