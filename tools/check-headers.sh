#!/usr/bin/env bash
# check-headers.sh c|c++ — every public header compiles alone, as it is installed, and recompute.h includes
# them all: without a warning, in C11 or C++17, by the first compiler that is here (CC or CXX names another). The
# whole compiles by each, in C17 and C++20 too. Exit status 77 where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
c) ending=c compilers=${CC:-gcc clang} standards='c11 c17' ;;
c++) ending=cc compilers=${CXX:-g++ clang++} standards='c++17 c++20' ;;
*) echo "usage: check-headers.sh c|c++" >&2 && exit 2 ;;
esac
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
failed=0
fault() { echo "$*" && failed=1; }

mkdir -p "$folder/include/recompute/defs" # as install() in CMakeLists.txt lays them out
cp include/recompute/*.h "$folder/include/recompute"
cp src/defs/*.def "$folder/include/recompute/defs"
for header in include/recompute/*.h; do
    name=$(basename "$header" .h)
    printf '#include <recompute/%s.h>\n' "$name" "$name" >"$folder/$name.$ending" # twice: its guard holds
    [ "$name" = recompute ] && continue
    grep -q "^#include <recompute/$name.h>" include/recompute/recompute.h || fault "recompute.h lacks $name.h"
    [ "$(grep -c '^RC_EXTERN_C_\(BEGIN\|END\)$' "$header")" = 2 ] ||
        fault "$header: its declarations stand between RC_EXTERN_C_BEGIN and RC_EXTERN_C_END"
done

tried=
files=("$folder"/*."$ending")
for compiler in $compilers; do
    command -v "$compiler" >/dev/null || continue
    tried="$tried $compiler"
    for standard in $standards; do
        "$compiler" -std="$standard" -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I"$folder/include" \
            "${files[@]}" || fault "$compiler -std=$standard finds faults in public headers"
        files=("$folder/recompute.$ending")
    done
done
[ -n "$tried" ] || { echo "skipped: no compiler for $1 ($compilers)" && exit 77; }
exit $failed
