/* simd.h — the only door to compiler extensions for vector code.
 *
 * RC_CLONES compiles a function for AVX-512, AVX2 and plain x86-64 and picks one at load time, so
 * one binary runs on any x86-64. An OpenMP region inside such a function would not be cloned (the
 * compiler outlines it first): open the region outside and call the cloned function from it.
 * Sanitizers start after the picking, and clang 14 cannot clone: both build the plain version.
 */
#ifndef RC_BASE_SIMD_H
#define RC_BASE_SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RC_CLONES                                                                              \
    __attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RC_CLONES
#endif

#if defined(__GNUC__)
#define RC_INLINE static inline __attribute__((always_inline))
#else
#define RC_INLINE static inline
#endif

#if defined(__GNUC__)
#define RC_PREFETCH(at) __builtin_prefetch(at)
#else
#define RC_PREFETCH(at) ((void)(at))
#endif

/* Sixteen floats: one AVX-512 register, two of AVX2, four of SSE or NEON. rc_vec_at may stand at
 * any address. Functions must not take or return them by value (the ABI differs by target). */
typedef float rc_vec __attribute__((vector_size(64)));
typedef float rc_vec_at __attribute__((vector_size(64), aligned(4), may_alias));
enum { RC_VEC = 16 };

/* a0 b0 a1 b1 ..., of the lower or the upper eight elements. */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define RC_INTERLEAVE_LOW(a, b)                                                                \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define RC_INTERLEAVE_HIGH(a, b)                                                               \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#else
#error "the kernels need gcc 12 or clang for their vector shuffles"
#endif

/* True where 32 registers of 64 bytes exist: tiles are then wider. */
static inline int rc_cpu_is_wide(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return 0;
#endif
}

#endif
