/* read/json.c — one JSON value as rc_doc, with the position of every key and value.
 *
 * takes  text as RFC 8259 has it; NaN and Infinity too, because Python's json module writes them
 * gives  a tree; integers that fit int64 are INT, all other numbers FLOAT
 * next   config/
 *
 * Written by hand: jansson, the project's JSON library, keeps no positions of values, and "which
 * line is wrong" is what a reader of configurations is for. Strict: no comments, no trailing
 * commas, no duplicate keys; each has a message of its own because people write them.
 */
#include <recompute/read.h>

#include "base/nodes.h"
#include "base/num.h"
#include "base/source.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

typedef struct json {
    rc_source source;
    rc_nodes nodes;
    size_t at;
    char *text; /* scratch for one string, as large as the input */
} json;

static int peek(const json *j)
{
    return j->at < j->source.n_bytes ? (unsigned char)j->source.bytes[j->at] : -1;
}

static rc_code wrong(json *j, const char *what, rc_error *err)
{
    rc_where where = rc_source_where(&j->source, j->at, 1);
    int c = peek(j);
    if (c < 0)
        return RC_FAIL(err, RC_E_INPUT, where, "%s, but the text ends here", what);
    if (c == '/' || c == '#')
        return RC_FAIL(err, RC_E_INPUT, where, "%s; JSON has no comments", what);
    char safe[16], one = (char)c;
    return RC_FAIL(err, RC_E_INPUT, where, "%s, not %s", what,
                   rc_text_printable(&one, 1, safe, sizeof safe));
}

static void skip_space(json *j)
{
    j->at += strspn(j->source.bytes + j->at, " \t\r\n");
}

static bool take_word(json *j, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(j->source.bytes + j->at, word, n) != 0)
        return false;
    j->at += n;
    return true;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Four hex digits at the cursor, or -1. */
static int32_t take_hex4(json *j)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(j));
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
        j->at++;
    }
    return value;
}

static size_t put_utf8(char *to, int32_t point)
{
    if (point < 0x80) {
        to[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const int lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    to[0] = (char)(lead[n] | point);
    return n;
}

/* After the backslash and `u`; pairs of surrogates make one character. */
static rc_code take_unicode(json *j, char *to, size_t *n, rc_error *err)
{
    size_t from = j->at - 2;
    int32_t point = take_hex4(j);
    if (point >= 0xD800 && point <= 0xDBFF && take_word(j, "\\u")) {
        int32_t low = take_hex4(j);
        bool is_pair = low >= 0xDC00 && low <= 0xDFFF;
        point = is_pair ? 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00) : -1;
    }
    if (point < 0 || (point >= 0xD800 && point <= 0xDFFF))
        return RC_FAIL(err, RC_E_INPUT, rc_source_where(&j->source, from, 2),
                       "\\u takes four hex digits, and surrogates come in pairs");
    *n += put_utf8(to + *n, point);
    return RC_OK;
}

/* The cursor stands on the opening quote; the text comes back in j->text. */
static rc_code take_string(json *j, size_t *n, rc_error *err)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    size_t from = j->at++;
    for (*n = 0; peek(j) != '"';) {
        int c = peek(j);
        if (c < 0 || c == '\n')
            return RC_FAIL(err, RC_E_INPUT, rc_source_where(&j->source, from, 1),
                           "this string has no closing quote on its line");
        if (c < 0x20)
            return wrong(j, "a control character in a string must be escaped", err);
        j->at++;
        if (c != '\\') {
            j->text[(*n)++] = (char)c;
            continue;
        }
        c = peek(j);
        const char *escape = c > 0 ? strchr(escapes, c) : NULL;
        if (c != 'u' && !escape)
            return wrong(j, "an escape is one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u", err);
        j->at++;
        if (c == 'u')
            RC_TRY(take_unicode(j, j->text, n, err));
        else
            j->text[(*n)++] = meanings[escape - escapes];
    }
    j->at++;
    return RC_OK;
}

static rc_code read_string(json *j, rc_doc **out, rc_error *err)
{
    size_t from = j->at, n;
    RC_TRY(take_string(j, &n, err));
    rc_where where = rc_source_where(&j->source, from, j->at - from);
    RC_TRY(rc_nodes_add_string(&j->nodes, where, j->text, n, out, err));
    (*out)->is_quoted = true;
    return RC_OK;
}

static size_t count_digits(const json *j)
{
    return strspn(j->source.bytes + j->at, "0123456789");
}

/* -? (0 | 1-9 digits) (. digits)? (e [+-]? digits)? */
static rc_code skip_number(json *j, bool *is_float, rc_error *err)
{
    j->at += peek(j) == '-';
    size_t n = count_digits(j);
    if (n == 0)
        return wrong(j, "a value is expected here", err);
    if (n > 1 && peek(j) == '0')
        return wrong(j, "a number has no leading zeros", err);
    j->at += n;
    if (peek(j) == '.') {
        *is_float = true;
        j->at++;
        if ((n = count_digits(j)) == 0)
            return wrong(j, "a digit is expected after the point", err);
        j->at += n;
    }
    if (peek(j) == 'e' || peek(j) == 'E') {
        *is_float = true;
        j->at++;
        j->at += peek(j) == '+' || peek(j) == '-';
        if ((n = count_digits(j)) == 0)
            return wrong(j, "a digit is expected in the exponent", err);
        j->at += n;
    }
    return RC_OK;
}

static rc_code read_number(json *j, rc_doc **out, rc_error *err)
{
    size_t from = j->at;
    bool is_float = false;
    RC_TRY(skip_number(j, &is_float, err));
    size_t n = j->at - from;
    rc_where where = rc_source_where(&j->source, from, n);
    RC_TRY(rc_nodes_add_string(&j->nodes, where, j->source.bytes + from, n, out, err));
    rc_doc *node = *out;
    node->kind = !is_float && rc_parse_int(node->text, &node->i) ? RC_DOC_INT : RC_DOC_FLOAT;
    if (node->kind == RC_DOC_INT)
        node->f = (double)node->i;
    else if (!rc_parse_real(node->text, &node->f))
        return RC_FAIL(err, RC_E_RANGE, where, "the number is too large");
    return RC_OK;
}

static rc_code read_word(json *j, rc_doc **out, rc_error *err)
{
    static const struct {
        const char *word;
        rc_doc_kind kind;
        int64_t i;
        double f;
    } words[] = {
        {"null", RC_DOC_NULL, 0, 0},
        {"true", RC_DOC_BOOL, 1, 0},
        {"false", RC_DOC_BOOL, 0, 0},
        {"NaN", RC_DOC_FLOAT, 0, (double)NAN},
        {"Infinity", RC_DOC_FLOAT, 0, (double)INFINITY},
        {"-Infinity", RC_DOC_FLOAT, 0, -(double)INFINITY},
    };
    size_t from = j->at;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!take_word(j, words[i].word))
            continue;
        rc_where where = rc_source_where(&j->source, from, j->at - from);
        RC_TRY(rc_nodes_add_string(&j->nodes, where, words[i].word, j->at - from, out, err));
        (*out)->kind = words[i].kind;
        (*out)->i = words[i].i;
        (*out)->f = words[i].f;
        return RC_OK;
    }
    return read_number(j, out, err);
}

/* A comma and more, or the end of the list or map `close`s; *is_end tells which. */
static rc_code take_comma(json *j, char close, bool *is_end, rc_error *err)
{
    skip_space(j);
    *is_end = peek(j) == close;
    if (*is_end) {
        j->at++;
        return RC_OK;
    }
    if (peek(j) != ',')
        return wrong(
            j, close == ']' ? "a comma or ] is expected here" : "a comma or } is expected here",
            err);
    size_t comma = j->at++;
    skip_space(j);
    if (peek(j) == close)
        return RC_FAIL(err, RC_E_INPUT, rc_source_where(&j->source, comma, 1),
                       "JSON has no comma before %c", close);
    return RC_OK;
}

static rc_code read_key(json *j, const char **key, rc_where *where, rc_error *err)
{
    skip_space(j);
    if (peek(j) != '"')
        return wrong(j, "a key in double quotes is expected here", err);
    size_t from = j->at, n;
    RC_TRY(take_string(j, &n, err));
    *where = rc_source_where(&j->source, from, j->at - from);
    if (memchr(j->text, 0, n))
        return RC_FAIL(err, RC_E_INPUT, *where, "a key may not hold a NUL byte");
    RC_TRY(rc_nodes_text(&j->nodes, j->text, n, key, err));
    skip_space(j);
    if (peek(j) != ':')
        return wrong(j, "a colon is expected after the key", err);
    j->at++;
    return RC_OK;
}

static rc_code read_value(json *j, int depth, rc_doc **out, rc_error *err);

/* The cursor stands on [ or {. Recursion is bounded by RC_READ_MAX_DEPTH. */
static rc_code read_nested(json *j, int depth, rc_doc **out, rc_error *err)
{
    bool is_map = peek(j) == '{', is_end;
    char close = is_map ? '}' : ']';
    rc_where where = rc_source_where(&j->source, j->at, 1);
    if (depth >= RC_READ_MAX_DEPTH)
        return RC_FAIL(err, RC_E_RANGE, where, "nested deeper than %d levels",
                       RC_READ_MAX_DEPTH);
    RC_TRY(rc_nodes_add(&j->nodes, is_map ? RC_DOC_MAP : RC_DOC_LIST, where, out, err));
    rc_doc *parent = *out;
    j->at++;
    skip_space(j);
    is_end = peek(j) == close;
    if (is_end)
        j->at++;
    while (!is_end) {
        const char *key = NULL;
        rc_where key_where = RC_NOWHERE;
        rc_doc *node;
        if (is_map)
            RC_TRY(read_key(j, &key, &key_where, err));
        RC_TRY(read_value(j, depth + 1, &node, err));
        rc_doc_add(parent, key, key_where, node);
        RC_TRY(take_comma(j, close, &is_end, err));
    }
    return is_map ? rc_doc_check_keys(parent, j->nodes.mem, err) : RC_OK;
}

static rc_code read_value(json *j, int depth, rc_doc **out, rc_error *err)
{
    skip_space(j);
    if (peek(j) == '{' || peek(j) == '[')
        return read_nested(j, depth, out, err);
    if (peek(j) == '"')
        return read_string(j, out, err);
    return read_word(j, out, err);
}

rc_code rc_json_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                     rc_doc **out, rc_error *err)
{
    json j = {.nodes = {.mem = mem}};
    RC_TRY(rc_source_open(path, bytes, n_bytes, mem, &j.source, err));
    RC_TRY(RC_NEW(mem, &j.text, n_bytes + 4, err));
    j.at = rc_source_start(&j.source);
    RC_TRY(read_value(&j, 0, out, err));
    skip_space(&j);
    if (j.at < j.source.n_bytes)
        return wrong(&j, "one value is all a JSON text holds", err);
    return RC_OK;
}
