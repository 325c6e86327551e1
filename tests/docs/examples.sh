#!/usr/bin/env bash
# examples.sh PROGRAM — runs the examples of README.md and docs/*.md in an empty folder that sees
# examples/. Lines with words in capitals, which the reader fills in, are left out; a trailing
# "# exit N" says that N is the right status.
set -uo pipefail
program=$(realpath "$1")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir "$work/bin" "$work/run"
ln -s "$program" "$work/bin/recompute"
ln -s "$source_dir/examples" "$work/run/examples"
export PATH=$work/bin:$PATH
n=0 failed=0
while IFS= read -r line; do
    wanted=$(sed -n 's/.*# exit \([0-9]*\)$/\1/p' <<<"$line")
    (cd "$work/run" && bash -c "$line") >"$work/out" 2>&1 </dev/null
    got=$?
    n=$((n + 1))
    if [ "$got" != "${wanted:-0}" ]; then
        echo "status $got of: $line"
        tail -5 "$work/out"
        failed=1
    fi
done < <(awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on && /^recompute / && !/[A-Z][A-Z][A-Z]/' "$source_dir/README.md" "$source_dir"/docs/*.md)
echo "$n examples"
[ "$n" -gt 0 ] && exit $failed
