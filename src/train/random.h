/* random.h — numpy's legacy generator, because Megatron shuffles its data with it. */
#ifndef RC_TRAIN_RANDOM_H
#define RC_TRAIN_RANDOM_H

#include <stdint.h>

/* Mersenne Twister 19937 (Matsumoto and Nishimura 1998), as numpy.random.RandomState(seed). */
typedef struct rc_twister {
    uint32_t key[624];
    int at;
} rc_twister;

void rc_twister_make(uint32_t seed, rc_twister *twister);
uint32_t rc_twister_next(rc_twister *twister);
/* A uniform draw from [0, most], as the shuffle takes it. */
uint64_t rc_twister_draw(rc_twister *twister, uint64_t most);

/* numpy.random.RandomState.shuffle of a one-dimensional array: the same order for the same seed. */
void rc_twister_shuffle(rc_twister *twister, int64_t *at, int64_t n);
void rc_twister_shuffle_i32(rc_twister *twister, int32_t *at, int64_t n);

#endif
