/* layout/layout.c — puts a layout together, checks it, prints it.
 *
 * takes  rc_config, and how many ranks the job has
 * gives  rc_layout: sizes, the model's layers by kind, the chunks of every stage, the ranks that differ
 * next   graph/ builds a chunk
 */
#include "layout/layers.h"
#include "layout/need.h"
#include "layout/parallel.h"
#include "layout/stages.h"

#include "base/num.h"
#include "base/text.h"
#include "config/asks.h"

#include <inttypes.h>

/* --- settings that would place layers otherwise */

#define IS RC_ASK_IS
#define NEVER RC_ASK_NEVER
static const rc_ask lacks[] = {
#define RC_LAYOUT_LACK(key, neutral, words) {key, neutral, words},
#include "defs/layout_lacks.def"
#undef RC_LAYOUT_LACK
};
#undef IS
#undef NEVER

static rc_code refuse(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                      const void *user, rc_error *err)
{
    (void)user;
    if (!row || !rc_ask_is_asked(cfg, asked, row))
        return RC_OK;
    return rc_ask_refuse(asked, row, "a layout", err);
}

/* A default would stand in for what only the running job knows. */
static rc_code refuse_late(const rc_config *cfg, rc_error *err)
{
    static const rc_field fields[] = {RC_FIELD_num_layers,
                                      RC_FIELD_tensor_model_parallel_size,
                                      RC_FIELD_context_parallel_size,
                                      RC_FIELD_pipeline_model_parallel_size,
                                      RC_FIELD_expert_model_parallel_size,
                                      RC_FIELD_expert_tensor_parallel_size,
                                      RC_FIELD_tensor_parallel_num_weight_shards,
                                      RC_FIELD_gtp_weight_remat_size,
                                      RC_FIELD_virtual_pipeline_model_parallel_size,
                                      RC_FIELD_num_layers_per_virtual_pipeline_stage,
                                      RC_FIELD_num_virtual_stages_per_pipeline_rank,
                                      RC_FIELD_num_layers_in_first_pipeline_stage,
                                      RC_FIELD_num_layers_in_last_pipeline_stage,
                                      RC_FIELD_account_for_embedding_in_pipeline_split,
                                      RC_FIELD_account_for_loss_in_pipeline_split,
                                      RC_FIELD_pipeline_model_parallel_layout,
                                      RC_FIELD_microbatch_group_size_per_vp_stage,
                                      RC_FIELD_num_moe_experts,
                                      RC_FIELD_moe_layer_freq,
                                      RC_FIELD_multi_latent_attention,
                                      RC_FIELD_experimental_attention_variant,
                                      RC_FIELD_linear_attention_freq,
                                      RC_FIELD_hybrid_layer_pattern,
                                      RC_FIELD_hybrid_override_pattern,
                                      RC_FIELD_is_hybrid_model,
                                      RC_FIELD_mtp_num_layers,
                                      RC_FIELD_overlap_moe_expert_parallel_comm,
                                      RC_FIELD_micro_batch_size,
                                      RC_FIELD_global_batch_size,
                                      RC_FIELD_data_parallel_size,
                                      RC_FIELD_world_size};
    for (size_t i = 0; i < cfg->n_unknown; i++)
        for (size_t k = 0; cfg->unknown[i].is_value && k < sizeof fields / sizeof *fields; k++)
            if (cfg->unknown[i].field == fields[k])
                return RC_FAIL(err, RC_E_INPUT, cfg->unknown[i].where,
                               "%s is known to the running job alone; give its value here",
                               rc_field_key(fields[k]));
    return RC_OK;
}

static rc_code refuse_lacks(const rc_config *cfg, rc_error *err)
{
    const rc_asks table = {lacks, sizeof lacks / sizeof *lacks, sizeof *lacks};
    RC_TRY(rc_asks_walk_fields(&table, cfg, refuse, NULL, err));
    return rc_asks_walk_unknown(&table, cfg, refuse, NULL, err);
}

/* --- names */

const char *rc_mixer_name(rc_mixer mixer)
{
    static const char *const names[RC_MIXER_COUNT] = {
#define RC_MIXER(name, builder, help) #name,
#define RC_MLP(name, builder, help)
#include "defs/layer_kinds.def"
#undef RC_MIXER
#undef RC_MLP
    };
    return names[mixer];
}

const char *rc_mlp_name(rc_mlp mlp)
{
    static const char *const names[RC_MLP_COUNT] = {
#define RC_MIXER(name, builder, help)
#define RC_MLP(name, builder, help) #name,
#include "defs/layer_kinds.def"
#undef RC_MIXER
#undef RC_MLP
    };
    return names[mlp];
}

/* --- chunks */

const rc_chunk *rc_layout_chunk(const rc_layout *layout, int64_t pp, int64_t vp)
{
    return &layout->chunks[vp * layout->sizes.pp + pp];
}

int rc_chunk_n_layers(const rc_chunk *chunk)
{
    int n = 0;
    for (int i = 0; i < chunk->n_runs; i++)
        n += chunk->runs[i].n_layers;
    return n;
}

static rc_code make_mtp(const rc_model_layers *layers, const rc_stage_share *share,
                        rc_arena *mem, rc_chunk *chunk, rc_error *err)
{
    const bool is_alone = share->n_layers == 0 && !layers->is_hybrid;
    chunk->n_mtp = share->n_mtp;
    if (share->n_mtp == 0)
        return RC_OK;
    chunk->is_mtp_shared = layers->is_mtp_shared;
    return rc_layer_runs_make(is_alone ? &layers->mtp_alone : layers->mtp, layers->n_in_depth,
                              mem, &chunk->mtp_runs, &chunk->n_mtp_runs, err);
}

/* With mtp_num_layers given, if only as 0, the final norm stands behind the last layer (transformer_block.py,
 * has_final_layernorm_in_this_stage); a hybrid stack has it with the loss always (hybrid_block.py). A depth of
 * multi-token prediction embeds for itself (gpt_model.py), and only the chunk that has both ends shares one tied
 * weight: every other allocates its own, also where it then reads the embedding's. */
static rc_code make_chunks(const rc_config *cfg, const rc_model_layers *layers,
                           const rc_stage_share *shares, rc_arena *mem, rc_layout *layout,
                           rc_error *err)
{
    const bool follows_layers =
        !layers->is_hybrid && rc_layout_is_set(cfg, RC_FIELD_mtp_num_layers);
    rc_chunk *chunks;
    int first = 0;
    RC_TRY(RC_NEW(mem, &chunks, layout->n_chunks, err));
    layout->chunks = chunks;
    for (int i = 0; i < layout->n_chunks; i++) {
        rc_chunk *chunk = &chunks[i];
        const int n = shares[i].n_layers;
        chunk->first_layer = first;
        RC_TRY(rc_layer_runs_make(layers->kinds + first, n, mem, &chunk->runs, &chunk->n_runs,
                                  err));
        first += n;
        RC_TRY(make_mtp(layers, &shares[i], mem, chunk, err));
        chunk->has_embedding = i == 0;
        chunk->has_loss = i == layout->n_chunks - 1;
        chunk->has_final_norm = follows_layers ? n > 0 && first == layers->n : chunk->has_loss;
        chunk->has_word_embedding = chunk->has_embedding || chunk->n_mtp > 0;
        chunk->has_output_weight =
            chunk->has_loss && !(layout->is_tied && chunk->has_embedding);
    }
    return RC_OK;
}

/* Numbers from one rank of a stage to the same of the next. */
static int64_t stage_stride(const rc_parallel *s)
{
    return s->is_stage_before_replica ? s->tp * s->gtp * s->cp : s->world / s->pp;
}

/* The dense dimensions and those of experts number the same ranks; a stage is the same in both. */
rc_rank rc_layout_rank_at(const rc_layout *layout, int64_t number)
{
    const rc_parallel *s = &layout->sizes;
    const int64_t inner = s->tp * s->gtp * s->cp;
    return (rc_rank){.tp = number % s->tp,
                     .cp = number / (s->tp * s->gtp) % s->cp,
                     .ep = number / s->etp % s->ep,
                     .dp = s->is_stage_before_replica ? number / (inner * s->pp)
                                                      : number / inner % s->dp,
                     .pp = number / stage_stride(s) % s->pp};
}

static rc_code make_rank_kinds(rc_arena *mem, rc_layout *layout, rc_error *err)
{
    const int n = (int)layout->sizes.pp;
    rc_rank_kind *kinds;
    RC_TRY(RC_NEW(mem, &kinds, n, err));
    for (int i = 0; i < n; i++)
        kinds[i] = (rc_rank_kind){.rank = {.pp = i},
                                  .number = i * stage_stride(&layout->sizes),
                                  .n_ranks = layout->sizes.world / n};
    layout->rank_kinds = kinds;
    layout->n_rank_kinds = n;
    return RC_OK;
}

/* Only the interleaved schedule has it, and the one without a pipeline (transformer_config.py, __post_init__). */
static rc_code read_overlap(const rc_config *cfg, rc_layout *layout, rc_error *err)
{
    const rc_field field = RC_FIELD_overlap_moe_expert_parallel_comm;
    layout->overlaps_experts = cfg->overlap_moe_expert_parallel_comm;
    if (!layout->overlaps_experts || layout->sizes.pp == 1 || layout->sizes.is_interleaved)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s needs interleaved stages, as virtual_pipeline_model_parallel_size sets",
                   rc_field_key(field));
}

rc_code rc_layout_make(const rc_config *cfg, int64_t world_size, rc_arena *mem, rc_layout **out,
                       rc_error *err)
{
    const bool is_hybrid = rc_layout_is_set(cfg, RC_FIELD_hybrid_layer_pattern) ||
                           rc_layout_is_set(cfg, RC_FIELD_hybrid_override_pattern);
    rc_model_layers layers = {0};
    rc_stage_share *shares;
    int64_t n_experts;
    RC_TRY(refuse_late(cfg, err));
    RC_TRY(refuse_lacks(cfg, err));
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_layout *layout = *out;
    RC_TRY(rc_parallel_read(cfg, world_size, &layout->sizes, err));
    RC_TRY(rc_parallel_read_experts(cfg, &n_experts, err));
    RC_TRY(
        rc_layout_find_switch(cfg, "model.mtp_use_repeated_layer", &layers.is_mtp_shared, err));
    RC_TRY(is_hybrid ? rc_hybrid_layers_read(cfg, n_experts, mem, &layers, err)
                     : rc_gpt_layers_read(cfg, n_experts, mem, &layers, err));
    RC_TRY(rc_stages_deal(cfg, &layers, &layout->sizes, mem, &shares, err));
    RC_TRY(rc_parallel_read_batch(cfg, layout, err));
    RC_TRY(read_overlap(cfg, layout, err));
    layout->n_layers = layers.n;
    layout->n_mtp = layers.n_mtp;
    layout->n_local_experts = n_experts / layout->sizes.ep;
    layout->is_tied = cfg->share_embeddings_and_output_weights;
    layout->n_chunks = (int)(layout->sizes.vp * layout->sizes.pp);
    RC_TRY(
        rc_layer_runs_make(layers.kinds, layers.n, mem, &layout->runs, &layout->n_runs, err));
    RC_TRY(make_chunks(cfg, &layers, shares, mem, layout, err));
    RC_TRY(make_rank_kinds(mem, layout, err));
    return rc_layout_verify(layout, err);
}

/* --- what must hold */

#define BROKEN(err, ...) RC_FAIL((err), RC_E_BUG, RC_NOWHERE, __VA_ARGS__)

static bool is_product(int64_t whole, const int64_t *factors, size_t n)
{
    int64_t product = 1;
    for (size_t i = 0; i < n; i++)
        if (!rc_mul(product, factors[i], &product))
            return false;
    return product == whole;
}

static rc_code verify_ranks(const rc_layout *layout, rc_error *err)
{
    const rc_parallel *s = &layout->sizes;
    const int64_t dense[] = {s->tp, s->cp, s->gtp, s->dp, s->pp};
    const int64_t experts[] = {s->etp, s->ep, s->edp, s->pp};
    int64_t n_ranks = 0;
    for (int i = 0; i < layout->n_rank_kinds; i++)
        n_ranks += layout->rank_kinds[i].n_ranks;
    if (!is_product(s->world, dense, 5) || !is_product(s->world, experts, 4))
        return BROKEN(err, "the sizes do not make %" PRId64 " ranks", s->world);
    if (n_ranks != s->world)
        return BROKEN(err, "the kinds of ranks are %" PRId64 " of %" PRId64, n_ranks, s->world);
    return RC_OK;
}

rc_code rc_layout_verify(const rc_layout *layout, rc_error *err)
{
    int n_layers = 0, n_mtp = 0, n_norms = 0;
    RC_TRY(verify_ranks(layout, err));
    if (layout->n_chunks != layout->sizes.vp * layout->sizes.pp)
        return BROKEN(err, "%d chunks stand on %" PRId64 " stages", layout->n_chunks,
                      layout->sizes.pp);
    for (int i = 0; i < layout->n_chunks; i++) {
        const rc_chunk *chunk = &layout->chunks[i];
        if (chunk->first_layer != n_layers)
            return BROKEN(err, "chunk %d begins with layer %d, not %d", i, chunk->first_layer,
                          n_layers);
        n_layers += rc_chunk_n_layers(chunk);
        n_mtp += chunk->n_mtp;
        n_norms += chunk->has_final_norm;
        if (chunk->has_embedding != (i == 0) || chunk->has_loss != (i == layout->n_chunks - 1))
            return BROKEN(err, "chunk %d of %d is no end of the model", i, layout->n_chunks);
    }
    if (n_layers != layout->n_layers || n_mtp != layout->n_mtp || n_norms != 1)
        return BROKEN(err, "the chunks have %d of %d layers, %d of %d depths, %d final norms",
                      n_layers, layout->n_layers, n_mtp, layout->n_mtp, n_norms);
    return RC_OK;
}
