/* checkpoint_model.h — a model of two weights with its moments, and the run that it belongs to. */
#ifndef CHECKPOINT_MODEL_H
#define CHECKPOINT_MODEL_H

#include "train/checkpoint.h"

#include "train_files.h"

typedef struct model {
    float w[6], b[2], moments[16];
    rc_weight weights[2], adam[4];
    rc_checkpoint all;
} model;

static inline void fill_model(model *m, float first)
{
    for (int i = 0; i < 6; i++)
        m->w[i] = first + (float)i / 3;
    for (int i = 0; i < 2; i++)
        m->b[i] = -first - (float)i / 7;
    for (int i = 0; i < 16; i++)
        m->moments[i] = first * 10 + (float)i;
    m->weights[0] = (rc_weight){"w", RC_F32, 2, {2, 3}, m->w, 0};
    m->weights[1] = (rc_weight){"b", RC_F32, 1, {2}, m->b, 0};
    m->adam[0] = (rc_weight){"exp_avg.w", RC_F32, 2, {2, 3}, m->moments, 0};
    m->adam[1] = (rc_weight){"exp_avg_sq.w", RC_F32, 2, {2, 3}, m->moments + 6, 0};
    m->adam[2] = (rc_weight){"exp_avg.b", RC_F32, 1, {2}, m->moments + 12, 0};
    m->adam[3] = (rc_weight){"exp_avg_sq.b", RC_F32, 1, {2}, m->moments + 14, 0};
    m->all = (rc_checkpoint){m->weights, m->adam, 2, 4, 1};
}

static inline bool is_same_model(const model *a, const model *b)
{
    return memcmp(a->w, b->w, sizeof a->w) == 0 && memcmp(a->b, b->b, sizeof a->b) == 0 &&
           memcmp(a->moments, b->moments, sizeof a->moments) == 0;
}

static const rc_same identity[] = {{"model.num_layers", "2", NULL},
                                   {"optimizer.lr", "0.001", NULL}};

/* A run of 1000 steps of 8 samples, which evaluates on 16 every 10 steps; before its first. */
static inline rc_state this_run(void)
{
    return (rc_state){.n_global = 8,
                      .valid = {.interval = 10, .n_batch_samples = 16, .n_steps = 1000},
                      .identity = identity,
                      .n_identity = 2};
}

static inline rc_state state_at(int64_t iteration)
{
    rc_state state = this_run();
    state.iteration = iteration;
    state.n_train_samples = iteration * 8;
    state.n_valid_samples = iteration / 10 * 16;
    return state;
}

#endif
