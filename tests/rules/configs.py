"""Random configurations of Megatron Core's config classes, for tests against a peer and for the
corpus in tests/rules/corpus.jsonl. Values come in themes, so that rules meet their neighbours."""
import random

LABELS = ["core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts",
          "gdn_norm_out", "gdp_in_proj", "gdp_qkv", "mhc", "bogus"]
OFFLOADS = ["core_attn", "attn_proj", "expert_fc1", "fused_group_mlp", "moe_act", "attn_norm",
            "mlp_norm", "qkv_linear", "gdp_qkv", "bogus"]
CAPTURES = ["attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba", "full_iteration",
            "full_iteration_inference", "full", "bogus"]
TE = ["0.0.0", "1.6.0", "1.7.0.dev0", "1.10.0", "1.11.0rc1", "2.2.0", "2.3.0", "2.5.0.post1",
      "2.6.0.dev0", "2.6.0rc1", "2.6.0", "2.9.0", "2.10.0rc1", "2.10.0", "2.12.0+abc"]
LAYOUTS = ["Ett|ttL", "Etttt|ttttL", "E|(tt)*3L", "Et*3|t*3L", "Ett|tt|tt|ttL", "Ett|ttmL",
           "Etttt|tttt|mL", "Ettt|tttL|", "ttE|ttL", "Ett|tt,L", "Ettxt|ttL", "Ett|tmtL",
           [["embedding", "decoder", "decoder"], ["decoder", "decoder", "loss"]],
           [["Embedding", " decoder"], ["decoder", "LOSS"]],
           [["embedding", "encoder"], ["decoder", "loss"]], [["embedding", 3], ["loss"]],
           ["embedding", "loss"]]


def some(rng, names, most=3):
    return rng.sample(names, rng.randint(0, most))


def theme_recompute(rng):
    return {"recompute_granularity": rng.choice(["full", "selective", "selective", None, "", "Full"]),
            "recompute_method": rng.choice(["uniform", "block", None, None, "layer"]),
            "recompute_num_layers": rng.choice([None, None, 0, 1, 2, -1, 999]),
            "recompute_modules": rng.choice([None, some(rng, LABELS), some(rng, LABELS, 2)]),
            "distribute_saved_activations": rng.random() < 0.2,
            "moe_layer_recompute": rng.random() < 0.15}


def theme_parallel(rng):
    return {"tensor_model_parallel_size": rng.choice([1, 2, 4, 8, 3]),
            "sequence_parallel": rng.random() < 0.4,
            "pipeline_model_parallel_size": rng.choice([1, 2, 4, 3]),
            "pipeline_dtype": rng.choice(["bfloat16", "float32", None]),
            "virtual_pipeline_model_parallel_size": rng.choice([None, None, 2, 3]),
            "context_parallel_size": rng.choice([1, 2]),
            "tensor_parallel_num_weight_shards": rng.choice([None, None, 1, 4, 6, 8]),
            "fp32_residual_connection": rng.random() < 0.1}


def theme_pipeline(rng):
    config = {"pipeline_model_parallel_size": rng.choice([1, 2, 2, 4, 3]),
              "pipeline_dtype": "bfloat16",
              "virtual_pipeline_model_parallel_size": rng.choice([None, None, 2, 3])}
    kind = rng.choice(["layout", "uneven", "accounted", "mixed"])
    if kind in ("layout", "mixed"):
        config["pipeline_model_parallel_layout"] = rng.choice(LAYOUTS)
        config["num_layers"] = rng.choice([2, 4, 6, 8])
        config["mtp_num_layers"] = rng.choice([None, None, 0, 1])
    if kind in ("uneven", "mixed") and rng.random() < 0.8:
        config["num_layers_in_first_pipeline_stage"] = rng.choice([None, 0, 1, 2, 4])
        config["num_layers_in_last_pipeline_stage"] = rng.choice([None, -1, 1, 2, 4])
    if kind in ("accounted", "mixed") and rng.random() < 0.8:
        config["account_for_embedding_in_pipeline_split"] = rng.random() < 0.7
        config["account_for_loss_in_pipeline_split"] = rng.random() < 0.7
    return config


def theme_experts(rng):
    return {"num_moe_experts": rng.choice([8, 8, 64, 1, None, 0]),
            "expert_model_parallel_size": rng.choice([1, 2, 4]),
            "moe_grouped_gemm": rng.random() < 0.6,
            "add_bias_linear": rng.random() < 0.3,
            "moe_token_dispatcher_type": rng.choice(["allgather", "alltoall", "alltoall", "flex"]),
            "moe_flex_dispatcher_backend": rng.choice(["deepep", "hybridep", "ncclep"]),
            "moe_expert_capacity_factor": rng.choice([None, None, 1.0, -1.0, 0.0]),
            "moe_pad_expert_input_to_capacity": rng.random() < 0.3,
            "moe_expert_rank_capacity_factor": rng.choice([None, None, 1.5]),
            "moe_ffn_hidden_size": rng.choice([None, 512]),
            "moe_layer_freq": rng.choice([1, 1, 2, [0, 1, 1, 1], [1, 1]]),
            "moe_shared_expert_intermediate_size": rng.choice([None, None, 512, 0]),
            "moe_shared_expert_overlap": rng.random() < 0.2,
            "moe_router_dtype": rng.choice(["fp32", None]),
            "moe_input_jitter_eps": rng.choice([None, 0.0, 0.01]),
            "moe_router_padding_for_fp8": rng.random() < 0.1,
            "moe_router_padding_for_quantization": rng.random() < 0.1,
            "moe_use_grouped_tensor": rng.random() < 0.1,
            "moe_paged_stash": rng.random() < 0.1}


def theme_precision(rng):
    return {"fp8": rng.choice(["hybrid", "e4m3", None]),
            "fp8_recipe": rng.choice(["delayed", "tensorwise", "mxfp8", "blockwise"]),
            "fp4": rng.choice([None, None, None, "e2m1"]), "bf16": rng.random() < 0.6,
            "fp16": rng.random() < 0.2}


def theme_graphs(rng):
    impl = rng.choice(["none", "local", "transformer_engine", "full_iteration", "te"])
    modules = rng.choice(["full", "attn,mlp", None, [], some(rng, CAPTURES, 2), some(rng, CAPTURES[:6])])
    config = {"cuda_graph_impl": impl, "cuda_graph_modules": modules,
              "cuda_graph_warmup_steps": rng.choice([3, 0]),
              "attention_dropout": rng.choice([0.0, 0.0, 0.1]),
              "hidden_dropout": rng.choice([0.0, 0.0, 0.1])}
    if rng.random() < 0.2:
        config["cuda_graph_scope"] = rng.choice(["full", "attn", [], ["mlp"], "full_iteration"])
        config.pop("cuda_graph_modules")
    if rng.random() < 0.2:
        config["enable_cuda_graph"] = rng.random() < 0.5
        config["external_cuda_graph"] = rng.random() < 0.5
        config["cuda_graph_impl"] = rng.choice(["none", "none", "local"])
    if rng.random() < 0.2:
        config["inference_cuda_graph_scope"] = rng.choice(["none", "layer", "block", "bogus", None])
    return config


def theme_offload(rng):
    return {"cpu_offloading": rng.random() < 0.2, "cpu_offloading_num_layers": rng.choice([0, 1, -1, 99]),
            "fine_grained_activation_offloading": rng.random() < 0.7,
            "offload_modules": rng.choice([some(rng, OFFLOADS), some(rng, OFFLOADS, 1), None]),
            "min_offloaded_tensor_size": rng.choice([1048576, 0, -1]),
            "activation_offload_fraction": rng.choice([1.0, 0.5, 1.1, -0.1]),
            "delta_offload_bytes_across_pp_ranks": rng.choice([0, 0, -1]),
            "fine_grained_offloading_max_inflight_offloads": rng.choice([None, 1, -1])}


def theme_overlap(rng):
    return {"overlap_moe_expert_parallel_comm": rng.random() < 0.8,
            "expert_model_parallel_size": rng.choice([4, 4, 1]), "num_moe_experts": 8,
            "add_bias_linear": False, "moe_token_dispatcher_type": rng.choice(["alltoall", "flex", "allgather"]),
            "bf16": rng.random() < 0.9, "mtp_num_layers": rng.choice([None, None, 0, 1, 2]),
            "delay_wgrad_compute": rng.random() < 0.3,
            "overlap_dispatch_backward_with_experts_wgrad": rng.random() < 0.1,
            "ep_overlap_early_attn_memory_release": rng.random() < 0.2}


def theme_attention(rng):
    return {"experimental_attention_variant": rng.choice([None, "gdn", "gdn2", "gated_delta_net"]),
            "linear_attention_freq": rng.choice([None, 4, 2]),
            "linear_num_key_heads": rng.choice([16, 6, 4, None]),
            "linear_num_value_heads": rng.choice([32, 12, 20]),
            "multi_latent_attention": rng.random() < 0.4, "rotary_interleaved": rng.random() < 0.1,
            "apply_rope_fusion": False, "attention_output_gate": rng.random() < 0.1,
            "cache_mla_latents": rng.random() < 0.2}


def theme_mhc(rng):
    return {"enable_mhc_connections": rng.random() < 0.8,
            "recompute_granularity": "selective",
            "recompute_modules": rng.choice([["mhc"], ["mhc", "mlp"], ["mhc", "layernorm"], ["core_attn"]]),
            "mhc_recompute_layer_num": rng.choice([None, 1, 2, 0, True, 2.0]),
            "mhc_sinkhorn_iterations": rng.choice([20, 0]), "mhc_init_gating_factor": rng.choice([0.01, -1.0]),
            "mtp_num_layers": rng.choice([None, None, 0])}


THEMES = [theme_recompute, theme_parallel, theme_pipeline, theme_experts, theme_precision,
          theme_graphs, theme_offload, theme_overlap, theme_attention, theme_mhc]


def make(seed, drop=0.5):
    """One line of a corpus without its verdict. `drop`: the share of settings left unset."""
    rng = random.Random(seed)
    config = {"num_layers": rng.choice([4, 6, 8, 9, 12]), "hidden_size": 1024,
              "num_attention_heads": rng.choice([8, 16, 9])}
    for theme in rng.sample(THEMES, rng.randint(1, 4)):
        for name, value in theme(rng).items():
            if rng.random() >= drop:
                config[name] = value
    if rng.random() < 0.01:
        config["pipeline_model_parallel_size"] = 0
    return {"id": f"seed-{seed}",
            "kind": "MLATransformerConfig" if rng.random() < 0.15 else "TransformerConfig",
            "te_version": rng.choice(TE + ["2.9.0"] * 10), "config": config}
