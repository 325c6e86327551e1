/* law.h — the grid that the laws are tried on: sample models x settings x attention cores x threads. */
#ifndef RC_TESTS_LAW_H
#define RC_TESTS_LAW_H

#include <recompute/recompute.h>
#include <recompute/train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One sample model: overrides that make it. Sizes are odd on purpose: no dimension hides another. */
typedef struct law_model {
    const char *name;
    const char *words[32];
} law_model;

#define LAW_COMMON                                                                             \
    "model.num_layers=3", "model.hidden_size=48", "model.num_attention_heads=4",               \
        "model.seq_length=37", "model.vocab_size=101", "train.micro_batch_size=2",             \
        "model.make_vocab_size_divisible_by=1", "model.hidden_dropout=0.1",                    \
        "model.attention_dropout=0.15"

static const law_model law_models[] = {
    {"gpt", {LAW_COMMON, "model.activation_func=gelu_tanh"}},
    {"gpt-no-dropout",
     {LAW_COMMON, "model.activation_func=gelu", "model.hidden_dropout=0",
      "model.attention_dropout=0", "model.softmax_scale=0.2"}},
    {"llama",
     {LAW_COMMON, "model.normalization=RMSNorm", "model.position_embedding_type=rope",
      "model.gated_linear_unit=true", "model.activation_func=silu", "model.num_query_groups=2",
      "model.add_bias_linear=false", "model.share_embeddings_and_output_weights=false",
      "model.ffn_hidden_size=80"}},
    {"llama-qk-norm",
     {LAW_COMMON, "model.normalization=RMSNorm", "model.position_embedding_type=rope",
      "model.gated_linear_unit=true", "model.activation_func=silu", "model.num_query_groups=1",
      "model.add_bias_linear=false", "model.qk_layernorm=true", "model.kv_channels=20",
      "model.layernorm_zero_centered_gamma=true", "model.position_embedding_type=yarn",
      "model.yarn_rotary_scaling_factor=4", "model.yarn_original_max_position_embeddings=10",
      "model.yarn_beta_fast=2", "model.yarn_beta_slow=0.1",
      "model.yarn_correction_range_round_to_int=true"}},
    {"mixed",
     {LAW_COMMON, "model.position_embedding_type=rope", "model.rotary_percent=0.5",
      "model.activation_func=squared_relu", "model.add_bias_linear=false",
      "model.add_qkv_bias=true", "model.qk_layernorm=true", "model.num_layers=5",
      "model.make_vocab_size_divisible_by=128", "model.layernorm_zero_centered_gamma=true"}},
};
enum { LAW_N_MODELS = sizeof law_models / sizeof *law_models };

static const char *const law_cores[] = {"fused", "unfused"};

/* Fails the test with the library's own message. */
static inline void law_check(rc_code code, const rc_error *err)
{
    if (code != RC_OK)
        fail_msg("%s (%s)", err->msg, err->raised_at ? err->raised_at : "?");
}

static inline rc_config *law_config(const law_model *model, const char *core, rc_arena *mem)
{
    rc_error err = {0};
    rc_doc *doc;
    rc_config *cfg;
    const char *words[40];
    char backend[64];
    size_t n = 0;
    while (n < 32 && model->words[n]) {
        words[n] = model->words[n];
        n++;
    }
    snprintf(backend, sizeof backend, "model.attention_backend=%s", core);
    words[n++] = backend;
    law_check(rc_override_read(words, n, mem, &doc, &err), &err);
    rc_input input = {doc, RC_FROM_OVERRIDE};
    law_check(rc_config_make(&input, 1, mem, &cfg, &err), &err);
    law_check(rc_train_refuse_unknown(cfg, &err), &err);
    return cfg;
}

/* The nouns of a config up to `last`, in any profile. */
static inline rc_passes law_passes(const rc_config *cfg, rc_profile profile, rc_noun last,
                                   rc_arena *mem)
{
    rc_error err = {0};
    rc_passes passes = {.cfg = cfg, .profile = profile, .n_threads = 1};
    law_check(rc_passes_make(&passes, last, mem, &err), &err);
    return passes;
}

static inline const rc_graph *law_graph(const law_model *model, const char *core, rc_arena *mem)
{
    return law_passes(law_config(model, core, mem), RC_PROFILE_ENGINE, RC_NOUN_GRAPH, mem)
        .graph;
}

/* The labels that act in a graph. */
static inline int law_labels(const rc_graph *graph, rc_label out[RC_LABEL_COUNT])
{
    int n = 0;
    for (rc_label label = 0; label < RC_LABEL_COUNT; label++)
        if (rc_graph_count_regions(graph, label) > 0)
            out[n++] = label;
    return n;
}

typedef struct law_settings {
    const char **at;
    size_t n;
} law_settings;

/* No recompute, every set of the labels that act in a graph, and full in each way. */
static inline law_settings law_all_settings(const rc_graph *graph, rc_arena *mem)
{
    static const char *const full[] = {"full/uniform/1",   "full/uniform/2", "full/uniform/3",
                                       "full/uniform/100", "full/block/1",   "full/block/2",
                                       "full/block/100"};
    enum { N_FULL = sizeof full / sizeof *full };
    rc_error err = {0};
    rc_label labels[RC_LABEL_COUNT];
    int n_labels = law_labels(graph, labels);
    law_settings out = {0};
    law_check(RC_NEW(mem, &out.at, 1 + ((size_t)1 << n_labels) + N_FULL, &err), &err);
    out.at[out.n++] = "none";
    for (uint32_t set = 0; set < 1u << n_labels; set++) {
        const char *text = set ? "selective/" : "selective/[]";
        for (int i = 0, n_named = 0; i < n_labels; i++)
            if (set >> i & 1u)
                law_check(rc_arena_printf(mem, &text, &err, "%s%s%s", text,
                                          n_named++ ? "+" : "",
                                          rc_label_find_facts(labels[i])->name),
                          &err);
        out.at[out.n++] = text;
    }
    for (size_t i = 0; i < N_FULL; i++)
        out.at[out.n++] = full[i];
    return out;
}

/* The nouns of a graph and a setting up to `last`. */
static inline rc_passes law_made(const rc_graph *graph, const rc_setting *setting,
                                 int n_threads, rc_noun last, rc_arena *mem)
{
    rc_error err = {0};
    rc_passes passes = {.graph = graph, .setting = setting, .n_threads = n_threads};
    law_check(rc_passes_make(&passes, last, mem, &err), &err);
    return passes;
}

/* The same with the setting's name. */
static inline rc_passes law_setting(const rc_graph *graph, const char *name, int n_threads,
                                    rc_noun last, rc_arena *mem)
{
    rc_setting setting;
    assert_true(rc_setting_parse(name, &setting));
    rc_passes passes = law_made(graph, &setting, n_threads, last, mem);
    passes.setting = NULL; /* it goes with this function */
    return passes;
}

static inline rc_policy *law_policy(const rc_graph *graph, const char *name, rc_arena *mem)
{
    return law_setting(graph, name, 1, RC_NOUN_POLICY, mem).policy;
}

static inline rc_schedule *law_schedule(const rc_graph *graph, const char *setting,
                                        int n_threads, rc_arena *mem)
{
    return law_setting(graph, setting, n_threads, RC_NOUN_SCHEDULE, mem).schedule;
}

/* One micro-batch forward and backward; one step's update. */
static inline double law_micro(rc_run *run, const int32_t *tokens, const int32_t *targets,
                               int64_t step, int micro)
{
    rc_error err = {0};
    double loss;
    law_check(rc_run_micro(run, &(rc_batch){tokens, targets, step, micro}, &loss, &err), &err);
    return loss;
}

static inline double law_update(rc_run *run, const rc_update *update)
{
    rc_error err = {0};
    double norm;
    law_check(rc_run_update(run, update, &norm, &err), &err);
    return norm;
}

#endif
