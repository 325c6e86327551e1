"""Our verdicts against those of the Megatron Core that is installed, on random configurations.

    python3 differential.py path/to/recompute [N] [FIRST_SEED]

Accepted or rejected, and the exception's type, must be equal for every line. Fields that the
installed release does not have are left out. Exit 77 (skipped) where megatron-core or torch is
missing. `MEGATRON_RELEASE` names the release where the package cannot tell."""
import dataclasses
import json
import os
import subprocess
import sys
import warnings

import configs

try:
    import torch
    import megatron.core
    from megatron.core import utils
    from megatron.core.transformer import transformer_config
    from packaging.version import Version
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
TransformerConfig = transformer_config.TransformerConfig
CLASSES = {"TransformerConfig": TransformerConfig,
           "MLATransformerConfig": getattr(transformer_config, "MLATransformerConfig", TransformerConfig)}


def release():
    name = os.environ.get("MEGATRON_RELEASE", getattr(megatron.core, "__version__", "main"))
    return ".".join(name.split(".")[:2])


def ask(line):
    """The exception's name, or None when the configuration is accepted."""
    utils._te_version = Version(line["te_version"])
    given = json.loads(json.dumps(line["config"]))
    if "pipeline_dtype" in given:
        given["pipeline_dtype"] = DTYPES.get(given["pipeline_dtype"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            CLASSES[line["kind"]](**given)
        except Exception as error:
            return type(error).__name__, str(error)
    return None, ""


def main():
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    lines = []
    for seed in range(first, first + n):
        line = configs.make(seed, drop=0.5 if seed % 2 else 0.75)
        known = {f.name for f in dataclasses.fields(CLASSES[line["kind"]])}
        line["config"] = {k: v for k, v in line["config"].items() if k in known}
        lines.append(line)
    ours = subprocess.run([sys.argv[1], "check", "--for", "core", "--megatron", release(), "--jsonl", "-"],
                          input="".join(json.dumps(line) + "\n" for line in lines),
                          capture_output=True, text=True).stdout.splitlines()
    n_wrong, n_rejected, n_silent = 0, 0, 0
    for line, verdict in zip(lines, map(json.loads, ours), strict=True):
        exception, message = ask(line)
        if "process group has not been initialized" in message:
            n_silent += 1  # 0.13 asks a running job about its layout
            continue
        n_rejected += exception is not None
        if exception == verdict["exception"]:
            continue
        n_wrong += 1
        if n_wrong <= int(os.environ.get("SHOWN", 20)):
            print(f"{line['id']} {line['te_version']} {line['kind']}: Megatron Core {exception} "
                  f"({message[:200]}), ours {verdict['exception']} {verdict['rule']}\n  {json.dumps(line['config'])}")
    print(f"Megatron Core {release()}: {n} configurations, {n_rejected} rejected, {n_silent} without "
          f"a verdict, {n_wrong} disagreements")
    return n_wrong > 0


sys.exit(main())
