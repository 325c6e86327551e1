#!/usr/bin/env python3
"""Random snapshots of a generator with known truth, read by `recompute snapshot --json`.

  compare_truth.py PROGRAM GENERATOR COUNT [SEED]

GENERATOR writes FILE and FILE.truth.json for a command line (its options are tried at random).
Every answer of the program that the truth knows must be equal to it, to the byte.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

VERSIONS = ["2.0", "2.1", "2.2", "2.3", "2.4", "2.6", "2.8", "2.10", "2.11", "2.12"]
MODULES = ["core_attn", "layernorm", "mlp", "moe_act", "moe", "shared_experts", "full"]


def random_options(rng):
    """One command line; combinations the generator refuses are drawn again."""
    version = rng.choice(VERSIONS)
    o = ["--events", str(rng.choice([50, 400, 3000, 9000])), "--seed", str(rng.randrange(10 ** 6)), "--torch", version]
    if rng.random() < 0.35 and version != "2.0":
        o.append("--cpp-writer")
    else:
        o += ["--protocol", rng.choice("2345")]
    for flag, p in (("--oom", .35), ("--fragmented", .3), ("--expandable", .3), ("--annotations", .3),
                    ("--profiler-steps", .2), ("--snapshots", .3), ("--compiled", .3), ("--cpp-frames", .4),
                    ("--side-stream", .4), ("--graphs", .3)):
        if rng.random() < p:
            o.append(flag)
    if rng.random() < .4:
        n = rng.randrange(1, 5)
        o += ["--devices", str(n), "--active-devices", str(rng.randrange(1, n + 1))]
    if rng.random() < .5:
        o += ["--recompute", ",".join(rng.sample(MODULES, rng.randrange(1, 4)))]
    if rng.random() < .3:
        o += ["--start", "train"]
    if rng.random() < .3:
        o += ["--ring-skip", str(rng.randrange(1, 2000))]
    if rng.random() < .5:
        o += ["--context", rng.choice(["alloc", "all"])]
    if rng.random() < .3:
        o += ["--experts", rng.choice(["8", "16"]), "--shared-ffn", rng.choice(["0", "1408"])]
    o += ["--layers", str(rng.randrange(1, 7)), "--microbatches", str(rng.randrange(1, 5)),
          "--inflight", str(rng.randrange(1, 3)), "--mbs", str(rng.randrange(1, 3)),
          "--seq", rng.choice(["512", "1024", "4096"]), "--vocab", rng.choice(["1000", "32000"])]
    return o


def rows(table, device=None):
    return [r for r in table if device is None or r["device"] == device]


def named(table, device):
    """Holders of one device by name, without what was there before the recording."""
    return {r["name"]: [r["requested_bytes"], r["count"]] for r in rows(table, device)
            if not r["name"].startswith("(before")}


SEGMENTS = {"count": "segments", "reserved": "reserved_bytes", "allocated": "allocated_bytes", "active": "active_bytes",
            "inactive": "inactive_bytes", "awaiting_free": "awaiting_free_bytes", "blocks": "blocks",
            "inactive_blocks": "inactive_blocks", "largest_inactive_block": "largest_inactive_block_bytes",
            "releasable": "releasable_bytes", "requested_active": "requested_active_bytes",
            "internal_waste": "internal_waste_bytes"}
OOM = {"device": "device", "event_index": "event_index", "size": "size_bytes", "device_free": "device_free_bytes",
       "stream": "stream", "largest_free_block_same_pool": "largest_free_block_same_pool_bytes",
       "free_same_pool": "free_same_pool_bytes", "free_other_streams": "free_other_streams_bytes",
       "free_private_pools": "free_private_pools_bytes", "free_small_pool": "free_other_class_bytes",
       "label": "label", "phase": "phase", "source": "source", "verdict": "verdict",
       "segment_size_needed": "needed_bytes", "pool": "class"}


class Check:
    def __init__(self):
        self.wrong = []
        self.n = 0

    def equal(self, what, got, want):
        self.n += 1
        if got != want:
            self.wrong.append("%s: got %.300r, truth %.300r" % (what, got, want))


def check_segments(c, what, got, want):
    for k, column in SEGMENTS.items():
        c.equal(what + k, got[column], want[k])
    c.equal(what + "inactive_pct", round(100 * got["inactive_ratio"], 4), want["inactive_pct"])


def check_pools(c, got, want):
    mine = {}
    for p in got:
        key = "%d/%s/stream_%d/pool_%s" % (p["device"], p["class"], p["stream"], p["pool_id"].replace(":", "_"))
        mine[key] = {"segments": p["segments"], "reserved": p["reserved_bytes"], "active": p["active_bytes"],
                     "inactive": p["inactive_bytes"], "largest_inactive_block": p["largest_inactive_block_bytes"]}
    c.equal("pools", mine, want)


def check_device(c, got, d):
    i = d["device"]
    p = "device %d " % i
    row = rows(got["devices"], i)
    c.equal(p + "rows", len(row), 1)
    row = row[0]
    peak = d["peak"]
    pairs = [("events", d["events"]), ("baseline_requested_bytes", d["baseline"]["requested_bytes"]),
             ("baseline_reserved_bytes", d["baseline"]["reserved_bytes"]), ("peak_event_index", peak["event_index"]),
             ("peak_time_us", peak["time_us"]), ("peak_delta_requested_bytes", peak["delta_requested_bytes"]),
             ("peak_requested_bytes", peak["requested_bytes"]),
             ("peak_reserved_bytes", d["peak_reserved"]["reserved_bytes"]),
             ("peak_reserved_event_index", d["peak_reserved"]["event_index"]),
             ("unmatched_frees", d["unmatched_frees"]["count"]),
             ("unmatched_free_bytes", d["unmatched_frees"]["requested_bytes"]), ("allocs", d["alloc_count"]),
             ("alloc_bytes_total", d["alloc_bytes_total"]), ("end_requested_bytes", d["end"]["requested_bytes"]),
             ("end_reserved_bytes", d["end"]["reserved_bytes"]), ("live_at_peak_count", d["live_at_peak"]["count"]),
             ("live_at_peak_requested_bytes", d["live_at_peak"]["requested_bytes"]),
             ("first_time_us", d["time_us"]["first"] if d["time_us"] else None),
             ("last_time_us", d["time_us"]["last"] if d["time_us"] else None), ("is_baseline_consistent", True)]
    for column, want in pairs:
        c.equal(p + column, row[column], want)
    c.equal(p + "actions", {r["action"]: r["count"] for r in rows(got["actions"], i)}, d["actions"])
    live = d["live_at_peak"]
    for table, truth in (("peak_by_label", live["by_label"]), ("peak_by_phase", live["by_phase"]),
                         ("peak_by_label_phase", live["by_label_phase"])):
        c.equal(p + table, named(got[table], i), {k: [v["requested_bytes"], v["count"]] for k, v in truth.items()})
    c.equal(p + "peak_by_source",
            [[r["name"], r["requested_bytes"], r["count"]] for r in rows(got["peak_by_source"], i)
             if not r["name"].startswith("(before")],
            [[r["source"], r["requested_bytes"], r["count"]] for r in live["by_source"]])
    c.equal(p + "traffic", {r["label"]: [r["requested_bytes"], r["count"]] for r in rows(got["traffic_by_label"], i)},
            {k: [v["requested_bytes"], v["count"]] for k, v in d["throughput_by_label"].items()})
    # every list of holders adds up to the peak
    for table in ("peak_by_label", "peak_by_phase", "peak_by_source", "peak_by_module"):
        c.equal(p + table + " sum", sum(r["requested_bytes"] for r in rows(got[table], i)), peak["requested_bytes"])


def check_answer(c, got, oom, knows_pools):
    """The lines in words: the same request and verdict, the largest holder first, something to try."""
    lines = rows(got["answer"], oom["device"])
    said = {about: [r["answer"] for r in lines if r["about"] == about] for about in ("asked", "verdict", "held by", "try")}
    c.equal("answer asked", len(said["asked"]) == 1 and " for %s (%s), at %s, event {:,}".format(oom["event_index"])
            % (oom["label"], oom["phase"], oom["source"]) in said["asked"][0], True)
    if knows_pools:
        c.equal("answer verdict", [v.split(":")[0] for v in said["verdict"]], [oom["verdict"]])
    holders = [r for r in rows(got["oom_by_label"], oom["device"]) if not r["name"].startswith("(")]
    if holders:
        c.equal("answer holder", said["held by"][0].split(") ")[-1], holders[0]["name"])
    c.equal("answer try", len(said["try"]) > 0, True)


def check(got, truth):
    c = Check()
    c.equal("protocol", got["file"]["protocol"], truth["protocol"])
    c.equal("file_bytes", got["file"]["file_bytes"], truth["file_bytes"])
    c.equal("annotations", got["file"]["annotations"], truth["annotations"]["count"])
    check_segments(c, "segments ", got["segments"], truth["segments"])
    for i, want in truth["segments_by_device"].items():
        mine = rows(got["segments_by_device"], int(i))
        if mine or want["count"]:
            check_segments(c, "segments of device %s " % i, mine[0], want)
    # torch 2.0 does not write which pool a segment belongs to
    knows_pools = truth["torch"] != "2.0" or "--graphs" not in truth["args"]
    if knows_pools:
        check_pools(c, got["pools"], truth["segments"]["pools"])
    c.equal("devices", [r["device"] for r in got["devices"]], [d["device"] for d in truth["devices"]])
    for d in truth["devices"]:
        check_device(c, got, d)
    if truth["oom"]:
        mine = rows(got["oom"], truth["oom"]["device"])[-1]
        for k, column in OOM.items():
            if not knows_pools and (k.startswith(("free_", "largest_")) or k == "verdict") and k != "free_other_streams":
                continue
            c.equal("oom " + k, mine[column], truth["oom"][k])
        check_answer(c, got, truth["oom"], knows_pools)
    else:
        c.equal("oom", got["oom"], [])
    return c


def main(argv):
    program, generator, count = argv[0], argv[1], int(argv[2])
    seed = int(argv[3]) if len(argv) > 3 else 1
    n_bad = n_checks = done = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.pickle")
        k = 0
        while done < count:
            rng = random.Random(seed * 1000003 + k)
            k += 1
            options = random_options(rng)
            made = subprocess.run([sys.executable, generator, "-o", path] + options, capture_output=True)
            if made.returncode != 0:
                continue
            done += 1
            ran = subprocess.run([program, "snapshot", "overview", path, "--json"], capture_output=True)
            truth = json.load(open(path + ".truth.json"))
            wrong = ["exit %d: %s" % (ran.returncode, ran.stderr.decode()[:300])]
            if ran.returncode == 0:
                c = check(json.loads(ran.stdout), truth)
                wrong = c.wrong
                n_checks += c.n
            if wrong:
                n_bad += 1
                print("WRONG", " ".join(options))
                for w in wrong[:8]:
                    print("   ", w)
    print("%d snapshots, %d answers compared, %d snapshots wrong (seed %d)" % (done, n_checks, n_bad, seed))
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
