/* args.c — Megatron-LM's arguments out of argument lines and shell scripts, as data.
 *
 * takes  the commands and variables that shell.c found
 * gives  {megatron_args: {name: value}, env: {NAME: value}}, and Bridge's key=value words as the
 *        sections they name
 * next   config/: names to fields by table
 *
 * In a script the trainer's arguments are those behind the .py file of a command; where there is
 * no such command (a fragment that others source), those of the variables.
 */
#include "args/words.h"

#include "args/flags.h"
#include "args/override.h"
#include "args/python.h"
#include "args/shell.h"
#include "base/text.h"

#include <recompute/args.h>

#include <string.h>

enum { MAX_FLAGS = 4096, MAX_NESTED = 64 };

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2] != '\0' && word[2] != '-';
}

rc_code rc_args_name(rc_nodes *nodes, const char *flag, size_t n, const char **out,
                     rc_error *err)
{
    char *name;
    RC_TRY(RC_NEW(nodes->mem, &name, n + 1, err));
    for (size_t i = 0; i < n; i++)
        name[i] = flag[i] == '-' ? '_' : flag[i];
    *out = name;
    return RC_OK;
}

static rc_code make_value(rc_nodes *nodes, const rc_args_word *word, rc_doc **out,
                          rc_error *err)
{
    if (word->n_bytes > 0 && strchr("[(", word->text[0]))
        return rc_python_read(nodes, word->text, word->n_bytes, word->where, out, err);
    RC_TRY(rc_nodes_add_string(nodes, word->where, word->text, word->n_bytes, out, err));
    rc_doc_resolve_word(*out);
    return RC_OK;
}

static rc_code make_unknown(rc_nodes *nodes, const rc_args_word *word, rc_doc **out,
                            rc_error *err)
{
    RC_TRY(rc_nodes_add_string(nodes, word->where, word->text, word->n_bytes, out, err));
    (*out)->tag = "?";
    (*out)->is_quoted = true;
    return RC_OK;
}

/* The values behind a flag as one node: none is true, one itself, several a list. */
static rc_code make_values(rc_nodes *nodes, const rc_args_word *flag,
                           const rc_args_word *values, size_t n, rc_doc **out, rc_error *err)
{
    if (flag->is_unknown)
        return make_unknown(nodes, flag, out, err);
    for (size_t i = 0; i < n; i++)
        if (values[i].is_unknown)
            return make_unknown(nodes, &values[i], out, err);
    if (n == 1)
        return make_value(nodes, values, out, err);
    if (n == 0) {
        RC_TRY(rc_nodes_add(nodes, RC_DOC_BOOL, flag->where, out, err));
        (*out)->i = 1;
        return RC_OK;
    }
    RC_TRY(rc_nodes_add(nodes, RC_DOC_LIST, values[0].where, out, err));
    for (size_t i = 0; i < n; i++) {
        rc_doc *node;
        RC_TRY(make_value(nodes, &values[i], &node, err));
        rc_doc_add(*out, NULL, RC_NOWHERE, node);
    }
    return RC_OK;
}

rc_code rc_args_put(rc_doc *map, const char *key, rc_where where, rc_doc *node, rc_error *err)
{
    for (rc_doc *old = map->child; old; old = old->next)
        if (strcmp(old->key, key) == 0) {
            rc_doc_remove(map, old);
            break;
        }
    if (map->n_children >= MAX_FLAGS)
        return RC_FAIL(err, RC_E_RANGE, where, "more than %d arguments", MAX_FLAGS);
    rc_doc_add(map, key, where, node);
    return RC_OK;
}

/* One flag, the words up to the next, and what the parser says of it (NULL: it knows none). */
typedef struct flag_words {
    rc_args_word flag;
    const rc_flag *known;
    const rc_args_word *values;
    size_t n_values;
    rc_args_word own; /* the value of --name=value */
} flag_words;

/* Behind the last value a word from outside the script, "$@", begins something else or nothing. */
static void drop_outside(flag_words *f)
{
    size_t n_least = f->known && f->known->takes == RC_FLAG_NONE ? 0 : 1;
    if (!f->known && f->n_values > 0 && f->values[0].text[0] == '$' &&
        strchr("@*", f->values[0].text[1]))
        n_least = 0;
    while (f->n_values > n_least && f->values[f->n_values - 1].is_outside)
        f->n_values--;
}

static bool is_number(const rc_args_word *word, bool is_whole)
{
    rc_doc node = {.kind = RC_DOC_STRING, .text = word->text, .n_bytes = word->n_bytes};
    rc_doc_resolve_word(&node);
    bool is_special = strpbrk(word->text, "nN") != NULL; /* Python's inf and nan */
    return word->is_unknown || node.kind == RC_DOC_INT ||
           (!is_whole && (node.kind == RC_DOC_FLOAT || is_special));
}

static bool is_pattern(const rc_args_word *word)
{
    return word->is_unknown || strspn(word->text, "0123456789,[]()+*- ") == word->n_bytes;
}

static const char *const kinds[] = {/* ORDER rc_flag_takes */
                                    "",
                                    "a whole number",
                                    "a number",
                                    "a word",
                                    "a number or a list such as ([0]*3+[1]*5)",
                                    "whole numbers",
                                    "numbers",
                                    "words",
                                    "words"};

/* More values than the flag takes, `n_most` of them. */
static rc_code refuse_extra(const flag_words *f, size_t n_most, rc_error *err)
{
    const rc_args_word *extra = &f->values[n_most];
    char safe[80];
    rc_text_printable(extra->text, extra->n_bytes, safe, sizeof safe);
    if (safe[0] == '-' && strpbrk(safe, "abcdefghijklmnopqrstuvwxyz") == safe + 1)
        return RC_FAIL(err, RC_E_INPUT, extra->where,
                       "%s is no argument: they begin with two dashes", safe);
    if (n_most)
        return RC_FAIL(err, RC_E_INPUT, extra->where,
                       "--%s takes one value; %s is one too many", f->known->name, safe);
    return RC_FAIL(err, RC_E_INPUT, extra->where,
                   "--%s is a switch and takes no value; leave out %s%s", f->known->name,
                   f->values == &f->own ? "=" : "", safe);
}

/* What argparse refuses: what the values are, then how many. */
static rc_code check_values(const flag_words *f, rc_error *err)
{
    rc_flag_takes takes = f->known->takes;
    bool is_whole = takes == RC_FLAG_INT || takes == RC_FLAG_INTS;
    bool is_free = takes == RC_FLAG_WORD || takes >= RC_FLAG_WORDS;
    char safe[80];
    size_t n_most = 0;
    while (n_most < f->n_values && rc_flag_takes_more(f->known, n_most))
        n_most++;
    if (f->n_values == 0 && takes != RC_FLAG_NONE && takes != RC_FLAG_ANY)
        return RC_FAIL(err, RC_E_INPUT, f->flag.where, "--%s needs a value: %s", f->known->name,
                       kinds[takes]);
    for (size_t i = 0; i < n_most && !is_free; i++) {
        if (takes == RC_FLAG_PATTERN ? is_pattern(&f->values[i])
                                     : is_number(&f->values[i], is_whole))
            continue;
        rc_text_printable(f->values[i].text, f->values[i].n_bytes, safe, sizeof safe);
        return RC_FAIL(err, RC_E_INPUT, f->values[i].where, "--%s must be %s, not \"%s\"",
                       f->known->name, kinds[takes], safe);
    }
    bool has_extra = f->n_values > n_most && !f->values[n_most].is_unknown;
    return has_extra ? refuse_extra(f, n_most, err) : RC_OK;
}

/* The flag at words[*at] and its values; *at moves behind them. */
static void take_flag(const rc_args_word *words, size_t n_words, size_t *at, flag_words *out)
{
    rc_args_word flag = words[(*at)++], value = flag;
    size_t n_name = strcspn(flag.text + 2, "=");
    *out = (flag_words){
        .flag = flag, .known = rc_flag_find(flag.text + 2, n_name), .values = words + *at};
    while (*at + out->n_values < n_words && !is_flag(out->values[out->n_values].text))
        out->n_values++;
    *at += out->n_values;
    out->flag.where.n_cols = (int)n_name + 2;
    out->flag.n_bytes = n_name + 2;
    if (flag.text[2 + n_name] != '=')
        return;
    value.text += n_name + 3;
    value.n_bytes -= n_name + 3;
    value.where.col += (int)n_name + 3;
    value.where.n_cols = (int)value.n_bytes;
    out->flag.is_unknown = false; /* so far as it is, the value is */
    out->own = value;
    out->n_values = 1;
}

rc_code rc_args_add(rc_nodes *nodes, rc_doc *map, const rc_args_word *words, size_t n_words,
                    rc_error *err)
{
    size_t i = 0;
    while (i < n_words && !is_flag(words[i].text))
        i++;
    while (i < n_words) {
        flag_words f;
        const char *name;
        rc_doc *node;
        take_flag(words, n_words, &i, &f);
        if (f.own.text)
            f.values = &f.own;
        RC_TRY(rc_args_name(nodes, f.flag.text + 2, f.flag.n_bytes - 2, &name, err));
        drop_outside(&f);
        if (f.known && !f.flag.is_unknown)
            RC_TRY(check_values(&f, err));
        RC_TRY(make_values(nodes, &f.flag, f.values, f.n_values, &node, err));
        RC_TRY(rc_args_put(map, name, f.flag.where, node, err));
    }
    return RC_OK;
}

static bool ends_with(const char *text, size_t n, const char *end)
{
    size_t n_end = strlen(end);
    return n > n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

/* Where the arguments of the trainer begin: behind the first .py that is no flag's value; 0 when
 * there is none. */
static size_t find_trainer(const rc_shell_words *words)
{
    size_t first = 0;
    for (size_t i = 0; i < words->n; i++) {
        if (!ends_with(words->at[i].text, words->at[i].n_bytes, ".py"))
            continue;
        if (first == 0)
            first = i + 1;
        if (i == 0 || !is_flag(words->at[i - 1].text))
            return i + 1;
    }
    return first;
}

/* Arguments behind `from`; Bridge's key=value words count only behind a trainer. */
static size_t count_flags(const rc_shell_words *words, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < words->n; i++)
        n += is_flag(words->at[i].text) || (from > 0 && rc_override_is(words->at[i].text));
    return n;
}

/* eval $CMD: its words with spaces between are a script. */
static rc_code join_words(const rc_shell_words *words, rc_arena *mem, rc_shell_word *out,
                          rc_error *err)
{
    size_t n = 0;
    char *text;
    int32_t *from;
    for (size_t i = 1; i < words->n; i++)
        n += words->at[i].n_bytes + 1;
    RC_TRY(RC_NEW(mem, &text, n + 1, err));
    RC_TRY(RC_NEW(mem, &from, n + 1, err));
    n = 0;
    for (size_t i = 1; i < words->n; i++) {
        const rc_shell_word *word = &words->at[i];
        if (word->n_bytes == 0)
            continue;
        memcpy(text + n, word->text, word->n_bytes);
        memcpy(from + n, word->from, word->n_bytes * sizeof *from);
        n += word->n_bytes;
        from[n] = from[n - 1];
        text[n++] = ' ';
    }
    *out = (rc_shell_word){.text = text, .from = from, .n_bytes = n};
    return RC_OK;
}

/* bash -c "torchrun ... pretrain_gpt.py ...": the word is a script itself. Words that only mention
 * one, such as the lines of a help text, may be none. */
static rc_code read_nested_word(rc_source *source, const rc_shell_word *word, rc_arena *mem,
                                rc_shell *shell, size_t *n_read, rc_error *err)
{
    rc_error why = {0};
    if (*n_read == MAX_NESTED || !strpbrk(word->text, " \n") || !strstr(word->text, ".py"))
        return RC_OK;
    (*n_read)++;
    rc_code code = rc_shell_read_word(source, word, mem, shell, &why);
    if (code == RC_OK || code == RC_E_INPUT)
        return RC_OK;
    *err = why;
    return code;
}

static rc_code read_nested(rc_source *source, rc_arena *mem, rc_shell *shell, rc_error *err)
{
    for (size_t i = 0, n_read = 0; i < shell->n_commands && n_read < MAX_NESTED; i++) {
        rc_shell_words words = shell->commands[i];
        rc_shell_word joined;
        bool is_eval = words.n > 1 && strcmp(words.at[0].text, "eval") == 0;
        if (is_eval) {
            RC_TRY(join_words(&words, mem, &joined, err));
            RC_TRY(read_nested_word(source, &joined, mem, shell, &n_read, err));
        }
        for (size_t k = 1; k < words.n && !is_eval; k++)
            RC_TRY(read_nested_word(source, &words.at[k], mem, shell, &n_read, err));
    }
    return RC_OK;
}

/* The command with the most arguments behind a trainer, and where they begin; false when no
 * command calls one. Of equals the last. */
static bool find_trainer_command(const rc_shell *shell, rc_shell_words *out)
{
    size_t n_best = 0;
    for (size_t i = 0; i < shell->n_commands; i++) {
        const rc_shell_words *words = &shell->commands[i];
        size_t from = find_trainer(words), n = count_flags(words, from);
        if (from == 0 || n == 0 || n < n_best)
            continue;
        n_best = n;
        *out = (rc_shell_words){.at = words->at + from, .n = words->n - from};
    }
    return n_best > 0;
}

/* Appends every command that begins with an argument, or, `with_all`, has one. */
static void add_commands(const rc_shell *shell, bool with_all, rc_shell_words *out)
{
    for (size_t i = 0; i < shell->n_commands; i++) {
        const rc_shell_words *words = &shell->commands[i];
        if (with_all ? count_flags(words, 0) == 0 : !is_flag(words->at[0].text))
            continue;
        memcpy(out->at + out->n, words->at, words->n * sizeof *words->at);
        out->n += words->n;
    }
}

/* A script that only fills variables: its arrays, and its strings read as lines of arguments. */
static rc_code read_variables(rc_source *source, rc_arena *mem, rc_shell *shell, rc_error *err)
{
    size_t n_variables = shell->n_variables;
    for (size_t i = 0; i < n_variables; i++) {
        const rc_shell_variable *variable = shell->variables[i];
        for (size_t k = 0; k < variable->words.n && !variable->is_array; k++)
            if (strstr(variable->words.at[k].text, "--") && variable->words.at[k].n_bytes > 0)
                RC_TRY(rc_shell_read_word(source, &variable->words.at[k], mem, shell, err));
    }
    return RC_OK;
}

static void add_arrays(const rc_shell *shell, rc_shell_words *out)
{
    for (size_t i = 0; i < shell->n_variables; i++) {
        const rc_shell_words *words = &shell->variables[i]->words;
        if (!shell->variables[i]->is_array || count_flags(words, 0) == 0)
            continue;
        memcpy(out->at + out->n, words->at, words->n * sizeof *words->at);
        out->n += words->n;
    }
}

static rc_code take_room(const rc_shell *shell, rc_arena *mem, rc_shell_words *out,
                         rc_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < shell->n_commands; i++)
        n += shell->commands[i].n;
    for (size_t i = 0; i < shell->n_variables; i++)
        n += shell->variables[i]->words.n;
    *out = (rc_shell_words){0};
    return RC_NEW(mem, &out->at, n + 1, err);
}

/* The words to take arguments from, all in one list: those of the trainer's command, else of lines
 * of bare arguments, else of variables, else of whatever command has some. */
static rc_code choose_words(rc_source *source, rc_shell *shell, rc_arena *mem,
                            rc_shell_words *out, rc_error *err)
{
    if (find_trainer_command(shell, out))
        return RC_OK;
    RC_TRY(take_room(shell, mem, out, err));
    add_commands(shell, false, out);
    if (out->n > 0)
        return RC_OK;
    RC_TRY(read_variables(source, mem, shell, err));
    RC_TRY(take_room(shell, mem, out, err));
    add_arrays(shell, out);
    add_commands(shell, false, out);
    if (out->n == 0)
        add_commands(shell, true, out);
    return RC_OK;
}

static rc_args_word place_word(rc_source *source, const rc_shell_word *word)
{
    rc_args_word placed = {word->text, word->n_bytes, RC_NOWHERE, word->is_unknown, false};
    placed.is_outside = rc_shell_is_outside(word);
    if (word->n_bytes > 0) {
        int32_t from = rc_shell_offset(word->from[0]);
        int32_t to = rc_shell_offset(word->from[word->n_bytes - 1]);
        bool is_whole = to >= from && (size_t)(to - from) < 2 * word->n_bytes;
        placed.where = rc_source_where(source, (size_t)from,
                                       is_whole ? (size_t)(to - from) + 1 : word->n_bytes);
    }
    return placed;
}

static rc_code add_env(rc_nodes *nodes, rc_doc *root, rc_source *source, const rc_shell *shell,
                       rc_error *err)
{
    rc_doc *env;
    RC_TRY(rc_nodes_add(nodes, RC_DOC_MAP, rc_source_where(source, 0, 0), &env, err));
    for (size_t i = 0; i < shell->n_variables; i++) {
        const rc_shell_variable *variable = shell->variables[i];
        if (!variable->is_exported)
            continue;
        rc_shell_word empty = {.text = ""};
        rc_args_word word =
            place_word(source, variable->words.n ? &variable->words.at[0] : &empty);
        rc_doc *node;
        RC_TRY(rc_nodes_add_string(nodes, word.where, word.text, word.n_bytes, &node, err));
        node->is_quoted = true;
        node->tag = word.is_unknown ? "?" : NULL;
        rc_doc_add(env, variable->name, word.where, node);
    }
    if (env->n_children > 0)
        rc_doc_add(root, "env", env->where, env);
    return RC_OK;
}

static rc_code add_words(rc_nodes *nodes, rc_doc *root, rc_source *source,
                         const rc_shell_words *chosen, rc_error *err)
{
    rc_args_word *words;
    size_t n_words = 0;
    rc_doc *args;
    RC_TRY(RC_NEW(nodes->mem, &words, chosen->n + 1, err));
    RC_TRY(rc_nodes_add(nodes, RC_DOC_MAP, rc_source_where(source, 0, 0), &args, err));
    for (size_t i = 0; i < chosen->n; i++) {
        rc_args_word word = place_word(source, &chosen->at[i]);
        bool is_override = rc_override_is(word.text) && strchr(word.text, '.') &&
                           strchr(word.text, '.') < strchr(word.text, '=');
        if (is_override && !word.is_unknown)
            RC_TRY(rc_override_add(nodes, root, word.text, word.where, err));
        else
            words[n_words++] = word;
    }
    RC_TRY(rc_args_add(nodes, args, words, n_words, err));
    if (args->n_children > 0)
        rc_doc_add(root, "megatron_args", args->where, args);
    return RC_OK;
}

rc_code rc_args_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                     rc_doc **out, rc_error *err)
{
    rc_nodes nodes = {.mem = mem};
    rc_source source;
    rc_shell shell;
    rc_shell_words chosen = {0};
    RC_TRY(rc_source_open(path, bytes, n_bytes, mem, &source, err));
    RC_TRY(rc_shell_read(&source, mem, &shell, err));
    RC_TRY(read_nested(&source, mem, &shell, err));
    RC_TRY(choose_words(&source, &shell, mem, &chosen, err));
    RC_TRY(rc_nodes_add(&nodes, RC_DOC_MAP, rc_source_where(&source, 0, 0), out, err));
    RC_TRY(add_words(&nodes, *out, &source, &chosen, err));
    RC_TRY(add_env(&nodes, *out, &source, &shell, err));
    if ((*out)->n_children == 0)
        return RC_FAIL(err, RC_E_INPUT, rc_source_where(&source, 0, 0),
                       "no arguments (--name value) are found here");
    return RC_OK;
}

bool rc_args_is(const char *bytes)
{
    bytes += strspn(bytes, " \t\r\n");
    if (strncmp(bytes, "#!", 2) == 0 || is_flag(bytes))
        return true;
    for (const char *line = bytes; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t");
        static const char *const starts[] = {"export ",     "torchrun ", "python", "srun ",
                                             "MODEL_ARGS=", "GPT_ARGS=", "#SBATCH"};
        for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
            if (strncmp(line, starts[i], strlen(starts[i])) == 0)
                return true;
    }
    return false;
}
