/* test_override.c — Hydra's key=value words. */
#include "read_cases.h"

/* The words of one command line, given to the reader as one text with | between them. */
static rc_code read_words(const char *path, const char *bytes, size_t n, rc_arena *mem,
                          rc_doc **out, rc_error *err)
{
    (void)path;
    const char *words[32];
    size_t n_words = 0;
    char *copy = test_malloc(n + 1), *at = copy;
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    for (; at && n_words < 32; at = at ? at + 1 : NULL) {
        words[n_words++] = at;
        at = strchr(at, '|');
        if (at)
            *at = '\0';
    }
    rc_code code = rc_override_read(words, n_words, mem, out, err);
    if (err->where.file)
        err->where.file = strcmp(err->where.file, "command line") == 0 ? "x.yaml" : "wrong";
    test_free(copy);
    return code;
}

static void override_reads_values(void **state)
{
    (void)state;
    expect_tree(read_words,
                "model.num_layers=12|model.bf16=true|optimizer.lr=3e-4|checkpoint.load=null",
                "{model: {num_layers: 12, bf16: T}, optimizer: {lr: 0.0003f}, checkpoint: "
                "{load: null}}");
    expect_tree(read_words, "model.recompute_modules=[core_attn,moe_act]",
                "{model: {recompute_modules: ['core_attn', 'moe_act']}}");
    expect_tree(read_words, "a=[]|b=[[embedding, decoder],[loss]]|c={x: 1, y: [2]}",
                "{a: [], b: [['embedding', 'decoder'], ['loss']], c: {x: 1, y: [2]}}");
    expect_tree(read_words, "a='12'|b=\"x, y\"|c='it\\'s'|d=a\\,b|e=",
                "{a: '12', b: 'x, y', c: 'it's', d: 'a,b', e: ''}");
    expect_tree(read_words, "a=yes|b=off|c=TRUE|d=/data/my file:x|e=a=b|f=${model.s}",
                "{a: 'yes', b: 'off', c: T, d: '/data/my file:x', e: 'a=b', f: '${model.s}'}");
}

static void override_knows_the_prefixes(void **state)
{
    (void)state;
    expect_tree(read_words, "+a.b=1|++a.c=2|~d.e|~f=3",
                "{a: {b: 1, c: 2}, d: {e: null}, f: null}");
}

static void override_lets_later_words_win(void **state)
{
    (void)state;
    expect_tree(read_words, "a.b=1|a.c=2|a.b=3", "{a: {c: 2, b: 3}}");
    expect_tree(read_words, "a=1|a.b=2", "{a: {b: 2}}");
    expect_tree(read_words, "a={b: 1}|a={c: 2}", "{a: {b: 1, c: 2}}");
}

static void override_refuses_with_word_and_column(void **state)
{
    (void)state;
    expect_refused(read_words, "a=1|model.m=[core_attn,moe_act", 2,
                   /* model.m=[core_attn,moe_act */
                   /* */ "        ^", "this list has no closing ]");
    expect_refused(read_words, "model.m=core_attn,moe_act", 1,
                   /* */ "                 ^", "a list is written [a,b]");
    expect_refused(read_words, "a='x", 1,
                   /* */ "  ^", "this quote is not closed");
    expect_refused(read_words, "a=range(3)", 1,
                   /* */ "       ^", "functions are not evaluated");
    expect_refused(read_words, "a=[1]2", 1,
                   /* */ "     ^", "nothing more is expected");
    expect_refused(read_words, "a..b=1", 1,
                   /* */ "  ^", "a name is expected");
    expect_refused(read_words, "+++a=1", 1, "^", "at most two +");
    expect_refused(read_words, "word", 1, "^", "an override is written key=value");
    expect_refused(read_words, "a={x: 1, x: 2}", 1,
                   /* */ "         ^", "key x occurs twice");
    expect_refused(read_words, "a=[,]", 1,
                   /* */ "   ^", "a value is expected");
    expect_refused(read_words, "a=\xFF", 1,
                   /* */ "  ^", "is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(override_reads_values),
        cmocka_unit_test(override_knows_the_prefixes),
        cmocka_unit_test(override_lets_later_words_win),
        cmocka_unit_test(override_refuses_with_word_and_column),
    };
    return cmocka_run_group_tests_name("override", tests, NULL, NULL);
}
