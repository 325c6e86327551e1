"""Checks what `recompute check` prints for machines: --sarif against the rules of SARIF 2.1.0 for the
objects that are used (OASIS standard, sections 3.13 to 3.30), --json against docs/check.md, and columns
of SARIF against the line they are of. Usage: schemas.py RECOMPUTE FOLDER. Skips (77) without jsonschema."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

try:
    import jsonschema
except ImportError:
    print("skipped: this Python lacks a peer; ./dev peers installs them all")
    sys.exit(77)


def of(required, **optional):
    """An object with these members and no others."""
    every = {**required, **optional}
    return {"type": "object", "required": list(required), "properties": every,
            "additionalProperties": False}


def some(kind, **more):
    return {"type": "array", "items": kind, **more}


TEXT = {"type": "string", "minLength": 1}
LEVEL = {"enum": ["error", "warning", "note"]}
COUNT = {"type": "integer", "minimum": 1}
MESSAGE = of({"text": TEXT})
URI = {"type": "string", "pattern": "^([A-Za-z0-9._~/-]|%[0-9A-F]{2})+$"}
SARIF = of({
    "version": {"const": "2.1.0"},
    "runs": some(of({
        "tool": of({"driver": of({"name": TEXT, "version": TEXT, "rules": some(of({
            "id": TEXT, "shortDescription": MESSAGE,
            "defaultConfiguration": of({"level": LEVEL})}), uniqueItems=True)})}),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": some(of({
            "ruleId": TEXT, "level": LEVEL, "message": MESSAGE,
            "locations": some(of({"physicalLocation": of(
                {"artifactLocation": of({"uri": URI})},
                region=of({"startLine": COUNT, "startColumn": COUNT, "endColumn": COUNT}))}))}))}),
        minItems=1)}, **{"$schema": TEXT})

OPTIONAL_TEXT = {"type": ["string", "null"]}
OPTIONAL_COUNT = {"type": ["integer", "null"], "minimum": 1}
PLACE = {"file": TEXT, "line": OPTIONAL_COUNT, "column": OPTIONAL_COUNT, "width": OPTIONAL_COUNT}
MAP = {"type": ["object", "null"]}
FINDING = of({"rule": TEXT, "also_known_as": OPTIONAL_TEXT, "level": LEVEL,
              "layer": {"enum": ["core", "cli", "bridge", "build", "advice"]},
              "is_first": {"type": "boolean"}, **PLACE, "reason": TEXT, "fix": OPTIONAL_TEXT,
              "settings": {"type": "object"}, "source": OPTIONAL_TEXT})
HEAD = {"file": TEXT, "target": {"enum": ["core", "megatron-lm", "bridge"]}, "megatron": TEXT,
        "transformer_engine": OPTIONAL_TEXT}
JUDGED = of({**HEAD, "verdict": {"enum": ["accept", "reject"]}, "rule": OPTIONAL_TEXT,
             "exception": OPTIONAL_TEXT, "effective": MAP, "effective_other": MAP,
             "findings": some(FINDING)},
            settings=some(of({"key": TEXT, "value": TEXT, "source": TEXT, **PLACE})))
UNREADABLE = of({**HEAD, **PLACE, "verdict": {"const": "unreadable"}, "error": TEXT})
REPORT = of({"version": {"const": 1}, "status": {"enum": [0, 1, 2]},
             "files": some({"oneOf": [JUDGED, UNREADABLE]}, minItems=1)})

INPUTS = {
    "a b/wide é.yaml": "model: {note: \"日本語\", recompute_granularity: full, a: 1}\n",
    "good.yaml": "model:\n  num_layers: 4\n  recompute_granularity: null\n",
    "broken.yaml": "model: [1\n",
    "job.sh": "torchrun p.py --num-layers 4 --recompute-granularity full --lr-decay-style nosuch\n",
    "empty.json": "",
}


def run(program, folder, *words):
    done = subprocess.run([program, "check", *words], cwd=folder, capture_output=True, check=False)
    return done.returncode, done.stdout.decode("utf-8")


def marked(result, folder):
    """The characters of the source that a result's region is about."""
    place = result["locations"][0]["physicalLocation"]
    region = place.get("region")
    path = urllib.parse.unquote(place["artifactLocation"]["uri"])
    if region is None or not (folder / path).exists():
        return None
    line = (folder / path).read_text(encoding="utf-8").split("\n")[region["startLine"] - 1]
    return line[region["startColumn"] - 1:region["endColumn"] - 1]


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, text in INPUTS.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        status, out = run(program, folder, ".", "--sarif")
        sarif = json.loads(out)
        jsonschema.validate(sarif, SARIF)
        assert status == 2, status
        rules = {rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]}
        results = sarif["runs"][0]["results"]
        for result in results:
            assert result["ruleId"] in rules or result["ruleId"] == "unreadable-input", result
        meant = [marked(result, folder) for result in results if "%C3%A9" in json.dumps(result)]
        assert meant and set(meant) == {"full"}, meant
        for words in ([".", "--json"], [".", "--json", "--origins", "--megatron", "0.16", "--te", "2.9"]):
            status, out = run(program, folder, *words)
            report = json.loads(out)
            jsonschema.validate(report, REPORT)
            assert report["status"] == status == 2, status
            assert len(report["files"]) == len(INPUTS)
        status, out = run(program, folder, "good.yaml", "--json")
        jsonschema.validate(json.loads(out), REPORT)
        assert status == 0, status
        status, out = run(program, folder, "--json", "--sarif", "good.yaml")
        assert status == 2 and out == "", (status, out)
    print("4 reports agree with their schemas")


main()
