#!/usr/bin/env bash
# run-case.sh PROGRAM FOLDER — one test of the command line: runs FOLDER/cmd with a shell in an empty
# folder and compares with FOLDER/stdout, FOLDER/stderr and FOLDER/exit, where they exist (no exit
# file means 0). In cmd, PROGRAM is found by its name and $RC_SOURCE_DIR this source tree; files of
# FOLDER/files/ are there. RC_BLESS=1 writes the three files instead.
set -uo pipefail
program=$(realpath "$1")
folder=$(realpath "$2")
RC_SOURCE_DIR=$(cd "$(dirname "$0")/.." && pwd)
export RC_SOURCE_DIR NO_COLOR=1 LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
mkdir "$work/bin" "$work/empty"
ln -s "$program" "$work/bin/$(basename "$program")"
[ -d "$folder/files" ] && cp -r "$folder/files/." "$work/empty"
export PATH=$work/bin:$PATH

(cd "$work/empty" && bash -e "$folder/cmd") >"$work/stdout" 2>"$work/stderr" </dev/null
echo $? >"$work/exit"
# The source folder's path differs from machine to machine.
sed -i "s|$RC_SOURCE_DIR|SOURCE|g" "$work/stdout" "$work/stderr"

if [ "${RC_BLESS:-}" = 1 ]; then
    for name in stdout stderr exit; do
        if [ -s "$work/$name" ] && [ "$(cat "$work/$name")" != "$([ $name = exit ] && echo 0)" ]; then
            cp "$work/$name" "$folder/$name"
        else
            rm -f "$folder/$name"
        fi
    done
    exit 0
fi

# Text in a golden file is itself; a line that reads "..." stands for any lines.
compare() { # EXPECTED ACTUAL NAME
    if diff -u "$1" "$2" >"$work/diff"; then
        return 0
    fi
    if grep -qx '\.\.\.' "$1" && [[ "$(cat "$2")" == $(sed -e 's/[][\\*?]/\\&/g' -e 's/^\.\.\.$/*/' "$1") ]]; then
        return 0
    fi
    echo "$3 differs:"
    cat "$work/diff"
    return 1
}

failed=0
[ -f "$folder/exit" ] || echo 0 >"$work/no-exit"
compare "$(if [ -f "$folder/exit" ]; then echo "$folder/exit"; else echo "$work/no-exit"; fi)" "$work/exit" exit || failed=1
: >"$work/nothing"
for name in stdout stderr; do
    expected=$folder/$name
    [ -f "$expected" ] || expected=$work/nothing
    compare "$expected" "$work/$name" $name || failed=1
done
exit $failed
