/* config/asks.c — finds the row of a setting in a table, and says whether a value asks for anything.
 *
 * takes  rows "section.name" with neutral values (fates.def, graph_lacks.def), and a config
 * gives  what an input asks for, one setting at a time, each with its row
 * next   graph/lacks.c and train/fates.c refuse
 */
#include "config/asks.h"

#include "base/num.h"
#include "base/text.h"
#include "config/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PATH = 512 };

static const rc_ask *row_at(const rc_asks *table, size_t i)
{
    return (const rc_ask *)(const void *)((const char *)table->rows + i * table->row_bytes);
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

static size_t section_of(const char *path)
{
    const char *name = rc_text_last_part(path);
    return name > path ? (size_t)(name - path) - 1 : 0;
}

const rc_ask *rc_asks_of_key(const rc_asks *table, const char *path)
{
    const size_t n = section_of(path);
    for (int is_family = 0; is_family < 2; is_family++)
        for (size_t i = 0; i < table->n; i++) {
            const rc_ask *row = row_at(table, i);
            if (strncmp(row->key, path, n) == 0 && section_of(row->key) == n &&
                is_named(row->key + n, path + n, is_family))
                return row;
        }
    return NULL;
}

const rc_ask *rc_asks_of_field(const rc_asks *table, rc_field field)
{
    return rc_asks_of_key(table, rc_field_key(field));
}

/* In whatever section; the families of whole sections and their classes are no arguments. */
const rc_ask *rc_asks_of_argument(const rc_asks *table, const char *argument)
{
    const char *typed = argument + (strncmp(argument, "--", 2) == 0 ? 2 : 0);
    for (int is_family = 0; is_family < 2; is_family++)
        for (size_t i = 0; i < table->n; i++) {
            const rc_ask *row = row_at(table, i);
            const char *name = rc_text_last_part(row->key);
            if (name[0] != '*' && name[0] != '_' && is_named(name, typed, is_family))
                return row;
        }
    return NULL;
}

/* An argument that is listed, or the name of one in an argument dump. */
const rc_ask *rc_asks_of_unknown(const rc_asks *table, const rc_unknown_key *key)
{
    bool is_bare = !strchr(key->path, '.');
    const rc_ask *row = key->fault == RC_KEY_LISTED ? NULL : rc_asks_of_key(table, key->path);
    return row || !is_bare ? row : rc_asks_of_argument(table, key->path);
}

static bool has_section(const rc_asks *table, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < table->n; i++) {
        const char *key = row_at(table, i)->key;
        if (strncmp(key, name, n) == 0 && key[n] == '.')
            return true;
    }
    return false;
}

/* --- does a value ask for what is done anyway? */

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

bool rc_ask_is_neutral(const rc_config *cfg, const rc_ask *row, const rc_doc *node)
{
    for (const char *const *word = row->neutral; *word; word++)
        if (node ? is_it(cfg, *word, node) : strcmp(*word, "null") == 0)
            return true;
    return false;
}

bool rc_ask_is_asked(const rc_config *cfg, const rc_asked *asked, const rc_ask *row)
{
    const rc_unknown_key *unknown = asked->unknown;
    return !(unknown && (unknown->is_value || unknown->fault == RC_KEY_NO_CHOICE)) &&
           !rc_ask_is_neutral(cfg, row, asked->node);
}

rc_code rc_ask_refuse(const rc_asked *asked, const rc_ask *row, const char *by, rc_error *err)
{
    char safe[100];
    return RC_FAIL(err, RC_E_UNSUPPORTED, asked->where, "%s: unsupported by the %s; %s",
                   rc_text_printable(asked->key, strlen(asked->key), safe, sizeof safe), by,
                   row->words);
}

rc_code rc_ask_show_neutral(const rc_ask *row, rc_arena *mem, const char **out, rc_error *err)
{
    *out = "";
    for (const char *const *word = row->neutral; *word; word++)
        RC_TRY(rc_arena_printf(mem, out, err, "%s%s%s", *out, **out ? " " : "", *word));
    return RC_OK;
}

/* --- what is asked for */

rc_code rc_asks_walk_fields(const rc_asks *table, const rc_config *cfg, rc_ask_judge say,
                            const void *user, rc_error *err)
{
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_origin *origin = &cfg->origin[i];
        if (!origin->node)
            continue;
        const rc_asked asked = {rc_field_key((rc_field)i), origin->where, origin->node, NULL};
        RC_TRY(say(cfg, &asked, rc_asks_of_field(table, (rc_field)i), user, err));
    }
    return RC_OK;
}

static rc_code walk_key(const rc_asks *table, const rc_config *cfg, const rc_unknown_key *key,
                        rc_ask_judge say, const void *user, rc_error *err)
{
    char path[MOST_PATH];
    bool is_map = key->fault == RC_KEY_NO_FIELD && key->node &&
                  (key->node->kind == RC_DOC_MAP || key->node->kind == RC_DOC_NULL) &&
                  strlen(key->path) < MOST_PATH / 2;
    if (!is_map || !has_section(table, key->path)) {
        const rc_asked asked = {key->path, key->where, key->node, key};
        return say(cfg, &asked, rc_asks_of_unknown(table, key), user, err);
    }
    for (const rc_doc *node = key->node->child; node; node = node->next) {
        const rc_unknown_key one = {
            .path = path, .where = node->key_where, .field = RC_FIELD_COUNT, .node = node};
        const rc_asked asked = {path, node->key_where, node, &one};
        snprintf(path, sizeof path, "%.250s.%.250s", key->path, node->key);
        RC_TRY(say(cfg, &asked, rc_asks_of_unknown(table, &one), user, err));
    }
    return RC_OK;
}

rc_code rc_asks_walk_unknown(const rc_asks *table, const rc_config *cfg, rc_ask_judge say,
                             const void *user, rc_error *err)
{
    for (size_t i = 0; i < cfg->n_unknown; i++)
        RC_TRY(walk_key(table, cfg, &cfg->unknown[i], say, user, err));
    return RC_OK;
}
