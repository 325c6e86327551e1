"""Our layouts against those of the Megatron Core that is installed, on random configurations.

    python3 differential.py path/to/recompute [N] [FIRST_SEED]

Each seed draws one configuration of each kind: splits by settings, written layouts, hybrid patterns. For every chunk the
number of layers, the first of them, their kinds and the layers of token prediction must be Megatron's, and so must the
micro-batches; what Megatron refuses we refuse. Ranks are numbered as its RankGenerator numbers them. Exit 77 (skipped) where megatron-core or torch is missing."""
import json
import os
import random
import subprocess
import sys
import unittest.mock

os.environ.setdefault("RANK", "0")  # or Megatron warns that it had to guess
try:
    import torch
    from megatron.core import num_microbatches_calculator, parallel_state
    from megatron.core.models.gpt import experimental_attention_variant_module_specs as variants
    from megatron.core.models.hybrid import hybrid_layer_allocation as hybrid
    from megatron.core.transformer import transformer_block, transformer_layer
    from megatron.core.transformer.enums import LayerType
    from megatron.core.transformer.transformer_config import TransformerConfig
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(77)

LETTERS = {"M": "mamba", "G": "gated_delta_net", "*": "attention", "D": "dsa", "+": "mla", "-": "mlp", "E": "moe"}


class Refused(Exception):
    """Megatron stops."""


def refusing(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except (AssertionError, ValueError, RuntimeError, ZeroDivisionError, NotImplementedError) as refusal:
        raise Refused(str(refusal)) from refusal


# --- what Megatron does

def make_config(settings):
    known = {name: value for name, value in settings.items() if name not in ("pattern", "batch")}
    config = refusing(TransformerConfig, hidden_size=64, num_attention_heads=4, pipeline_dtype=torch.bfloat16, **known)
    if config.virtual_pipeline_model_parallel_size and config.pipeline_model_parallel_size == 1:
        raise Refused("parallel_state.initialize_model_parallel")
    first, last = config.num_layers_in_first_pipeline_stage, config.num_layers_in_last_pipeline_stage
    if (first or 0) + (last or 0) > config.num_layers or (first and last and config.pipeline_model_parallel_size == 1):
        raise Refused("Megatron does not look at ends of more layers than there are, and builds some twice or never")
    return config


def chunks_of_layout(layout, config):
    size = config.virtual_pipeline_model_parallel_size
    with unittest.mock.patch.object(parallel_state, "get_virtual_pipeline_model_parallel_world_size",
                                    return_value=size):
        return [(layout.get_num_layers_to_build(vp_stage=vp, pp_rank=pp),
                 layout.get_layer_offset(vp_stage=vp, pp_rank=pp),
                 layout.get_num_layers_to_build(LayerType.mtp, vp_stage=vp, pp_rank=pp))
                for pp in range(config.pipeline_model_parallel_size) for vp in range(size or 1)]


def chunks_of_settings(config):
    pp_size, size = config.pipeline_model_parallel_size, config.virtual_pipeline_model_parallel_size
    chunks = []
    for pp in range(pp_size):
        for vp in range(size or 1):
            stage = vp if size else None
            is_last = pp == pp_size - 1 and vp == (size or 1) - 1
            chunks.append((refusing(transformer_block.get_num_layers_to_build, config, vp_stage=stage, pp_rank=pp),
                           refusing(transformer_layer.get_transformer_layer_offset, config, vp_stage=stage, pp_rank=pp),
                           (config.mtp_num_layers or 0) if is_last else 0))
    return chunks


def kinds_of(config):
    moe = refusing(variants.get_moe_layer_pattern, config) if config.num_moe_experts else [0] * config.num_layers
    other = [0] * config.num_layers
    if config.experimental_attention_variant:
        other = refusing(variants.get_linear_attention_pattern, config)
    plain = "mla" if config.multi_latent_attention else "attention"
    return [("gated_delta_net" if other[i] else plain) + ("+moe" if moe[i] else "+mlp")
            for i in range(config.num_layers)]


def segment(pattern, settings, pp, vp):
    """select_pipeline_segment asks process groups where it stands."""
    quiet = unittest.mock.patch.multiple(hybrid, log_on_each_pipeline_stage=lambda *_, **__: None,
                                         log_single_rank=lambda *_, **__: None)
    with quiet, unittest.mock.patch.object(torch.distributed, "get_rank", return_value=pp), \
            unittest.mock.patch.object(torch.distributed, "get_world_size",
                                       return_value=settings["pipeline_model_parallel_size"]):
        return refusing(hybrid.select_pipeline_segment, pattern, object(), vp,
                        first_stage_layers=settings.get("num_layers_in_first_pipeline_stage"),
                        last_stage_layers=settings.get("num_layers_in_last_pipeline_stage"))


def hybrid_answer(settings):
    parsed = refusing(hybrid.parse_hybrid_pattern, settings["pattern"])
    main, pp_size = parsed.main_pattern or "", settings["pipeline_model_parallel_size"]
    n_segments = main.count("|") + 1
    if not main or (n_segments > 1 and pp_size == 1):
        raise Refused("no layer, or chunks on one stage")
    make_config({**settings, "num_layers": len(main.replace("|", ""))})
    size = n_segments // pp_size if n_segments > pp_size else None
    chunks, kinds = [], {}
    for pp in range(pp_size):
        for vp in range(size or 1):
            letters, offset = segment(main, settings, pp, vp if size else None)
            is_last = pp == pp_size - 1 and vp == (size or 1) - 1
            chunks.append((len(letters), offset, parsed.mtp_num_depths * len(parsed.mtp_pattern or "") if is_last else 0))
            kinds.update({offset + i: LETTERS[letter] for i, letter in enumerate(letters)})
    return chunks, [kinds[i] for i in range(len(kinds))]


def with_kinds(chunks, kinds):
    return [(n, first, n_mtp, sorted(kinds[first:first + n])) for n, first, n_mtp in chunks]


def megatron(settings):
    if "pattern" in settings:
        return with_kinds(*hybrid_answer(settings)), None
    config = make_config(settings)
    layout = config.pipeline_model_parallel_layout
    chunks = chunks_of_layout(layout, config) if layout else chunks_of_settings(config)
    n_micro = None
    if "batch" in settings:
        calculator = refusing(num_microbatches_calculator.ConstantNumMicroBatchesCalculator, *settings["batch"], False, 1)
        n_micro = calculator.get()
    return with_kinds(chunks, kinds_of(config)), n_micro


# --- what we do

def words(settings):
    for name, value in settings.items():
        if name == "pattern":
            yield f"model.hybrid_layer_pattern={value}"
            if "/" in value and value.split("/")[1]:
                yield f"model.mtp_num_layers={value.count('/')}"
            if "E" in value:
                yield "model.num_moe_experts=4"
        elif name == "batch":
            yield from (f"train.global_batch_size={value[0]}", f"train.micro_batch_size={value[1]}",
                        f"data_parallel_size={value[2]}")
        elif isinstance(value, str):
            yield f'model.{name}="{value}"'
        else:
            yield f"model.{name}={json.dumps(value, separators=(',', ':'))}"


def spread(text):
    """["mla+mlp", "mla+moe", "mla+moe"] of "1 mla+mlp, 2 mla+moe"."""
    parts = [part.split() for part in text.split(",")] if text else []
    return [name for count, name in parts for _ in range(int(count))]


def ours(program, settings):
    done = subprocess.run([program, "layout", *words(settings), "--json"], capture_output=True, text=True)
    if done.returncode == 2:
        raise Refused(done.stderr)
    if done.returncode != 0:
        raise SystemExit(f"{settings}: {done.returncode} {done.stderr}")
    answer = json.loads(done.stdout)
    return [(row["n_layers"], row["first_layer"], len(spread(row["token_prediction"])), sorted(spread(row["kinds"])))
            for row in answer["chunks"]], answer["layout"]["n_micro_batches"]


# --- drawing

def some(draw, settings, name, chance, make):
    if draw.random() < chance:
        settings[name] = make()


def draw_split(draw):
    settings = {"num_layers": draw.choice([12, 24, draw.randint(1, 24)]),
                "pipeline_model_parallel_size": draw.choice([1, 2, 3, 4])}
    some(draw, settings, "virtual_pipeline_model_parallel_size", 0.3, lambda: draw.choice([1, 2, 3]))
    uneven = draw.random()
    if uneven < 0.3:
        some(draw, settings, "num_layers_in_first_pipeline_stage", 0.7, lambda: draw.randint(0, 6))
        some(draw, settings, "num_layers_in_last_pipeline_stage", 0.7, lambda: draw.randint(1, 6))
    elif uneven < 0.6:
        some(draw, settings, "account_for_embedding_in_pipeline_split", 0.7, lambda: True)
        some(draw, settings, "account_for_loss_in_pipeline_split", 0.7, lambda: True)
    some(draw, settings, "mtp_num_layers", 0.3, lambda: draw.randint(1, 2))
    n = settings["num_layers"]
    if draw.random() < 0.5:
        settings["num_moe_experts"] = 4
        some(draw, settings, "moe_layer_freq", 0.7, lambda: draw.choice(
            [draw.randint(1, 4), [draw.randint(0, 1) for _ in range(n + (draw.random() < 0.1))]]))
    if draw.random() < 0.3:
        settings["experimental_attention_variant"] = "gated_delta_net"
        settings["linear_attention_freq"] = draw.choice([draw.randint(1, 4), [draw.randint(0, 1) for _ in range(n)]])
        settings |= {"linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
                     "linear_num_key_heads": 4, "linear_num_value_heads": 4}
    some(draw, settings, "batch", 0.3, lambda: (draw.randint(1, 24), draw.randint(1, 3), draw.randint(1, 3)))
    if "virtual_pipeline_model_parallel_size" in settings:
        settings.pop("batch", None)  # how groups of micro-batches must fit, the schedule says and no config
    return settings


def draw_layout(draw):
    pp, vp = draw.choice([1, 2, 3]), draw.choice([1, 1, 2])
    stages = ["t" * draw.randint(0, 3) for _ in range(pp * vp)]
    n_mtp = draw.choice([0, 0, 1, 2])
    at = draw.choice([len(stages) - 1, max(0, len(stages) - pp), draw.randrange(len(stages))])
    stages[at] += "m" * n_mtp
    stages[0], stages[-1] = "E" + stages[0], stages[-1] + "L"
    text = "|".join(stages).replace("ttt", draw.choice(["ttt", "t*3", "(t)*3", "t,tt"]))
    settings = {"num_layers": sum(stage.count("t") for stage in stages) + (draw.random() < 0.1),
                "pipeline_model_parallel_size": pp if draw.random() < 0.9 else pp + 1,
                "pipeline_model_parallel_layout": text}
    if n_mtp:
        settings["mtp_num_layers"] = n_mtp
    some(draw, settings, "virtual_pipeline_model_parallel_size", 0.2, lambda: vp)
    return settings


def draw_hybrid(draw):
    letters = draw.choice(["M-*", "MG*-E", "M+-", "MD-E", "M*+-"])
    pp, vp = draw.choice([1, 2, 3]), draw.choice([1, 1, 2])
    parts = ["".join(draw.choice(letters) for _ in range(draw.randint(0, 4))) for _ in range(pp * vp)]
    text = draw.choice(["|", "|", ""]).join(parts)
    if draw.random() < 0.3:
        depth = "".join(draw.choice(letters) for _ in range(draw.randint(1, 2)))
        text += "/".join(["", *[depth] * draw.randint(1, 2)])
    settings = {"pattern": text, "pipeline_model_parallel_size": pp}
    some(draw, settings, "num_layers_in_first_pipeline_stage", 0.15, lambda: draw.randint(1, 4))
    some(draw, settings, "num_layers_in_last_pipeline_stage", 0.15, lambda: draw.randint(1, 4))
    return settings


def first_ranks(program, draw):
    """The first rank of every stage, by RankGenerator and by us."""
    size = {name: draw.choice([1, 2, 3]) for name in ("tp", "cp", "dp", "pp")}
    is_stage_first = draw.random() < 0.5
    order = "tp-cp-ep-pp-dp" if is_stage_first else "tp-cp-ep-dp-pp"
    theirs = parallel_state.RankGenerator(ep=1, order=order, **size).get_ranks("pp")[0]
    done = subprocess.run(
        [program, "layout", "model.num_layers=6", f"model.tensor_model_parallel_size={size['tp']}",
         f"model.context_parallel_size={size['cp']}", f"model.pipeline_model_parallel_size={size['pp']}",
         f"data_parallel_size={size['dp']}", f"dist.use_tp_pp_dp_mapping={str(is_stage_first).lower()}", "--json"],
        capture_output=True, text=True, check=True)
    return theirs, [row["first_rank"] for row in json.loads(done.stdout)["chunks"]]


def answer(ask, *arguments):
    try:
        return ask(*arguments)
    except Refused as refusal:
        return f"refused: {refusal}"


def is_same(theirs, our):
    if isinstance(theirs, str) or isinstance(our, str):
        return isinstance(theirs, str) and isinstance(our, str)
    return theirs[0] == our[0] and (theirs[1] is None or theirs[1] == our[1])


def main():
    given = dict(enumerate(sys.argv))
    n, first = int(given.get(2, 400)), int(given.get(3, 1))
    n_wrong = n_refused = n_all = 0
    for seed in range(first, first + n):
        theirs, our = first_ranks(sys.argv[1], random.Random(f"ranks {seed}"))
        if theirs != our:
            n_wrong += 1
            print(f"seed {seed}: first ranks by stage: Megatron Core {theirs}, ours {our}")
        for make in (draw_split, draw_layout, draw_hybrid):
            settings = make(random.Random(f"{make.__name__} {seed}"))
            theirs, our = answer(megatron, settings), answer(ours, sys.argv[1], settings)
            n_all += 1
            n_refused += isinstance(theirs, str)
            if not is_same(theirs, our):
                n_wrong += 1
                if n_wrong <= 10:
                    print(f"seed {seed}: {settings}\n  Megatron Core {theirs}\n  ours {our}")
    print(f"{n_all} configurations, {n_refused} refused by both, {n_wrong} disagreements")
    return n_wrong > 0 or not n_all // 10 < n_refused < n_all * 2 // 3


sys.exit(main())
