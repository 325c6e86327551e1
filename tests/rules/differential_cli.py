"""Our verdicts on argument lines against those of the Megatron-LM that is installed: its parser, its
validate_args and the config class behind them.

    python3 differential_cli.py path/to/recompute [N] [FIRST_SEED]

Accepted or refused, and the exception's type, must be equal for every line; where the parser itself
gives up, only that we refuse too. What we find about the model's build counts as accepted: no model is
built here. The settings that the class holds in the end are compared on accepted lines. Exit 77
(skipped) where megatron.training (in megatron-core from 0.17 on) or torch is missing."""
import collections
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import typing

import command_lines

if not hasattr(typing, "override"):
    typing.override = lambda function: function  # Python before 3.12

try:
    import megatron_core
    import torch
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: collections.namedtuple("Device", "major minor")(9, 0)
    from megatron.core import utils
    from megatron.training import arguments
    from packaging.version import Version
except ImportError as missing:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    print(missing)
    sys.exit(77)

# The parser of some thousand arguments is made once.
make_parser, parsers = arguments.add_megatron_arguments, []
arguments.add_megatron_arguments = lambda parser: parsers[0] if parsers else parsers.append(
    make_parser(parser)) or parsers[0]

VALUES = ["recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"]


def ask(line):
    """The exception's name (or None), its text, and the recompute settings in the end."""
    utils._te_version = Version(line["te_version"])
    for name in ("NVTE_CPU_OFFLOAD_V1", "PYTORCH_CUDA_ALLOC_CONF", "CUDA_DEVICE_MAX_CONNECTIONS"):
        os.environ.pop(name, None)
    os.environ.update(line["env"], RANK="0", WORLD_SIZE=str(command_lines.ranks(line["flags"])))
    sys.argv = ["pretrain_gpt.py", *command_lines.words(line["flags"])]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            args = arguments.validate_args(arguments.parse_args())
            config = arguments.core_transformer_config_from_args(args)
        except SystemExit:
            return "SystemExit", said.getvalue()[-300:], None
        except Exception as error:  # whatever it is, it is the verdict
            return type(error).__name__, str(error), None
    return None, "", {name: megatron_core.plain(getattr(config, name)) for name in VALUES}


def ours(program, lines, folder):
    """One run for each version of the engine; a script for each line."""
    answers = {}
    for version in sorted({line["te_version"] for line in lines}):
        paths = {}
        for line in lines:
            if line["te_version"] != version:
                continue
            path = os.path.join(folder, line["id"] + ".sh")
            with open(path, "w") as file:
                for name, value in line["env"].items():
                    file.write(f"export {name}={value}\n")
                file.write("python pretrain_gpt.py " + shlex.join(command_lines.words(line["flags"])) + "\n")
            paths[path] = line["id"]
        done = subprocess.run([program, "check", "--json", "--for", "megatron-lm", "--megatron",
                               megatron_core.release(), "--te", version, *paths],
                              capture_output=True, text=True)
        for file in json.loads(done.stdout)["files"]:
            file["errors"] = [finding for finding in file["findings"] if finding["level"] == "error"]
            answers[paths[file["file"]]] = file
    return answers


def verdict(answer):
    """What we say of the arguments and the class, model build aside."""
    stops = [finding for finding in answer["errors"] if finding["layer"] in ("cli", "core")]
    if not stops:
        return None, None
    first = stops[0]
    return (answer["exception"] if first.get("is_first") else "?"), first["rule"]


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    lines = [command_lines.make(seed) for seed in range(first, first + n)]
    with tempfile.TemporaryDirectory() as folder:
        answers = ours(sys.argv[1], lines, folder)
    n_wrong, n_refused, n_parser = 0, 0, 0
    for line in lines:
        exception, message, values = ask(line)
        our_exception, rule = verdict(answers[line["id"]])
        n_refused += exception is not None
        n_parser += exception == "SystemExit"
        is_equal = exception == our_exception or (exception == "SystemExit" and rule is not None)
        effective = answers[line["id"]].get("effective")
        if is_equal and exception is None and effective is not None:
            is_equal = values == effective
        if is_equal:
            continue
        n_wrong += 1
        if n_wrong <= int(os.environ.get("SHOWN", 20)):
            print(f"{line['id']} TE {line['te_version']} {' '.join(command_lines.words(line['flags'])[20:])}\n"
                  f"  Megatron-LM {exception} {message[-160:]!r}; ours {our_exception} {rule}")
            if exception is None:
                print(f"  {values}, ours {effective}")
    print(f"Megatron-LM {megatron_core.release()}: {n} argument lines, {n_refused} refused ({n_parser} by "
          f"the parser), {n_wrong} disagreements")
    return n_wrong > 0


sys.exit(main())
