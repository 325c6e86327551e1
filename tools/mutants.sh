#!/usr/bin/env bash
# mutants.sh [PATTERN] — does a test fail for every fault of tools/mutants.txt?
#
# Each fault is put into a copy of the tree by itself, what changed is built again, and tests run until
# one fails: first the one that should, then the quick ones, then everything else that needs no peer. A
# fault that no test sees has survived, and so has the claim that the tests prove what it breaks.
#
# PATTERN (a grep -Ei expression) chooses faults by description or file; RC_MUTANTS names another table.
# Exit 0: all were caught. 1: one survived, or is stale: its text does not occur exactly once, or it does
# not compile.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD work=$PWD/build/mutants table=${RC_MUTANTS:-tools/mutants.txt} pattern=${1:-.} jobs=${JOBS:-$(nproc)}
tree=$work/tree build=$work/tree/build
mkdir -p "$tree"

# By content, not by time: a file that a fault was in must count as changed when it is put right.
copy_if_other() {
    cmp -s "$root/$1" "$tree/$1" && return
    mkdir -p "$(dirname "$tree/$1")" && cp "$root/$1" "$tree/$1" && chmod --reference="$root/$1" "$tree/$1"
}

copy_tree() {
    local file
    (cd "$tree" && find . -path ./build -prune -o -type f -print) | while read -r file; do
        [ -e "$root/$file" ] || rm "$tree/$file"
    done
    { git ls-files -co --exclude-standard 2>/dev/null || find . -path ./build -prune -o -type f -print; } |
        while read -r file; do
            [ ! -f "$file" ] || copy_if_other "$file"
        done
}

make() { # TARGET...
    cmake --build "$build" -j "$jobs" ${1:+--target "$@"} >"$work/build.log" 2>&1
}

# Runs tests; prints the first that fails.
first_failure() { # CTEST-ARGUMENTS...
    ctest --test-dir "$build" -j "$jobs" --timeout 900 --stop-on-failure "$@" >"$work/test.log" 2>&1 && return
    sed -nE 's/^.*Test +#[0-9]+: ([^ ]+) \.+ *\*\*\*Timeout.*$/\1 (hangs)/p; t
        s/^.*Test +#[0-9]+: ([^ ]+) \.+ *\*\*\*.*$/\1/p' "$work/test.log" | head -1
}

# The program of a test: law.clip is test_law_clip, op.watch test_op_watch, op.linear.naive check_ops.
target_of() { # TEST
    case $1 in
    law.* | unit.*) echo "test_${1/./_}" ;;
    op.*.library) echo check_library ;;
    op.*.*) echo check_ops ;;
    op.*) echo "test_op_${1#op.}" ;;
    *) echo all ;;
    esac
}

# What fails with the fault in place, or "" (nothing does), or "!" (it does not compile).
judge() { # the test that should
    local found
    if [ -n "$1" ]; then
        make "$(target_of "$1")" || { echo '!'; return; }
        found=$(first_failure -R "^${1//./\\.}\$")
        [ -n "$found" ] && { echo "$found"; return; }
    fi
    make || { echo '!'; return; }
    found=$(first_failure -L quick -R '^(law|op|unit)\.')
    [ -n "$found" ] && { echo "$found"; return; }
    found=$(first_failure -R '^law\.')
    [ -n "$found" ] && { echo "$found"; return; }
    first_failure -L quick -E '^(style|law|op|unit)\.'
}

count_of() { # TEXT PART: how often PART occurs
    local rest=${1//"$2"/}
    echo $(((${#1} - ${#rest}) / ${#2}))
}

try() { # uses what, file, seen_by, old, new
    local text found
    [ -n "$what" ] || return
    grep -qEi -e "$pattern" <<<"$what $file" || return
    text=$(cat "$tree/$file" && printf x) # command substitution would eat the last newlines
    text=${text%x}
    if [ -z "$old" ] || [ "$(count_of "$text" "$old")" != 1 ]; then
        n_stale=$((n_stale + 1))
        printf 'STALE     %-28s %s\n' "$file" "$what: its text occurs $(count_of "$text" "$old") times"
        return
    fi
    printf '%s' "${text/"$old"/"$new"}" >"$tree/$file"
    found=$(judge "$seen_by")
    printf '%s' "$text" >"$tree/$file"
    case $found in
    '')
        n_survived=$((n_survived + 1))
        printf 'SURVIVED  %-28s %s\n' "$file" "$what"
        ;;
    '!')
        n_stale=$((n_stale + 1))
        printf 'STALE     %-28s %s: it does not compile\n' "$file" "$what"
        cp "$work/build.log" "$work/stale.log"
        ;;
    *)
        n_killed=$((n_killed + 1))
        printf 'killed    %-28s %s\n' "$found" "$what"
        ;;
    esac
}

copy_tree
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRC_WERROR=OFF >"$work/build.log" 2>&1 &&
    make || { cat "$work/build.log"; exit 1; }
broken=$(first_failure -R '^(law|op|unit)\.')
[ -z "$broken" ] || { echo "$broken fails without any fault" >&2; exit 1; }

n_killed=0 n_survived=0 n_stale=0 what='' file='' seen_by='' old='' new=''
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '* '*) try; what=${line#'* '} file='' seen_by='' old='' new='' ;;
    '@ '*) file=${line#'@ '} ;;
    '? '*) seen_by=${line#'? '} ;;
    '- '*) old=$old${old:+$'\n'}${line#'- '} ;;
    '+ '*) new=$new${new:+$'\n'}${line#'+ '} ;;
    esac
done <"$table"
try
printf '\n%d faults: %d killed, %d survived, %d stale\n' $((n_killed + n_survived + n_stale)) \
    "$n_killed" "$n_survived" "$n_stale"
[ $((n_survived + n_stale)) = 0 ]
