/* sanitized.h — RC_IS_SANITIZED: is this a build whose memory is the sanitizer's? */
#ifndef RC_TESTS_SANITIZED_H
#define RC_TESTS_SANITIZED_H

/* clang tells of its sanitizers in another way than gcc */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RC_IS_SANITIZED 1
#elif defined(__has_feature)
#define RC_IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define RC_IS_SANITIZED 0
#endif

#endif
