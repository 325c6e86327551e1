/* args/expand.c — words of a shell text: quotes, escapes, and what $ stands for.
 *
 * takes  a text and a cursor
 * gives  words with the source offset of each byte; what only running would tell stays as written
 *        and marks its word unknown
 */
#include "args/expand.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_WORK = 8 * 1024 * 1024,
    MAX_VARIABLES = 4096,
    MAX_DEPTH = 24,
};

/* A word being built. */
typedef struct builder {
    char *text;
    int32_t *from;
    size_t n, n_room;
    bool has_any; /* quotes make an empty word a word */
    bool is_unknown;
} builder;

bool rc_shell_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool rc_shell_is_name(char c)
{
    return rc_shell_is_name_start(c) || (c >= '0' && c <= '9');
}

static rc_code spend(rc_shell_reader *r, size_t n_work, rc_error *err)
{
    r->n_work += n_work;
    if (r->n_work > MAX_WORK)
        return RC_FAIL(
            err, RC_E_RANGE, rc_source_where(r->source, r->last_at, 1),
            "up to here the script's words and variables are more than %d MiB of text",
            MAX_WORK >> 20);
    return RC_OK;
}

rc_where rc_shell_where(rc_shell_reader *r, const rc_shell_text *text, size_t at, size_t n_cols)
{
    size_t offset = text->from ? (size_t)rc_shell_offset(text->from[at]) : at;
    return rc_source_where(r->source, offset, n_cols);
}

static int32_t offset_at(const rc_shell_text *text, size_t at)
{
    return text->from ? text->from[at] : (int32_t)at;
}

static rc_code add_byte(rc_shell_reader *r, builder *b, char byte, int32_t from, rc_error *err)
{
    if (b->n + 1 >= b->n_room) {
        size_t n_room = b->n_room ? b->n_room * 2 : 64;
        char *text;
        int32_t *offsets;
        RC_TRY(RC_NEW(r->mem, &text, n_room, err));
        RC_TRY(RC_NEW(r->mem, &offsets, n_room, err));
        if (b->n) {
            memcpy(text, b->text, b->n);
            memcpy(offsets, b->from, b->n * sizeof *offsets);
        }
        b->text = text;
        b->from = offsets;
        b->n_room = n_room;
    }
    r->last_at = (size_t)rc_shell_offset(from);
    b->is_unknown = b->is_unknown || from < 0;
    b->text[b->n] = byte;
    b->from[b->n++] = from;
    b->has_any = true;
    return RC_OK;
}

static rc_code add_bytes(rc_shell_reader *r, builder *b, const rc_shell_text *text, size_t from,
                         size_t n, rc_error *err)
{
    RC_TRY(spend(r, n, err));
    for (size_t i = 0; i < n; i++)
        RC_TRY(add_byte(r, b, text->bytes[from + i], offset_at(text, from + i), err));
    return RC_OK;
}

rc_code rc_shell_push(rc_shell_reader *r, rc_shell_words *words, const rc_shell_word *word,
                      rc_error *err)
{
    RC_TRY(spend(r, sizeof *word, err));
    RC_TRY(RC_GROW(r->mem, &words->at, words->n, &words->n_room, words->n + 1, err));
    words->at[words->n++] = *word;
    return RC_OK;
}

static rc_code finish(rc_shell_reader *r, builder *b, rc_shell_words *out, rc_error *err)
{
    if (!b->has_any)
        return RC_OK;
    rc_shell_word word = {.text = "", .from = NULL, .is_unknown = b->is_unknown};
    if (b->n > 0) {
        b->text[b->n] = '\0'; /* add_byte keeps room for it */
        word = (rc_shell_word){b->text, b->from, b->n, b->is_unknown};
    }
    *b = (builder){0};
    return rc_shell_push(r, out, &word, err);
}

static rc_code add_word(rc_shell_reader *r, builder *b, const rc_shell_word *word,
                        rc_error *err)
{
    rc_shell_text text = {.bytes = word->text, .from = word->from};
    b->has_any = true;
    return add_bytes(r, b, &text, 0, word->n_bytes, err);
}

rc_code rc_shell_join(rc_shell_reader *r, rc_shell_word *word, const rc_shell_word *more,
                      rc_error *err)
{
    builder b = {0};
    rc_shell_words one = {0};
    RC_TRY(add_word(r, &b, word, err));
    RC_TRY(add_word(r, &b, more, err));
    RC_TRY(finish(r, &b, &one, err));
    if (one.n > 0)
        *word = one.at[0];
    return RC_OK;
}

/* Adds a value outside quotes: its white space separates words. */
static rc_code add_split(rc_shell_reader *r, builder *b, const rc_shell_word *word,
                         rc_shell_words *out, rc_error *err)
{
    RC_TRY(spend(r, word->n_bytes, err));
    for (size_t i = 0; i < word->n_bytes; i++) {
        if (strchr(" \t\r\n", word->text[i])) {
            RC_TRY(finish(r, b, out, err));
            continue;
        }
        RC_TRY(add_byte(r, b, word->text[i], word->from[i], err));
    }
    return RC_OK;
}

static size_t bucket_of(const char *name, size_t n)
{
    size_t h = 5381;
    for (size_t i = 0; i < n; i++)
        h = h * 33 + (unsigned char)name[i];
    return h % RC_SHELL_BUCKETS;
}

rc_shell_variable *rc_shell_variable_find(rc_shell_reader *r, const char *name, size_t n)
{
    rc_shell_variable *variable = r->buckets[bucket_of(name, n)];
    for (; variable; variable = variable->next_alike) {
        r->n_work += n + 1;
        if (strncmp(variable->name, name, n) == 0 && variable->name[n] == '\0')
            return variable;
    }
    return NULL;
}

static void put_in_bucket(rc_shell_reader *r, rc_shell_variable *variable)
{
    size_t bucket = bucket_of(variable->name, strlen(variable->name));
    variable->next_alike = r->buckets[bucket];
    r->buckets[bucket] = variable;
}

rc_code rc_shell_variable_take(rc_shell_reader *r, const char *name, size_t n,
                               rc_shell_variable **out, rc_error *err)
{
    rc_shell *shell = r->shell;
    *out = rc_shell_variable_find(r, name, n);
    if (*out)
        return RC_OK;
    if (shell->n_variables == MAX_VARIABLES)
        return RC_FAIL(err, RC_E_RANGE, rc_source_where(r->source, r->last_at, 1),
                       "more than %d variables", MAX_VARIABLES);
    RC_TRY(RC_NEW(r->mem, out, 1, err));
    RC_TRY(rc_arena_copy(r->mem, name, n, &(*out)->name, err));
    put_in_bucket(r, *out);
    shell->variables[shell->n_variables++] = *out;
    return RC_OK;
}

rc_code rc_shell_reader_open(rc_shell_reader *r, rc_error *err)
{
    if (!r->shell->variables)
        RC_TRY(RC_NEW(r->mem, &r->shell->variables, MAX_VARIABLES, err));
    for (size_t i = 0; i < r->shell->n_variables; i++)
        put_in_bucket(r, r->shell->variables[i]);
    return RC_OK;
}

rc_code rc_shell_add_command(rc_shell_reader *r, rc_shell_words words, rc_error *err)
{
    rc_shell *shell = r->shell;
    RC_TRY(spend(r, sizeof words, err));
    RC_TRY(RC_GROW(r->mem, &shell->commands, shell->n_commands, &shell->n_commands_room,
                   shell->n_commands + 1, err));
    shell->commands[shell->n_commands++] = words;
    return RC_OK;
}

/* Bytes up to and with the bracket that closes the one at the cursor, quotes respected; 0 when
 * there is none. */
static size_t bracket_length(const char *at, char open, char close)
{
    size_t n = 0, depth = 0;
    char quote = '\0';
    for (; at[n]; n++) {
        if (at[n] == '\\' && quote != '\'' && at[n + 1])
            n++;
        else if (quote)
            quote = at[n] == quote ? '\0' : quote;
        else if (at[n] == '"' || at[n] == '\'')
            quote = at[n];
        else if (at[n] == open)
            depth++;
        else if (at[n] == close && --depth == 0)
            return n + 1;
    }
    return 0;
}

/* Keeps `n` bytes as they are written: only running would tell what they stand for. */
static rc_code add_unknown(rc_shell_reader *r, builder *b, rc_shell_text *text, size_t n,
                           rc_error *err)
{
    RC_TRY(spend(r, n, err));
    for (size_t i = 0; i < n; i++)
        RC_TRY(add_byte(r, b, text->bytes[text->at + i],
                        ~rc_shell_offset(offset_at(text, text->at + i)), err));
    text->at += n;
    return RC_OK;
}

static rc_code add_arithmetic(rc_shell_reader *r, builder *b, rc_shell_text *text, size_t n,
                              rc_error *err)
{
    int64_t value;
    char digits[32];
    if (!rc_shell_arithmetic(r, text->bytes + text->at + 3, n - 5, &value))
        return add_unknown(r, b, text, n, err);
    snprintf(digits, sizeof digits, "%" PRId64, value);
    for (const char *digit = digits; *digit; digit++)
        RC_TRY(add_byte(r, b, *digit, offset_at(text, text->at), err));
    text->at += n;
    return RC_OK;
}

/* What stands between the braces of ${...}. */
typedef struct expansion {
    const char *name;
    size_t n_name;
    bool is_all;    /* [@] or [*] */
    bool is_joined; /* [*]: one word when it is quoted */
    char op;        /* 0, - = + ? of :- := :+ :?, x for what is not understood */
    size_t default_at, n_default;
} expansion;

static expansion parse_braces(const rc_shell_text *text, size_t n)
{
    const char *at = text->bytes + text->at + 2;
    size_t i = 0, end = n - 3;
    expansion e = {.name = at};
    while (i < end && rc_shell_is_name(at[i]))
        i++;
    e.n_name = i;
    if (i + 3 <= end && (strncmp(at + i, "[@]", 3) == 0 || strncmp(at + i, "[*]", 3) == 0)) {
        e.is_all = true;
        e.is_joined = at[i + 1] == '*';
        i += 3;
    }
    if (i == end)
        return e;
    i += at[i] == ':';
    e.op = i < end && strchr("-=+?", at[i]) ? at[i] : 'x';
    e.default_at = text->at + 2 + i + 1;
    e.n_default = e.op == 'x' ? 0 : end - i - 1;
    return e;
}

static rc_code add_variable(rc_shell_reader *r, builder *b, const rc_shell_variable *variable,
                            const expansion *e, bool is_quoted, rc_shell_words *out,
                            rc_error *err)
{
    size_t n = e->is_all ? variable->words.n : variable->words.n > 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && is_quoted && e->is_joined)
            RC_TRY(add_byte(r, b, ' ', b->n ? b->from[b->n - 1] : 0, err));
        else if (i > 0)
            RC_TRY(finish(r, b, out, err));
        if (is_quoted)
            RC_TRY(add_word(r, b, &variable->words.at[i], err));
        else
            RC_TRY(add_split(r, b, &variable->words.at[i], out, err));
    }
    return RC_OK;
}

/* The text behind :- or :+ is a word of its own. */
static rc_code add_default(rc_shell_reader *r, builder *b, const rc_shell_text *text,
                           const expansion *e, bool is_quoted, rc_shell_words *out,
                           rc_error *err)
{
    builder copy = {0};
    RC_TRY(add_bytes(r, &copy, text, e->default_at, e->n_default, err));
    if (copy.n == 0)
        return RC_OK;
    copy.text[copy.n] = '\0';
    rc_shell_text inner = {.bytes = copy.text, .from = copy.from};
    if (++r->depth > MAX_DEPTH)
        return RC_FAIL(err, RC_E_RANGE, rc_shell_where(r, text, e->default_at, 1),
                       "defaults nest deeper than %d levels", MAX_DEPTH);
    while (inner.bytes[inner.at]) {
        rc_shell_words words = {0};
        size_t before = inner.at;
        RC_TRY(rc_shell_read_next(r, &inner, false, &words, err));
        for (size_t i = 0; i < words.n; i++)
            RC_TRY(is_quoted ? add_word(r, b, &words.at[i], err)
                             : add_split(r, b, &words.at[i], out, err));
        if (inner.at == before ||
            (inner.bytes[inner.at] && strchr(" \t\n", inner.bytes[inner.at]))) {
            if (is_quoted)
                RC_TRY(add_bytes(r, b, &inner, inner.at, 1, err));
            else
                RC_TRY(finish(r, b, out, err));
            inner.at++;
        }
    }
    r->depth--;
    return RC_OK;
}

static rc_code add_braces(rc_shell_reader *r, builder *b, rc_shell_text *text, bool is_quoted,
                          rc_shell_words *out, rc_error *err)
{
    size_t n = bracket_length(text->bytes + text->at + 1, '{', '}');
    if (n == 0)
        return RC_FAIL(err, RC_E_INPUT, rc_shell_where(r, text, text->at, 2),
                       "this ${ has no closing }");
    n++;
    expansion e = parse_braces(text, n);
    const rc_shell_variable *variable = rc_shell_variable_find(r, e.name, e.n_name);
    bool is_set = variable && (variable->words.n > 0 || variable->is_array);
    if (e.n_name == 0 || e.op == 'x' || (!is_set && (e.op == 0 || e.op == '?')))
        return add_unknown(r, b, text, n, err);
    rc_code code = RC_OK;
    if (e.op == '+' ? is_set : !is_set)
        code = add_default(r, b, text, &e, is_quoted, out, err);
    else if (e.op != '+')
        code = add_variable(r, b, variable, &e, is_quoted, out, err);
    text->at += n;
    return code;
}

/* $(...) and $((...)); the cursor stands on $. */
static rc_code add_substitution(rc_shell_reader *r, builder *b, rc_shell_text *text,
                                rc_error *err)
{
    const char *at = text->bytes + text->at;
    size_t n = bracket_length(at + 1, '(', ')');
    if (n == 0)
        return RC_FAIL(err, RC_E_INPUT, rc_shell_where(r, text, text->at, 2),
                       "this $( has no closing )");
    bool is_sum = at[2] == '(' && n > 4 && at[n - 1] == ')';
    return is_sum ? add_arithmetic(r, b, text, n + 1, err)
                  : add_unknown(r, b, text, n + 1, err);
}

/* The cursor stands on $. */
static rc_code add_dollar(rc_shell_reader *r, builder *b, rc_shell_text *text, bool is_quoted,
                          rc_shell_words *out, rc_error *err)
{
    const char *at = text->bytes + text->at;
    if (at[1] == '(')
        return add_substitution(r, b, text, err);
    if (at[1] == '{')
        return add_braces(r, b, text, is_quoted, out, err);
    if (at[1] && strchr("@*#?$!0123456789", at[1]))
        return add_unknown(r, b, text, 2, err); /* $1, $@, $? */
    size_t n = 1;
    while (rc_shell_is_name(at[n]))
        n++;
    if (n == 1)
        return add_bytes(r, b, text, text->at++, 1, err);
    const rc_shell_variable *variable = rc_shell_variable_find(r, at + 1, n - 1);
    if (!variable)
        return add_unknown(r, b, text, n, err);
    expansion e = {0};
    RC_TRY(add_variable(r, b, variable, &e, is_quoted, out, err));
    text->at += n;
    return RC_OK;
}

static rc_code add_backquotes(rc_shell_reader *r, builder *b, rc_shell_text *text,
                              rc_error *err)
{
    const char *end = strchr(text->bytes + text->at + 1, '`');
    if (!end)
        return RC_FAIL(err, RC_E_INPUT, rc_shell_where(r, text, text->at, 1),
                       "this ` is not closed");
    const char *first = text->bytes + text->at + 1;
    first += strspn(first, " \t");
    if (*first == '#') { /* `# a comment between the lines of a command` gives nothing */
        text->at = (size_t)(end - text->bytes) + 1;
        return RC_OK;
    }
    return add_unknown(r, b, text, (size_t)(end - text->bytes) - text->at + 1, err);
}

/* One byte or expansion of what stands between double quotes, or in a here-document. */
static rc_code add_quoted_next(rc_shell_reader *r, builder *b, rc_shell_text *text,
                               rc_shell_words *out, rc_error *err)
{
    const char *at = text->bytes + text->at;
    if (at[0] == '\\' && at[1] == '\n') {
        text->at += 2;
    } else if (at[0] == '\\' && at[1] && strchr("\\\"$`", at[1])) {
        RC_TRY(add_bytes(r, b, text, text->at + 1, 1, err));
        text->at += 2;
    } else if (*at == '$') {
        RC_TRY(add_dollar(r, b, text, true, out, err));
    } else if (*at == '`') {
        RC_TRY(add_backquotes(r, b, text, err));
    } else {
        RC_TRY(add_bytes(r, b, text, text->at++, 1, err));
    }
    return RC_OK;
}

static rc_code add_double_quoted(rc_shell_reader *r, builder *b, rc_shell_text *text,
                                 rc_shell_words *out, rc_error *err)
{
    size_t open = text->at++;
    b->has_any = true;
    while (text->bytes[text->at] != '"') {
        if (text->bytes[text->at] == '\0')
            return RC_FAIL(err, RC_E_INPUT, rc_shell_where(r, text, open, 1),
                           "this quote is not closed");
        RC_TRY(add_quoted_next(r, b, text, out, err));
    }
    text->at++;
    return RC_OK;
}

rc_code rc_shell_read_body(rc_shell_reader *r, rc_shell_text *text, size_t end, bool is_literal,
                           rc_shell_words *out, rc_error *err)
{
    builder b = {.has_any = true};
    if (is_literal)
        RC_TRY(add_bytes(r, &b, text, text->at, end - text->at, err));
    while (!is_literal && text->at < end)
        RC_TRY(add_quoted_next(r, &b, text, out, err));
    text->at = end;
    return finish(r, &b, out, err);
}

static rc_code add_single_quoted(rc_shell_reader *r, builder *b, rc_shell_text *text,
                                 rc_error *err)
{
    size_t open = text->at;
    const char *end = strchr(text->bytes + open + 1, '\'');
    if (!end)
        return RC_FAIL(err, RC_E_INPUT, rc_shell_where(r, text, open, 1),
                       "this quote is not closed");
    b->has_any = true;
    size_t n = (size_t)(end - text->bytes) - open - 1;
    text->at = open + n + 2;
    return add_bytes(r, b, text, open + 1, n, err);
}

/* White space alone, up to the end of a line? */
static bool ends_line(const char *at)
{
    size_t n = strspn(at, " \t");
    return n > 0 && (at[n] == '\n' || (at[n] == '\r' && at[n + 1] == '\n'));
}

/* Outside quotes; the cursor stands on the backslash. */
static rc_code add_escaped(rc_shell_reader *r, builder *b, rc_shell_text *text, rc_error *err)
{
    const char *at = text->bytes + text->at;
    size_t n = at[1] == '\n' ? 2 : at[1] == '\r' && at[2] == '\n' ? 3 : 0;
    if (n > 0) {
        text->at += n;
        return RC_OK;
    }
    if (ends_line(at + 1) && rc_shell_runs(r) != RC_SHELL_NO)
        return RC_FAIL(
            err, RC_E_INPUT, rc_shell_where(r, text, text->at, 1),
            "white space behind this backslash: the line ends here, and what follows "
            "is no part of the command");
    text->at += at[1] ? 2 : 1;
    return add_bytes(r, b, text, text->at - 1, 1, err);
}

rc_code rc_shell_read_next(rc_shell_reader *r, rc_shell_text *text, bool is_split,
                           rc_shell_words *out, rc_error *err)
{
    builder b = {0};
    for (;;) {
        const char *at = text->bytes + text->at;
        if (*at == '\0' || strchr(" \t\r\n;|&()<>", *at))
            break;
        if (*at == '\\')
            RC_TRY(add_escaped(r, &b, text, err));
        else if (*at == '\'')
            RC_TRY(add_single_quoted(r, &b, text, err));
        else if (*at == '"')
            RC_TRY(add_double_quoted(r, &b, text, out, err));
        else if (*at == '`')
            RC_TRY(add_backquotes(r, &b, text, err));
        else if (*at == '$')
            RC_TRY(add_dollar(r, &b, text, !is_split, out, err));
        else
            RC_TRY(add_bytes(r, &b, text, text->at++, 1, err));
    }
    return finish(r, &b, out, err);
}
