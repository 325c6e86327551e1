/* size.c — finds functions and files of C source that pass the project's caps.
 *
 * takes  ALLOW-FILE SOURCE...; an allow line is "FILE FUNCTION reason", "-" for the file's length
 * gives  a line per excess on stdout; exit 1 when there was one, or an allow line nothing needs
 *
 * A small lexer, no parser: a function is what stands at brace depth 0 as `name ( ... ) {`.
 * Complexity is McCabe's: 1 + if, for, while, case, &&, ||, ?. The arena and the error that nearly
 * every function is handed (`mem`, `tmp`, `err`) do not count as parameters: they carry no meaning
 * that a caller could mix up.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 80, MOST_COMPLEXITY = 15, MOST_PARAMETERS = 6, MOST_FILE_LINES = 600 };
enum { MAX_NAME = 128, MAX_ALLOW = 256 };

typedef struct allow {
    char file[256], function[MAX_NAME];
    bool is_used;
} allow;

typedef struct scan {
    const char *path, *at;
    int line;
    int braces, parens;
    char name[MAX_NAME]; /* the last identifier outside parentheses at depth 0 */
    int name_line;
    bool is_after_parens;      /* the last token was the `)` that closed name's parentheses */
    int n_commas, n_in_parens; /* commas and words between name's parentheses */
    int n_plumbing;            /* of them mem, tmp, err */
    bool is_void;
    char function[MAX_NAME]; /* whose body we are in; "" outside */
    int function_line, n_parameters, complexity;
    allow *allowed;
    size_t n_allowed;
    int n_bad;
} scan;

static bool is_allowed(scan *s, const char *function)
{
    for (size_t i = 0; i < s->n_allowed; i++) {
        allow *row = &s->allowed[i];
        size_t n = strlen(s->path), n_row = strlen(row->file);
        bool is_file = n >= n_row && strcmp(s->path + n - n_row, row->file) == 0;
        if (is_file && strcmp(row->function, function) == 0)
            return row->is_used = true;
    }
    return false;
}

static void excess(scan *s, const char *what, int has, int most)
{
    if (has <= most || is_allowed(s, s->function))
        return;
    printf("%s:%d: %s has %s %d; at most %d\n", s->path, s->function_line, s->function, what,
           has, most);
    s->n_bad++;
}

static void skip_line(scan *s)
{
    while (*s->at && *s->at != '\n') {
        if (s->at[0] == '\\' && s->at[1] == '\n') {
            s->line++;
            s->at++;
        }
        s->at++;
    }
}

static void skip_comment(scan *s)
{
    s->at += 2;
    while (*s->at && strncmp(s->at, "*/", 2) != 0) {
        s->line += *s->at == '\n';
        s->at++;
    }
    s->at += *s->at ? 2 : 0;
}

static void skip_quoted(scan *s)
{
    char quote = *s->at++;
    while (*s->at && *s->at != quote && *s->at != '\n')
        s->at += *s->at == '\\' && s->at[1] ? 2 : 1;
    s->at += *s->at == quote;
}

static void word(scan *s)
{
    static const char *const branches[] = {"if", "for", "while", "case"};
    const char *from = s->at;
    while (isalnum((unsigned char)*s->at) || *s->at == '_')
        s->at++;
    size_t n = (size_t)(s->at - from);
    for (size_t i = 0; i < 4; i++)
        s->complexity += strlen(branches[i]) == n && memcmp(branches[i], from, n) == 0;
    if (s->braces)
        return;
    if (s->parens) {
        s->is_void = s->n_in_parens == 0 && n == 4 && memcmp(from, "void", 4) == 0;
        s->n_in_parens++;
        s->n_plumbing += n == 3 && (memcmp(from, "mem", 3) == 0 ||
                                    memcmp(from, "tmp", 3) == 0 || memcmp(from, "err", 3) == 0);
    } else if (n < MAX_NAME) {
        memcpy(s->name, from, n);
        s->name[n] = '\0';
        s->name_line = s->line;
        s->is_after_parens = false;
    }
}

static void open_brace(scan *s)
{
    if (s->braces++ || !s->is_after_parens || s->parens)
        return;
    memcpy(s->function, s->name, MAX_NAME);
    s->function_line = s->name_line;
    s->complexity = 1;
    s->n_parameters = s->is_void || s->n_in_parens == 0 ? 0 : s->n_commas + 1 - s->n_plumbing;
}

static void close_brace(scan *s)
{
    if (s->braces == 0 || --s->braces || !s->function[0])
        return;
    excess(s, "lines:", s->line - s->function_line + 1, MOST_LINES);
    excess(s, "complexity", s->complexity, MOST_COMPLEXITY);
    excess(s, "parameters:", s->n_parameters, MOST_PARAMETERS);
    s->function[0] = '\0';
    s->is_after_parens = false;
}

static void paren(scan *s, char c)
{
    if (s->braces)
        return;
    if (c == '(' && s->parens++ == 0) {
        s->n_commas = s->n_in_parens = s->n_plumbing = 0;
        s->is_void = false;
    } else if (c == ')' && s->parens > 0 && --s->parens == 0) {
        s->is_after_parens = true;
    }
}

static void punctuation(scan *s)
{
    char c = *s->at;
    bool is_logical = (c == '&' || c == '|') && s->at[1] == c;
    s->complexity += c == '?' || is_logical;
    s->at += is_logical ? 2 : 1;
    switch (c) {
    case '{':
        open_brace(s);
        break;
    case '}':
        close_brace(s);
        break;
    case '(':
    case ')':
        paren(s, c);
        break;
    default:
        s->n_commas += c == ',' && s->parens == 1 && !s->braces;
        if (!s->parens && !s->braces)
            s->is_after_parens = false;
    }
}

static void token(scan *s, bool is_line_start)
{
    char c = *s->at;
    if (c == '/' && s->at[1] == '*')
        skip_comment(s);
    else if ((c == '#' && is_line_start) || (c == '/' && s->at[1] == '/'))
        skip_line(s);
    else if (c == '"' || c == '\'')
        skip_quoted(s);
    else if (isalnum((unsigned char)c) || c == '_')
        word(s);
    else
        punctuation(s);
}

static void scan_text(scan *s)
{
    bool is_line_start = true;
    while (*s->at) {
        if (isspace((unsigned char)*s->at)) {
            is_line_start = is_line_start || *s->at == '\n';
            s->line += *s->at++ == '\n';
            continue;
        }
        token(s, is_line_start);
        is_line_start = false;
    }
    if (s->line > MOST_FILE_LINES && !is_allowed(s, "-")) {
        printf("%s: %d lines; at most %d\n", s->path, s->line, MOST_FILE_LINES);
        s->n_bad++;
    }
}

static char *read_all(const char *path)
{
    FILE *from = fopen(path, "rb");
    if (!from)
        return NULL;
    fseek(from, 0, SEEK_END);
    long n = ftell(from);
    rewind(from);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text)
        text[fread(text, 1, (size_t)n, from)] = '\0';
    fclose(from);
    return text;
}

static size_t read_allow(const char *path, allow *rows)
{
    char line[1024];
    size_t n = 0;
    FILE *from = fopen(path, "r");
    while (from && n < MAX_ALLOW && fgets(line, sizeof line, from)) {
        allow row = {.is_used = false};
        int used = 0;
        if (line[0] != '#' &&
            sscanf(line, "%255s %127s %n", row.file, row.function, &used) == 2 && line[used])
            rows[n++] = row;
    }
    if (from)
        fclose(from);
    return n;
}

int main(int argc, char **argv)
{
    static allow rows[MAX_ALLOW];
    int n_bad = 0;
    size_t n_rows = argc > 1 ? read_allow(argv[1], rows) : 0;
    for (int i = 2; i < argc; i++) {
        char *text = read_all(argv[i]);
        scan s = {.path = argv[i], .at = text, .line = 1, .allowed = rows, .n_allowed = n_rows};
        if (text)
            scan_text(&s);
        else
            printf("%s: cannot be read\n", argv[i]);
        n_bad += s.n_bad + !text;
        free(text);
    }
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].is_used)
            continue;
        printf("%s: the line for %s %s is needed no more\n", argv[1], rows[i].file,
               rows[i].function);
        n_bad++;
    }
    return n_bad > 0;
}
