"""Random argument lines through Megatron-LM's own parser and through `recompute check`: what the one stops
at, the other refuses or warns about, and nothing else. Usage: arguments.py RECOMPUTE [N] [SEED]. Skips (77)
where megatron.training (part of megatron-core from 0.19 on) cannot be imported."""
import argparse
import contextlib
import io
import json
import random
import subprocess
import sys
import typing
import warnings

if not hasattr(typing, "override"):
    typing.override = lambda function: function  # Python before 3.12

PARSER_RULES = {"unknown-key", "argument-not-listed", "argument-gone", "argument-choice",
                "recompute-granularity-unknown", "recompute-method-unknown", "graph-module-unknown"}


def make_parser():
    warnings.simplefilter("ignore")
    from megatron.training import arguments  # pylint: disable=import-outside-toplevel
    parser = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_megatron_arguments(parser)
    return parser


def value(rng, action):
    if action.choices:
        return str(rng.choice([getattr(one, "name", one) for one in action.choices]))
    kind = getattr(action.type, "__name__", "")
    return rng.choice({"int": ["4", "-1", "007", "1_000"],
                       "float": ["0.5", "1e-5", ".01", "-2", "3", "1."],
                       "bool": ["1", "x"]}.get(kind, ["1"] if kind not in ("str", "") else ["word", "a,b"]))


def some_words(rng, actions):
    words = []
    for action in rng.sample(actions, 5):
        name = rng.choice([one for one in action.option_strings if one.startswith("--")])
        n = 0 if action.nargs == 0 else action.nargs if isinstance(action.nargs, int) else \
            rng.choice([1, 2]) if action.nargs in ("+", "*") else 1
        values = [value(rng, action) for _ in range(n)]
        draw = rng.random()
        if draw < 0.03:
            values.append("extra")
        elif draw < 0.06:
            values = values[:-1]
        elif draw < 0.09:
            name = name[:-2]
        elif draw < 0.12:
            name = "--" + name[2:].replace("-", "_")
        elif draw < 0.15 and values:
            values[0] = "bad!"
        if len(values) == 1 and rng.random() < 0.2:
            words.append(f"{name}={values[0]}")
        else:
            words += [name, *values]
    return words


def theirs(parser, words):
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            parser.parse_args(words)
    except (SystemExit, KeyError, ValueError, AssertionError):
        return False
    return True


def ours(program, words):
    done = subprocess.run([program, "check", "--json", "--", *words], capture_output=True, check=False)
    if not done.stdout:
        return done.returncode != 2
    report = json.loads(done.stdout)["files"][0]
    rules = {finding["rule"] for finding in report.get("findings", [])}
    return report["verdict"] != "unreadable" and not rules & PARSER_RULES


def main():
    try:
        parser = make_parser()
    except Exception as why:  # whatever keeps another program from being imported
        print("skipped: this Python lacks a peer; ./dev peers installs them all")
        print(why)
        sys.exit(77)
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    actions = [one for one in parser._actions if any(o.startswith("--") and o != "--help"
                                                     for o in one.option_strings)]
    n_accepted = 0
    for _ in range(n):
        words = some_words(rng, actions)
        is_accepted = theirs(parser, words)
        n_accepted += is_accepted
        if ours(sys.argv[1], words) != is_accepted:
            print(f"seed {seed}: they {'accept' if is_accepted else 'refuse'} {' '.join(words)}")
            sys.exit(1)
    print(f"{n} lines, {n_accepted} of them accepted by both")


main()
