#!/usr/bin/env python3
"""Every file of a folder with a manifest.json, through every action of `recompute snapshot`.

  run_hostile.py PROGRAM FOLDER [--any-memory]   (sanitizers take more)

A file that is to be refused must be, for the manifest's reason and with exit status 2; a file that is
fine must give the manifest's facts. No action may crash, take more than the manifest's memory, or print
a control byte or what the manifest says must never appear.
"""
import json
import os
import resource
import subprocess
import sys

ACTIONS = [["overview"], ["peak"], ["at", "#1"], ["timeline"], ["timeline", "--svg"], ["timeline", "--html"],
           ["steps"], ["regions"], ["compare"]]


def run(program, action, path, *options):
    words = [program, "snapshot"] + action + [path] + ([path] if action[0] == "compare" else []) + list(options)
    return subprocess.run(words, capture_output=True, timeout=30)


def facts_of(got):
    devices, segments = got["devices"], got["segments"]
    return {"events": sum(d["events"] for d in devices), "segments": segments["segments"],
            "blocks": segments["blocks"], "reserved": segments["reserved_bytes"], "active": segments["active_bytes"],
            "peak_delta": max([d["peak_delta_requested_bytes"] for d in devices] or [0]),
            "unknown_actions": got["file"]["unknown_actions"], "trailing_bytes": got["file"]["trailing_bytes"]}


def check_verdict(x, ran):
    if x["expect"] == "ok":
        allowed = ["ok"]
    else:
        allowed = [x["error"]] + x.get("also_accept", [])
    if ran.returncode == 0:
        got = "ok"
    else:
        said = ran.stderr.decode("utf-8", "strict")
        got = said.split("refused (", 1)[-1].split(")", 1)[0]
        if "unpack" in said or "damaged" in said or "ends early" in said:
            got = "COMPRESSED"
        if ran.returncode != 2:
            return "exit status %d: %s" % (ran.returncode, said[:200])
    if got not in allowed:
        return "%s instead of %s" % (got, allowed)
    if got == "ok" and x["expect"] == "ok":
        facts = facts_of(json.loads(ran.stdout))
        for k, v in x.get("facts", {}).items():
            if facts.get(k) != v:
                return "%s is %r instead of %r" % (k, facts.get(k), v)
    return None


def check_output(ran, never):
    for stream in (ran.stdout, ran.stderr):
        stream.decode("utf-8", "strict")
        if never and never.encode() in stream:
            return "printed what must never be printed"
        if any(b < 32 and b not in (9, 10, 13) or b == 127 for b in stream):
            return "printed a control byte"
    return None if ran.returncode in (0, 2) else "exit status %d" % ran.returncode


def main(argv):
    program, folder = argv[:2]
    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    wrong = n = 0
    for x in manifest["files"]:
        path = os.path.join(folder, x["file"])
        if not os.path.exists(path):
            continue
        n += 1
        problems = [check_verdict(x, run(program, ["overview"], path, "--json"))]
        problems += [check_output(run(program, action, path), manifest.get("never_print")) for action in ACTIONS]
        for problem in filter(None, problems):
            wrong += 1
            print("WRONG %s: %s" % (x["file"], problem))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    limit = manifest.get("limits", {}).get("rss_mib_per_file", 64)
    print("%d files, %d wrong, at most %.1f MiB" % (n, wrong, most))
    return 1 if wrong or n == 0 or (most > limit and "--any-memory" not in argv) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
