"""The order of our pipelines against that in which the Megatron Core that is installed runs.

    python3 differential_pipeline.py path/to/recompute [N] [FIRST_SEED]

Each seed draws a job. For every stage Megatron's own loop (schedules.py, combined_1f1b.py) runs with steps that only note what
they are of, and neighbours that answer at once; our events must be the same, one by one. What it refuses we refuse. Exit 77
(skipped) where megatron-core or torch is missing."""
import contextlib
import os
import random
import re
import subprocess
import sys
import types
import unittest.mock

os.environ.setdefault("RANK", "0")  # or Megatron warns that it had to guess
try:
    import torch
    from megatron.core.enums import ModelType
    from megatron.core.pipeline_parallel import combined_1f1b, schedules
    from megatron.core.transformer.transformer_config import TransformerConfig
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(77)


# --- Megatron

class Group:
    def __init__(self, size, rank):
        self.size, self.rank = (lambda: size), (lambda: rank)


class Neighbours:
    """Whoever is asked for tensors gives something at once; pairs where two come together."""
    def __init__(self, config, stage, job):
        self.config, self.pp_group = config, Group(job["p"], stage)
        self.total_stages, self.current_stage = job["p"], stage
        self.is_pp_first_stage, self.is_pp_last_stage = stage == 0, stage == job["p"] - 1
        self.virtual_pipeline_model_parallel_size = job["v"]

    def send_forward_backward_recv_forward_backward(self, *_, **__):
        return object(), object()

    def __getattr__(self, name):
        return lambda *_, **__: object()


class Chunk(torch.nn.Module):
    def __init__(self, config, number):
        super().__init__()
        self.config, self.number, self.model_type = config, number, ModelType.encoder_or_decoder


def make_config(job):
    overlap = {"overlap_moe_expert_parallel_comm": True, "expert_model_parallel_size": 2, "num_moe_experts": 2,
               "moe_token_dispatcher_type": "alltoall", "bf16": True, "add_bias_linear": False} if job["overlap"] else {}
    return TransformerConfig(num_layers=job["p"] * (job["v"] or 1), hidden_size=64, num_attention_heads=4,
                             pipeline_dtype=torch.bfloat16, pipeline_model_parallel_size=job["p"],
                             virtual_pipeline_model_parallel_size=job["v"],
                             microbatch_group_size_per_vp_stage=job["group"], **overlap)


def noting(events):
    """Stand-ins for the steps. What a forward gives says what it was of, and its backward is handed that."""
    none = torch.zeros([], dtype=torch.int)

    def forward_step(*_, current_microbatch, vp_stage=None, **__):
        events.append(("forward", vp_stage or 0, current_microbatch))
        return (vp_stage or 0, current_microbatch), none

    def backward_step(_, output, *__):
        events.append(("backward", *output))
        return object()

    def both(_, __, f_model, ___, ____, _____, b_model, ______, b_output, *_______, current_microbatch=None, **________):
        output = None
        if f_model is not None:
            output = (f_model.number, current_microbatch)
            events.append(("forward", *output))
        if b_model is not None:
            events.append(("backward", *b_output))
        return output, none, object()

    return forward_step, backward_step, both


@contextlib.contextmanager
def stand_ins(events):
    forward_step, backward_step, both = noting(events)
    zeros = torch.zeros
    with contextlib.ExitStack() as stack:
        for place, name, one in [
                (schedules, "forward_step", forward_step), (schedules, "backward_step", backward_step),
                (schedules, "deallocate_output_tensor", lambda *_: None),
                (combined_1f1b, "combined_forward_backward_step", both),
                (combined_1f1b, "set_streams", lambda *_, **__: None),
                (combined_1f1b, "find_megatron_fsdp", lambda *_: None),
                (torch, "zeros", lambda *size, device=None, **named: zeros(*size, **named))]:
            stack.enter_context(unittest.mock.patch.object(place, name, one))
        yield


def megatron(job, stage):
    events = []
    config = make_config(job)
    chunks = [Chunk(config, i) for i in range(job["v"] or 1)]
    run = schedules.get_forward_backward_func(pp_size=job["p"], vp_size=job["v"])
    groups = types.SimpleNamespace(tp=Group(1, 0), cp=Group(1, 0))
    if run is schedules.forward_backward_pipelining_without_interleaving:
        groups = unittest.mock.MagicMock(spec=schedules.ProcessGroupCollection, tp=Group(1, 0), cp=Group(1, 0))
    with stand_ins(events):
        run(forward_step_func=None, data_iterator=[None] * len(chunks), model=chunks, num_microbatches=job["m"],
            seq_length=8, micro_batch_size=1, p2p_communicator=Neighbours(config, stage, job), pg_collection=groups)
    return events


# --- ours

HALF = r"(forward|backward) chunk (\d+) micro-batches (\d+)-(\d+)"


def add_run(events, line, later):
    halves = [(what, int(chunk), int(first), int(last)) for what, chunk, first, last in re.findall(HALF, line)]
    for i in range(halves[0][3] - halves[0][2] + 1):
        events.extend((what, chunk, first + i + later) for what, chunk, first, _ in halves)


def read_pipeline(text):
    lines = text.splitlines()
    times, step = map(int, re.match(r"period: (\d+) times, (\d+)", lines[1]).groups()) if "times" in lines[1] else (0, 0)
    by_part = {"warm-up": [], "period": [], "end": []}
    for line in lines[1:]:
        part, _, rest = line.partition(":")
        if part in by_part and "chunk" in rest:
            by_part[part].append(rest)
    events = []
    for part, repeats in (("warm-up", 1), ("period", times), ("end", 1)):
        for i in range(repeats):
            for rest in by_part[part]:
                add_run(events, rest, i * step)
    return events


def ours(program, job):
    words = [f"model.num_layers={job['p'] * (job['v'] or 1)}", f"model.pipeline_model_parallel_size={job['p']}",
             f"train.global_batch_size={job['m']}", "train.micro_batch_size=1",
             f"model.microbatch_group_size_per_vp_stage={job['group']}"]
    if job["v"]:
        words.append(f"model.virtual_pipeline_model_parallel_size={job['v']}")
    if job["overlap"]:
        words.append("model.overlap_moe_expert_parallel_comm=true")
    done = subprocess.run([program, "layout", *words, "--dump", "pipeline", "--csv"], capture_output=True, text=True)
    if done.returncode == 2:
        return f"refused: {done.stderr}"
    return [read_pipeline(block) for block in done.stdout.split("pipeline of stage ")[1:]]


# --- both

def draw_job(draw):
    p = draw.randint(1, 5)
    v = draw.choice([None, 1, 2, 3]) if p > 1 else None
    group = p + draw.choice([0, 0, 1, 2])
    m = draw.randint(1, 24) if not v or draw.random() < 0.3 else group * draw.randint(1, 4) + draw.choice([0, 0, p])
    return {"p": p, "v": v, "group": group, "m": m, "overlap": draw.random() < 0.4}


def all_stages(job):
    try:
        return [megatron(job, stage) for stage in range(job["p"])]
    except (AssertionError, ValueError, RuntimeError) as refusal:
        return f"refused: {refusal!r}"


def main():
    given = dict(enumerate(sys.argv))
    n, first = int(given.get(2, 300)), int(given.get(3, 1))
    n_wrong = n_refused = 0
    for seed in range(first, first + n):
        job = draw_job(random.Random(seed))
        theirs, our = all_stages(job), ours(sys.argv[1], job)
        n_refused += isinstance(theirs, str)
        is_same = isinstance(theirs, str) and isinstance(our, str) or theirs == our
        n_wrong += not is_same
        if not is_same and n_wrong <= 5:
            print(f"seed {seed}: {job}\n  Megatron Core {str(theirs)[:600]}\n  ours {str(our)[:600]}")
    print(f"{n} jobs, {n_refused} refused by both, {n_wrong} disagreements")
    return n_wrong > 0 or not 0 < n_refused < n * 2 // 3


sys.exit(main())
