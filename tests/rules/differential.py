"""Our verdicts against those of the Megatron Core that is installed, on random configurations.

    python3 differential.py path/to/recompute [N] [FIRST_SEED] [KIND] [CORPUS ...]

    themes  mixtures of configs.py
    near    lines of the corpora (ours, where none is named) with one to three settings changed
    odd     the same with values of unexpected kinds
    fields  every setting alone, for each of the two classes: does the release have it?
    corpus  the lines of the corpora themselves

Verdict, the exception's type, warnings and effective values must be equal for every line. Settings
that the installed release does not have are left out, except by `fields`. Exit 77 (skipped) where
megatron-core or torch is missing. `MEGATRON_RELEASE` names the release where the package cannot tell,
`SHOWN` says how many differences are printed."""
import collections
import json
import os
import subprocess
import sys

import configs
import mutations

try:
    import megatron_core
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARED = ["verdict", "exception", "warnings", "effective", "effective_other"]


def alone(name, kind):
    """A configuration that sets one field, if to nothing."""
    config = {"num_layers": 4, "hidden_size": 1024, "num_attention_heads": 8}
    return {"id": f"{name} of {kind}", "kind": kind, "te_version": "2.9.0",
            "config": {**config, name: config.get(name)}}


def make_lines(n, first, kind, corpora):
    pool = mutations.Pool(mutations.read(corpora or [os.path.join(HERE, "corpus.jsonl")]))
    names = [*pool.names, "mtp_standalone"]  # the one that only the class sets
    if kind == "corpus":
        return pool.lines, names
    if kind == "fields":
        return [alone(name, of) for name in names for of in megatron_core.CLASSES], names
    lines = []
    for seed in range(first, first + n):
        lines.append(configs.make(seed, drop=0.5 if seed % 2 else 0.75) if kind == "themes" else
                     mutations.make(seed, pool, odd=kind == "odd"))
    return lines, names


def known_only(line):
    known = megatron_core.FIELDS[line["kind"]]
    config = {name: value for name, value in line["config"].items() if name in known}
    return {"id": line["id"], "kind": line["kind"], "te_version": line["te_version"], "config": config}


def ours(program, lines):
    done = subprocess.run(
        [program, "check", "--for", "core", "--megatron", megatron_core.release(), "--jsonl", "-"],
        input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True)
    return [json.loads(text) for text in done.stdout.splitlines()]


def compare(theirs, our):
    """The members that differ. After a rejection there are no values to compare."""
    members = COMPARED if theirs["verdict"] == our["verdict"] == "accept" else COMPARED[:3]
    if "unexpected keyword" in theirs["message"] and our["rule"] != "field-not-in-release":
        return ["rule"]
    return [name for name in members if theirs[name] != our[name]]


def main():
    words = dict(enumerate(sys.argv))
    kind = words.get(4, "themes")
    lines, names = make_lines(int(words.get(2, 2000)), int(words.get(3, 1)), kind, sys.argv[5:])
    lines = lines if kind == "fields" else [known_only(line) for line in lines]
    n_wrong, n_rejected, n_silent, shown = 0, 0, 0, int(os.environ.get("SHOWN", 20))
    by_member = collections.Counter()
    for line, our in zip(lines, ours(sys.argv[1], lines), strict=True):
        theirs = megatron_core.ask(line, names)
        if "process group has not been initialized" in theirs["message"]:
            n_silent += 1  # 0.13 asks a running job about its layout
            continue
        n_rejected += theirs["verdict"] == "reject"
        differing = compare(theirs, our)
        if not differing:
            continue
        n_wrong += 1
        by_member[differing[0]] += 1
        if n_wrong <= shown:
            print(f"{line['id']} {line['te_version']} {line['kind']} {json.dumps(line['config'])}")
            for name in differing:
                print(f"  {name}: Megatron Core {theirs.get(name)}, ours {our[name]}")
            print(f"  {theirs['message'][:160]!r}; {our['rule']}")
    print(f"Megatron Core {megatron_core.release()}, {kind}: {len(lines)} configurations, {n_rejected} "
          f"rejected, {n_silent} without a verdict, {n_wrong} disagreements {dict(by_member) or ''}")
    return n_wrong > 0


sys.exit(main())
