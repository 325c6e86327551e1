"""Configurations near those of a corpus: lines with one to three settings changed, dropped or taken
from other lines. `odd` values are of a kind that their setting does not expect."""
import copy
import json
import random

import configs

ODD = [None, True, False, 0, 1, -1, 2, 3, 4, 7, 1 << 31, 10**12, 0.0, 1.0, 2.0, 0.5, -0.5, 1e30, "", "x",
       "1", "full", "none", "moe", "attn", "core_attn", [], [1], [0], ["moe"], ["attn"], [None],
       ["core_attn", 1], [["embedding"]]]
SWITCHES = [True, False]


def read(paths):
    lines = []
    for path in paths:
        with open(path) as file:
            lines += [json.loads(text) for text in file]
    return lines


class Pool:
    """The values that every setting has in a corpus."""

    def __init__(self, lines):
        self.lines = lines
        values = {}
        for line in lines:
            for name, value in line["config"].items():
                values.setdefault(name, {})[json.dumps(value)] = value
        self.values = {name: list(of_name.values()) for name, of_name in sorted(values.items())}
        self.names = list(self.values)
        self.versions = sorted({line["te_version"] for line in lines})


def near(rng, value):
    """A value of the same kind, close by."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 2, value])
    if isinstance(value, float):
        return rng.choice([-value, value * 2, value + 0.5, 0.0])
    if isinstance(value, list):
        item = rng.choice(configs.LABELS + configs.OFFLOADS + configs.CAPTURES)
        kept = [one for one in value if rng.random() < 0.7]
        return kept + [item] * (rng.random() < 0.5)
    return value


def edit(rng, config, pool, odd):
    name = rng.choice(pool.names if rng.random() < 0.7 else sorted(config))
    draw = rng.random()
    if odd and draw < 0.7:
        config[name] = copy.deepcopy(rng.choice(ODD))
    elif draw < 0.2 and name in config and name not in ("num_layers", "hidden_size",
                                                        "num_attention_heads"):
        del config[name]
    elif draw < 0.35 and name in config:
        config[name] = near(rng, config[name])
    elif draw < 0.55:
        other = rng.choice(pool.lines)["config"]
        for taken in rng.sample(sorted(other), min(3, len(other))):
            config[taken] = copy.deepcopy(other[taken])
    else:
        config[name] = copy.deepcopy(rng.choice(pool.values[name]))


def make(seed, pool, odd=False):
    rng = random.Random(seed)
    base = rng.choice(pool.lines)
    line = {"id": f"near-{seed}", "kind": base["kind"], "te_version": base["te_version"],
            "config": copy.deepcopy(base["config"])}
    for _ in range(rng.randint(1, 3)):
        edit(rng, line["config"], pool, odd)
    if rng.random() < 0.15:
        line["te_version"] = rng.choice(pool.versions + configs.TE)
    if rng.random() < 0.05:
        line["kind"] = rng.choice(["TransformerConfig", "MLATransformerConfig"])
    return line
