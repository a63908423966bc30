/*
 * tests/lib/sanitized.h -- whether this is a build with a sanitizer, where small
 * allocations are dear: enumerations then take a share.
 */
#ifndef TESTS_LIB_SANITIZED_H
#define TESTS_LIB_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* `plain`, or with a sanitizer `dear`. */
#define SANITIZED_CHOICE(plain, dear) (SANITIZED ? (dear) : (plain))

#endif
