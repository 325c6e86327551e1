/* layout/stages.c — deals layers out over the chunks of the pipeline.
 *
 * takes  the layers of the model and the settings of the split: a layout, the stages of a pattern, uneven first and
 *        last stages, or an even split in which embedding and loss may count as layers
 * gives  how many layers each chunk has; chunk i stands on stage i % p
 * next   layout.c makes chunks of it
 *
 * Source: Megatron-LM transformer_block.py, get_num_layers_to_build; transformer_config.py, __post_init__;
 * hybrid_layer_allocation.py, select_pipeline_segment; megatron/training/arguments.py, validate_args.
 */
#include "layout/stages.h"

#include "layout/need.h"
#include "layout/written.h"

#include <inttypes.h>

enum { MOST_CHUNKS = 1 << 16 };

typedef struct dealer {
    const rc_config *cfg;
    const rc_model_layers *layers;
    rc_parallel *sizes;
    rc_arena *mem;
    rc_error *err;
    rc_stage_share *shares;
} dealer;

static rc_code make_shares(dealer *d)
{
    return RC_NEW(d->mem, &d->shares, d->sizes->vp * d->sizes->pp, d->err);
}

/* --- chunks of a stage */

static rc_code refuse_virtual(const dealer *d, rc_field field, int64_t given, int64_t vp)
{
    return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[field].where,
                   "%s is %" PRId64 ", but the layers are given for %" PRId64 " chunks a stage",
                   rc_field_key(field), given, vp);
}

/* The setting that asks for chunks. */
static rc_field asks_for_chunks(const rc_config *cfg)
{
    static const rc_field fields[] = {RC_FIELD_virtual_pipeline_model_parallel_size,
                                      RC_FIELD_num_virtual_stages_per_pipeline_rank,
                                      RC_FIELD_num_layers_per_virtual_pipeline_stage,
                                      RC_FIELD_pipeline_model_parallel_layout,
                                      RC_FIELD_hybrid_layer_pattern};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (rc_layout_is_set(cfg, fields[i]))
            return fields[i];
    return RC_FIELD_hybrid_override_pattern;
}

/* `vp` is what another setting comes to; a virtual size that is given must agree with it. One chunk is
 * interleaved only where the size says so: schedules.py asks whether it is None. */
static rc_code settle_virtual(dealer *d, int64_t vp)
{
    const rc_field fields[] = {RC_FIELD_virtual_pipeline_model_parallel_size,
                               RC_FIELD_num_virtual_stages_per_pipeline_rank};
    for (size_t i = 0; i < 2; i++) {
        int64_t given;
        RC_TRY(rc_layout_need_size(d->cfg, fields[i], vp, &given, d->err));
        if (given != vp)
            return refuse_virtual(d, fields[i], given, vp);
    }
    const bool is_set = rc_layout_is_set(d->cfg, fields[0]);
    const rc_field blame = asks_for_chunks(d->cfg);
    if (d->sizes->pp == 1 && (vp > 1 || is_set))
        return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[blame].where,
                       "%s asks for chunks, which are interleaved over two stages or more, "
                       "and there is one",
                       rc_field_key(blame));
    d->sizes->vp = vp;
    d->sizes->is_interleaved = vp > 1 || is_set;
    return RC_OK;
}

/* --- pipeline_model_parallel_layout */

static rc_code refuse_layout(const dealer *d, const char *says)
{
    const rc_field field = RC_FIELD_pipeline_model_parallel_layout;
    return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[field].where, "%s: %s",
                   rc_field_key(field), says);
}

/* Depths of multi-token prediction stand in one chunk, the last of its stage, behind every layer. */
static rc_code need_mtp_together(const dealer *d, const rc_pipeline_layout *written)
{
    const size_t pp = (size_t)d->sizes->pp;
    size_t at = written->n_stages;
    int n_seen = 0;
    for (size_t stage = 0; stage < written->n_stages; stage++)
        for (size_t i = written->stage_starts[stage]; i < written->stage_starts[stage + 1];
             i++) {
            const rc_stage_layer layer = written->layers[i];
            if (layer == RC_STAGE_DECODER && n_seen)
                return refuse_layout(d, "m stands behind every t");
            if (layer != RC_STAGE_MTP)
                continue;
            if (at != written->n_stages && at != stage)
                return refuse_layout(d, "every m stands on one stage");
            if (stage + pp < written->n_stages)
                return refuse_layout(d, "m stands in the last chunk of its stage");
            at = stage;
            n_seen++;
        }
    if (n_seen == d->layers->n_mtp)
        return RC_OK;
    return refuse_layout(d, "it must have as many m as model.mtp_num_layers says");
}

static rc_code need_ends(const dealer *d, const rc_pipeline_layout *written)
{
    int n_embeddings = 0, n_losses = 0, n_layers = 0;
    for (size_t i = 0; i < written->n_layers; i++) {
        n_embeddings += written->layers[i] == RC_STAGE_EMBEDDING;
        n_losses += written->layers[i] == RC_STAGE_LOSS;
        n_layers += written->layers[i] == RC_STAGE_DECODER;
        if (written->layers[i] == RC_STAGE_ENCODER)
            return refuse_layout(d, "Megatron has no encoders in it");
    }
    if (n_embeddings != 1 || n_losses != 1 || written->layers[0] != RC_STAGE_EMBEDDING ||
        written->layers[written->n_layers - 1] != RC_STAGE_LOSS)
        return refuse_layout(d, "it must begin with one E and end with one L");
    if (n_layers != d->layers->n)
        return RC_FAIL(
            d->err, RC_E_INPUT, d->cfg->origin[RC_FIELD_pipeline_model_parallel_layout].where,
            "%s has %d layers; the model has %d",
            rc_field_key(RC_FIELD_pipeline_model_parallel_layout), n_layers, d->layers->n);
    return need_mtp_together(d, written);
}

static rc_code deal_layout(dealer *d)
{
    const rc_field field = RC_FIELD_pipeline_model_parallel_layout;
    rc_pipeline_layout written;
    RC_TRY(rc_pipeline_layout_read(d->cfg->pipeline_model_parallel_layout, d->mem, &written,
                                   d->err));
    if (!written.is_read || written.n_layers == 0)
        return refuse_layout(d,
                             "it must be stages such as \"Ett|tt|ttL\", or lists of embedding, "
                             "decoder, mtp and loss");
    RC_TRY(rc_layout_need_multiple(
        d->cfg, field,
        (rc_share){(int64_t)written.n_stages, d->sizes->pp, "pipeline_model_parallel_size"},
        d->err));
    if (written.n_stages > MOST_CHUNKS)
        return RC_FAIL(d->err, RC_E_RANGE, d->cfg->origin[field].where,
                       "%s has %zu stages; at most %d can be laid out", rc_field_key(field),
                       written.n_stages, MOST_CHUNKS);
    RC_TRY(need_ends(d, &written));
    RC_TRY(settle_virtual(d, (int64_t)written.n_stages / d->sizes->pp));
    RC_TRY(make_shares(d));
    for (size_t stage = 0; stage < written.n_stages; stage++)
        for (size_t i = written.stage_starts[stage]; i < written.stage_starts[stage + 1]; i++) {
            d->shares[stage].n_layers += written.layers[i] == RC_STAGE_DECODER;
            d->shares[stage].n_mtp += written.layers[i] == RC_STAGE_MTP;
        }
    return RC_OK;
}

/* --- a pattern with stages of its own */

static rc_code deal_segments(dealer *d, rc_field field)
{
    const rc_model_layers *layers = d->layers;
    RC_TRY(rc_layout_need_multiple(
        d->cfg, field,
        (rc_share){layers->n_segments, d->sizes->pp, "pipeline_model_parallel_size"}, d->err));
    RC_TRY(settle_virtual(d, layers->n_segments / d->sizes->pp));
    RC_TRY(make_shares(d));
    for (int i = 0; i < layers->n_segments; i++)
        d->shares[i].n_layers = layers->segment_starts[i + 1] - layers->segment_starts[i];
    return RC_OK;
}

/* --- layers a stage, from settings */

/* Layers of the first, the last and every other stage; 0 stages between: `between` is 0. */
typedef struct split {
    int64_t first, between, last;
} split;

/* Uneven ends: given counts for the first or last stage, the rest evenly over the others. */
static rc_code split_uneven(dealer *d, bool has_first, bool has_last, split *out)
{
    const rc_field first = RC_FIELD_num_layers_in_first_pipeline_stage;
    const rc_field last = RC_FIELD_num_layers_in_last_pipeline_stage;
    int64_t n_stages = d->sizes->pp - has_first - has_last;
    RC_TRY(rc_layout_need_size(d->cfg, first, 0, &out->first, d->err));
    RC_TRY(rc_layout_need_size(d->cfg, last, 0, &out->last, d->err));
    int64_t n_layers = d->layers->n - out->first - out->last;
    if (n_stages < 0 || n_layers < 0 || (n_layers == 0) != (n_stages == 0))
        return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[has_last ? last : first].where,
                       "%s leaves %" PRId64 " layers for %" PRId64 " stages",
                       rc_field_key(has_last ? last : first), n_layers, n_stages);
    if (n_stages > 0)
        RC_TRY(rc_layout_need_multiple(d->cfg, has_last ? last : first,
                                       (rc_share){n_layers, n_stages, "the stages between"},
                                       d->err));
    out->between = n_stages > 0 ? n_layers / n_stages : 0;
    if (!has_first) /* the one stage there is may be the last */
        out->first = d->sizes->pp == 1 ? out->last : out->between;
    if (!has_last)
        out->last = out->between;
    return RC_OK;
}

/* Embedding and loss count as a layer each where they are to. */
static rc_code split_even(dealer *d, split *out)
{
    int64_t n_layers = d->layers->n + d->cfg->account_for_embedding_in_pipeline_split +
                       d->cfg->account_for_loss_in_pipeline_split;
    RC_TRY(rc_layout_need_multiple(
        d->cfg, RC_FIELD_num_layers,
        (rc_share){n_layers, d->sizes->pp, "pipeline_model_parallel_size"}, d->err));
    out->first = out->between = out->last = n_layers / d->sizes->pp;
    return RC_OK;
}

static rc_code refuse_mixed(const dealer *d, rc_field uneven)
{
    const rc_field counted = d->cfg->account_for_embedding_in_pipeline_split
                                 ? RC_FIELD_account_for_embedding_in_pipeline_split
                                 : RC_FIELD_account_for_loss_in_pipeline_split;
    return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[counted].where,
                   "%s is not set together with %s", rc_field_key(counted),
                   rc_field_key(uneven));
}

static bool counts_ends(const rc_config *cfg)
{
    return cfg->account_for_embedding_in_pipeline_split ||
           cfg->account_for_loss_in_pipeline_split;
}

/* Megatron-LM's command line has no virtual size: layers a chunk or chunks a stage decide it. */
static rc_code find_virtual(dealer *d, const split *layers, bool is_uneven)
{
    const rc_field by_layers = RC_FIELD_num_layers_per_virtual_pipeline_stage;
    const rc_field by_stages = RC_FIELD_num_virtual_stages_per_pipeline_rank;
    int64_t n_layers, vp;
    RC_TRY(rc_layout_refuse_pair(d->cfg, by_layers, by_stages, d->err));
    RC_TRY(rc_layout_need_size(d->cfg, RC_FIELD_virtual_pipeline_model_parallel_size, 1, &vp,
                               d->err));
    RC_TRY(rc_layout_need_size(d->cfg, by_stages, vp, &vp, d->err));
    RC_TRY(rc_layout_need_size(d->cfg, by_layers, 0, &n_layers, d->err));
    if (n_layers && is_uneven)
        return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[by_layers].where,
                       "%s: uneven stages have no equal chunks; give %s",
                       rc_field_key(by_layers), rc_field_key(by_stages));
    if (n_layers) {
        RC_TRY(rc_layout_need_multiple(d->cfg, by_layers,
                                       (rc_share){layers->first, n_layers, "it"}, d->err));
        vp = layers->first / n_layers;
    }
    return settle_virtual(d, vp);
}

static rc_code need_equal_chunks(const dealer *d, const split *layers)
{
    const int64_t all[] = {layers->first, layers->between, layers->last};
    const rc_field field = asks_for_chunks(d->cfg);
    for (size_t i = 0; i < 3; i++)
        if (all[i] % d->sizes->vp != 0)
            return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[field].where,
                           "%s: the %" PRId64 " layers of a stage do not divide by %" PRId64
                           " chunks",
                           rc_field_key(field), all[i], d->sizes->vp);
    return RC_OK;
}

static rc_code deal_split(dealer *d, const split *layers)
{
    const int64_t pp = d->sizes->pp, vp = d->sizes->vp, n = pp * vp;
    RC_TRY(need_equal_chunks(d, layers));
    RC_TRY(make_shares(d));
    for (int64_t i = 0; i < n; i++) {
        const int64_t stage = i % pp;
        const int64_t of_stage = stage == 0        ? layers->first
                                 : stage == pp - 1 ? layers->last
                                                   : layers->between;
        d->shares[i].n_layers = (int)(of_stage / vp);
    }
    /* what was counted for them is no layer */
    d->shares[0].n_layers -= d->cfg->account_for_embedding_in_pipeline_split;
    d->shares[n - 1].n_layers -= d->cfg->account_for_loss_in_pipeline_split;
    if (d->shares[0].n_layers >= 0 && d->shares[n - 1].n_layers >= 0)
        return RC_OK;
    return RC_FAIL(d->err, RC_E_INPUT, d->cfg->origin[RC_FIELD_num_layers].where,
                   "%s: a chunk has no layer to count for the embedding or the loss",
                   rc_field_key(RC_FIELD_num_layers));
}

static rc_code deal_by_settings(dealer *d, bool has_first, bool has_last)
{
    const bool is_uneven = has_first || has_last;
    split layers = {0};
    RC_TRY(is_uneven ? split_uneven(d, has_first, has_last, &layers) : split_even(d, &layers));
    RC_TRY(find_virtual(d, &layers, is_uneven));
    if (d->layers->is_hybrid && d->sizes->is_interleaved)
        return RC_FAIL(d->err, RC_E_INPUT,
                       d->cfg->origin[RC_FIELD_virtual_pipeline_model_parallel_size].where,
                       "%s: a pattern of letters has chunks only where | parts them",
                       rc_field_key(RC_FIELD_virtual_pipeline_model_parallel_size));
    return deal_split(d, &layers);
}

/* --- which of them */

static rc_code deal(dealer *d)
{
    const rc_field first = RC_FIELD_num_layers_in_first_pipeline_stage;
    const rc_field last = RC_FIELD_num_layers_in_last_pipeline_stage;
    const rc_field layout = RC_FIELD_pipeline_model_parallel_layout;
    const bool has_first = rc_layout_is_set(d->cfg, first);
    const bool has_last = rc_layout_is_set(d->cfg, last);
    const rc_field pattern = rc_layout_is_set(d->cfg, RC_FIELD_hybrid_layer_pattern)
                                 ? RC_FIELD_hybrid_layer_pattern
                                 : RC_FIELD_hybrid_override_pattern;
    const bool has_segments = d->layers->n_segments > 1;
    const rc_field own = has_segments ? pattern : layout;
    if (counts_ends(d->cfg) && (has_first || has_last))
        return refuse_mixed(d, has_first ? first : last);
    if (has_segments || rc_layout_is_set(d->cfg, layout)) {
        RC_TRY(rc_layout_refuse_pair(d->cfg, own, first, d->err));
        RC_TRY(rc_layout_refuse_pair(d->cfg, own, last, d->err));
        if (counts_ends(d->cfg))
            return refuse_mixed(d, own);
        RC_TRY(rc_layout_refuse_pair(d->cfg, own,
                                     RC_FIELD_num_layers_per_virtual_pipeline_stage, d->err));
        return has_segments ? deal_segments(d, pattern) : deal_layout(d);
    }
    return deal_by_settings(d, has_first, has_last);
}

rc_code rc_stages_deal(const rc_config *cfg, const rc_model_layers *layers, rc_parallel *sizes,
                       rc_arena *mem, rc_stage_share **out, rc_error *err)
{
    dealer d = {.cfg = cfg, .layers = layers, .sizes = sizes, .mem = mem, .err = err};
    RC_TRY(deal(&d));
    *out = d.shares;
    /* unless a layout says otherwise, all depths stand with the loss */
    if (!rc_layout_is_set(cfg, RC_FIELD_pipeline_model_parallel_layout))
        d.shares[sizes->vp * sizes->pp - 1].n_mtp = layers->n_mtp;
    return RC_OK;
}
