/* layout/written.c — pipeline_model_parallel_layout: "Ett|(t|)*2ttL" or a list of lists of layer names.
 *
 * takes  the value of the setting
 * gives  its stages with the names of their layers, or that it cannot be read
 * next   stages.c deals the model's layers out by it; check/rules_pipeline.c judges it
 *
 * Written form: commas are dropped, then `(...)*n` is repeated, then `x*n`; `|` ends a stage.
 * A bracket holds no bracket. Source: Megatron-LM pipeline_parallel_layer_layout.py.
 */
#include "layout/written.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TEXT = 1 << 20 }; /* a layout longer than this is no layout of a model */

/* The helpers below answer false where the value is no layout, and where memory is out: code says which. */
typedef struct reader {
    rc_arena *mem;
    rc_pipeline_layout *out;
    rc_error *err;
    rc_code code;
} reader;

static bool add_text(reader *r, rc_text *text, const char *bytes, size_t n)
{
    if (text->n + n > MAX_TEXT)
        return false;
    if (r->code == RC_OK)
        r->code = rc_text_add(text, bytes, n, r->err);
    return r->code == RC_OK;
}

/* "*12" at `at`: its length and number, or 0. */
static size_t take_repeat(const char *at, size_t *times)
{
    if (at[0] != '*' || !isdigit((unsigned char)at[1]))
        return 0;
    size_t n = 1;
    for (*times = 0; isdigit((unsigned char)at[n]); n++)
        if (*times < MAX_TEXT)
            *times = *times * 10 + (size_t)(at[n] - '0');
    return n;
}

static bool add_repeated(reader *r, rc_text *text, const char *bytes, size_t n, size_t times)
{
    for (size_t i = 0; i < times; i++)
        if (!add_text(r, text, bytes, n))
            return false;
    return true;
}

/* (...)*n; other brackets stay, and are then letters that mean nothing. */
static bool expand_brackets(reader *r, const char *from, rc_text *to)
{
    while (*from) {
        size_t inside = *from == '(' ? strcspn(from + 1, ")") : 0, times, n = 0;
        if (inside && from[1 + inside] == ')')
            n = take_repeat(from + inside + 2, &times);
        if (n && !add_repeated(r, to, from + 1, inside, times))
            return false;
        if (!n && !add_text(r, to, from, 1))
            return false;
        from += n ? inside + 2 + n : 1;
    }
    return true;
}

static bool expand_letters(reader *r, const char *from, rc_text *to)
{
    while (*from) {
        size_t times = 1, n = take_repeat(from + 1, &times);
        if (!add_repeated(r, to, from, 1, n ? times : 1))
            return false;
        from += 1 + n;
    }
    return true;
}

static bool drop_commas(reader *r, const char *from, rc_text *to)
{
    for (; *from; from++)
        if (*from != ',' && !add_text(r, to, from, 1))
            return false;
    return true;
}

static bool add_layer(reader *r, rc_stage_layer layer)
{
    rc_pipeline_layout *layout = r->out;
    r->code = RC_GROW(r->mem, &layout->layers, layout->n_layers, &layout->n_room,
                      layout->n_layers + 1, r->err);
    if (r->code != RC_OK)
        return false;
    layout->layers[layout->n_layers++] = layer;
    return true;
}

static bool end_stage(reader *r)
{
    rc_pipeline_layout *layout = r->out;
    const size_t n = layout->n_stages ? layout->n_stages + 1 : 0;
    r->code = RC_GROW(r->mem, &layout->stage_starts, n, &layout->n_stage_room,
                      layout->n_stages + 2, r->err);
    if (r->code != RC_OK)
        return false;
    layout->stage_starts[++layout->n_stages] = layout->n_layers; /* the first starts at 0 */
    return true;
}

static bool read_letters(reader *r, const char *text)
{
    static const char letters[] = "ELxtm"; /* ORDER rc_stage_layer; encoders have no letter */
    for (; *text; text++) {
        const char *letter = strchr(letters, *text);
        bool is_done = *text == '|' ? end_stage(r)
                       : letter && *letter != 'x'
                           ? add_layer(r, (rc_stage_layer)(letter - letters))
                           : false;
        if (!is_done)
            return false;
    }
    return end_stage(r);
}

static bool read_written(reader *r, const rc_doc *doc)
{
    rc_text plain = {.mem = r->mem}, unrolled = plain, flat = plain;
    if (strlen(doc->text) != doc->n_bytes || !drop_commas(r, doc->text, &plain) ||
        !expand_brackets(r, plain.at ? plain.at : "", &unrolled) ||
        !expand_letters(r, unrolled.at ? unrolled.at : "", &flat))
        return false;
    return read_letters(r, flat.at ? flat.at : "");
}

/* Names count without case and surrounding space. */
static bool read_name(reader *r, const rc_doc *item)
{
    static const char *const names[] = {"embedding", "loss", "encoder", "decoder", "mtp"};
    char name[16] = "";
    if (item->kind != RC_DOC_STRING)
        return false;
    const char *start = item->text + strspn(item->text, " \t\n\r\f\v");
    size_t n = strcspn(start, " \t\n\r\f\v");
    if (n >= sizeof name || start[n + strspn(start + n, " \t\n\r\f\v")])
        return false;
    for (size_t i = 0; i < n; i++)
        name[i] = (char)tolower((unsigned char)start[i]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return add_layer(r, (rc_stage_layer)i);
    return false;
}

/* Two passes, as rows are counted before their names are looked up. */
static bool read_rows(reader *r, const rc_doc *doc)
{
    for (const rc_doc *row = doc->child; row; row = row->next)
        if (row->kind != RC_DOC_LIST)
            return false;
    r->out->n_rows = doc->n_children;
    for (const rc_doc *row = doc->child; row; row = row->next) {
        for (const rc_doc *item = row->child; item; item = item->next)
            if (!read_name(r, item))
                return false;
        if (!end_stage(r))
            return false;
    }
    return true;
}

rc_code rc_pipeline_layout_read(const rc_doc *doc, rc_arena *mem, rc_pipeline_layout *out,
                                rc_error *err)
{
    reader r = {.mem = mem, .out = out, .err = err, .code = RC_OK};
    *out = (rc_pipeline_layout){0};
    if (doc->kind == RC_DOC_STRING) {
        out->is_read = read_written(&r, doc);
        out->n_rows = out->is_read ? out->n_stages : 0;
    } else {
        out->is_read = doc->kind == RC_DOC_LIST && read_rows(&r, doc);
    }
    return r.code;
}
