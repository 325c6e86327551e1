/* config/flag.c — arguments as Megatron-LM's own parser sees them.
 *
 * takes  an argument as it is written on a command line, in a script or a MODEL_ARGS map
 * gives  what the parser would stop at: a name or a choice it does not know
 */
#include "args/flags.h"
#include "config/make.h"

#include <string.h>

enum { MAX_NAME = 128, MOST_NEAREST = 64 };

/* The name behind the -- where it is written; false where another form of input is, such as the
 * dump in a log, or where a script composes it. */
static bool find_written(const rc_doc *node, char name[MAX_NAME])
{
    const rc_where *where = &node->key_where;
    size_t n = strlen(node->key);
    if (!where->text || where->col < 1 || n + 1 > MAX_NAME ||
        memchr(where->text, '\0', (size_t)where->col + 1))
        return false;
    const char *at = where->text + where->col - 1;
    if (strncmp(at, "--", 2) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        name[i] = at[2 + i];
        if (name[i] != node->key[i] && !(name[i] == '-' && node->key[i] == '_'))
            return false;
    }
    name[n] = '\0';
    return true;
}

static bool is_among(const char *word, const char *words)
{
    size_t n = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (n > 0 && strncmp(at, word, n) == 0 && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* The first value that is no choice, or NULL. */
static const rc_doc *find_strange(const rc_doc *node, const char *choices)
{
    bool is_list = node->kind == RC_DOC_LIST;
    for (const rc_doc *one = is_list ? node->child : node; one;
         one = is_list ? one->next : NULL)
        if (one->text && !one->tag && !is_among(one->text, choices))
            return one;
    return NULL;
}

/* A setting that is written like its field has another name there; else the nearest. */
static rc_code find_instead(rc_maker *maker, const char *name, rc_field known, const char **out,
                            rc_error *err)
{
    const char *flag = known == RC_FIELD_COUNT ? "" : rc_field_find(known)->flag;
    flag += *flag == '!';
    *out = NULL;
    if (*flag && strcmp(flag + 2, name) != 0) {
        *out = flag;
        return RC_OK;
    }
    if (maker->n_unlisted++ >= MOST_NEAREST)
        return RC_OK;
    const rc_flag *nearest = rc_flag_nearest(name);
    return nearest ? rc_arena_printf(maker->mem, out, err, "--%s", nearest->name) : RC_OK;
}

rc_code rc_maker_judge_arg(rc_maker *maker, const rc_doc *node, rc_field known, bool is_known,
                           rc_error *err)
{
    char name[MAX_NAME];
    const char *path;
    if (!find_written(node, name))
        return is_known ? RC_OK : rc_maker_note_unknown(maker, node->key, node, err);
    const rc_flag *flag = rc_flag_find(name, strlen(name));
    RC_TRY(rc_arena_printf(maker->mem, &path, err, "--%s", name));
    rc_unknown_key fault = {
        .path = path, .where = node->key_where, .field = RC_FIELD_COUNT, .node = node};
    if (!flag) {
        fault.fault = RC_KEY_NOT_LISTED;
        RC_TRY(find_instead(maker, name, known, &fault.instead, err));
        return rc_maker_note(maker, fault, err);
    }
    const rc_doc *strange = *flag->choices ? find_strange(node, flag->choices) : NULL;
    if (strange) {
        fault.fault = RC_KEY_NO_CHOICE;
        fault.where = strange->where;
        fault.instead = flag->choices;
        RC_TRY(rc_maker_note(maker, fault, err));
    }
    if (is_known && !flag->instead)
        return RC_OK;
    fault.where = node->key_where;
    fault.fault = flag->instead ? RC_KEY_GONE : RC_KEY_LISTED;
    fault.instead = flag->instead;
    return rc_maker_note(maker, fault, err);
}
