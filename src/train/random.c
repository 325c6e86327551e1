/* train/random.c — the Mersenne Twister and the shuffle of numpy.random.RandomState.
 *
 * Megatron's GPT dataset orders documents and samples by RandomState(seed).shuffle; the same
 * seed must give the same order here, so both algorithms are kept exactly.
 */
#include "train/random.h"

enum { N = 624, M = 397 };

void rc_twister_make(uint32_t seed, rc_twister *twister)
{
    for (uint32_t i = 0; i < N; i++) {
        twister->key[i] = seed;
        seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1;
    }
    twister->at = N;
}

static void make_next_block(uint32_t *key)
{
    for (int i = 0; i < N; i++) {
        uint32_t y = (key[i] & 0x80000000u) | (key[(i + 1) % N] & 0x7fffffffu);
        key[i] = key[(i + M) % N] ^ (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
    }
}

uint32_t rc_twister_next(rc_twister *twister)
{
    if (twister->at == N) {
        make_next_block(twister->key);
        twister->at = 0;
    }
    uint32_t y = twister->key[twister->at++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/* Masked draws until one is not above `most`. Beyond 32 bits numpy joins two draws, the first being
 * the upper half. */
uint64_t rc_twister_draw(rc_twister *twister, uint64_t most)
{
    uint64_t mask = most, value;
    for (int shift = 1; shift <= 32; shift *= 2)
        mask |= mask >> shift;
    do {
        value = rc_twister_next(twister);
        if (most > UINT32_MAX)
            value = value << 32 | rc_twister_next(twister);
        value &= mask;
    } while (value > most);
    return value;
}

void rc_twister_shuffle(rc_twister *twister, int64_t *at, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)rc_twister_draw(twister, (uint64_t)i);
        int64_t kept = at[j];
        at[j] = at[i];
        at[i] = kept;
    }
}

void rc_twister_shuffle_i32(rc_twister *twister, int32_t *at, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)rc_twister_draw(twister, (uint64_t)i);
        int32_t kept = at[j];
        at[j] = at[i];
        at[i] = kept;
    }
}
