#!/usr/bin/env bash
# check-globals.sh — the library has no mutable globals: state is an argument. Looks at what the
# compiler put into writable sections, so a static inside a function is found too. Not for builds
# with sanitizers, which add tables of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
library=${1:-build/librecompute.a}
found=$(objdump -t "$library" 2>/dev/null |
    awk '/:     file format/ { file = $1 }
         $0 ~ / O \.(data|bss|tbss|tdata)[ \t.]/ && $0 !~ /\.data\.rel\.ro/ { print file, $NF }')
found=$(grep -v -F -f <(grep -v '^#' tools/globals-allow.txt 2>/dev/null || echo ///) <<<"$found" || true)
if [ -n "$found" ]; then
    echo "mutable globals (file, name):"
    echo "$found"
    exit 1
fi
