"""Our verdicts on Bridge's settings against those of the Megatron Bridge that is installed: the set-up of
communication overlap, then ConfigContainer.validate, which finalizes the model's config class.

    python3 differential_bridge.py path/to/recompute [N] [FIRST_SEED]

Accepted or refused, and the exception's type, must be equal for every line. What a provider asks when it
builds the model counts as accepted. Exit 77 (skipped) where megatron.bridge or torch is missing;
`BRIDGE_STAND_INS` names a module that is imported first, with stand-ins for packages that are missing."""
import collections
import contextlib
import copy
import dataclasses
import importlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import types

import configs

try:
    if "BRIDGE_STAND_INS" in os.environ:
        importlib.import_module(os.environ["BRIDGE_STAND_INS"])
    import megatron_core
    import torch
    from megatron.core import utils
    container = importlib.import_module("megatron.bridge.training.config")
    overlap = importlib.import_module("megatron.bridge.training.comm_overlap")
    transformer = importlib.import_module("megatron.bridge.models.transformer_config")
    from packaging.version import Version
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(77)

N_RANKS = 1 << 12
BY_PROVIDER = {"bridge-vpp-divides", "bridge-graph-needs-te-rng-tracker"}
OVERLAP = ["overlap_moe_expert_parallel_comm", "delay_wgrad_compute"]
container.validate_flex_dispatcher_backend = lambda *_: None  # asks the device
container.get_world_size_safe = lambda: N_RANKS
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0, name="NVIDIA H100")


@dataclasses.dataclass
class Model(transformer.TransformerConfig):
    """What validate reads of a provider, beside its config class."""
    seq_length: int = 1024
    restore_modelopt_state: bool = False


def make(seed):
    rng = random.Random(seed)
    line = configs.make(seed, drop=0.6)
    known = megatron_core.FIELDS["TransformerConfig"]
    model = {name: value for name, value in line["config"].items()
             if name in known and name not in ("pipeline_dtype", "multi_latent_attention")}
    if rng.random() < 0.3:
        model["gradient_accumulation_fusion"] = rng.random() < 0.5
    if rng.random() < 0.1:
        model["transformer_impl"] = "local"
    comm = {name: model.pop(name) for name in OVERLAP if name in model}
    if comm and rng.random() < 0.3:
        comm["overlap_grad_reduce"] = True
    model.update(use_te_rng_tracker=True, seq_length=rng.choice([1024, 1024, 1026]))
    return {"id": line["id"], "te_version": line["te_version"], "model": model, "comm_overlap": comm,
            "rerun_state_machine": {"check_for_nan_in_loss": rng.random() < 0.3},
            "env_vars": {"NVTE_CPU_OFFLOAD_V1": rng.choice("110")}}


def validate(line):
    model = Model(**copy.deepcopy(line["model"]))
    ddp, optimizer = container.DistributedDataParallelConfig(), container.OptimizerConfig(lr=1e-4)
    whole = container.ConfigContainer(
        train=container.TrainingConfig(micro_batch_size=1, global_batch_size=N_RANKS, train_iters=100),
        model=model, optimizer=optimizer, ddp=ddp, scheduler=container.SchedulerConfig(),
        dataset=types.SimpleNamespace(dataloader_type="single"), logger=container.LoggerConfig(),
        tokenizer=None, checkpoint=container.CheckpointConfig(),
        rerun_state_machine=container.RerunStateMachineConfig(**line["rerun_state_machine"]))
    whole.data_parallel_size = 1
    if line["comm_overlap"]:
        comm = overlap.CommOverlapConfig(tp_comm_overlap=False, **line["comm_overlap"])
        comm.finalize()
        comm.data_parallel_size = 1
        whole.comm_overlap = comm
        comm.setup(model, optimizer, ddp)
    whole.validate()


def ask(line):
    """The exception's name (or None) and its text."""
    utils._te_version = Version(line["te_version"])
    os.environ.update(line["env_vars"])
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            validate(line)
        except Exception as error:  # whatever it is, it is the verdict
            return type(error).__name__, str(error)
    return None, ""


def ours(program, lines, folder):
    """One run for each version of the engine; a YAML file for each line."""
    answers, by_version = {}, collections.defaultdict(dict)
    for line in lines:
        path = os.path.join(folder, line["id"] + ".yaml")
        with open(path, "w") as file:
            for section in ("model", "comm_overlap", "rerun_state_machine", "env_vars"):
                file.write(f"{section}:\n" if line[section] else "")
                for name, value in line[section].items():
                    file.write(f"  {name}: {json.dumps(value)}\n")
        by_version[line["te_version"]][path] = line["id"]
    for version, paths in by_version.items():
        done = subprocess.run([program, "check", "--json", "--for", "bridge", "--megatron",
                               megatron_core.release(), "--te", version, *paths],
                              capture_output=True, text=True)
        for file in json.loads(done.stdout)["files"]:
            answers[paths[file["file"]]] = file
    return answers


def verdict(answer):
    """What we say of the container and the class: the exception, and the rule."""
    stops = [finding for finding in answer.get("findings", []) if finding["level"] == "error" and
             finding["layer"] in ("bridge", "core") and finding["rule"] not in BY_PROVIDER]
    if not stops:
        return answer.get("error"), None
    raised = (stops[0]["source"] or "?").split(",")[0]
    return answer["exception"] if stops[0]["is_first"] else raised, stops[0]["rule"]


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    lines = [make(seed) for seed in range(first, first + n)]
    with tempfile.TemporaryDirectory() as folder:
        answers = ours(sys.argv[1], lines, folder)
    n_wrong, n_refused = 0, 0
    for line in lines:
        exception, message = ask(line)
        our_exception, rule = verdict(answers[line["id"]])
        n_refused += exception is not None
        if exception == our_exception:
            continue
        n_wrong += 1
        if n_wrong <= int(os.environ.get("SHOWN", 20)):
            print(f"{json.dumps(line)}\n  Bridge {exception} {message[:160]!r}; ours {our_exception} {rule}")
    print(f"Megatron Bridge on Megatron Core {megatron_core.release()}: {n} configurations, {n_refused} "
          f"refused, {n_wrong} disagreements")
    return n_wrong > 0


sys.exit(main())
