#!/usr/bin/env bash
# check-docs.sh — docs/generated/ is what `recompute list` prints today. With --bless, makes it so.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/recompute}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$program" list --csv >"$folder/lists"
while IFS=, read -r name _; do
    [ "$name" = list ] && continue
    {
        echo "<!-- made by \`recompute list $name --md\`; change the rows in src/defs/, then ./dev bless -->"
        echo
        "$program" list "$name" --md
    } >"$folder/$name.md"
done <"$folder/lists"
rm "$folder/lists"
if [ "${2:-}" = --bless ]; then
    mkdir -p docs/generated
    find docs/generated -name '*.md' -delete
    cp "$folder"/*.md docs/generated/
else
    diff -ru docs/generated "$folder" || {
        echo "docs/generated/ is out of date: run ./dev bless"
        exit 1
    }
fi
