/* read/readers.c — one file, by its extension or else by its look, through its reader.
 *
 * takes  a path
 * gives  the rc_doc of the reader whose row in readers.def fits, in sections: what other programs
 *        write without sections is put under one that names where it comes from
 */
#include "read/readers.h"

#include "args/words.h"
#include "base/file.h"
#include "base/nodes.h"

#include <recompute/read.h>

#include <string.h>
#include <strings.h>

typedef rc_code reader(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                       rc_doc **out, rc_error *err);

static const struct {
    const char *name, *extensions;
    reader *read;
} readers[] = {
#define RC_READER(name, extensions, read, help) {#name, extensions, read},
#include "defs/readers.def"
#undef RC_READER
};

/* Is `extension` one of the words in `extensions`? */
static bool is_among(const char *extension, const char *extensions)
{
    size_t n = strlen(extension);
    for (const char *at = extensions; *at;) {
        size_t length = strcspn(at, " ");
        if (length == n && strncasecmp(at, extension, n) == 0)
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

static reader *find_by_extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof readers / sizeof *readers; i++)
        if (is_among(dot, readers[i].extensions))
            return readers[i].read;
    return NULL;
}

bool rc_reader_is_named(const char *path)
{
    return find_by_extension(path) != NULL;
}

/* JSON begins with a brace or bracket and a quote soon after; all else that is no log and no
 * argument line is tried as YAML, which holds JSON too but says less about its faults. */
static reader *find_by_look(const char *bytes)
{
    bytes += strspn(bytes, "\xEF\xBB\xBF \t\r\n");
    if (*bytes == '{' || *bytes == '[')
        return bytes[1 + strspn(bytes + 1, " \t\r\n")] == '"' ? rc_json_read : rc_yaml_read;
    if (rc_dump_is(bytes))
        return rc_dump_read;
    return rc_args_is(bytes) ? rc_args_read : rc_yaml_read;
}

/* "[mlp moe]" and "core_attn mlp" are lists in the MODEL_ARGS of a functional test: its runner
 * hands the words to the command line. */
static rc_code split_words(rc_nodes *nodes, rc_doc *node, rc_doc **out, rc_error *err)
{
    rc_args_word words[64];
    size_t n = 0, at = strspn(node->text, "[ ");
    while (node->text[at] && node->text[at] != ']' && n + 1 < sizeof words / sizeof *words) {
        size_t length = strcspn(node->text + at, " ],");
        words[n] = (rc_args_word){.where = node->where, .n_bytes = length};
        words[n].where.col += (int)at + node->is_quoted;
        words[n].where.n_cols = (int)length;
        RC_TRY(rc_nodes_text(nodes, node->text + at, length, &words[n++].text, err));
        at += length;
        at += strspn(node->text + at, " ,");
    }
    RC_TRY(rc_nodes_add(nodes, RC_DOC_LIST, node->where, out, err));
    for (size_t i = 0; i < n; i++) {
        rc_doc *word;
        RC_TRY(rc_nodes_add_string(nodes, words[i].where, words[i].text, words[i].n_bytes,
                                   &word, err));
        rc_doc_resolve_scalar(word);
        rc_doc_add(*out, NULL, RC_NOWHERE, word);
    }
    return RC_OK;
}

/* Et*3\\|\\(tt\\|\\)*6mL: runners that hand the words to a shell want its characters escaped. */
static rc_code drop_backslashes(rc_nodes *nodes, rc_doc *node, rc_error *err)
{
    char *text;
    size_t n = 0;
    if (!strchr(node->text, '\\'))
        return RC_OK;
    RC_TRY(RC_NEW(nodes->mem, &text, node->n_bytes + 1, err));
    for (size_t i = 0; i < node->n_bytes; i++)
        if (node->text[i] != '\\')
            text[n++] = node->text[i];
    node->text = text;
    node->n_bytes = n;
    return RC_OK;
}

static rc_code adapt_value(rc_nodes *nodes, rc_doc *node, rc_doc **out, rc_error *err)
{
    *out = node;
    if (node->kind != RC_DOC_STRING)
        return RC_OK;
    RC_TRY(drop_backslashes(nodes, node, err));
    bool is_pattern = strpbrk(node->text, "*(") != NULL; /* ([0]*3+[1]*58) */
    if (!is_pattern && (node->text[0] == '[' || strchr(node->text, ' ')))
        return split_words(nodes, node, out, err);
    if (is_pattern) {
        rc_args_word flag[2] = {{.text = "--x", .n_bytes = 3}, {0}};
        rc_doc map = {.kind = RC_DOC_MAP};
        flag[1] = (rc_args_word){node->text, node->n_bytes, node->where, false, false};
        RC_TRY(rc_args_add(nodes, &map, flag, 2, err));
        *out = map.child;
    }
    return RC_OK;
}

/* MODEL_ARGS: {--num-layers: 4, --bf16: true} as megatron_args. */
static rc_code adapt_model_args(rc_nodes *nodes, rc_doc *from, rc_doc **out, rc_error *err)
{
    RC_TRY(rc_nodes_add(nodes, RC_DOC_MAP, from->where, out, err));
    rc_doc *next;
    for (rc_doc *node = from->child; node; node = next) {
        next = node->next;
        const char *name, *flag = node->key + strspn(node->key, "-");
        rc_where where = node->key_where;
        rc_doc *value;
        RC_TRY(rc_args_name(nodes, flag, strlen(flag), &name, err));
        RC_TRY(adapt_value(nodes, node, &value, err));
        RC_TRY(rc_args_put(*out, name, where, value, err));
    }
    return RC_OK;
}

static rc_doc *find_map(rc_doc *map, const char *key)
{
    for (rc_doc *node = map->child; node; node = node->next)
        if (node->kind == RC_DOC_MAP && strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

/* Bridge's files of settings for benchmarks have the sections under ConfigContainer, beside what
 * only its scripts read; those for its model zoo have the environment under ENV_VARS. */
static void adapt_bridge(rc_doc **doc)
{
    rc_doc *inner = find_map(*doc, "ConfigContainer");
    if (inner)
        *doc = inner;
    rc_doc *env = find_map(*doc, "ENV_VARS");
    if (env && !rc_doc_find(*doc, "env"))
        env->key = "env";
}

/* What other programs write without sections, under a section that names its dialect. */
static rc_code adapt(rc_arena *mem, rc_doc **doc, rc_error *err)
{
    rc_nodes nodes = {.mem = mem};
    rc_doc *root, *inner, *old = *doc;
    if (old->kind != RC_DOC_MAP)
        return RC_OK;
    const rc_doc *model_args = rc_doc_find(old, "MODEL_ARGS");
    const rc_doc *type = rc_doc_find(old, "model_type");
    bool is_hf = !rc_doc_find(old, "model") &&
                 ((type && type->kind == RC_DOC_STRING) || rc_doc_find(old, "architectures"));
    bool is_test = model_args && model_args->kind == RC_DOC_MAP;
    if (!is_hf && !is_test) {
        adapt_bridge(doc);
        return RC_OK;
    }
    RC_TRY(rc_nodes_add(&nodes, RC_DOC_MAP, old->where, &root, err));
    *doc = root;
    if (is_hf) {
        rc_doc_add(root, "hf_config", old->where, old);
        return RC_OK;
    }
    rc_doc *next;
    for (rc_doc *node = old->child; node; node = next) {
        next = node->next;
        if (node == model_args) {
            RC_TRY(adapt_model_args(&nodes, node, &inner, err));
            rc_doc_add(root, "megatron_args", node->key_where, inner);
        } else if (strcmp(node->key, "ENV_VARS") == 0) {
            rc_doc_add(root, "env", node->key_where, node);
        }
    }
    return RC_OK;
}

rc_code rc_doc_read(const char *path, rc_arena *mem, rc_doc **out, rc_error *err)
{
    const char *bytes;
    size_t n_bytes;
    RC_TRY(rc_file_read(path, RC_READ_MAX_BYTES, mem, &bytes, &n_bytes, err));
    reader *read = find_by_extension(path);
    if (!read)
        read = find_by_look(bytes);
    RC_TRY(
        read(strcmp(path, "-") == 0 ? "standard input" : path, bytes, n_bytes, mem, out, err));
    return adapt(mem, out, err);
}
