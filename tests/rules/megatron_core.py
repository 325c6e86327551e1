"""Asks the config class of the Megatron Core that is installed about one line of a corpus, and answers
in the corpus's own terms: verdict, exception, warnings, effective values. Importing this fails where
torch or megatron-core is missing."""
import copy
import dataclasses
import enum
import logging
import os
import re
import warnings

os.environ.setdefault("RANK", "0")  # or Megatron warns that it had to guess
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "8.0")  # 0.15 asks for the device when it is imported

import torch
from packaging.version import Version

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import megatron.core
    from megatron.core import utils
    from megatron.core.transformer import transformer_config

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
CLASSES = {"TransformerConfig": transformer_config.TransformerConfig,
           "MLATransformerConfig": getattr(transformer_config, "MLATransformerConfig",
                                           transformer_config.TransformerConfig)}
FIELDS = {kind: {f.name: f for f in dataclasses.fields(one)} for kind, one in CLASSES.items()}

# Our name of a warning, and words that no other warning's text holds.
WARNINGS = [
    ("warn-ep-tp-without-sequence-parallel", "expert parallelism and tensor parallelism"),
    ("warn-gated-delta-net-alias", "gated_delta_net"),
    ("warn-fp32-residual-overrides-pipeline-dtype", "overriding pipeline_dtype"),
    ("warn-moe-ffn-size-defaulted", "using ffn_hidden_size instead"),
    ("warn-moe-ffn-size-ignored", "moe_ffn_hidden_size will be ignored"),
    ("warn-core-attn-recompute-may-be-needless", "core_attn recompute is really needed"),
    ("warn-moe-layer-recompute-deprecated", "moe-layer-recompute is deprecated"),
    ("warn-mhc-without-mhc-recompute", "HyperConnections are enabled"),
    ("warn-mla-rope-fusion-training-only", "apply_rope_fusion for multi-latent"),
    ("warn-router-padding-fp8-deprecated", "moe-router-padding-for-fp8"),
    ("warn-enable-cuda-graph-deprecated", "enable_cuda_graph is deprecated"),
    ("warn-external-cuda-graph-deprecated", "external_cuda_graph is deprecated"),
    ("warn-graph-scope-alias-deprecated", "cuda_graph_scope is deprecated"),
    ("warn-graph-modules-full-deprecated", "full scope is deprecated"),
    ("warn-graph-legacy-scope-no-effect", "deprecated and has no effect"),
    ("warn-graph-legacy-scope-migrated", "cuda_graph_modules '.*' is deprecated. Use"),
    ("warn-attn-graph-keeps-norm-0-15", "Will only recompute the pre_mlp_layernorm"),
    ("warn-ep-overlap-ncclep-waits", "moe_ncclep_static_shape=False"),
    ("warn-many-experts-without-router-dtype", "large number of experts"),
]
RECOMPUTE = ["recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"]
# Follow from other fields, or turn into an object that has no written form.
UNCOMPARED = {"expert_tensor_parallel_size", "moe_ffn_hidden_size", "pipeline_model_parallel_layout",
              *RECOMPUTE}
if "cuda_graph_modules" in FIELDS["TransformerConfig"]:
    UNCOMPARED.add("cuda_graph_scope")  # only the old name

try:
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
    layouts = PipelineParallelLayerLayout.from_str
except ImportError:
    layouts = None  # before 0.13

# Fused kernels exist wherever anybody trains; here they need only be something.
try:
    from megatron.core.models.common.embeddings import rope_utils
except ImportError:
    rope_utils = object()  # 0.9 does not ask for them
for name in ("fused_apply_rotary_pos_emb", "fused_apply_rotary_pos_emb_thd"):
    if getattr(rope_utils, name, name) is None:
        setattr(rope_utils, name, object())


def release():
    name = os.environ.get("MEGATRON_RELEASE", getattr(megatron.core, "__version__", "main"))
    return ".".join(name.split(".")[:2])


class Ear(logging.Handler):
    """Hears what Python warns of and what Megatron logs, in one order."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.heard = []

    def hear(self, text):
        known = [name for name, words in WARNINGS if re.search(words, text)]
        self.heard.append(known[0] if known else "? " + text)

    def emit(self, record):
        self.hear(record.getMessage())


def plain(value):
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return [plain(item) for item in value] if isinstance(value, list) else value


def is_changed(name, given, now):
    """"full", the default, and None mean an empty list; an unset inference scope means none."""
    if name in ("cuda_graph_modules", "cuda_graph_scope") and isinstance(now, list) and given in (None, "full"):
        return now != []
    if name == "inference_cuda_graph_scope" and given is None:
        return now != "none"
    return now != given


def others(line, made, names):
    """The settings that the class changed, from what was given or from its default."""
    fields, changed = FIELDS[line["kind"]], {}
    for name in names:
        if name not in fields or name in UNCOMPARED:
            continue
        default = fields[name].default
        if default is dataclasses.MISSING:
            default = fields[name].default_factory()
        given = plain(line["config"].get(name, plain(default)))
        now = plain(getattr(made, name))
        if is_changed(name, given, now):
            changed[name] = now
    return changed


def ask(line, names):
    """What the class says to a line; `names` are the settings whose values are compared."""
    utils._te_version = Version(line["te_version"])
    given = copy.deepcopy(line["config"])
    if isinstance(given.get("pipeline_dtype"), str):
        given["pipeline_dtype"] = DTYPES.get(given["pipeline_dtype"], given["pipeline_dtype"])
    if layouts:
        layouts.cache_clear()  # 2.0 stages are no stages, though 2 have been asked for before
    ear, made, answer = Ear(), None, {"verdict": "accept", "exception": None, "message": ""}
    logging.getLogger().addHandler(ear)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: ear.hear(str(message))
        try:
            made = CLASSES[line["kind"]](**given)
        except Exception as error:  # whatever it is, it is the verdict
            answer.update(verdict="reject", exception=type(error).__name__, message=str(error))
    logging.getLogger().removeHandler(ear)
    answer["warnings"] = ear.heard
    answer["effective"] = made and {name: plain(getattr(made, name, None)) for name in RECOMPUTE}
    answer["effective_other"] = made and others(line, made, names)
    return answer
