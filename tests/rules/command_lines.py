"""Random argument lines of Megatron-LM's trainer, for the test against its own parser and checks."""
import random

BASE = {"--num-layers": 8, "--hidden-size": 512, "--num-attention-heads": 8, "--seq-length": 1024,
        "--max-position-embeddings": 1024, "--micro-batch-size": 1, "--lr": "1e-4", "--train-iters": 10,
        "--tokenizer-type": "NullTokenizer", "--vocab-size": 1000}
LABELS = ["core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"]
OFFLOADS = ["core_attn", "attn_proj", "expert_fc1", "moe_act", "attn_norm", "mlp_norm", "qkv_linear"]
CAPTURES = ["attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba", "full_iteration"]
LAYOUTS = ["Etttt|ttttL", "Ett|tt|tt|ttL", "Et*4|t*4L", "Ettt|ttttL", "Etttt|tttt|L", "Etttt|ttttmL"]
SIZES = ["--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size"]


def some(rng, names, most=2):
    return rng.sample(names, rng.randint(1, most))


def switch(rng, flags, names, share=0.5):
    for name in names:
        if rng.random() < share:
            flags[name] = []


def recompute(rng, flags):
    granularity = rng.choice(["full", "selective", None, None])
    if granularity:
        flags["--recompute-granularity"] = granularity
    if rng.random() < 0.45:
        flags["--recompute-method"] = rng.choice(["uniform", "block"])
    if rng.random() < 0.45:
        flags["--recompute-num-layers"] = rng.choice([0, 1, 2, 99])
    if rng.random() < 0.3:
        flags["--recompute-modules"] = some(rng, LABELS, 3)
    switch(rng, flags, ["--distribute-saved-activations", "--recompute-activations",
                        "--moe-layer-recompute"], 0.12)


def parallel(rng, flags):
    for name in SIZES:
        flags[name] = rng.choice([1, 1, 2, 4, 3])
    switch(rng, flags, ["--sequence-parallel"], 0.4)


def pipeline(rng, flags):
    flags["--pipeline-model-parallel-size"] = rng.choice([1, 2, 2, 4, 3])
    way = rng.choice(["layout", "layers", "stages", "uneven", "ends", "two"])
    if way in ("layout", "two"):
        flags["--pipeline-model-parallel-layout"] = rng.choice(LAYOUTS)
    if way in ("layers", "two"):
        flags["--num-layers-per-virtual-pipeline-stage"] = rng.choice([1, 2, 3, 4, 8])
    if way == "stages":
        flags["--num-virtual-stages-per-pipeline-rank"] = rng.choice([1, 2, 3])
    if way == "uneven":
        flags["--decoder-first-pipeline-num-layers"] = rng.choice([1, 2, 4, 5])
        if rng.random() < 0.5:
            flags["--decoder-last-pipeline-num-layers"] = rng.choice([1, 2, 3])
    if way == "ends" or rng.random() < 0.1:
        switch(rng, flags, ["--account-for-embedding-in-pipeline-split",
                            "--account-for-loss-in-pipeline-split"])
    switch(rng, flags, ["--no-overlap-p2p-communication"], 0.2)
    if rng.random() < 0.2:
        flags["--mtp-num-layers"] = rng.choice([1, 2])
        switch(rng, flags, ["--use-rotary-position-embeddings"], 0.7)


def experts(rng, flags):
    flags["--num-experts"] = rng.choice([8, 8, 4, 1])
    flags["--expert-model-parallel-size"] = rng.choice([1, 2, 4, 3])
    flags["--moe-token-dispatcher-type"] = rng.choice(["allgather", "alltoall", "flex"])
    switch(rng, flags, ["--disable-bias-linear"], 0.8)
    switch(rng, flags, ["--moe-grouped-gemm", "--moe-shared-expert-overlap", "--bf16",
                        "--overlap-moe-expert-parallel-comm"], 0.35)
    switch(rng, flags, ["--delay-wgrad-compute", "--overlap-grad-reduce", "--moe-paged-stash",
                        "--no-gradient-accumulation-fusion"], 0.15)
    if rng.random() < 0.3:
        flags["--moe-shared-expert-intermediate-size"] = rng.choice([256, 512])
    if rng.random() < 0.2:
        flags["--moe-expert-capacity-factor"] = rng.choice([1.0, 2.0])
        switch(rng, flags, ["--moe-pad-expert-input-to-capacity"])


def precision(rng, flags):
    switch(rng, flags, ["--bf16", "--fp16"], 0.4)
    if rng.random() < 0.5:
        flags["--fp8-format"] = rng.choice(["hybrid", "e4m3"])
        flags["--fp8-recipe"] = rng.choice(["delayed", "tensorwise", "mxfp8", "blockwise"])
    if rng.random() < 0.1:
        flags["--fp4-format"] = "e2m1"
    switch(rng, flags, ["--fp32-residual-connection"], 0.1)


def graphs(rng, flags):
    if rng.random() < 0.75:
        flags["--cuda-graph-impl"] = rng.choice(["none", "local", "transformer_engine", "full_iteration"])
    if rng.random() < 0.5:
        flags["--cuda-graph-modules"] = some(rng, CAPTURES)
    if rng.random() < 0.15:
        flags["--cuda-graph-scope"] = some(rng, CAPTURES + ["full"], 1)
    if rng.random() < 0.15:
        flags["--inference-cuda-graph-scope"] = rng.choice(["none", "layer", "block"])
    switch(rng, flags, ["--enable-cuda-graph", "--external-cuda-graph"], 0.1)
    switch(rng, flags, ["--no-check-for-nan-in-loss-and-grad"], 0.6)
    if rng.random() < 0.6:
        flags["--attention-dropout"] = flags["--hidden-dropout"] = "0.0"


def offload(rng, flags):
    if rng.random() < 0.4:
        flags["--cpu-offloading-num-layers"] = rng.choice([0, 1, 8])
    if rng.random() < 0.6:
        flags["--fine-grained-activation-offloading"] = []
        flags["--offload-modules"] = some(rng, OFFLOADS, 3)
    if rng.random() < 0.2:
        flags["--transformer-impl"] = rng.choice(["local", "transformer_engine"])


def attention(rng, flags):
    switch(rng, flags, ["--multi-latent-attention", "--rotary-interleaved", "--no-rope-fusion"], 0.4)
    flags["--position-embedding-type"] = rng.choice(["rope", "learned_absolute", "none"])
    if rng.random() < 0.2:
        flags["--num-attention-heads"] = rng.choice([7, 9, 16])


THEMES = [recompute, recompute, parallel, pipeline, experts, precision, graphs, offload, attention]
TE = ["2.9.0", "2.9.0", "2.9.0", "2.5.0", "2.7.0", "2.10.0", "2.12.0", "0.0.0"]


def make(seed):
    """Flags with their values, the engine's version, and variables of the job's environment."""
    rng = random.Random(seed)
    flags = dict(BASE)
    for theme in rng.sample(THEMES, rng.randint(1, 4)):
        theme(rng, flags)
    if rng.random() < 0.4:
        flags["--untie-embeddings-and-output-weights"] = []
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    env["NVTE_CPU_OFFLOAD_V1"] = rng.choice("110")
    if rng.random() < 0.1:
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return {"id": f"line-{seed}", "te_version": rng.choice(TE), "flags": flags, "env": env}


def words(flags):
    """The flags as the shell hands them over."""
    line = []
    for name, value in flags.items():
        line += [name, *map(str, value if isinstance(value, list) else [value])]
    return line


def ranks(flags):
    """The smallest job that holds all parallel sizes."""
    n = 1
    for name in SIZES:
        n *= flags.get(name, 1)
    return n * flags.get("--expert-model-parallel-size", 1) * flags.get("--tensor-model-parallel-size", 1)
