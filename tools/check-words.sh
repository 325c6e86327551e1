#!/usr/bin/env bash
# check-words.sh — no word of tools/words.txt in code, comments, pages or names; every file and folder of
# ours that one of them names is there; CHANGELOG.md begins with a heading, and has one of this version.
set -euo pipefail
cd "$(dirname "$0")/.."
texts() {
    find CHANGELOG.md CMakeLists.txt README.md dev bench cli docs examples include src tests tools \
        '(' -name '*.[ch]' -o -name '*.def' -o -name '*.md' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' \
        -o -name 'CMakeLists.txt' -o -name dev -o -path 'tools/*.txt' ')' -type f \
        ! -path 'tests/hf/*' ! -path 'tests/cases/*' ! -path tools/words.txt ! -path tests/style/checkers.sh 2>/dev/null
}
failed=0

texts | LC_ALL=C sort | xargs awk '
    BEGIN {
        while ((getline line < "tools/words.txt") > 0) {
            if (line ~ /^#/ || split(line, part, / *\| */) < 2) continue
            n = split(part[1], words, " ")
            for (i = 1; i <= n; i++) instead[words[i]] = part[2]
        }
    }
    {
        n = split(tolower(FNR == 1 ? FILENAME " " $0 : $0), words, /[^a-z]+/)
        for (i = 1; i <= n; i++)
            if (words[i] in instead) {
                printf "%s:%d: \"%s\": write %s\n", FILENAME, FNR, words[i], instead[words[i]]
                bad = 1
            }
    }
    END { exit bad }
' || failed=1

# src/schedule/emit.c and its like; a name with capitals or a star stands for many. src/megatron is another tree.
while IFS=: read -r file line path; do
    path=${path#"${path%%[a-z]*}"}
    case $path in
    *[A-Z][A-Z]* | *'*'* | src/megatron*) continue ;;
    esac
    [ -e "$path" ] || compgen -G "$path*" >/dev/null || {
        echo "$file:$line: there is no $path"
        failed=1
    }
done < <(texts | xargs grep -noE '(^|[^A-Za-z0-9_./-])(bench|cli|docs|examples|include|src|tests|tools)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*/]')

version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
heading=$(grep -m1 '^[-#][-#]* *[^ C]' CHANGELOG.md)
case $heading in
"## Unreleased" | "## $version — "*) ;;
*) echo "CHANGELOG.md: \"$heading\" stands where \"## Unreleased\" or \"## $version — DATE\" belongs" && failed=1 ;;
esac
exit $failed
