/* config/inputs.c — the words of a command line as inputs of a config.
 *
 * takes  paths, overrides, Megatron-LM arguments and --model in any order
 * gives  one rc_input each, in their order, so that later ones win
 * next   config.c
 */
#include "args/flags.h"
#include "args/override.h"
#include "args/words.h"
#include "base/file.h"
#include "base/nodes.h"
#include "config/make.h"
#include "read/readers.h"

#include <recompute/read.h>

#include <string.h>

static const char command_line[] = "command line";

typedef struct words {
    const char *const *at;
    size_t n, next;
    rc_nodes nodes;
    rc_inputs *out;
    bool leaves_files; /* names them only */
} words;

const char *rc_framework_name(rc_framework framework)
{
    static const char *const names[] = {"bridge", "megatron-lm", "core"};
    return names[framework];
}

static rc_where where_of(const words *w, size_t i)
{
    return (rc_where){.file = command_line,
                      .line = (int)i + 1,
                      .col = 1,
                      .n_cols = (int)strlen(w->at[i]),
                      .text = w->at[i]};
}

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2] != '\0';
}

static void add_input(words *w, const rc_doc *doc, rc_origin_kind kind)
{
    w->out->at[w->out->n++] = (rc_input){doc, kind};
}

/* --model NAME or --model=NAME as {preset: NAME}. */
static rc_code take_model(words *w, rc_error *err)
{
    size_t i = w->next++;
    const char *name = strchr(w->at[i], '=');
    rc_doc *root, *preset;
    rc_where where = where_of(w, i);
    if (!name && w->next == w->n)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "--model needs a name; `recompute list models` shows all");
    if (name) {
        name++;
        where.col += (int)(name - w->at[i]);
        where.n_cols = (int)strlen(name);
    } else {
        name = w->at[w->next];
        where = where_of(w, w->next++);
    }
    RC_TRY(rc_nodes_add(&w->nodes, RC_DOC_MAP, where, &root, err));
    RC_TRY(rc_nodes_add_string(&w->nodes, where, name, strlen(name), &preset, err));
    rc_doc_add(root, "preset", where, preset);
    add_input(w, root, RC_FROM_PRESET);
    return RC_OK;
}

static bool is_model(const char *word)
{
    return strcmp(word, "--model") == 0 || strncmp(word, "--model=", 8) == 0;
}

/* Does the word behind `flag` and `n_values` values begin something else? A file is the value of an argument
 * that wants one (--load FILE), and of one that takes many (--data-path TEXT TEXT), unless it is named as a
 * configuration behind the first. Behind a switch, or numbers, it is a configuration. */
static bool is_other(const rc_flag *flag, size_t n_values, const char *word)
{
    if (is_model(word) || rc_override_is(word) || strcmp(word, "-") == 0)
        return true;
    if (!strpbrk(word, "./") || !rc_path_exists(word))
        return false;
    bool is_text = flag && (flag->takes == RC_FLAG_WORDS || flag->takes == RC_FLAG_ANY);
    bool is_one = flag && flag->takes == RC_FLAG_WORD;
    return n_values == 0 ? !is_text && !is_one : !is_text || rc_reader_is_named(word);
}

static const rc_flag *find_flag(const char *word)
{
    return rc_flag_find(word + 2, strcspn(word + 2, "="));
}

/* Past the end of a run of `--name value ...`. */
static void skip_args(words *w)
{
    const rc_flag *flag = NULL;
    size_t n_values = 0;
    for (; w->next < w->n; w->next++) {
        const char *word = w->at[w->next];
        if (is_flag(word) ? is_model(word) : is_other(flag, n_values, word))
            return;
        if (is_flag(word)) {
            flag = find_flag(word);
            n_values = strchr(word, '=') != NULL;
        } else if (!rc_flag_takes_more(flag, n_values++)) {
            return;
        }
    }
}

static rc_code take_args(words *w, rc_error *err)
{
    size_t from = w->next, n = 0;
    rc_args_word *placed;
    rc_doc *root, *args;
    skip_args(w);
    RC_TRY(RC_NEW(w->nodes.mem, &placed, w->next - from, err));
    for (size_t i = from; i < w->next; i++, n++)
        placed[n] = (rc_args_word){w->at[i], strlen(w->at[i]), where_of(w, i), false, false};
    RC_TRY(rc_nodes_add(&w->nodes, RC_DOC_MAP, where_of(w, from), &root, err));
    RC_TRY(rc_nodes_add(&w->nodes, RC_DOC_MAP, where_of(w, from), &args, err));
    RC_TRY(rc_args_add(&w->nodes, args, placed, n, err));
    rc_doc_add(root, "megatron_args", args->where, args);
    add_input(w, root, RC_FROM_FLAG);
    return RC_OK;
}

static rc_code take_overrides(words *w, rc_error *err)
{
    rc_doc *root;
    RC_TRY(rc_nodes_add(&w->nodes, RC_DOC_MAP, where_of(w, w->next), &root, err));
    for (; w->next < w->n && rc_override_is(w->at[w->next]); w->next++) {
        rc_where where = where_of(w, w->next);
        where.n_cols = 0;
        where.text = NULL;
        RC_TRY(rc_override_add(&w->nodes, root, w->at[w->next], where, err));
    }
    add_input(w, root, RC_FROM_OVERRIDE);
    return RC_OK;
}

static rc_code take_file(words *w, rc_error *err)
{
    rc_doc *doc;
    const char *path = w->at[w->next++];
    w->out->files[w->out->n_files++] = path;
    if (w->leaves_files)
        return RC_OK;
    RC_TRY(rc_doc_read(path, w->nodes.mem, &doc, err));
    add_input(w, doc, RC_FROM_FILE);
    return RC_OK;
}

static rc_code read_words(words w, rc_error *err)
{
    rc_inputs *out = w.out;
    rc_arena *mem = w.nodes.mem;
    size_t n_words = w.n;
    *out = (rc_inputs){0};
    RC_TRY(RC_NEW(mem, &out->at, n_words + 1, err));
    RC_TRY(RC_NEW(mem, &out->files, n_words + 1, err));
    while (w.next < w.n) {
        const char *word = w.at[w.next];
        if (is_model(word))
            RC_TRY(take_model(&w, err));
        else if (is_flag(word))
            RC_TRY(take_args(&w, err));
        else if (rc_override_is(word))
            RC_TRY(take_overrides(&w, err));
        else
            RC_TRY(take_file(&w, err));
    }
    out->framework = rc_inputs_framework(out->at, out->n);
    return RC_OK;
}

rc_code rc_inputs_read(const char *const *at, size_t n_words, rc_arena *mem, rc_inputs *out,
                       rc_error *err)
{
    words w = {.at = at, .n = n_words, .nodes = {.mem = mem}, .out = out};
    return read_words(w, err);
}

rc_code rc_inputs_read_settings(const char *const *at, size_t n_words, rc_arena *mem,
                                rc_inputs *out, rc_error *err)
{
    words w = {.at = at, .n = n_words, .nodes = {.mem = mem}, .out = out, .leaves_files = true};
    return read_words(w, err);
}
