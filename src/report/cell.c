/* cell.c — one cell as text: for people, or exact for programs. */
#include "report/cell.h"

#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool rc_unit_is_number(rc_unit unit)
{
    return unit != RC_UNIT_TEXT && unit != RC_UNIT_BOOL;
}

const char *rc_column_title(const rc_column *column)
{
    return column->title ? column->title : column->name;
}

const rc_cell *rc_table_row(const rc_table *table, size_t row)
{
    return table->cells + row * table->n_columns;
}

static rc_code format_text(const char *text, rc_arena *mem, const char **out, rc_error *err)
{
    size_t n = strlen(text);
    char *safe;
    RC_TRY(RC_NEW(mem, &safe, 4 * n + 1, err)); /* every byte may become \xNN */
    *out = rc_text_printable(text, n, safe, 4 * n + 1);
    return RC_OK;
}

static const char *format_real(double value, rc_unit unit, char buf[32])
{
    if (!isfinite(value))
        return isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    if (unit == RC_UNIT_SECONDS)
        return rc_format_seconds(value, buf);
    if (unit == RC_UNIT_RATIO)
        snprintf(buf, 32, "%.1f %%", value * 100);
    else
        snprintf(buf, 32, "%.6g", value);
    return buf;
}

rc_code rc_cell_format(const rc_cell *cell, rc_unit unit, rc_arena *mem, const char **out,
                       rc_error *err)
{
    char buf[32];
    const char *suffix = "";
    const char *text = "-";
    if (!cell->is_null) {
        switch (unit) {
        case RC_UNIT_TEXT:
            return format_text(cell->text, mem, out, err);
        case RC_UNIT_COUNT:
            text = rc_format_count(cell->i, buf);
            break;
        case RC_UNIT_BYTES:
            text = rc_format_bytes(cell->i, buf);
            break;
        case RC_UNIT_FLOPS:
            text = rc_format_si((double)cell->i, buf);
            suffix = "FLOP";
            break;
        case RC_UNIT_SECONDS:
        case RC_UNIT_REAL:
        case RC_UNIT_RATIO:
            text = format_real(cell->f, unit, buf);
            break;
        case RC_UNIT_BOOL:
            text = cell->i ? "yes" : "no";
            break;
        }
    }
    return rc_arena_printf(mem, out, err, "%s%s", text, suffix);
}

const char *rc_cell_exact(const rc_cell *cell, rc_unit unit, char buf[40])
{
    if (cell->is_null)
        return NULL;
    switch (unit) {
    case RC_UNIT_TEXT:
        return NULL;
    case RC_UNIT_BOOL:
        return cell->i ? "true" : "false";
    case RC_UNIT_COUNT:
    case RC_UNIT_BYTES:
    case RC_UNIT_FLOPS:
        snprintf(buf, 40, "%" PRId64, cell->i);
        return buf;
    case RC_UNIT_SECONDS:
    case RC_UNIT_REAL:
    case RC_UNIT_RATIO:
        return isfinite(cell->f) ? rc_format_exact(cell->f, buf) : NULL;
    }
    return NULL;
}

void rc_html_escape(const char *text, FILE *to)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        size_t length = rc_text_printable_length(at + i, n - i);
        const char *entity = at[i] == '&'    ? "&amp;"
                             : at[i] == '<'  ? "&lt;"
                             : at[i] == '>'  ? "&gt;"
                             : at[i] == '"'  ? "&quot;"
                             : at[i] == '\'' ? "&#39;"
                                             : NULL;
        if (entity)
            fputs(entity, to);
        else if (length)
            fwrite(at + i, 1, length, to);
        else
            fprintf(to, "\\x%02X", at[i]);
        i += length ? length : 1;
    }
}
