#!/usr/bin/env bash
# check-prototypes.sh — every prototype of a public header has a comment above it, or above its group (what
# follows without an empty line), and a function that can fail says under fixed headings what it takes, gives
# and fails with. Every parameter has a name. Nothing is said behind a prototype or a field.
#
#   errors  of every function that returns rc_code, which is RC_MUST_CHECK
#   takes   where it has an input other than its noun: rc_graph_verify takes an rc_graph, needless to say
#   gives   where it writes through a pointer that is no arena, error or stream, nor its object, which comes first
#
# They stand in the order takes, gives, shapes, errors, memory, cost, source. No comment stands above another,
# and no function in two places.
set -euo pipefail
cd "$(dirname "$0")/.."
LC_ALL=C awk '
    function fault(line, text) { printf "%s:%d: %s\n", FILENAME, line, text; bad = 1 }
    function has(heading) { return comment ~ ("(^|\n)[ */]*" heading " ") }
    # The headings stand in one order.
    function in_order(name,   lines, n, i, heading, at, last) {
        n = split(comment, lines, /\n/)
        for (i = 1; i <= n; i++) {
            heading = lines[i]
            if (!sub(/^[ *\/]+/, "", heading) || !match(heading, /^[a-z]+  /)) continue
            sub(/ .*/, "", heading)
            at = index("takes gives shapes errors memory cost source ", heading " ")
            if (at && at < last) fault(first, name ": " heading " stands too late")
            if (at) last = at
        }
    }
    function trimmed(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }

    # One parameter: sets needs_takes or needs_gives.
    function look_at(param, name,   type) {
        param = trimmed(param)
        if (param == "void" || param == "...") return
        if (param !~ /^(const |struct )*[a-z_A-Z0-9]+( const)?[ *].*[a-z_A-Z0-9]+(\[[^]]*\])*$/ || param ~ /\*$/)
            fault(first, name ": a parameter without a name: " param)
        type = param
        sub(/^const /, "", type)
        sub(/[^a-z_A-Z0-9].*/, "", type)
        if (type ~ /^(rc_arena|rc_error|FILE)$/) return
        if (param !~ /\*\*/ && index(name, type "_") == 1) return
        if (is_first && param ~ /^rc_[a-z_]+ \*[a-z_]+$/) return
        if (param ~ /\*/ && param !~ /^const [^*]*\*[^*]*$/ && param !~ /const \*[a-z_]+$/) needs_gives = 1
        else needs_takes = 1
    }

    function judge(text,   name, list, n, i, params) {
        gsub(/[ \t\n]+/, " ", text)
        name = text
        sub(/ ?\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        params = text
        sub(/^[^(]*\(/, "", params)
        sub(/\)( RC_PRINTF\(.*\))?;.*/, "", params)
        if (name in stands_at) fault(first, name ": stands in " stands_at[name] " too")
        stands_at[name] = FILENAME
        if (comment == "") { fault(first, name ": no comment above it"); return }
        in_order(name)
        needs_takes = needs_gives = 0
        n = split(params, list, /,/)
        for (i = 1; i <= n; i++) { is_first = i == 1; look_at(list[i], name) }
        if (text !~ /RC_API rc_code rc_/ || name == "rc_fail") return # which gives back the code it is given
        if (text !~ /^RC_MUST_CHECK/) fault(first, name ": no RC_MUST_CHECK")
        if (!has("errors")) fault(first, name ": no errors")
        if (needs_takes && !has("takes")) fault(first, name ": no takes")
        if (needs_gives && !has("gives")) fault(first, name ": no gives")
    }

    FNR == 1 { in_comment = in_prototype = in_struct = ended_at = 0; comment = "" }
    in_comment { comment = comment "\n" $0; if (/\*\//) { in_comment = 0; ended_at = FNR }; next }
    /^[ \t]*\/\*/ && !in_prototype {
        if (ended_at == FNR - 1 && FNR > 1) fault(ended_at, "a comment on nothing, above another")
        comment = $0
        in_comment = !/\*\//
        if (!in_comment) ended_at = FNR
        next
    }
    /^(RC_MUST_CHECK|RC_API)/ && !in_prototype { in_prototype = 1; first = FNR; prototype = "" }
    in_prototype {
        prototype = prototype " " $0
        if (/;/) {
            if (/;.*\/\*/) fault(FNR, "a comment behind a prototype")
            judge(trimmed(prototype))
            in_prototype = 0
        }
        next
    }
    /^(typedef )?struct .*\{$/ || (in_struct && /^ +struct \{$/) { in_struct++ }
    in_struct && /^ *\}/ { in_struct-- }
    in_struct && /[;,] *\/\*/ { fault(FNR, "a comment behind a field") }
    { comment = "" }
    END { exit bad }
' include/recompute/*.h
