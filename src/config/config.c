/* config/config.c — the settings of one run out of several inputs, later ones winning.
 *
 * takes  trees of sections (rc_doc), each with what kind of source it is
 * gives  rc_config: every field set and with its origin; keys that are no field are kept aside
 * next   check/ judges it, graph/ builds from it
 *
 * The walk goes over the inputs' keys, not over our fields, and finds each in a hash table: a
 * file of Bridge has hundreds of keys that are none of ours.
 */
#include "config/make.h"
#include "config/value.h"

#include "base/text.h"

#include <string.h>

enum { MAX_PATH_BYTES = 512, MAX_HOPS = 8, MAX_NEAREST = 64 };

/* The node that "${a.b}" refers to, in the last input that has it; NULL for anything else. */
static const rc_doc *find_interpolated(const rc_maker *maker, const rc_doc *node)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    char path[MAX_PATH_BYTES];
    size_t n = node->n_bytes;
    if (n < 4 || n - 3 >= sizeof path || node->text[n - 1] != '}')
        return NULL;
    memcpy(path, node->text + 2, n - 3);
    path[n - 3] = '\0';
    if (path[strspn(path, plain)] != '\0')
        return NULL;
    const rc_doc *found = NULL;
    for (size_t i = maker->n_inputs; i > 0 && !found; i--)
        found = rc_doc_find_path(maker->inputs[i - 1].doc, path);
    return found;
}

/* Follows "${a.b}" to what it stands for; NULL when only the running job knows. */
static const rc_doc *resolve(const rc_maker *maker, const rc_doc *node)
{
    for (int hop = 0; node && node->kind == RC_DOC_STRING; hop++) {
        if (node->tag && strcmp(node->tag, "?") == 0)
            return NULL;
        if (strncmp(node->text, "${", 2) != 0)
            break;
        node = hop < MAX_HOPS ? find_interpolated(maker, node) : NULL;
    }
    return node;
}

rc_code rc_maker_set(rc_maker *maker, rc_field field, const rc_doc *node, const char *shown,
                     rc_error *err)
{
    const rc_doc *value = resolve(maker, node);
    if (!value)
        return rc_maker_note_value(maker, field, shown, node->where, err);
    if (maker->n_late_values)
        rc_maker_forget_value(maker, field);
    RC_TRY(rc_value_set(maker->cfg, field, value, maker->kind, shown, maker->mem, err));
    maker->cfg->origin[field].through = maker->through;
    return RC_OK;
}

rc_code rc_maker_prepare_sections(rc_maker *maker, rc_error *err)
{
    if (maker->keys.slots)
        return RC_OK;
    RC_TRY(rc_names_make(&maker->keys, RC_FIELD_COUNT, maker->mem, err));
    RC_TRY(rc_names_make(&maker->prefixes, RC_FIELD_COUNT, maker->mem, err));
    RC_TRY(rc_maker_prepare_aliases(maker, RC_DIALECT_BRIDGE, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const char *key = rc_field_find((rc_field)i)->key;
        if (*key)
            rc_names_add(&maker->keys, key, i);
    }
    rc_aliases rows = rc_aliases_find(RC_DIALECT_BRIDGE);
    for (size_t i = 0; i < RC_FIELD_COUNT + rows.n; i++) {
        const char *key = i < RC_FIELD_COUNT ? rc_field_find((rc_field)i)->key
                                             : rows.at[i - RC_FIELD_COUNT].name;
        for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
            char prefix[MAX_PATH_BYTES];
            size_t n = (size_t)(dot - key);
            memcpy(prefix, key, n);
            prefix[n] = '\0';
            const char *copy;
            if (rc_names_find(&maker->prefixes, prefix) >= 0)
                continue;
            RC_TRY(rc_arena_copy(maker->mem, prefix, n, &copy, err));
            rc_names_add(&maker->prefixes, copy, 0);
        }
    }
    return RC_OK;
}

static rc_code push_late(rc_late **list, size_t *n, size_t *n_room, rc_late late, rc_arena *mem,
                         rc_error *err)
{
    RC_TRY(RC_GROW(mem, list, *n, n_room, *n + 1, err));
    (*list)[(*n)++] = late;
    return RC_OK;
}

rc_code rc_maker_defer(rc_maker *maker, rc_dialect dialect, const rc_alias *row,
                       const rc_doc *node, rc_error *err)
{
    return push_late(&maker->late, &maker->n_late, &maker->n_late_room,
                     (rc_late){dialect, row, node, maker->kind}, maker->mem, err);
}

/* `~model` and `model: null` of an override: every field under the path back to its default. */
static rc_code reset_section(rc_maker *maker, const char *path, rc_error *err)
{
    size_t n = strlen(path);
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const char *key = rc_field_find((rc_field)i)->key;
        if (strncmp(key, path, n) == 0 && key[n] == '.')
            RC_TRY(rc_value_set_default(maker->cfg, (rc_field)i, maker->mem, err));
    }
    return RC_OK;
}

static bool is_machinery(const char *key)
{
    size_t n = strlen(key); /* _target_, _partial_, _call_, ... */
    return n > 2 && key[0] == '_' && key[n - 1] == '_';
}

static rc_code read_section(rc_maker *maker, const rc_doc *map, const char *prefix,
                            rc_error *err);

/* `peft.dim=16` adds to the peft that a file gave and must not hide its _target_. */
static bool adds_to(const rc_config *cfg, rc_field field)
{
    return rc_field_find(field)->type != RC_FIELD_TYPE_RAW || !cfg->origin[field].is_null;
}

/* A path under which fields stand. `is_known`: it is a field or an alias itself too. */
static rc_code read_prefix(rc_maker *maker, const rc_doc *node, const char *path, bool is_known,
                           rc_error *err)
{
    if (node->kind == RC_DOC_MAP)
        return read_section(maker, node, path, err);
    if (node->kind == RC_DOC_NULL && node->tag)
        return reset_section(maker, path, err);
    if (node->kind == RC_DOC_NULL || is_known)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, node->where, "%s must be a map of settings: %s.NAME", path,
                   path);
}

/* Sections of Bridge's ConfigContainer (training/config.py) in which no setting of ours stands. */
static const char *const other_sections[] = {
    "tokenizer",      "profiling",         "straggler",  "nvrx_straggler", "ft",         "rng",
    "tensor_inspect", "inprocess_restart", "validation", "inference",      "perf_matrix"};

/* `modle: {...}`: the section it misspells, or NULL. */
static const char *find_section(const rc_maker *maker, const char *typed)
{
    const char *names[RC_FIELD_COUNT + sizeof other_sections / sizeof *other_sections];
    size_t n = 0;
    for (; n < sizeof other_sections / sizeof *other_sections; n++)
        names[n] = other_sections[n];
    for (size_t i = 0; i < maker->prefixes.n_room && n < RC_FIELD_COUNT; i++)
        if (maker->prefixes.slots[i].name && !strchr(maker->prefixes.slots[i].name, '.'))
            names[n++] = maker->prefixes.slots[i].name;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], typed) == 0)
            return NULL;
    size_t n_letters = strlen(typed), most = n_letters < 4 ? 0 : n_letters < 8 ? 1 : 2;
    const char *nearest = rc_text_nearest(typed, names, n);
    return nearest && rc_text_distance(typed, nearest) <= most ? nearest : NULL;
}

/* A map that is no section: perhaps a misspelt one, with all its settings unread. */
static rc_code note_section(rc_maker *maker, const rc_doc *node, rc_error *err)
{
    rc_unknown_key unknown = {
        .path = node->key, .where = node->key_where, .field = RC_FIELD_COUNT, .node = node};
    if (maker->n_unlisted++ < MAX_NEAREST)
        unknown.instead = find_section(maker, node->key);
    return rc_maker_note(maker, unknown, err);
}

/* Hydra's keys are no settings, but the class of a section may change what it means. */
static rc_code note_class(rc_maker *maker, const rc_doc *node, const char *path, rc_error *err)
{
    const char *dot = strchr(path, '.');
    rc_unknown_key unknown = {.path = path,
                              .where = node->key_where,
                              .field = RC_FIELD_COUNT,
                              .fault = RC_KEY_CLASS,
                              .node = node};
    bool is_class = strcmp(node->key, "_target_") == 0 &&
                    dot + 1 + strlen("_target_") == path + strlen(path);
    return is_class ? rc_maker_note(maker, unknown, err) : RC_OK;
}

static rc_code read_key(rc_maker *maker, const rc_doc *node, const char *path, rc_error *err)
{
    int field = rc_names_find(&maker->keys, path);
    const rc_alias *alias = rc_maker_find_alias(maker, RC_DIALECT_BRIDGE, path);
    bool is_prefix = rc_names_find(&maker->prefixes, path) >= 0;
    bool is_addition = is_prefix && node->kind == RC_DOC_MAP && !node->tag;
    if (field >= 0 && !(is_addition && adds_to(maker->cfg, (rc_field)field)))
        RC_TRY(rc_maker_set(maker, (rc_field)field, node, path, err));
    if (alias)
        RC_TRY(rc_maker_defer(maker, RC_DIALECT_BRIDGE, alias, node, err));
    if (is_prefix)
        return read_prefix(maker, node, path, field >= 0 || alias, err);
    if (field >= 0 || alias || strncmp(path, "env.", 4) == 0)
        return RC_OK; /* any variable may stand in an environment */
    if (node->kind == RC_DOC_MAP && !strchr(path, '.'))
        return note_section(maker, node, err);
    return rc_maker_note_unknown(maker, path, node, err);
}

static rc_code read_section(rc_maker *maker, const rc_doc *map, const char *prefix,
                            rc_error *err)
{
    char path[MAX_PATH_BYTES];
    size_t n_prefix = strlen(prefix);
    memcpy(path, prefix, n_prefix);
    path[n_prefix++] = '.';
    for (const rc_doc *node = map->child; node; node = node->next) {
        size_t n = strlen(node->key);
        if (n_prefix + n >= sizeof path) {
            RC_TRY(rc_maker_note_unknown(maker, node->key, node, err));
            continue;
        }
        memcpy(path + n_prefix, node->key, n + 1);
        if (is_machinery(node->key) && rc_names_find(&maker->keys, path) < 0) {
            RC_TRY(note_class(maker, node, path, err));
            continue;
        }
        RC_TRY(read_key(maker, node, path, err));
    }
    return RC_OK;
}

/* Sections that are flat maps in another dialect (config.h). */
static const struct {
    const char *key;
    rc_code (*read)(rc_maker *maker, const rc_doc *map, rc_error *err);
} flat_sections[] = {
    {"megatron_args", rc_maker_read_args},  {"hf_config", rc_maker_read_hf},
    {"core", rc_maker_read_names},          {"fields", rc_maker_read_names},
    {"language_model", rc_maker_read_args}, /* these two of --yaml-cfg */
    {"model_parallel", rc_maker_read_args},
};

static rc_code read_top(rc_maker *maker, const rc_doc *node, rc_error *err)
{
    for (size_t i = 0; i < sizeof flat_sections / sizeof *flat_sections; i++)
        if (node->kind == RC_DOC_MAP && strcmp(node->key, flat_sections[i].key) == 0)
            return flat_sections[i].read(maker, node, err);
    if (strcmp(node->key, "preset") == 0)
        return rc_maker_read_preset(maker, node, err);
    if (strlen(node->key) >= MAX_PATH_BYTES)
        return rc_maker_note_unknown(maker, node->key, node, err);
    bool is_section = node->kind == RC_DOC_MAP || rc_names_find(&maker->keys, node->key) >= 0 ||
                      rc_names_find(&maker->prefixes, node->key) >= 0 ||
                      rc_maker_find_alias(maker, RC_DIALECT_BRIDGE, node->key);
    return is_section ? read_key(maker, node, node->key, err)
                      : rc_maker_read_arg(maker, node, err);
}

/* Sections that Bridge copies over the model's, the optimizer's and ddp's when it sets up the run,
 * whatever those say (training/mixed_precision.py, training/comm_overlap.py). */
static bool is_setup(const char *name)
{
    return strncmp(name, "mixed_precision", 15) == 0 || strncmp(name, "comm_overlap", 12) == 0;
}

/* `mixed_precision: null` takes back what stood there. */
static void forget_setup(rc_maker *maker, const char *section)
{
    size_t n_kept = 0, n_letters = strlen(section);
    for (size_t i = 0; i < maker->n_setup; i++)
        if (strncmp(maker->setup[i].row->name, section, n_letters) != 0)
            maker->setup[n_kept++] = maker->setup[i];
    maker->n_setup = n_kept;
}

static rc_code apply_late(rc_maker *maker, const rc_late *late, rc_error *err)
{
    bool is_known = false,
         has_setup = late->dialect == RC_DIALECT_BRIDGE && is_setup(late->row->name);
    if (has_setup && late->node->kind == RC_DOC_NULL && !strchr(late->row->name, '.'))
        forget_setup(maker, late->row->name);
    else if (has_setup)
        RC_TRY(push_late(&maker->setup, &maker->n_setup, &maker->n_setup_room, *late,
                         maker->mem, err));
    maker->through = has_setup ? late->row->name : NULL;
    RC_TRY(rc_maker_apply(maker, late->dialect, late->row, late->node, &is_known, err));
    maker->through = NULL;
    bool is_strange = !is_known && late->node->kind == RC_DOC_STRING &&
                      rc_names_find(&maker->keys, late->row->name) < 0;
    if (is_strange) /* mixed_precision: a recipe that is in no row */
        return rc_maker_note(maker,
                             (rc_unknown_key){.path = late->row->name,
                                              .where = late->node->where,
                                              .field = RC_FIELD_COUNT,
                                              .node = late->node},
                             err);
    return RC_OK;
}

/* Once more, over what later inputs said. */
static rc_code apply_setup(rc_maker *maker, rc_error *err)
{
    bool is_known;
    for (size_t i = 0; i < maker->n_setup; i++) {
        const rc_late *late = &maker->setup[i];
        maker->kind = late->kind;
        maker->through = late->row->name;
        RC_TRY(rc_maker_apply(maker, late->dialect, late->row, late->node, &is_known, err));
    }
    maker->through = NULL;
    maker->n_setup = 0;
    return RC_OK;
}

static rc_code read_input(rc_maker *maker, const rc_input *input, rc_error *err)
{
    const rc_doc *doc = input->doc;
    if (doc->kind == RC_DOC_NULL)
        return RC_OK;
    if (doc->kind != RC_DOC_MAP)
        return RC_FAIL(err, RC_E_INPUT, doc->where,
                       "a configuration is a map of sections: model, train, ...");
    if (rc_doc_find(doc, "fields")) /* a fix, which says what comes out */
        RC_TRY(apply_setup(maker, err));
    maker->kind = input->kind;
    maker->n_late = 0;
    RC_TRY(rc_maker_prepare_sections(maker, err));
    for (const rc_doc *node = doc->child; node; node = node->next)
        if (!is_machinery(node->key))
            RC_TRY(read_top(maker, node, err));
    for (size_t i = 0; i < maker->n_late; i++)
        RC_TRY(apply_late(maker, &maker->late[i], err));
    return RC_OK;
}

rc_framework rc_inputs_framework(const rc_input *inputs, size_t n_inputs)
{
    rc_framework framework = RC_FRAMEWORK_BRIDGE;
    for (size_t i = 0; i < n_inputs; i++) {
        if (rc_doc_find(inputs[i].doc, "megatron_args") ||
            rc_doc_find(inputs[i].doc, "language_model"))
            framework = RC_FRAMEWORK_MEGATRON_LM;
        if (rc_doc_find(inputs[i].doc, "core"))
            framework = RC_FRAMEWORK_CORE;
    }
    return framework;
}

/* Megatron-LM's command line has defaults of its own: the row of aliases.def without a name. */
static rc_code set_line_defaults(rc_maker *maker, rc_error *err)
{
    static const rc_doc yes = {.kind = RC_DOC_BOOL, .i = 1};
    bool is_known = false;
    RC_TRY(rc_maker_prepare_aliases(maker, RC_DIALECT_ARGS, err));
    maker->kind = RC_FROM_DEFAULT;
    const rc_alias *row = rc_maker_find_alias(maker, RC_DIALECT_ARGS, "");
    return row ? rc_maker_apply(maker, RC_DIALECT_ARGS, row, &yes, &is_known, err) : RC_OK;
}

rc_code rc_config_make(const rc_input *inputs, size_t n_inputs, rc_arena *mem, rc_config **out,
                       rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_maker maker = {.cfg = *out, .mem = mem, .inputs = inputs, .n_inputs = n_inputs};
    (*out)->framework = rc_inputs_framework(inputs, n_inputs);
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        RC_TRY(rc_value_set_default(*out, (rc_field)i, mem, err));
    if ((*out)->framework == RC_FRAMEWORK_MEGATRON_LM)
        RC_TRY(set_line_defaults(&maker, err));
    for (size_t i = 0; i < n_inputs; i++)
        RC_TRY(read_input(&maker, &inputs[i], err));
    return n_inputs > 1 ? apply_setup(&maker, err) : RC_OK;
}

rc_code rc_config_from_core_json(const rc_doc *fields, rc_arena *mem, rc_config **out,
                                 rc_error *err)
{
    if (fields->kind != RC_DOC_MAP)
        return RC_FAIL(err, RC_E_INPUT, fields->where,
                       "a map of TransformerConfig fields is "
                       "expected here");
    rc_doc core = *fields, root = {.kind = RC_DOC_MAP, .where = fields->where};
    rc_doc_add(&root, "core", fields->key_where, &core);
    rc_input input = {&root, RC_FROM_FILE};
    return rc_config_make(&input, 1, mem, out, err);
}
