#!/usr/bin/env bash
# check-circles.sh BUILD — no two files of one folder need each other, by an include or by a call.
#
# A file is NAME.c with NAME.h. Calls are read from the objects of BUILD, so macros count by what they call.
# tools/circles-allow.txt lists circles that remain, a line each: FOLDER NAME NAME...
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

find src cli -name '*.[ch]' | LC_ALL=C sort >"$folder/sources"
# the object of a source that is gone may still lie there
find "$build" -name '*.c.o' | sed -n 's#.*\.dir/\(\(src\|cli\)/.*\)\.o$#\1 &#p' | LC_ALL=C sort |
    LC_ALL=C join - "$folder/sources" | cut -d ' ' -f 2 >"$folder/objects"
[ -s "$folder/objects" ] || { echo "check-circles.sh: no objects of src/ or cli/ under $build" && exit 1; }

{
    xargs grep -HoE '^[ \t]*#[ \t]*include[ \t]+"[^"]+"' <"$folder/sources" |
        sed -E 's/^([^:]+):[^"]*"([^"]+)"/include \1 \2/'
    xargs nm -A -P -g <"$folder/objects" | sed -E 's#^.*\.dir/([^ ]*)\.o: ([^ ]+) ([A-Za-z]).*#symbol \1 \2 \3#'
} | awk -v allowed="$(grep -v '^#' tools/circles-allow.txt 2>/dev/null || true)" '
    function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
    function name_of(path) { sub(/.*\//, "", path); sub(/\.[ch]$/, "", path); return path }
    function need(from, to, why) {
        if (from == to || folder_of(from) != folder_of(to) || (from, to) in because) return
        because[from, to] = why
        is_node[from] = is_node[to] = 1
        needs[from] = needs[from] " " to
    }
    function file_of(path) { return folder_of(path) "/" name_of(path) }
    $1 == "include" {
        target = $3 ~ /\// ? "src/" $3 : folder_of($2) "/" $3
        if (target ~ /\.h$/) need(file_of($2), file_of(target), "includes " name_of(target) ".h")
    }
    $1 == "symbol" && $4 == "U" { n_uses++; user[n_uses] = file_of($2); used[n_uses] = $3 }
    $1 == "symbol" && $4 != "U" { home[folder_of($2), $3] = file_of($2) }
    function reach(from, at,    word, i, n) { # marks all that `at` needs
        n = split(needs[at], word, " ")
        for (i = 1; i <= n; i++)
            if (!((from, word[i]) in reaches)) { reaches[from, word[i]] = 1; reach(from, word[i]) }
    }
    function is_allowed(names, line,    word, i, n) {
        n = split(names, word, " ")
        for (i = 1; i <= n; i++)
            if (index(" " line " ", " " word[i] " ") == 0) return 0
        return 1
    }
    END {
        for (i = 1; i <= n_uses; i++)
            if ((folder_of(user[i]), used[i]) in home)
                need(user[i], home[folder_of(user[i]), used[i]], "calls " used[i])
        for (node in is_node) reach(node, node)
        n_lines = split(allowed, lines, "\n")
        for (node in is_node) {
            if (!((node, node) in reaches) || node in is_told) continue
            names = folder_of(node); edges = ""
            for (other in is_node) {
                if (!((node, other) in reaches) || !((other, node) in reaches)) continue
                is_told[other] = 1
                names = names " " name_of(other)
                n = split(needs[other], word, " ")
                for (i = 1; i <= n; i++)
                    if ((word[i], node) in reaches && (node, word[i]) in reaches)
                        edges = edges sprintf("    %s %s of %s\n", name_of(other), because[other, word[i]],
                            name_of(word[i]))
            }
            for (i = 1; i <= n_lines; i++)
                if (is_allowed(names, lines[i])) { is_needed[i] = 1; break }
            if (i <= n_lines) continue
            printf "%s: these files need each other\n%s", names, edges
            bad = 1
        }
        for (i = 1; i <= n_lines; i++)
            if (!(i in is_needed)) { printf "tools/circles-allow.txt: \"%s\" is needed no more\n", lines[i]; bad = 1 }
        exit bad
    }
'
