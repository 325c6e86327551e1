"""What the megatron-local graph keeps, beside what Megatron Core's own modules keep on a processor.

    python3 retained.py path/to/print_retained

A layer's bytes are the difference between models of three layers and of two: storages of tensors that autograd saves and
that still live when forward is over, each once. Exit 77 (skipped) where megatron-core or torch is missing."""
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
import weakref

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
os.environ.setdefault("RANK", "0")
os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
try:
    import torch
    import stand_ins
    stand_ins.stand_for_cuda()
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig
    stand_ins.stand_for_kernels()
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(77)

S, B, VOCABULARY = 32, 2, 128

COMMON = {"hidden_size": 64, "num_attention_heads": 4, "ffn_hidden_size": 192, "gated_linear_unit": True,
          "add_bias_linear": False, "bias_activation_fusion": False, "hidden_dropout": 0.0, "attention_dropout": 0.0,
          "normalization": "RMSNorm"}
LATENT = {"multi_latent_attention": True, "kv_lora_rank": 16, "qk_head_dim": 16, "qk_pos_emb_head_dim": 8,
          "v_head_dim": 24, "rope_type": "rope"}
EXPERTS = {"num_moe_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 96, "moe_router_dtype": "fp32",
           "moe_token_dispatcher_type": "alltoall", "expert_tensor_parallel_size": 1}
TWO = {"tensor_model_parallel_size": 2, "sequence_parallel": True}
# Every token goes to every expert, so that ranks read as many rows.
EVEN = {**EXPERTS, "moe_router_topk": 4, "expert_model_parallel_size": 2}

# name, ranks, settings, sets of labels
CASES = [
    ("dense", 1, {}, ["", "core_attn", "layernorm", "mlp", "core_attn+layernorm+mlp"]),
    ("dense, grouped", 1, {"num_query_groups": 2}, ["", "core_attn"]),
    ("dense, two ranks", 2, TWO, ["", "core_attn+layernorm"]),
    ("latent", 1, LATENT, ["", "mla_up_proj", "core_attn", "mla_up_proj+core_attn+layernorm"]),
    ("latent, compressed", 1, {**LATENT, "q_lora_rank": 24}, ["", "mla_up_proj", "layernorm"]),
    ("latent, compressed, norms", 1, {**LATENT, "q_lora_rank": 24, "qk_layernorm": True}, ["", "mla_up_proj"]),
    ("latent, two ranks", 2, {**LATENT, **TWO, "q_lora_rank": 24}, ["", "mla_up_proj"]),
    ("latent, two ranks, norms", 2, {**LATENT, **TWO, "q_lora_rank": 24, "qk_layernorm": True}, ["", "mla_up_proj"]),
    ("experts", 1, EXPERTS, ["", "moe", "layernorm", "core_attn+moe"]),
    ("experts, gathered", 1, {**EXPERTS, "moe_token_dispatcher_type": "allgather"}, ["", "moe"]),
    ("experts, losses", 1, {**EXPERTS, "moe_z_loss_coeff": 1e-3, "moe_aux_loss_coeff": 1e-2}, ["", "moe"]),
    ("experts, softmax first", 1, {**EXPERTS, "moe_router_pre_softmax": True}, [""]),
    ("experts, sigmoid", 1, {**EXPERTS, "moe_router_score_function": "sigmoid", "moe_aux_loss_coeff": 1e-2}, [""]),
    ("experts, sigmoid, bias, groups", 1,
     {**EXPERTS, "moe_router_score_function": "sigmoid", "moe_router_enable_expert_bias": True,
      "moe_router_num_groups": 2, "moe_router_group_topk": 1}, [""]),
    ("experts, groups", 1, {**EXPERTS, "moe_router_pre_softmax": True, "moe_router_num_groups": 2,
                            "moe_router_group_topk": 1}, [""]),
    ("experts, padded", 1, {**EXPERTS, "moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True},
     ["", "moe"]),
    ("experts, shared", 1, {**EXPERTS, "moe_shared_expert_intermediate_size": 80}, ["", "shared_experts", "moe"]),
    ("experts, shared, gate", 1, {**EXPERTS, "moe_shared_expert_intermediate_size": 80,
                                  "moe_shared_expert_gate": True}, ["", "shared_experts"]),
    ("experts, overlapped", 1, {**EXPERTS, "moe_shared_expert_intermediate_size": 80,
                                "moe_shared_expert_overlap": True, "bias_activation_fusion": True}, [""]),
    ("experts, two ranks", 2, EVEN, ["", "moe"]),
    ("experts, two ranks, sequence", 2, {**EVEN, **TWO, "moe_shared_expert_intermediate_size": 80},
     ["", "shared_experts"]),
    ("experts, gathered, two ranks", 2, {**EVEN, "moe_token_dispatcher_type": "allgather"}, [""]),
    ("latent and experts", 1, {**LATENT, **EXPERTS}, ["", "mla_up_proj+moe+layernorm"]),
]


# --- what Megatron keeps

class Holder:
    """Lives as long as autograd keeps it."""

    def __init__(self, tensor):
        self.tensor = tensor


def kept_by(model, tokens):
    held = []

    def pack(tensor):
        holder = Holder(tensor)
        held.append(weakref.ref(holder))
        return holder

    mask = torch.triu(torch.ones(1, 1, S, S), 1).bool()
    positions = torch.arange(S).expand(B, S).clone()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        loss = model(tokens, positions, mask, labels=tokens)
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    storages = [holder().tensor.untyped_storage() for holder in held if holder() is not None]
    kept = {storage.data_ptr(): storage.nbytes() for storage in storages if storage.nbytes()}
    loss.float().mean().backward()
    return sum(n for at, n in kept.items() if at not in weights)


def bytes_of(settings, labels, layers):
    kind = MLATransformerConfig if settings.get("multi_latent_attention") else TransformerConfig
    named = {**COMMON, "q_lora_rank": None, **settings} if kind is MLATransformerConfig else {**COMMON, **settings}
    if labels:
        named.update(recompute_granularity="selective", recompute_modules=labels.split("+"))
    config = kind(num_layers=layers, activation_func=torch.nn.functional.silu, use_cpu_initialization=True,
                  masked_softmax_fusion=False, bias_dropout_fusion=False, gradient_accumulation_fusion=False, **named)
    spec = get_gpt_layer_local_spec(num_experts=config.num_moe_experts, qk_layernorm=config.qk_layernorm,
                                    multi_latent_attention=config.multi_latent_attention, normalization="RMSNorm")
    torch.manual_seed(7)
    tensor_parallel.model_parallel_cuda_manual_seed(123)
    model = GPTModel(config=config, transformer_layer_spec=spec, vocab_size=VOCABULARY, max_sequence_length=S,
                     position_embedding_type="rope", share_embeddings_and_output_weights=False)
    for weight in model.parameters():
        weight.main_grad = torch.zeros_like(weight)
    return kept_by(model, torch.randint(0, VOCABULARY, (B, S)))


def layer_of(settings, labels):
    return bytes_of(settings, labels, 3) - bytes_of(settings, labels, 2)


# --- what the graph keeps

def ours(program, settings, labels):
    words = {**COMMON, **settings, "num_layers": 3, "seq_length": S, "vocab_size": VOCABULARY,
             "position_embedding_type": "rope", "share_embeddings_and_output_weights": False, "activation_func": "silu"}
    lines = [f"model.{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in words.items()]
    printed = subprocess.run([program, "megatron-local", f"selective/{labels or '[]'}", *lines,
                              f"train.micro_batch_size={B}"], capture_output=True, text=True, check=False)
    if printed.returncode != 0:
        return printed.stderr.strip()
    return int(re.search(r"^a layer\n(?:.*\n)*?\s*(\d+) bytes$", printed.stdout, re.M)[1])


def expected_beside(settings, labels):
    """What a checkpoint of attention keeps besides: a scalar of 4 bytes; of up projections the rotary table."""
    beside = 4 if "core_attn" in labels else 0
    if "mla_up_proj" in labels:
        beside += 4 * S * settings["qk_pos_emb_head_dim"]
    return beside


# --- runs of one rank and of two

def open_ranks(rank, ranks, meeting):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks, init_method=f"file://{meeting}")


def open_case(settings):
    parallel_state.destroy_model_parallel()
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=settings.get("tensor_model_parallel_size", 1),
        expert_model_parallel_size=settings.get("expert_model_parallel_size", 1),
        expert_tensor_parallel_size=settings.get("expert_tensor_parallel_size"))


def run_rank(rank, ranks, meeting, program, failures):
    open_ranks(rank, ranks, meeting)
    for name, n, settings, sets in CASES:
        if n != ranks:
            continue
        open_case(settings)
        for labels in sets:
            right = layer_of(settings, labels)
            found = ours(program, settings, labels)
            is_same = isinstance(found, int) and found + expected_beside(settings, labels) == right
            if rank == 0:
                print(f"{name} [{labels}]: {right} kept, graph {found}{'' if is_same else '  DIFFERENT'}", flush=True)
            if not is_same:
                failures.put(f"rank {rank}: {name} [{labels}]")


def main():
    program = os.path.abspath(sys.argv[1])
    context = torch.multiprocessing.get_context("spawn")
    failures = context.Queue()
    for ranks in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(run_rank, nprocs=ranks,
                                        args=(ranks, os.path.join(folder, "meeting"), program, failures))
    failed = []
    while not failures.empty():
        failed.append(failures.get())
    print(f"{sum(len(sets) for _, _, _, sets in CASES)} layers compared, {len(failed)} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
