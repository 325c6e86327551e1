/* test_yaml.c — what read/yaml.c makes of good and hostile files. */
#include "read_cases.h"

static void yaml_reads_scalars_as_pyyaml_does(void **state)
{
    (void)state;
    expect_tree(rc_yaml_read,
                "a: 1\nb: 2.5\nc: true\nd: null\ne:\nf: abc\ng: '1'\nh: \"x\\ny\"\n",
                "{a: 1, b: 2.5f, c: T, d: null, e: null, f: 'abc', g: '1', h: 'x\ny'}");
    expect_tree(rc_yaml_read, "a: 1e-5\nb: 1_000\nc: 0x10\nd: -3\ne: .inf\nf: yes\ng: No\n",
                "{a: 1e-05f, b: 1000, c: 16, d: -3, e: inff, f: T, g: F}");
    expect_tree(rc_yaml_read, "a: !!str 5\nb: !!int '7'\n", "{a: '5', b: 7}");
}

static void yaml_reads_lists_and_maps(void **state)
{
    (void)state;
    expect_tree(rc_yaml_read, "m:\n  l: [core_attn, mlp]\n  k:\n  - 1\n  - {z: 2}\n",
                "{m: {l: ['core_attn', 'mlp'], k: [1, {z: 2}]}}");
    expect_tree(rc_yaml_read, "m:\n  l: [\n  a,\nb]\n", "{m: {l: ['a', 'b']}}");
    expect_tree(rc_yaml_read, "a: |\n  x\n  y\nb: >\n  x\n  y\n", "{a: 'x\ny\n', b: 'x y\n'}");
    expect_tree(rc_yaml_read, "", "{}");
    expect_tree(rc_yaml_read, "# only a comment\n", "{}");
    expect_tree(rc_yaml_read,
                "\xEF\xBB\xBF"
                "a: 1\r\nb: 2\r\n",
                "{a: 1, b: 2}");
}

static void yaml_expands_aliases_and_merges(void **state)
{
    (void)state;
    expect_tree(rc_yaml_read, "a: &x [1, 2]\nb: *x\n", "{a: [1, 2], b: [1, 2]}");
    expect_tree(rc_yaml_read, "d: &d {p: 1, q: 2}\ne:\n  q: 3\n  <<: *d\n",
                "{d: {p: 1, q: 2}, e: {q: 3, p: 1}}");
    expect_tree(rc_yaml_read, "a: &a {p: 1}\nb: &b {p: 2, q: 2}\nc: {<<: [*a, *b]}\n",
                "{a: {p: 1}, b: {p: 2, q: 2}, c: {p: 1, q: 2}}");
}

static void yaml_keeps_the_target_as_tag(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    static const char text[] =
        "m:\n  a:\n    _target_: torch.nn.functional.silu\n    _call_: false\n";
    assert_int_equal(rc_yaml_read("x", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    assert_string_equal(rc_doc_find_path(doc, "m.a")->tag, "torch.nn.functional.silu");
    rc_arena_close(mem);
}

static void yaml_knows_where_every_value_stands(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    static const char text[] = "\xC3\xBC: 1\nm:\n  key: \"va\"\n  l: [a, 'b']\n";
    assert_int_equal(rc_yaml_read("x.yaml", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    const rc_doc *key = rc_doc_find_path(doc, "m.key");
    assert_int_equal(key->where.line, 3);
    assert_int_equal(key->where.col, 8);
    assert_int_equal(key->where.n_cols, 4); /* with its quotes */
    assert_int_equal(key->key_where.col, 3);
    assert_int_equal(key->key_where.n_cols, 3);
    assert_int_equal(strncmp(key->where.text, "  key: \"va\"\n", 12), 0);
    const rc_doc *list = rc_doc_find_path(doc, "m.l");
    assert_int_equal(list->where.col, 6);
    assert_int_equal(list->last->where.col, 10);
    assert_int_equal(doc->child->where.col, 5); /* columns are bytes */
    rc_arena_close(mem);
}

static void yaml_refuses_with_position(void **state)
{
    (void)state;
    expect_refused(rc_yaml_read, "model:\n  a: 1\n  b: 2\n  a: 3\n", 4,
                   /* */ "  ^", "key a occurs twice, first at 2:3");
    expect_refused(rc_yaml_read, "a: 1\n\tb: 2\n", 2,
                   /* */ "^", "a tab indents this line");
    expect_refused(rc_yaml_read, "a: b: c\n", 1,
                   /* */ "    ^", "not valid YAML");
    expect_refused(rc_yaml_read, "a: 1\n---\nb: 2\n", 2,
                   /* */ "^", "a second document begins");
    expect_refused(rc_yaml_read, "a: *nope\n", 1,
                   /* */ "   ^", "*nope refers to no anchor");
    expect_refused(rc_yaml_read, "a: &x [1, *x]\n", 1,
                   /* */ "          ^", "*x contains itself");
    expect_refused(rc_yaml_read, "[a, b]: 1\n", 1,
                   /* */ "^", "a key must be a single word");
    expect_refused(rc_yaml_read, "a: 1\n<<: 5\n", 2,
                   /* */ "    ^", "<< takes a map");
}

static void yaml_refuses_bytes_that_are_no_text(void **state)
{
    (void)state;
    expect_refused_bytes(rc_yaml_read, "a: b\0c\n", 7, 1,
                         /* */ "    ^", "a NUL byte");
    expect_refused(rc_yaml_read, "a: 1\nb: x\xFFy\n", 2,
                   /* */ "    ^", "byte 0xFF is not UTF-8");
    expect_refused(rc_yaml_read, "a: \xED\xA0\x80\n", 1,
                   /* a surrogate */ "   ^", "is not UTF-8");
    expect_refused_bytes(rc_yaml_read,
                         "\xFF\xFE"
                         "a\0",
                         4, 1, "^", "the file is UTF-16");
}

static void yaml_bounds_what_untrusted_input_can_ask_for(void **state)
{
    (void)state;
    char deep[400];
    memset(deep, '[', 200);
    deep[200] = '\0';
    expect_refused(rc_yaml_read, deep, 1, "                                                ^",
                   "nested deeper than 48");
    static const char laughs[] = "a: &a [l,l,l,l,l,l,l,l,l,l]\n"
                                 "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                                 "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                                 "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                                 "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
    expect_refused(rc_yaml_read, laughs, 5, "                ^",
                   "aliases multiply to more than 50000 values");
}

/* `n` copies of `unit` behind `head`; the caller frees it. */
static char *repeat(const char *head, const char *unit, size_t n)
{
    size_t n_head = strlen(head), n_unit = strlen(unit);
    char *text = test_malloc(n_head + n * n_unit + 1);
    memcpy(text, head, n_head + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(text + n_head + i * n_unit, unit, n_unit + 1);
    return text;
}

static void yaml_bounds_ten_megabytes_on_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *head, *unit;
        size_t n;
        const char *says; /* NULL: it is fine */
    } cases[] = {
        {"a: [", "x,", 5000000, "more than 500000 values"},
        {"a: ", "x", 10000000, NULL},
        {"a: \"", "x", 10000000, "not valid YAML"},
        {"", "[", 10000000, "nested deeper than 48"},
        {"", "- ", 5000000, "nested deeper than 48"},
        {"", "? ", 5000000, "a key must be a single word"},
        {"", "&a ", 3000000, "not valid YAML"},
        {"", "!", 10000000, NULL}, /* a tag and an empty value */
        {"", "{a: ", 2500000, "nested deeper than 48"},
        {"#", "x", 10000000, NULL},
        {"", "\n", 10000000, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = repeat(cases[i].head, cases[i].unit, cases[i].n);
        rc_arena *mem = rc_arena_open();
        rc_doc *doc;
        rc_error err = {0};
        rc_code code = rc_yaml_read("x", text, strlen(text), mem, &doc, &err);
        if ((code == RC_OK) != (cases[i].says == NULL) ||
            (cases[i].says && !strstr(err.msg, cases[i].says)))
            fail_msg("%s%s...: \"%s\"", cases[i].head, cases[i].unit, err.msg);
        assert_true(code == RC_OK || err.where.line == 1);
        rc_arena_close(mem);
        test_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yaml_reads_scalars_as_pyyaml_does),
        cmocka_unit_test(yaml_reads_lists_and_maps),
        cmocka_unit_test(yaml_expands_aliases_and_merges),
        cmocka_unit_test(yaml_keeps_the_target_as_tag),
        cmocka_unit_test(yaml_knows_where_every_value_stands),
        cmocka_unit_test(yaml_refuses_with_position),
        cmocka_unit_test(yaml_refuses_bytes_that_are_no_text),
        cmocka_unit_test(yaml_bounds_what_untrusted_input_can_ask_for),
        cmocka_unit_test(yaml_bounds_ten_megabytes_on_one_line),
    };
    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
