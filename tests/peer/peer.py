"""The engine against numpy, PyTorch and Hugging Face transformers.

    peer.py data|model|config|curve PEER_DUMP RECOMPUTE

data   the order of samples against numpy.random.RandomState, built another way
model  logits, loss and every gradient of GPT-2, Llama and Qwen3 models in double precision
config the same of models that only their own saved config.json describes: each family that is computed
       and each rotary scaling; and families that are refused
curve  the losses of 200 steps on the same data: AdamW, clipping, warm-up and cosine decay.
       Rounding grows from step to step, so the yardstick is PyTorch's own single precision: we
       may be three times as far from double precision as it is, or 1e-5
"""
import copy
import json
import math
import os
import subprocess
import sys
import tempfile

SKIP = 77
TOLERANCE = 1e-5  # of logits, loss and gradients, relative to the largest of the tensor

try:
    import numpy as np
    import torch
    import yaml
    from safetensors.numpy import load_file
    import transformers
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(SKIP)

part, peer_dump, recompute = sys.argv[1:4]
failures = []


def check(name, is_right, told=""):
    print(f"{'ok  ' if is_right else 'FAIL'} {name} {told}")
    if not is_right:
        failures.append(name)


def write_config(folder, sections):
    path = os.path.join(folder, "config.yaml")
    with open(path, "w") as file:
        yaml.safe_dump(sections, file)
    return path


def dump(what, config, folder):
    subprocess.run([peer_dump, what, config, folder], check=True)
    return load_file(os.path.join(folder, "step.safetensors" if what == "step" else "samples.safetensors"))


# --- data -------------------------------------------------------------------------------------


def shares(split, n):
    """First document (or token) of train, validation, test, and the end."""
    share = np.array([float(x) for x in split.split(",")] + [0.0] * 3)[:3]
    ends = [0.0]
    for x in share / share.sum():
        ends.append(ends[-1] + x)
    return [int(round(x * n)) for x in ends]


def order(documents, s, wanted, seed):
    """Samples [n, s+1]: shuffled documents as one flat array, cut every s tokens."""
    per_epoch = sum(len(d) for d in documents)
    epochs = 1
    while epochs * per_epoch < wanted * s + 1:
        epochs += 1
    before = ((epochs - 1) * per_epoch - 1) // s
    alone = epochs > 1 and wanted - before < int(0.8 * ((per_epoch - 1) // s))
    state = np.random.RandomState(seed)

    def shuffled(ids):
        state.shuffle(ids)
        return ids

    def pass_over(n):
        return shuffled(np.tile(np.arange(len(documents), dtype=np.int32), n))

    row = np.concatenate([pass_over(epochs - 1), pass_over(1)]) if alone else pass_over(epochs)
    flat = np.concatenate([documents[i] for i in row])
    n = (epochs * per_epoch - 1) // s
    cut = np.stack([flat[i * s:i * s + s + 1] for i in range(n)])
    if alone:
        at = np.concatenate([shuffled(np.arange(before)), shuffled(np.arange(before, n))])
    else:
        at = shuffled(np.arange(n))
    return cut[at]


def write_indexed(prefix, documents, dtype, code):
    with open(prefix + ".bin", "wb") as file:
        for document in documents:
            file.write(document.astype(dtype).tobytes())
    lengths = np.array([len(d) for d in documents], dtype="<i4")
    size = np.dtype(dtype).itemsize
    pointers = np.concatenate([[0], np.cumsum(lengths[:-1].astype(np.int64) * size)]).astype("<i8")
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + np.array([1], "<u8").tobytes() + bytes([code]))
        file.write(np.array([len(documents), len(documents) + 1], "<u8").tobytes())
        file.write(lengths.tobytes() + pointers.tobytes())
        file.write(np.arange(len(documents) + 1, dtype="<i8").tobytes())


def tiny_model(s, vocab=None):
    model = dict(num_layers=1, hidden_size=8, num_attention_heads=2, seq_length=s)
    return dict(model, vocab_size=vocab) if vocab else model


def compare_data(name, config, folder, documents, s, wanted, seed):
    got = dump("train", config, folder)
    right = order(documents, s, wanted, seed)
    check(f"data {name}",
          np.array_equal(got["tokens"], right[:, :-1]) and np.array_equal(got["targets"], right[:, 1:]),
          f"{len(right)} samples")


def test_data():
    random = np.random.default_rng(7)
    for n_documents, longest, s, steps, seed, dtype, code in [
            (50, 40, 16, 10, 1234, "<u2", 8), (50, 40, 16, 60, 1234, "<i4", 4),
            (7, 300, 32, 100, 0, "<i8", 5), (1000, 20, 8, 900, 4294967295, "<u2", 8),
            (3, 2, 16, 9, 99, "<u2", 8), (200, 64, 64, 131, 42, "<i4", 4)]:
        with tempfile.TemporaryDirectory() as folder:
            documents = [random.integers(0, 1000, random.integers(0 if n_documents > 10 else 1, longest + 1))
                         for _ in range(n_documents)]
            write_indexed(folder + "/set", documents, dtype, code)
            config = write_config(folder, dict(
                model=tiny_model(s, 1000), rng=dict(seed=seed),
                train=dict(train_iters=steps, micro_batch_size=2, global_batch_size=4,
                           eval_interval=7, eval_iters=2),
                dataset=dict(data_path=[folder + "/set"], split="80,15,5")))
            ends = shares("80,15,5", n_documents)
            compare_data(f"{n_documents} documents, {steps} steps", config, folder,
                         documents[:ends[1]], s, steps * 4, seed)
            if sum(len(d) for d in documents[ends[1]:ends[2]]) > 1:
                got = dump("valid", config, folder)
                right = order(documents[ends[1]:ends[2]], s, (steps // 7 + 1) * 2 * 4, seed)
                check("  its validation split", np.array_equal(got["tokens"], right[:, :-1]))
    with tempfile.TemporaryDirectory() as folder:
        paths, pieces = [], []
        for i, n in enumerate([500, 3, 1200]):
            paths.append(f"{folder}/text{i}")
            text = random.integers(0, 256, n).astype(np.uint8)
            text.tofile(paths[-1])
            whole = np.concatenate([text.astype(np.int64), [256]])
            pieces.append(whole[:shares("9,1,0", n + 1)[1]])
        config = write_config(folder, dict(
            model=tiny_model(24), train=dict(train_iters=37, micro_batch_size=4, eval_iters=0),
            rng=dict(seed=5), dataset=dict(data_path=paths, split="9,1,0")))
        compare_data("three texts", config, folder, pieces, 24, 37 * 4, 5)


# --- models -----------------------------------------------------------------------------------

H, LAYERS, HEADS, S, B, VOCAB = 64, 3, 4, 48, 4, 257  # ours has 127 rows of padding more


def make_gpt2():
    config = transformers.GPT2Config(
        n_embd=H, n_layer=LAYERS, n_head=HEADS, n_positions=S, vocab_size=VOCAB, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, activation_function="gelu_new", attn_implementation="eager")
    settings = dict(normalization="LayerNorm", position_embedding_type="learned_absolute",
                    activation_func="gelu_tanh", add_bias_linear=True,
                    share_embeddings_and_output_weights=True)
    return transformers.GPT2LMHeadModel(config), settings


def llama_settings(**more):
    return dict(dict(normalization="RMSNorm", position_embedding_type="rope", activation_func="silu",
                     gated_linear_unit=True, add_bias_linear=False, num_query_groups=2,
                     ffn_hidden_size=176, share_embeddings_and_output_weights=False), **more)


def make_llama():
    config = transformers.LlamaConfig(
        hidden_size=H, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=2,
        intermediate_size=176, vocab_size=VOCAB, max_position_embeddings=S, rms_norm_eps=1e-5,
        tie_word_embeddings=False, attn_implementation="eager")
    return transformers.LlamaForCausalLM(config), llama_settings()


def make_qwen3():
    config = transformers.Qwen3Config(
        hidden_size=H, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=2,
        head_dim=32, intermediate_size=176, vocab_size=VOCAB, max_position_embeddings=S,
        rms_norm_eps=1e-5, tie_word_embeddings=True, attn_implementation="eager")
    return transformers.Qwen3ForCausalLM(config), llama_settings(
        qk_layernorm=True, kv_channels=32, share_embeddings_and_output_weights=True)


MODELS = dict(gpt2=make_gpt2, llama=make_llama, qwen3=make_qwen3)


def make_model(name, folder):
    """A model with no weight at its usual first value, so that a swapped one shows."""
    torch.manual_seed(3)
    model, settings = MODELS[name]()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.dim() == 1:
                p.add_(0.2 * torch.randn_like(p))
            else:
                p.copy_(0.06 * torch.randn_like(p))
    model.save_pretrained(folder, safe_serialization=True)
    return model.double().eval(), settings


def our_gradients(name, model):
    """{our name: gradient} of what the Hugging Face model accumulated."""
    grad = {key: p.grad for key, p in model.named_parameters()}
    ours = {}

    def join(*keys):
        return torch.cat([grad[key] for key in keys])

    if name == "gpt2":
        base = "transformer."
        ours["embedding.word_embeddings.weight"] = grad[base + "wte.weight"]
        ours["embedding.position_embeddings.weight"] = grad[base + "wpe.weight"]
        for part in "weight", "bias":
            ours["decoder.final_layernorm." + part] = grad[base + "ln_f." + part]
        for i in range(LAYERS):
            for theirs, mine, transposed in [
                    ("ln_1", "input_layernorm", False), ("ln_2", "pre_mlp_layernorm", False),
                    ("attn.c_attn", "self_attention.linear_qkv", True),
                    ("attn.c_proj", "self_attention.linear_proj", True),
                    ("mlp.c_fc", "mlp.linear_fc1", True), ("mlp.c_proj", "mlp.linear_fc2", True)]:
                weight = grad[f"{base}h.{i}.{theirs}.weight"]
                ours[f"decoder.layers.{i}.{mine}.weight"] = weight.T if transposed else weight
                ours[f"decoder.layers.{i}.{mine}.bias"] = grad[f"{base}h.{i}.{theirs}.bias"]
        return ours
    ours["embedding.word_embeddings.weight"] = grad["model.embed_tokens.weight"]
    ours["decoder.final_layernorm.weight"] = grad["model.norm.weight"]
    if "lm_head.weight" in grad:
        ours["output_layer.weight"] = grad["lm_head.weight"]
    for i in range(LAYERS):
        at, to = f"model.layers.{i}.", f"decoder.layers.{i}."
        ours[to + "input_layernorm.weight"] = grad[at + "input_layernorm.weight"]
        ours[to + "pre_mlp_layernorm.weight"] = grad[at + "post_attention_layernorm.weight"]
        ours[to + "self_attention.linear_qkv.weight"] = join(
            *(f"{at}self_attn.{x}_proj.weight" for x in "qkv"))
        ours[to + "self_attention.linear_proj.weight"] = grad[at + "self_attn.o_proj.weight"]
        ours[to + "mlp.linear_fc1.weight"] = join(at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight")
        ours[to + "mlp.linear_fc2.weight"] = grad[at + "mlp.down_proj.weight"]
        if at + "self_attn.q_proj.bias" in grad:
            ours[to + "self_attention.linear_qkv.bias"] = join(
                *(f"{at}self_attn.{x}_proj.bias" for x in "qkv"))
        if at + "self_attn.q_norm.weight" in grad:
            for x in "qk":
                ours[f"{to}self_attention.{x}_layernorm.weight"] = grad[f"{at}self_attn.{x}_norm.weight"]
    return ours


def without_padding(got):
    """Gradients of the words alone; those of the padding must be 0."""
    for key in "embedding.word_embeddings.weight", "output_layer.weight":
        if key in got:
            assert len(got[key]) == 384 and not np.any(got[key][VOCAB:]), key
            got[key] = got[key][:VOCAB]
    return got


def distance(got, right):
    got, right = torch.as_tensor(np.asarray(got, dtype=np.float64)), right.detach().double()
    if tuple(got.shape) != tuple(right.shape):
        return math.inf
    return ((got - right).abs().max() / right.abs().max()).item()


def make_text(n_words):
    """Words of random letters, the frequent ones first, so that there is something to learn."""
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("etaoinshr"), random.integers(1, 8))) for _ in range(300)]
    return " ".join(words[min(int(x), 299)] for x in random.zipf(1.4, n_words))


def config_for(folder, settings, **sections):
    with open(folder + "/text", "w") as file:
        file.write(make_text(6000))
    model = dict(num_layers=LAYERS, hidden_size=H, num_attention_heads=HEADS, seq_length=S,
                 attention_dropout=0.0, hidden_dropout=0.0, layernorm_epsilon=1e-5)
    return write_config(folder, dict(
        dict(model=dict(model, **settings), dataset=dict(data_path=[folder + "/text"], split="1"),
             checkpoint=dict(pretrained_checkpoint=folder), rng=dict(seed=11), engine=dict(threads=1)),
        **sections))


def loss_of(model, tokens, targets):
    logits = model(input_ids=torch.as_tensor(tokens).long()).logits
    flat = logits.reshape(-1, VOCAB)
    return flat, torch.nn.functional.cross_entropy(flat, torch.as_tensor(targets).long().reshape(-1))


def compare_step(label, name, model, config, folder):
    """Logits, loss and every gradient of the first micro-batch."""
    samples = dump("train", config, folder)
    got = without_padding(dump("step", config, folder))
    logits, loss = loss_of(model, samples["tokens"][:B], samples["targets"][:B])
    loss.backward()
    right = our_gradients(name, model)
    off = distance(got["logits"], logits)
    check(f"{label} logits", off <= TOLERANCE, f"{off:.1e}")
    off = max(abs(x - loss.item()) / loss.item() for x in got["loss"])
    check(f"{label} loss", off <= TOLERANCE, f"{off:.1e}")
    names = set(got) - {"logits", "loss"}
    check(f"{label} has the same weights", names == set(right), names ^ set(right) or "")
    off = {key: distance(got[key], right[key]) for key in names & set(right)}
    worst = max(off, key=off.get)
    check(f"{label} {len(off)} gradients", off[worst] <= TOLERANCE, f"{off[worst]:.1e} at most, {worst}")


def test_model():
    for name in MODELS:
        for backend in "fused", "unfused":
            with tempfile.TemporaryDirectory() as folder:
                model, settings = make_model(name, folder)
                config = config_for(folder, dict(settings, attention_backend=backend),
                                    train=dict(train_iters=2, micro_batch_size=B, eval_iters=0))
                compare_step(f"{name} {backend}", name, model, config, folder)
        with tempfile.TemporaryDirectory() as folder:
            model, settings = make_model(name, folder)
            samples = dump("train", config_for(
                folder, settings, train=dict(train_iters=2, micro_batch_size=B, eval_iters=0)), folder)
            words = ["model.seq_length=%d" % S, f"dataset.data_path=[{folder}/text]", "dataset.split=1",
                     "rng.seed=11", "train.train_iters=2", f"train.micro_batch_size={B}",
                     "train.eval_iters=0", "engine.threads=1",
                     f"checkpoint.pretrained_checkpoint={folder}", "--json"]
            told = subprocess.run([recompute, "train", folder + "/config.json", *words], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            right = loss_of(model, samples["tokens"][:B], samples["targets"][:B])[1].item()
            off = abs(json.loads(told)["result"]["first_loss"] - right) / right
            check(f"{name} from its own config.json", off <= TOLERANCE, f"{off:.1e}")


# --- models by their own config.json ------------------------------------------------------------

# Lengths below S, so that every scaling is past the length it was trained on.
ROPES = dict(
    default=dict(rope_type="default", rope_theta=700.0),
    linear=dict(rope_type="linear", factor=2.5, rope_theta=10000.0),
    dynamic=dict(rope_type="dynamic", factor=3.0, rope_theta=10000.0),
    llama3=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=24, rope_theta=500.0),
    yarn=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=24, rope_theta=100.0,
              beta_fast=4.0, beta_slow=0.5),
    yarn_exact=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=24, rope_theta=100.0,
                    beta_fast=4.0, beta_slow=0.5, truncate=False, mscale=0.7, mscale_all_dim=1.3),
    yarn_factor=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=24, rope_theta=100.0,
                     attention_factor=1.5))

FAMILIES = dict(
    llama={}, mistral=dict(sliding_window=None), qwen2=dict(use_sliding_window=False),
    qwen3=dict(head_dim=32, use_sliding_window=False),
    granite=dict(attention_multiplier=0.11, residual_multiplier=1.0, embedding_multiplier=1.0,
                 logits_scaling=1.0))

REFUSED = dict(gemma={}, gemma2={}, olmo2={}, cohere={}, phi3={}, granite={}, gpt_neox={}, stablelm={})


def make_family(name, folder, **more):
    shape = dict(hidden_size=H, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=176,
                 vocab_size=VOCAB, max_position_embeddings=24, pad_token_id=0, bos_token_id=0, eos_token_id=0)
    if name != "gpt_neox":
        shape.update(num_key_value_heads=2)
    config = transformers.AutoConfig.for_model(name, **dict(shape, **more))
    config._attn_implementation = "eager"
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p + 0.2 * torch.randn_like(p) if p.dim() == 1 else 0.1 * torch.randn_like(p))
    model.save_pretrained(folder, safe_serialization=True)
    return model.double().eval()


def config_of(folder):
    """A run that says nothing of the model itself."""
    with open(folder + "/text", "w") as file:
        file.write(make_text(6000))
    return write_config(folder, dict(
        hf_config=json.load(open(folder + "/config.json")), model=dict(seq_length=S, bf16=False),
        train=dict(train_iters=2, micro_batch_size=B, eval_iters=0),
        dataset=dict(data_path=[folder + "/text"], split="1"),
        checkpoint=dict(pretrained_checkpoint=folder), rng=dict(seed=11), engine=dict(threads=1)))


def test_config():
    plain = {}
    for name, more in FAMILIES.items():
        for kind, rope in ROPES.items():
            if name != "llama" and kind not in ("default", "yarn"):
                continue
            with tempfile.TemporaryDirectory() as folder:
                model = make_family(name, folder, rope_parameters=dict(rope), **more)
                compare_step(f"{name} {kind}", name, model, config_of(folder), folder)
                tokens = torch.arange(S).reshape(1, S) % VOCAB
                plain.setdefault(name, model(input_ids=tokens).logits)
                if kind != "default":  # a scaling that changes nothing would prove nothing
                    off = distance(plain[name].detach(), model(input_ids=tokens).logits)
                    check(f"{name} {kind} differs from default", off > 1e-3, f"{off:.1e}")
    for name, more in REFUSED.items():
        with tempfile.TemporaryDirectory() as folder:
            more = dict(more, embedding_multiplier=12.0) if name == "granite" else more
            make_family(name, folder, **more)
            with open(folder + "/text", "w") as file:
                file.write(make_text(600))
            words = [f"model.seq_length={S}", f"dataset.data_path=[{folder}/text]", "train.train_iters=1",
                     "train.micro_batch_size=1", "model.bf16=false"]
            told = subprocess.run([recompute, "train", folder + "/config.json", *words],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            check(f"{name} is refused", told.returncode == 4, told.stderr.split("\n")[0][-120:])


# --- 200 steps --------------------------------------------------------------------------------

STEPS, GLOBAL, WARMUP, TOP, LEAST = 200, 8, 20, 2e-3, 1e-4


def rate(samples):
    """Warm-up and cosine decay, counted in samples as Megatron does."""
    warmup, decay = WARMUP * GLOBAL, STEPS * GLOBAL
    if samples <= warmup:
        return TOP * samples / warmup
    share = 0.5 * (math.cos(math.pi * (samples - warmup) / (decay - warmup)) + 1.0)
    return LEAST + share * (TOP - LEAST)


def train_in_torch(model, samples):
    """Loss, norm of the gradients and rate of every step."""
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=0.1),
              dict(params=[p for p in model.parameters() if p.dim() == 1], weight_decay=0.0)]
    adam = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), eps=1e-8)
    rows = []
    for step in range(STEPS):
        for group in adam.param_groups:
            group["lr"] = rate(step * GLOBAL)
        adam.zero_grad()
        total = 0.0
        for micro in range(GLOBAL // B):
            at = slice(step * GLOBAL + micro * B, step * GLOBAL + (micro + 1) * B)
            _, loss = loss_of(model, samples["tokens"][at], samples["targets"][at])
            (loss / (GLOBAL // B)).backward()
            total += loss.item() / (GLOBAL // B)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
        adam.step()
        rows.append((total, norm, rate(step * GLOBAL)))
    return rows


def test_curve():
    for name in "gpt2", "llama":
        with tempfile.TemporaryDirectory() as folder:
            model, settings = make_model(name, folder)
            config = config_for(
                folder, dict(settings, recompute_granularity="full", recompute_method="uniform",
                             recompute_num_layers=1),
                train=dict(train_iters=STEPS, micro_batch_size=B, global_batch_size=GLOBAL,
                           eval_iters=0),
                optimizer=dict(lr=TOP, min_lr=LEAST, weight_decay=0.1, adam_beta2=0.95, clip_grad=1.0),
                scheduler=dict(lr_decay_style="cosine", lr_warmup_iters=WARMUP))
            subprocess.run([recompute, "train", config, "--quiet", "--json", "--log", folder + "/log"],
                           check=True, stdout=subprocess.DEVNULL)
            ours = [json.loads(line) for line in open(folder + "/log")]
            ours = [row for row in ours if row["event"] == "step"]
            samples = dump("train", config, folder)
            single = train_in_torch(copy.deepcopy(model).float(), samples)
            right = train_in_torch(model, samples)
            check(f"{name} takes {STEPS} steps", len(ours) == STEPS)
            check(f"{name} learning rates",
                  all(math.isclose(a["learning_rate"], b[2], rel_tol=1e-12, abs_tol=1e-300)
                      for a, b in zip(ours, right)))
            for key, at in ("lm_loss", 0), ("grad_norm", 1):
                off = [abs(a[key] - b[at]) / b[at] for a, b in zip(ours, right)]
                theirs = max(abs(a[at] - b[at]) / b[at] for a, b in zip(single, right))
                check(f"{name} {key} of every step", max(off) <= max(TOLERANCE, 3 * theirs),
                      f"{max(off):.1e}; PyTorch in single precision {theirs:.1e}")
            check(f"{name} learns", right[-1][0] < 0.7 * right[0][0] and
                  ours[-1]["lm_loss"] < 0.7 * ours[0]["lm_loss"],
                  f"{ours[0]['lm_loss']:.3f} to {ours[-1]['lm_loss']:.3f}")


torch.set_num_threads(1)  # a loaded machine makes two wait for each other
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
dict(data=test_data, model=test_model, config=test_config, curve=test_curve)[part]()
if failures:
    sys.exit(f"{len(failures)} failed: {', '.join(failures)}")
