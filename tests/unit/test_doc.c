/* test_doc.c — trees of scalars, lists and maps, and what a plain scalar means. */
#include "check.h"

#include <recompute/doc.h>

#include <math.h>
#include <string.h>

static rc_doc resolved(const char *text, bool is_quoted)
{
    rc_doc node = {.text = text, .n_bytes = strlen(text), .is_quoted = is_quoted};
    rc_doc_resolve_scalar(&node);
    return node;
}

/* Expected kinds are those of PyYAML 6's SafeLoader with OmegaConf 2.3's float pattern. */
static void plain_scalars_resolve_as_pyyaml_does(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        rc_doc_kind kind;
        int64_t i;
        double f;
    } cases[] = {{"", RC_DOC_NULL, 0, 0},
                 {"~", RC_DOC_NULL, 0, 0},
                 {"null", RC_DOC_NULL, 0, 0},
                 {"nULL", RC_DOC_STRING, 0, 0},
                 {"None", RC_DOC_STRING, 0, 0},
                 {"true", RC_DOC_BOOL, 1, 0},
                 {"YES", RC_DOC_BOOL, 1, 0},
                 {"off", RC_DOC_BOOL, 0, 0},
                 {"y", RC_DOC_STRING, 0, 0},
                 {"tRUE", RC_DOC_STRING, 0, 0},
                 {"0", RC_DOC_INT, 0, 0},
                 {"-12", RC_DOC_INT, -12, -12},
                 {"+12", RC_DOC_INT, 12, 12},
                 {"1_000", RC_DOC_INT, 1000, 1000},
                 {"_1.5", RC_DOC_STRING, 0, 0},
                 {"0x1F", RC_DOC_INT, 31, 31},
                 {"017", RC_DOC_INT, 15, 15},
                 {"08", RC_DOC_STRING, 0, 0},
                 {"0o17", RC_DOC_STRING, 0, 0},
                 {"0b101", RC_DOC_INT, 5, 5},
                 {"0b102", RC_DOC_STRING, 0, 0},
                 {"9223372036854775807", RC_DOC_INT, INT64_MAX, 0x1p63},
                 {"9223372036854775808", RC_DOC_STRING, 0, 0},
                 {"-", RC_DOC_STRING, 0, 0},
                 {"_1", RC_DOC_STRING, 0, 0},
                 {"abc", RC_DOC_STRING, 0, 0},
                 {"1.5", RC_DOC_FLOAT, 0, 1.5},
                 {"1.", RC_DOC_FLOAT, 0, 1},
                 {"-.5", RC_DOC_FLOAT, 0, -0.5},
                 {"1e-5", RC_DOC_FLOAT, 0, 1e-5},
                 {"1e5", RC_DOC_FLOAT, 0, 1e5},
                 {".", RC_DOC_STRING, 0, 0},
                 {"1.2.3", RC_DOC_STRING, 0, 0},
                 {"e5", RC_DOC_STRING, 0, 0},
                 {".inf", RC_DOC_FLOAT, 0, INFINITY},
                 {"-.INF", RC_DOC_FLOAT, 0, -INFINITY},
                 {"inf", RC_DOC_STRING, 0, 0},
                 {"12:30", RC_DOC_STRING, 0, 0},
                 {"true ", RC_DOC_STRING, 0, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rc_doc node = resolved(cases[k].text, false);
        if (node.kind != cases[k].kind)
            fail_msg("\"%s\" is kind %d, not %d", cases[k].text, node.kind, cases[k].kind);
        if (node.kind == RC_DOC_INT || node.kind == RC_DOC_BOOL)
            assert_int_equal(node.i, cases[k].i);
        if (node.kind == RC_DOC_FLOAT || node.kind == RC_DOC_INT)
            assert_true(node.f == cases[k].f);
    }
    assert_true(isnan(resolved(".nan", false).f));
    assert_int_equal(resolved(".nan", false).kind, RC_DOC_FLOAT);
}

static void quoted_scalars_and_those_with_nul_stay_strings(void **state)
{
    (void)state;
    assert_int_equal(resolved("12", true).kind, RC_DOC_STRING);
    assert_int_equal(resolved("", true).kind, RC_DOC_STRING);
    rc_doc node = {.text = "12\0x", .n_bytes = 4};
    rc_doc_resolve_scalar(&node);
    assert_int_equal(node.kind, RC_DOC_STRING);
}

static rc_doc *sample(rc_arena *mem)
{
    rc_doc *root, *model, *list, *node;
    rc_where at = {.file = "m.yaml", .line = 1, .col = 1};
    rc_where deep = {.file = "m.yaml", .line = 2, .col = 15};
    assert_ok(rc_doc_new(mem, RC_DOC_MAP, at, &root, NULL));
    assert_ok(rc_doc_new(mem, RC_DOC_MAP, at, &model, NULL));
    rc_doc_add(root, "model", at, model);
    assert_ok(rc_doc_add_int(mem, model, "num_layers", deep, 24, &node, NULL));
    assert_ok(rc_doc_new(mem, RC_DOC_LIST, at, &list, NULL));
    rc_doc_add(model, "recompute_modules", at, list);
    assert_ok(rc_doc_add_string(mem, list, NULL, at, "mlp\x1b", 4, &node, NULL));
    assert_ok(rc_doc_add_string(mem, list, NULL, at, "moe", 3, &node, NULL));
    return root;
}

static void nodes_are_found_by_key_and_by_path(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *root = sample(mem);
    const rc_doc *layers = rc_doc_find_path(root, "model.num_layers");
    assert_non_null(layers);
    assert_int_equal(layers->i, 24);
    assert_true(layers->f == 24);
    assert_int_equal(layers->where.col, 15);
    assert_ptr_equal(rc_doc_find(rc_doc_find(root, "model"), "num_layers"), layers);
    assert_null(rc_doc_find(root, "num_layers"));
    assert_null(rc_doc_find(NULL, "x"));
    assert_null(rc_doc_find(layers, "x"));
    assert_null(rc_doc_find_path(root, "model.num_layers.x"));
    assert_null(rc_doc_find_path(root, "nothing.x"));
    char longer[400];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_null(rc_doc_find_path(root, longer));
    const rc_doc *list = rc_doc_find_path(root, "model.recompute_modules");
    assert_int_equal(list->n_children, 2);
    assert_string_equal(list->child->next->text, "moe");
    rc_arena_close(mem);
}

static void printed_form_is_stable_and_harmless(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    check_text text;
    check_open(&text);
    rc_doc_print(sample(mem), text.to);
    char *printed = check_close(&text);
    assert_string_equal(printed, "map of 1   # 1:1\n"
                                 "  model: map of 2   # 1:1\n"
                                 "    num_layers: 24   # 2:15\n"
                                 "    recompute_modules: list of 2   # 1:1\n"
                                 "      \"mlp\\x1B\"   # 1:1\n"
                                 "      \"moe\"   # 1:1\n");
    free(printed);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_resolve_as_pyyaml_does),
        cmocka_unit_test(quoted_scalars_and_those_with_nul_stay_strings),
        cmocka_unit_test(nodes_are_found_by_key_and_by_path),
        cmocka_unit_test(printed_form_is_stable_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
