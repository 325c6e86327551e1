#!/usr/bin/env bash
# user.sh BUILD c|c++ — installs the library into an empty folder and builds user.c with it, as README.md says.
set -euo pipefail
build=$1
source_dir=$(cd "$(dirname "$0")" && pwd)
case $2 in
c) compilers=${CC:-gcc clang} standard=c11 ;;
c++) compilers=${CXX:-g++ clang++} standard=c++17 ;;
esac
for compiler in $compilers none; do
    command -v "$compiler" >/dev/null && break
done
[ "$compiler" != none ] || { echo "skipped: no compiler for $2 ($compilers)" && exit 77; }
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cmake --install "$build" --prefix "$folder" >/dev/null
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$folder" -name recompute.pc)")
libraries=$(pkg-config --define-prefix --variable=libdir recompute)
# shellcheck disable=SC2046
"$compiler" -x "$2" -std="$standard" -Wall -Wextra -Wpedantic -Werror -o "$folder/user" "$source_dir/user.c" \
    -x none $(pkg-config --define-prefix --cflags --libs recompute) -Wl,-rpath,"$libraries"
"$folder/user"
