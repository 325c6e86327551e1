#!/usr/bin/env bash
# check-defs.sh — a row of src/defs/ has at most six columns, a line at most 160 characters.
set -euo pipefail
cd "$(dirname "$0")/.."
find src/defs -name '*.def' | LC_ALL=C sort | xargs awk '
    function wrong(text) {
        printf "%s:%d: %s\n", FILENAME, FNR, text
        bad = 1
    }
    # reads one line of a row: depth of brackets, commas between columns
    function scan(line,    i, c) {
        for (i = 1; i <= length(line); i++) {
            c = substr(line, i, 1)
            if (in_text && c == "\\") i++
            else if (c == "\"") in_text = !in_text
            else if (in_text) continue
            else if (c == "(") depth++
            else if (c == ")") { depth--; if (depth == 0) return }
            else if (c == "," && depth == 1) columns++
        }
    }
    length($0) > 160 { wrong("the line has " length($0) " characters") }
    depth == 0 && /^RC_[A-Z_]+\(/ { columns = 1; depth = 0; in_text = 0; start = FNR }
    /^RC_[A-Z_]+\(/ || depth > 0 {
        scan($0)
        if (depth == 0 && columns > 6) wrong("the row has " columns " columns")
    }
    END { exit bad }
'
