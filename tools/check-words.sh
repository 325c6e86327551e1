#!/usr/bin/env bash
# check-words.sh — no word of tools/words.txt in code, comments, pages and names of files; every file or
# folder of this tree that one of them names is there; CHANGELOG.md has a heading per release, newest first.
set -euo pipefail
cd "$(dirname "$0")/.."
texts() {
    find CHANGELOG.md CMakeLists.txt README.md dev bench cli docs examples include src tests tools -type f \
        '(' -name '*.[ch]' -o -name '*.def' -o -name '*.md' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' \
        -o -name CMakeLists.txt -o -name dev -o -path 'tools/*.txt' ')' \
        ! -path 'tests/hf/*' ! -path 'tests/cases/*' ! -path tools/words.txt ! -name checkers.sh |
        LC_ALL=C sort
}
failed=0

texts | xargs awk '
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

# Paths from the root. A name with capitals or a star stands for many, one that ends in _ or -
# for all that begin so; src/megatron is in another tree.
while IFS=: read -r file line path; do
    path=${path#"${path%%[a-z]*}"}
    case $path in
    *[A-Z][A-Z]* | *'*'* | src/megatron*) continue ;;
    *[_-]) compgen -G "$path*" >/dev/null && continue ;;
    *) [ -e "$path" ] && continue ;;
    esac
    echo "$file:$line: there is no $path"
    failed=1
done < <(texts | xargs grep -HnoE '(^|[^A-Za-z0-9_./-])(bench|cli|docs|examples|include|src|tests|tools)/[A-Za-z0-9_./*-]*[A-Za-z0-9_*-]')

# "## Unreleased" may stand first; then each release with its date, and the newest is that of CMakeLists.txt.
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
awk -v version="$version" '
    function fault(text) { printf "CHANGELOG.md:%d: %s\n", FNR, text; bad = 1 }
    /^- / && !n { fault("an entry above the first heading") }
    /^## / {
        n++
        if ($2 == "Unreleased" && n > 1) fault("what is not released stands first")
        if ($2 == "Unreleased") next
        if ($0 !~ /^## [0-9.]+ — [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/) fault("write ## VERSION — YYYY-MM-DD")
        if (!newest) newest = $2
        if (date && $4 > date) fault("the newest release stands first")
        date = $4
    }
    END {
        if (newest != version) fault("the newest release is " newest ", that of CMakeLists.txt " version)
        exit bad
    }
' CHANGELOG.md || failed=1
exit $failed
