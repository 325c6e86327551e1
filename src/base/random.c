/* random.c — Philox4x32-10, one counter at a time and many side by side. */
#include "base/random.h"

#include "base/simd.h"

#include <math.h>

/* Multipliers and key increments: Salmon et al. 2011, section 3.3; Random123 philox.h. */
static const uint32_t mul_0 = 0xD2511F53u, mul_1 = 0xCD9E8D57u;
static const uint32_t weyl_0 = 0x9E3779B9u, weyl_1 = 0xBB67AE85u;
enum { N_ROUNDS = 10 };

/* Four named words, not an array: loops over an array's elements would not vectorise. */
typedef struct words {
    uint32_t a, b, c, d;
} words;

RC_INLINE words philox(words x, uint32_t k0, uint32_t k1)
{
#pragma GCC unroll 10
    for (int round = 0; round < N_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)mul_0 * x.a, p1 = (uint64_t)mul_1 * x.c;
        words next = {.a = (uint32_t)(p1 >> 32) ^ x.b ^ k0,
                      .b = (uint32_t)p1,
                      .c = (uint32_t)(p0 >> 32) ^ x.d ^ k1,
                      .d = (uint32_t)p0};
        x = next;
        k0 += weyl_0;
        k1 += weyl_1;
    }
    return x;
}

void rc_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    words x = {counter[0], counter[1], counter[2], counter[3]};
    x = philox(x, key[0], key[1]);
    out[0] = x.a;
    out[1] = x.b;
    out[2] = x.c;
    out[3] = x.d;
}

uint32_t rc_random_bits(const rc_random *random, uint64_t e)
{
    const uint64_t at = e / 4;
    const uint32_t counter[4] = {
        (uint32_t)at, (uint32_t)(at >> 32 & 0xFFFF) | (uint32_t)(random->draw >> 32) << 16,
        random->id, (uint32_t)random->draw};
    const uint32_t key[2] = {(uint32_t)random->seed, (uint32_t)(random->seed >> 32)};
    uint32_t out[4];
    rc_philox(counter, key, out);
    return out[e % 4];
}

RC_CLONES void rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                               uint32_t out[4][RC_RANDOM_LANES])
{
    uint32_t k0 = (uint32_t)random->seed, k1 = (uint32_t)(random->seed >> 32);
    uint32_t c1_base = (uint32_t)(random->draw >> 32) << 16;
    uint32_t id = random->id, draw = (uint32_t)random->draw;
    /* 64-bit counters are made apart from the rounds, which then stay 32 bits wide. */
    for (int i = 0; i < n; i++) {
        uint64_t at = first + (uint64_t)i * step;
        out[0][i] = (uint32_t)at;
        out[1][i] = (uint32_t)(at >> 32 & 0xFFFF) | c1_base;
    }
#pragma omp simd
    for (int i = 0; i < n; i++) {
        words x = philox((words){out[0][i], out[1][i], id, draw}, k0, k1);
        out[0][i] = x.a;
        out[1][i] = x.b;
        out[2][i] = x.c;
        out[3][i] = x.d;
    }
}

uint32_t rc_random_threshold(double p)
{
    double x = p * 4294967296.0;
    return x >= 4294967295.0 ? UINT32_MAX : (uint32_t)x;
}

RC_CLONES static void keep_interleave(uint32_t bits[4][RC_RANDOM_LANES], int n,
                                      uint32_t threshold, float scale, float *keep)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        for (int w = 0; w < 4; w++)
            keep[4 * i + w] = bits[w][i] < threshold ? 0.0f : scale;
}

void rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p, float *keep)
{
    uint32_t bits[4][RC_RANDOM_LANES];
    float edge[4];
    const uint32_t threshold = rc_random_threshold(p);
    const float scale = (float)(1.0 / (1.0 - p));
    int64_t i = 0;
    while (i < n) {
        uint64_t e = first + (uint64_t)i;
        int64_t n_blocks = e % 4 ? 0 : (n - i) / 4;
        if (n_blocks > RC_RANDOM_LANES)
            n_blocks = RC_RANDOM_LANES;
        if (n_blocks > 0) {
            rc_random_lanes(random, e / 4, 1, (int)n_blocks, bits);
            keep_interleave(bits, (int)n_blocks, threshold, scale, keep + i);
            i += 4 * n_blocks;
            continue;
        }
        rc_random_lanes(random, e / 4, 1, 1, bits);
        keep_interleave(bits, 1, threshold, scale, edge);
        for (uint64_t w = e % 4; w < 4 && i < n; w++)
            keep[i++] = edge[w];
    }
}

/* The middle of one of 2^32 equal steps: never 0 or 1. */
static double unit(uint32_t bits)
{
    return ((double)bits + 0.5) * (1.0 / 4294967296.0);
}

void rc_random_uniform(const rc_random *random, uint64_t first, int64_t n, double low,
                       double high, float *to)
{
    for (int64_t i = 0; i < n; i++) {
        double u = unit(rc_random_bits(random, first + (uint64_t)i));
        to[i] = (float)(low + (high - low) * u);
    }
}

void rc_random_normal(const rc_random *random, uint64_t first, int64_t n, double mean,
                      double deviation, float *to)
{
    const double two_pi = 6.283185307179586;
    for (int64_t i = 0; i < n; i += 2) {
        double u = unit(rc_random_bits(random, first + (uint64_t)i));
        double v = unit(rc_random_bits(random, first + (uint64_t)i + 1));
        double radius = deviation * sqrt(-2.0 * log(u));
        to[i] = (float)(mean + radius * cos(two_pi * v));
        if (i + 1 < n)
            to[i + 1] = (float)(mean + radius * sin(two_pi * v));
    }
}
