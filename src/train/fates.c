/* train/fates.c — every setting that a config holds is used, harmless or refused: fates.def.
 *
 * takes  a config: its fields, and the keys and arguments that are no field of ours
 * gives  the first that asks for what the engine would leave out, or that nobody here knows
 *
 * Fields are looked at in their order, then what is no field in the order of the input. A
 * section of which no field of ours stands is one key with a map: it is judged key by key.
 */
#include "train/fates.h"

#include <recompute/train.h>

#include "base/num.h"
#include "base/text.h"
#include "config/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PATH = 512 };

static const rc_fate fates[] = {
#define RC_FATE(scope, section, name, kind, neutral, words)                                    \
    {RC_FATE_##scope, section, name, RC_FATE_##kind, neutral, words},
#include "defs/fates.def"
#undef RC_FATE
};
enum { N_FATES = sizeof fates / sizeof *fates };

const rc_fate *rc_fate_list(size_t *n)
{
    *n = N_FATES;
    return fates;
}

/* --- finding a row */

/* Equal but for - and _; a star at the end of the row's name is any rest. */
static bool is_named(const char *row, const char *name, bool is_family)
{
    for (; *row && *name; row++, name++)
        if (*row != *name && !(*row == '_' && *name == '-'))
            break;
    if (is_family)
        return row[0] == '*' && row[1] == '\0';
    return *row == '\0' && *name == '\0';
}

/* In the section of `n` letters, or in any where it is NULL: there whole sections' families do
 * not match. */
static const rc_fate *find(const char *section, size_t n, const char *name)
{
    for (int is_family = 0; is_family < 2; is_family++)
        for (size_t i = 0; i < N_FATES; i++) {
            const rc_fate *row = &fates[i];
            bool is_here =
                section ? strlen(row->section) == n && strncmp(row->section, section, n) == 0
                        : row->name[0] != '*' && row->name[0] != '_';
            if (is_here && is_named(row->name, name, is_family))
                return row;
        }
    return NULL;
}

const rc_fate *rc_fate_of_key(const char *path)
{
    const char *name = rc_text_last_part(path);
    return find(path, name > path ? (size_t)(name - path) - 1 : 0, name);
}

const rc_fate *rc_fate_of_field(rc_field field)
{
    return rc_fate_of_key(rc_field_key(field));
}

const rc_fate *rc_fate_of_argument(const char *argument)
{
    return find(NULL, 0, argument + (strncmp(argument, "--", 2) == 0 ? 2 : 0));
}

/* An argument that is listed, or the name of one in an argument dump. */
static const rc_fate *fate_of(const rc_unknown_key *key)
{
    bool is_bare = !strchr(key->path, '.');
    const rc_fate *row = key->fault == RC_KEY_LISTED ? NULL : rc_fate_of_key(key->path);
    return row || !is_bare ? row : rc_fate_of_argument(key->path);
}

/* --- does a value ask for what the engine does anyway? */

/* What a field holds, as the number that `=FIELD` stands for. */
static double number_of(const rc_config *cfg, const char *name)
{
    rc_field field = rc_field_find_name(name);
    const void *at = rc_config_value_at(cfg, field);
    if (cfg->origin[field].is_null)
        return (double)NAN;
    return rc_field_find(field)->type == RC_FIELD_TYPE_REAL ? *(const rc_field_REAL *)at
                                                            : (double)*(const rc_field_INT *)at;
}

static bool is_number(const rc_config *cfg, const char *word, double value)
{
    double number = (double)INFINITY;
    if (word[0] == '=')
        number = number_of(cfg, word + 1);
    else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        number = word[0] == 't';
    else if (strcmp(word, "inf") != 0 && !rc_parse_real(word, &number))
        return false;
    return value <= number && value >= number; /* never of NAN */
}

static bool is_text(const char *word, const char *text)
{
    size_t n = strlen(text), n_end = strlen(word) - 1;
    if (word[0] == '*')
        return n >= n_end && strcmp(text + n - n_end, word + 1) == 0;
    return strcmp(word, text + (strncmp(text, "torch.", 6) == 0 ? 6 : 0)) == 0;
}

/* The class of a function or value counts, as does its first argument (of an enumeration). */
static bool is_word(const char *word, const rc_doc *node)
{
    const char *text = rc_value_text(node);
    return is_text(word, text ? text : "") ||
           (word[0] == '*' && is_text(word, node->tag ? node->tag : ""));
}

/* One word of `neutral` against a node. */
static bool is_it(const rc_config *cfg, const char *word, const rc_doc *node)
{
    bool is_empty = node->n_children == 0 && !node->tag;
    if (node->kind == RC_DOC_NULL)
        return strcmp(word, "null") == 0;
    if (node->kind == RC_DOC_LIST || (node->kind == RC_DOC_MAP && is_empty))
        return is_empty && (strcmp(word, "[]") == 0 || strcmp(word, "{}") == 0);
    if (node->kind == RC_DOC_BOOL)
        return strcmp(word, node->i ? "true" : "false") == 0;
    if (node->kind == RC_DOC_INT || node->kind == RC_DOC_FLOAT)
        return is_number(cfg, word, node->f);
    return is_word(word, node);
}

static bool is_neutral(const rc_config *cfg, const rc_fate *row, const rc_doc *node)
{
    char word[64];
    for (const char *at = row->neutral; *at;) {
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (node ? is_it(cfg, word, node) : strcmp(word, "null") == 0)
            return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

/* --- refusing */

static rc_code refuse(const rc_fate *row, const char *path, rc_where where, rc_error *err)
{
    char safe[100];
    rc_text_printable(path, strlen(path), safe, sizeof safe);
    return RC_FAIL(err, RC_E_UNSUPPORTED, where, "%s: unsupported by the engine; %s", safe,
                   row->words);
}

/* A default is what the engine does, or its row would be refused in every run. */
static rc_code refuse_fields(const rc_config *cfg, rc_fate_scope scope, rc_error *err)
{
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_origin *origin = &cfg->origin[i];
        if (!origin->node)
            continue;
        const rc_fate *row = rc_fate_of_field((rc_field)i);
        if (!row)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "%s has no fate",
                           rc_field_find((rc_field)i)->name);
        if (row->kind == RC_FATE_REFUSED && row->scope == scope &&
            !is_neutral(cfg, row, origin->node))
            return refuse(row, rc_field_key((rc_field)i), origin->where, err);
    }
    return RC_OK;
}

/* What is no field, one at a time; a map of a section as its keys. */
typedef rc_code (*judge)(const rc_config *cfg, const rc_unknown_key *key, rc_fate_scope scope,
                         rc_error *err);

static rc_code judge_key(const rc_config *cfg, const rc_unknown_key *key, rc_fate_scope scope,
                         judge say, rc_error *err)
{
    char path[MOST_PATH];
    bool is_map = key->fault == RC_KEY_NO_FIELD && key->node &&
                  (key->node->kind == RC_DOC_MAP || key->node->kind == RC_DOC_NULL) &&
                  strlen(key->path) < MOST_PATH / 2;
    snprintf(path, sizeof path, "%.250s._target_", key->path);
    if (!is_map || !rc_fate_of_key(path)) /* no section that we know */
        return say(cfg, key, scope, err);
    for (const rc_doc *node = key->node->child; node; node = node->next) {
        rc_unknown_key one = {
            .path = path, .where = node->key_where, .field = RC_FIELD_COUNT, .node = node};
        snprintf(path, sizeof path, "%.250s.%.250s", key->path, node->key);
        RC_TRY(say(cfg, &one, scope, err));
    }
    return RC_OK;
}

static rc_code judge_all(const rc_config *cfg, rc_fate_scope scope, judge say, rc_error *err)
{
    for (size_t i = 0; i < cfg->n_unknown; i++)
        RC_TRY(judge_key(cfg, &cfg->unknown[i], scope, say, err));
    return RC_OK;
}

static rc_code refuse_unknown(const rc_config *cfg, const rc_unknown_key *key,
                              rc_fate_scope scope, rc_error *err)
{
    (void)cfg;
    (void)scope;
    if (!key->is_value && key->fault != RC_KEY_NOT_LISTED && key->fault != RC_KEY_GONE &&
        (key->fault == RC_KEY_NO_CHOICE || fate_of(key)))
        return RC_OK;
    return rc_config_refuse_key(key, err);
}

static rc_code refuse_asked(const rc_config *cfg, const rc_unknown_key *key,
                            rc_fate_scope scope, rc_error *err)
{
    if (key->is_value || key->fault == RC_KEY_NO_CHOICE)
        return RC_OK;
    const rc_fate *row = fate_of(key);
    bool is_missing = row && row->kind == RC_FATE_VOCABULARY && scope == RC_FATE_MODEL &&
                      cfg->vocab_size == RC_NULL_INT && key->node &&
                      key->node->kind != RC_DOC_NULL;
    if (is_missing)
        return RC_FAIL(err, RC_E_INPUT, key->where,
                       "a tokenizer is not read here, so the size of its vocabulary is not "
                       "known; give --vocab-size or model.vocab_size");
    if (row && row->kind == RC_FATE_REFUSED && row->scope == scope &&
        !is_neutral(cfg, row, key->node))
        return refuse(row, key->path, key->where, err);
    return RC_OK;
}

rc_code rc_train_refuse_unknown(const rc_config *cfg, rc_error *err)
{
    return judge_all(cfg, RC_FATE_MODEL, refuse_unknown, err);
}

rc_code rc_train_refuse_model(const rc_config *cfg, rc_error *err)
{
    RC_TRY(rc_train_refuse_unknown(cfg, err));
    RC_TRY(refuse_fields(cfg, RC_FATE_MODEL, err));
    return judge_all(cfg, RC_FATE_MODEL, refuse_asked, err);
}

rc_code rc_train_refuse_run(const rc_config *cfg, rc_error *err)
{
    RC_TRY(rc_config_refuse_foreign(cfg, err));
    RC_TRY(rc_train_refuse_model(cfg, err));
    RC_TRY(refuse_fields(cfg, RC_FATE_RUN, err));
    return judge_all(cfg, RC_FATE_RUN, refuse_asked, err);
}

rc_code rc_fates_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const char *const kinds[] = {"used", "harmless", "refused", "needs vocab_size"};
    static const rc_column columns[] = {{"setting", NULL, RC_UNIT_TEXT},
                                        {"fate", NULL, RC_UNIT_TEXT},
                                        {"neutral", "unless it is", RC_UNIT_TEXT},
                                        {"words", "where, why, or what instead", RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "fates", "What training does with every setting", columns, 4, out,
                         err));
    for (size_t i = 0; i < N_FATES; i++) {
        rc_cell *row;
        const char *name;
        RC_TRY(rc_arena_printf(mem, &name, err, "%s%s%s", fates[i].section,
                               *fates[i].section ? "." : "", fates[i].name));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(name);
        row[1] = rc_cell_text(kinds[fates[i].kind]);
        row[2] = rc_cell_text(fates[i].neutral);
        row[3] = rc_cell_text(fates[i].words);
    }
    return RC_OK;
}
