/* estimate.c — the memory of every kind of rank of a Megatron job.
 *
 * takes  settings
 * gives  rc_estimate
 * next   show.c prints it
 */
#include "estimate/lacks.h"
#include "estimate/rank.h"
#include "estimate/seconds.h"
#include "estimate/store.h"
#include "estimate/workspace.h"

#include <string.h>

static const char *const phase_names[] = {"forward", "backward", "optimizer step"};

const char *rc_phase_name(rc_phase phase)
{
    return phase_names[phase];
}

rc_fit rc_estimate_judge(const rc_estimate *estimate, int64_t room_bytes)
{
    if (estimate->n_lacks > 0)
        return RC_FIT_UNKNOWN;
    return estimate->ranks[estimate->hottest].later.bytes <= room_bytes ? RC_FIT_YES
                                                                        : RC_FIT_NO;
}

typedef struct builder {
    const rc_config *cfg;
    rc_estimate *estimate;
    rc_segments segments;
    const rc_gpu *gpu;
    /* [n_chunks] in the layout's order */
    rc_chunk_cost *chunks;
    rc_arena *mem;
    rc_error *err;
} builder;

static rc_code price_chunks(builder *b)
{
    const rc_layout *layout = b->estimate->layout;
    RC_TRY(RC_NEW(b->mem, &b->chunks, layout->n_chunks, b->err));
    for (int i = 0; i < layout->n_chunks; i++)
        RC_TRY(rc_chunk_price(&b->segments, &b->estimate->setting, &layout->chunks[i], b->mem,
                              &b->chunks[i], b->err));
    return RC_OK;
}

static bool has_shared_optimizer(const rc_config *cfg)
{
    return cfg->use_distributed_optimizer || cfg->ddp_use_distributed_optimizer;
}

/* Ranks that share the optimizer's state: the replicas of one of its instances. */
static int64_t shards_of(const rc_config *cfg, int64_t n_replicas)
{
    const int64_t n = cfg->num_distributed_optimizer_instances;
    if (!has_shared_optimizer(cfg))
        return 1;
    return n > 1 && n_replicas % n == 0 ? n_replicas / n : n_replicas;
}

static void add_replays(const rc_segments *segments, const rc_chunk_cost *chunk,
                        rc_estimate_rank *rank)
{
    for (int i = 0; i < chunk->n_pieces; i++) {
        const rc_schedule *schedule = segments->at[chunk->pieces[i].segment].schedule;
        rank->replay_flops += chunk->pieces[i].n * schedule->recompute_flops;
        rank->replay_moved_bytes += chunk->pieces[i].n * schedule->recompute_moved_bytes;
    }
}

static rc_code price_rank(builder *b, rc_estimate_rank *rank)
{
    const rc_layout *layout = b->estimate->layout;
    const rc_parallel *sizes = &layout->sizes;
    const rc_state_request request = {.cfg = b->cfg,
                                      .n_shards = shards_of(b->cfg, sizes->dp * sizes->cp),
                                      .n_expert_shards = shards_of(b->cfg, sizes->edp),
                                      .is_first_stage = rank->rank.pp == 0};
    rc_chunk_cost *own;
    rc_model_state state;
    rc_pipeline *pipeline;
    rc_layout step = *layout;
    if (step.n_micro_batches < 1) /* where nobody says how many, there is one */
        step.n_micro_batches = 1;
    RC_TRY(rc_pipeline_make(&step, rank->rank.pp, b->mem, &pipeline, b->err));
    RC_TRY(RC_NEW(b->mem, &own, sizes->vp, b->err));
    for (int64_t vp = 0; vp < sizes->vp; vp++)
        own[vp] = b->chunks[vp * sizes->pp + rank->rank.pp];
    rc_state_count(&request, &b->segments, own, (int)sizes->vp, &state);
    rank->n_parameters = state.n_parameters;
    for (int64_t vp = 0; vp < sizes->vp; vp++) {
        const rc_seconds seconds = rc_chunk_seconds(&b->segments, &own[vp], b->gpu);
        rank->micro_seconds += seconds.fwd + seconds.bwd;
        rank->replay_seconds += seconds.replay;
        rank->retained_bytes += own[vp].retained_bytes;
        add_replays(&b->segments, &own[vp], rank);
    }
    int64_t stand_ins;
    RC_TRY(rc_stand_ins_count(&b->segments, own, (int)sizes->vp, b->mem, &stand_ins, b->err));
    const rc_rank_parts parts = {
        .segments = &b->segments,
        .pipeline = pipeline,
        .chunks = own,
        .state = &state,
        .stand_in_bytes = stand_ins,
        .workspace_bytes = rc_workspace_bytes(&b->segments, own, (int)sizes->vp, b->gpu->sm)};
    return rc_rank_price(&parts, rank, b->mem, b->err);
}

static rc_code price_ranks(builder *b)
{
    rc_estimate *estimate = b->estimate;
    const rc_layout *layout = estimate->layout;
    RC_TRY(RC_NEW(b->mem, &estimate->ranks, layout->n_rank_kinds, b->err));
    estimate->n_ranks = layout->n_rank_kinds;
    for (int i = 0; i < estimate->n_ranks; i++) {
        estimate->ranks[i].rank = layout->rank_kinds[i].rank;
        estimate->ranks[i].n_ranks = layout->rank_kinds[i].n_ranks;
        RC_TRY(price_rank(b, &estimate->ranks[i]));
        if (estimate->ranks[i].later.bytes > estimate->ranks[estimate->hottest].later.bytes)
            estimate->hottest = i;
    }
    return RC_OK;
}

/* The slowest stage sets the pace; at both ends of a step the others wait for it, less where stages are interleaved.
 * The update reads and writes all state once. source  Narayanan et al. 2021, section 2.2 (the bubble) */
static void time_step(builder *b)
{
    rc_estimate *estimate = b->estimate;
    const rc_parallel *sizes = &estimate->layout->sizes;
    const int64_t m = estimate->layout->n_micro_batches;
    const double n_micro =
        (double)(m > 0 ? m : 1) + (double)(sizes->pp - 1) / (double)sizes->vp;
    double slowest = 0, slowest_all = 0, state = 0;
    for (int i = 0; i < estimate->n_ranks; i++) {
        const rc_estimate_rank *rank = &estimate->ranks[i];
        const double all = rank->micro_seconds + rank->replay_seconds;
        double bytes = 0;
        for (int k = RC_COMPONENT_weights; k <= RC_COMPONENT_moments; k++)
            bytes += (double)rank->later.of[k];
        slowest = rank->micro_seconds > slowest ? rank->micro_seconds : slowest;
        slowest_all = all > slowest_all ? all : slowest_all;
        state = bytes > state ? bytes : state;
    }
    estimate->step_seconds = n_micro * slowest + 2 * state / b->gpu->memory_rate;
    estimate->replay_seconds = n_micro * (slowest_all - slowest);
}

static void count_labels(const rc_chunk_cost *chunk, const rc_segments *segments,
                         int *n_modules)
{
    for (int i = 0; i < chunk->n_pieces; i++)
        for (int label = 0; label < RC_LABEL_COUNT; label++)
            n_modules[label] +=
                chunk->pieces[i].n *
                rc_graph_count_regions(segments->at[chunk->pieces[i].segment].graph,
                                       (rc_label)label);
}

rc_code rc_estimate_store_open(const rc_estimate_request *request, rc_arena *mem,
                               rc_estimate_store *out, rc_error *err)
{
    rc_layout *layout;
    *out = (rc_estimate_store){.graphs = {.mem = mem}};
    RC_TRY(rc_layout_make(request->cfg, request->world_size, mem, &layout, err));
    out->layout = layout;
    return RC_OK;
}

rc_code rc_estimate_make_in(rc_estimate_store *store, const rc_estimate_request *request,
                            rc_arena *mem, rc_estimate **out, rc_error *err)
{
    static const rc_setting none = {.granularity = RC_GRANULARITY_NONE};
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_estimate *estimate = *out;
    if (request->setting)
        estimate->setting = *request->setting;
    else
        RC_TRY(rc_setting_make(request->cfg, &estimate->setting, err));
    estimate->layout = store->layout;
    estimate->profile = request->profile;
    builder b = {.cfg = request->cfg,
                 .estimate = estimate,
                 .gpu = request->gpu ? request->gpu : rc_gpu_find("h100-80gb"),
                 .segments = {.cfg = request->cfg,
                              .profile = request->profile,
                              .te_version = request->te_version,
                              .imbalance = request->imbalance,
                              .graphs = &store->graphs},
                 .mem = mem,
                 .err = err};
    b.segments.setting =
        estimate->setting.granularity == RC_GRANULARITY_FULL ? &none : &estimate->setting;
    RC_TRY(rc_estimate_find_lacks(request->cfg, estimate, mem, err));
    if (estimate->setting.granularity == RC_GRANULARITY_FULL && store->layout->n_mtp > 0)
        RC_TRY(rc_estimate_add_lack(
            estimate,
            (rc_estimate_lack){
                "model.mtp_num_layers",
                "layers of multi-token prediction are counted without full recompute",
                request->cfg->origin[RC_FIELD_mtp_num_layers].where},
            mem, err));
    RC_TRY(price_chunks(&b));
    RC_TRY(price_ranks(&b));
    for (int i = 0; i < estimate->layout->n_chunks; i++)
        count_labels(&b.chunks[i], &b.segments, estimate->n_label_modules);
    time_step(&b);
    return RC_OK;
}

rc_code rc_estimate_make(const rc_estimate_request *request, rc_arena *mem, rc_estimate **out,
                         rc_error *err)
{
    rc_estimate_store store;
    RC_TRY(rc_estimate_store_open(request, mem, &store, err));
    return rc_estimate_make_in(&store, request, mem, out, err);
}
