#!/usr/bin/env bash
# checkers.sh — every checker of tools/ finds the fault it is there for, in a tree made of faults.
set -uo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
size=$(realpath "$1")
tree=$(mktemp -d)
trap 'rm -r "$tree"' EXIT
mkdir -p "$tree"/{tools,src/cost,src/base,cli,include/recompute,tests,bench}
cp "$source_dir"/tools/{check-*.sh,layers.txt,banned.txt,size-allow.txt,size.c} "$tree/tools"
grep '^#' "$source_dir/tools/size-allow.txt" >"$tree/tools/size-allow.txt"
failed=0

# expect NAME PATTERN COMMAND...: the command fails and prints the pattern
expect() {
    local name=$1 pattern=$2 text
    shift 2
    if text=$("$@" 2>&1); then
        echo "$name: found nothing"
        failed=1
    elif ! grep -q -- "$pattern" <<<"$text"; then
        printf '%s: "%s" is missing in:\n%s\n' "$name" "$pattern" "$text"
        failed=1
    fi
}

# passes NAME COMMAND...
passes() {
    local name=$1 text
    shift
    text=$("$@" 2>&1) || { printf '%s: fails on a clean tree:\n%s\n' "$name" "$text"; failed=1; }
}

cat >"$tree/src/cost/bytes.c" <<'END'
#include <recompute/arena.h>
#include "base/num.h"
/* malloc(1) in a comment and "malloc(1)" in a string are fine */
int rc_malloc(int n) { const char *text = "malloc(1) /*"; return text[n] == '"'; }
END
echo 'int rc_x;' >"$tree/src/base/num.h"
for name in layers banned; do passes "$name" "$tree/tools/check-$name.sh"; done
passes size "$tree/tools/check-size.sh" "$size"

cat >"$tree/src/cost/bytes.c" <<'END'
#include "exec/kernel.h"
#include "live.h"
#include <recompute/train.h>
void *take(void) { return malloc(1); }
int say(int a, int b, int c, int d, int e, int f, int g)
{
    if (op == RC_OP_linear)
        return 0;
    return a ? b : c ? d : e ? f : g ? a : b && c && d && e && f && g || a || b || c || d || e || f || g;
}
END
{
    echo 'void long_one(void)'
    echo '{'
    for _ in $(seq 80); do echo '    ;'; done
    echo '}'
} >>"$tree/src/cost/bytes.c"
for _ in $(seq 601); do echo; done >"$tree/src/cost/long.c"
expect layers 'cost may not include exec' "$tree/tools/check-layers.sh"
expect layers 'names its folder: "cost/live.h"' "$tree/tools/check-layers.sh"
expect layers 'cost may not include train' "$tree/tools/check-layers.sh"
expect banned 'bytes.c:4: malloc is banned' "$tree/tools/check-banned.sh"
expect banned 'bytes.c:[0-9]*: RC_OP_linear is banned here' "$tree/tools/check-banned.sh"
expect size 'say has parameters: 7' "$tree/tools/check-size.sh" "$size"
expect size 'say has complexity' "$tree/tools/check-size.sh" "$size"
expect size 'long_one has lines: 83' "$tree/tools/check-size.sh" "$size"
expect size 'long.c: 602 lines' "$tree/tools/check-size.sh" "$size"
echo 'src/cost/gone.c gone it was a parser' >>"$tree/tools/size-allow.txt"
expect size 'gone is needed no more' "$tree/tools/check-size.sh" "$size"

# Public headers: a keyword of C++ as a name, a struct of two headers, one that recompute.h lacks.
mkdir -p "$tree/src/defs"
cp "$source_dir/include/recompute/error.h" "$tree/include/recompute"
echo 'RC_LABEL(core_attn)' >"$tree/src/defs/labels.def"
header() { # NAME LINES
    printf '#include <recompute/error.h>\n\nRC_EXTERN_C_BEGIN\n\n%s\n\nRC_EXTERN_C_END\n' "$2" |
        sed "1i #ifndef RC_$1\n#define RC_$1" | sed '$a #endif' >"$tree/include/recompute/$1.h"
}
printf '#include <recompute/%s.h>\n' error one two >"$tree/include/recompute/recompute.h"
header one 'struct rc_one { int a; };'
header two 'struct rc_two { rc_where where; };'
languages=c
export CC=${CC:-cc} CXX=${CXX:-c++} # one of each is enough here
command -v "$CXX" >/dev/null && languages='c c++'
for language in $languages; do
    check_headers="$tree/tools/check-headers.sh $language"
    header two 'struct rc_two { rc_where where; };'
    passes "headers $language" $check_headers
    header two 'struct rc_one { int b; };'
    expect "headers $language" 'redefinition of' $check_headers
    header two 'struct rc_two { rc_kind kind; };'
    expect "headers $language" 'rc_kind' $check_headers
    header two 'struct rc_two { int class; };'
    [ "$language" = c ] && passes 'headers c: a keyword of C++' $check_headers
    [ "$language" = c ] || expect 'headers c++' 'class' $check_headers
done
header two ''
sed -i '/^RC_EXTERN_C_BEGIN/d' "$tree/include/recompute/two.h"
expect headers 'two.h: its declarations stand between' "$tree/tools/check-headers.sh" c
echo '#include <recompute/one.h>' >"$tree/include/recompute/recompute.h"
expect headers 'recompute.h lacks two.h' "$tree/tools/check-headers.sh" c

# Prototypes: one that says everything, a group under one comment, and each thing left out.
prototype() { printf '%s\n' "$@" >"$tree/include/recompute/one.h"; }
check_prototypes=$tree/tools/check-prototypes.sh
prototype '/* takes   path  of a file' ' * gives   *out  its lines' ' * errors  RC_E_IO */' RC_MUST_CHECK \
    'RC_API rc_code rc_one_read(const char *path, rc_arena *mem,' '                           int *out, rc_error *err);' \
    '' '/* "one", "two" */' 'RC_API const char *rc_one_name(int one);' 'RC_API int rc_one_count(void);' \
    '' '/* errors  RC_E_BUG */' RC_MUST_CHECK 'RC_API rc_code rc_one_verify(const rc_one *one, rc_error *err);'
passes prototypes "$check_prototypes"
may_fail='RC_API rc_code rc_one_read(const char *path, int *out, rc_error *err);'
prototype '/* said */' '' 'RC_API int rc_one_count(void);'
expect prototypes 'one.h:3: rc_one_count: no comment' "$check_prototypes"
prototype '/* said */' 'RC_API int rc_one_count(void); /* of ones */'
expect prototypes 'a comment behind a prototype' "$check_prototypes"
prototype '/* left behind */' '/* said */' 'RC_API int rc_one_count(void);'
expect prototypes 'one.h:1: a comment on nothing' "$check_prototypes"
prototype '/* said */' 'RC_API int rc_one_count(void);' '' '/* again */' 'RC_API int rc_one_count(void);'
expect prototypes 'rc_one_count: stands in include/recompute/one.h too' "$check_prototypes"
prototype 'typedef struct rc_one {' '    /* fine */' '    int a;' '    struct {' '        int b;' '    } c;' \
    '    int d; /* behind */' '} rc_one;' 'enum { RC_ONE }; /* no field */'
expect prototypes 'one.h:7: a comment behind a field' "$check_prototypes"
prototype '/* said */' 'RC_API int rc_one_count(const rc_one *);'
expect prototypes 'a parameter without a name: const rc_one \*' "$check_prototypes"
prototype '/* takes   x' ' * gives   y */' RC_MUST_CHECK "$may_fail"
expect prototypes 'rc_one_read: no errors' "$check_prototypes"
prototype '/* takes   x' ' * errors  y */' RC_MUST_CHECK "$may_fail"
expect prototypes 'rc_one_read: no gives' "$check_prototypes"
prototype '/* gives   x' ' * errors  y */' RC_MUST_CHECK "$may_fail"
expect prototypes 'rc_one_read: no takes' "$check_prototypes"
prototype '/* gives   x' ' * takes   y' ' * errors  z */' RC_MUST_CHECK "$may_fail"
expect prototypes 'rc_one_read: takes stands too late' "$check_prototypes"
prototype '/* takes   x' ' * gives   y' ' * errors  z */' "$may_fail"
expect prototypes 'rc_one_read: no RC_MUST_CHECK' "$check_prototypes"

# Lists: a line too wide, a column too many; brackets and commas in texts and lists are none.
mkdir -p "$tree/src/defs"
{
    echo 'RC_ROW(one, "two, (three", F(four, five) G(six),'
    echo '       seven, eight, nine)'
} >"$tree/src/defs/rows.def"
passes defs "$tree/tools/check-defs.sh"
echo 'RC_ROW(1, 2, 3, 4, 5, 6, 7)' >>"$tree/src/defs/rows.def"
expect defs 'rows.def:3: the row has 7 columns' "$tree/tools/check-defs.sh"
printf 'RC_ROW("%0150d", 2, "%s")\n' 0 three >"$tree/src/defs/rows.def"
expect defs 'rows.def:1: the line has 1' "$tree/tools/check-defs.sh"
rm "$tree/src/defs/rows.def"

# Circles: two files that call each other, one of them through a macro; two headers; a line too many.
mkdir -p "$tree/src/plan" "$tree/build/x.dir/src/plan"
plan() { # NAME TEXT
    printf '%s\n' "$2" >"$tree/src/plan/$1.c"
    cc -I"$tree/src" -c -o "$tree/build/x.dir/src/plan/$1.c.o" "$tree/src/plan/$1.c" || failed=1
}
check_circles="$tree/tools/check-circles.sh $tree/build"
echo 'int rc_a(void); int rc_b(void);' >"$tree/src/plan/all.h"
plan a '#include "plan/all.h"
int rc_a(void) { return rc_b(); }'
plan b '#include "plan/all.h"
#define CALL(name) rc_##name()
int rc_b(void) { return 1; }'
passes circles $check_circles
plan b '#include "plan/all.h"
#define CALL(name) rc_##name()
int rc_b(void) { return CALL(a); }'
expect circles 'src/plan \(a b\|b a\): these files need each other' $check_circles
expect circles 'b calls rc_a of a' $check_circles
echo 'src/plan a b c' >"$tree/tools/circles-allow.txt"
passes 'circles: allowed' $check_circles
plan b '#include "plan/all.h"
int rc_b(void) { return 1; }'
expect circles '"src/plan a b c" is needed no more' $check_circles
rm "$tree/tools/circles-allow.txt"
echo '#include "plan/d.h"' >"$tree/src/plan/c.h"
echo '#include "plan/c.h"' >"$tree/src/plan/d.h"
expect circles 'c includes d.h of d' $check_circles
rm "$tree"/src/plan/[cd].h "$tree"/src/plan/b.c # the object of b lies there still
plan a '#include "plan/all.h"
int rc_a(void) { return rc_b(); }'
passes 'circles: a file that is gone' $check_circles
rm -r "$tree/build/x.dir"
expect circles 'no objects of src/ or cli/' $check_circles

# Words: a private one in a comment, in a name and as a file, a path that leads nowhere, releases out of order.
words=$tree/words
mkdir -p "$words"/{tools,bench,cli,docs,examples,include,src/cost,tests}
cp "$source_dir"/tools/{check-words.sh,words.txt} "$words/tools"
touch "$words"/{README.md,dev}
echo 'project(recompute VERSION 0.2.0 LANGUAGES C)' >"$words/CMakeLists.txt"
release() { printf '%s\n' '# Changes' '' "$@" >"$words/CHANGELOG.md"; }
release '## Unreleased' '- new' '## 0.2.0 — 2026-02-01' '- newer' '## 0.1.0 — 2026-01-01' '- old'
echo '/* slipway; see src/cost/ and src/cost/bytes.c, src/cost/NAME.c, src/cost/by_ */' >"$words/src/cost/bytes.c"
touch "$words/src/cost/by_hand.c"
passes words "$words/tools/check-words.sh"
for fault in '/* a slip of it */' 'int is_slip(void);' 'enum { MOST_SLIPS };'; do
    echo "$fault" >"$words/src/cost/word.c"
    expect words 'word.c:1: "slips*": write misspelling' "$words/tools/check-words.sh"
done
rm "$words/src/cost/word.c"
echo x >"$words/src/cost/mend.h"
expect words 'mend.h' "$words/tools/check-words.sh"
rm "$words/src/cost/mend.h"
echo 'See `src/cost/byte.c`.' >"$words/docs/cost.md"
expect words 'docs/cost.md:1: there is no src/cost/byte.c' "$words/tools/check-words.sh"
rm "$words/docs/cost.md"
release '- new' '## 0.2.0 — 2026-02-01'
expect changes 'an entry above the first heading' "$words/tools/check-words.sh"
release '## 0.2.0 — 2026-02-01' '## Unreleased'
expect changes 'what is not released stands first' "$words/tools/check-words.sh"
release '## 0.2.0 — 2026-02-01' '## 0.3.0 — 2026-03-01'
expect changes 'the newest release stands first' "$words/tools/check-words.sh"
release '## 0.1.0 — 2026-01-01'
expect changes 'the newest release is 0.1.0, that of CMakeLists.txt 0.2.0' "$words/tools/check-words.sh"
release '## 0.2.0, February'
expect changes 'write ## VERSION' "$words/tools/check-words.sh"

echo 'int counter; int next(void) { static int n; return counter + n++; } const int fine = 1;' >"$tree/g.c"
cc -c -o "$tree/g.o" "$tree/g.c" && ar rc "$tree/libg.a" "$tree/g.o"
expect globals 'counter' "$tree/tools/check-globals.sh" "$tree/libg.a"

# ctest itself writes what skipped.sh reads: a test that skips, a part of one, and one of each in silence.
mkdir "$tree/skips"
cat >"$tree/skips/CTestTestfile.cmake" <<'END'
add_test(whole echo "skipped: no <such> & thing")
add_test(parts printf "[ RUN      ] a\nskipped: no thing\n[  SKIPPED ] a\n[ RUN      ] b\n[       OK ] b\n[  SKIPPED ] a\n")
add_test(fine true)
set_tests_properties(whole PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped")
END
skips() {
    ctest --test-dir "$tree/skips" --output-junit "$tree/skips.xml" >"$tree/skips.log"
    "$source_dir/tools/skipped.sh" "$tree/skips.xml"
}
passes skipped skips
skips >"$tree/told" || failed=1
printf '\nskipped: 1 of 3 tests, and 1 part of others\n    1  %s\n       whole\n    1  %s\n       parts:a\n' \
    'no <such> & thing' 'no thing' | diff - "$tree/told" || failed=1
cat >>"$tree/skips/CTestTestfile.cmake" <<'END'
add_test(silent sh -c "exit 77")
set_tests_properties(silent PROPERTIES SKIP_RETURN_CODE 77)
END
expect skipped 'no reason was given' skips
exit $failed
