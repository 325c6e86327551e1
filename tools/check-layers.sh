#!/usr/bin/env bash
# check-layers.sh — every include obeys tools/layers.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
find src cli include/recompute -name '*.[ch]' | LC_ALL=C sort | xargs awk '
    BEGIN {
        while ((getline line < "tools/layers.txt") > 0) {
            if (line ~ /^#/ || line !~ /:/) continue
            n = split(line, word, /[ :]+/)
            kind = word[1]; name = word[2]
            if (line ~ /public:all/) sees_all_public[name] = 1
            if (kind == "layer") { is_layer[name] = 1; may[name, name] = 1 }
            for (i = 3; i <= n; i++) {
                if (kind == "layer") may[name, word[i]] = 1
                if (kind == "header") stage_of_header[name] = word[i]
                if (kind == "def") { owner[name, word[i]] = 1; has_owner[name] = 1 }
            }
        }
    }
    function stage_of(header) { return header in stage_of_header ? stage_of_header[header] : header }
    function wrong(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }
    FNR == 1 {
        split(FILENAME, part, "/")
        is_public = part[1] == "include"
        header = part[3]; sub(/\.h$/, "", header)
        folder = part[1] == "cli" ? "cli" : is_public ? stage_of(header) : part[2]
        is_umbrella = is_public && header == "recompute"
        if (!is_umbrella && !(folder in is_layer)) wrong("folder " folder " has no row in tools/layers.txt")
    }
    is_umbrella { next }
    /^[ \t]*#[ \t]*include[ \t]+<recompute\// {
        name = $0; sub(/.*<recompute\//, "", name); sub(/\.h>.*/, "", name)
        if (name == "recompute" && folder != "cli") wrong("our own files include the headers they need, not recompute.h")
        else if (!(folder in sees_all_public) && !((folder, stage_of(name)) in may))
            wrong(folder " may not include " stage_of(name) " (<recompute/" name ".h>); see tools/layers.txt")
    }
    /^[ \t]*#[ \t]*include[ \t]+"/ {
        name = $0; sub(/[^"]*"/, "", name); sub(/".*/, "", name)
        if (folder == "cli" && name !~ /\//) next
        if (split(name, word, "/") < 2) { wrong("an include names its folder: \"" folder "/" name "\""); next }
        if (word[1] == "defs") {
            sub(/\.def$/, "", word[2])
            if (!(word[2] in has_owner)) wrong("list " word[2] ".def has no owner in tools/layers.txt")
            else if (!((word[2], folder) in owner) && folder != "cli")
                wrong(word[2] ".def is expanded by its owner only; call its functions")
            next
        }
        if (!((folder, word[1]) in may)) wrong(folder " may not include " word[1] " (" name "); see tools/layers.txt")
    }
    END { exit bad }
'
