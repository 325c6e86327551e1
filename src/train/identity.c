/* train/identity.c — what must stay the same for a resumed run to be the same run.
 *
 * Model, optimizer, schedule, seeds and the order of the data are in it; where memory or time go
 * is not: recompute settings, attention backend, threads, budget and paths may change. Three of
 * these change the order of sums and so the last bits: they are kept apart, to be told.
 */
#include "train/training.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_PAIRS = 512 };

typedef struct pairs {
    rc_training *training;
    rc_pair *at;
    size_t n;
} pairs;

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Compared as written. What Megatron derives when null is compared as derived, below. */
static bool is_compared(rc_field field)
{
    static const rc_field derived[] = {
        RC_FIELD_num_query_groups,  RC_FIELD_kv_channels,
        RC_FIELD_ffn_hidden_size,   RC_FIELD_vocab_size,
        RC_FIELD_attention_backend, RC_FIELD_distribute_saved_activations,
    };
    const char *key = rc_field_find(field)->key;
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        if (field == derived[i])
            return false;
    if (starts_with(key, "model."))
        return !strstr(key, "recompute") && !strstr(key, "parallel");
    return starts_with(key, "optimizer.") || field == RC_FIELD_seed ||
           field == RC_FIELD_rope_dynamic_factor || field == RC_FIELD_yarn_attention_factor ||
           field == RC_FIELD_split || field == RC_FIELD_eod_mask_loss ||
           field == RC_FIELD_eod_id;
}

static rc_code add_field(pairs *to, rc_field field, rc_error *err)
{
    rc_pair *pair = &to->at[to->n++];
    pair->key = rc_field_find(field)->key;
    return rc_config_show(to->training->cfg, field, to->training->mem, &pair->value, err);
}

static rc_code add_count(pairs *to, const char *key, int64_t value, rc_error *err)
{
    rc_pair *pair = &to->at[to->n++];
    pair->key = key;
    return rc_arena_printf(to->training->mem, &pair->value, err, "%" PRId64, value);
}

static rc_code add_real(pairs *to, const char *key, double value, rc_error *err)
{
    rc_pair *pair = &to->at[to->n++];
    pair->key = key;
    return rc_arena_printf(to->training->mem, &pair->value, err, "%.17g", value);
}

static rc_code add_derived(pairs *to, rc_error *err)
{
    const rc_dims *dims = &to->training->graph->dims;
    RC_TRY(add_count(to, "model.num_query_groups", dims->g, err));
    RC_TRY(add_count(to, "model.kv_channels", dims->d, err));
    RC_TRY(add_count(to, "model.ffn_hidden_size", dims->f, err));
    RC_TRY(add_count(to, "model.vocab_size", dims->W, err));
    return add_count(to, "model.vocab_size (padded)", dims->V, err);
}

static rc_code add_schedule(pairs *to, rc_error *err)
{
    const rc_lr *lr = &to->training->lr;
    RC_TRY(add_count(to, "train.global_batch_size", to->training->set.n_global, err));
    RC_TRY(add_field(to, RC_FIELD_lr_decay_style, err));
    RC_TRY(add_count(to, "scheduler.lr_decay_iters (in samples)", lr->n_decay_samples, err));
    RC_TRY(add_real(to, "the warm-up (in samples)", lr->n_warmup_samples, err));
    RC_TRY(add_field(to, RC_FIELD_lr_warmup_init, err));
    if (lr->style != RC_LR_WSD)
        return RC_OK;
    RC_TRY(add_field(to, RC_FIELD_lr_wsd_decay_style, err));
    return add_count(to, "scheduler.lr_wsd_decay_iters (in samples)", lr->n_wsd_samples, err);
}

/* The same files by content's size, not by path; and the same passes over them, because
 * documents of all passes are shuffled together. */
static rc_code add_data(pairs *to, rc_error *err)
{
    const rc_training *training = to->training;
    const rc_dataset *train = training->train;
    RC_TRY(add_count(to, "dataset.random_seed", training->set.data_seed, err));
    RC_TRY(add_count(to, "documents in the train split",
                     training->corpus->n_documents[RC_SPLIT_TRAIN], err));
    RC_TRY(add_count(to, "tokens in the train split",
                     training->corpus->n_tokens[RC_SPLIT_TRAIN], err));
    RC_TRY(
        add_count(to, "passes over the train split (from train_iters)", train->n_epochs, err));
    return add_count(to, "separately shuffled last passes (from train_iters)",
                     train->has_separate_last_epoch, err);
}

static rc_code add_order(pairs *to, rc_error *err)
{
    RC_TRY(add_count(to, "engine.threads", to->training->set.n_threads, err));
    RC_TRY(add_count(to, "train.micro_batch_size", to->training->set.b, err));
    rc_pair *core = &to->at[to->n++];
    core->key = "model.attention_backend";
    core->value = "unfused";
    for (int i = 0; i < to->training->graph->n_ops; i++)
        if (to->training->graph->ops[i].kind == RC_OP_attention)
            core->value = "fused";
    return RC_OK;
}

rc_code rc_training_identity(rc_training *training, rc_error *err)
{
    pairs to = {.training = training};
    RC_TRY(RC_NEW(training->mem, &to.at, RC_FIELD_COUNT + MOST_PAIRS, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        if (is_compared((rc_field)i))
            RC_TRY(add_field(&to, (rc_field)i, err));
    RC_TRY(add_derived(&to, err));
    RC_TRY(add_schedule(&to, err));
    RC_TRY(add_data(&to, err));
    training->state.identity = to.at;
    training->state.n_identity = to.n;
    RC_TRY(add_order(&to, err));
    training->state.order = training->state.identity + training->state.n_identity;
    training->state.n_order = to.n - training->state.n_identity;
    return RC_OK;
}
