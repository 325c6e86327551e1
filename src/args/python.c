/* args/python.c — values as Python writes them.
 *
 * takes  the text behind the dots of an argument dump, or a value such as ([0]*3+[1]*58), the
 *        notation in which Megatron-LM takes layer patterns
 * gives  null, booleans, numbers, strings and lists; lists may be added and multiplied
 *
 * Only literals are read. Anything else is text, which is what most values are.
 */
#include "args/python.h"

#include <string.h>

enum { MAX_DEPTH = 16, MAX_ELEMENTS = 16384 };

typedef struct python {
    rc_nodes *nodes;
    const char *text;
    size_t n, at;
    rc_where place;
    int depth;
    size_t n_elements;
} python;

/* RC_OK with *out NULL: not a literal. */
static rc_code read_sum(python *p, rc_doc **out, rc_error *err);

static rc_where where_at(const python *p, size_t from, size_t n_cols)
{
    rc_where where = p->place;
    where.col += (int)from;
    where.n_cols = (int)n_cols;
    return where;
}

static int peek(const python *p)
{
    return p->at < p->n ? (unsigned char)p->text[p->at] : -1;
}

static void skip_space(python *p)
{
    while (peek(p) == ' ' || peek(p) == '\t')
        p->at++;
}

static rc_code read_quoted(python *p, rc_doc **out, rc_error *err)
{
    size_t from = p->at++;
    char quote = p->text[from];
    while (peek(p) >= 0 && peek(p) != quote)
        p->at++;
    if (peek(p) < 0)
        return RC_OK;
    p->at++;
    RC_TRY(rc_nodes_add_string(p->nodes, where_at(p, from, p->at - from), p->text + from + 1,
                               p->at - from - 2, out, err));
    (*out)->is_quoted = true;
    return RC_OK;
}

/* <CudaGraphScope.attn: 2> and AttnBackend.auto by their last name. */
static void cut_enum(const char **text, size_t *n)
{
    bool is_object = *n > 2 && **text == '<';
    const char *end = is_object ? memchr(*text, ':', *n) : *text + *n;
    const char *from = *text + is_object;
    if (!end)
        return;
    for (const char *c = from; c < end; c++)
        if (*c == '.')
            from = c + 1;
    if (is_object && from > *text + 1 && from < end) {
        *text = from;
        *n = (size_t)(end - from);
    }
}

static rc_code make_word(python *p, size_t from, size_t n, rc_doc **out, rc_error *err)
{
    const char *text = p->text + from;
    rc_where where = where_at(p, from, n);
    cut_enum(&text, &n);
    RC_TRY(rc_nodes_add_string(p->nodes, where, text, n, out, err));
    rc_doc *node = *out;
    bool is_none = strcmp(node->text, "None") == 0;
    if (is_none)
        node->kind = RC_DOC_NULL;
    else
        rc_doc_resolve_scalar(node);
    if (node->kind == RC_DOC_NULL && !is_none)
        node->kind = RC_DOC_STRING; /* Python's only null is None */
    return RC_OK;
}

/* A word ends at punctuation, a whole number at the + of a sum too. */
static rc_code read_word(python *p, rc_doc **out, rc_error *err)
{
    size_t from = p->at;
    bool is_object = peek(p) == '<';
    while (peek(p) >= '0' && peek(p) <= '9')
        p->at++;
    if (p->at > from && peek(p) == '+')
        return make_word(p, from, p->at - from, out, err);
    while (peek(p) >= 0 && (is_object || !strchr(" ,[]()*", peek(p)))) {
        p->at++;
        if (is_object && p->text[p->at - 1] == '>')
            break;
    }
    return p->at > from ? make_word(p, from, p->at - from, out, err) : RC_OK;
}

/* [a, b] or (a, b); a bracket around one sum without a comma is just the sum. */
static rc_code read_list(python *p, rc_doc **out, rc_error *err)
{
    size_t from = p->at++;
    char open = p->text[from], close = open == '[' ? ']' : ')';
    bool has_comma = false;
    rc_doc *list, *node = NULL;
    if (++p->depth > MAX_DEPTH)
        return RC_OK;
    RC_TRY(rc_nodes_add(p->nodes, RC_DOC_LIST, where_at(p, from, 1), &list, err));
    for (skip_space(p); peek(p) != close; skip_space(p)) {
        node = NULL;
        RC_TRY(read_sum(p, &node, err));
        if (!node || ++p->n_elements > MAX_ELEMENTS)
            return RC_OK;
        rc_doc_add(list, NULL, RC_NOWHERE, node);
        skip_space(p);
        has_comma = has_comma || peek(p) == ',';
        if (peek(p) == ',')
            p->at++;
        else if (peek(p) != close)
            return RC_OK;
    }
    p->at++;
    p->depth--;
    list->where.n_cols = (int)(p->at - from);
    *out = open == '(' && !has_comma && list->n_children == 1 ? list->child : list;
    return RC_OK;
}

static rc_code read_atom(python *p, rc_doc **out, rc_error *err)
{
    skip_space(p);
    *out = NULL;
    if (peek(p) == '[' || peek(p) == '(')
        return read_list(p, out, err);
    if (peek(p) == '\'' || peek(p) == '"')
        return read_quoted(p, out, err);
    return read_word(p, out, err);
}

/* Adds copies of the children of `from`, which are scalars or short lists. */
static rc_code extend(python *p, rc_doc *list, const rc_doc *from, rc_error *err)
{
    size_t n = from->n_children;
    for (const rc_doc *child = from->child; n > 0; child = child->next, n--) {
        rc_doc *copy;
        if (++p->n_elements > MAX_ELEMENTS)
            return RC_OK;
        RC_TRY(rc_nodes_add(p->nodes, child->kind, child->where, &copy, err));
        *copy = *child;
        rc_doc_add(list, NULL, RC_NOWHERE, copy);
    }
    return RC_OK;
}

/* list * whole number */
static rc_code read_product(python *p, rc_doc **out, rc_error *err)
{
    RC_TRY(read_atom(p, out, err));
    for (skip_space(p); *out && peek(p) == '*'; skip_space(p)) {
        rc_doc *times, *list;
        p->at++;
        RC_TRY(read_atom(p, &times, err));
        bool is_product = (*out)->kind == RC_DOC_LIST && times && times->kind == RC_DOC_INT &&
                          times->i >= 0 && times->i <= MAX_ELEMENTS;
        if (!is_product) {
            *out = NULL;
            return RC_OK;
        }
        RC_TRY(rc_nodes_add(p->nodes, RC_DOC_LIST, (*out)->where, &list, err));
        for (int64_t i = 0; i < times->i && p->n_elements <= MAX_ELEMENTS; i++)
            RC_TRY(extend(p, list, *out, err));
        *out = p->n_elements > MAX_ELEMENTS ? NULL : list;
    }
    return RC_OK;
}

static rc_code read_sum(python *p, rc_doc **out, rc_error *err)
{
    RC_TRY(read_product(p, out, err));
    for (skip_space(p); *out && peek(p) == '+'; skip_space(p)) {
        rc_doc *right;
        p->at++;
        RC_TRY(read_product(p, &right, err));
        bool is_sum = (*out)->kind == RC_DOC_LIST && right && right->kind == RC_DOC_LIST;
        if (is_sum)
            RC_TRY(extend(p, *out, right, err));
        if (!is_sum || p->n_elements > MAX_ELEMENTS)
            *out = NULL;
    }
    return RC_OK;
}

rc_code rc_python_read(rc_nodes *nodes, const char *text, size_t n, rc_where at, rc_doc **out,
                       rc_error *err)
{
    python p = {.nodes = nodes, .text = text, .n = n, .place = at};
    if (p.place.col == 0)
        p.place.col = 1;
    bool is_literal = n > 0 && strchr("[('\"", text[0]);
    *out = NULL;
    if (is_literal)
        RC_TRY(read_sum(&p, out, err));
    skip_space(&p);
    if (*out && p.at == n) {
        (*out)->where = where_at(&p, 0, n);
        return RC_OK;
    }
    return make_word(&p, 0, n, out, err);
}
