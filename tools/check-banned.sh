#!/usr/bin/env bash
# check-banned.sh — no call of tools/banned.txt outside the files it names, and no op by its name
# (RC_OP_linear) where ops are known by their facts alone. Comments and strings do not count, nor do
# names that are part of a longer one (rc_exit, my_free).
set -euo pipefail
cd "$(dirname "$0")/.."
find src cli include/recompute -name '*.[ch]' | LC_ALL=C sort | xargs awk '
    BEGIN {
        while ((getline line < "tools/banned.txt") > 0) {
            if (line ~ /^#/ || split(line, part, / *\| */) < 3) continue
            n = split(part[1], names, " ")
            for (i = 1; i <= n; i++) { where[names[i]] = part[2]; why[names[i]] = part[3] }
        }
    }
    function is_allowed(name,   n, i, prefix) {
        n = split(where[name], prefix, " ")
        for (i = 1; i <= n; i++)
            if (index(FILENAME, prefix[i]) == 1) return 1
        return 0
    }
    # The line without comments, strings and character constants.
    function code_of(line,   out, c, two) {
        out = ""
        while (length(line)) {
            two = substr(line, 1, 2)
            if (in_comment) {
                if (two == "*/") { in_comment = 0; line = substr(line, 3) } else line = substr(line, 2)
                continue
            }
            if (two == "/*") { in_comment = 1; line = substr(line, 3); continue }
            if (two == "//") break
            c = substr(line, 1, 1)
            if (c == "\"" || c == "\047") {
                line = substr(line, 2)
                while (length(line) && substr(line, 1, 1) != c)
                    line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
                line = substr(line, 2)
                out = out c c
                continue
            }
            out = out c
            line = substr(line, 2)
        }
        return out
    }
    FNR == 1 { in_comment = 0 }
    {
        code = code_of($0)
        if (code ~ /^[ \t]*#[ \t]*include/) next
        while (match(code, /[A-Za-z_][A-Za-z0-9_]*/)) {
            name = substr(code, RSTART, RLENGTH)
            before = RSTART > 1 ? substr(code, RSTART - 1, 1) : ""
            code = substr(code, RSTART + RLENGTH)
            if (name ~ /^RC_OP_[a-z]/ && FILENAME ~ /^src\/(policy|schedule|cost|plan|passes)\//) {
                printf "%s:%d: %s is banned here: an op is known by its facts (src/op/facts.h)\n", FILENAME, FNR, name
                bad = 1
            }
            if (!(name in where) || before == "." || before == ">" || is_allowed(name)) continue
            if (code !~ /^[ \t]*\(/ && name != "stdout" && name != "stderr") continue
            printf "%s:%d: %s is banned here: %s\n", FILENAME, FNR, name, why[name]
            bad = 1
        }
    }
    END { exit bad }
'
