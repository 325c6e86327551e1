/* random.h — random numbers that are a function of where they are used.
 *
 * Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a counter and
 * a key give 128 random bits. There is no state, so a recompute that asks for the same element
 * of the same draw gets the same number, in any order and on any number of threads.
 *
 * Element e of a stream is word e % 4 of counter (e / 4, id, draw) under the key `seed`:
 *   counter word 0  low 32 bits of e / 4       word 2  id
 *   counter word 1  bits 32..47 of e / 4,      word 3  low 32 bits of draw
 *                   bits 32..47 of draw above
 */
#ifndef RC_BASE_RANDOM_H
#define RC_BASE_RANDOM_H

#include <stdint.h>

enum { RC_RANDOM_LANES = 64 };

typedef struct rc_random {
    uint64_t seed;
    /* below 2^48 */
    uint64_t draw;
    uint32_t id;
} rc_random;

/* The bare generator, as published. */
void rc_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Element e (below 2^50): 32 random bits; the plain version that tests trust. */
uint32_t rc_random_bits(const rc_random *random, uint64_t e);

/* All four words of the n <= RC_RANDOM_LANES counters e / 4 = first, first + step, ... */
void rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                     uint32_t out[4][RC_RANDOM_LANES]);

/* Bits below this drop an element that is dropped with probability p. */
uint32_t rc_random_threshold(double p);

/* keep[i] = 0 where element first + i is dropped (probability p < 1), else 1 / (1 - p). */
void rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p, float *keep);

/* Weights: uniform in [low, high), or normal by Box and Muller's transform (a pair of elements
 * gives a pair of values). Element first + i gives to[i]; `first` is even. */
void rc_random_uniform(const rc_random *random, uint64_t first, int64_t n, double low,
                       double high, float *to);
void rc_random_normal(const rc_random *random, uint64_t first, int64_t n, double mean,
                      double deviation, float *to);

#endif
