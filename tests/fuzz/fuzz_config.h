/* fuzz_config.h — a reader of configurations under a fuzzer: any bytes give a tree or an error
 * with a message, any tree gives a config or such an error, and any config a verdict. */
#ifndef FUZZ_CONFIG_H
#define FUZZ_CONFIG_H

#include <recompute/check.h>
#include <recompute/config.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t n_bytes);

/* libfyaml 0.7 loses 512 bytes with a scalar of five escaped quotes (pantoniou/libfyaml issue 233,
 * repaired later). The unit tests run without this and see a parser that we forget. Visible, because
 * the sanitizer's library of gcc has to find it. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

typedef rc_code read_fn(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                        rc_doc **out, rc_error *err);

/* Every string of the tree is NUL-terminated behind its n_bytes, every list counts its children. */
static inline void check_tree(const rc_doc *doc, int depth)
{
    if (depth > 2 * RC_READ_MAX_DEPTH)
        abort();
    if (doc->text && doc->text[doc->n_bytes] != '\0')
        abort();
    size_t n = 0;
    for (const rc_doc *child = doc->child; child; child = child->next, n++) {
        if (doc->kind == RC_DOC_MAP && !child->key)
            abort();
        check_tree(child, depth + 1);
    }
    if (n != doc->n_children)
        abort();
}

static inline void check_error(rc_code code, const rc_error *err)
{
    bool is_ours = code == RC_E_INPUT || code == RC_E_RANGE;
    if (!is_ours || err->code != code || err->msg[0] == '\0')
        abort();
}

/* Rejected is what has an error, which says where it is decided; every fix can be written. */
static inline void check_verdict(const rc_check *check, rc_arena *mem, rc_error *err)
{
    bool has_error = false;
    for (size_t i = 0; i < check->findings.n; i++) {
        const char *words;
        has_error = has_error || check->findings.at[i].level == RC_LEVEL_ERROR;
        for (int to = 0; check->fixes[i] && to < 2; to++) {
            rc_framework framework = to ? RC_FRAMEWORK_MEGATRON_LM : RC_FRAMEWORK_BRIDGE;
            if (rc_say_fix(check->fixes[i], framework, " ", mem, &words, err) != RC_OK)
                abort();
        }
    }
    if (check->is_accepted == has_error || (check->is_accepted && check->exception) ||
        (check->first < check->findings.n) != has_error)
        abort();
}

static const char *const fuzz_releases[] = {"main", "0.9", "0.12", "0.15", "0.19"};

static inline void check_config(const rc_config *cfg, size_t n_bytes, rc_arena *mem)
{
    rc_check_options options = {.target = rc_check_find_target(cfg), .has_advice = true};
    rc_error err = {0};
    rc_check *check;
    rc_table *table;
    options.megatron = fuzz_releases[n_bytes % 5];
    options.transformer_engine = n_bytes % 3 ? NULL : "1.7.0";
    rc_code code = rc_check_make(cfg, &options, mem, &check, &err);
    if (code != RC_OK) {
        check_error(code, &err);
        return;
    }
    check_verdict(check, mem, &err);
    if (rc_check_table(check, mem, &table, &err) != RC_OK)
        abort();
}

static inline int fuzz_read(read_fn *read, const unsigned char *bytes, size_t n_bytes)
{
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_doc *doc = NULL;
    rc_config *cfg = NULL;
    rc_code code = read("fuzz", (const char *)bytes, n_bytes, mem, &doc, &err);
    if (code == RC_OK) {
        check_tree(doc, 0);
        rc_input input = {doc, RC_FROM_FILE};
        code = rc_config_make(&input, 1, mem, &cfg, &err);
    }
    if (code != RC_OK) {
        check_error(code, &err);
    } else {
        rc_table *table;
        bool is_sampled = n_bytes % 16 == 0; /* the table costs more than the reading */
        if (is_sampled && rc_config_table(cfg, mem, &table, &err) != RC_OK)
            abort();
        check_config(cfg, n_bytes, mem);
        code = rc_train_refuse_unknown(cfg, &err);
        if (code != RC_OK)
            check_error(code, &err);
    }
    rc_arena_close(mem);
    return 0;
}

#endif
