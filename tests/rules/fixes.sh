#!/usr/bin/env bash
# fixes.sh PROGRAM FOLDER — what --fix prints is applied to the bad sample of every rule, and checked
# again: no finding is left that had settings to correct it, and the exit status is the one --fix foretold.
set -uo pipefail
program=$1
samples=$2
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
wrong=0

# An argument and its values go from LINE:COLUMN of a script.
leave_out() { # FILE LINE COLUMN
    awk -v line="$2" -v column="$3" 'NR != line { print; next } {
        before = substr($0, 1, column - 1); rest = substr($0, column)
        sub(/^[^ ]+/, "", rest)
        while (rest ~ /^ +[^-\\ ]/) sub(/^ +[^ ]+/, "", rest)
        print before rest }' "$1" >"$work/shorter" && mv "$work/shorter" "$1"
}

# Lines to leave out, from the last one; then variables in front, and arguments behind.
patch_script() { # FILE PATCH
    sed -n 's/^# leave out .*:\([0-9]*\):\([0-9]*\))$/\1 \2/p' "$2" | sort -k1,1nr -k2,2nr |
        while read -r line column; do leave_out "$1" "$line" "$column"; done
    { grep '^export ' "$2"; cat "$1"; } >"$work/longer"
    mv "$work/longer" "$1"
    grep -v -e '^#' -e '^export ' "$2" | sed '$!s/$/ \\/; 1s/^/ \\\n/' >"$work/arguments"
    if [ -s "$work/arguments" ]; then
        truncate -s -1 "$1" # the end of the last line
        cat "$work/arguments" >>"$1"
    fi
}

for bad in "$samples"/*.bad.*; do
    sample=$work/sample.${bad##*.}
    cp "$bad" "$sample"
    read -ra versions < <(sed -n 's/^# \(te\|megatron\) \(.*\)/--\1 \2/p' "$bad" | tr '\n' ' '; echo)
    "$program" check "$sample" "${versions[@]}" --fix --strict >"$work/patch" 2>"$work/hand"
    foretold=$?
    [ -s "$work/patch" ] || continue
    "$program" check "$sample" "${versions[@]}" --json >"$work/before"
    overrides=()
    if [ "${bad##*.}" = sh ]; then
        patch_script "$sample" "$work/patch"
    else
        mapfile -t overrides < <(sed 's/^export /env./' "$work/patch")
    fi
    "$program" check "$sample" "${overrides[@]}" "${versions[@]}" --strict --json >"$work/after"
    status=$?
    name=$(basename "$bad" | tr _ -)
    rule=${name%%.*}
    if grep "\"rule\": \"$rule\"" "$work/before" | grep -q '"settings": {"' &&
        grep "\"rule\": \"$rule\"" "$work/after" | grep -qv '"level": "note"'; then
        echo "$bad: still there after"; cat "$work/patch"; wrong=1
    fi
    if [ $status != $foretold ]; then
        echo "$bad: status $status, --fix foretold $foretold:"; cat "$work/patch" "$work/after"; wrong=1
    fi
done
exit $wrong
