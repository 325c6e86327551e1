/* test_config_names.c — the names of other frameworks and of models, all by table. */
#include "config_cases.h"

/* "a.b.c" and a value as {a: {b: {c: value}}}; `prefix` is one more map around, or NULL. */
static void nest(char *text, size_t room, const char *prefix, const char *path,
                 const char *value)
{
    size_t at = 0, depth = 0;
    if (prefix)
        at += (size_t)snprintf(text, room, "{%s: ", prefix);
    depth += prefix != NULL;
    for (const char *part = path; *part; depth++) {
        size_t n = strcspn(part, ".");
        at += (size_t)snprintf(text + at, room - at, "{%.*s: ", (int)n, part);
        part += n + (part[n] == '.');
    }
    snprintf(text + at, room - at, "%s%.*s", value, (int)depth, "}}}}}}}}");
}

/* A row must set its fields, whatever they are; one without `when` suits some kind of value. */
static void try_alias(const char *prefix, const char *path, const char *when)
{
    static const char *const kinds[] = {"1", "true", "x"};
    rc_error err = {0};
    rc_code code = RC_E_INPUT;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && code != RC_OK; i++) {
        char text[1024];
        rc_arena *mem = rc_arena_open();
        rc_config *cfg = NULL;
        err = (rc_error){0};
        nest(text, sizeof text, prefix, path, *when ? when : kinds[i]);
        code = make_kind(text, RC_FROM_FILE, mem, &cfg, &err);
        if (code == RC_OK)
            assert_int_equal(cfg->n_unknown, 0);
        rc_arena_close(mem);
        if (code == RC_E_BUG || *when)
            break;
    }
    if (code != RC_OK)
        fail_msg("%s when \"%s\": %s", path, when, err.msg);
}

static void config_every_alias_sets_fields(void **state)
{
    (void)state;
    static const char ARGS[] = "megatron_args", *const BRIDGE = NULL;
#define RC_ALIAS(dialect, name, when, settings)                                                \
    if (*name)                                                                                 \
        try_alias(dialect, name, when);
#include "defs/aliases.def"
#undef RC_ALIAS
#define RC_FAMILY(name, settings) try_alias("hf_config", "model_type", #name);
#define RC_HF(name, when, settings) try_alias("hf_config", name, when);
#include "defs/hf.def"
#undef RC_FAMILY
#undef RC_HF
}

static void config_reads_mixed_precision_and_overlap_of_bridge(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make(
        "comm_overlap: {overlap_moe_expert_parallel_comm: true, delay_wgrad_compute: null}\n"
        "mixed_precision: bf16-mixed\n"
        "model: {overlap_moe_expert_parallel_comm: false, bf16: false}\n",
        mem);
    assert_true(cfg->overlap_moe_expert_parallel_comm); /* the section wins over the model */
    assert_int_equal(cfg->origin[RC_FIELD_overlap_moe_expert_parallel_comm].where.line, 1);
    assert_true(cfg->bf16);
    assert_string_equal(cfg->pipeline_dtype, "bfloat16");
    assert_int_equal(cfg->origin[RC_FIELD_delay_wgrad_compute].kind, RC_FROM_DEFAULT);
    rc_arena_close(mem);
}

static void config_notes_names_that_are_in_no_row(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("mixed_precision: my_recipe\nmodel: {activation_func: silu}\n"
                          "hf_config: {model_type: my_model, num_hidden_layers: 3}\n",
                          mem);
    assert_int_equal(cfg->num_layers, 3);
    assert_int_equal(cfg->n_unknown, 2);
    assert_string_equal(cfg->unknown[0].path, "model_type");
    assert_int_equal(cfg->unknown[0].where.col, 25);
    assert_string_equal(cfg->unknown[1].path, "mixed_precision");
    assert_int_equal(cfg->unknown[1].where.col, 18);
    rc_arena_close(mem);
}

static void config_reads_targets_of_bridge(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg =
        make("model:\n"
             "  _target_: megatron.bridge.models.llama.llama_provider.LlamaModelProvider\n"
             "  activation_func: {_target_: torch.nn.functional.silu, _call_: false}\n"
             "  attention_backend:\n"
             "    _target_: megatron.core.transformer.enums.AttnBackend\n"
             "    _call_: true\n"
             "    _args_: [1]\n"
             "  params_dtype: {_target_: torch.bfloat16, _call_: false}\n"
             "  pipeline_dtype: torch.bfloat16\n"
             "  init_method: {_target_: torch.nn.init.normal_, _partial_: true, _args_: []}\n"
             "  cuda_graph_modules:\n"
             "  - {_target_: a.CudaGraphScope, _args_: [2], _call_: true}\n"
             "  - {_target_: a.CudaGraphModule, _args_: [9], _name_: moe, _call_: true}\n"
             "peft: {_target_: megatron.bridge.peft.lora.LoRA, dim: 32}\n",
             mem);
    assert_string_equal(cfg->model_target,
                        "megatron.bridge.models.llama.llama_provider.LlamaModelProvider");
    assert_string_equal(cfg->activation_func, "silu");
    assert_string_equal(cfg->attention_backend, "flash");
    assert_string_equal(cfg->params_dtype, "bfloat16");
    assert_string_equal(cfg->pipeline_dtype, "bfloat16");
    assert_string_equal(cfg->cuda_graph_modules.at[0], "attn");
    assert_string_equal(cfg->cuda_graph_modules.at[1], "moe");
    assert_string_equal(cfg->peft->tag, "megatron.bridge.peft.lora.LoRA");
    assert_int_equal(cfg->peft_dim, 32);
    cfg = make("model:\n"
               "  activation_func:\n"
               "    {_target_: torch.nn.functional.gelu, _partial_: true, approximate: tanh}\n",
               mem);
    assert_string_equal(cfg->activation_func, "gelu_tanh");
    rc_arena_close(mem);
}

static void config_reads_arguments_of_megatron_lm(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("megatron_args:\n"
                          "  bf16: true\n"
                          "  grad_reduce_in_bf16: true\n"
                          "  untie_embeddings_and_output_weights: true\n"
                          "  disable_bias_linear: true\n"
                          "  num_experts: 8\n"
                          "  fp8_format: hybrid\n"
                          "  num_query_groups: 1\n"
                          "  num_attention_heads: 16\n"
                          "  no_rope_fusion: true\n",
                          mem);
    assert_true(cfg->bf16);
    assert_false(cfg->grad_reduce_in_fp32);
    assert_false(cfg->share_embeddings_and_output_weights);
    assert_false(cfg->add_bias_linear);
    assert_int_equal(cfg->num_moe_experts, 8);
    assert_string_equal(cfg->fp8, "hybrid");
    assert_false(cfg->apply_rope_fusion);
    assert_int_equal(cfg->cuda_graph_modules.n, 0); /* the command line's default */
    assert_string_equal(cfg->pipeline_dtype, "bfloat16");
    assert_int_equal(rc_config_groups(cfg), 16); /* no --group-query-attention */
    cfg = make("megatron_args: {num_query_groups: 8, num_attention_heads: 16, "
               "group_query_attention: true}\n",
               mem);
    assert_int_equal(rc_config_groups(cfg), 8);
    cfg = make("megatron_args: {bf16: false}\nenv: {NCCL_DEBUG: WARN}\n", mem);
    assert_string_equal(cfg->pipeline_dtype,
                        "float32"); /* Megatron-LM passes params_dtype on */
    assert_int_equal(cfg->n_unknown, 0);
    cfg = make("{}", mem);
    assert_null(cfg->pipeline_dtype);
    assert_string_equal(cfg->cuda_graph_modules.at[0], "full"); /* the class's default */
    rc_arena_close(mem);
}

/* Bridge's conversion groups the experts; Megatron-LM's command line says so itself, or not. */
static void config_groups_experts_as_bridge_converts_them(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("hf_config: {model_type: qwen3_moe, num_experts: 128}\n", mem);
    assert_true(cfg->moe_grouped_gemm);
    assert_string_equal(cfg->moe_token_dispatcher_type, "alltoall");
    cfg = make("hf_config: {model_type: qwen3, num_experts: null}\n", mem);
    assert_false(cfg->moe_grouped_gemm);
    cfg = make("preset: deepseek-v3\n", mem);
    assert_true(cfg->moe_grouped_gemm);
    cfg = make("preset: deepseek-v3\nmegatron_args: {expert_model_parallel_size: 8}\n", mem);
    assert_int_equal(cfg->num_moe_experts, 256);
    assert_false(cfg->moe_grouped_gemm);
    rc_arena_close(mem);
}

/* As the bridges of Megatron Bridge set them. */
static void config_knows_routers_of_families(void **state)
{
    static const struct {
        const char *text, *score, *dtype;
        bool is_softmax_first, has_bias;
    } cases[] = {
        {"preset: deepseek-v2\n", "softmax", "fp32", true, false},
        {"preset: deepseek-v3\n", "sigmoid", "fp32", true, true},
        {"preset: moonlight-16b-a3b\n", "sigmoid", "fp32", true, true},
        {"preset: kimi-k2\n", "sigmoid", "fp32", true, true},
        {"preset: glm4.5\n", "sigmoid", "fp32", false, true},
        {"preset: mixtral-8x7b\n", "softmax", NULL, false, false},
        {"hf_config: {model_type: deepseek_v3, num_hidden_layers: 4}\n", "sigmoid", "fp32",
         true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        const rc_config *cfg = make(cases[i].text, mem);
        assert_string_equal(cfg->moe_router_score_function, cases[i].score);
        assert_int_equal(cfg->moe_router_pre_softmax, cases[i].is_softmax_first);
        assert_int_equal(cfg->moe_router_enable_expert_bias, cases[i].has_bias);
        if (cases[i].dtype)
            assert_string_equal(cfg->moe_router_dtype, cases[i].dtype);
        else
            assert_null(cfg->moe_router_dtype);
        rc_arena_close(mem);
    }
}

static void config_reads_shapes_of_hugging_face(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg =
        make("hf_config: {n_shared_experts: 2, first_k_dense_replace: 1,\n"
             "  model_type: deepseek_v2, num_hidden_layers: 4, hidden_size: 2048,\n"
             "  moe_intermediate_size: 1408, n_routed_experts: 64, q_lora_rank: null,\n"
             "  kv_lora_rank: 512, num_experts_per_tok: 6, bos_token_id: 1}\n",
             mem);
    assert_int_equal(cfg->num_layers, 4);
    assert_true(cfg->multi_latent_attention);
    assert_int_equal(cfg->moe_shared_expert_intermediate_size, 2816);
    assert_int_equal(cfg->origin[RC_FIELD_moe_shared_expert_intermediate_size].where.col, 31);
    assert_int_equal(cfg->moe_layer_freq->n_children, 4);
    assert_int_equal(cfg->moe_layer_freq->child->i, 0);
    assert_int_equal(cfg->moe_layer_freq->last->i, 1);
    assert_int_equal(cfg->q_lora_rank, RC_NULL_INT);
    assert_string_equal(cfg->normalization, "RMSNorm");
    assert_int_equal(cfg->n_unknown, 0);
    cfg = make(
        "hf_config:\n"
        "  architectures: [Gemma3ForConditionalGeneration]\n"
        "  model_type: gemma3\n"
        "  vision_config: {num_hidden_layers: 27}\n"
        "  text_config: {num_hidden_layers: 34, hidden_size: 2560, model_type: gemma3_text,\n"
        "    head_dim: 256, num_key_value_heads: 4, num_attention_heads: 8}\n",
        mem);
    assert_int_equal(cfg->num_layers, 34);
    assert_int_equal(rc_config_head_dim(cfg), 256);
    assert_int_equal(rc_config_groups(cfg), 4);
    assert_true(cfg->qk_layernorm);
    cfg = make(
        "hf_config: {model_type: gpt2, n_layer: 12, n_embd: 768, n_head: 12, n_inner: null,\n"
        "  n_positions: 1024, vocab_size: 50257, resid_pdrop: 0.1}\n",
        mem);
    assert_string_equal(cfg->activation_func, "gelu_tanh");
    assert_int_equal(rc_config_ffn(cfg), 3072);
    assert_true(cfg->share_embeddings_and_output_weights);
    cfg = make("hf_config: {model_type: gpt_oss, num_hidden_layers: 4, sliding_window: 128,\n"
               "  layer_types: [sliding_attention, full_attention, sliding_attention, x]}\n",
               mem);
    assert_int_equal(cfg->window_size->child->i, 127);
    assert_int_equal(cfg->window_size->last->i, 0);
    assert_int_equal(cfg->window_attn_skip_freq->n_children, 4);
    assert_int_equal(cfg->window_attn_skip_freq->child->i, 1);
    assert_int_equal(cfg->window_attn_skip_freq->child->next->i, 0);
    assert_null(cfg->linear_attention_freq);
    cfg = make("hf_config: {model_type: qwen2, use_sliding_window: false, sliding_window: 4}\n",
               mem);
    assert_null(cfg->window_size);
    cfg = make(
        "hf_config: {model_type: qwen3_next, layer_types: [linear_attention, full_attention],\n"
        "  sliding_window: null}\n",
        mem);
    assert_null(cfg->window_size);
    assert_int_equal(cfg->linear_attention_freq->child->i, 1);
    assert_int_equal(cfg->linear_attention_freq->last->i, 0);
    cfg = make("hf_config: {model_type: nemotron_h, moe_intermediate_size: 1856,\n"
               "  n_shared_experts: 1, moe_shared_expert_intermediate_size: 3712}\n",
               mem);
    assert_int_equal(cfg->moe_shared_expert_intermediate_size, 3712);
    cfg =
        make("hf_config: {model_type: of_tomorrow, rms_norm_eps: 1e-6, num_hidden_layers: 2}\n",
             mem);
    assert_string_equal(cfg->normalization, "RMSNorm");
    assert_false(cfg->add_bias_linear);
    rc_arena_close(mem);
}

/* Parameters of a Mamba-2 layer: in and out projections and the convolution (Dao and Gu 2024). */
static double count_mamba(const rc_config *cfg)
{
    double h = (double)cfg->hidden_size, n_heads = (double)cfg->mamba_num_heads;
    double inner = n_heads * (double)cfg->mamba_head_dim;
    double state = 2 * (double)(cfg->mamba_num_groups * cfg->mamba_state_dim);
    return h * (2 * inner + state + n_heads) + 5 * (inner + state) + inner * h;
}

/* Of the layers of a hybrid stack, one letter each; 0 for other stacks. */
static double count_kinds(const rc_config *cfg, double attention, double mlp)
{
    double sum = 0;
    for (const char *kind = cfg->hybrid_override_pattern; kind && *kind; kind++)
        sum += *kind == 'M' ? count_mamba(cfg) : *kind == '*' ? attention : mlp;
    return sum;
}

/* Parameters of a dense or MoE decoder without biases and norms' weights (under a thousandth). */
static double count_parameters(const rc_config *cfg)
{
    double h = (double)cfg->hidden_size, a = (double)cfg->num_attention_heads;
    double d = (double)rc_config_head_dim(cfg), g = (double)rc_config_groups(cfg);
    double n_matrices = cfg->gated_linear_unit ? 3 : 2, sum = 0;
    double attention = h * d * (a + 2 * g) + a * d * h;
    if (cfg->multi_latent_attention) {
        double q = (double)(cfg->qk_head_dim + cfg->qk_pos_emb_head_dim) * a;
        double rank = (double)cfg->kv_lora_rank, v = (double)cfg->v_head_dim * a;
        attention =
            cfg->q_lora_rank == RC_NULL_INT ? h * q : (h + q) * (double)cfg->q_lora_rank;
        attention += h * (rank + (double)cfg->qk_pos_emb_head_dim) + v * h;
        attention += rank * ((double)cfg->qk_head_dim * a + v);
    }
    const rc_doc *is_moe = cfg->moe_layer_freq->child;
    sum += count_kinds(cfg, attention, n_matrices * h * (double)rc_config_ffn(cfg));
    int64_t n_layers = cfg->hybrid_override_pattern ? 0 : cfg->num_layers;
    for (int64_t i = 0; i < n_layers; i++, is_moe = is_moe ? is_moe->next : NULL) {
        bool is_dense = cfg->num_moe_experts == RC_NULL_INT || (is_moe && is_moe->i == 0);
        double width = (double)rc_config_ffn(cfg);
        if (!is_dense) {
            width = (double)(cfg->num_moe_experts * cfg->moe_ffn_hidden_size);
            if (cfg->moe_shared_expert_intermediate_size != RC_NULL_INT)
                width += (double)cfg->moe_shared_expert_intermediate_size;
            sum += h * (double)cfg->num_moe_experts; /* router */
        }
        sum += attention + n_matrices * h * width;
    }
    double n_tables = cfg->share_embeddings_and_output_weights ? 1 : 2;
    return sum + n_tables * h * (double)cfg->vocab_size;
}

/* Billions of parameters as the models' papers or cards state them. */
static void config_presets_have_the_stated_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double billions;
    } cases[] = {
        {"llama2-7b", 6.74},         {"llama2-13b", 13.02},
        {"llama2-70b", 68.98},       {"llama3-8b", 8.03},
        {"llama3-70b", 70.55},       {"llama3.1-8b", 8.03},
        {"llama3.1-70b", 70.55},     {"llama3.3-70b", 70.55},
        {"llama3.1-405b", 405.85},   {"llama3.2-1b", 1.24},
        {"llama3.2-3b", 3.21},       {"qwen2-7b", 7.62},
        {"qwen2-72b", 72.71},        {"qwen2-57b-a14b", 57.41},
        {"qwen2.5-0.5b", 0.494},     {"qwen2.5-1.5b", 1.54},
        {"qwen2.5-3b", 3.09},        {"qwen2.5-7b", 7.62},
        {"qwen2.5-72b", 72.71},      {"qwen2.5-14b", 14.77},
        {"qwen2.5-32b", 32.76},      {"qwen3-0.6b", 0.596},
        {"qwen3-1.7b", 1.72},        {"qwen3-4b", 4.02},
        {"qwen3-8b", 8.19},          {"qwen3-14b", 14.77},
        {"qwen3-32b", 32.76},        {"qwen3-30b-a3b", 30.53},
        {"qwen3-235b-a22b", 235.09}, {"mistral-7b", 7.24},
        {"mixtral-8x7b", 46.70},     {"mixtral-8x22b", 140.62},
        {"deepseek-v2-lite", 15.71}, {"deepseek-v2", 235.74},
        {"deepseek-v3", 671.03},     {"moonlight-16b-a3b", 15.96},
        {"kimi-k2", 1026.4},         {"gpt2", 0.124},
        {"gpt2-medium", 0.355},      {"gpt2-large", 0.774},
        {"gpt2-xl", 1.558},          {"gpt3-175b", 174.6},
        {"gpt-oss-20b", 20.91},      {"gpt-oss-120b", 116.83},
        {"gemma-2b", 2.51},          {"gemma-7b", 8.54},
        {"gemma2-2b", 2.61},         {"gemma2-9b", 9.24},
        {"gemma2-27b", 27.23},       {"gemma3-1b", 1.0},
        {"gemma3-4b", 3.88},         {"gemma3-12b", 11.77},
        {"gemma3-27b", 27.01},       {"phi-2", 2.78},
        {"phi3-mini", 3.82},         {"phi-4", 14.66},
        {"glm4.5-air", 106.85},      {"glm4.5", 352.8},
        {"nemotron-h-8b", 8.10},     {"nemotron-h-47b", 46.79},
        {"nemotron-h-56b", 56.32},
    };
    size_t n_presets;
    rc_preset_list(&n_presets);
    assert_int_equal(sizeof cases / sizeof *cases, n_presets); /* each name is its own, below */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        rc_arena *mem = rc_arena_open();
        snprintf(text, sizeof text, "preset: %s\n", cases[i].name);
        double billions = count_parameters(make(text, mem)) / 1e9;
        if (fabs(billions / cases[i].billions - 1) > 0.005)
            fail_msg("%s has %.3f billion parameters, stated are %.3f", cases[i].name, billions,
                     cases[i].billions);
        rc_arena_close(mem);
    }
}

static void config_finds_presets_as_people_write_them(void **state)
{
    (void)state;
    size_t n;
    const rc_preset *presets = rc_preset_list(&n);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(rc_preset_find(presets[i].name), &presets[i]);
    assert_string_equal(rc_preset_find("Llama-3.1-8B")->name, "llama3.1-8b");
    assert_string_equal(rc_preset_find("meta-llama/Llama-3.1-8B")->name, "llama3.1-8b");
    assert_string_equal(rc_preset_find("mistralai/Mixtral-8x7B-v0.1")->name, "mixtral-8x7b");
    assert_null(rc_preset_find("llama9"));
    expect_refused("preset: llama3-7b\n", 1,
                   /* */ "        ^", "unknown model llama3-7b, did you mean llama");
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("preset: llama3-70b\nmodel: {num_layers: 8}\n", mem);
    assert_int_equal(cfg->num_layers, 8);
    assert_int_equal(rc_config_groups(cfg), 8);
    assert_int_equal(cfg->origin[RC_FIELD_hidden_size].where.line, 1);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_every_alias_sets_fields),
        cmocka_unit_test(config_reads_mixed_precision_and_overlap_of_bridge),
        cmocka_unit_test(config_notes_names_that_are_in_no_row),
        cmocka_unit_test(config_reads_targets_of_bridge),
        cmocka_unit_test(config_reads_arguments_of_megatron_lm),
        cmocka_unit_test(config_groups_experts_as_bridge_converts_them),
        cmocka_unit_test(config_knows_routers_of_families),
        cmocka_unit_test(config_reads_shapes_of_hugging_face),
        cmocka_unit_test(config_presets_have_the_stated_sizes),
        cmocka_unit_test(config_finds_presets_as_people_write_them),
    };
    return cmocka_run_group_tests_name("config_names", tests, NULL, NULL);
}
