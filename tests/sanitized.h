/* Whether a sanitizer is built in: malloc's own figures are no more (mallinfo), and what is
 * repeated only to weigh memory, or to meet chance once more, need not be repeated as often. */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined __has_feature /* clang's way of telling; gcc defines a macro each */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined SANITIZED && (defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
