#!/usr/bin/env bash
# check-size.sh — no function or file passes its cap; exceptions stand in tools/size-allow.txt.
# The checker is a C program (tools/size.c), compiled on the spot unless one is given.
set -euo pipefail
cd "$(dirname "$0")/.."
checker=${1:-}
if [ -z "$checker" ]; then
    folder=$(mktemp -d)
    trap 'rm -r "$folder"' EXIT
    checker=$folder/size
    ${CC:-cc} -std=gnu11 -O1 -o "$checker" tools/size.c
fi
find src cli tests bench include tools -name '*.[ch]' | LC_ALL=C sort |
    xargs "$checker" tools/size-allow.txt
