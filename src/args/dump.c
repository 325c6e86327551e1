/* args/dump.c — the arguments that Megatron prints into its log.
 *
 * takes  a log, whole or a part; lines of the form
 *          [rank0]:   recompute_granularity ........................... full
 *        between two lines "--- arguments ---" and "--- end of arguments ---" where those are there
 * gives  {megatron_args: {name: value}}; values as Python prints them
 * next   config/
 */
#include "args/python.h"
#include "args/words.h"
#include "base/source.h"

#include <recompute/args.h>

#include <string.h>

typedef struct dump_line {
    size_t name_at, n_name, value_at, n_value;
} dump_line;

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_';
}

/* Finds "name ..... value" in a line; at least `n_dots` dots. Long names have few, or none and
 * two spaces. */
static bool find_argument(const char *line, size_t n, size_t n_dots, dump_line *out)
{
    for (size_t i = 1; i + 1 < n; i++) {
        if (line[i] != ' ' || !is_name_char(line[i - 1]))
            continue;
        size_t dots = 0;
        while (i + 1 + dots < n && line[i + 1 + dots] == '.')
            dots++;
        size_t after = i + 1 + dots;
        if (dots < n_dots || after >= n || line[after] != ' ')
            continue;
        size_t from = i;
        while (from > 0 && is_name_char(line[from - 1]))
            from--;
        while (after < n && line[after] == ' ')
            after++;
        bool is_word = line[from] < '0' || line[from] > '9';
        *out = (dump_line){from, i - from, after, n - after};
        return is_word && after < n;
    }
    return false;
}

/* Without trailing white space and without the colour codes some launchers add. */
static size_t trim(const char *text, size_t n)
{
    const char *escape = memchr(text, '\033', n);
    if (escape)
        n = (size_t)(escape - text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        n--;
    return n;
}

static rc_code add_line(rc_nodes *nodes, rc_doc *map, rc_source *source, size_t line_at,
                        const dump_line *found, rc_error *err)
{
    const char *text = source->bytes + line_at + found->value_at, *name;
    size_t n = trim(text, found->n_value);
    rc_doc *node;
    rc_where key_where = rc_source_where(source, line_at + found->name_at, found->n_name);
    rc_where where = rc_source_where(source, line_at + found->value_at, n);
    RC_TRY(rc_nodes_text(nodes, source->bytes + line_at + found->name_at, found->n_name, &name,
                         err));
    RC_TRY(rc_python_read(nodes, text, n, where, &node, err));
    return rc_args_put(map, name, key_where, node, err);
}

static bool holds(const char *line, size_t n, const char *what)
{
    size_t n_what = strlen(what);
    for (size_t i = 0; i + n_what <= n; i++)
        if (memcmp(line + i, what, n_what) == 0)
            return true;
    return false;
}

/* Between the marks every shape of line counts; without marks only lines that no prose looks like. */
static rc_code read_lines(rc_nodes *nodes, rc_doc *map, rc_source *source, bool has_marks,
                          rc_error *err)
{
    bool is_inside = !has_marks;
    for (size_t at = 0; at < source->n_bytes;) {
        const char *line = source->bytes + at;
        const char *end = memchr(line, '\n', source->n_bytes - at);
        size_t n = end ? (size_t)(end - line) : source->n_bytes - at;
        dump_line found;
        if (has_marks && holds(line, n, "arguments ---"))
            is_inside = !holds(line, n, "end of arguments");
        else if (is_inside && find_argument(line, n, has_marks ? 0 : 5, &found))
            RC_TRY(add_line(nodes, map, source, at, &found, err));
        at += n + 1;
    }
    return RC_OK;
}

rc_code rc_dump_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                     rc_doc **out, rc_error *err)
{
    rc_nodes nodes = {.mem = mem};
    rc_source source;
    rc_doc *args;
    RC_TRY(rc_source_open_log(path, bytes, n_bytes, mem, &source, err));
    rc_where start = rc_source_where(&source, 0, 0);
    RC_TRY(rc_nodes_add(&nodes, RC_DOC_MAP, start, out, err));
    RC_TRY(rc_nodes_add(&nodes, RC_DOC_MAP, start, &args, err));
    bool has_marks = strstr(source.bytes, "arguments ---") != NULL;
    RC_TRY(read_lines(&nodes, args, &source, has_marks, err));
    if (args->n_children == 0)
        return RC_FAIL(err, RC_E_INPUT, start,
                       "no arguments (name ........ value) are found in this log");
    rc_doc_add(*out, "megatron_args", start, args);
    return RC_OK;
}

bool rc_dump_is(const char *bytes)
{
    if (strstr(bytes, " arguments ---"))
        return true;
    const char *dots = strstr(bytes, " ........");
    return dots && dots > bytes && is_name_char(dots[-1]);
}
