/* shape.c — evaluates shapes written in the field's symbols, so that the text a user reads and the
 * number a schedule uses are one thing.
 *
 *   shape   = "[" sum { "," sum } "]"
 *   sum     = product { "+" product }
 *   product = factor { factor | "/" factor }      all factors above the bar first, then division
 *   factor  = number | symbol | "(" sum ")"       the longest symbol that fits (symbols.def)
 */
#include "graph/shape.h"

#include "base/num.h"

#include <ctype.h>
#include <string.h>

typedef struct cursor {
    const char *text, *at;
    const rc_dims *dims;
    rc_error *err;
} cursor;

static rc_code eval_sum(cursor *c, int64_t *out);

static void skip_space(cursor *c)
{
    while (*c->at == ' ')
        c->at++;
}

static const struct symbol {
    const char *name, *words, *setting;
    /* of its value in rc_dims */
    size_t at;
} symbols[] = {
#define RC_SYMBOL(name, words, setting) {#name, words, setting, offsetof(rc_dims, name)},
#include "defs/symbols.def"
#undef RC_SYMBOL
};
enum { N_SYMBOLS = sizeof symbols / sizeof *symbols };

/* The longest symbol that the text begins with; NULL where none does. */
static const struct symbol *find_symbol(const char *text)
{
    const struct symbol *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < N_SYMBOLS; i++) {
        const size_t n = strlen(symbols[i].name);
        if (n <= longest || strncmp(symbols[i].name, text, n) != 0)
            continue;
        found = &symbols[i];
        longest = n;
    }
    return found;
}

static rc_code eval_factor(cursor *c, int64_t *out)
{
    if (isdigit((unsigned char)*c->at)) {
        *out = 0;
        while (isdigit((unsigned char)*c->at))
            *out = *out * 10 + (*c->at++ - '0');
        return RC_OK;
    }
    if (*c->at == '(') {
        c->at++;
        RC_TRY(eval_sum(c, out));
        if (*c->at++ != ')')
            return RC_FAIL(c->err, RC_E_BUG, RC_NOWHERE, "shape %s: missing )", c->text);
        return RC_OK;
    }
    const struct symbol *symbol = find_symbol(c->at);
    if (!symbol)
        return RC_FAIL(c->err, RC_E_BUG, RC_NOWHERE, "shape %s: no symbol %c", c->text, *c->at);
    memcpy(out, (const char *)c->dims + symbol->at, sizeof *out);
    c->at += strlen(symbol->name);
    return RC_OK;
}

static rc_code eval_product(cursor *c, int64_t *out)
{
    int64_t above = 1, below = 1;
    for (;;) {
        skip_space(c);
        bool is_divisor = *c->at == '/';
        if (!is_divisor && *c->at != '(' && !isalnum((unsigned char)*c->at))
            break;
        c->at += is_divisor;
        int64_t factor;
        RC_TRY(eval_factor(c, &factor));
        int64_t *side = is_divisor ? &below : &above;
        if (!rc_mul(*side, factor, side))
            return RC_FAIL(c->err, RC_E_RANGE, RC_NOWHERE,
                           "a tensor of shape %s has more than 2^63-1 elements", c->text);
    }
    if (below == 0 || above % below != 0)
        return RC_FAIL(c->err, RC_E_INPUT, RC_NOWHERE,
                       "shape %s: %lld does not divide by %lld; choose sizes that do", c->text,
                       (long long)above, (long long)below);
    *out = above / below;
    return RC_OK;
}

static rc_code eval_sum(cursor *c, int64_t *out)
{
    *out = 0;
    for (;;) {
        int64_t product = 0;
        RC_TRY(eval_product(c, &product));
        if (!rc_add(*out, product, out))
            return RC_FAIL(c->err, RC_E_RANGE, RC_NOWHERE, "shape %s overflows", c->text);
        skip_space(c);
        if (*c->at != '+')
            return RC_OK;
        c->at++;
    }
}

rc_code rc_shape_eval(const char *text, const rc_dims *dims, rc_shape *out, rc_error *err)
{
    cursor c = {.text = text, .at = text + 1, .dims = dims, .err = err};
    *out = (rc_shape){.n_elem = 1};
    for (;;) {
        RC_ASSERT(out->n_dims < RC_SHAPE_MAX_DIMS);
        int64_t dim;
        RC_TRY(eval_sum(&c, &dim));
        out->dim[out->n_dims++] = dim;
        if (!rc_mul(out->n_elem, dim, &out->n_elem))
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                           "a tensor of shape %s has more than 2^63-1 elements", text);
        if (*c.at != ',')
            break;
        c.at++;
    }
    if (*c.at != ']')
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "shape %s: missing ]", text);
    return RC_OK;
}

rc_code rc_graph_symbols_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"symbol", NULL, RC_UNIT_TEXT},
                                        {"means", NULL, RC_UNIT_TEXT},
                                        {"setting", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "symbols", "The symbols of shapes", columns, 3, out, err));
    for (size_t i = 0; i < N_SYMBOLS; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(symbols[i].name);
        row[1] = rc_cell_text(symbols[i].words);
        row[2] = rc_cell_text(symbols[i].setting);
    }
    return RC_OK;
}
