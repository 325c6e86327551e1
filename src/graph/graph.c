/* graph.c — makes the graph of a model, checks it, prints it.
 *
 * takes  rc_config
 * gives  rc_graph: embedding, L layers, final norm, output layer, loss, in forward order; of a chunk its
 *        part of them, between what it receives and what it sends
 * next   policy/ decides what of it is retained
 */
#include "graph/builder.h"
#include "graph/dims.h"
#include "graph/params.h"
#include "graph/rope.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct word_value {
    const char *word;
    int value;
} word_value;

static rc_code find_word(const rc_config *cfg, rc_field field, const char *typed,
                         const word_value *words, size_t n, int *out, rc_error *err)
{
    char list[240] = "";
    for (size_t i = 0; i < n; i++) {
        if (typed && strcmp(words[i].word, typed) == 0) {
            *out = words[i].value;
            return RC_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i].word);
    }
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[field].where,
                   "%s is %s; known here are: %s", rc_field_key(field), typed ? typed : "null",
                   list);
}

static rc_code read_words(const rc_config *cfg, rc_builder *b, rc_error *err)
{
    static const word_value norms[] = {{"LayerNorm", 0}, {"RMSNorm", 1}};
    static const word_value acts[] = {{"gelu", RC_ACT_GELU},
                                      {"gelu_tanh", RC_ACT_GELU_TANH},
                                      {"silu", RC_ACT_SILU},
                                      {"relu", RC_ACT_RELU},
                                      {"squared_relu", RC_ACT_SQUARED_RELU}};
    static const word_value positions[] = {
        {"learned_absolute", 0}, {"rope", 1}, {"yarn", 1}, {"none", 0}};
    static const word_value backends[] = {
        {"auto", 0}, {"fused", 0}, {"flash", 0}, {"unfused", 0}, {"local", 0}};
    int is_rms = 0, act = 0, has_rope = 0, ignored = 0;
    RC_TRY(find_word(cfg, RC_FIELD_normalization, cfg->normalization, norms, 2, &is_rms, err));
    RC_TRY(find_word(cfg, RC_FIELD_activation_func, cfg->activation_func, acts, 5, &act, err));
    RC_TRY(find_word(cfg, RC_FIELD_position_embedding_type, cfg->position_embedding_type,
                     positions, 4, &has_rope, err));
    RC_TRY(find_word(cfg, RC_FIELD_attention_backend, cfg->attention_backend, backends, 5,
                     &ignored, err));
    b->is_rms_norm = is_rms == 1;
    b->act = (rc_act)act;
    b->has_rope = has_rope == 1;
    return RC_OK;
}

static rc_code need_probability(const rc_config *cfg, rc_field field, double p, rc_error *err)
{
    RC_TRY(rc_config_need(cfg, field, err));
    if (p >= 0 && p < 1)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s is %g; it must be at least 0 and below 1", rc_field_find(field)->name,
                   p);
}

/* Not NaN, not below 0 and not above `most`. */
static rc_code need_real(const rc_config *cfg, rc_field field, double value, double most,
                         rc_error *err)
{
    RC_TRY(rc_config_need(cfg, field, err));
    if (value >= 0 && value <= most)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s is %g; it must be from 0 to %g", rc_field_find(field)->name, value,
                   most);
}

static rc_code need_reals(const rc_config *cfg, rc_error *err)
{
    RC_TRY(need_probability(cfg, RC_FIELD_hidden_dropout, cfg->hidden_dropout, err));
    RC_TRY(need_probability(cfg, RC_FIELD_attention_dropout, cfg->attention_dropout, err));
    RC_TRY(need_real(cfg, RC_FIELD_layernorm_epsilon, cfg->layernorm_epsilon, 1, err));
    RC_TRY(need_real(cfg, RC_FIELD_init_method_std, cfg->init_method_std, FLT_MAX, err));
    RC_TRY(need_real(cfg, RC_FIELD_rotary_percent, cfg->rotary_percent, 1, err));
    if (!isnan(cfg->softmax_scale))
        RC_TRY(need_real(cfg, RC_FIELD_softmax_scale, cfg->softmax_scale, FLT_MAX, err));
    RC_TRY(rc_config_need(cfg, RC_FIELD_rotary_base, err));
    if (cfg->rotary_base >= 1 && isfinite(cfg->rotary_base))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_rotary_base].where,
                   "rotary_base is %g; it must be at least 1", cfg->rotary_base);
}

/* --- the layers, by kind */

typedef int build_part(rc_builder *b, int x);

static const struct part {
    const char *name;
    build_part *build;
} mixers[RC_MIXER_COUNT] =
    {
#define RC_MIXER(name, builder, help) {#name, builder},
#define RC_MLP(name, builder, help)
#include "defs/layer_kinds.def"
#undef RC_MIXER
#undef RC_MLP
},
  mlps[RC_MLP_COUNT] = {
#define RC_MIXER(name, builder, help)
#define RC_MLP(name, builder, help) {#name, builder},
#include "defs/layer_kinds.def"
#undef RC_MIXER
#undef RC_MLP
};

static int build_layer_part(rc_builder *b, const struct part *part, int x)
{
    return part->build ? part->build(b, x) : x;
}

static void build_first(rc_builder *b, const rc_chunk *chunk, int *x, int *words)
{
    rc_graph *graph = b->graph;
    *words = RC_ABSENT;
    rc_build_block(b, "", false);
    if (chunk->has_embedding || chunk->n_mtp > 0)
        graph->tokens = rc_build_tensor(b, "tokens", RC_TENSOR_INPUT, RC_I32, "[N]");
    if (chunk->has_loss)
        graph->targets = rc_build_tensor(b, "targets", RC_TENSOR_INPUT, RC_I32, "[N]");
    b->prefix = chunk->has_embedding ? "embedding." : "";
    *x = chunk->has_embedding ? rc_build_embedding(b, words) : rc_build_recv(b);
    *x = rc_build_block_end(b, 1, *x);
}

static int build_layer(rc_builder *b, const rc_layer_kind *kind, int x)
{
    x = build_layer_part(b, &mixers[kind->mixer], x);
    return build_layer_part(b, &mlps[kind->mlp], x);
}

/* Megatron runs the depths before the model's own output: their losses are held longest. */
static void build_head(rc_builder *b, const rc_chunk *chunk, int x, int words)
{
    x = rc_build_norm(b, "decoder.final_layernorm", x);
    const int output_words = rc_build_output_words(b, words);
    if (chunk->n_mtp > 0 && words == RC_ABSENT)
        words = rc_build_words(b, "mtp.word_embeddings.weight");
    rc_build_mtp(b, chunk, x, words, output_words, build_layer);
    b->graph->loss = rc_build_loss(b, RC_TENSOR_LOSS, x, output_words);
}

static rc_code build_chunk(rc_builder *b, const rc_chunk *chunk)
{
    int x, words;
    build_first(b, chunk, &x, &words);
    for (int i = 0; i < chunk->n_runs; i++) {
        const rc_layer_run *run = &chunk->runs[i];
        rc_build_block(b, "decoder.layers.", true);
        x = build_layer(b, &run->kind, x);
        x = rc_build_block_end(b, run->n_layers, x);
    }
    rc_build_block(b, "", false);
    if (chunk->has_loss)
        build_head(b, chunk, x, words);
    else
        rc_build_send(b, x);
    rc_build_block_end(b, 1, RC_ABSENT);
    return b->code;
}

static rc_code refuse_lacking(const struct part *part, rc_error *err)
{
    if (part->build != rc_build_lacking)
        return RC_OK;
    return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "no graph has layers of %s yet",
                   part->name);
}

/* Sizes of a kind that the config does not have would be 0. */
static rc_code need_mixer(const rc_config *cfg, rc_mixer mixer, rc_error *err)
{
    const bool is_latent = mixer == RC_MIXER_mla;
    if ((!is_latent && mixer != RC_MIXER_attention) || is_latent == cfg->multi_latent_attention)
        return RC_OK;
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_multi_latent_attention].where,
                   "model.multi_latent_attention is %s, and a layer has %s",
                   cfg->multi_latent_attention ? "true" : "false", mixers[mixer].name);
}

/* source  megatron/core/transformer/moe/moe_layer.py, MoELayer.forward; fusions/fused_bias_swiglu.py,
 * weighted_bias_swiglu_impl */
static rc_code need_experts(const rc_config *cfg, const rc_dims *dims, rc_error *err)
{
    if (dims->E == 0)
        return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_num_moe_experts].where,
                       "model.num_moe_experts says none, and a layer has %s",
                       mlps[RC_MLP_moe].name);
    if (dims->t > 1 && !dims->has_sequence_parallel)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_sequence_parallel].where,
                       "sequence_parallel is false; experts with tensor parallelism need it");
    if (cfg->add_bias_linear)
        return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_add_bias_linear].where,
                       "add_bias_linear is true; experts have no biases here, set it to false");
    return RC_OK;
}

static rc_code need_run(const rc_config *cfg, const rc_layer_run *run, const rc_dims *dims,
                        rc_error *err)
{
    const bool is_something = mixers[run->kind.mixer].build || mlps[run->kind.mlp].build;
    if (run->n_layers < 1 || !is_something)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "a run of %d layers of %s and %s cannot be built", run->n_layers,
                       mixers[run->kind.mixer].name, mlps[run->kind.mlp].name);
    RC_TRY(refuse_lacking(&mixers[run->kind.mixer], err));
    RC_TRY(refuse_lacking(&mlps[run->kind.mlp], err));
    RC_TRY(need_mixer(cfg, run->kind.mixer, err));
    return run->kind.mlp == RC_MLP_moe ? need_experts(cfg, dims, err) : RC_OK;
}

static rc_code need_mtp(const rc_config *cfg, const rc_chunk *chunk, const rc_dims *dims,
                        rc_error *err)
{
    if (chunk->n_mtp > 0 && !chunk->has_loss)
        return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_mtp_num_layers].where,
                       "multi-token prediction stands on another stage than the loss; that is "
                       "not known here");
    if (chunk->n_mtp > 1 && chunk->is_mtp_shared)
        return RC_FAIL(
            err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_mtp_num_layers].where,
            "depths of multi-token prediction that share their weights are not known "
            "here, set mtp_use_repeated_layer to false");
    for (int i = 0; i < chunk->n_mtp_runs && chunk->n_mtp > 0; i++)
        RC_TRY(need_run(cfg, &chunk->mtp_runs[i], dims, err));
    return RC_OK;
}

/* The layers of a chunk, all of them in `L`. */
static rc_code need_chunk(const rc_config *cfg, const rc_chunk *chunk, rc_dims *dims,
                          rc_error *err)
{
    int64_t *L = &dims->L;
    *L = 0;
    for (int i = 0; i < chunk->n_runs; i++) {
        RC_TRY(need_run(cfg, &chunk->runs[i], dims, err));
        *L += chunk->runs[i].n_layers;
    }
    if (*L > RC_MOST_LAYERS)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "a chunk has %" PRId64 " layers; at most %d can be built", *L,
                       RC_MOST_LAYERS);
    return need_mtp(cfg, chunk, dims, err);
}

/* All of the model. Where layers may differ the layout says how. */
static rc_code make_whole(const rc_config *cfg, rc_arena *mem, rc_chunk *out, rc_error *err)
{
    rc_layer_run *all;
    rc_layout *layout;
    *out = (rc_chunk){.n_runs = 1, .has_embedding = true, .has_loss = true};
    const bool has_experts = cfg->num_moe_experts != RC_NULL_INT && cfg->num_moe_experts > 0;
    const bool has_mtp = cfg->mtp_num_layers != RC_NULL_INT && cfg->mtp_num_layers > 0;
    if (has_experts || has_mtp) {
        RC_TRY(rc_layout_make(cfg, 0, mem, &layout, err));
        const rc_chunk *last = &layout->chunks[layout->n_chunks - 1];
        out->n_mtp = last->n_mtp;
        out->mtp_runs = last->mtp_runs;
        out->n_mtp_runs = last->n_mtp_runs;
        out->runs = layout->runs;
        out->n_runs = layout->n_runs;
        return RC_OK;
    }
    RC_TRY(RC_NEW(mem, &all, 1, err));
    all->kind.mixer = cfg->multi_latent_attention ? RC_MIXER_mla : RC_MIXER_attention;
    all->n_layers = (int)cfg->num_layers;
    out->runs = all;
    return RC_OK;
}

static rc_code refuse_stages(const rc_graph_request *request, rc_error *err)
{
    const rc_config *cfg = request->cfg;
    if (request->chunk || cfg->pipeline_model_parallel_size == 1)
        return RC_OK;
    return RC_FAIL(
        err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_pipeline_model_parallel_size].where,
        "model.pipeline_model_parallel_size is %" PRId64
        ": the graph of a whole model has one stage; ask for a chunk, or set it to 1",
        cfg->pipeline_model_parallel_size);
}

static rc_code open_builder(const rc_graph_request *request, rc_builder *b)
{
    const rc_config *cfg = request->cfg;
    rc_graph *graph = b->graph;
    RC_TRY(rc_dims_make(request, &graph->dims, b->err));
    RC_TRY(read_words(cfg, b, b->err));
    RC_TRY(need_reals(cfg, b->err));
    RC_TRY(rc_params_layout(cfg, graph, b->err));
    return b->has_rope && !cfg->multi_latent_attention
               ? rc_rope_read(cfg, &graph->dims, &b->rope, b->err)
               : RC_OK;
}

rc_code rc_graph_make(const rc_graph_request *request, rc_arena *mem, rc_graph **out,
                      rc_error *err)
{
    const rc_config *cfg = request->cfg;
    RC_TRY(rc_graph_refuse_lacks(cfg, request->profile, err));
    RC_TRY(refuse_stages(request, err));
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_graph *graph = *out;
    graph->profile = request->profile;
    graph->dtype = cfg->bf16 ? RC_BF16 : cfg->fp16 ? RC_F16 : RC_F32;
    graph->tokens = graph->targets = graph->loss = RC_ABSENT;
    rc_builder b = {.cfg = cfg,
                    .graph = graph,
                    .mem = mem,
                    .err = err,
                    .te_version = request->te_version > 0 ? request->te_version : INT_MAX,
                    .is_engine = request->profile == RC_PROFILE_ENGINE};
    RC_TRY(open_builder(request, &b));
    rc_chunk whole;
    const rc_chunk *chunk = request->chunk;
    if (!chunk)
        RC_TRY(make_whole(cfg, mem, &whole, err));
    chunk = chunk ? chunk : &whole;
    RC_TRY(need_chunk(cfg, chunk, &graph->dims, err));
    graph->first_layer = chunk->first_layer;
    RC_TRY(build_chunk(&b, chunk));
    return rc_graph_verify(graph, err);
}

#define BROKEN(err, ...) RC_FAIL((err), RC_E_BUG, RC_NOWHERE, __VA_ARGS__)

static rc_code verify_tensor(const rc_graph *graph, int at, rc_error *err)
{
    const rc_tensor tensor = rc_graph_tensor(graph, at);
    const rc_tensor base = rc_graph_tensor(graph, tensor.storage);
    char name[RC_GRAPH_NAME_BYTES];
    if (base.storage != tensor.storage)
        return BROKEN(err, "%s: its storage is not its own",
                      rc_graph_tensor_name(graph, at, name));
    if (tensor.offset + (tensor.rows - 1) * tensor.ld + tensor.n_elem / tensor.rows >
        base.n_elem)
        return BROKEN(err, "%s reaches past the end of its storage",
                      rc_graph_tensor_name(graph, at, name));
    return RC_OK;
}

/* The op that computes a value, or what a slice is a slice of. */
static int computed_by(const rc_graph *graph, int tensor)
{
    for (int base; (base = rc_graph_tensor(graph, tensor).view_of) >= 0;)
        tensor = base;
    return rc_graph_tensor(graph, tensor).producer;
}

static rc_code verify_op(const rc_graph *graph, int at, rc_error *err)
{
    const rc_op op = rc_graph_op(graph, at);
    char name[RC_GRAPH_NAME_BYTES];
    rc_graph_op_name(graph, at, name);
    for (int i = 0; i < op.n_in; i++)
        if (op.in[i] >= 0 && computed_by(graph, op.in[i]) >= at)
            return BROKEN(err, "%s reads %s before it is computed", name,
                          rc_graph_tensor(graph, op.in[i]).part);
    if (!op.is_in_place)
        return RC_OK;
    /* An in-place op must be the last reader of what it overwrites, and its own backward and its
     * producer's must not want the old value. */
    const rc_tensor x = rc_graph_tensor(graph, op.in[0]);
    if (x.n_consumers != 1 || (op.needs_in & 1u))
        return BROKEN(err, "%s overwrites %s, which is still needed", name, x.part);
    if (x.producer >= 0 && (rc_graph_op(graph, x.producer).needs_out & 1u))
        return BROKEN(err, "%s overwrites %s, which its producer's backward reads", name,
                      x.part);
    return RC_OK;
}

rc_code rc_graph_verify(const rc_graph *graph, rc_error *err)
{
    for (int i = 0; i < graph->n_tensors; i++)
        RC_TRY(verify_tensor(graph, i, err));
    for (int i = 0; i < graph->n_ops; i++)
        RC_TRY(verify_op(graph, i, err));
    for (int i = 0; i < graph->n_regions; i++) {
        const rc_region region = rc_graph_region(graph, i);
        if (region.first > region.last || region.last >= graph->n_ops)
            return BROKEN(err, "region %s of layer %d is empty",
                          rc_label_find_facts(region.label)->name, region.layer);
    }
    return RC_OK;
}

static void print_operand(const rc_graph *graph, int at, bool is_needed, FILE *to)
{
    if (at < 0)
        return;
    const rc_tensor tensor = rc_graph_tensor(graph, at);
    fprintf(to, " %s%s%s", tensor.part, tensor.shape, is_needed ? "*" : "");
}

void rc_graph_print(const rc_graph *graph, FILE *to)
{
    fprintf(to, "graph %s, %d ops, %" PRId64 " parameters; * is read by backward\n",
            rc_profile_name(graph->profile), graph->n_ops, graph->n_parameters);
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        char name[RC_GRAPH_NAME_BYTES];
        fprintf(to, "%4d %-18s %s:", i, op.facts->name, rc_graph_op_name(graph, i, name));
        for (int k = 0; k < op.n_in; k++)
            print_operand(graph, op.in[k], (op.needs_in >> k) & 1u, to);
        fputs(" ->", to);
        for (int k = 0; k < op.n_out; k++)
            print_operand(graph, op.out[k], (op.needs_out >> k) & 1u, to);
        fprintf(to, "%s  %" PRId64 " flop, %" PRId64 " bytes\n",
                op.is_in_place ? " (in place)" : "", op.fwd_flops, op.fwd_bytes);
    }
    for (int i = 0; i < graph->n_regions; i++) {
        const rc_region region = rc_graph_region(graph, i);
        fprintf(to, "region %s layer %d: ops %d to %d\n",
                rc_label_find_facts(region.label)->name, region.layer, region.first,
                region.last);
    }
}

rc_code rc_graph_table(const rc_graph *graph, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"name", NULL, RC_UNIT_TEXT},          {"op", NULL, RC_UNIT_TEXT},
        {"layer", NULL, RC_UNIT_COUNT},        {"output_shape", NULL, RC_UNIT_TEXT},
        {"output_bytes", NULL, RC_UNIT_BYTES}, {"fwd_flops", NULL, RC_UNIT_FLOPS},
        {"bwd_flops", NULL, RC_UNIT_FLOPS},    {"moved_bytes", NULL, RC_UNIT_BYTES}};
    RC_TRY(rc_table_make(mem, "ops", "operations of one micro-batch", columns, 8, out, err));
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        char buf[RC_GRAPH_NAME_BYTES];
        const char *name;
        rc_cell *row;
        RC_TRY(rc_arena_printf(mem, &name, err, "%s", rc_graph_op_name(graph, i, buf)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(name);
        row[1] = rc_cell_text(op.facts->name);
        row[2] = rc_cell_int(op.layer);
        if (op.n_out > 0) {
            row[3] = rc_cell_text(rc_graph_tensor(graph, op.out[0]).shape);
            row[4] = rc_cell_int(rc_graph_tensor(graph, op.out[0]).bytes);
        }
        row[5] = rc_cell_int(op.fwd_flops);
        row[6] = rc_cell_int(op.bwd_flops);
        row[7] = rc_cell_int(op.fwd_bytes);
    }
    return RC_OK;
}
