/* layout.c — pipeline_model_parallel_layout: "Ett|(t|)*2ttL" or a list of lists of layer names.
 *
 * Written form: commas are dropped, then `(...)*n` is repeated, then `x*n`; `|` ends a stage.
 * A bracket holds no bracket. Source: Megatron-LM pipeline_parallel_layer_layout.py.
 */
#include "check/layout.h"

#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TEXT = 1 << 20 }; /* a layout longer than this is no layout of a model */

static bool add_text(rc_checking *checking, rc_text *text, const char *bytes, size_t n)
{
    if (text->n + n > MAX_TEXT)
        return false;
    if (checking->code == RC_OK)
        checking->code = rc_text_add(text, bytes, n, checking->err);
    return checking->code == RC_OK;
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

static bool add_repeated(rc_checking *checking, rc_text *text, const char *bytes, size_t n,
                         size_t times)
{
    for (size_t i = 0; i < times; i++)
        if (!add_text(checking, text, bytes, n))
            return false;
    return true;
}

/* (...)*n; other brackets stay, and are then letters that mean nothing. */
static bool expand_brackets(rc_checking *checking, const char *from, rc_text *to)
{
    while (*from) {
        size_t inside = *from == '(' ? strcspn(from + 1, ")") : 0, times, n = 0;
        if (inside && from[1 + inside] == ')')
            n = take_repeat(from + inside + 2, &times);
        if (n && !add_repeated(checking, to, from + 1, inside, times))
            return false;
        if (!n && !add_text(checking, to, from, 1))
            return false;
        from += n ? inside + 2 + n : 1;
    }
    return true;
}

static bool expand_letters(rc_checking *checking, const char *from, rc_text *to)
{
    while (*from) {
        size_t times = 1, n = take_repeat(from + 1, &times);
        if (!add_repeated(checking, to, from, 1, n ? times : 1))
            return false;
        from += 1 + n;
    }
    return true;
}

static bool drop_commas(rc_checking *checking, const char *from, rc_text *to)
{
    for (; *from; from++)
        if (*from != ',' && !add_text(checking, to, from, 1))
            return false;
    return true;
}

static bool add_layer(rc_checking *checking, rc_pipeline_layout *layout, rc_stage_layer layer)
{
    checking->code = RC_GROW(checking->mem, &layout->layers, layout->n_layers, &layout->n_room,
                             layout->n_layers + 1, checking->err);
    if (checking->code != RC_OK)
        return false;
    layout->layers[layout->n_layers++] = layer;
    return true;
}

static bool end_stage(rc_checking *checking, rc_pipeline_layout *layout)
{
    const size_t n = layout->n_stages ? layout->n_stages + 1 : 0;
    checking->code = RC_GROW(checking->mem, &layout->stage_starts, n, &layout->n_stage_room,
                             layout->n_stages + 2, checking->err);
    if (checking->code != RC_OK)
        return false;
    layout->stage_starts[++layout->n_stages] = layout->n_layers; /* the first starts at 0 */
    return true;
}

static bool read_letters(rc_checking *checking, const char *text, rc_pipeline_layout *layout)
{
    static const char letters[] = "ELxtm"; /* ORDER rc_stage_layer; encoders have no letter */
    for (; *text; text++) {
        const char *letter = strchr(letters, *text);
        bool is_done = *text == '|' ? end_stage(checking, layout)
                       : letter && *letter != 'x'
                           ? add_layer(checking, layout, (rc_stage_layer)(letter - letters))
                           : false;
        if (!is_done)
            return false;
    }
    return end_stage(checking, layout);
}

static bool read_written(rc_checking *checking, const rc_doc *doc, rc_pipeline_layout *layout)
{
    rc_text plain = {.mem = checking->mem}, unrolled = plain, flat = plain;
    if (strlen(doc->text) != doc->n_bytes || !drop_commas(checking, doc->text, &plain) ||
        !expand_brackets(checking, plain.at ? plain.at : "", &unrolled) ||
        !expand_letters(checking, unrolled.at ? unrolled.at : "", &flat))
        return false;
    return read_letters(checking, flat.at ? flat.at : "", layout);
}

/* Names count without case and surrounding space. */
static bool read_name(rc_checking *checking, const rc_doc *item, rc_pipeline_layout *layout)
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
            return add_layer(checking, layout, (rc_stage_layer)i);
    return false;
}

/* Two passes, as rows are counted before their names are looked up. */
static bool read_rows(rc_checking *checking, const rc_doc *doc, rc_pipeline_layout *layout)
{
    for (const rc_doc *row = doc->child; row; row = row->next)
        if (row->kind != RC_DOC_LIST)
            return false;
    layout->n_rows = doc->n_children;
    for (const rc_doc *row = doc->child; row; row = row->next) {
        for (const rc_doc *item = row->child; item; item = item->next)
            if (!read_name(checking, item, layout))
                return false;
        if (!end_stage(checking, layout))
            return false;
    }
    return true;
}

bool rc_pipeline_layout_read(rc_checking *checking, const rc_doc *doc,
                             rc_pipeline_layout *layout)
{
    *layout = (rc_pipeline_layout){0};
    if (doc->kind == RC_DOC_STRING) {
        bool is_read = read_written(checking, doc, layout);
        layout->n_rows = is_read ? layout->n_stages : 0;
        return is_read;
    }
    return doc->kind == RC_DOC_LIST && read_rows(checking, doc, layout);
}
