"""What Megatron Core asks for and a processor does not have: imported before anything of Megatron.

Kernels that keep as little as those of a GPU stand for norms and rotary embedding: of a norm its input and one number
a row, of a rotation nothing. What they compute is of no account here, only what they keep.
"""
import contextlib

import torch

PROCESSOR = torch.device("cpu")


class Stream:
    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return lambda *_, **__: self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def stand_for_cuda():
    cuda = torch.cuda
    for name in ("synchronize", "set_device", "manual_seed_all"):
        setattr(cuda, name, lambda *_, **__: None)
    for name in ("current_stream", "default_stream", "Stream", "Event"):
        setattr(cuda, name, Stream)
    cuda.current_device = lambda: PROCESSOR
    cuda.stream = lambda _: contextlib.nullcontext()
    cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()
    cuda.set_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    cuda.manual_seed = torch.default_generator.manual_seed
    cuda.is_current_stream_capturing = lambda: False
    cuda.nvtx.range_push = cuda.nvtx.range_pop = lambda *_: None
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_, **__: self
    for name in ("zeros", "ones", "empty", "full", "tensor", "arange", "rand", "randn", "zeros_like", "empty_like"):
        setattr(torch, name, on_processor(getattr(torch, name)))


def on_processor(function):
    def call(*arguments, **named):
        if str(named.get("device", "")).startswith("cuda"):
            named["device"] = PROCESSOR
        return function(*arguments, **named)
    return call


class RowNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        x = x.contiguous()
        ctx.save_for_backward(x, weight, x.float().pow(2).mean(-1))
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, _ = ctx.saved_tensors
        return grad * weight, (grad * x).flatten(0, -2).sum(0)


class Norm(torch.nn.Module):
    """RMSNorm of the one kernel, with sequence parallelism too."""

    def __init__(self, config, hidden_size, eps=1e-5, **_):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        return RowNorm.apply(x, self.weight)


class Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx, grad):
        return grad


def lists(all_to_all):
    """gloo takes split sizes as lists alone."""
    def split(sizes):
        return None if sizes is None else [int(size) for size in sizes]

    def call(output, given, output_split_sizes=None, input_split_sizes=None, group=None, **named):
        return all_to_all(output, given, split(output_split_sizes), split(input_split_sizes), group=group, **named)
    return call


def stand_for_kernels():
    from megatron.core.models import backends
    from megatron.core.models.gpt import gpt_layer_specs
    from megatron.core.tensor_parallel import random
    from megatron.core.transformer import (attention, dot_product_attention, multi_latent_attention, torch_norm,
                                           transformer_block)
    from megatron.core.transformer.moe import moe_utils
    for module in (torch_norm, backends, gpt_layer_specs):
        if hasattr(module, "WrappedTorchNorm"):
            module.WrappedTorchNorm = Norm
    transformer_block.LayerNormImpl = gpt_layer_specs.LNImpl = Norm
    for module in (attention, multi_latent_attention):
        module.apply_rotary_pos_emb = lambda x, *_, **__: Rotation.apply(x)
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None
    random._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    random._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    for name in ("activation_recompute_forward", "fp8_autocast", "autocast"):
        if not hasattr(random, name):
            setattr(random, name, lambda *_, **__: contextlib.nullcontext())
    if not hasattr(random, "FP8GlobalStateManager"):
        random.FP8GlobalStateManager = type("No8Bit", (), {"is_fp8_enabled": staticmethod(lambda: False),
                                                           "get_fp8_recipe": staticmethod(lambda: None)})
    torch.distributed.all_to_all_single = lists(torch.distributed.all_to_all_single)
    take_widths_of_heads(dot_product_attention.DotProductAttention)


def take_widths_of_heads(core):
    """The module of one width a head is handed two; its output is as wide as a value."""
    plain = core.__init__

    def make(self, config, layer_number, attn_mask_type, attention_type, k_channels=None, v_channels=None, **named):
        plain(self, config, layer_number, attn_mask_type, attention_type, **named)
        if v_channels:
            self.hidden_size_per_partition = v_channels * self.num_attention_heads_per_partition
    if "k_channels" not in plain.__code__.co_varnames:
        core.__init__ = make
