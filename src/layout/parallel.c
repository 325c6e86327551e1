/* layout/parallel.c — how many ranks there are in each parallel dimension, and micro-batches in a step.
 *
 * takes  the sizes that are set
 * gives  those that follow: replicas of the model and of its experts, the world, micro-batches
 * next   stages.c deals the layers out
 *
 * Source: Megatron-LM megatron/core/parallel_state.py, initialize_model_parallel; model_parallel_config.py;
 * num_microbatches_calculator.py; megatron/training/arguments.py, validate_args.
 */
#include "layout/parallel.h"

#include "base/num.h"
#include "layout/need.h"

#include <inttypes.h>

static int64_t common_factor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static rc_code times(const rc_config *cfg, rc_field field, int64_t by, int64_t *n,
                     rc_error *err)
{
    if (rc_mul(*n, by, n))
        return RC_OK;
    return RC_FAIL(err, RC_E_RANGE, cfg->origin[field].where,
                   "%s: the ranks of the job pass 2^63-1", rc_field_key(field));
}

/* tensor_parallel_num_weight_shards decides gtp_weight_remat_size where it is set
 * (model_parallel_config.py, resolve_tensor_parallel_weight_shards). */
static rc_code read_weight_shards(const rc_config *cfg, rc_parallel *out, rc_error *err)
{
    int64_t n_shards;
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_gtp_weight_remat_size, 1, &out->gtp, err));
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_tensor_parallel_num_weight_shards,
                               out->tp * out->gtp, &n_shards, err));
    RC_TRY(rc_layout_need_multiple(cfg, RC_FIELD_tensor_parallel_num_weight_shards,
                                   (rc_share){n_shards, out->tp, "tensor_model_parallel_size"},
                                   err));
    out->gtp = n_shards / out->tp;
    return RC_OK;
}

static rc_code read_sizes(const rc_config *cfg, rc_parallel *out, rc_error *err)
{
    const struct {
        rc_field field;
        int64_t *out;
    } rows[] = {
        {RC_FIELD_tensor_model_parallel_size, &out->tp},
        {RC_FIELD_context_parallel_size, &out->cp},
        {RC_FIELD_pipeline_model_parallel_size, &out->pp},
        {RC_FIELD_expert_model_parallel_size, &out->ep},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RC_TRY(rc_layout_need_size(cfg, rows[i].field, 1, rows[i].out, err));
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_expert_tensor_parallel_size, out->tp, &out->etp,
                               err));
    return read_weight_shards(cfg, out, err);
}

/* Ranks of one replica on one stage: of the model, and of its experts. */
static rc_code find_replicas(const rc_config *cfg, const rc_parallel *sizes, int64_t *dense,
                             int64_t *experts, rc_error *err)
{
    *dense = sizes->tp;
    *experts = sizes->etp;
    RC_TRY(times(cfg, RC_FIELD_context_parallel_size, sizes->cp, dense, err));
    RC_TRY(times(cfg, RC_FIELD_tensor_parallel_num_weight_shards, sizes->gtp, dense, err));
    return times(cfg, RC_FIELD_expert_model_parallel_size, sizes->ep, experts, err);
}

/* Where nobody says it: as many as data_parallel_size replicas take, or as hold every layer and expert once. */
static rc_code find_world(const rc_config *cfg, int64_t dense, int64_t experts,
                          rc_parallel *sizes, rc_error *err)
{
    int64_t n_replicas = experts / common_factor(dense, experts);
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_data_parallel_size, n_replicas, &n_replicas, err));
    sizes->is_world_given = rc_layout_is_set(cfg, RC_FIELD_data_parallel_size);
    sizes->world = dense;
    RC_TRY(times(cfg, RC_FIELD_data_parallel_size, n_replicas, &sizes->world, err));
    return times(cfg, RC_FIELD_pipeline_model_parallel_size, sizes->pp, &sizes->world, err);
}

static rc_code divide_world(const rc_config *cfg, int64_t dense, int64_t experts,
                            rc_parallel *sizes, rc_error *err)
{
    const rc_field blame = rc_layout_is_set(cfg, RC_FIELD_world_size)
                               ? RC_FIELD_world_size
                               : RC_FIELD_expert_model_parallel_size;
    int64_t n_dense = dense, n_experts = experts, dp;
    RC_TRY(times(cfg, RC_FIELD_pipeline_model_parallel_size, sizes->pp, &n_dense, err));
    RC_TRY(times(cfg, RC_FIELD_pipeline_model_parallel_size, sizes->pp, &n_experts, err));
    RC_TRY(rc_layout_need_multiple(
        cfg, RC_FIELD_world_size,
        (rc_share){sizes->world, n_dense, "the ranks of one replica of the model"}, err));
    RC_TRY(rc_layout_need_multiple(
        cfg, blame,
        (rc_share){sizes->world, n_experts, "the ranks of one replica of the experts"}, err));
    sizes->dp = sizes->world / n_dense;
    sizes->edp = sizes->world / n_experts;
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_data_parallel_size, sizes->dp, &dp, err));
    if (dp == sizes->dp)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_data_parallel_size].where,
                   "%s is %" PRId64 ", but a job of %" PRId64 " ranks has %" PRId64
                   " replicas of the model",
                   rc_field_key(RC_FIELD_data_parallel_size), dp, sizes->world, sizes->dp);
}

rc_code rc_parallel_read(const rc_config *cfg, int64_t world_size, rc_parallel *out,
                         rc_error *err)
{
    int64_t dense, experts;
    RC_TRY(read_sizes(cfg, out, err));
    RC_TRY(rc_layout_find_switch(cfg, "dist.use_tp_pp_dp_mapping",
                                 &out->is_stage_before_replica, err));
    RC_TRY(find_replicas(cfg, out, &dense, &experts, err));
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_world_size, 0, &out->world, err));
    if (world_size)
        out->world = world_size;
    out->is_world_given = out->world > 0;
    if (!out->is_world_given)
        RC_TRY(find_world(cfg, dense, experts, out, err));
    return divide_world(cfg, dense, experts, out, err);
}

rc_code rc_parallel_read_experts(const rc_config *cfg, int64_t *out, rc_error *err)
{
    const rc_field ep = RC_FIELD_expert_model_parallel_size;
    int64_t n_ranks;
    *out = 0;
    /* Megatron-LM's command line takes 0 for none */
    if (rc_layout_is_set(cfg, RC_FIELD_num_moe_experts) && cfg->num_moe_experts != 0)
        RC_TRY(rc_layout_need_size(cfg, RC_FIELD_num_moe_experts, 0, out, err));
    RC_TRY(rc_layout_need_size(cfg, ep, 1, &n_ranks, err));
    if (*out == 0 && n_ranks > 1)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[ep].where,
                       "%s is %" PRId64
                       ", but the model has no experts; set it to 1, or give %s",
                       rc_field_key(ep), n_ranks, rc_field_key(RC_FIELD_num_moe_experts));
    return rc_layout_need_multiple(cfg, RC_FIELD_num_moe_experts,
                                   (rc_share){*out, n_ranks, "expert_model_parallel_size"},
                                   err);
}

/* The interleaved schedule refuses groups that the micro-batches do not fill
 * (pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving). */
static rc_code need_groups(const rc_config *cfg, const rc_layout *layout, rc_error *err)
{
    const rc_field field = RC_FIELD_microbatch_group_size_per_vp_stage;
    const int64_t group = layout->micro_batch_group, n = layout->n_micro_batches;
    const int64_t rest = n % group, pp = layout->sizes.pp;
    const rc_where where = cfg->origin[field].where;
    if (group < pp || group > n)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "%s is %" PRId64 "; with %" PRId64 " micro-batches on %" PRId64
                       " stages it must be from %" PRId64 " to %" PRId64,
                       rc_field_key(field), group, n, pp, pp, n);
    if (rest > 0 && rest < pp)
        return RC_FAIL(
            err, RC_E_INPUT, where,
            "%s is %" PRId64 ", which leaves %" PRId64 " of %" PRId64
            " micro-batches over; none may be left, or at least one a stage, %" PRId64,
            rc_field_key(field), group, rest, n, pp);
    return RC_OK;
}

/* A batch that does not divide may be taken smaller (num_microbatches_calculator.py). */
static rc_code divide_batch(const rc_config *cfg, int64_t global, int64_t n_samples,
                            int64_t *out, rc_error *err)
{
    bool may_decrease;
    RC_TRY(
        rc_layout_find_switch(cfg, "train.decrease_batch_size_if_needed", &may_decrease, err));
    *out = global / n_samples;
    if (may_decrease && *out > 0)
        return RC_OK;
    return rc_layout_need_multiple(
        cfg, RC_FIELD_global_batch_size,
        (rc_share){global, n_samples, "micro_batch_size times the replicas of the model"}, err);
}

rc_code rc_parallel_read_batch(const rc_config *cfg, rc_layout *out, rc_error *err)
{
    const rc_parallel *sizes = &out->sizes;
    int64_t n_samples, global;
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_microbatch_group_size_per_vp_stage, sizes->pp,
                               &out->micro_batch_group, err));
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_micro_batch_size, 0, &n_samples, err));
    out->n_micro_batches = 0;
    if (n_samples == 0)
        return RC_OK;
    if (!rc_mul(n_samples, sizes->dp, &n_samples) || !rc_mul(n_samples, sizes->gtp, &n_samples))
        return RC_FAIL(err, RC_E_RANGE, cfg->origin[RC_FIELD_micro_batch_size].where,
                       "micro_batch_size times the replicas passes 2^63-1");
    RC_TRY(rc_layout_need_size(cfg, RC_FIELD_global_batch_size, n_samples, &global, err));
    RC_TRY(divide_batch(cfg, global, n_samples, &out->n_micro_batches, err));
    return sizes->is_interleaved ? need_groups(cfg, out, err) : RC_OK;
}
