/* table.c — filling rc_table and rc_report. */
#include <recompute/table.h>

#include <string.h>

rc_code rc_table_make(rc_arena *mem, const char *name, const char *title,
                      const rc_column *columns, size_t n_columns, rc_table **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    **out = (rc_table){
        .name = name, .title = title, .columns = columns, .n_columns = n_columns, .mem = mem};
    return RC_OK;
}

rc_code rc_table_add_row(rc_table *table, rc_cell **cells, rc_error *err)
{
    rc_growth by = {table->n_rows, table->n_rows + 1, table->n_columns * sizeof **cells};
    RC_TRY(rc_arena_grow(table->mem, (void **)&table->cells, &table->n_room, by, err));
    *cells = table->cells + table->n_rows * table->n_columns;
    for (size_t i = 0; i < table->n_columns; i++)
        (*cells)[i].is_null = true;
    table->n_rows++;
    return RC_OK;
}

rc_cell rc_cell_text(const char *text)
{
    return (rc_cell){.is_null = !text, .text = text};
}

rc_cell rc_cell_int(int64_t value)
{
    return (rc_cell){.i = value, .f = (double)value};
}

rc_cell rc_cell_real(double value)
{
    return (rc_cell){.f = value};
}

void rc_report_add(rc_report *report, rc_table *table, bool is_facts)
{
    RC_ASSERT(report->n < sizeof report->at / sizeof *report->at);
    report->at[report->n] = table;
    report->is_facts[report->n] = is_facts;
    report->n++;
}
