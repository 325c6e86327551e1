#!/usr/bin/env bash
# skipped.sh JUNIT.xml — how many tests of a ctest run were skipped, and why, by reason.
#
# A test that skips says so in a line "skipped: REASON"; so does a part of a cmocka program, before it
# calls skip(). Exit 1 where one gives no reason.
set -euo pipefail
awk '
function decoded(text) {
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
    gsub(/&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
    return text
}
function count(what) {
    if (reason == "") { reason = "no reason was given"; is_silent = 1 }
    if (!(reason in n)) order[++n_reasons] = reason
    n[reason]++
    names[reason] = names[reason] " " what
}
/^\t<testcase / {
    n_tests++
    name = $0; sub(/^.*<testcase name="/, "", name); sub(/".*$/, "", name)
    is_skipped = 0; reason = ""
}
/^\t\t<skipped / { is_skipped = 1 }
{ sub(/^\t\t<system-out>/, ""); sub(/<\/system-out>$/, "") }
/^skipped: / { reason = decoded(substr($0, 10)) }
/^\[ RUN      \] / { part = $4 }
/^\[  SKIPPED \] / && $4 == part { n_parts++; count(name ":" part); reason = part = "" }
/<\/testcase>/ && is_skipped { n_skipped++; count(name) }
END {
    printf "\nskipped: %d of %d tests", n_skipped, n_tests
    if (n_parts) printf ", and %d %s of others", n_parts, n_parts == 1 ? "part" : "parts"
    print ""
    for (i = 1; i <= n_reasons; i++) {
        printf "  %3d  %s\n", n[order[i]], order[i]
        n_words = split(names[order[i]], words, " ")
        line = "      "
        for (w = 1; w <= n_words; w++) {
            if (length(line " " words[w]) > 110) { print line; line = "      " }
            line = line " " words[w]
        }
        print line
    }
    exit is_silent
}' "$1"
